# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Plans as messages: trajectory_msgs/JointTrajectory, serialized, and as arrays.

A message of 8 MB may have 300,000 points, which as Python objects take 500 MB. Messages
of other nodes are therefore read as they are serialized, by the layout of CDR (OMG
DDSI-RTPS 2.5, 9.3):

    header: stamp (int32 seconds, uint32 nanoseconds), frame_id (string)
    joint_names: count, strings
    points: count, and for each point
        positions, velocities, accelerations, effort: count, float64 values
        time_from_start: int32 seconds, uint32 nanoseconds

Numbers are aligned to their size, from behind the four bytes of encapsulation.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from builtin_interfaces.msg import Duration, Time
from numpy.typing import NDArray
from std_msgs.msg import Header
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from ur_energy_model.errors import InputError
from ur_energy_model.trajectory.plan import Plan
from ur_energy_model.typing import Array

LARGEST_MESSAGE = 8 << 20
"""Largest plan as a serialized message [bytes], some 40,000 points with all derivatives."""
MOST_JOINTS = 100
"""Most joints that a plan may name; those of other arms and axes may be among them."""
LONGEST_TEXT = 1000  # of a frame or a joint [bytes]

# From a message.


@dataclass(frozen=True)
class PlanMessage:
    """The content of a JointTrajectory; all points have positions of all its joints."""

    header: Header
    names: tuple[str, ...]  # of joints
    time: Array  # of each point from the start [k], s
    q: Array  # positions [k, n], rad
    qd: Array | None  # velocities [k, n], rad/s; None unless all points have some
    qdd: Array | None  # accelerations [k, n], rad/s^2; None unless all points have some


def header_of(message: bytes) -> Header:
    """Header with the stamp of a serialized plan, which need not be readable; else with zeros."""
    try:
        seconds, nanoseconds = struct.unpack_from(f"{_order(message)}iI", message, _BODY)
    except (IndexError, struct.error):
        return Header()
    return Header(stamp=Time(sec=seconds, nanosec=min(nanoseconds, 999_999_999)))


def check_size(message: bytes) -> None:
    """Refuse a message that is too large, with an InputError."""
    if len(message) > LARGEST_MESSAGE:
        problem = f"is larger than {LARGEST_MESSAGE / 1e6:.0f} MB"
        raise InputError("trajectory", problem, "send fewer points")


def read_plan(message: bytes) -> PlanMessage:
    """Content of a serialized JointTrajectory.

    Raises:
        InputError: it is too large, cannot be read, has no points, or a point without a
            value for each joint.
    """
    check_size(message)
    try:
        return _Reader(message).plan()
    except (IndexError, struct.error, UnicodeDecodeError) as error:
        problem = "cannot be read: it is not a whole JointTrajectory"
        raise InputError("trajectory", problem, "send it again") from error


def plan_of(message: PlanMessage, names: Sequence[str], start: Array | None) -> Plan:
    """A planned trajectory, with the arm's joints in the order of `names`.

    If its first point is later than 0 s, the motion begins at `start`, the present joint
    positions [n], rad, where they are known.

    Raises:
        InputError: joints are missing or named twice, or the points are no plan.
    """
    missing = ", ".join(name for name in names if name not in message.names)
    if missing:
        remedy = "name all joints of the arm"
        raise InputError("trajectory", f"lacks {missing}", remedy, field="joint_names")
    if len(set(message.names)) < len(message.names):
        problem = "names a joint twice"
        raise InputError(
            "trajectory", problem, "name each joint once", field="joint_names"
        )
    order = [message.names.index(name) for name in names]
    time = message.time
    q = message.q[:, order]
    qd = None if message.qd is None else message.qd[:, order]
    qdd = None if message.qdd is None else message.qdd[:, order]
    if time[0] > 0 and start is not None:
        rest = np.zeros((1, len(names)))
        time = np.concatenate([[0.0], time])
        q = np.concatenate([start[None], q])
        qd = None if qd is None else np.concatenate([rest, qd])
        qdd = None if qdd is None else np.concatenate([rest, qdd])
    return Plan(time, q, qd, None if qd is None else qdd)


# bytes of encapsulation in front of the body; the second one has the order of bytes
_BODY = 4
_LEAST_POINT = 24  # bytes of a point without values: four counts and a duration


def _order(message: bytes) -> str:
    """Order of the bytes of a serialized message, as struct and numpy name it.

    Raises:
        IndexError: it has no encapsulation, or not that of plain CDR.
    """
    if len(message) < _BODY or message[0] != 0 or message[1] > 1:
        raise IndexError("not plain CDR")
    return "<" if message[1] else ">"


