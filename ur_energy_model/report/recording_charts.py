# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""All charts of one recording: motion, torque, current, friction, power.

Figure numbers in captions: S0 is Clochiatti et al., Robotica 2024.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil
from typing import Any

import numpy as np

from ur_energy_model.energy.meter import CONFIDENCE
from ur_energy_model.errors import unsigned_zeros
from ur_energy_model.report.analysis import (
    Analysis,
    CurrentComparison,
    TorqueComparison,
    gap_indices,
)
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
SMALL = 0.001  # smaller RMS errors are not shown as numbers [A, N m]
FRICTION_POINTS = 800  # points per joint in the friction figure


def _over_time(
    analysis: Analysis,
    key: str,
    title: str,
    caption: str,
    panels: Sequence[Panel],
    **more: Any,
) -> LineChart:
    """A chart that zooms together with the recording's other charts over time.

    Args:
        analysis: analysis of the recording.
        key: key of the chart.
        title: heading.
        caption: explanation of the chart.
        panels: panels in reading order.
        more: further attributes of `LineChart`.
    """
    return LineChart(
        key=key,
        title=title,
        caption=caption,
        x_label="time [s]",
        panels=panels,
        group=analysis.label,
        focus=analysis.focus,
        **more,
    )


# The motion: joints over time, the flange's path, temperatures.


def motion_chart(analysis: Analysis) -> LineChart:
    """Joint positions, speeds and accelerations and the flange's speed over time (S0 Figs. 2-3)."""
    motion = analysis.current
    joints = analysis.joint_names
    timeline = Timeline(analysis.flange_time, gap_indices(analysis.flange_time))
    flange = timeline.curve("flange", analysis.flange_speed, "measured")
    positions = motion.curves(joints, motion.q)
    speeds = motion.curves(joints, motion.qd)
    accelerations = motion.curves(joints, motion.qdd)
    panels = [
        Panel("Position", positions, y_label="position [rad]"),
        Panel("Speed", speeds, y_label="speed [rad/s]"),
        Panel("Acceleration", accelerations, y_label="acceleration [rad/s²]"),
        Panel("Speed of the flange (TCP without tool)", (flange,), y_label="speed [m/s]"),
    ]
    caption = (
        "Joint positions, speeds and accelerations, and the speed of the flange "
        f"({S0}, Figs. 2-3)."
    )
    return _over_time(analysis, "motion", "The motion", caption, panels, columns=1)


def path_chart(analysis: Analysis) -> LineChart:
    """The flange's path from above, from the front and from the side (S0 Fig. 4)."""
    path = dict(zip("xyz", analysis.flange.T, strict=True))
    panels = []
    for title, right, up in (
        ("From above", "x", "y"),
        ("From the front", "x", "z"),
        ("From the side", "y", "z"),
    ):
        lines = (
            Line("path", path[right], path[up]),
            Line("start", path[right][:1], path[up][:1], points=True),
        )
        panels.append(Panel(f"{title}: {right}, {up}", lines, y_label=f"{up} [m]"))
    return LineChart(
        key="path",
        title="Path of the flange",
        caption=f"Path in the base frame, in metres ({S0}, Fig. 4).",
        x_label="[m]",
        y_label="[m]",
        panels=panels,
        equal=True,
    )


def temperature_chart(analysis: Analysis) -> LineChart | None:
    """Joint temperatures over time; None if they were not recorded."""
    motion = analysis.current
    if not np.isfinite(motion.temperature).any():
        return None
    return LineChart(
        key="temperature",
        title="Joint temperatures",
        caption="Friction decreases as a joint warms up; the model holds for the temperatures of "
        "its recordings.",
        x_label="time [s]",
        y_label="temperature [°C]",
        panels=(Panel("", motion.curves(analysis.joint_names, motion.temperature)),),
    )


# Power and energy.


