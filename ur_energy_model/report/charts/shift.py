"""Charts of a shift: power over time, energy per cycle."""

from __future__ import annotations

import numpy as np

from ur_energy_model.report.charts.chart import BarChart, Bars, Line, LineChart, Panel, Role
from ur_energy_model.report.charts.gaps import break_at
from ur_energy_model.report.shift import Shift
from ur_energy_model.typing import Array

SHOWN_CYCLES = 30


def shift_charts(shift: Shift) -> list[LineChart | BarChart]:
    """Power over the shift, energy by state, energy per cycle."""
    minutes = shift.time / 60

    def curve(label: str, values: Array, role: Role = "model") -> Line:
        x, y = break_at(minutes, values, shift.starts)
        return Line(label, x, y, role)

    lines = [curve("model", shift.power)]
    if np.isfinite(shift.bus).any():
        lines.insert(0, curve("measured", shift.bus, "measured"))
    charts: list[LineChart | BarChart] = [
        LineChart(
            key="shift_power",
            title="Power over the shift",
            caption="Mean power of the whole arm, second by second.",
            x_label="time [min]",
            y_label="power [W]",
            panels=(Panel("", tuple(lines)),),
            columns=1,
            group="shift",
        )
    ]
    if shift.cycles:
        charts.append(_cycle_chart(shift))
    return charts


def _cycle_chart(shift: Shift) -> BarChart:
    """Energy of the latest cycles, motion and idle."""
    latest = shift.cycles[-SHOWN_CYCLES:]
    figures = [cycle.summary(shift.channels) for cycle in latest]
    return BarChart(
        key="cycles",
        title="Energy per cycle",
        caption="Energy while moving and while waiting, by cycle"
        + (
            f"; the last {len(latest)} of {len(shift.cycles)}."
            if len(shift.cycles) > SHOWN_CYCLES
            else "."
        ),
        y_label="energy [J]",
        categories=tuple(f"cycle {cycle.number}" for cycle in latest),
        joints=(None,) * len(latest),
        bars=(
            Bars("moving", np.array([f["motion_energy"] for f in figures])),
            Bars("waiting", np.array([f["idle_energy"] for f in figures]), role="aside"),
        ),
        stacked=True,
    )
