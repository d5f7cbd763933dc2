# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Priors of an arm from a fleet, and one model per arm from the bags of many."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from test.plant.recorded_fleet import ARM, record
from ur_energy_model.codec import plain
from ur_energy_model.energy.meter import CONFIDENCE
from ur_energy_model.errors import InputError
from ur_energy_model.identification.arm_fit import IdentificationOptions
from ur_energy_model.identification.assembly import (
    EVIDENCE,
    ArmPrior,
    Evidence,
    changes_between,
)
from ur_energy_model.identification.pipeline import identify
from ur_energy_model.identification.reflected_inertia import expected_inertia
from ur_energy_model.identification.torque_constants import (
    FLEET,
    FLEET_POWER,
    LINK_WEIGHT_ERROR,
    TorqueConstantPrior,
)
from ur_energy_model.model.controller_constants import ControllerConstants
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.generic import generic_model
from ur_energy_model.model.model_file import save_model
from ur_energy_model.model.robots import load_robot
from ur_energy_model.plant.fleet import (
    Fleet,
    FleetArm,
    changed_constants,
    fleet_arm,
    read_fleet,
)
from ur_energy_model.plant.fleet_identification import (
    FLEET_KEY,
    FleetIdentification,
    identify_arms,
)
from ur_energy_model.plant.size_hierarchy import Prediction, SizeHierarchy
from ur_energy_model.simulation.parameters import draw_parameters
from ur_energy_model.typing import Array

NOMINAL_STD = 0.12
JOINTS = 3
UR5E = load_robot("ur5e")
UR3E = load_robot("ur3e")
N = UR5E.dof


# One constant of one joint size


def predicted(
    seed: int, arms: int, between: float, own: float, std: float = 0.02
) -> tuple[Array, Prediction]:
    """True constants of a new arm, and what the measured ones show of it."""
    random = np.random.default_rng([seed, 31])
    mean = 1.0 + 0.08 * random.standard_normal()
    true = mean + between * random.standard_normal((arms + 1, 1))
    true = true + own * random.standard_normal((arms + 1, JOINTS))
    measured = (true + std * random.standard_normal(true.shape))[:arms]
    return true[arms], predict(measured, std)


def predict(value: Array, std: float = 0.01, without: int | None = None) -> Prediction:
    stds = np.where(np.isfinite(value), std, np.nan)
    return SizeHierarchy(value, stds, NOMINAL_STD).predict(without)


@pytest.mark.truth
@pytest.mark.parametrize(
    ("arms", "between", "own"), [(2, 0.1, 0.04), (10, 0.01, 0.0), (10, 0.0, 0.07)]
)
def test_intervals_hold(arms: int, between: float, own: float) -> None:
    """95 % intervals of another arm cover it nearly always, over 60 fleets."""
    covered = []
    for seed in range(60):
        true, found = predicted(seed, arms, between, own)
        covered += (
            np.abs(found.mean - true) < 1.96 * np.sqrt(np.diag(found.covariance))
        ).tolist()
    assert np.mean(covered) > 0.9


def test_one_arm_arms_that_differ_and_one_that_is_left_out_or_not_measured() -> None:
    _, found = predicted(1, 1, 0.0, 0.0, std=0.005)
    # one arm is not trusted with all others
    assert np.sqrt(found.covariance[0, 0]) > 0.05
    _, found = predicted(3, 20, 0.08, 0.0, std=0.01)
    deviation = np.sqrt(np.diag(found.covariance))
    assert found.covariance[0, 1] / (deviation[0] * deviation[1]) > 0.8
    value = np.full((5, JOINTS), 1.05)
    value[2] = 1.07
    found = predict(value, without=2)
    np.testing.assert_allclose(found.mean, 1.05, atol=0.003)
    assert found.arms == 4
    value[2] = 0.8  # it differs: not to be taken for one of those that are alike
    found = predict(value, without=2)
    assert (found.mean - 0.8 < 2.5 * np.sqrt(np.diag(found.covariance))).all()
    value = np.full((6, JOINTS), 1.05)
    value[:, 1] = np.nan
    value[4:] = np.nan
    found = predict(value)
    nothing = predict(np.full((2, JOINTS), np.nan))
    assert (found.arms, nothing.arms) == (4, 0)
    np.testing.assert_allclose(found.mean, 1.05, atol=0.03)
    np.testing.assert_allclose(nothing.mean, 1.0)
    assert found.covariance[1, 1] > found.covariance[0, 0]
    assert np.sqrt(nothing.covariance[0, 0]) > NOMINAL_STD


