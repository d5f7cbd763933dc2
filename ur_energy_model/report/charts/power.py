"""Charts of power and energy.

Figure numbers in captions: S0 is Clochiatti et al., Robotica 2024.
"""

from __future__ import annotations

import numpy as np

from ur_energy_model.report.analysis import Analysis
from ur_energy_model.report.charts.chart import BarChart, Bars, Line, LineChart, Panel, Role
from ur_energy_model.report.charts.curves import S0, curve, joint_curves, short_name
from ur_energy_model.report.charts.gaps import break_at
from ur_energy_model.typing import Array


def stack_chart(analysis: Analysis) -> LineChart:
    """What takes the power at every moment: standby, drivers and joints on top of each other."""
    powers = analysis.powers
    layers: list[tuple[str, Array, Role, int | None]] = [
        ("standby", powers.standby, "aside", None),
        ("drivers", powers.driver, "model", None),
    ]
    layers += [
        (short_name(joint), np.maximum(powers.electrical[:, j], 0.0), "model", j)
        for j, joint in enumerate(analysis.joint_names)
    ]
    lines = []
    base = np.zeros(len(powers.time))
    for label, values, role, joint in layers:
        top = base + values
        x, y = break_at(powers.time, top, powers.breaks)
        _, low = break_at(powers.time, base, powers.breaks)
        lines.append(Line(label, x, y, role, joint, base=low))
        base = top
    if powers.bus is not None:
        lines.append(curve(powers.time, powers.breaks, "measured", powers.bus, role="truth"))
    return LineChart(
        key="power_stack",
        title="What takes the power, moment by moment",
        caption="Electrical power of standby, drivers and each joint, on top of each other"
        + ("; the line is the power measured at the bus." if powers.bus is not None else ".")
        + " Joints that feed power back lower the total below the top.",
        x_label="time [s]",
        y_label="power [W]",
        panels=(Panel("", tuple(lines)),),
        columns=1,
        group=analysis.label,
        focus=analysis.focus,
    )


def energy_split_chart(analysis: Analysis, truth: Array | None = None) -> BarChart:
    """Where the electrical energy went: each joint, drivers and standby; truth if known.

    Args:
        analysis: of the recording.
        truth: a simulation's true electrical energy of each joint [joints], J.
    """
    powers = analysis.powers
    rest = [powers.driver_energy, powers.standby_energy]
    bars = [
        Bars(
            "electrical",
            np.array([*powers.electrical_energy, *rest]),
            half_width=np.array([*powers.energy_half_width, np.nan, np.nan]),
        ),
        Bars("mechanical", np.array([*powers.mechanical_energy, np.nan, np.nan]), role="aside"),
    ]
    if truth is not None:
        bars.append(Bars("true electrical", np.array([*truth, np.nan, np.nan]), role="truth"))
    return BarChart(
        key="energy_split",
        title="Where the energy went",
        caption="Energy over the whole recording with 95 % intervals; drivers and standby belong "
        "to no joint.",
        y_label="energy [J]",
        categories=(*(short_name(name) for name in analysis.joint_names), "drivers", "standby"),
        joints=(*range(analysis.dof), None, None),
        bars=tuple(bars),
    )


def bus_chart(analysis: Analysis) -> LineChart | None:
    """Measured and modelled power of the whole arm, and what is between them (S2 Figs. 4-5)."""
    powers = analysis.powers
    if powers.bus is None:
        return None
    error = powers.total - powers.bus
    rmse = float(np.sqrt(np.nanmean(error**2)))
    return LineChart(
        key="bus_power",
        title="Power of the whole arm: measured and modelled",
        caption="Bus voltage times current, and the model's total of joints, drivers and standby "
        "with its 95 % band; below it the difference (Heredia et al., EcBot, Figs. 4-5).",
        x_label="time [s]",
        y_label="power [W]",
        panels=(
            Panel(
                title="Power at the supply",
                lines=(
                    curve(powers.time, powers.breaks, "measured", powers.bus, role="measured"),
                    curve(
                        powers.time,
                        powers.breaks,
                        "model",
                        powers.total,
                        half_width=powers.total_half_width,
                    ),
                ),
                note=f"RMSE {rmse:.2f} W",
            ),
            Panel(
                title="Model minus measured",
                lines=(curve(powers.time, powers.breaks, "model minus measured", error),),
                note=f"mean {round(float(np.nanmean(error)), 2) + 0.0:+.2f} W".replace("-", "−"),
                y_label="difference [W]",
            ),
        ),
        columns=1,
        group=analysis.label,
        focus=analysis.focus,
    )


def power_chart(analysis: Analysis) -> LineChart:
    """Electrical and mechanical power per joint (S0 Figs. 14-15)."""
    powers = analysis.powers
    return LineChart(
        key="power",
        title="Power of each joint",
        caption="Electrical power from measured currents, with its 95 % band, and the mechanical "
        f"power at the motor shaft ({S0}, Figs. 14-15). Below zero the joint feeds power back.",
        x_label="time [s]",
        y_label="power [W]",
        panels=tuple(
            Panel(
                title=short_name(joint),
                lines=(
                    curve(
                        powers.time,
                        powers.breaks,
                        "mechanical",
                        powers.mechanical[:, j],
                        role="measured",
                    ),
                    curve(
                        powers.time,
                        powers.breaks,
                        "electrical",
                        powers.electrical[:, j],
                        joint=j,
                        half_width=powers.electrical_half_width[:, j],
                    ),
                ),
                joint=j,
                note=f"peak {np.nanmax(powers.electrical[:, j]):.0f} W",
            )
            for j, joint in enumerate(analysis.joint_names)
        ),
        group=analysis.label,
        focus=analysis.focus,
    )


def energy_chart(analysis: Analysis) -> LineChart:
    """Electrical energy of each joint over time (S0 Figs. 14-15)."""
    powers = analysis.powers
    return LineChart(
        key="energy",
        title="Energy of each joint",
        caption=f"Electrical energy since the start ({S0}, Figs. 14-15).",
        x_label="time [s]",
        y_label="energy [J]",
        panels=(
            Panel(
                title="",
                lines=joint_curves(powers.time, powers.breaks, analysis.joint_names, powers.energy),
            ),
        ),
        columns=1,
        group=analysis.label,
        focus=analysis.focus,
    )
