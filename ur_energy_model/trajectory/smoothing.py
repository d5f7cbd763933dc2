"""Smoothing of planned trajectories that were measured.

Differentiating positions twice turns noise of a tenth of a milliradian at 500 Hz into
accelerations of tens of rad/s^2, and these into energy that the motion does not take.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ur_energy_model.low_pass import low_pass
from ur_energy_model.trajectory.plan import Plan
from ur_energy_model.typing import Array

CUTOFF = 6.0
"""Cut-off of the zero-phase low-pass for noisy positions [Hz]: the highest that identification
uses, above the motion of a rigid arm."""
NOISE_SHARE = 0.05
"""Noise of accelerations from which a plan counts as noisy, relative to the arm's limit."""
_ORDER = 4
_WHITE_GAIN = 70.0**0.5
"""Standard deviation of fourth differences of white noise, over that of the noise."""
_WHITE_CORRELATION = -0.5
"""Consecutive fourth differences of white noise correlate with -0.8, of motion positively."""
_ENOUGH_POINTS = 32
_ACCELERATION_GAIN = 6.0**0.5
"""Standard deviation of second differences of white noise, over that of the noise."""


def smooth_plan(plan: Plan, max_acceleration: Array) -> tuple[Plan, str | None]:
    """The plan without the noise of measured positions or velocities.

    Args:
        plan: as read; unchanged if it has accelerations.
        max_acceleration: of the joints [n], rad/s^2.

    Returns:
        the plan for a prediction, and a warning with reason and remedy; None without relevant
        noise.
    """
    if plan.qdd is not None or len(plan.time) < _ENOUGH_POINTS:
        return plan, None
    step = plan.duration / (len(plan.time) - 1)
    grid = plan.time[0] + step * np.arange(len(plan.time))
    q = _on_grid(grid, plan.time, plan.q)
    noise = _noise(q)
    of_q = _ACCELERATION_GAIN * noise / step**2
    of_qd = np.zeros_like(of_q)
    if plan.qd is not None:
        of_qd = 2**0.5 * _noise(_on_grid(grid, plan.time, plan.qd)) / step
    limit = NOISE_SHARE * np.broadcast_to(max_acceleration, of_q.shape)
    if not ((of_q > limit) | (of_qd > limit)).any():
        return plan, None
    worst = float(max(of_q.max(), of_qd.max()))
    kind = "positions" if (of_q > limit).any() else "velocities"
    text = (
        f"{kind} look measured: their noise alone would make accelerations of {worst:.2g} rad/s^2; "
        f"smoothed at {CUTOFF:g} Hz. Give the planned motion (target_q, or q, qd and qdd) for an "
        "answer without smoothing"
    )
    if kind == "velocities":
        return replace(plan, qd=None), text
    return Plan(
        grid, low_pass(q, step, CUTOFF, padding=1.5, padtype="even"), source=plan.source
    ), text


def _on_grid(grid: Array, time: Array, values: Array) -> Array:
    """Values [k, n] at even times [k]; unchanged where their times already agree with these."""
    if np.allclose(grid, time, rtol=0, atol=0.02 * (grid[1] - grid[0])):
        return values
    return np.stack([np.interp(grid, time, column) for column in values.T], axis=1)


def _noise(values: Array) -> Array:
    """Standard deviation [n] of white noise in evenly sampled values [k, n]; 0 where smooth."""
    rough = np.diff(values, _ORDER, axis=0)
    power = np.square(rough).mean(axis=0)
    product = (rough[1:] * rough[:-1]).mean(axis=0)
    white = product < _WHITE_CORRELATION * power
    # The median ignores the few large differences where a motion's jerk changes.
    deviation = np.median(np.abs(rough), axis=0) / 0.6745
    return np.asarray(np.where(white, deviation / _WHITE_GAIN, 0.0))