def stack_chart(analysis: Analysis) -> LineChart:
    """Power of standby, drivers and joints over time, stacked, and the total."""
    powers = analysis.powers
    lines = powers.stack(
        powers.standby, powers.driver, powers.electrical, analysis.joint_names
    )
    lines.append(powers.curve("total", powers.total, "truth"))
    source = "the sum of the modelled parts"
    if powers.measured.any():
        source = "bus voltage times current where that is measured"
    rest = [powers.curve("regeneration", powers.regeneration, "aside")]
    rest_title = "Regeneration"
    if powers.measured.any():
        rest_title = "Regeneration and unexplained"
        unexplained = np.where(powers.measured, powers.unexplained, np.nan)
        rest.append(powers.curve("unexplained", unexplained))
    return _over_time(
        analysis,
        "power_stack",
        "Power consumption over time",
        "Modelled electrical power of standby, drivers and each joint, stacked; the line is the "
        f"total: {source}. Joints that feed power back lower it below the top. Regeneration is "
        "what the supply cannot take back; with what is unexplained it makes the total.",
        [Panel("", lines), Panel(rest_title, rest)],
        columns=1,
        y_label="power [W]",
    )


def energy_split_chart(analysis: Analysis, truth: Array | None = None) -> BarChart:
    """Energy of each joint and of the other parts of the arm, which sum to the total.

    Args:
        analysis: analysis of a recording.
        truth: true electrical energy of each joint in a simulation [joints], J; None if it is
            not known.
    """
    powers = analysis.powers
    rest = {
        "drivers": powers.driver_energy,
        "standby": powers.standby_energy,
        "regeneration": powers.regeneration_energy,
    }
    note = "regeneration is what joints give back and the supply cannot take"
    if powers.measured.any():
        rest["unexplained"] = powers.unexplained_energy
        note += "; unexplained is what the model lacks of the measured energy"

    nothing = np.full(len(rest), np.nan)  # values of quantities that only joints have
    electrical = np.round([*powers.electrical_energy, *rest.values()], 3)
    half_width = np.append(powers.energy_half_width, nothing)
    mechanical = np.append(powers.mechanical_energy, nothing)
    bars = [
        Bars("electrical", electrical, half_width=half_width),
        Bars("mechanical", mechanical, role="aside"),
    ]
    if truth is not None:
        bars.append(Bars("true electrical", np.append(truth, nothing), role="truth"))
    return BarChart(
        key="energy_split",
        title="Energy by consumer",
        caption="Energy over the whole recording with 95 % intervals; drivers and standby belong "
        f"to no joint; {note}.",
        y_label="energy [J]",
        categories=(*analysis.joint_names, *rest),
        joints=(*range(len(analysis.joint_names)), *[None] * len(rest)),
        bars=bars,
    )


def bus_chart(analysis: Analysis) -> LineChart | None:
    """Measured and modelled power of the whole arm, and their difference (EcBot, Figs. 4-5).

    Args:
        analysis: analysis of the recording.

    Returns:
        The chart; None where bus power was not recorded.
    """
    powers = analysis.powers
    if not powers.measured.any():
        return None
    measured = np.where(powers.measured, powers.total, np.nan)
    unexplained = np.where(powers.measured, powers.unexplained, np.nan)
    rmse = float(np.sqrt(np.nanmean(unexplained**2)))
    mean = float(np.nanmean(unexplained))
    curves = (
        powers.curve("measured", measured, "measured"),
        powers.curve("model", powers.model, half_width=powers.model_half_width),
    )
    return _over_time(
        analysis,
        "bus_power",
        "Power of the whole arm: measured and modelled",
        "Bus voltage times current, and the sum of the modelled parts with its 95 % band; below it "
        "what the model leaves unexplained (Heredia et al., EcBot, Figs. 4-5).",
        [
            Panel("Power at the supply", curves, note=f"RMSE {rmse:.2f} W"),
            Panel(
                "Unexplained: measured minus model",
                (powers.curve("unexplained", unexplained),),
                note=unsigned_zeros(f"mean {mean:+.2f} W").replace("-", "−"),
                y_label="difference [W]",
            ),
        ],
        columns=1,
        y_label="power [W]",
    )


