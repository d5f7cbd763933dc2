"""Sessions of simulated arms: what varies, what stays, and the truth file."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from ur_energy_model.errors import InputError
from ur_energy_model.model.robots import load_robot
from ur_energy_model.simulation.arm_options import ArmOptions, SimulatedSession, draw_session
from ur_energy_model.simulation.parameters import constants, draw_parameters
from ur_energy_model.simulation.simulated_arm import SimulatedArm, record_arm
from ur_energy_model.simulation.supply import ThermalState
from ur_energy_model.trajectory.motions import Hold
from ur_energy_model.trajectory.named_motions import named_motion

ROBOT = load_robot("ur5e")
HOME = named_motion("hold", ROBOT).sample(np.zeros(1))[0][0]
OF_THE_SESSION = {
    "friction", "flex_spline_coulomb", "flex_spline_viscous", "load_direct", "load_reverse",
    "standby_power", "standby_heat",
}  # fmt: skip


def some_session(**changes: object) -> SimulatedSession:
    values: dict[str, Any] = {
        "number": 1,
        "standby_offset": 0.0,
        "friction_scale": np.ones(6),
        "ambient_offset": 0.0,
        "warmth": 1.0,
    }
    return SimulatedSession(**(values | changes))


def test_session_0_is_the_arm_as_drawn():
    arm = draw_parameters(ROBOT, 3)
    assert draw_session(3, 0, 6).applied_to(arm) is arm
    plain, zero = (
        SimulatedArm(ROBOT, motion=Hold(HOME), seed=3, options=options)
        for options in (ArmOptions(), ArmOptions(session=0))
    )
    first, second = record_arm(plain, 0.1), record_arm(zero, 0.1)
    for name, values in first.columns.items():
        assert np.array_equal(values, second[name]), name
    assert first.info == second.info


def test_repeated_draws_of_a_session_are_equal_and_sessions_differ():
    again, first, second, other = (
        draw_session(seed, number, 6) for seed, number in ((3, 1), (3, 1), (3, 2), (4, 1))
    )
    assert again.standby_offset == first.standby_offset
    assert np.array_equal(again.friction_scale, first.friction_scale)
    for unlike in (second, other):
        assert unlike.standby_offset != first.standby_offset
        assert (unlike.friction_scale != first.friction_scale).all()
        assert unlike.warmth != first.warmth
        assert unlike.ambient_offset != first.ambient_offset


def test_a_session_changes_standby_and_friction_and_nothing_else():
    arm = draw_parameters(ROBOT, 3)
    now = draw_session(3, 2, 6).applied_to(arm)
    for name, value in arm.as_dict().items():
        if name not in OF_THE_SESSION:
            assert np.array_equal(np.asarray(value), np.asarray(getattr(now, name))), name
    assert now.standby_power == arm.standby_power + draw_session(3, 2, 6).standby_offset
    share = constants()["thermal"]["standby_share"]
    assert now.standby_heat.sum() == pytest.approx(share * now.standby_power)


def test_friction_is_scaled_at_every_speed():
    arm = draw_parameters(ROBOT, 3)
    scale = np.linspace(0.7, 1.2, 6)
    now = some_session(friction_scale=scale).applied_to(arm)
    for speed in (-2.0, -0.001, 0.01, 0.5, 3.0):
        qd = np.full(6, speed)
        assert now.friction.torque(qd, 1.3) == pytest.approx(scale * arm.friction.torque(qd, 1.3))
    assert now.load_reverse == pytest.approx(scale * arm.load_reverse)


def test_spreads_are_those_stated():
    table = constants()["session"]
    sessions = [draw_session(seed, 1, 6) for seed in range(2000)]
    standby = np.array([session.standby_offset for session in sessions])
    assert standby.std() == pytest.approx(table["standby"], rel=0.1)
    lost = np.mean(table["running_in"]) * (1 - np.exp(-1 / table["running_in_sessions"]))
    scale = np.array([session.friction_scale for session in sessions])
    assert scale.mean() == pytest.approx(1 - lost, abs=0.01)
    # The common part is the correlation between two joints of one session.
    common = np.cov(scale[:, 0], scale[:, 1])
    assert np.sqrt(common[0, 1]) == pytest.approx(table["friction_common"], rel=0.1)
    ambient = np.array([session.ambient_offset for session in sessions])
    assert np.abs(ambient).max() <= table["ambient"]
    warmth = np.array([session.warmth for session in sessions])
    low, high = table["warmth"]
    assert ((warmth >= low) & (warmth <= high)).all()


def test_friction_falls_over_the_sessions_towards_a_floor():
    drawn = [
        [draw_session(seed, number, 6).friction_scale for seed in range(200)]
        for number in (1, 10, 1000, 1001)
    ]
    first, later, last, beyond = np.mean(drawn, axis=(1, 2))
    assert first > later > last
    assert beyond == pytest.approx(last, abs=0.02)
    assert last == pytest.approx(1 - np.mean(constants()["session"]["running_in"]), abs=0.02)


def test_warmth_sets_the_joints_between_ambient_and_rest():
    arm = draw_parameters(ROBOT, 3)
    cold, rest, warm = (ThermalState(arm, 22.0, warmth).temperature for warmth in (0.0, 1.0, 2.0))
    assert cold == pytest.approx(22.0)
    assert warm - rest == pytest.approx(rest - cold)
    assert rest - cold == pytest.approx(arm.thermal_resistance * arm.standby_heat)


def test_recording_and_truth_contain_the_session(tmp_path):
    path = tmp_path / "truth.json"
    base = SimulatedArm(ROBOT, motion=Hold(HOME), seed=3)
    arm = SimulatedArm(ROBOT, motion=Hold(HOME), seed=3, truth=path, options=ArmOptions(session=2))
    fields = ("actual_robot_voltage", "actual_robot_current")
    records = [record_arm(each, 2.0, fields) for each in (base, arm)]
    power = [np.mean(r[fields[0]] * r[fields[1]]) for r in records]
    arm.close()
    truth = json.loads(path.read_text())
    drawn = draw_session(3, 2, 6)
    assert truth["session"]["number"] == 2
    assert truth["session"]["friction_scale"] == pytest.approx(drawn.friction_scale)
    assert truth["standby_power"] == arm.parameters.standby_power
    assert truth["parameters"]["torque_constant"] == pytest.approx(base.parameters.torque_constant)
    assert truth["ambient"] == pytest.approx(25.0 + drawn.ambient_offset)
    # 1000 samples of 1.5 W noise leave 0.05 W; holding currents differ by what friction holds.
    assert power[1] - power[0] == pytest.approx(drawn.standby_offset, abs=0.4)


def test_sessions_have_independent_noise():
    arms = [
        SimulatedArm(ROBOT, motion=Hold(HOME), seed=3, options=ArmOptions(session=number))
        for number in (1, 2)
    ]
    noise = [
        np.diff(record_arm(arm, 0.2, ("actual_current",))["actual_current"], axis=0) for arm in arms
    ]
    assert abs(np.corrcoef(noise[0].ravel(), noise[1].ravel())[0, 1]) < 0.3


def test_a_negative_session_is_refused():
    with pytest.raises(InputError, match="session"):
        draw_session(0, -1, 6)
