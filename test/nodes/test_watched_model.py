"""Model files that change, and models whose robot file has been moved."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from test.energy.known_arm import known_model
from ur_energy_model.errors import WrongRobotError
from ur_energy_model.files import config_file
from ur_energy_model.model.model_file import save_model
from ur_energy_model.nodes.estimated_arm import ArmModel
from ur_energy_model.nodes.parameters import EstimatorParameters


def watched_model(path: Path, robot: str = "", period: float = 1e-9) -> ArmModel:
    parameters = EstimatorParameters(learn="off", model_file=path, reload_period=period)
    return ArmModel(parameters, robot)


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A robot file of the user: a UR5e with another name."""
    path = tmp_path / "arms" / "mine.yaml"
    path.parent.mkdir()
    path.write_text(
        config_file("robots", "ur5e.yaml").read_text().replace("name: ur5e", "name: mine")
    )
    return path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A model of a UR5e."""
    save_model(known_model(), tmp_path / "model.yaml")
    return tmp_path / "model.yaml"


def test_the_robot_file_of_a_model_may_be_moved(own: Path, path: Path) -> None:
    save_model(replace(known_model(), robot=str(own)), path)
    copy = Path(shutil.copy(own, path.parent / "copy.yaml"))
    assert [watched_model(path, each).robot.name for each in ("", str(copy))] == ["mine"] * 2
    own.unlink()
    assert watched_model(path, str(copy)).robot.name == "mine"


def test_a_replaced_file_is_read_once_and_one_of_another_arm_is_reported_and_not_used(
    own: Path, path: Path
) -> None:
    with pytest.raises(WrongRobotError, match="is a model of ur5e, not of mine"):
        watched_model(path, str(own))
    never, watched = watched_model(path, period=0.0), watched_model(path)
    assert watched.load_if_changed() is None
    save_model(known_model(standby=31.0), path)
    model = watched.load_if_changed()
    assert model is not None
    assert model.bus.standby == 31.0
    assert watched.load_if_changed() is None
    assert never.load_if_changed() is None
    save_model(replace(known_model(), robot=str(own)), path)
    assert watched.load_if_changed() is None
    assert "not of ur5e" in str(watched.problem)
    path.unlink()
    assert watched.load_if_changed() is None
    save_model(known_model(), path)
    assert watched.load_if_changed() is not None
    assert watched.problem is None
