"""The parameters of the nodes, and the files that are generated from them."""

from __future__ import annotations

import pytest

from tools.generated_files import files
from ur_energy_model.nodes.parameter import Parameter, Value
from ur_energy_model.nodes.parameters import NODES, ignored
from ur_energy_model.resources import share_directory


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
    ],
)
def test_text_is_parsed_as_the_type_of_the_default(default: Value, text: str, value: Value) -> None:
    parsed = Parameter("any", default, "what").parse(text)
    assert parsed == value
    assert type(parsed) is type(value)


def test_text_that_is_not_a_number_is_refused() -> None:
    with pytest.raises(ValueError, match="speed:=fast is not a number"):
        Parameter("speed", 1.0, "how fast").parse("fast")
    with pytest.raises(ValueError, match="speed must be between 0 and 2"):
        Parameter("speed", 1.0, "how fast", minimum=0.0, maximum=2.0).parse("3")


def test_parameters_without_effect_are_named() -> None:
    values = {entry.name: entry.default for entry in NODES["estimator"]}
    assert ignored("estimator", values) == []
    values |= {"bag": "monday", "source": "joint_states"}
    (line,) = ignored("estimator", values)
    assert line == "bag is ignored: it needs source:=bag, and source is joint_states"
    assert ignored("estimator", values | {"source": "bag"}) == []
