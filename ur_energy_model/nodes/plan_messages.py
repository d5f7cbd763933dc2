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
"""Largest serialized plan [bytes], some 40,000 points with all derivatives."""
MOST_JOINTS = 100
"""Most joints that a plan may name; joints of other arms and axes may be among them."""
LONGEST_TEXT = 1000  # longest name of a frame or a joint [bytes]

# From a message.


@dataclass(frozen=True)
class PlanMessage:
    """The content of a JointTrajectory with k points for n joints.

    Attributes:
        header: header of the message.
        names: names of the joints [n].
        time: time of each point from the start [k], s.
        q: positions [k, n], rad.
        qd: velocities [k, n], rad/s; None unless all points have some.
        qdd: accelerations [k, n], rad/s^2; None unless all points have some.
    """

    header: Header
    names: tuple[str, ...]
    time: Array
    q: Array
    qd: Array | None
    qdd: Array | None


def header_of(message: bytes) -> Header:
    """Header with the stamp of a serialized plan, for an answer to it.

    The rest of the message need not be readable. Without a stamp it is a header of zeros.
    """
    try:
        seconds, nanoseconds = struct.unpack_from(f"{_order(message)}iI", message, _BODY)
    except (IndexError, struct.error):
        return Header()
    return Header(stamp=Time(sec=seconds, nanosec=min(nanoseconds, 999_999_999)))


def check_size(message: bytes) -> None:
    """Refuse a message that is too large.

    Raises:
        InputError: it has more than LARGEST_MESSAGE bytes.
    """
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

    Args:
        message: the plan; it may name further joints.
        names: names of the arm's joints [n].
        start: present joint positions [n], rad, at which the motion begins if the first
            point is later than 0 s; None where they are unknown.

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
    begins_at_start = False
    if time[0] > 0 and start is not None:
        begins_at_start = True
        time = np.concatenate([[0.0], time])
        q = np.concatenate([start[None], q])

    def derivative(values: Array | None) -> Array | None:
        """Velocities or accelerations of the arm's joints, zero at the start."""
        if values is None:
            return None
        of_arm = values[:, order]
        if not begins_at_start:
            return of_arm
        return np.concatenate([np.zeros((1, len(names))), of_arm])

    qd = derivative(message.qd)
    # Accelerations are used only beside velocities.
    qdd = None if qd is None else derivative(message.qdd)
    return Plan(time, q, qd, qdd)


_BODY = 4
"""Bytes of encapsulation in front of the body; the second has the order of bytes."""
_LEAST_POINT = 24
"""Bytes of a point without values: four counts and a duration."""
_WORD = 8
"""Bytes of a float64, to which it is aligned."""
_MOTION = ("positions", "velocities", "accelerations")
"""Fields of a point that are read, in their order; `effort` follows and is skipped."""


def _order(message: bytes) -> str:
    """Order of the bytes of a serialized message, as struct and numpy name it.

    Raises:
        IndexError: it has no encapsulation of plain CDR.
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
        words = (len(message) - _BODY) // _WORD
        self._words = np.frombuffer(message, f"{order}f8", words, _BODY)

    def plan(self) -> PlanMessage:
        """The whole message.

        Raises:
            InputError: the plan has no points, or names no joints.
        """
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

    def _align(self, size: int) -> None:
        """Skip the padding before a value of this size [bytes]."""
        self._position += -(self._position - _BODY) % size

    def _next_count(self) -> int:
        """The length of the text or array that follows."""
        self._align(self._count.size)
        (count,) = self._count.unpack_from(self._message, self._position)
        self._position += self._count.size
        return int(count)

    def _text(self, what: str) -> str:
        """The text that follows.

        Args:
            what: has it as a name, for errors.

        Raises:
            InputError: it is too long.
        """
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
        """The names of the joints, which follow; InputError if there are too many."""
        count = self._next_count()
        if count > MOST_JOINTS:
            problem = f"names {count} joints"
            remedy = "name the joints of the arm"
            raise InputError("trajectory", problem, remedy, field="joint_names")
        return tuple(self._text("a joint") for _ in range(count))

    def _points(self, points: int, joints: int) -> tuple[NDArray[np.int64], Array]:
        """Where the values of each point are, and its time.

        Args:
            points: k, their number as the message states it.
            joints: n, the number of joints.

        Returns:
            places [k, 3] of positions, velocities and accelerations as indices of
            `_words`, -1 where a point has none; and times [k], s.

        Raises:
            InputError: a point has not a value for each joint.
        """
        remaining = len(self._message) - self._position
        # Without this bound a short message that states many points would take much
        # memory. A point that lacks positions is refused below before the arrays are too
        # short.
        shortest = _LEAST_POINT + _WORD * joints
        possible = min(points, remaining // shortest + 1)
        places = np.full((possible, len(_MOTION)), -1, dtype=np.int64)
        time = np.empty(possible)
        for k in range(points):
            for column, field in enumerate(_MOTION):
                count, place = self._skip_values()
                if count == joints:
                    places[k, column] = place
                elif count or field == "positions":  # the others may be left out
                    problem = "has points without a value for each joint"
                    remedy = "give a value for each joint"
                    raise InputError("trajectory", problem, remedy, field=field)
            self._skip_values()  # effort
            self._align(self._count.size)
            seconds, nanoseconds = self._duration.unpack_from(
                self._message, self._position
            )
            self._position += self._duration.size
            time[k] = seconds + 1e-9 * nanoseconds
        return places, time

    def _skip_values(self) -> tuple[int, int]:
        """Skip an array of float64.

        Returns:
            The number of its values, and where the first one is: an index of `_words`.
        """
        count = self._next_count()
        if count == 0:
            return 0, -1
        self._align(_WORD)
        place = (self._position - _BODY) // _WORD
        self._position += _WORD * count
        return count, place

    def _values(self, places: NDArray[np.int64], joints: int) -> Array | None:
        """The values of one field.

        Args:
            places: index of the first value of each point in `_words` [k], -1 for none.
            joints: n, the number of values of each point.

        Returns:
            [k, n]; None unless all points have values.
        """
        if (places < 0).any():
            return None
        indices = places[:, None] + np.arange(joints)
        values: NDArray[Any] = self._words[indices]
        return np.asarray(values, dtype=np.float64)


# To a message.


def joint_trajectory(
    plan: Plan, names: Sequence[str], request: PlanMessage
) -> JointTrajectory:
    """A plan as the answer to a request.

    Args:
        plan: k points for n joints.
        names: names of the joints of the plan [n].
        request: request whose header and order of joints the answer keeps.
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