# Priors of an arm


def arm(name: str, scale: float, *, links: float = 0.0, inertia: float = 1.0) -> FleetArm:
    """A UR5e whose constants are the nominal ones times a factor."""
    constant = scale * UR5E.torque_constant
    expected = expected_inertia(UR5E).value
    evidence = Evidence(
        constant,
        0.01 * constant,
        inertia * expected,
        0.01 * expected,
        np.full(N, links),
        0.002 * constant,
    )
    return FleetArm(name, UR5E, evidence)


def constants_of(prior: ArmPrior | None) -> TorqueConstantPrior:
    assert prior is not None
    assert prior.torque_constant is not None
    return prior.torque_constant


def test_arms_that_agree_make_a_narrow_prior_and_others_a_wide_one() -> None:
    fleet = Fleet([arm(f"a{k}", 1.06, inertia=0.95) for k in range(6)])
    prior = fleet.prior(UR5E)
    constants = constants_of(prior)
    np.testing.assert_allclose(constants.mean, 1.06, atol=0.01)
    assert (np.sqrt(np.diag(constants.covariance)) < 0.03).all()
    assert constants.source == (FLEET_POWER,) * N
    assert prior is not None
    assert prior.inertia is not None
    expected = expected_inertia(UR5E)
    np.testing.assert_allclose(prior.inertia.value, 0.95 * expected.value, rtol=0.01)
    assert (prior.inertia.std < 0.3 * expected.std).all()
    for entry in fleet.shared():
        assert (entry.arms, entry.spread) == (6, 0.0)
        assert entry.spread_limit < 0.03

    # joints of one size, other type
    same = np.isin(UR3E.torque_constant, UR5E.torque_constant)
    assert same.any()
    mean = constants_of(fleet.prior(UR3E)).mean
    np.testing.assert_allclose(mean[same], 1.06, atol=0.03)
    np.testing.assert_allclose(mean[~same], 1.0)

    scales = (0.88, 1.1, 0.95, 1.12, 0.9, 1.04)
    fleet = Fleet([arm(f"a{k}", scale) for k, scale in enumerate(scales)])
    assert (np.sqrt(np.diag(constants_of(fleet.prior(UR5E)).covariance)) > 0.06).all()
    fleet = Fleet([*(arm(f"a{k}", 1.06) for k in range(5)), arm("own", 1.03)])
    np.testing.assert_allclose(
        constants_of(fleet.prior(UR5E, "own")).mean, 1.06, atol=0.003
    )
    # an arm is not its own prior
    assert Fleet([arm("own", 0.9)]).prior(UR5E, "own") is None
    assert Fleet([]).prior(UR5E) is None
    linked = Fleet([arm(f"a{k}", 1.06, links=1.0) for k in range(4)])
    assert constants_of(linked.prior(UR5E)).source == (FLEET,) * N


def test_evidence_is_read_back_from_a_model() -> None:
    model = generic_model("ur5e")
    stated = arm("a", 1.02).evidence
    known = replace(model, provenance={**model.provenance, EVIDENCE: plain(stated)})
    for name, values in vars(stated).items():
        np.testing.assert_allclose(getattr(fleet_arm("a", known).evidence, name), values)
    for provenance in ({}, {EVIDENCE: {"torque_constant": [1.0]}}):
        with pytest.raises(InputError, match="identify the arm again"):
            fleet_arm("a", replace(model, provenance=provenance))


