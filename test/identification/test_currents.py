# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Torque constants and friction from currents, of one and of several sessions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from test.identification.conftest import filtered_motions, made_up_recording
from test.identification.exact_arm import TORQUE_CONSTANT, ExactArm, write_bag
from ur_energy_model.identification.arm_fit import IdentificationOptions
from ur_energy_model.identification.assembly import spread_between_sessions
from ur_energy_model.identification.evaluation import evaluate
from ur_energy_model.identification.filtered_motion import ParallelFilter
from ur_energy_model.identification.friction_data import USUAL
from ur_energy_model.identification.friction_fit import CurrentRegression
from ur_energy_model.identification.pipeline import identify
from ur_energy_model.identification.torque_constants import JointEstimate
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.friction import LAWS, FrictionLaw
from ur_energy_model.model.friction_terms import Term
from ur_energy_model.model.model_file import load_model, save_model
from ur_energy_model.model.robots import load_robot
from ur_energy_model.model.sessions import FRICTION_SPREAD, STANDBY_SPREAD
from ur_energy_model.telemetry.samples import Telemetry


def fitted(
    arm: ExactArm, *recordings: Telemetry, friction: str = "auto"
) -> list[JointEstimate]:
    fit = CurrentRegression(arm.robot, friction, warm=len(recordings) > 1)
    fit.start_session()
    narrow = ParallelFilter(3.0)
    dynamics = ArmDynamics(arm.robot, arm.setup)
    for recording in recordings:
        for motion in filtered_motions([recording], 6, 3.0, 0.01):
            link = dynamics.inverse_dynamics(motion.q, motion.qd, motion.qdd)
            fit.accumulate(
                motion, link + arm.robot.reflected_inertia * motion.qdd, narrow
            )
    return list(fit.fit())


LAW_PARAMETERS = {
    "power_flow": {"viscous": 4e-4, "coulomb_direct": 0.07, "coulomb_reverse": 0.03},
    "load_dependent": {"viscous": 4e-4, "coulomb": 0.04, "load": 0.12},
    USUAL: {"viscous": 2e-4, "coulomb": 0.04, "rise": 0.03, "load": 0.06},
    "temperature_linear": {
        "viscous": 5e-4,
        "coulomb": 0.05,
        "viscous_temperature": -1.2e-5,
    },
}


@pytest.mark.parametrize("law", LAW_PARAMETERS)
def test_auto_finds_the_friction_that_made_the_data(law: str) -> None:
    values = LAW_PARAMETERS[law]
    arm = ExactArm(law=LAWS[law], parameters=values, current_noise=0.01)
    warmths = (24.0, 35.0) if "temperature" in law else (30.0,)
    seconds = 60.0 / len(warmths)
    made = [
        arm.record(seconds, seed=11 + int(warm), temperature=warm) for warm in warmths
    ]
    loaded = fitted(arm, *made)[2]  # gravity pulls both ways: every term is excited there
    contained = set(values) <= set(LAWS[USUAL].parameters)
    assert loaded.friction.law.name == (USUAL if contained else law)
    assert loaded.friction.temperature_range == (warmths[0], warmths[-1])
    assert loaded.torque_constant == pytest.approx(TORQUE_CONSTANT[2], rel=0.01)
    for name, value in values.items():
        assert loaded.friction.parameters[name] == pytest.approx(value, rel=0.1)
    assert loaded.comparison[loaded.friction.law.name] < 1.01 * min(
        loaded.comparison.values()
    )


def test_a_law_with_a_term_of_its_own_is_fitted(monkeypatch: pytest.MonkeyPatch) -> None:
    arctan = Term("N m", lambda point, shape: np.arctan(point.speed / shape["smoothing"]))
    terms = {"viscous": LAWS["coulomb_viscous"].terms["viscous"], "arctan": arctan}
    monkeypatch.setitem(LAWS, "own", FrictionLaw("own", "", terms))
    values = {"viscous": 4e-4, "arctan": 0.03}
    arm = ExactArm(law=LAWS["own"], parameters=values)
    loaded = fitted(arm, arm.record(60.0), friction="own")[1]
    assert loaded.friction.parameters == pytest.approx(values, rel=0.05)


