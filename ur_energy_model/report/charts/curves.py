"""What every chart of a recording has in common: joints' names, curves broken at gaps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ur_energy_model.report.charts.chart import Line, Role
from ur_energy_model.report.charts.gaps import break_at
from ur_energy_model.report.recording_powers import Breaks
from ur_energy_model.typing import Array

S0 = "Clochiatti et al. 2024"


def short_name(joint: str) -> str:
    """A joint's name as people say it: "shoulder_pan_joint" is "shoulder pan"."""
    return joint.removesuffix("_joint").replace("_", " ")


def joint_curves(
    time: Array, breaks: Breaks, joints: Sequence[str], values: Array
) -> tuple[Line, ...]:
    """A curve for each of n joints, named after it; values [samples, n]."""
    return tuple(
        curve(time, breaks, short_name(joint), values[:, j], joint=j)
        for j, joint in enumerate(joints)
    )


def curve(
    time: Array,
    breaks: Breaks,
    label: str,
    values: Array,
    *,
    role: Role = "model",
    joint: int | None = None,
    half_width: Array | None = None,
) -> Line:
    """A curve of values over time, all [samples], broken where samples are missing."""
    x, y = break_at(time, values, breaks)
    band = None
    if half_width is not None and np.any(half_width > 0):
        _, band = break_at(time, half_width, breaks)
    return Line(label, x, y, role=role, joint=joint, half_width=band)
