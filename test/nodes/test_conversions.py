"""Between the package's values and ROS messages."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from builtin_interfaces.msg import Duration, Time
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from ur_energy_model.errors import InputError
from ur_energy_model.nodes import conversions as convert
from ur_energy_model.nodes.power_markers import PowerMarkers

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


def test_joint_states_that_do_not_do_are_left_out() -> None:
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


def test_a_trajectory_that_begins_later_begins_here() -> None:
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


def test_numbers_as_diagnostics_show_them() -> None:
    shown = [convert.text_of(v) for v in (None, True, 1234567.8912, np.float64(0.5), 7, "x")]
    assert shown == ["unknown", "yes", "1234567.891", "0.5", "7", "x"]


def test_markers_show_power_by_colour() -> None:
    places = np.array([[0.0, 0.0, 0.1], [0.0, 0.0, 0.4], [0.3, 0.0, 0.4]])
    markers = PowerMarkers("base", 3)
    markers.filled(Time(), places + 1.0, np.array([50.0, 50.0, 50.0]), 1.0)
    array = markers.filled(STAMP, places, np.array([-80.0, 0.0, 200.0]), 143.6)
    assert {(m.header.frame_id, m.header.stamp.sec) for m in array.markers} == {("base", 5)}
    assert len({(m.ns, m.id) for m in array.markers}) == 4
    back, none, much, text = array.markers
    assert back.color.b > back.color.r
    assert none.color.g == 1.0
    assert (much.color.r, much.color.g) == (1.0, 0.0)
    assert much.scale.x > none.scale.x
    assert text.text == "144 W"
    assert text.pose.position.z == pytest.approx(0.65)
    assert [much.pose.position.x, much.pose.position.z] == [0.3, 0.4]


def test_energy_joints_needs_control_msgs_only_where_it_is_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Stand-in classes with the fields of control_msgs: there is no wheel of it to test with."""
    monkeypatch.setitem(sys.modules, "control_msgs", None)
    absent = convert.DynamicJointStates()
    assert absent.message_type is None
    with pytest.raises(RuntimeError, match="control_msgs"):
        absent.message(Time(), {})

    module: Any = ModuleType("control_msgs.msg")
    module.DynamicJointState = lambda **fields: SimpleNamespace(**fields)
    module.InterfaceValue = lambda **fields: SimpleNamespace(**fields)
    monkeypatch.setitem(sys.modules, "control_msgs", ModuleType("control_msgs"))
    monkeypatch.setitem(sys.modules, "control_msgs.msg", module)
    message = convert.DynamicJointStates().message(
        Time(sec=3), {"a": {"electrical_power": 1.0}, "total": {"electrical_power": 2.0}}
    )
    assert message.header.stamp.sec == 3
    assert message.joint_names == ["a", "total"]
    assert message.interface_values[1].interface_names == ["electrical_power"]
    assert message.interface_values[1].values == [2.0]