def test_constants_that_the_controller_states_are_what_an_arm_shows() -> None:
    model = generic_model("ur5e")
    shown = arm("a", 1.02).evidence
    nominal = UR5E.gear_ratio * UR5E.torque_constant
    values = np.where(np.arange(N) < 3, 0.93, np.nan) * nominal
    std = np.where(np.arange(N) < 3, 1e-3 * nominal, np.inf)
    known = replace(
        model,
        provenance={**model.provenance, EVIDENCE: plain(shown)},
        controller_constants=ControllerConstants(values, std),
    )
    evidence = fleet_arm("a", known).evidence
    ratio = evidence.torque_constant / UR5E.torque_constant
    assert ratio == pytest.approx([0.93, 0.93, 0.93, 1.02, 1.02, 1.02])
    relative = evidence.torque_constant_std / evidence.torque_constant
    assert (relative[:3] < 0.008).all()
    # Constants of an arm that was not recorded before follow those of arms that state
    # theirs.
    fleet = Fleet([replace(fleet_arm("a", known), name=f"a{k}") for k in range(4)])
    expected = constants_of(fleet.prior(UR5E)).mean
    assert expected[:3] == pytest.approx(np.full(3, 0.93), abs=0.01)


# Models of all arms: those that are alike help each other, one that is not stays as it is

# seeds of the arms that are alike, and of another one
ALIKE = 2900
OTHER = 2907


@pytest.fixture(scope="session")
def fleet(made_once: Callable[[str, Callable[[Path], object]], Path]) -> Path:
    """A folder with recordings of all arms, and their models."""

    def make(folder: Path) -> None:
        alike = [record(folder, f"a{k}", ALIKE, 1 + k) for k in range(2)]
        other = record(folder, "other", OTHER, 1)
        new = record(folder, "new", ALIKE, 9, short=True)
        bags = [*alike, folder / "missing", other, new]
        found = identify_arms(bags, IdentificationOptions())
        (folder / "found").write_bytes(pickle.dumps(found))

    return made_once("fleet", make)


@pytest.fixture
def bags(fleet: Path) -> list[Path]:
    return [fleet / name for name in ("a0", "a1", "other", "new")]


@pytest.fixture
def found(fleet: Path) -> FleetIdentification:
    identified: FleetIdentification = pickle.loads((fleet / "found").read_bytes())
    return identified


def constants(model: EnergyModel) -> Array:
    return np.array([joint.torque_constant for joint in model.joints])


def deviations(model: EnergyModel) -> Array:
    return np.array([joint.std["torque_constant"] for joint in model.joints])


@pytest.mark.truth
def test_one_model_per_arm_with_intervals_that_cover_the_truth(
    found: FleetIdentification,
) -> None:
    assert [each.name for each in found.arms] == ["a0", "a1", "new", "other"]
    (failed,) = found.failed  # the others go on
    assert failed.bag.name == "missing"
    assert "no such bag" in (failed.reason or "")
    errors = []
    for each in found.arms:
        model = each.model
        assert [bag.name for bag in each.bags] == [each.name]
        assert (model.provenance["serial"], model.provenance[FLEET_KEY]) == (
            each.name,
            {"arms": 3},
        )
        true = draw_parameters(
            UR5E, OTHER if each.name == "other" else ALIKE
        ).torque_constant
        errors += ((constants(model) - true) / deviations(model)).tolist()
    assert np.mean(np.abs(errors) < CONFIDENCE) > 0.8
    assert np.max(np.abs(errors)) < 4.0
    pickle.loads(pickle.dumps(found.arms))  # workers send them