@pytest.mark.truth
def test_intervals_cover_the_truth_under_correlated_noise() -> None:
    """Torque constant and friction of 24 arms: 95 % intervals hold the truth in 90 to 99 %."""
    arm = ExactArm(current_noise=0.05, correlation=0.9)
    hits = []
    for seed in range(24):
        joints = fitted(arm, arm.record(40.0, seed=100 + seed), friction="power_flow")
        for j, joint in enumerate(joints):
            error = joint.regressed_constant - TORQUE_CONSTANT[j]
            hits.append(abs(error) < 1.96 * joint.regressed_std)
            for name, value in arm.parameters.items():
                wrong = joint.friction.parameters[name] - value * arm.size[j]
                hits.append(abs(wrong) < 1.96 * joint.friction_std[name])
    assert 0.90 <= np.mean(hits) <= 0.995


SCALES = (0.85, 1.0, 1.15)
STANDBY = (24.0, 26.0, 30.0)
OPTIONS = IdentificationOptions(friction="coulomb_viscous")
PARAMETERS = {"viscous": 4e-4, "coulomb": 0.05}


def arm(scale: float, standby: float) -> ExactArm:
    parameters = {name: scale * value for name, value in PARAMETERS.items()}
    return ExactArm(law=LAWS["coulomb_viscous"], parameters=parameters, standby=standby)


