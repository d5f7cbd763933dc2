"""The parameters of the nodes, and the files that are generated from them."""

from __future__ import annotations

import re

import pytest
from rclpy.parameter import Parameter as RosParameter
from rclpy.validate_full_topic_name import validate_full_topic_name

from test.nodes.conftest import PATIENCE, Cell
from tools.generated_files import files
from ur_energy_model.energy.topics import number_topics
from ur_energy_model.errors import UrEnergyError
from ur_energy_model.files import share_directory
from ur_energy_model.model.friction import LAWS
from ur_energy_model.nodes.estimator import EstimatorNode
from ur_energy_model.nodes.identification import IdentificationNode
from ur_energy_model.nodes.launch_arguments import node_command
from ur_energy_model.nodes.managed_node import ManagedNode
from ur_energy_model.nodes.parameters import NODES, Parameter, Value, ignored


@pytest.mark.parametrize("name", files())
def test_generated_files_are_up_to_date(name: str) -> None:
    path = share_directory() / name
    assert path.read_text() == files()[name], "run python -m tools.generated_files"


@pytest.mark.parametrize(
    "entry", [pytest.param(p, id=f"{node}.{p.name}") for node in NODES for p in NODES[node]]
)
def test_parameters_are_described_and_accept_their_default(entry: Parameter) -> None:
    assert entry.problem(entry.default) is None
    assert entry.description
    assert not entry.description.endswith(".")
    numeric = isinstance(entry.default, int | float) and not isinstance(entry.default, bool)
    assert (entry.minimum is not None) == (entry.maximum is not None) == numeric
    assert not entry.unit or numeric


def test_values_that_are_not_allowed_are_refused() -> None:
    number = Parameter("speed", 1.0, "how fast", minimum=0.0, maximum=2.0)
    assert number.problem(2.0) is None
    assert number.problem(2.1) == "speed must be between 0 and 2, not 2.1"
    word = Parameter("kind", "a", "which", choices=("a", "b"))
    assert word.problem("c") == "kind must be one of a, b, not 'c'"
    host = Parameter("robot_ip", "127.0.0.2", "where", address=True)
    assert host.problem("robot.local") is None
    assert host.problem("192.168..10") == (
        "robot_ip must be the address of a host, not '192.168..10'"
    )


@pytest.mark.parametrize(
    ("default", "text", "value"),
    [
        (True, "false", False),
        (1, "7", 7),
        (1.0, "2.5", 2.5),
        ("a", "b c", "b c"),
        ([""], "a, b", ["a", "b"]),
        ([""], "", [""]),
        ([""], "[]", [""]),
    ],
)
def test_text_is_parsed_as_the_type_of_the_default(default: Value, text: str, value: Value) -> None:
    parsed = Parameter("any", default, "what").parse(text)
    assert parsed == value
    assert type(parsed) is type(value)


@pytest.mark.parametrize(
    ("default", "value"),
    [(True, 1), (1, True), (1, 1.0), (1.0, "1"), (1.0, None), (1.0, True), ("a", 1), ([""], [1])],
)
def test_values_of_another_type_are_refused(default: Value, value: object) -> None:
    entry = Parameter("any", default, "what", minimum=0, maximum=9)
    assert "any must be" in str(entry.problem(value))


@pytest.mark.parametrize("text", ["['a'", "[[a]]", "{a: b}]", "'a", "[{a: 1}]"])
def test_text_that_is_no_list_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a list of text"):
        Parameter("any", [""], "what").parse(text if text[0] != "{" else f"[{text}")


@pytest.mark.parametrize(
    "prefix", ["", "left_", "left/", "left-", "1_", "/a b//", "\u00e4", "-", "<x>", "~{a}", "9/1"]
)
def test_names_of_topics_are_valid_with_every_prefix(prefix: str) -> None:
    names = [topic.name for topic in number_topics([prefix + joint for joint in ("a", "b")])]
    assert len(set(names)) == len(names)
    for name in names:
        validate_full_topic_name(f"/{name}")
    if prefix in ("", "left_", "left/"):
        assert f"energy/{prefix}a/power" in names


def test_text_that_is_not_a_number_is_refused() -> None:
    with pytest.raises(ValueError, match="speed:=fast is not a number"):
        Parameter("speed", 1.0, "how fast", minimum=0.0, maximum=2.0).parse("fast")
    with pytest.raises(ValueError, match="speed must be between 0 and 2"):
        Parameter("speed", 1.0, "how fast", minimum=0.0, maximum=2.0).parse("3")


def test_parameters_without_effect_are_named() -> None:
    values = {entry.name: entry.default for entry in NODES["estimator"]}
    assert ignored("estimator", values) == []
    values |= {"bag": "monday", "source": "joint_states"}
    (line,) = ignored("estimator", values)
    assert line == "bag is ignored: it needs source:=bag, and source is joint_states"
    assert ignored("estimator", values | {"source": "bag"}) == []


def test_a_node_takes_whole_numbers_and_refuses_other_values_in_every_state(cell: Cell) -> None:
    node = cell.make_node(IdentificationNode)
    estimator = cell.make_node(EstimatorNode, publish_rate=20, gap_limit=1)
    for name, value in (("publish_rate", 20.0), ("gap_limit", 1.0)):
        assert repr(estimator.value(name)) == repr(estimator.get_parameter(name).value)
        assert repr(estimator.value(name)) == repr(value)

    def set_(node: ManagedNode, name: str, value: object) -> str:
        return str(node.set_parameters([RosParameter(name, value=value)])[0].reason)

    assert set_(estimator, "gap_limit", 2) == ""
    assert repr(estimator.get_parameter("gap_limit").value) == repr(2.0)
    assert "0.002" in set_(estimator, "gap_limit", 100)
    assert "a number" in set_(estimator, "gap_limit", "fast")
    assert estimator.value("gap_limit") == 2.0
    for law in ("nonsense", "", "AUTO"):
        reason = set_(node, "friction", law)
        assert all(known in reason for known in ("auto", *LAWS))
    assert set_(node, "friction", "stribeck") == ""
    for wrong in ({"gap_limit": "fast"}, {"publish_rate": 501}, {"learn": 3}, {"mqtt": [1]}):
        with pytest.raises(UrEnergyError, match=f"estimator: {next(iter(wrong))} must be"):
            cell.make_node(EstimatorNode, **wrong)


def test_a_refused_parameter_is_an_error_line_of_the_node(cell: Cell) -> None:
    command = [*node_command("estimator", {}), "-p", "publish_rate:=900"]
    output, _ = (child := cell.run_command(command)).communicate(timeout=PATIENCE)
    assert child.returncode == 1
    (line,) = output.splitlines()
    assert re.fullmatch(r"\[ERROR\] \[[0-9.]+\] \[estimator\]: publish_rate must be .*900", line)
