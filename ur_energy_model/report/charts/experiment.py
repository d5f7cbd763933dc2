"""Charts of experiments: quantities of all joints over time, and curves over any axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ur_energy_model.report.charts.chart import Line, LineChart, Panel, Role
from ur_energy_model.typing import Array

TIME = "time [s]"


def joints_chart(
    key: str, caption: str, time: Array, values: Mapping[str, Array], names: Sequence[str]
) -> LineChart:
    """One panel for each quantity, with the curves of all joints.

    Args:
        key: of the chart.
        caption: what it shows.
        time: [samples], s.
        values: quantity with unit -> [samples, n].
        names: of the joints.
    """
    panels = tuple(
        Panel(
            title="",
            y_label=quantity,
            lines=tuple(
                Line(name, time, column, joint=joint)
                for joint, (name, column) in enumerate(zip(names, each.T, strict=True))
            ),
        )
        for quantity, each in values.items()
    )
    return LineChart(
        key=key, title=caption, caption="", x_label=TIME, y_label="", panels=panels, columns=1
    )


def comparison_chart(
    key: str,
    caption: str,
    time: Array,
    curves: Sequence[tuple[str, Role, Array]],
    names: Sequence[str],
    y_label: str,
) -> LineChart:
    """One panel for each joint, with a curve of every kind.

    Args:
        key: of the chart.
        caption: what it shows.
        time: [samples], s.
        curves: label, role and values [samples, n].
        names: of the joints.
        y_label: quantity with unit.
    """
    panels = tuple(
        Panel(
            title=name,
            joint=joint,
            lines=tuple(
                Line(label, time, values[:, joint], role=role, joint=joint)
                for label, role, values in curves
            ),
        )
        for joint, name in enumerate(names)
    )
    return LineChart(
        key=key, title=caption, caption="", x_label=TIME, y_label=y_label, panels=panels
    )


def bode_chart(
    key: str, caption: str, frequency: Array, responses: Mapping[str, Array]
) -> LineChart:
    """Magnitude and phase over the logarithm of the angular frequency.

    Args:
        key: of the chart.
        caption: what it shows.
        frequency: [m], rad/s.
        responses: label -> complex response [m].
    """
    x = np.log10(frequency)
    magnitude = tuple(
        Line(label, x, 20 * np.log10(np.abs(response)), joint=k)
        for k, (label, response) in enumerate(responses.items())
    )
    phase = tuple(
        Line(label, x, np.degrees(np.unwrap(np.angle(response))), joint=k)
        for k, (label, response) in enumerate(responses.items())
    )
    return LineChart(
        key=key,
        title=caption,
        caption="",
        x_label="log10 of the angular frequency [rad/s]",
        y_label="",
        panels=(
            Panel("Magnitude", magnitude, y_label="dB (rad per N m)"),
            Panel("Phase", phase, y_label="degrees"),
        ),
        columns=1,
    )
