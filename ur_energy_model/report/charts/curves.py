"""Curves over time, broken at gaps, and charts of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.report.analysis import Analysis
from ur_energy_model.report.charts.chart import Line, LineChart, Panel, Role
from ur_energy_model.report.recording_powers import Breaks
from ur_energy_model.typing import Array

S0 = "Clochiatti et al. 2024"


@dataclass(frozen=True)
class Timeline:
    """Times of samples, as the x axis of curves.

    Attributes:
        time: [n].
        breaks: indices of samples after a gap.
    """

    time: Array
    breaks: Breaks

    def curve(
        self,
        label: str,
        values: Array,
        *,
        role: Role = "model",
        joint: int | None = None,
        half_width: Array | None = None,
        base: Array | None = None,
    ) -> Line:
        """A curve of values [n]; arguments as in `Line`."""
        x, y = break_at(self.time, values, self.breaks)
        band = None
        if half_width is not None and np.any(half_width > 0):
            _, band = break_at(self.time, half_width, self.breaks)
        low = None if base is None else break_at(self.time, base, self.breaks)[1]
        return Line(label, x, y, role, joint, half_width=band, base=low)

    def joint_curves(self, joints: Sequence[str], values: Array) -> tuple[Line, ...]:
        """A curve for each joint, labelled with its name; values [n, joints]."""
        return tuple(self.curve(joint, values[:, j], joint=j) for j, joint in enumerate(joints))


def chart_over_time(
    analysis: Analysis,
    panels: Sequence[Panel],
    *,
    key: str,
    title: str,
    caption: str,
    y_label: str,
    columns: int = 3,
) -> LineChart:
    """A chart over the time of a recording; it zooms together with the recording's other charts."""
    return LineChart(
        key=key,
        title=title,
        caption=caption,
        x_label="time [s]",
        y_label=y_label,
        panels=tuple(panels),
        columns=columns,
        group=analysis.label,
        focus=analysis.focus,
    )


def break_at(time: Array, values: Array, breaks: NDArray[np.int_]) -> tuple[Array, Array]:
    """Time and values [samples] with NaN inserted before each index in `breaks` [gaps].

    Curves are thus not drawn across gaps.
    """
    if len(breaks) == 0:
        return time, values
    return np.insert(time, breaks, time[breaks]), np.insert(values, breaks, np.nan)