class _Reader:
    """Reads a serialized plan from its beginning to its end.

    Its methods raise IndexError or struct.error where the message ends early.
    """

    def __init__(self, message: bytes) -> None:
        order = _order(message)
        self._message = message
        self._position = _BODY
        self._count = struct.Struct(f"{order}I")
        self._duration = struct.Struct(f"{order}iI")
        words = (len(message) - _BODY) // 8
        self._words = np.frombuffer(message, f"{order}f8", words, _BODY)

    def plan(self) -> PlanMessage:
        """The whole message."""
        stamp = header_of(self._message).stamp
        self._position += self._duration.size
        header = Header(stamp=stamp, frame_id=self._text("its frame"))
        names = self._names()
        points = self._next_count()
        if not points:
            raise InputError(
                "trajectory", "is empty: it has no points", "send the whole trajectory"
            )
        if not names:
            problem = "names no joints"
            remedy = "name all joints of the arm"
            raise InputError("trajectory", problem, remedy, field="joint_names")
        places, time = self._points(points, len(names))
        q, qd, qdd = (self._values(column, len(names)) for column in places.T)
        assert q is not None, "each point has positions"
        return PlanMessage(header, names, time, q, qd, qdd)

    def _next_count(self) -> int:
        self._position += -(self._position - _BODY) % self._count.size
        (count,) = self._count.unpack_from(self._message, self._position)
        self._position += self._count.size
        return int(count)

    def _text(self, what: str) -> str:
        size = self._next_count()
        if size > LONGEST_TEXT:
            problem = f"{what} has a name of {size} bytes"
            raise InputError("trajectory", problem, f"use names of up to {LONGEST_TEXT}")
        text = self._message[self._position : self._position + size]
        if len(text) < size:
            raise IndexError("the message ends early")
        self._position += size
        return text.partition(b"\0")[0].decode()

    def _names(self) -> tuple[str, ...]:
        count = self._next_count()
        if count > MOST_JOINTS:
            problem = f"names {count} joints"
            remedy = "name the joints of the arm"
            raise InputError("trajectory", problem, remedy, field="joint_names")
        return tuple(self._text("a joint") for _ in range(count))

    def _points(self, points: int, joints: int) -> tuple[NDArray[np.int64], Array]:
        """Where the values of each point are, and its time.

        Returns:
            places [k, 3] of positions, velocities and accelerations among the words of
            eight bytes, -1 where a point has none; and times [k], s.
        """
        remaining = len(self._message) - self._position
        # Without this bound a short message that states many points would take much
        # memory. A point that lacks positions is refused below before the arrays are too
        # short.
        possible = min(points, remaining // (_LEAST_POINT + 8 * joints) + 1)
        places = np.full((possible, 3), -1, dtype=np.int64)
        time = np.empty(possible)
        for k in range(points):
            for column, field in enumerate(
                ("positions", "velocities", "accelerations", "effort")
            ):
                count = self._next_count()
                if count:
                    self._position += -(self._position - _BODY) % 8
                    if column < 3 and count == joints:
                        places[k, column] = (self._position - _BODY) // 8
                    self._position += 8 * count
                if (count or not column) and column < 3 and count != joints:
                    problem = "has points without a value for each joint"
                    remedy = "give a value for each joint"
                    raise InputError("trajectory", problem, remedy, field=field)
            self._position += -(self._position - _BODY) % self._count.size
            seconds, nanoseconds = self._duration.unpack_from(
                self._message, self._position
            )
            self._position += self._duration.size
            time[k] = seconds + 1e-9 * nanoseconds
        return places, time

    def _values(self, places: NDArray[np.int64], joints: int) -> Array | None:
        """The values [k, n] at these places [k]; None unless all points have some."""
        if (places < 0).any():
            return None
        values: NDArray[Any] = self._words[places[:, None] + np.arange(joints)]
        return np.asarray(values, dtype=np.float64)


# To a message.


def joint_trajectory(
    plan: Plan, names: Sequence[str], request: PlanMessage
) -> JointTrajectory:
    """A plan as the answer to a request: its header, and the arm's joints in its order.

    The plan has velocities and accelerations, and its joints in the order of `names`.
    """
    shown = [name for name in request.names if name in names]
    order = [list(names).index(name) for name in shown]
    out = JointTrajectory(header=request.header, joint_names=shown)
    for k, time in enumerate(plan.time - plan.time[0]):
        point = JointTrajectoryPoint(
            positions=plan.q[k, order].tolist(),
            time_from_start=duration_message(float(time)),
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
