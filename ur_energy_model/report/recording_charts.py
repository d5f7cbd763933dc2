"""All charts of one recording: motion, torque, current, friction, power.

Figure numbers in captions: S0 is Clochiatti et al., Robotica 2024.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ur_energy_model.errors import unsigned_zeros
from ur_energy_model.report.analysis import Analysis, gap_indices
from ur_energy_model.report.chart import (
    BOX,
    BarChart,
    Bars,
    BoxChart,
    Chart,
    Line,
    LineChart,
    Panel,
    Timeline,
)
from ur_energy_model.typing import Array, Mask

S0 = "Clochiatti et al. 2024"
SMALL = 0.001
"""Smaller RMS errors are not shown as numbers [A, N m]."""
FRICTION_POINTS = 800
"""Points per joint in the friction figure."""


def _over_time(
    analysis: Analysis, panels: Sequence[Panel], columns: int = 1, **texts: Any
) -> LineChart:
    """A chart that zooms together with the recording's other charts over time."""
    return LineChart(
        x_label="time [s]",
        panels=tuple(panels),
        columns=columns,
        group=analysis.label,
        focus=analysis.focus,
        **texts,
    )


# The motion: joints over time, the flange's path, temperatures.


def motion_chart(analysis: Analysis) -> LineChart:
    """Joint positions, speeds and accelerations and the flange's speed over time (S0 Figs. 2-3)."""
    motion = analysis.current
    timeline = Timeline(motion.time, motion.breaks)
    panels = [
        Panel(
            name.capitalize(),
            timeline.curves(analysis.joint_names, values),
            y_label=f"{name} [{unit}]",
        )
        for name, unit, values in (
            ("position", "rad", motion.q),
            ("speed", "rad/s", motion.qd),
            ("acceleration", "rad/s²", motion.qdd),
        )
    ]
    flange = Timeline(analysis.flange_time, gap_indices(analysis.flange_time))
    tool = flange.curve("flange", analysis.flange_speed, "measured")
    title = "Speed of the flange (TCP without tool)"
    return _over_time(
        analysis,
        [*panels, Panel(title, (tool,), y_label="speed [m/s]")],
        key="motion",
        title="The motion",
        caption=f"Joint positions, speeds and accelerations, and the speed of the flange ({S0}, "
        "Figs. 2-3).",
    )


def path_chart(analysis: Analysis) -> LineChart:
    """The flange's path from above, from the front and from the side (S0 Fig. 4)."""
    path = analysis.flange
    return LineChart(
        key="path",
        title="Path of the flange",
        caption=f"Path in the base frame, in metres ({S0}, Fig. 4).",
        x_label="[m]",
        y_label="[m]",
        panels=tuple(
            Panel(
                f"{title}: {'xyz'[i]}, {'xyz'[k]}",
                (
                    Line("path", path[:, i], path[:, k]),
                    Line("start", path[:1, i], path[:1, k], points=True),
                ),
                y_label=f"{'xyz'[k]} [m]",
            )
            for title, i, k in (
                ("From above", 0, 1),
                ("From the front", 0, 2),
                ("From the side", 1, 2),
            )
        ),
        equal=True,
    )


def temperature_chart(analysis: Analysis) -> LineChart | None:
    """Joint temperatures over time; None if they were not recorded."""
    motion = analysis.current
    if not np.isfinite(motion.temperature).any():
        return None
    timeline = Timeline(motion.time, motion.breaks)
    return LineChart(
        key="temperature",
        title="Joint temperatures",
        caption="Friction decreases as a joint warms up; the model holds for the temperatures of "
        "its recordings.",
        x_label="time [s]",
        y_label="temperature [°C]",
        panels=(Panel("", timeline.curves(analysis.joint_names, motion.temperature)),),
        columns=1,
    )


# Power and energy.


def stack_chart(analysis: Analysis) -> LineChart:
    """Power of standby, drivers and joints over time, stacked."""
    powers, line = analysis.powers, ""
    timeline = Timeline(powers.time, powers.breaks)
    lines = timeline.stack(powers.standby, powers.driver, powers.electrical, analysis.joint_names)
    if powers.bus is not None:
        lines.append(timeline.curve("measured", powers.bus, "truth"))
        line = "; the line is the power measured at the bus"
    return _over_time(
        analysis,
        [Panel("", tuple(lines))],
        key="power_stack",
        title="Power consumption over time",
        caption=f"Electrical power of standby, drivers and each joint, stacked{line}. Joints that "
        "feed power back lower the total below the top.",
        y_label="power [W]",
    )


