# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Impossible values and recordings that measure nothing: limits, statistics of channels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ur_energy_model.telemetry.fields import FIELDS
from ur_energy_model.telemetry.samples import Telemetry, run_starts
from ur_energy_model.typing import Array, Mask

PlausibleRanges = Mapping[str, tuple[Array, Array]]
"""Lowest and highest possible value of a field, one for all elements or one each."""

IMPOSSIBLE_SHARE = 0.01
"""Share of impossible samples above which a recording is refused; below, they are left out."""


# Limits for an unknown arm, at the joints.

POSITION = 8 * np.pi  # [rad]
SPEED = 4 * np.pi  # [rad/s]
ACCELERATION = 1000.0  # [rad/s^2]
CURRENT = 1.0e4  # [A]; currents may be given per turn of the joint
TORQUE = 5000.0  # [N m]
_COUNT = (-1.0e20, 1.0e20)  # limits of whole numbers
_NUMBER = (-1.0e12, 1.0e12)  # limits of other numbers
_LIMITS = {
    "timestamp": (-1.0, 1.0e10),
    "joint_temperatures": (-40.0, 150.0),
    "payload": (-1.0e-3, 500.0),
    **dict.fromkeys(("actual_q", "target_q"), (-POSITION, POSITION)),
    **dict.fromkeys(("actual_qd", "target_qd"), (-SPEED, SPEED)),
    "target_qdd": (-ACCELERATION, ACCELERATION),
    **dict.fromkeys(
        ("actual_current", "target_current", "joint_control_output"), (-CURRENT, CURRENT)
    ),
    **dict.fromkeys(("target_moment", "actual_current_as_torque"), (-TORQUE, TORQUE)),
    **dict.fromkeys(
        ("actual_joint_voltage", "actual_main_voltage", "actual_robot_voltage"),
        (-1.0, 80.0),
    ),
    "actual_robot_current": (-100.0, 100.0),
    "payload_cog": (-10.0, 10.0),
    "payload_inertia": (-1.0e4, 1.0e4),
    **dict.fromkeys(("speed_scaling", "target_speed_fraction"), (-1.0, 200.0)),
    **dict.fromkeys(("robot_mode", "safety_mode", "runtime_state"), (-1.0e6, 1.0e6)),
}
_REAL = ("DOUBLE", "VECTOR3D", "VECTOR6D")
"""RTDE types whose values are no whole numbers."""


def _limits_of_any_arm() -> dict[str, tuple[Array, Array]]:
    """Limits of every field of the table, for an unknown arm."""
    limits: dict[str, tuple[Array, Array]] = {}
    for name, field in FIELDS.items():
        usual = _NUMBER if field.kind in _REAL else _COUNT
        low, high = _LIMITS.get(name, usual)
        limits[name] = (np.array([low]), np.array([high]))
    return limits


ANY_ARM: PlausibleRanges = _limits_of_any_arm()
"""Limits of every arm; `energy.rated_limits` narrows them to one arm."""


@dataclass(frozen=True)
class Impossible:
    """The first impossible value of some columns.

    Attributes:
        row: row of the impossible value.
        field: RTDE name of its column.
        index: index of the impossible value among the elements of the field.
        value: the impossible value.
    """

    row: int
    field: str
    index: int
    value: float


def impossible_rows(
    columns: Mapping[str, Array], limits: PlausibleRanges = ANY_ARM
) -> tuple[Mask, Impossible | None]:
    """Rows with a value that is not finite or outside its field's limits, and the first such value.

    Args:
        columns: values by RTDE field name, [rows] or [rows, width]; at least one.
        limits: limits by field name; fields without limits must only be finite.
    """
    rows = len(next(iter(columns.values())))
    bad = np.zeros(rows, dtype=bool)
    if not rows:
        return bad, None
    first: Impossible | None = None
    for name, values in columns.items():
        wide = values.reshape(rows, -1)
        low, high = limits.get(name, _COUNT)
        if (wide.min(axis=0) >= low).all() and (wide.max(axis=0) <= high).all():
            continue
        wrong = ~((wide >= low) & (wide <= high))
        here = wrong.any(axis=1)
        row = int(np.argmax(here))
        if first is None or row < first.row:
            index = int(np.argmax(wrong[row]))
            first = Impossible(row, name, index, float(wide[row, index]))
        bad |= here
    return bad, first


def possible(
    telemetry: Telemetry, limits: PlausibleRanges = ANY_ARM
) -> tuple[Telemetry, Mask, Impossible | None]:
    """A recording without its impossible samples.

    Values that are not finite are kept: recordings mark what was not measured with them.

    Args:
        telemetry: samples of the recording.
        limits: limits by field name, see `impossible_rows`.

    Returns:
        The samples that are left, a mask of the impossible ones [n], and the first
        impossible value.
    """
    if not len(telemetry):
        return telemetry, np.zeros(0, dtype=bool), None
    known: dict[str, Array] = {}
    for name, values in telemetry.columns.items():
        finite = np.isfinite(values)
        known[name] = values if finite.all() else np.where(finite, values, 0.0)
    bad, first = impossible_rows(known, limits)
    return telemetry.select(~bad), bad, first


# Running statistics of a recording's channels, for the quality verdict. Each takes its
# consecutive parts and keeps a few numbers per channel.

_STUCK = 3  # number of identical values in a row that noise rarely produces
_MOVING = 0.01  # least speed of a joint in motion [rad/s]


