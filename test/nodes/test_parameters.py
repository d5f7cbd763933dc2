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
from ur_energy_model.nodes.parameters import EstimatorParameters


@pytest.mark.parametrize("name", files())
def test_generated_files_are_up_to_date(name: str) -> None:
    path = share_directory() / name
    assert path.read_text() == files()[name], "run python -m tools.generated_files"


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


def test_a_node_takes_whole_numbers_and_refuses_other_values_in_every_state(cell: Cell) -> None:
    node = cell.make_node(IdentificationNode)
    estimator = cell.make_node(EstimatorNode, publish_rate=20, gap_limit=1)
    for name, value in (("publish_rate", 20.0), ("gap_limit", 1.0)):
        assert repr(getattr(estimator.parameters, name)) == repr(
            estimator.get_parameter(name).value
        )
        assert repr(getattr(estimator.parameters, name)) == repr(value)

    def set_(node: ManagedNode, name: str, value: object) -> str:
        return str(node.set_parameters([RosParameter(name, value=value)])[0].reason)

    assert set_(estimator, "gap_limit", 2) == ""
    assert repr(estimator.get_parameter("gap_limit").value) == repr(2.0)
    assert "0.002" in set_(estimator, "gap_limit", 100)
    assert "a number" in set_(estimator, "gap_limit", "fast")
    assert isinstance(estimator.parameters, EstimatorParameters)
    assert estimator.parameters.gap_limit == 2.0
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
