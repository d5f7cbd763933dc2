"""Charts of an optimized cycle: powers, joint speeds, energies of moves, energy over cycle time."""

from __future__ import annotations

import numpy as np

from ur_energy_model.report.charts.chart import BarChart, Bars, Chart, Line, LineChart, Panel, Role
from ur_energy_model.report.charts.curves import Timeline
from ur_energy_model.report.charts.power import stacked_lines
from ur_energy_model.report.optimization import CyclePowers, OptimizationReport
from ur_energy_model.typing import Array

_UNBROKEN = np.zeros(0, dtype=int)
_GROUP = "cycle"


def optimization_charts(report: OptimizationReport) -> list[Chart]:
    """All charts in the order of the page."""
    curve = cycle_time_chart(report)
    first = [power_chart(report)] if curve is None else [power_chart(report), curve]
    return [*first, moves_chart(report), speed_chart(report)]


def power_chart(report: OptimizationReport) -> LineChart:
    """Power of standby, drivers and joints over the cycle, before and after."""
    panels = (
        _stacked(report, report.before, "as recorded", report.optimized.energy),
        _stacked(report, report.after, "as typed", report.optimized.typed_energy),
    )
    return LineChart(
        key="cycle_power",
        title="Power over the cycle",
        caption="Predicted electrical power of standby, drivers and each joint, stacked, and the "
        "total at the supply. Joints that feed power back lower the total below the top.",
        x_label="time [s]",
        y_label="power [W]",
        panels=panels,
        columns=1,
        common_y=True,
        group=_GROUP,
    )


def _stacked(report: OptimizationReport, powers: CyclePowers, title: str, energy: float) -> Panel:
    timeline = Timeline(powers.time, _UNBROKEN)
    lines = stacked_lines(
        timeline, powers.standby, powers.driver, powers.electrical, report.joint_names
    )
    lines.append(timeline.curve("total", powers.total, role="truth"))
    peak = float(powers.total.max())
    return Panel(title, tuple(lines), note=f"{energy:.0f} J, peak {peak:.0f} W")


def cycle_time_chart(report: OptimizationReport) -> LineChart | None:
    """Energy of a cycle over its duration: the optimum, speed scaling, and where the cycle is.

    None if the curve of least energy was not computed.
    """
    found = report.optimized
    if found.pareto is None or report.scaled is None:
        return None
    lines = [
        Line("least energy", found.pareto[:, 0], found.pareto[:, 1]),
        Line("speed scaling", report.scaled[:, 0], report.scaled[:, 1], "measured"),
    ]
    lines += [
        _point("as recorded", found.cycle.duration, found.energy, "truth"),
        _point(
            "as fast as possible", found.time_optimal_duration, found.time_optimal_energy, "aside"
        ),
        _point("as typed", found.typed_duration, found.typed_energy, "model"),
    ]
    return LineChart(
        key="cycle_time",
        title="Energy and cycle time",
        caption="Energy of one cycle at the supply over its duration. Speed scaling is the "
        "recorded motion slowed down evenly to the new cycle time, without waiting.",
        x_label="cycle time [s]",
        y_label="energy of a cycle [J]",
        panels=(Panel("", tuple(lines)),),
        columns=1,
    )


def _point(label: str, x: float, y: float, role: Role) -> Line:
    return Line(label, np.array([x]), np.array([y]), role, points=True)


def moves_chart(report: OptimizationReport) -> BarChart:
    """Energy of each move: as recorded, as typed, and as set points."""
    moves = report.optimized.moves
    bars = [
        Bars("as recorded", np.array([move.move.energy for move in moves]), role="measured"),
        Bars("as typed", np.array([move.typed_energy for move in moves])),
        Bars("as set points", np.array([move.energy for move in moves]), role="aside"),
    ]
    return BarChart(
        key="moves",
        title="Energy of each move",
        caption="A longer move includes standby power for longer; the waits between the moves are "
        "shorter by the same time.",
        y_label="energy [J]",
        categories=tuple(f"move {number}" for number in range(1, len(moves) + 1)),
        joints=(None,) * len(moves),
        bars=tuple(bars),
    )


def speed_chart(report: OptimizationReport) -> LineChart:
    """Joint speeds before and after."""
    panels = [
        Panel(
            name,
            (
                _line(
                    "as recorded", report.before, _shown(report.before.qd[:, j]), "measured", None
                ),
                _line("as typed", report.after, _shown(report.after.qd[:, j]), "model", j),
            ),
            joint=j,
        )
        for j, name in enumerate(report.joint_names)
    ]
    return LineChart(
        key="joint_speeds",
        title="Joint speeds",
        caption="The path of every move stays as recorded; only its timing changes.",
        x_label="time [s]",
        y_label="speed [rad/s]",
        panels=tuple(panels),
        group=_GROUP,
    )


def _line(label: str, powers: CyclePowers, values: Array, role: Role, joint: int | None) -> Line:
    return Timeline(powers.time, _UNBROKEN).curve(label, values, role=role, joint=joint)


def _shown(speed: Array) -> Array:
    """Joint speeds [k] without what no one can see, so that a joint at rest is a flat line."""
    return np.asarray(np.round(speed, 3) + 0.0)
