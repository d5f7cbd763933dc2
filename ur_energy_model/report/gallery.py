"""Every figure of the report as a chart, drawn from analyses.

Figure numbers in captions: S0 is Clochiatti et al., Robotica 2024.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.report.analysis import Analysis
from ur_energy_model.report.charts import (
    BarChart,
    Bars,
    Box,
    BoxChart,
    Chart,
    Line,
    LineChart,
    Panel,
    Role,
)
from ur_energy_model.report.decimate import break_at
from ur_energy_model.report.powers import Breaks

Array = NDArray[np.float64]

S0 = "Clochiatti et al. 2024"
SMALL = 0.001
"""RMS errors below this are not told apart [A, N m]."""
FRICTION_POINTS = 800
"""Points drawn per joint in the friction figure."""


def short_name(joint: str) -> str:
    """A joint's name as people say it: "shoulder_pan_joint" is "shoulder pan"."""
    return joint.removesuffix("_joint").replace("_", " ")


def motion_chart(analysis: Analysis) -> LineChart:
    """Positions, speeds and accelerations over time (S0 Figs. 2-3)."""
    motion = analysis.current
    rows = (
        ("position", "rad", motion.q),
        ("speed", "rad/s", motion.qd),
        ("acceleration", "rad/s²", motion.qdd),
    )
    panels = tuple(
        Panel(
            title=name.capitalize(),
            lines=tuple(
                _line(motion.time, motion.breaks, short_name(joint), values[:, j], joint=j)
                for j, joint in enumerate(analysis.joint_names)
            ),
            y_label=f"{name} [{unit}]",
        )
        for name, unit, values in rows
    )
    return LineChart(
        key="motion",
        title="The motion",
        caption=f"Joint positions, speeds and accelerations ({S0}, Figs. 2-3).",
        x_label="time [s]",
        y_label="",
        panels=panels,
        columns=1,
        group=analysis.label,
        focus=analysis.focus,
    )


def path_chart(analysis: Analysis) -> LineChart:
    """The flange's path from above, from the front and from the side (S0 Fig. 4)."""
    views = (("From above", 0, 1), ("From the front", 0, 2), ("From the side", 1, 2))
    axes = "xyz"
    return LineChart(
        key="path",
        title="Where the flange went",
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


def torque_chart(analysis: Analysis) -> LineChart | None:
    """Recorded against modelled torque (S0 Figs. 8-9)."""
    torque = analysis.torque
    if torque is None:
        return None
    return _comparison(
        analysis,
        (torque.time, torque.breaks, torque.recorded, torque.modelled),
        key="torque",
        title="Torque: recorded and modelled",
        caption="target_moment, the controller's own frictionless dynamics, and links, payload "
        f"and motor inertia of the model ({S0}, Figs. 8-9).",
        y_label="torque [N m]",
        names=("recorded", "model"),
        unit="N m",
    )


def current_chart(analysis: Analysis) -> LineChart:
    """Measured against estimated current (S0 Figs. 11-12)."""
    current = analysis.current
    return _comparison(
        analysis,
        (current.time, current.breaks, current.measured, current.modelled),
        counted=current.moving,
        key="current",
        title="Current: measured and estimated",
        caption=f"Motor currents as measured (below {current.cutoff:.1f} Hz), and as the model "
        f"expects them from the motion alone ({S0}, Figs. 11-12).",
        y_label="current [A]",
        names=("measured", "model"),
        unit="A",
    )


def torque_error_chart(analyses: Sequence[Analysis]) -> BoxChart | None:
    """Torque errors by joint (S0 Fig. 10)."""
    return _errors(
        [(a, a.torque.recorded, a.torque.modelled) for a in analyses if a.torque is not None],
        key="torque_error",
        title="Torque error",
        caption="Modelled minus recorded torque: median, quartiles, 1st and 99th percentile; dots "
        f"are the largest errors ({S0}, Fig. 10).",
        y_label="error [N m]",
    )


def current_error_chart(analyses: Sequence[Analysis]) -> BoxChart | None:
    """Current errors by joint (S0 Fig. 13)."""
    return _errors(
        [(a, a.current.measured, a.current.modelled) for a in analyses],
        key="current_error",
        title="Current error",
        caption="Estimated minus measured current: median, quartiles, 1st and 99th percentile; "
        f"dots are the largest errors ({S0}, Fig. 13).",
        y_label="error [A]",
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
                    _line(powers.time, powers.breaks, "mechanical", powers.mechanical[:, j],
                          role="measured"),
                    _line(powers.time, powers.breaks, "electrical", powers.electrical[:, j],
                          joint=j, half_width=powers.electrical_half_width[:, j]),
                ),
                joint=j,
                note=f"peak {np.nanmax(powers.electrical[:, j]):.0f} W",
            )
            for j, joint in enumerate(analysis.joint_names)
        ),
        group=analysis.label,
        focus=analysis.focus,
    )  # fmt: skip


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
                lines=tuple(
                    _line(
                        powers.time, powers.breaks, short_name(joint), powers.energy[:, j], joint=j
                    )
                    for j, joint in enumerate(analysis.joint_names)
                ),
            ),
        ),
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
        lines.append(_line(powers.time, powers.breaks, "measured", powers.bus, role="truth"))
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
                    _line(powers.time, powers.breaks, "measured", powers.bus, role="measured"),
                    _line(
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
                lines=(_line(powers.time, powers.breaks, "model minus measured", error),),
                note=f"mean {round(float(np.nanmean(error)), 2) + 0.0:+.2f} W".replace("-", "−"),
                y_label="difference [W]",
            ),
        ),
        columns=1,
        group=analysis.label,
        focus=analysis.focus,
    )


