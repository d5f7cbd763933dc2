"""Charts of power and energy.

Figure numbers in captions: S0 is Clochiatti et al., Robotica 2024.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ur_energy_model.report.analysis import Analysis
from ur_energy_model.report.charts.chart import BarChart, Bars, Line, LineChart, Panel, Role
from ur_energy_model.report.charts.curves import S0, Timeline, chart_over_time
from ur_energy_model.terminal_text import unsigned_zeros
from ur_energy_model.typing import Array


def stacked_lines(
    timeline: Timeline,
    standby: Array,
    driver: Array,
    electrical: Array,
    joint_names: Sequence[str],
) -> list[Line]:
    """Areas of standby, drivers and joints upon each other.

    Args:
        timeline: of the samples [n].
        standby: of the whole arm [n], W.
        driver: of the whole arm [n], W.
        electrical: of the joints [n, joints], W; what they feed back is left out.
        joint_names: of the joints.
    """
    layers: list[tuple[str, Array, Role, int | None]] = [
        ("standby", standby, "aside", None),
        ("drivers", driver, "model", None),
    ]
    layers += [
        (joint, np.maximum(electrical[:, j], 0.0), "model", j)
        for j, joint in enumerate(joint_names)
    ]
    lines = []
    base = np.zeros(len(timeline.time))
    for label, values, role, joint in layers:
        top = base + values
        lines.append(timeline.curve(label, top, role=role, joint=joint, base=base))
        base = top
    return lines


def stack_chart(analysis: Analysis) -> LineChart:
    """Power of standby, drivers and joints over time, stacked."""
    powers = analysis.powers
    timeline = Timeline(powers.time, powers.breaks)
    lines = stacked_lines(
        timeline, powers.standby, powers.driver, powers.electrical, analysis.joint_names
    )
    if powers.bus is not None:
        lines.append(timeline.curve("measured", powers.bus, role="truth"))
    return chart_over_time(
        analysis,
        [Panel("", tuple(lines))],
        key="power_stack",
        title="Power consumption over time",
        caption="Electrical power of standby, drivers and each joint, stacked"
        + ("; the line is the power measured at the bus." if powers.bus is not None else ".")
        + " Joints that feed power back lower the total below the top.",
        y_label="power [W]",
        columns=1,
    )


def energy_split_chart(analysis: Analysis, truth: Array | None = None) -> BarChart:
    """Energy of each joint and of the other parts of the arm; beside the true energy, if known.

    Args:
        analysis: of the recording.
        truth: true electrical energy of each joint in a simulation [joints], J.
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
        joints=(*range(analysis.dof), *(None for _ in names)),
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
    return chart_over_time(
        analysis,
        [
            Panel(
                title="Power at the supply",
                lines=(
                    timeline.curve("measured", powers.bus, role="measured"),
                    timeline.curve("model", powers.total, half_width=powers.total_half_width),
                ),
                note=f"RMSE {rmse:.2f} W",
            ),
            Panel(
                title="Model minus measured",
                lines=(timeline.curve("model minus measured", error),),
                note=unsigned_zeros(f"mean {mean:+.2f} W").replace("-", "−"),
                y_label="difference [W]",
            ),
        ],
        key="bus_power",
        title="Power of the whole arm: measured and modelled",
        caption="Bus voltage times current, and the model's total of joints, drivers and standby "
        "with its 95 % band; below it the difference (Heredia et al., EcBot, Figs. 4-5).",
        y_label="power [W]",
        columns=1,
    )


def power_chart(analysis: Analysis) -> LineChart:
    """Electrical and mechanical power per joint (S0 Figs. 14-15)."""
    powers = analysis.powers
    timeline = Timeline(powers.time, powers.breaks)
    panels = []
    for j, joint in enumerate(analysis.joint_names):
        electrical, half_width = powers.electrical[:, j], powers.electrical_half_width[:, j]
        lines = (
            timeline.curve("mechanical", powers.mechanical[:, j], role="measured"),
            timeline.curve("electrical", electrical, joint=j, half_width=half_width),
        )
        note = f"peak {np.nanmax(electrical):.0f} W"
        panels.append(Panel(joint, lines, joint=j, note=note))
    return chart_over_time(
        analysis,
        panels,
        key="power",
        title="Power of each joint",
        caption="Electrical power from measured currents, with its 95 % band, and the mechanical "
        f"power at the motor shaft ({S0}, Figs. 14-15). Below zero the joint feeds power back.",
        y_label="power [W]",
    )


def energy_chart(analysis: Analysis) -> LineChart:
    """Electrical energy of each joint over time (S0 Figs. 14-15)."""
    powers = analysis.powers
    curves = Timeline(powers.time, powers.breaks).joint_curves(analysis.joint_names, powers.energy)
    return chart_over_time(
        analysis,
        [Panel("", curves)],
        key="energy",
        title="Energy of each joint",
        caption=f"Electrical energy since the start ({S0}, Figs. 14-15).",
        y_label="energy [J]",
        columns=1,
    )
