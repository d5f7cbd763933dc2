"""From the package's values to ROS messages, and back."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from builtin_interfaces.msg import Duration, Time
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from sensor_msgs.msg import JointState
from std_msgs.msg import Header
from trajectory_msgs.msg import JointTrajectory

from ur_energy_model.errors import InputError
from ur_energy_model.telemetry.samples import RecordingInfo, Telemetry
from ur_energy_model.trajectory.plan import Plan
from ur_energy_model.typing import Array

OK, WARN, ERROR, STALE = (
    DiagnosticStatus.OK,
    DiagnosticStatus.WARN,
    DiagnosticStatus.ERROR,
    DiagnosticStatus.STALE,
)


def time_message(nanoseconds: int) -> Time:
    """Time stamp from ns since the epoch."""
    seconds, rest = divmod(int(nanoseconds), 10**9)
    return Time(sec=seconds, nanosec=rest)


def seconds_of(stamp: Time | Duration) -> float:
    """Seconds of a time stamp (since the epoch) or a duration."""
    return float(stamp.sec + stamp.nanosec * 1e-9)


def joint_state(
    names: Sequence[str], stamp: Time, q: Array, qd: Array | None, effort: Array | None
) -> JointState:
    """JointState of one sample, arrays [n]; effort in the unit of the caller."""
    return JointState(
        header=Header(stamp=stamp),
        name=list(names),
        position=q.tolist(),
        velocity=[] if qd is None else qd.tolist(),
        effort=[] if effort is None else effort.tolist(),
    )


def telemetry_of(message: JointState, names: Sequence[str], effort_unit: str) -> Telemetry | None:
    """One sample from a driver's JointState, in the order of `names`.

    Args:
        message: joints in any order, others allowed beside them.
        names: joint names of the arm, prefix included.
        effort_unit: "ampere" or "newton_metre".

    Returns:
        Columns actual_q, actual_qd and, where efforts are given, actual_current or
        actual_current_as_torque; None where a joint, the velocities or the time stamp is missing.
    """
    places = {name: i for i, name in enumerate(message.name)}
    stamp = message.header.stamp
    if any(name not in places for name in names) or not (stamp.sec or stamp.nanosec):
        return None
    order = [places[name] for name in names]
    count = len(message.name)
    if len(message.position) != count or len(message.velocity) != count:
        return None
    columns = {
        "actual_q": np.array(message.position)[order][None],
        "actual_qd": np.array(message.velocity)[order][None],
    }
    effort = np.array(message.effort)[order] if len(message.effort) == count else np.array(np.nan)
    if not np.isnan(effort).any():
        field = "actual_current" if effort_unit == "ampere" else "actual_current_as_torque"
        columns[field] = effort[None]
    return Telemetry(
        np.array([seconds_of(stamp)]),
        columns,
        RecordingInfo(source="joint_states"),
        stamp=np.array([stamp.sec * 10**9 + stamp.nanosec], dtype=np.int64),
    )


def plan_of(message: JointTrajectory, names: Sequence[str], here: Array | None) -> Plan:
    """A planned trajectory in the order of `names`.

    Args:
        message: joints in any order; a first point later than 0 s is reached from `here`.
        names: joint names of the arm, prefix included.
        here: present joint positions [n], rad, None where unknown.

    Raises:
        InputError: joints are missing, or points are malformed.
    """
    places = {name: i for i, name in enumerate(message.joint_names)}
    missing = [name for name in names if name not in places]
    if missing:
        raise InputError(
            "trajectory",
            f"lacks {', '.join(missing)}",
            "name all joints of the arm",
            field="joint_names",
        )
    order = [places[name] for name in names]

    def values(field: str) -> Array | None:
        rows = [getattr(point, field) for point in message.points]
        if any(len(row) == 0 for row in rows) and field != "positions":
            return None
        if any(len(row) != len(message.joint_names) for row in rows):
            raise InputError(
                "trajectory",
                "has points without a value for each joint",
                "complete them",
                field=field,
            )
        return np.array(rows, dtype=float)[:, order]

    if not message.points:
        raise InputError("trajectory", "has no points", "give a whole trajectory")
    time = np.array([seconds_of(point.time_from_start) for point in message.points])
    q, qd, qdd = values("positions"), values("velocities"), values("accelerations")
    assert q is not None
    if time[0] > 0 and here is not None:
        rest = np.zeros((1, len(names)))
        time = np.concatenate([[0.0], time])
        q = np.concatenate([here[None], q])
        qd = None if qd is None else np.concatenate([rest, qd])
        qdd = None if qdd is None else np.concatenate([rest, qdd])
    return Plan(time, q, qd, None if qd is None else qdd)


def status(
    name: str, level: bytes, message: str, values: Mapping[str, Any], hardware: str = ""
) -> DiagnosticStatus:
    """One diagnostic status; numbers to six significant digits."""
    return DiagnosticStatus(
        level=level,
        name=name,
        message=message,
        hardware_id=hardware,
        values=[KeyValue(key=key, value=text_of(value)) for key, value in values.items()],
    )


def diagnostics(stamp: Time, statuses: Iterable[DiagnosticStatus]) -> DiagnosticArray:
    """Stamped statuses."""
    return DiagnosticArray(header=Header(stamp=stamp), status=list(statuses))


def text_of(value: Any) -> str:
    """A value as diagnostics show it."""
    if value is None:
        return "unknown"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):  # np.float64 is one too
        # Counters keep their joules: six digits would freeze a large one.
        return f"{value:.3f}" if abs(value) >= 1000 else f"{value:.6g}"
    return str(value)


class DynamicJointStates:
    """control_msgs/DynamicJointState messages, where that package is installed.

    Attributes:
        message_type: the message class, None where control_msgs is not installed.
    """

    def __init__(self) -> None:
        try:
            messages = importlib.import_module("control_msgs.msg")
        except ImportError:
            self.message_type = None
            return
        self.message_type = messages.DynamicJointState
        self._interface = messages.InterfaceValue

    def message(self, stamp: Time, values: Mapping[str, Mapping[str, float]]) -> Any:
        """Values by joint and interface name.

        Raises:
            RuntimeError: control_msgs is not installed.
        """
        if self.message_type is None:
            raise RuntimeError("control_msgs is not installed")
        return self.message_type(
            header=Header(stamp=stamp),
            joint_names=list(values),
            interface_values=[
                self._interface(
                    interface_names=list(each), values=[float(value) for value in each.values()]
                )
                for each in values.values()
            ],
        )