def friction_chart(analysis: Analysis) -> LineChart | None:
    """Friction torque against speed: the data and the law."""
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
        panels.append(Panel(title=short_name(joint), lines=(data, law), joint=j))
    if not panels:
        return None
    return LineChart(
        key="friction",
        title="Friction",
        caption="What the measured current leaves when links, payload and motor inertia are "
        "taken off, joint side, while the joint moves; and the identified law at the same "
        "samples (it may depend on load and temperature, hence its width).",
        x_label="speed [rad/s]",
        y_label="friction [N m]",
        panels=tuple(panels),
    )


def temperature_chart(analysis: Analysis) -> LineChart | None:
    """Joint temperatures over time."""
    motion = analysis.current
    if not np.isfinite(motion.temperature).any():
        return None
    return LineChart(
        key="temperature",
        title="Joint temperatures",
        caption="Friction falls as a joint warms; the model holds for the range it has seen.",
        x_label="time [s]",
        y_label="temperature [°C]",
        panels=(
            Panel(
                title="",
                lines=tuple(
                    _line(
                        motion.time,
                        motion.breaks,
                        short_name(joint),
                        motion.temperature[:, j],
                        joint=j,
                    )
                    for j, joint in enumerate(analysis.joint_names)
                ),
            ),
        ),
        columns=1,
    )


def _comparison(
    analysis: Analysis, curves: tuple[Array, Breaks, Array, Array], *,
    key: str, title: str, caption: str, y_label: str, names: tuple[str, str], unit: str,
    counted: NDArray[np.bool_] | None = None,
) -> LineChart:  # fmt: skip
    """One panel a joint: the recorded curve in grey, the model's in the joint's colour."""
    time, breaks, recorded, modelled = curves
    panels = []
    for j, joint in enumerate(analysis.joint_names):
        error = modelled[:, j] - recorded[:, j]
        note = _rms_note(error, unit)
        if counted is not None:
            note = _rms_note(error[counted[:, j]], unit, " moving")
        panels.append(
            Panel(
                title=short_name(joint),
                lines=(
                    _line(time, breaks, names[0], recorded[:, j], role="measured"),
                    _line(time, breaks, names[1], modelled[:, j], joint=j),
                ),
                joint=j,
                note=note,
            )
        )
    return LineChart(
        key=key, title=title, caption=caption, x_label="time [s]", y_label=y_label,
        panels=tuple(panels), group=analysis.label,
        focus=analysis.focus,
    )  # fmt: skip


def _rms_note(error: Array, unit: str, when: str = "") -> str:
    finite = error[np.isfinite(error)]
    if finite.size == 0:
        return "does not move" if when else ""
    rms = float(np.sqrt(np.mean(finite**2)))
    return f"RMS error{when} {f'{rms:.2g}' if rms >= SMALL else f'< {SMALL:g}'} {unit}"


def _errors(
    entries: Sequence[tuple[Analysis, Array, Array]],
    *, key: str, title: str, caption: str, y_label: str,
) -> BoxChart | None:  # fmt: skip
    if not entries:
        return None
    return BoxChart(
        key=key,
        title=title,
        caption=caption,
        y_label=y_label,
        categories=tuple(short_name(name) for name in entries[0][0].joint_names),
        series=tuple(a.label for a, _, _ in entries),
        boxes=tuple(
            tuple(Box.of(modelled[:, j] - recorded[:, j]) for j in range(a.dof))
            for a, recorded, modelled in entries
        ),
    )


def _line(
    time: Array, breaks: Breaks, label: str, values: Array, *,
    role: Role = "model", joint: int | None = None, half_width: Array | None = None,
) -> Line:  # fmt: skip
    """A curve over time, broken where samples are missing."""
    x, y = break_at(time, values, breaks)
    band = None
    if half_width is not None and np.any(half_width > 0):
        _, band = break_at(time, half_width, breaks)
    return Line(label, x, y, role=role, joint=joint, half_width=band)


def recording_charts(analysis: Analysis, *, true_energy: Array | None = None) -> list[Chart]:
    """Every chart of one recording that it has the data for, in the order of the report."""
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
