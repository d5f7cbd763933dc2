"""Conversions of times, joint states and trajectories."""

from __future__ import annotations

import numpy as np
import pytest
from builtin_interfaces.msg import Duration, Time
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from ur_energy_model.errors import InputError
from ur_energy_model.nodes import ros as convert

NAMES = ("a", "b")


def test_times_keep_their_nanoseconds() -> None:
    stamp = convert.time_message(1_700_000_000_123_456_789)
    assert (stamp.sec, stamp.nanosec) == (1_700_000_000, 123_456_789)
    assert convert.seconds_of(Duration(sec=2, nanosec=500_000_000)) == 2.5


@pytest.mark.parametrize("names", [("a",), ("shoulder_pan_joint", "wrist", "total")])
def test_serialized_messages_are_the_messages(names: tuple[str, ...]) -> None:
    write = convert.SerializedJointStates(names)
    for turn in range(3):
        stamp, values = (
            Time(sec=turn, nanosec=7),
            np.random.default_rng(turn).random((3, len(names))),
        )
        read = deserialize_message(write(stamp, values), JointState)
        assert read == convert.joint_state(names, stamp, *values)
    assert deserialize_message(convert.serialized_number(-2.5), Float64) == Float64(data=-2.5)


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
