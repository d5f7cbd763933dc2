# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The parameter `friction_laws`: files that only the start of a node runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from rclpy.parameter import Parameter

from test.model.test_friction_files import LAW, law_file, lugre, with_law
from test.nodes.conftest import LEARNING_OFF, Cell
from ur_energy_model.errors import UrEnergyError
from ur_energy_model.model.friction import LAWS
from ur_energy_model.model.model_file import save_model
from ur_energy_model.nodes.estimator import EstimatorNode
from ur_energy_model.nodes.identification import IdentificationNode
from ur_energy_model.nodes.process import begin

pytestmark = pytest.mark.usefixtures("package_laws")


def test_a_node_runs_files_of_friction_laws_at_its_start_only(
    cell: Cell, tmp_path: Path
) -> None:
    files = [str(law_file(tmp_path))]
    node = cell.make_node(IdentificationNode, friction_laws=files, friction="lugre")
    assert node.parameters.friction == "lugre"
    other = law_file(tmp_path, LAW.replace('"lugre"', '"other"'), "other.py")
    change = Parameter("friction_laws", value=[str(other)])
    result = node.set_parameters([change])[0]
    assert not result.successful
    assert "start of the node" in result.reason
    assert "other" not in LAWS


def test_a_wrong_file_names_the_parameter(cell: Cell, tmp_path: Path) -> None:
    missing = str(tmp_path / "laws.py")
    with pytest.raises(UrEnergyError, match=r"identification: friction_laws: .*laws\.py"):
        cell.make_node(IdentificationNode, friction_laws=[missing])
    with pytest.raises(UrEnergyError, match="friction must be one of auto"):
        cell.make_node(IdentificationNode, friction="lugre")


def test_an_estimator_without_the_law_of_its_model_names_the_parameter(
    cell: Cell, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    model = tmp_path / "model.yaml"
    save_model(with_law(lugre(tmp_path)), model)
    del LAWS["lugre"]
    given = {"robot_ip": "127.0.0.1", "model_file": str(model), **LEARNING_OFF}
    assert not begin([cell.make_node(EstimatorNode, **given)])
    assert "give its file with friction_laws laws.py" in capfd.readouterr().err
    files = [str(tmp_path / "laws.py")]
    assert begin([cell.make_node(EstimatorNode, friction_laws=files, **given)])
