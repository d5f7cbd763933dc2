"""Charts of models: parameters, what learning did, quantities of experiments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

import numpy as np

from ur_energy_model.energy.meter import CONFIDENCE
from ur_energy_model.learning.history import Attempt
from ur_energy_model.model.drives import JointModel
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.friction import PARAMETER_UNITS, OperatingPoint
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.report.chart import (
    Interval,
    IntervalChart,
    IntervalPanel,
    Line,
    LineChart,
    Panel,
    Role,
)
from ur_energy_model.typing import Array

_SPEED = 1.0
"""Joint speed for the chart of friction against temperature [rad/s]."""
_CONSTANTS = (
    ("reflected_inertia", "Reflected inertia, joint side", "kg m²"),
    ("torque_constant", "Torque constant", "N m/A"),
    ("winding_resistance", "Winding resistance", "ohm"),
    ("back_emf_constant", "Back-EMF constant", "V s/rad"),
)


def interval_chart(model: EnergyModel, robot: RobotDescription) -> IntervalChart:
    """All identified constants with their 95 % intervals, beside the robot file's values."""
    joints = list(enumerate(model.joints))
    panels = [
        IntervalPanel(
            title,
            unit,
            tuple(
                Interval(j, each.constants[name], _half_width(each, name), getattr(robot, name)[j])
                for j, each in joints
            ),
        )
        for name, title, unit in _CONSTANTS
    ]
    kinds = dict.fromkeys(n for joint in model.joints for n in joint.friction.law.parameters)
    for kind in kinds:
        found = tuple(
            Interval(j, each.friction.parameters[kind], _half_width(each, kind))
            for j, each in joints
            if kind in each.friction.parameters
        )
        title = f"Friction: {kind.replace('_', ' ')}, motor side"
        panels.append(IntervalPanel(title, PARAMETER_UNITS.get(kind, ""), found))
    return IntervalChart(
        key="parameters",
        title="The parameters and their uncertainty",
        caption="Dots with 95 % intervals; the grey mark is the value of the robot file. If the "
        "data contain little information, the interval is wide and the value is near the mark.",
        categories=tuple(joint.name for joint in model.joints),
        panels=tuple(panels),
    )


def _half_width(joint: JointModel, name: str) -> float:
    return CONFIDENCE * float(joint.std.get(name, 0.0))


def temperature_law_chart(model: EnergyModel) -> LineChart | None:
    """Friction against temperature; None if no joint's law depends on it."""
    panels = []
    for j, joint in enumerate(model.joints):
        span = joint.friction.temperature_range
        if not joint.friction.law.uses_temperature or span is None:
            continue
        temperature = np.linspace(*span, 60)
        panels.append(
            Panel(
                title=joint.name,
                lines=(Line("friction", temperature, _friction(joint, temperature), joint=j),),
                joint=j,
            )
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
        panels=tuple(panels),
    )


def _friction(joint: JointModel, temperature: Array) -> Array:
    """Friction without load at _SPEED [samples], joint side, N m."""
    law = joint.friction
    point = OperatingPoint(
        speed=np.full_like(temperature, _SPEED),
        load=np.zeros_like(temperature),
        gear_ratio=joint.gear_ratio,
        temperature=temperature,
        temperature_model=(
            None if law.temperature_model is None else np.array(law.temperature_model)
        ),
    )
    return np.asarray(joint.gear_ratio * (law.law.regressor(point, law.all_shape) @ law.values))


def singular_value_charts(singular_values: Array, rank: int) -> tuple[LineChart, LineChart]:
    """Singular values of the regressor and their cumulative energy (RAAD 2021, Fig. 1).

    Args:
        singular_values: of the stacked regressor, descending [columns].
        rank: number of base parameters.
    """
    number = np.arange(1, len(singular_values) + 1, dtype=float)
    size = np.maximum(singular_values / singular_values[0], 1e-17)
    share = 100 * np.cumsum(singular_values**2) / np.sum(singular_values**2)
    values = LineChart(
        key="singular_values",
        title=f"{rank} combinations of parameters can be identified",
        caption="Singular values of the regressor over random motion, relative to the largest. "
        f"{rank} are not zero: the base parameters (Raviola et al. 2021, Fig. 1).",
        x_label="number",
        y_label="relative size",
        panels=(
            Panel(
                "",
                (
                    Line("identifiable", number[:rank], size[:rank], points=True),
                    Line("not", number[rank:], size[rank:], "measured", points=True),
                ),
            ),
        ),
        columns=1,
        log_y=True,
    )
    cumulative = LineChart(
        key="cumulative_energy",
        title="A few of them account for most of the torque",
        caption="Share of the regressor's energy in the first singular values "
        "(Raviola et al. 2021, Fig. 1).",
        x_label="number",
        y_label="cumulative energy [%]",
        panels=(Panel("", (Line("share", number, share),)),),
        columns=1,
    )
    return values, cumulative