@pytest.mark.truth
def test_sessions_of_one_arm_agree_within_what_varies_between_them(
    found: FleetIdentification,
) -> None:
    arms = {each.name: replace(each, name="one") for each in found.fleet.arms}
    other = arms.pop("other")
    scores = []
    narrow = []
    for before, after in combinations(arms.values(), 2):
        assert not changed_constants([before], after)
        change, std = changes_between(before.evidence, after.evidence)
        scores.append(change / std)
        stated = before.evidence.torque_constant_std / before.evidence.torque_constant
        narrow.append(std / np.hypot(np.sqrt(2.0) * stated, LINK_WEIGHT_ERROR))
    assert np.mean(np.abs(scores) < CONFIDENCE) >= 0.85
    assert np.nanmean(np.square(scores)) > 0.3**2
    assert np.nanmean(narrow) < 0.8
    assert changed_constants([arms["a0"]], other)
    assert not changed_constants([arms["a0"]], replace(other, name="two"))


@pytest.mark.truth
def test_a_new_arm_starts_from_arms_like_it(
    found: FleetIdentification, bags: list[Path]
) -> None:
    """Eight seconds of work alone, and with two arms of the same constants."""
    fleet = Fleet([each for each in found.fleet.arms if each.name != "other"])
    prior = fleet.prior(UR5E, "new")
    assert prior is not None
    true = draw_parameters(UR5E, ALIKE).torque_constant
    alone = identify(bags[-1:], ARM).model
    helped = identify(bags[-1:], ARM, IdentificationOptions(prior=prior)).model
    # Of joints whose own currents hardly show it (inertia takes part of the load's). The
    # error of the links' weight is common to arms of a type: none can lower another's.
    weak = [joint.source["torque_constant"] != "current" for joint in alone.joints]
    assert any(weak)
    own = [
        np.sqrt(deviations(each) ** 2 - (LINK_WEIGHT_ERROR * constants(each)) ** 2)
        for each in (alone, helped)
    ]
    assert own[1][weak].mean() < 0.8 * own[0][weak].mean()
    errors = [
        np.sqrt(np.mean((constants(each) / true - 1.0) ** 2)) for each in (alone, helped)
    ]
    assert errors[1] < errors[0]
    assert (np.abs(constants(helped) - true) < 3.0 * deviations(helped)).all()


@pytest.mark.truth
def test_models_of_a_folder_are_a_fleet(
    found: FleetIdentification, tmp_path: Path, bags: list[Path]
) -> None:
    for each in found.arms:
        save_model(each.model, tmp_path / f"{each.name}.yaml")
    (tmp_path / "damaged.yaml").write_text("kind: nothing")
    known, problems = read_fleet(tmp_path)
    assert [each.name for each in known] == ["a0", "a1", "new", "other"]
    assert len(problems) == 1
    (new,) = identify_arms([bags[-1]], IdentificationOptions(), known=known).arms
    before = found.arms[2].model
    shift = np.abs(constants(new.model) - constants(before))
    assert (shift < 0.2 * deviations(before)).all()


def test_an_arm_is_identified_with_a_folder_of_models(tmp_path: Path) -> None:
    """Models of arms that were identified before; bags that cannot be read are named."""
    models = tmp_path / "models"
    models.mkdir()
    model = generic_model("ur5e")
    for name in ("a0", "a1"):
        shown = plain(arm(name, 1.06).evidence)
        known = replace(model, provenance={**model.provenance, EVIDENCE: shown})
        save_model(known, models / f"{name}.yaml")
    (models / "damaged.yaml").write_text("kind: nothing")
    fleet, problems = read_fleet(models)
    assert [each.name for each in fleet] == ["a0", "a1"]
    assert len(problems) == 1
    bags = [tmp_path / "missing", record(tmp_path, "new", ALIKE, 9, short=True)]
    found = identify_arms(bags, IdentificationOptions(), known=fleet)
    assert [failed.bag.name for failed in found.failed] == ["missing"]
    (new,) = found.arms
    assert (new.name, new.bags) == ("new", (bags[1],))
    assert new.model.provenance["serial"] == "new"
    assert new.model.provenance[FLEET_KEY] == {"arms": 2}
