"""Charts of torque, current and friction: recorded beside modelled, and the errors.

Figure numbers in captions: S0 is Clochiatti et al., Robotica 2024.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ur_energy_model.report.analysis import Analysis
from ur_energy_model.report.charts.chart import Box, BoxChart, Line, LineChart, Panel
from ur_energy_model.report.charts.curves import S0, Timeline, chart_over_time
from ur_energy_model.typing import Array, Mask

SMALL = 0.001
"""Smaller RMS errors are not shown as numbers [A, N m]."""
FRICTION_POINTS = 800
"""Points per joint in the friction figure."""


@dataclass(frozen=True)
class _Comparison:
    """A recorded and a modelled signal of n joints.

    Attributes:
        timeline: of the m samples.
        recorded, modelled: [m, n].
        unit: of the signals.
        label: of the recorded curve.
        counted: samples that the RMS error is computed over [m, n]; None for all.
    """

    timeline: Timeline
    recorded: Array
    modelled: Array
    unit: str
    label: str
    counted: Mask | None = None

    def panels(self, joints: Sequence[str]) -> list[Panel]:
        """One panel per joint: the recorded curve in grey, the model's in the joint's colour."""
        return [
            Panel(
                title=joint,
                lines=(
                    self.timeline.curve(self.label, self.recorded[:, j], role="measured"),
                    self.timeline.curve("model", self.modelled[:, j], joint=j),
                ),
                joint=j,
                note=self._rms_note(j),
            )
            for j, joint in enumerate(joints)
        ]

    def _rms_note(self, j: int) -> str:
        error, when = self.modelled[:, j] - self.recorded[:, j], ""
        if self.counted is not None:
            error, when = error[self.counted[:, j]], " moving"
        finite = error[np.isfinite(error)]
        if finite.size == 0:
            return "does not move" if when else ""
        rms = float(np.sqrt(np.mean(finite**2)))
        return f"RMSE{when} {f'{rms:.2g}' if rms >= SMALL else f'< {SMALL:g}'} {self.unit}"


def torque_chart(analysis: Analysis) -> LineChart | None:
    """Recorded against modelled torque (S0 Figs. 8-9)."""
    torque = analysis.torque
    if torque is None:
        return None
    timeline = Timeline(torque.time, torque.breaks)
    compared = _Comparison(timeline, torque.recorded, torque.modelled, "N m", "recorded")
    return chart_over_time(
        analysis,
        compared.panels(analysis.joint_names),
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
    compared = _Comparison(
        timeline, current.measured, current.modelled, "A", "measured", current.moving
    )
    return chart_over_time(
        analysis,
        compared.panels(analysis.joint_names),
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
        [(a, a.torque.recorded, a.torque.modelled) for a in analyses if a.torque is not None],
        key="torque_error",
        title="Torque error",
        caption="Modelled minus recorded torque: median, quartiles, 1st and 99th percentile; dots "
        f"are the largest errors ({S0}, Fig. 10).",
        y_label="error [N m]",
    )


def current_error_chart(analyses: Sequence[Analysis]) -> BoxChart | None:
    """Current errors by joint (S0 Fig. 13)."""
    return _error_chart(
        [(a, a.current.measured, a.current.modelled) for a in analyses],
        key="current_error",
        title="Current error",
        caption="Estimated minus measured current: median, quartiles, 1st and 99th percentile; "
        f"dots are the largest errors ({S0}, Fig. 13).",
        y_label="error [A]",
    )


def _error_chart(
    entries: Sequence[tuple[Analysis, Array, Array]],
    *,
    key: str,
    title: str,
    caption: str,
    y_label: str,
) -> BoxChart | None:
    """Box plots of modelled minus recorded; entries hold recorded and modelled [samples, n]."""
    if not entries:
        return None
    return BoxChart(
        key=key,
        title=title,
        caption=caption,
        y_label=y_label,
        categories=tuple(name for name in entries[0][0].joint_names),
        series=tuple(a.label for a, _, _ in entries),
        boxes=tuple(
            tuple(Box.from_values(modelled[:, j] - recorded[:, j]) for j in range(a.dof))
            for a, recorded, modelled in entries
        ),
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
        panels.append(Panel(title=joint, lines=(data, law), joint=j))
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
