"""Charts of the motion: joints over time, the flange's path, temperatures."""

from __future__ import annotations

import numpy as np

from ur_energy_model.report.analysis import Analysis
from ur_energy_model.report.charts.chart import Line, LineChart, Panel
from ur_energy_model.report.charts.curves import S0, Timeline, chart_over_time
from ur_energy_model.report.recording_powers import gap_indices


def motion_chart(analysis: Analysis) -> LineChart:
    """Joint positions, speeds and accelerations and the flange's speed over time (S0 Figs. 2-3)."""
    motion = analysis.current
    timeline = Timeline(motion.time, motion.breaks)
    rows = (
        ("position", "rad", motion.q),
        ("speed", "rad/s", motion.qd),
        ("acceleration", "rad/s²", motion.qdd),
    )
    flange = Timeline(analysis.flange_time, gap_indices(analysis.flange_time))
    tool = flange.curve("flange", analysis.flange_speed, role="measured")
    return chart_over_time(
        analysis,
        [
            Panel(
                title=name.capitalize(),
                lines=timeline.joint_curves(analysis.joint_names, values),
                y_label=f"{name} [{unit}]",
            )
            for name, unit, values in rows
        ]
        + [
            Panel(
                title="Speed of the flange (TCP without tool)",
                lines=(tool,),
                y_label="speed [m/s]",
            )
        ],
        key="motion",
        title="The motion",
        caption=f"Joint positions, speeds and accelerations, and the speed of the flange ({S0}, "
        "Figs. 2-3).",
        y_label="",
        columns=1,
    )


def path_chart(analysis: Analysis) -> LineChart:
    """The flange's path from above, from the front and from the side (S0 Fig. 4)."""
    views = (("From above", 0, 1), ("From the front", 0, 2), ("From the side", 1, 2))
    axes = "xyz"
    return LineChart(
        key="path",
        title="Path of the flange",
        caption=f"Path in the base frame, in metres ({S0}, Fig. 4).",
        x_label="[m]",
        y_label="[m]",
        panels=tuple(
            Panel(
                title=f"{title}: {axes[i]}, {axes[k]}",
                lines=(
                    Line("path", analysis.flange[:, i], analysis.flange[:, k]),
                    Line("start", analysis.flange[:1, i], analysis.flange[:1, k], points=True),
                ),
                y_label=f"{axes[k]} [m]",
            )
            for title, i, k in views
        ),
        equal=True,
    )


def temperature_chart(analysis: Analysis) -> LineChart | None:
    """Joint temperatures over time; None if they were not recorded."""
    motion = analysis.current
    if not np.isfinite(motion.temperature).any():
        return None
    curves = Timeline(motion.time, motion.breaks).joint_curves(
        analysis.joint_names, motion.temperature
    )
    return LineChart(
        key="temperature",
        title="Joint temperatures",
        caption="Friction decreases as a joint warms up; the model holds for the temperatures of "
        "its recordings.",
        x_label="time [s]",
        y_label="temperature [°C]",
        panels=(Panel("", curves),),
        columns=1,
    )
