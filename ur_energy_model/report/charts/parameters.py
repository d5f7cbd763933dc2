"""Charts of the identified parameters and of their identifiability."""

from __future__ import annotations

import numpy as np

from ur_energy_model.energy.meter import CONFIDENCE
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.friction.law import PARAMETER_UNITS
from ur_energy_model.model.friction.terms import OperatingPoint
from ur_energy_model.model.joint_model import JointModel
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.report.charts.chart import (
    Interval,
    IntervalChart,
    IntervalPanel,
    Line,
    LineChart,
    Panel,
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
    nominal = {
        "reflected_inertia": robot.reflected_inertia,
        "torque_constant": robot.torque_constant,
        "winding_resistance": robot.winding_resistance,
        "back_emf_constant": robot.back_emf_constant,
    }
    panels = [
        IntervalPanel(
            title,
            unit,
            tuple(
                Interval(
                    j,
                    joint.constants[name],
                    CONFIDENCE * float(joint.std.get(name, 0.0)),
                    float(nominal[name][j]),
                )
                for j, joint in enumerate(model.joints)
            ),
        )
        for name, title, unit in _CONSTANTS
    ]
    kinds = dict.fromkeys(n for joint in model.joints for n in joint.friction.law.parameters)
    panels += [
        IntervalPanel(
            f"Friction: {kind.replace('_', ' ')}, motor side",
            PARAMETER_UNITS.get(kind, ""),
            tuple(
                Interval(
                    j,
                    float(joint.friction.parameters[kind]),
                    CONFIDENCE * float(joint.std.get(kind, 0.0)),
                )
                for j, joint in enumerate(model.joints)
                if kind in joint.friction.parameters
            ),
        )
        for kind in kinds
    ]
    return IntervalChart(
        key="parameters",
        title="The parameters and their uncertainty",
        caption="Dots with 95 % intervals; the grey mark is the value of the robot file. If the "
        "data contain little information, the interval is wide and the value is near the mark.",
        categories=tuple(joint.name for joint in model.joints),
        panels=tuple(panels),
    )


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