def energy_split_chart(analysis: Analysis, truth: Array | None = None) -> BarChart:
    """Energy of each joint and of the other parts of the arm.

    `truth` is the true electrical energy of each joint in a simulation [joints], J, if known.
    """
    powers = analysis.powers
    names = ("drivers", "standby", "regeneration")
    rest = [powers.driver_energy, powers.standby_energy, powers.regeneration_energy]
    no_joint = [np.nan] * len(names)
    bars = [
        Bars(
            "electrical",
            np.round([*powers.electrical_energy, *rest], 3),
            half_width=np.array([*powers.energy_half_width, *no_joint]),
        ),
        Bars("mechanical", np.array([*powers.mechanical_energy, *no_joint]), role="aside"),
    ]
    if truth is not None:
        bars.append(Bars("true electrical", np.array([*truth, *no_joint]), role="truth"))
    return BarChart(
        key="energy_split",
        title="Energy by consumer",
        caption="Energy over the whole recording with 95 % intervals; drivers and standby belong "
        "to no joint; regeneration is what joints give back and the supply cannot take.",
        y_label="energy [J]",
        categories=(*analysis.joint_names, *names),
        joints=(*range(len(analysis.joint_names)), *(None for _ in names)),
        bars=tuple(bars),
    )


def bus_chart(analysis: Analysis) -> LineChart | None:
    """Measured and modelled power of the whole arm, and their difference (S2 Figs. 4-5)."""
    powers = analysis.powers
    if powers.bus is None:
        return None
    timeline = Timeline(powers.time, powers.breaks)
    error = powers.total - powers.bus
    rmse, mean = float(np.sqrt(np.nanmean(error**2))), float(np.nanmean(error))
    curves = (
        timeline.curve("measured", powers.bus, "measured"),
        timeline.curve("model", powers.total, half_width=powers.total_half_width),
    )
    return _over_time(
        analysis,
        [
            Panel("Power at the supply", curves, note=f"RMSE {rmse:.2f} W"),
            Panel(
                "Model minus measured",
                (timeline.curve("model minus measured", error),),
                note=unsigned_zeros(f"mean {mean:+.2f} W").replace("-", "−"),
                y_label="difference [W]",
            ),
        ],
        key="bus_power",
        title="Power of the whole arm: measured and modelled",
        caption="Bus voltage times current, and the model's total of joints, drivers and standby "
        "with its 95 % band; below it the difference (Heredia et al., EcBot, Figs. 4-5).",
        y_label="power [W]",
    )


def power_chart(analysis: Analysis) -> LineChart:
    """Electrical and mechanical power per joint (S0 Figs. 14-15)."""
    powers = analysis.powers
    timeline = Timeline(powers.time, powers.breaks)
    panels = []
    for j, joint in enumerate(analysis.joint_names):
        electrical, half_width = powers.electrical[:, j], powers.electrical_half_width[:, j]
        lines = (
            timeline.curve("mechanical", powers.mechanical[:, j], "measured"),
            timeline.curve("electrical", electrical, joint=j, half_width=half_width),
        )
        panels.append(Panel(joint, lines, j, f"peak {np.nanmax(electrical):.0f} W"))
    return _over_time(
        analysis,
        panels,
        columns=3,
        key="power",
        title="Power of each joint",
        caption="Electrical power from measured currents, with its 95 % band, and the mechanical "
        f"power at the motor shaft ({S0}, Figs. 14-15). Below zero the joint feeds power back.",
        y_label="power [W]",
    )


def energy_chart(analysis: Analysis) -> LineChart:
    """Electrical energy of each joint over time (S0 Figs. 14-15)."""
    timeline = Timeline(analysis.powers.time, analysis.powers.breaks)
    return _over_time(
        analysis,
        [Panel("", timeline.curves(analysis.joint_names, analysis.powers.energy))],
        key="energy",
        title="Energy of each joint",
        caption=f"Electrical energy since the start ({S0}, Figs. 14-15).",
        y_label="energy [J]",
    )


# Torque, current and friction: recorded beside modelled, and the errors.


def _compared(
    analysis: Analysis,
    timeline: Timeline,
    label: str,
    recorded: Array,
    modelled: Array,
    unit: str,
    counted: Mask | None = None,
) -> list[Panel]:
    """One panel per joint: recorded in grey, the model in the joint's colour [samples, joints].

    The RMS error in its note is that of the samples `counted` [samples, joints]; None for all.
    """
    panels = []
    for j, joint in enumerate(analysis.joint_names):
        error, when = modelled[:, j] - recorded[:, j], ""
        if counted is not None:
            error, when = error[counted[:, j]], " moving"
        error = error[np.isfinite(error)]
        note = "does not move" if when else ""
        if error.size:
            rms = float(np.sqrt(np.mean(error**2)))
            note = f"RMSE{when} {f'{rms:.2g}' if rms >= SMALL else f'< {SMALL:g}'} {unit}"
        lines = (
            timeline.curve(label, recorded[:, j], "measured"),
            timeline.curve("model", modelled[:, j], joint=j),
        )
        panels.append(Panel(joint, lines, j, note))
    return panels


