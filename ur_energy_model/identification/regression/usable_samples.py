"""Samples of a recording that identification can use."""

from __future__ import annotations

import numpy as np

from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.typing import Mask

RUNNING = 7
"""robot_mode of a robot with its brakes released."""


def freedrive_samples(telemetry: Telemetry) -> Mask:
    """Samples [n] taken in freedrive: the target follows the hand, but target_qdd stays zero.

    A stretch counts when target_qdd is exactly zero on all joints while the target speed changes
    by more than 0.05 rad/s^2 somewhere within it (a cruise at constant speed does not).
    """
    speed, time = telemetry["target_qd"], telemetry.time
    coasting = (telemetry["target_qdd"] == 0).all(axis=1) & (np.abs(speed) > 1e-4).any(axis=1)
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
