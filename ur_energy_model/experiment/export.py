"""Export of trajectories as URScript programs and CSV tables."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ur_energy_model.errors import InputError
from ur_energy_model.files import write_text
from ur_energy_model.trajectory.fourier import FourierTrajectory
from ur_energy_model.trajectory.plan_csv import csv_text

LOOKAHEAD_TIME = 0.03
"""servoj look-ahead [s] (Raviola et al. 2021)."""
GAIN = 500
"""servoj gain (Raviola et al. 2021)."""
APPROACH_SPEED = 0.4
"""Joint speed of the move to the start [rad/s]."""
APPROACH_ACCELERATION = 0.5
"""Joint acceleration of the move to the start [rad/s^2]."""


def export_trajectory(path: str | Path, trajectory: FourierTrajectory, rate: float) -> None:
    """Write a trajectory for other tools in the format given by the suffix.

    Args:
        path: .csv for a table, .script or .urscript for a program.
        trajectory: what to write.
        rate: rows per second of a table [Hz].

    Raises:
        InputError: unknown suffix, or the file cannot be written.
    """
    target = Path(path)
    match target.suffix.lower():
        case ".csv":
            text = csv_table(trajectory, rate)
        case ".script" | ".urscript":
            text = urscript(trajectory)
        case suffix:
            raise InputError(
                target, f"has no export format for '{suffix}'", "name it .csv, .script or .urscript"
            )
    write_text(target, text)


def csv_table(trajectory: FourierTrajectory, rate: float) -> str:
    """CSV table for `ur_energy predict`: time, q_0 ... qdd_5, SI units."""
    samples = round(trajectory.duration * rate) + 1
    time = np.linspace(0.0, trajectory.duration, samples)
    return csv_text(time, *trajectory.sample(time))


def urscript(trajectory: FourierTrajectory) -> str:
    """URScript program: slow move to the start, then the Fourier series by servoj.

    The program evaluates the series itself, with one sine and one cosine per step (the others
    follow from the addition theorem), so it needs no network while it runs.
    """
    orders = range(1, trajectory.harmonics + 1)
    start = ", ".join(f"{value:.9f}" for value in trajectory.start)
    joints = []
    for q0, a, b in zip(trajectory.q0, trajectory.a, trajectory.b, strict=True):
        terms = [f"{q0:.9f}"]
        terms += [f"({a[k - 1]:.9f}) * s{k} - ({b[k - 1]:.9f}) * c{k}" for k in orders]
        joints.append(" + ".join(terms))
    lines = [
        "def exciting_trajectory():",
        f"  # {trajectory.robot}: {trajectory.duration:g} s,"
        f" {trajectory.repetitions} periods of {trajectory.period:g} s",
        f"  movej([{start}], a={APPROACH_ACCELERATION}, v={APPROACH_SPEED})",
        "  local dt = get_steptime()",
        f"  local w = {2 * np.pi / trajectory.period:.12f}",
        "  local t = 0.0",
        f"  while t < {trajectory.duration:.9f}:",
        "    local s1 = sin(w * t)",
        "    local c1 = cos(w * t)",
    ]
    for k in orders[1:]:
        lines += [
            f"    local s{k} = s{k - 1} * c1 + c{k - 1} * s1",
            f"    local c{k} = c{k - 1} * c1 - s{k - 1} * s1",
        ]
    lines += [f"    local q{joint} = {text}" for joint, text in enumerate(joints)]
    names = ", ".join(f"q{joint}" for joint in range(trajectory.dof))
    lines += [
        f"    servoj([{names}], 0, 0, dt, {LOOKAHEAD_TIME}, {GAIN})",
        "    t = t + dt",
        "  end",
        "  stopj(2.0)",
        "end",
        "",
    ]
    return "\n".join(lines)