def torque_chart(analysis: Analysis) -> LineChart | None:
    """Recorded against modelled torque (S0 Figs. 8-9)."""
    torque = analysis.torque
    if torque is None:
        return None
    timeline = Timeline(torque.time, torque.breaks)
    return _over_time(
        analysis,
        _compared(analysis, timeline, "recorded", torque.recorded, torque.modelled, "N m"),
        columns=3,
        key="torque",
        title="Torque: recorded and modelled",
        caption="target_moment, from the controller's own frictionless dynamics, and the torque "
        f"of links, payload and motor inertia in the model ({S0}, Figs. 8-9).",
        y_label="torque [N m]",
    )


def current_chart(analysis: Analysis) -> LineChart:
    """Measured against estimated current (S0 Figs. 11-12)."""
    current = analysis.current
    timeline = Timeline(current.time, current.breaks)
    signals = current.measured, current.modelled
    return _over_time(
        analysis,
        _compared(analysis, timeline, "measured", *signals, "A", current.moving),
        columns=3,
        key="current",
        title="Current: measured and estimated",
        caption=f"Measured motor currents (low-pass filtered at {current.cutoff:.1f} Hz), and the "
        "currents that the model predicts from the motion alone, with its friction scaled to the "
        f"first 3 s ({S0}, Figs. 11-12).",
        y_label="current [A]",
    )


def torque_error_chart(analyses: Sequence[Analysis]) -> BoxChart | None:
    """Torque errors by joint (S0 Fig. 10)."""
    return _error_chart(
        [(a, a.torque.modelled - a.torque.recorded) for a in analyses if a.torque is not None],
        key="torque_error",
        title="Torque error",
        caption="Modelled minus recorded torque: median, quartiles, 1st and 99th percentile; dots "
        f"are the largest errors ({S0}, Fig. 10).",
        y_label="error [N m]",
    )


def current_error_chart(analyses: Sequence[Analysis]) -> BoxChart | None:
    """Current errors by joint (S0 Fig. 13)."""
    return _error_chart(
        [(a, a.current.modelled - a.current.measured) for a in analyses],
        key="current_error",
        title="Current error",
        caption="Estimated minus measured current: median, quartiles, 1st and 99th percentile; "
        f"dots are the largest errors ({S0}, Fig. 13).",
        y_label="error [A]",
    )


def _error_chart(entries: Sequence[tuple[Analysis, Array]], **texts: Any) -> BoxChart | None:
    """Box plots of errors [samples, joints]."""
    if not entries:
        return None

    def box(error: Array) -> Array:
        finite = error[np.isfinite(error)]
        return np.percentile(finite, BOX) if finite.size else np.full(len(BOX), np.nan)

    return BoxChart(
        categories=entries[0][0].joint_names,
        series=tuple(analysis.label for analysis, _ in entries),
        boxes=np.array([[box(column) for column in error.T] for _, error in entries]),
        **texts,
    )


def friction_chart(analysis: Analysis) -> LineChart | None:
    """Friction torque against speed: the data and the law; None if no joint moves."""
    current = analysis.current
    panels = []
    for j, joint in enumerate(analysis.joint_names):
        rows = np.flatnonzero(current.moving[:, j])
        if rows.size == 0:
            continue
        rows = rows[:: -(-rows.size // FRICTION_POINTS)]
        speed = current.qd[rows, j]
        data = Line("data", speed, current.friction_measured[rows, j], "measured", points=True)
        law = Line("law", speed, current.friction_modelled[rows, j], joint=j, points=True)
        panels.append(Panel(joint, (data, law), j))
    if not panels:
        return None
    return LineChart(
        key="friction",
        title="Friction",
        caption="Torque of the measured current minus that of links, payload and motor inertia, "
        "joint side, while the joint moves; and the model's law at the same samples. Where the "
        "law depends on load or temperature, its points form a band.",
        x_label="speed [rad/s]",
        y_label="friction [N m]",
        panels=tuple(panels),
    )


def recording_charts(analysis: Analysis, *, true_energy: Array | None = None) -> list[Chart]:
    """All charts that the data of a recording allow, in the order of the report.

    `true_energy` is the electrical energy of each joint in a simulation [joints], J.
    """
    charts = (
        stack_chart(analysis),
        energy_split_chart(analysis, true_energy),
        bus_chart(analysis),
        power_chart(analysis),
        energy_chart(analysis),
        torque_chart(analysis),
        torque_error_chart([analysis]),
        current_chart(analysis),
        current_error_chart([analysis]),
        friction_chart(analysis),
        motion_chart(analysis),
        path_chart(analysis),
        temperature_chart(analysis),
    )
    return [chart for chart in charts if chart is not None]