@dataclass
class Extremes:
    """Smallest and largest value of each component of a channel; None before any."""

    low: Array | None = None
    high: Array | None = None

    def update(self, values: Array) -> None:
        """Include values [samples, k]; rows with NaN are ignored."""
        finite = np.isfinite(values)
        used = values if finite.all() else values[finite.all(axis=1)]
        if len(used):
            low = used.min(axis=0)
            high = used.max(axis=0)
            self.low = low if self.low is None else np.minimum(self.low, low)
            self.high = high if self.high is None else np.maximum(self.high, high)

    def span(self, width: int) -> Array:
        """Largest minus smallest value [width]; NaN if there were no values."""
        if self.low is None or self.high is None:
            return np.full(width, np.nan)
        return np.asarray(self.high - self.low)

    def largest(self, width: int) -> Array:
        """Largest magnitude [width]; NaN if there were no values."""
        if self.low is None or self.high is None:
            return np.full(width, np.nan)
        return np.asarray(np.maximum(np.abs(self.low), np.abs(self.high)))


@dataclass
class Repeats:
    """Runs in which one noisy channel does not change: frozen, or clipped at a limit.

    Attributes:
        longest: length of the longest run of identical values, in samples.
        value: value of the samples of the longest run.
        low: smallest value so far.
        high: largest value so far.
        at_limit: samples in runs of three or more at an extreme value.
    """

    longest: int = 0
    value: float = np.nan
    low: float = np.inf
    high: float = -np.inf
    at_limit: int = 0

    def update(self, values: Array) -> None:
        """Include values [samples]; NaN is ignored."""
        finite = values[np.isfinite(values)]
        if not len(finite):
            return
        start = run_starts(finite)
        length = np.diff(start, append=len(finite))
        place = int(np.argmax(length))
        if length[place] > self.longest:
            self.longest = int(length[place])
            self.value = float(finite[start[place]])
        low = float(finite.min())
        high = float(finite.max())
        if low < self.low or high > self.high:
            self.at_limit = 0
            self.low = min(low, self.low)
            self.high = max(high, self.high)
        limits = np.isin(finite[start], [self.low, self.high]) & (length >= _STUCK)
        self.at_limit += int(length[limits].sum())

    def frozen(self, samples: float) -> bool:
        """Whether the channel was constant for this many samples, and not at a limit."""
        inside = self.low == self.high or self.value not in (self.low, self.high)
        return self.longest >= samples and inside

    def clipped(self, samples: float) -> bool:
        """Whether this many samples are clipped at a limit."""
        return self.low < self.high and self.at_limit >= samples


class JointActivity:
    """Movement of joints: time in motion and changes of direction.

    Attributes:
        moving: time above 0.01 rad/s of each joint [n], s.
        reversals: number of changes of direction of each joint [n].
        seconds: time covered, gaps left out [s].
    """

    def __init__(self, joints: int) -> None:
        self.moving = np.zeros(joints)
        self.seconds = 0.0
        self.reversals = np.zeros(joints, dtype=np.int64)
        self._direction = np.zeros(joints)  # sign of the last speed in motion

    def update(self, part: Telemetry, speed: Array) -> None:
        """Include joint speeds [samples, n] of a part, rad/s."""
        for segment in part.segments():
            step = np.diff(part.time[segment])
            moving = np.abs(speed[segment]) > _MOVING
            self.moving += step @ moving[1:]
            self.seconds += float(step.sum())
            for joint in range(speed.shape[1]):
                signs = np.sign(speed[segment, joint][moving[:, joint]])
                if not len(signs):
                    continue
                reverses_at_begin = self._direction[joint] * signs[0] < 0
                self.reversals[joint] += np.count_nonzero(np.diff(signs))
                self.reversals[joint] += int(reverses_at_begin)
                self._direction[joint] = signs[-1]


# Recordings of the manufacturer's offline simulator, which measures nothing.

NOMINAL_VOLTAGE = 48.0  # constant bus voltage of the offline simulator [V]
REASON = (
    "comes from the maker's offline simulator (actual_current is an exact multiple of "
    "target_current, bus voltage exactly 48 V): nothing was measured"
)
"""Why such a recording has no information about energy."""
REMEDY = "record a real arm"


class OfflineSimulatorCheck:
    """Checks consecutive parts of one recording for the simulator's fingerprint.

    The fingerprint is a measured current that is an exact multiple of the commanded one
    on every joint and, if the bus voltage was recorded, exactly 48 V throughout. One of
    them alone proves nothing: some controllers report whole volts.
    """

    def __init__(self) -> None:
        self._real_voltage = False
        # Sums of squares of the measured currents, of products of both currents, and of
        # squares of the commanded currents [3, joints].
        self._sums: Array | None = None

    def update(self, part: Telemetry) -> None:
        """Include the next part."""
        if "actual_current" in part and "target_current" in part:
            actual = part["actual_current"]
            target = part["target_current"]
            finite = np.isfinite(actual).all(axis=1) & np.isfinite(target).all(axis=1)
            actual = actual[finite]
            target = target[finite]
            squares = (actual * actual).sum(axis=0)
            products = (actual * target).sum(axis=0)
            target_squares = (target * target).sum(axis=0)
            sums = np.stack([squares, products, target_squares])
            self._sums = sums if self._sums is None else self._sums + sums
        if "actual_robot_voltage" in part:
            volts = part["actual_robot_voltage"]
            known = volts[np.isfinite(volts)]
            self._real_voltage |= bool((known != NOMINAL_VOLTAGE).any())

    @property
    def found(self) -> bool:
        """Whether all parts so far have the fingerprint."""
        if self._real_voltage or self._sums is None:
            return False
        squares, products, target_squares = self._sums
        has_current = (squares > 0) & (target_squares > 0)
        if not has_current.any():
            return False
        shares = products**2 / np.where(has_current, squares * target_squares, 1.0)
        # Proportional: the residual of every joint with current is below 0.01 % RMS.
        return bool((1 - shares[has_current] < 1e-8).all())
