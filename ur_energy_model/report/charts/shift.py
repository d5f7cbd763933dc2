"""Charts of a shift: power over time, energy per cycle."""

from __future__ import annotations

import numpy as np

from ur_energy_model.report.charts.chart import BarChart, Bars, Chart, LineChart, Panel
from ur_energy_model.report.charts.curves import Timeline
from ur_energy_model.report.shift import Shift

SHOWN_CYCLES = 30


def shift_charts(shift: Shift) -> list[Chart]:
    """Power over the shift, and energy per cycle if there are cycles."""
    minutes = Timeline(shift.time / 60, shift.starts)
    lines = [minutes.curve("model", shift.power)]
    if np.isfinite(shift.bus).any():
        lines.insert(0, minutes.curve("measured", shift.bus, role="measured"))
    power = LineChart(
        key="shift_power",
        title="Power over the shift",
        caption="Mean power of the whole arm per second.",
        x_label="time [min]",
        y_label="power [W]",
        panels=(Panel("", tuple(lines)),),
        columns=1,
        group="shift",
    )
    return [power, _cycle_chart(shift)] if shift.cycles else [power]


def _cycle_chart(shift: Shift) -> BarChart:
    """Energy of the latest cycles, in motion and idle."""
    latest = shift.cycles[-SHOWN_CYCLES:]
    count = len(shift.cycles)
    summaries = [cycle.summary(shift.channels) for cycle in latest]
    return BarChart(
        key="cycles",
        title="Energy per cycle",
        caption="Energy while moving and while waiting, by cycle"
        + (f"; the last {len(latest)} of {count}." if count > SHOWN_CYCLES else "."),
        y_label="energy [J]",
        categories=tuple(f"cycle {cycle.number}" for cycle in latest),
        joints=(None,) * len(latest),
        bars=(
            Bars("moving", np.array([s["motion_energy"] for s in summaries])),
            Bars("waiting", np.array([s["idle_energy"] for s in summaries]), role="aside"),
        ),
        stacked=True,
    )
