# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Charts of models: parameters, and quantities of experiments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ur_energy_model.energy.meter import CONFIDENCE
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.friction_terms import OperatingPoint
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.report.chart import IntervalChart, Line, LineChart, Panel, Role
from ur_energy_model.typing import Array

_SPEED = 1.0  # joint speed for the chart of friction against temperature [rad/s]
_TEMPERATURES = 60  # points of a curve of that chart
_CONSTANTS = (
    ("reflected_inertia", "Reflected inertia, joint side", "kg m²"),
    ("torque_constant", "Torque constant", "N m/A"),
    ("winding_resistance", "Winding resistance", "ohm"),
    ("back_emf_constant", "Back-EMF constant", "V s/rad"),
)


def interval_chart(model: EnergyModel, robot: RobotDescription) -> IntervalChart:
    """All identified constants with their 95 % intervals, beside the robot file's values.

    Args:
        model: model whose constants are shown.
        robot: description of the arm type.
    """
    # title and unit of each quantity, friction parameters in the order of their first joint
    shown = {name: (title, unit) for name, title, unit in _CONSTANTS}
    for joint in model.joints:
        for name, unit in joint.friction.law.units.items():
            title = f"Friction: {name.replace('_', ' ')}, motor side"
            shown[name] = (title, unit)
    panels = []
    for name, (title, unit) in shown.items():
        rows = []
        for j, joint in enumerate(model.joints):
            known = {**joint.constants, **joint.friction.parameters}
            if name in known:
                half_width = CONFIDENCE * float(joint.std.get(name, 0.0))
                prior = getattr(robot, name)[j] if name in joint.constants else np.nan
                rows.append((j, known[name], half_width, prior))
        panels.append((title, unit, np.array(rows)))
    return IntervalChart(
        key="parameters",
        title="The parameters and their uncertainty",
        caption="Dots with 95 % intervals; the grey mark is the value of the robot file. If the "
        "data contain little information, the interval is wide and the value is near the mark.",
        categories=[joint.name for joint in model.joints],
        panels=panels,
    )


def temperature_law_chart(model: EnergyModel) -> LineChart | None:
    """Friction of unloaded joints against temperature, joint side.

    Returns:
        The chart; None if no law of the model depends on temperature.
    """
    panels = []
    for j, joint in enumerate(model.joints):
        friction = joint.friction
        span = friction.temperature_range
        if not friction.law.uses_temperature or span is None:
            continue
        temperature = np.linspace(*span, _TEMPERATURES)
        terms = None
        if friction.temperature_model is not None:
            terms = np.array(friction.temperature_model)
        point = OperatingPoint(
            speed=np.full_like(temperature, _SPEED),
            load=np.zeros_like(temperature),
            gear_ratio=joint.gear_ratio,
            temperature=temperature,
            temperature_model=terms,
        )
        regressor = friction.law.regressor(point, friction.all_shape)
        torque = joint.gear_ratio * (regressor @ friction.values)
        panels.append(
            Panel(joint.name, (Line("friction", temperature, torque, joint=j),), j)
        )
    if not panels:
        return None
    return LineChart(
        key="warmth",
        title="Friction decreases with temperature",
        caption=f"Friction of an unloaded joint at {_SPEED:g} rad/s over the temperatures of the "
        "model's recordings; beyond them the model uses the nearest value.",
        x_label="joint temperature [°C]",
        y_label="friction [N m]",
        panels=panels,
    )


def singular_value_charts(
    singular_values: Array, rank: int
) -> tuple[LineChart, LineChart]:
    """Singular values of the regressor, and their cumulative energy (RAAD 2021, Fig. 1).

    Args:
        singular_values: singular values of the stacked regressor, descending [columns].
        rank: number of base parameters.
    """
    number = np.arange(1, len(singular_values) + 1, dtype=float)
    size = np.maximum(singular_values / singular_values[0], 1e-17)
    share = 100 * np.cumsum(singular_values**2) / np.sum(singular_values**2)
    sizes = (
        Line("identifiable", number[:rank], size[:rank], points=True),
        Line("not", number[rank:], size[rank:], "measured", points=True),
    )
    return (
        LineChart(
            key="singular_values",
            title=f"{rank} combinations of parameters can be identified",
            caption="Singular values of the regressor over random motion, relative to the largest. "
            f"{rank} are not zero: the base parameters (Raviola et al. 2021, Fig. 1).",
            x_label="number",
            y_label="relative size",
            panels=(Panel("", sizes),),
            log_y=True,
        ),
        LineChart(
            key="cumulative_energy",
            title="A few of them account for most of the torque",
            caption="Share of the regressor's energy in the first singular values "
            "(Raviola et al. 2021, Fig. 1).",
            x_label="number",
            y_label="cumulative energy [%]",
            panels=(Panel("", (Line("share", number, share),)),),
        ),
    )


# Experiments: quantities of all joints over time, and curves over any axis.


def joint_lines(time: Array, values: Array, names: Sequence[str]) -> tuple[Line, ...]:
    """A line of each joint, in its colour.

    Args:
        time: places on the x axis [samples].
        values: values of the n joints [samples, n].
        names: labels of the joints [n].
    """
    return tuple(Line(name, time, values[:, j], joint=j) for j, name in enumerate(names))


def joints_chart(
    key: str, caption: str, time: Array, values: Mapping[str, Array], names: Sequence[str]
) -> LineChart:
    """One panel for each quantity, with the curves of all joints.

    Args:
        key: key of the chart.
        caption: heading of the chart.
        time: times of the samples [samples], s.
        values: values [samples, n] by quantity with its unit, such as "speed [rad/s]".
        names: names of the n joints.
    """
    panels = [
        Panel("", joint_lines(time, each, names), y_label=quantity)
        for quantity, each in values.items()
    ]
    return LineChart(key=key, title=caption, x_label="time [s]", panels=panels, columns=1)


def comparison_chart(
    key: str,
    caption: str,
    time: Array,
    curves: Sequence[tuple[str, Role, Array]],
    names: Sequence[str],
    y_label: str,
) -> LineChart:
    """One panel for each joint, with a curve of every version of a quantity.

    Args:
        key: key of the chart.
        caption: heading of the chart.
        time: times of the samples [samples], s.
        curves: label, role and values [samples, n] of each version.
        names: names of the n joints.
        y_label: quantity and unit.
    """
    panels = []
    for j, name in enumerate(names):
        lines = [
            Line(label, time, values[:, j], role, j) for label, role, values in curves
        ]
        panels.append(Panel(name, lines, j))
    return LineChart(
        key=key, title=caption, x_label="time [s]", y_label=y_label, panels=panels
    )


def bode_chart(
    key: str, caption: str, frequency: Array, responses: Mapping[str, Array]
) -> LineChart:
    """Magnitude and phase of frequency responses.

    Args:
        key: key of the chart.
        caption: heading of the chart.
        frequency: angular frequencies [m], rad/s.
        responses: complex responses [m], rad per N m, by their labels.
    """
    x = np.log10(frequency)
    magnitude = []
    phase = []
    for k, (label, response) in enumerate(responses.items()):
        magnitude.append(Line(label, x, 20 * np.log10(np.abs(response)), joint=k))
        phase.append(Line(label, x, np.degrees(np.unwrap(np.angle(response))), joint=k))
    panels = (
        Panel("Magnitude", magnitude, y_label="dB (rad per N m)"),
        Panel("Phase", phase, y_label="degrees"),
    )
    x_label = "log10 of the angular frequency [rad/s]"
    return LineChart(key=key, title=caption, x_label=x_label, panels=panels, columns=1)