def power_chart(analysis: Analysis) -> LineChart:
    """Electrical and mechanical power per joint (S0 Figs. 14-15)."""
    powers = analysis.powers
    panels = []
    for j, joint in enumerate(analysis.joint_names):
        electrical = powers.electrical[:, j]
        half_width = powers.electrical_half_width[:, j]
        lines = (
            powers.curve("mechanical", powers.mechanical[:, j], "measured"),
            powers.curve("electrical", electrical, joint=j, half_width=half_width),
        )
        panels.append(Panel(joint, lines, j, f"peak {np.nanmax(electrical):.0f} W"))
    return _over_time(
        analysis,
        "power",
        "Power of each joint",
        "Electrical power from measured currents, with its 95 % band, and the mechanical power at "
        f"the motor shaft ({S0}, Figs. 14-15). Below zero the joint feeds power back.",
        panels,
        y_label="power [W]",
    )


def energy_chart(analysis: Analysis) -> LineChart:
    """Electrical energy of each joint over time (S0 Figs. 14-15)."""
    powers = analysis.powers
    title = "Energy of each joint"
    panel = Panel("", powers.curves(analysis.joint_names, powers.energy))
    caption = f"Electrical energy since the start ({S0}, Figs. 14-15)."
    return _over_time(analysis, "energy", title, caption, [panel], y_label="energy [J]")


def joint_power_chart(joints: Sequence[Mapping[str, Any]], label: str) -> BarChart | None:
    """Modelled and measured energy of each joint.

    Args:
        joints: entry `joint_power` of the METRICS of a recording.
        label: short name of the recording.

    Returns:
        The chart; None where the energy of joints is not measured.
    """
    if not joints or "reason" in joints[0]:
        return None

    def column(name: str) -> Array:
        """Values of all joints [n]."""
        return np.array([row[name] for row in joints], dtype=float)

    bars = (
        Bars("modelled", column("modelled_J"), CONFIDENCE * column("modelled_std_J")),
        Bars(
            "measured",
            column("measured_J"),
            CONFIDENCE * column("measured_std_J"),
            "measured",
        ),
    )
    return BarChart(
        key="joint_power",
        title=f"Energy of the joints: modelled and measured, {label}",
        caption="Energy that each motor takes with its drive while the arm moves, with 95 % "
        "intervals: from measured currents with the model, and from the voltages at the joints, "
        "whose drop along the cable shows the current of each joint.",
        y_label="energy [J]",
        categories=[row["joint"] for row in joints],
        joints=tuple(range(len(joints))),
        bars=bars,
    )


# Torque, current and friction: recorded beside modelled, and the errors.


def _compared(
    analysis: Analysis,
    signals: TorqueComparison | CurrentComparison,
    label: str,
    recorded: Array,
    unit: str,
    counted: Mask | None = None,
) -> list[Panel]:
    """One panel per joint: recorded in grey, the model in the joint's colour.

    Args:
        analysis: analysis of the recording.
        signals: signals with the modelled values.
        label: label of the recorded curve.
        recorded: values [samples, joints].
        unit: unit of the values.
        counted: samples of the RMS error in the panel's note [samples, joints], those in
            which the joint moves; None for all.
    """
    panels = []
    for j, joint in enumerate(analysis.joint_names):
        error = signals.modelled[:, j] - recorded[:, j]
        when = ""
        if counted is not None:
            error = error[counted[:, j]]
            when = " moving"
        error = error[np.isfinite(error)]
        note = "does not move" if when else ""
        if error.size:
            rms = float(np.sqrt(np.mean(error**2)))
            figure = f"{rms:.2g}" if rms >= SMALL else f"< {SMALL:g}"
            note = f"RMSE{when} {figure} {unit}"
        lines = (
            signals.curve(label, recorded[:, j], "measured"),
            signals.curve("model", signals.modelled[:, j], joint=j),
        )
        panels.append(Panel(joint, lines, j, note))
    return panels


