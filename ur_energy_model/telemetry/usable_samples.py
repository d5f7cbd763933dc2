# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Samples of telemetry that the physics of the arm holds for, and even stretches of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ur_energy_model.low_pass import low_pass
from ur_energy_model.robot_modes import RUNNING
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.typing import Array, Mask

if TYPE_CHECKING:  # scipy.interpolate is slow to import
    from scipy.interpolate import CubicSpline


_MOVING = 1e-4  # least target speed of a joint that moves [rad/s]
_ACCELERATED = 0.05  # change of the target speed that is no cruise [rad/s^2]
_SHORTEST_STEP = 1e-6  # steps of the clock are not taken for shorter [s]


def freedrive_samples(telemetry: Telemetry) -> Mask:
    """Samples taken in freedrive: the target follows the hand, but target_qdd stays zero.

    A stretch counts when target_qdd is exactly zero on all joints while the target speed
    of a joint changes by more than 0.05 rad/s^2 somewhere within it. A cruise at constant
    speed does not count.

    Args:
        telemetry: samples of a recording with target_qd and target_qdd.

    Returns:
        Mask [n] of these samples.
    """
    speed = telemetry["target_qd"]
    is_unaccelerated = (telemetry["target_qdd"] == 0).all(axis=1)
    is_moving = (np.abs(speed) > _MOVING).any(axis=1)
    is_freedrive = np.zeros(len(telemetry), dtype=bool)
    if not (is_unaccelerated & is_moving).any():
        return is_freedrive
    step = np.maximum(np.diff(telemetry.time), _SHORTEST_STEP)
    acceleration = np.abs(np.diff(speed, axis=0)) / step[:, None]
    is_changing = np.asarray((acceleration > _ACCELERATED).any(axis=1))
    for start, stop in _stretches(is_unaccelerated & is_moving):
        if is_changing[start : max(start, stop - 1)].any():
            is_freedrive[start:stop] = True
    return is_freedrive


def _stretches(mask: Mask) -> list[tuple[int, int]]:
    """First index, and index behind the last, of each stretch in which a mask [n] is True."""
    edges = np.flatnonzero(np.diff(mask.astype(int), prepend=0, append=0))
    starts = edges[::2].tolist()
    stops = edges[1::2].tolist()
    return list(zip(starts, stops, strict=True))


def usable_samples(telemetry: Telemetry, *names: str) -> Mask:
    """Samples for which the physics of the arm holds: the robot runs, and is not moved by hand.

    Args:
        telemetry: robot mode and target motion are considered as far as it has them.
        names: RTDE fields that must be finite.

    Returns:
        Mask [n] of these samples.
    """
    good = np.ones(len(telemetry), dtype=bool)
    for name in names:
        values = telemetry[name].reshape(len(telemetry), -1)
        good &= np.isfinite(values).all(axis=1)
    if "robot_mode" in telemetry:
        good &= telemetry["robot_mode"] == RUNNING
    if "target_qd" in telemetry and "target_qdd" in telemetry:
        good &= ~freedrive_samples(telemetry)
    return good


# Recorded channels resampled to an even time grid and low-pass filtered. Recorders store
# samples at irregular multiples of the controller's tick; filters and derivatives need an
# even grid. Each gap-free stretch has its own grid.

_MINIMUM_SAMPLES = 16  # least samples of a stretch that is resampled


def resampled_runs(
    telemetry: Telemetry,
    names: Sequence[str],
    good: Mask,
    *,
    rate: float = 100.0,
    bandwidth: float = 15.0,
    shortest: float = 1.6,
) -> Iterator[list[Array]]:
    """Stretches of usable samples on an even grid of times, low-pass filtered (Butterworth).

    Args:
        telemetry: samples of the recording.
        names: RTDE fields to resample.
        good: mask [n] of the samples to use, see `usable_samples`.
        rate: rate of the grid of times [Hz].
        bandwidth: cut-off of the filter [Hz].
        shortest: duration of the shortest stretch that is used [s].

    Yields:
        For each stretch without gaps the times of its grid [samples], s, and behind them
        the values of each field [samples, k].
    """
    for segment in telemetry.segments():
        for start, stop in _stretches(good[segment]):
            rows = slice(segment.start + start, segment.start + stop)
            time = telemetry.time[rows]
            if len(time) < _MINIMUM_SAMPLES or time[-1] - time[0] < shortest:
                continue
            grid = np.arange(time[0], time[-1], 1 / rate)
            run = [grid]
            for name in names:
                even = spline(time, telemetry[name][rows])(grid)
                run.append(low_pass(even, 1 / rate, bandwidth))
            yield run


def spline(x: Array | np.ndarray, y: Array) -> CubicSpline:
    """Cubic spline through values [samples, ...] at ascending times [samples], s."""
    from scipy.interpolate import CubicSpline

    return CubicSpline(x, y)