@pytest.fixture(scope="module")
def bags(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("sessions")
    arms = [arm(*each) for each in zip(SCALES, STANDBY, strict=True)]
    return [
        each.bag(folder, f"day{k}", seed=40 + k, seconds=25)
        for k, each in enumerate(arms)
    ]


@pytest.fixture(scope="module")
def model(bags: list[Path]) -> EnergyModel:
    return identify(bags[1:2], "ur5e", OPTIONS).model


@pytest.mark.truth
def test_every_session_has_friction_and_standby_of_its_own(bags: list[Path]) -> None:
    together = identify(bags, "ur5e", OPTIONS)
    truth = ExactArm()
    for j, joint in enumerate(together.joints):
        np.testing.assert_allclose(joint.session_scales, SCALES, rtol=0.03)
        constant = truth.torque_constant[j]  # a wrist without weight hardly shows its own
        within = max(0.03 * constant, 2 * joint.torque_constant_std)
        assert joint.torque_constant == pytest.approx(constant, abs=within)
        coulomb = joint.friction.parameters["coulomb"]
        assert coulomb == pytest.approx(PARAMETERS["coulomb"] * truth.size[j], rel=0.05)
    assert together.model.bus.standby == pytest.approx(np.mean(STANDBY), abs=0.6)
    assert together.model.bus.residual == pytest.approx(truth.power_noise, rel=0.1)
    spread = together.model.sessions
    standby = spread_between_sessions(np.array(STANDBY), STANDBY_SPREAD)
    assert spread.count == 3
    assert np.all(
        (spread.friction > FRICTION_SPREAD) & (spread.friction < np.ptp(SCALES) / 2)
    )
    assert spread.standby == pytest.approx(standby, rel=0.1)


@pytest.mark.truth
def test_the_friction_of_a_model_is_that_of_the_session_after_the_latest(
    tmp_path: Path,
) -> None:
    """Friction falls from day to day, by the host's clock, in which order the bags ever come."""
    day = 86400
    bags = []
    for number, scale in enumerate((1.3, 1.15, 1.0, 0.85)):
        made = arm(scale, 26.0).record(12.0, seed=70 + number)
        stamp = np.rint(1e9 * (1.8e9 + day * number + made.time)).astype(np.int64)
        bags.append(write_bag(tmp_path / f"day{number}", replace(made, stamp=stamp)))
    worn = identify(bags, "ur5e", OPTIONS).model
    turned = identify(bags[::-1], "ur5e", OPTIONS).model
    truth = ExactArm()
    for j, joint in enumerate(worn.joints):
        coulomb = joint.friction.parameters["coulomb"] / (
            PARAMETERS["coulomb"] * truth.size[j]
        )
        assert 0.6 < coulomb < 0.95
        assert turned.joints[j].friction.parameters == pytest.approx(
            joint.friction.parameters
        )
        assert 0.08 < worn.sessions.friction_of(6)[j] < 0.3


def test_few_sessions_count_beside_the_prior(model: EnergyModel) -> None:
    """The prior, in the limit the scatter of the sessions, and between them in between."""
    assert (model.sessions.count, model.sessions.standby) == (0, STANDBY_SPREAD)
    assert spread_between_sessions(np.array([1.0]), 0.08) == pytest.approx(0.08)
    many = 1 + 0.02 * np.random.default_rng(0).standard_normal(400)
    assert spread_between_sessions(many, 0.08) == pytest.approx(0.02, rel=0.15)
    assert 0.02 < spread_between_sessions(np.array([0.98, 1.02]), 0.08) < 0.08
    # A pair that scatters as the prior has it leaves its variance, and halves that of the
    # mean.
    pair = np.array([1.0, 1.0 + 0.08])
    assert spread_between_sessions(pair, 0.08) == pytest.approx(0.08 * np.sqrt(1.5 / 2))


def test_a_recording_of_another_day_anchors_its_session(
    model: EnergyModel, bags: list[Path], tmp_path: Path
) -> None:
    """It has more friction and standby than the model; standby comes from standstill."""
    found = [
        evaluate(model, bags[2], anchor=anchor).as_json() for anchor in (True, False)
    ]
    session = found[0]["session"]
    assert [each["session"]["anchored"] for each in found] == [True, False]
    assert session["moving_seconds"] > 10.0
    assert np.median(session["friction_scale"]) == pytest.approx(1.13, abs=0.03)
    within = [
        entry["coverage"] for each in found for entry in each["current_interval_all"]
    ]
    assert np.mean(within) > 0.9
    error = [[entry["rms"] for entry in each["current"]] for each in found]
    assert (np.array(error[0]) < 0.6 * np.array(error[1])).all()
    bag = arm(1.0, 31.0).bag(tmp_path, seed=50, seconds=12, still=tuple(range(6)))
    session = evaluate(model, bag).as_json()["session"]
    assert session["standby"] == pytest.approx(31.0, abs=0.5)
    assert session["standby_std"] < 0.3 * STANDBY_SPREAD


@pytest.mark.truth
def test_an_inertia_other_than_the_controllers_is_found_where_currents_show_it(
    tmp_path: Path,
) -> None:
    robot = load_robot("ur5e")
    nominal = robot.reflected_inertia
    own = nominal * np.array([1.0, 1.0, 1.0, 0.75, 1.0, 1.0])
    made: dict[str, Any] = {"coulomb": 1.0, "viscous": 1.5, "noise": 0.1, "seed": 5}
    recorded = made_up_recording(robot, reflected_inertia=own, seconds=60.0, **made)
    moment = made_up_recording(robot, seconds=60.0, **made)["target_moment"]
    columns = {**recorded.columns, "target_moment": moment}
    bag = write_bag(tmp_path / "bag", replace(recorded, columns=columns))
    model = identify([bag], "ur5e").model
    save_model(model, tmp_path / "model.yaml")
    for j, joint in enumerate(load_model(tmp_path / "model.yaml").joints):
        assert joint.reflected_inertia == pytest.approx(nominal[j], rel=0.02)
        if j == 3:
            assert joint.actual_inertia == pytest.approx(own[j], rel=0.05)
            assert abs(own[j] - joint.inertia) < 2.0 * joint.std["actual_inertia"]
        else:
            assert joint.inertia == pytest.approx(nominal[j], rel=0.06)
