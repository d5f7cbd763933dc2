"""Conversions of times, joint states and trajectories."""

from __future__ import annotations

import numpy as np
import pytest
from builtin_interfaces.msg import Duration, Time
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from ur_energy_model.errors import InputError
from ur_energy_model.nodes import conversions as convert

NAMES = ("a", "b")


def test_times_keep_their_nanoseconds() -> None:
    stamp = convert.time_message(1_700_000_000_123_456_789)
    assert (stamp.sec, stamp.nanosec) == (1_700_000_000, 123_456_789)
    assert convert.seconds_of(Duration(sec=2, nanosec=500_000_000)) == 2.5


STAMP = Time(sec=5, nanosec=500_000_000)


@pytest.mark.parametrize(
    ("unit", "field"), [("ampere", "actual_current"), ("newton_metre", "actual_current_as_torque")]
)
def test_joint_states_are_sorted_into_the_arms_order(unit: str, field: str) -> None:
    message = JointState(
        name=["b", "finger", "a"],
        position=[2.0, 9.0, 1.0],
        velocity=[0.2, 0.9, 0.1],
        effort=[20.0, np.nan, 10.0],
    )
    message.header.stamp = STAMP
    telemetry = convert.telemetry_of(message, NAMES, unit)
    assert telemetry is not None
    assert telemetry.time.tolist() == [5.5]
    assert telemetry["actual_q"].tolist() == [[1.0, 2.0]]
    assert telemetry["actual_qd"].tolist() == [[0.1, 0.2]]
    assert telemetry[field].tolist() == [[10.0, 20.0]]


def test_joint_states_without_efforts_have_no_current() -> None:
    for effort in ([], [np.nan, 1.0]):
        message = JointState(name=["a", "b"], position=[0.0] * 2, velocity=[0.0] * 2, effort=effort)
        message.header.stamp = STAMP
        telemetry = convert.telemetry_of(message, NAMES, "ampere")
        assert telemetry is not None
        assert set(telemetry.columns) == {"actual_q", "actual_qd"}


def test_incomplete_joint_states_are_ignored() -> None:
    lacking = JointState(name=["a"], position=[0.0], velocity=[0.0])
    slow = JointState(name=["a", "b"], position=[0.0] * 2)
    lacking.header.stamp = slow.header.stamp = STAMP
    timeless = JointState(name=["a", "b"], position=[0.0] * 2, velocity=[0.0] * 2)
    assert convert.telemetry_of(timeless, NAMES, "ampere") is None
    assert convert.telemetry_of(lacking, NAMES, "ampere") is None
    assert convert.telemetry_of(slow, NAMES, "ampere") is None


def trajectory(*points: tuple[int, list[float], list[float]]) -> JointTrajectory:
    return JointTrajectory(
        joint_names=["b", "a"],
        points=[
            JointTrajectoryPoint(time_from_start=Duration(sec=second), positions=q, velocities=qd)
            for second, q, qd in points
        ],
    )


def test_a_trajectory_becomes_a_plan() -> None:
    message = trajectory((0, [2.0, 1.0], [0.0, 0.0]), (2, [4.0, 3.0], [0.0, 0.0]))
    plan = convert.plan_of(message, NAMES, None)
    assert plan.time.tolist() == [0.0, 2.0]
    assert plan.q.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert plan.qd is not None
    assert plan.qdd is None


def test_a_trajectory_that_begins_later_starts_at_the_present_position() -> None:
    plan = convert.plan_of(trajectory((3, [2.0, 1.0], [])), NAMES, np.array([0.5, 0.6]))
    assert plan.time.tolist() == [0.0, 3.0]
    assert plan.q.tolist() == [[0.5, 0.6], [1.0, 2.0]]
    assert plan.qd is None


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        (JointTrajectory(joint_names=["a"]), "lacks b"),
        (trajectory(), "no points"),
        (trajectory((0, [1.0], []), (1, [2.0], [])), "without a value"),
        (trajectory((0, [1.0, 1.0], [0.1]), (1, [2.0, 2.0], [0.1])), "without a value"),
    ],
)
def test_trajectories_that_cannot_be_used_are_refused(
    message: JointTrajectory, problem: str
) -> None:
    with pytest.raises(InputError, match=problem):
        convert.plan_of(message, NAMES, None)
