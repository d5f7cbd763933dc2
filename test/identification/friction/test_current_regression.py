"""Torque constants and friction from current: choice of law, and intervals that hold."""

from __future__ import annotations

import pytest

from test.identification.exact_arm import TORQUE_CONSTANT, ExactArm
from test.identification.filtering import filtered_motions
from ur_energy_model.errors import IdentificationError, InputError
from ur_energy_model.identification.filtered_motion import ParallelFilter
from ur_energy_model.identification.friction_data import candidates, nominal_friction
from ur_energy_model.identification.friction_fit import CurrentRegression
from ur_energy_model.identification.torque_constants import JointEstimate, with_shared_sizes
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.friction import LAWS
from ur_energy_model.telemetry.samples import Telemetry


def fitted(recordings: list[Telemetry], arm: ExactArm, friction: str = "auto") -> CurrentRegression:
    warm = len({float(r["joint_temperatures"][0, 0]) for r in recordings}) > 1
    fit = CurrentRegression(arm.robot, friction, warm=warm)
    narrow, dynamics = ParallelFilter(3.0), ArmDynamics(arm.robot, arm.setup)
    for recording in recordings:
        for motion in filtered_motions([recording], 6, 3.0, 0.01):
            link = dynamics.inverse_dynamics(motion.q, motion.qd, motion.qdd)
            fit.accumulate(motion, link + arm.robot.reflected_inertia * motion.qdd, narrow)
    return fit


LAW_PARAMETERS = {
    "coulomb_viscous": {"viscous": 4e-4, "coulomb": 0.05},
    "power_flow": {"viscous": 4e-4, "coulomb_direct": 0.07, "coulomb_reverse": 0.03},
    "load_dependent": {"viscous": 4e-4, "coulomb": 0.04, "load": 0.12},
    "power": {"coulomb": 0.03, "power": 0.08},
}


@pytest.mark.parametrize("law", LAW_PARAMETERS)
def test_auto_finds_the_law_that_made_the_data(law: str) -> None:
    arm = ExactArm(law=LAWS[law], parameters=LAW_PARAMETERS[law], current_noise=0.01)
    joints = fitted([arm.record(60.0, seed=11)], arm).fit()
    loaded = joints[1]  # carries gravity: every term of every law is excited there
    assert loaded.friction.law.name == law
    assert loaded.torque_constant == pytest.approx(TORQUE_CONSTANT[1], rel=0.01)
    for name, value in LAW_PARAMETERS[law].items():
        assert loaded.friction.parameters[name] == pytest.approx(value, rel=0.05)
    assert loaded.comparison[law] == min(loaded.comparison.values()) or "worth" in loaded.reason


def test_parsimony_wins_ties() -> None:
    arm = ExactArm(law=LAWS["coulomb_viscous"], parameters=LAW_PARAMETERS["coulomb_viscous"])
    joint = fitted([arm.record(seed=12)], arm).fit()[2]
    assert joint.friction.law.name == "coulomb_viscous"
    assert "A" in joint.reason


def test_cold_and_warm_recordings_give_friction_over_temperature() -> None:
    law, values = (
        LAWS["temperature_linear"],
        {"viscous": 5e-4, "coulomb": 0.05, "viscous_temperature": -1.2e-5},
    )
    arm = ExactArm(law=law, parameters=values)
    recordings = [arm.record(seed=13, temperature=24.0), arm.record(seed=14, temperature=35.0)]
    joint = fitted(recordings, arm).fit()[1]
    assert joint.friction.law.name == "temperature_linear"
    assert joint.friction.parameters["viscous_temperature"] == pytest.approx(-1.2e-5, rel=0.1)
    assert joint.friction.temperature_range == (24.0, 35.0)


def test_intervals_cover_the_truth_under_correlated_noise() -> None:
    """Torque constant and friction of 24 arms: 95 % intervals hold the truth in 90 to 99 %."""
    arm = ExactArm(current_noise=0.05, correlation=0.9)
    hits, count = 0, 0
    for seed in range(24):
        joints = fitted([arm.record(40.0, seed=100 + seed)], arm, "power_flow").fit()
        for j, joint in enumerate(joints):
            error = joint.regressed_constant - TORQUE_CONSTANT[j]
            hits += abs(error) < 1.96 * joint.regressed_std
            for name, value in arm.parameters.items():
                wrong = joint.friction.parameters[name] - value * arm.size[j]
                hits += abs(wrong) < 1.96 * joint.friction_std[name]
            count += 1 + len(arm.parameters)
    assert 0.90 <= hits / count <= 0.995


def test_swapped_torque_is_refused() -> None:
    arm = ExactArm()
    recording = arm.record(seed=17)
    recording.columns["actual_current"][:] *= -1
    with pytest.raises(IdentificationError, match="current falls as torque rises"):
        fitted([recording], arm, "coulomb_viscous").fit()


def test_joints_of_one_size_inform_each_other() -> None:
    arm = ExactArm()
    joints = fitted([arm.record(seed=18, still=(5,))], arm, "power_flow").fit()
    shared = with_shared_sizes(joints, arm.robot)
    idle = shared[5]
    assert idle.source["torque_constant"] == "joints of the same size"
    assert abs(idle.torque_constant - 0.0795) < abs(joints[5].torque_constant - 0.0795)
    assert idle.torque_constant_std > 0.03 * idle.torque_constant
    well = shared[1]
    assert well.torque_constant == pytest.approx(joints[1].torque_constant, rel=0.005)


def test_moving_the_torque_constant_keeps_the_current() -> None:
    """What a better torque constant changes, friction takes back as far as the data allow."""
    arm = ExactArm()
    joint: JointEstimate = fitted([arm.record(seed=19)], arm, "power_flow").fit()[1]
    moved = with_shared_sizes([joint] * 6, arm.robot)[1]
    scale = joint.torque_constant / moved.torque_constant
    for name, value in joint.friction.parameters.items():
        assert moved.friction.parameters[name] / moved.torque_constant == pytest.approx(
            value / joint.torque_constant * scale, rel=0.1
        )


def test_unknown_law_names_the_known_ones() -> None:
    with pytest.raises(InputError, match="power_flow"):
        candidates("magic", warm=False)


def test_typical_friction_is_that_of_calibrated_joints() -> None:
    robot = ExactArm().robot
    mean, std = nominal_friction(robot, 0)
    assert mean["coulomb"] * 101 == pytest.approx(5.8, rel=0.2)  # N m, factory calibration
    assert (mean["coulomb"] + mean["viscous"] * 101 * 3.2) * 101 == pytest.approx(17.9, rel=0.2)
    assert std["coulomb"] >= 0.5 * mean["coulomb"]
