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


def freedrive_samples(telemetry: Telemetry) -> Mask:
    """Samples [n] taken in freedrive: the target follows the hand, but target_qdd stays zero.

    A stretch counts when target_qdd is exactly zero on all joints while the target speed
    changes by more than 0.05 rad/s^2 somewhere within it (a cruise at constant speed does
    not).
    """
    speed = telemetry["target_qd"]
    time = telemetry.time
    coasting = (telemetry["target_qdd"] == 0).all(axis=1) & (np.abs(speed) > 1e-4).any(
        axis=1
    )
    out = np.zeros(len(time), dtype=bool)
    if not coasting.any():
        return out
    step = np.maximum(np.diff(time), 1e-6)[:, None]
    rates = np.abs(np.diff(speed, axis=0)) / step
    changing = np.asarray((rates > 0.05).any(axis=1))
    edges = np.flatnonzero(np.diff(np.concatenate([[0], coasting.astype(int), [0]])))
    for start, stop in edges.reshape(-1, 2):
        if changing[start : max(start, stop - 1)].any():
            out[start:stop] = True
    return out


def usable_samples(telemetry: Telemetry, *names: str) -> Mask:
    """Samples [n] at which these columns are finite and the robot runs, freedrive left out."""
    good = np.ones(len(telemetry), dtype=bool)
    for name in names:
        good &= np.isfinite(telemetry[name].reshape(len(telemetry), -1)).all(axis=1)
    if "robot_mode" in telemetry:
        good &= telemetry["robot_mode"] == RUNNING
    if "target_qd" in telemetry and "target_qdd" in telemetry:
        good &= ~freedrive_samples(telemetry)
    return good


# Recorded channels resampled to an even time grid and low-pass filtered. Recorders store
# samples at irregular multiples of the controller's tick; filters and derivatives need an
# even grid. Each gap-free stretch has its own grid.

_MINIMUM_SAMPLES = 16


def resampled_runs(
    telemetry: Telemetry,
    names: Sequence[str],
    good: Mask,
    *,
    rate: float = 100.0,
    bandwidth: float = 15.0,
    shortest: float = 1.6,
) -> Iterator[list[Array]]:
    """Gap-free stretches of good samples, on an even grid and low-pass filtered (Butterworth).

    Yields times of the grid [samples], s, and the channels of these names [samples, k].
    Rate and bandwidth are in Hz, `shortest` is the shortest stretch used [s].
    """
    for segment in telemetry.segments():
        flags = np.concatenate([[0], good[segment].astype(int), [0]])
        for start, stop in np.flatnonzero(np.diff(flags)).reshape(-1, 2).tolist():
            rows = slice(segment.start + start, segment.start + stop)
            time = telemetry.time[rows]
            if len(time) < _MINIMUM_SAMPLES or time[-1] - time[0] < shortest:
                continue
            grid = np.arange(time[0], time[-1], 1 / rate)
            even = [spline(time, telemetry[name][rows])(grid) for name in names]
            yield [grid, *(low_pass(values, 1 / rate, bandwidth) for values in even)]


def spline(x: Array | np.ndarray, y: Array) -> CubicSpline:
    """Cubic spline through values [samples, ...] at ascending times [samples], s."""
    from scipy.interpolate import CubicSpline

    return CubicSpline(x, y)