def torque_chart(analysis: Analysis) -> LineChart | None:
    """Recorded against modelled torque (S0 Figs. 8-9)."""
    torque = analysis.torque
    if torque is None:
        return None
    return _over_time(
        analysis,
        "torque",
        "Torque: recorded and modelled",
        "target_moment, from the controller's own frictionless dynamics, and the torque of links, "
        f"payload and motor inertia in the model ({S0}, Figs. 8-9).",
        _compared(analysis, torque, "recorded", torque.recorded, "N m"),
        y_label="torque [N m]",
    )


def current_chart(analysis: Analysis) -> LineChart:
    """Measured against estimated current (S0 Figs. 11-12)."""
    current = analysis.current
    return _over_time(
        analysis,
        "current",
        "Current: measured and estimated",
        f"Measured motor currents (low-pass filtered at {current.cutoff:.1f} Hz), and the currents "
        "that the model predicts from the motion alone, with its friction scaled to the first 3 s "
        f"({S0}, Figs. 11-12).",
        _compared(analysis, current, "measured", current.measured, "A", current.moving),
        y_label="current [A]",
    )


def torque_error_chart(analyses: Sequence[Analysis]) -> BoxChart | None:
    """Torque errors by joint (S0 Fig. 10)."""
    errors = []
    for analysis in analyses:
        torque = analysis.torque
        if torque is not None:
            errors.append((analysis, torque.modelled - torque.recorded))
    return _error_chart(errors, "torque", "Modelled minus recorded", "N m", "Fig. 10")


def current_error_chart(analyses: Sequence[Analysis]) -> BoxChart | None:
    """Current errors by joint (S0 Fig. 13)."""
    errors = []
    for analysis in analyses:
        current = analysis.current
        errors.append((analysis, current.modelled - current.measured))
    return _error_chart(errors, "current", "Estimated minus measured", "A", "Fig. 13")


def _error_chart(
    entries: Sequence[tuple[Analysis, Array]],
    what: str,
    difference: str,
    unit: str,
    figure: str,
) -> BoxChart | None:
    """Box plots of errors.

    Args:
        entries: recordings with their errors [samples, joints].
        what: signal, also first part of the chart's key.
        difference: sign of the errors, in words.
        unit: unit of the errors.
        figure: number of the figure in S0.

    Returns:
        The chart; None without recordings.
    """
    if not entries:
        return None
    names = entries[0][0].joint_names
    boxes = np.full((len(entries), len(names), len(BOX)), np.nan)
    for k, (_, error) in enumerate(entries):
        for j, column in enumerate(error.T):
            finite = column[np.isfinite(column)]
            if finite.size:
                boxes[k, j] = np.percentile(finite, BOX)
    return BoxChart(
        key=f"{what}_error",
        title=f"{what.capitalize()} error",
        caption=f"{difference} {what}: median, quartiles, 1st and 99th percentile; dots are the "
        f"largest errors ({S0}, {figure}).",
        y_label=f"error [{unit}]",
        categories=names,
        series=[analysis.label for analysis, _ in entries],
        boxes=boxes,
    )


def friction_chart(analysis: Analysis) -> LineChart | None:
    """Friction torque against speed, joint side: the data and the law.

    Returns:
        The chart; None if no joint moves.
    """
    current = analysis.current
    panels = []
    for j, joint in enumerate(analysis.joint_names):
        rows = np.flatnonzero(current.moving[:, j])
        if rows.size == 0:
            continue
        rows = rows[:: ceil(rows.size / FRICTION_POINTS)]
        speed = current.qd[rows, j]
        data = Line(
            "data", speed, current.friction_measured[rows, j], "measured", points=True
        )
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
        panels=panels,
    )


def recording_charts(
    analysis: Analysis,
    *,
    true_energy: Array | None = None,
    joint_power: Sequence[Mapping[str, Any]] = (),
) -> list[Chart]:
    """All charts that the data of a recording allow, in the order of the report.

    Args:
        analysis: analysis of the recording.
        true_energy: electrical energy of each joint in a simulation [joints], J; None if it
            is not known.
        joint_power: entry `joint_power` of the recording's METRICS.
    """
    charts = (
        stack_chart(analysis),
        energy_split_chart(analysis, true_energy),
        joint_power_chart(joint_power, analysis.label),
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
