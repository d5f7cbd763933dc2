"""Conversions between the package's arrays and ROS messages of times, joints and trajectories."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np
from builtin_interfaces.msg import Duration, Time
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64, Header
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from ur_energy_model.errors import InputError
from ur_energy_model.trajectory.plan import Plan
from ur_energy_model.typing import Array

_NUMBER_HEAD = serialize_message(Float64())[:4]
_NUMBER = struct.Struct("<4sd" if _NUMBER_HEAD[1] else ">4sd")


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
    """JointState of one sample; q [n] in rad, qd [n] in rad/s, effort [n] in any unit."""
    return JointState(
        header=Header(stamp=stamp),
        name=list(names),
        position=q.tolist(),
        velocity=[] if qd is None else qd.tolist(),
        effort=[] if effort is None else effort.tolist(),
    )


class SerializedJointStates:
    """JointState messages with the same names, serialized: a tenth of the time of a message.

    Args:
        names: of all messages [n].
    """

    def __init__(self, names: Sequence[str]) -> None:
        n = len(names)
        empty = joint_state(names, Time(), *np.zeros((3, n)))
        self._content = bytearray(serialize_message(empty))
        order = "<" if self._content[1] else ">"
        self._stamp = struct.Struct(f"{order}iI")
        # The message ends with three arrays, each behind its length and filling to 8 bytes.
        self._values = np.ndarray(
            (3, n),
            f"{order}f8",
            self._content,
            len(self._content) - 8 * (3 * n + 2),
            (8 * (n + 1), 8),
        )

    def __call__(self, stamp: Time, values: Array) -> bytes:
        """The message with these positions, velocities and efforts [3, n]."""
        self._stamp.pack_into(self._content, 4, stamp.sec, stamp.nanosec)
        self._values[:] = values
        return bytes(self._content)


def serialized_number(value: float) -> bytes:
    """A serialized Float64 message."""
    return _NUMBER.pack(_NUMBER_HEAD, value)


def plan_of(message: JointTrajectory, names: Sequence[str], start: Array | None) -> Plan:
    """A planned trajectory in the order of `names`.

    Args:
        message: joints in any order; if its first point is later than 0 s, the motion begins at
            `start`.
        names: joint names of the arm, prefix included.
        start: present joint positions [n], rad; None if unknown.

    Raises:
        InputError: joints are missing, or points are malformed.
    """
    index = {name: i for i, name in enumerate(message.joint_names)}
    missing = [name for name in names if name not in index]
    if missing:
        raise InputError(
            "trajectory",
            f"lacks {', '.join(missing)}",
            "name all joints of the arm",
            field="joint_names",
        )
    if len(index) < len(message.joint_names):
        raise InputError(
            "trajectory", "names a joint twice", "name each joint once", field="joint_names"
        )
    if not message.points:
        raise InputError("trajectory", "has no points", "send the whole trajectory")
    order = [index[name] for name in names]
    points = message.points

    def column(field: str, rows: Sequence[Sequence[float]]) -> Array:
        if any(len(row) != len(message.joint_names) for row in rows):
            raise InputError(
                "trajectory",
                "has points without a value for each joint",
                "give a value for each joint",
                field=field,
            )
        return np.array(rows, dtype=float)[:, order]

    def optional_column(field: str, rows: Sequence[Sequence[float]]) -> Array | None:
        return column(field, rows) if all(len(row) for row in rows) else None

    time = np.array([seconds_of(point.time_from_start) for point in points])
    q = column("positions", [point.positions for point in points])
    qd = optional_column("velocities", [point.velocities for point in points])
    qdd = optional_column("accelerations", [point.accelerations for point in points])
    if time[0] > 0 and start is not None:
        rest = np.zeros((1, len(names)))
        time = np.concatenate([[0.0], time])
        q = np.concatenate([start[None], q])
        qd = None if qd is None else np.concatenate([rest, qd])
        qdd = None if qdd is None else np.concatenate([rest, qdd])
    return Plan(time, q, qd, None if qd is None else qdd)


def joint_trajectory(plan: Plan, names: Sequence[str], request: JointTrajectory) -> JointTrajectory:
    """A plan as the answer to a request: its header, and the arm's joints in its order.

    Args:
        plan: with velocities and accelerations, joints in the order of `names`.
        names: joint names of the arm, prefix included.
        request: the message that asked for it.
    """
    shown = [name for name in request.joint_names if name in names]
    order = [list(names).index(name) for name in shown]
    out = JointTrajectory(header=request.header, joint_names=shown)
    for k, time in enumerate(plan.time - plan.time[0]):
        point = JointTrajectoryPoint(
            positions=plan.q[k, order].tolist(), time_from_start=duration_message(float(time))
        )
        if plan.qd is not None:
            point.velocities = plan.qd[k, order].tolist()
        if plan.qdd is not None:
            point.accelerations = plan.qdd[k, order].tolist()
        out.points.append(point)
    return out


def duration_message(seconds: float) -> Duration:
    """A duration from seconds."""
    whole, rest = divmod(round(seconds * 1e9), 10**9)
    return Duration(sec=whole, nanosec=rest)