# Chart of what a learner did: error and interval over time, and the versions of the model.


def learning_chart(attempts: Sequence[Attempt], joint_names: Sequence[str]) -> LineChart:
    """Held-out error, intervals and version over the time of the attempts.

    Args:
        attempts: one or more, in order of time.
        joint_names: of the n joints.
    """
    learned = np.cumsum([0.0, *(max(0.0, b.time - a.time) for a, b in pairwise(attempts))])
    minutes = np.asarray(learned) / 60.0
    errors = [attempt.supply_energy_error_percent for attempt in attempts]
    error = np.array([np.nan if value is None else value for value in errors])
    intervals = np.array([attempt.joint_energy_interval_percent for attempt in attempts])
    version = np.array([attempt.version for attempt in attempts], dtype=float)
    steps, heights = np.repeat(minutes, 2)[1:], np.repeat(version, 2)[:-1]
    accepted = np.array([attempt.accepted for attempt in attempts])
    panels = [
        Panel(
            "Energy at the supply: model minus measured",
            (Line("error", minutes, error, role="measured"),),
            y_label="error [%]",
        ),
        Panel(
            "95 % intervals of the joints' electrical energies",
            tuple(
                Line(name, minutes, intervals[:, j], joint=j) for j, name in enumerate(joint_names)
            ),
            y_label="± [%]",
        ),
        Panel(
            "Version of the model in use",
            (
                Line("version", steps, heights, role="measured"),
                Line("taken over", minutes[accepted], version[accepted], role="truth", points=True),
            ),
            y_label="version",
        ),
    ]
    return LineChart(
        key="learning",
        title="Learning while the arm works",
        caption="Over time that the model in use was not fitted to: error of the energy at the "
        "supply, and half widths of the intervals of each joint's energy.",
        x_label="time since the first model was tried [min]",
        y_label="",
        panels=tuple(panels),
        columns=1,
    )


# Charts of experiments: quantities of all joints over time, and curves over any axis.


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

    def curves(each: Array) -> tuple[Line, ...]:
        columns = enumerate(zip(names, each.T, strict=True))
        return tuple(Line(name, time, column, joint=j) for j, (name, column) in columns)

    panels = [Panel("", curves(each), y_label=quantity) for quantity, each in values.items()]
    return _experiment(key, caption, "time [s]", panels)


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
    panels = [
        Panel(
            name,
            tuple(Line(label, time, values[:, j], role, j) for label, role, values in curves),
            j,
        )
        for j, name in enumerate(names)
    ]
    return _experiment(key, caption, "time [s]", panels, y_label, columns=3)


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

    def curves(of: Callable[[Array], Array]) -> tuple[Line, ...]:
        found = enumerate(responses.items())
        return tuple(Line(label, x, of(response), joint=k) for k, (label, response) in found)

    magnitude = curves(lambda response: 20 * np.log10(np.abs(response)))
    phase = curves(lambda response: np.degrees(np.unwrap(np.angle(response))))
    panels = [
        Panel("Magnitude", magnitude, y_label="dB (rad per N m)"),
        Panel("Phase", phase, y_label="degrees"),
    ]
    return _experiment(key, caption, "log10 of the angular frequency [rad/s]", panels)


def _experiment(
    key: str, title: str, x_label: str, panels: Sequence[Panel], y_label: str = "", columns: int = 1
) -> LineChart:
    return LineChart(
        key=key,
        title=title,
        caption="",
        x_label=x_label,
        y_label=y_label,
        panels=tuple(panels),
        columns=columns,
    )
