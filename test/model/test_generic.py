"""Generic models: what they contain, and who has one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from test.model.made_up import made_up_model
from tools.generic_models import ARMS, make
from ur_energy_model.codec import plain
from ur_energy_model.errors import ModelFileError, RobotFileError
from ur_energy_model.model.document import document
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.generic import (
    GENERIC,
    generic_model,
    generic_models,
    is_generic,
    model_entry,
    model_words,
)
from ur_energy_model.model.model_file import load_model, save_model
from ur_energy_model.model.robots import load_robot

Leaves = dict[str, object]


def leaves(content: object, place: str = "") -> Leaves:
    """Every value of nested mappings and lists, by its place."""
    if isinstance(content, dict):
        parts = content.items()
    elif isinstance(content, list | tuple):
        parts = dict(enumerate(content)).items()
    else:
        return {place: content}
    return {
        key: value for name, part in parts for key, value in leaves(part, f"{place}/{name}").items()
    }


@pytest.mark.parametrize("name", ARMS)
def test_the_file_is_what_the_command_makes(name: str) -> None:
    stored, made = (leaves(plain(document(model))) for model in (generic_model(name), make(name)))
    assert stored.keys() == made.keys()
    for place, value in made.items():
        expected = value
        if isinstance(value, float):
            expected = pytest.approx(value, rel=1e-4, abs=1e-9)
        assert stored[place] == expected, f"{place}: run python -m tools.generic_models"


def test_it_is_generic_until_it_is_identified(tmp_path: Path) -> None:
    model = generic_model("ur5e")
    assert is_generic(model)
    save_model(model, tmp_path / "copy.yaml")
    again = load_model(tmp_path / "copy.yaml")
    assert is_generic(again)
    assert document(again) == document(model)
    assert model_words(model, None) == "generic ur5e, not identified"
    assert model_words(again, tmp_path / "copy.yaml") == "generic ur5e, not identified"
    assert (model_entry(None), model_entry(Path("a.yaml"))) == (GENERIC, "a.yaml")
    identified = made_up_model()
    assert not is_generic(identified)
    assert model_words(identified, "b.yaml") == "b.yaml"


def test_other_robots_are_told_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match=r"gen3: .*ur5e.*; identify"):
        generic_model("gen3")
    own = replace(load_robot("ur5e"), source=str(tmp_path / "ur5e.yaml"))
    with pytest.raises(ModelFileError, match="identify"):
        generic_model(own)
    with pytest.raises(RobotFileError):
        generic_model("ur6")
    assert generic_model(load_robot("ur10e")).robot == "ur10e"


@pytest.mark.parametrize("name", ARMS)
def test_spreads_are_those_between_arms(name: str) -> None:
    assert name in generic_models()
    model, robot = generic_model(name), load_robot(name)
    assert model.dof == robot.dof
    assert model.sessions.standby > 3.0
    assert (model.sessions.friction_of(6) >= 0.2).all()
    published = np.isfinite(robot.torque_constant)
    for joint, known in zip(model.joints, published.tolist(), strict=True):
        relative = joint.std["torque_constant"] / joint.torque_constant
        assert 0.05 < relative < 0.1 if known else relative > 0.2
        assert joint.friction.parameters["coulomb"] > 0
        assert joint.current_covariance[0, 0] > 0
        values = np.linalg.eigvalsh(joint.current_covariance)
        assert values.min() > -1e-9 * values.max()


def _share(model: EnergyModel) -> float:
    """Half width over value of the power at the supply while the arm stands still."""
    still = np.zeros((1, model.dof))
    powers = model.joint_power(still, still)
    return float(powers.total_power_std[0] / powers.total_power[0])


def test_a_session_with_bus_power_replaces_the_spread_of_standby() -> None:
    model = generic_model("ur5e")
    session = replace(model.session, standby=25.0, standby_std=0.4, still_seconds=5.0)
    assert _share(model) > 0.1
    assert _share(model.in_session(session)) == pytest.approx(0.4 / 25.0, rel=0.01)
