"""One model per arm; arms that are alike help each other, an arm that is not stays as it is."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

from test.plant.recorded_fleet import ARM, record
from ur_energy_model.energy.meter import CONFIDENCE
from ur_energy_model.identification.pipeline import IdentificationOptions, identify
from ur_energy_model.model.robots import load_robot
from ur_energy_model.plant.fleet import (
    FLEET_KEY,
    Fleet,
    FleetIdentification,
    identify_arms,
    read_fleet,
    save_in,
)
from ur_energy_model.simulation.parameters import draw_parameters

ALIKE, OTHER = 2900, 2907
"""Seeds of the arms that are alike, and of another one."""


@pytest.fixture(scope="module")
def bags(tmp_path_factory) -> list[Path]:
    folder = tmp_path_factory.mktemp("fleet")
    alike = [record(folder, f"a{k}", ALIKE, 1 + k) for k in range(3)]
    return [*alike, record(folder, "other", OTHER, 1), record(folder, "new", ALIKE, 9, short=True)]


@pytest.fixture(scope="module")
def found(bags) -> FleetIdentification:
    missing = bags[0].parent / "missing"
    return identify_arms([*bags[:2], missing, *bags[2:]], IdentificationOptions())


def constants(model) -> np.ndarray:
    return np.array([joint.torque_constant for joint in model.joints])


def deviations(model) -> np.ndarray:
    return np.array([joint.std["torque_constant"] for joint in model.joints])


def test_one_model_per_arm(found, bags):
    assert [each.name for each in found.arms] == ["a0", "a1", "a2", "new", "other"]
    (failed,) = found.failed  # the others go on
    assert failed.bag.name == "missing"
    assert "no such bag" in (failed.reason or "")
    for each in found.arms:
        assert [bag.name for bag in each.bags] == [each.name]
        assert each.model.provenance["serial"] == each.name
        assert each.model.provenance[FLEET_KEY] == {"arms": 4}
    pickle.loads(pickle.dumps(found.arms))  # workers send them


def test_intervals_cover_the_true_constants(found):
    errors = []
    for each in found.arms:
        true = draw_parameters(load_robot(ARM), OTHER if each.name == "other" else ALIKE)
        model = each.model
        errors += ((constants(model) - true.torque_constant) / deviations(model)).tolist()
    assert np.mean(np.abs(errors) < CONFIDENCE) > 0.8
    assert np.max(np.abs(errors)) < 4.0


def test_a_new_arm_starts_from_arms_like_it(found, bags):
    """Eight seconds of work alone, and with three arms of the same constants."""
    fleet = Fleet([each for each in found.fleet.arms if each.name != "other"])
    prior = fleet.prior(load_robot(ARM), "new")
    assert prior is not None
    true = draw_parameters(load_robot(ARM), ALIKE).torque_constant
    alone = identify(bags[-1:], ARM).model
    helped = identify(bags[-1:], ARM, IdentificationOptions(prior=prior)).model
    assert deviations(helped).mean() < 0.8 * deviations(alone).mean()
    errors = [np.sqrt(np.mean((constants(each) / true - 1.0) ** 2)) for each in (alone, helped)]
    assert errors[1] < errors[0]
    assert (np.abs(constants(helped) - true) < 3.0 * deviations(helped)).all()


def test_models_of_a_folder_are_a_fleet(found, tmp_path, bags):
    for each in found.arms:
        save_in(tmp_path, each.name, each.model)
    (tmp_path / "damaged.yaml").write_text("kind: nothing")
    known, problems = read_fleet(tmp_path)
    assert [each.name for each in known] == ["a0", "a1", "a2", "new", "other"]
    assert len(problems) == 1
    again = identify_arms([bags[-1]], IdentificationOptions(), known=known)
    (new,) = again.arms
    before = found.arms[3].model
    shift = np.abs(constants(new.model) - constants(before))
    assert (shift < 0.2 * deviations(before)).all()
