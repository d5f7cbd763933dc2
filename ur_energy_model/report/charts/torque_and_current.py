"""Charts of torque, current, friction and motion, and all charts of a recording in order.

Figure numbers in captions: S0 is Clochiatti et al., Robotica 2024.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ur_energy_model.report.analysis import Analysis
from ur_energy_model.report.charts.chart import Box, BoxChart, Line, LineChart, Panel
from ur_energy_model.report.charts.curves import S0, curve, short_name
from ur_energy_model.report.recording_powers import Breaks
from ur_energy_model.typing import Array, Mask

SMALL = 0.001
"""RMS errors below this are not told apart [A, N m]."""
FRICTION_POINTS = 800
"""Points drawn per joint in the friction figure."""


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
        f"expects them from the motion alone, its friction scaled to the first 3 s ({S0}, "
        "Figs. 11-12).",
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


def _comparison(
    analysis: Analysis,
    curves: tuple[Array, Breaks, Array, Array],
    *,
    key: str,
    title: str,
    caption: str,
    y_label: str,
    names: tuple[str, str],
    unit: str,
    counted: Mask | None = None,
) -> LineChart:
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
                    curve(time, breaks, names[0], recorded[:, j], role="measured"),
                    curve(time, breaks, names[1], modelled[:, j], joint=j),
                ),
                joint=j,
                note=note,
            )
        )
    return LineChart(
        key=key,
        title=title,
        caption=caption,
        x_label="time [s]",
        y_label=y_label,
        panels=tuple(panels),
        group=analysis.label,
        focus=analysis.focus,
    )


def _rms_note(error: Array, unit: str, when: str = "") -> str:
    finite = error[np.isfinite(error)]
    if finite.size == 0:
        return "does not move" if when else ""
    rms = float(np.sqrt(np.mean(finite**2)))
    return f"RMS error{when} {f'{rms:.2g}' if rms >= SMALL else f'< {SMALL:g}'} {unit}"


def _errors(
    entries: Sequence[tuple[Analysis, Array, Array]],
    *,
    key: str,
    title: str,
    caption: str,
    y_label: str,
) -> BoxChart | None:
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
            tuple(Box.from_values(modelled[:, j] - recorded[:, j]) for j in range(a.dof))
            for a, recorded, modelled in entries
        ),
    )
