# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Tables of a model: its drives, inertias, friction and origin.

They are numbered as in Clochiatti et al., Robotica 2024 (S0).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from ur_energy_model.energy.meter import CONFIDENCE
from ur_energy_model.identification.reflected_inertia import split_inertia
from ur_energy_model.model.drives import (
    CATALOGUE_MOTOR_CONSTANT,
    KT_OVER_KB,
    motor_constant,
)
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.friction import parameter_units
from ur_energy_model.model.generic import is_generic, model_words
from ur_energy_model.model.robots import load_robot
from ur_energy_model.report.page import Cell, Table, with_interval


def drive_table(model: EnergyModel) -> tuple[str, list[str], list[list[Any]]]:
    """Drive constants: of the robot file, as identified, and as S0 assumes them.

    k_m = k_t / sqrt(R) is the torque per square root of copper loss.

    Args:
        model: model of the arm.

    Returns:
        Title, headings of the columns, and rows, one for each joint.
    """
    robot = load_robot(model.robot)
    rows: list[list[Any]] = []
    for j, joint in enumerate(model.joints):
        nominal_k_t = robot.torque_constant[j]
        nominal_resistance = robot.winding_resistance[j]
        ratio = None
        if joint.back_emf_constant:
            ratio = joint.torque_constant / joint.back_emf_constant
        rows.append(
            [
                joint.name,
                nominal_k_t,
                joint.torque_constant,
                nominal_resistance,
                joint.winding_resistance,
                motor_constant(nominal_k_t, nominal_resistance),
                motor_constant(joint.torque_constant, joint.winding_resistance),
                ratio,
            ]
        )
    assumed = ", ".join(
        f"{k_m:.3f} (size {size})" for size, k_m in CATALOGUE_MOTOR_CONSTANT.items()
    )
    source = model.joints[0].source.get("winding_resistance")
    title = f"drives, R and k_b by {source}; S0: k_t/k_b {KT_OVER_KB}, k_m {assumed}"
    columns = ["joint", "k_t file", "k_t", "R file", "R", "k_m file", "k_m", "k_t/k_b"]
    return title, columns, rows


def _source(sources: Mapping[str, str], name: str) -> str:
    """The identification stage that a quantity comes from."""
    return sources.get(name, "given").replace("_", " ")


def inertia_table(model: EnergyModel) -> Table:
    """Motor and reducer inertia (S0 Table IV), identified and by catalogue.

    Args:
        model: model of the arm.
    """
    robot = load_robot(model.robot)
    reflected = np.array([joint.reflected_inertia for joint in model.joints])
    motor_side, rotor = split_inertia(reflected, robot)
    rows: list[tuple[Cell, ...]] = []
    for j, joint in enumerate(model.joints):
        std = float(joint.std.get("reflected_inertia", np.nan))
        rows.append(
            (
                joint.name,
                reflected[j],
                CONFIDENCE * std,
                robot.reflected_inertia[j],
                1e4 * motor_side[j],
                1e4 * robot.reducer_inertia[j],
                1e4 * rotor[j],
                _source(joint.source, "reflected_inertia"),
            )
        )
    columns = (
        "joint",
        "reflected, joint side [kg m²]",
        "± 95 %",
        "robot file [kg m²]",
        "motor side [10⁻⁴ kg m²]",
        "reducer, catalogue [10⁻⁴ kg m²]",
        "motor [10⁻⁴ kg m²]",
        "from",
    )
    note = "From target_moment, which includes motor inertia but no friction."
    return Table("Inertia of motors and reducers (Table IV)", columns, rows, note)


def friction_tables(model: EnergyModel) -> tuple[Table, Table]:
    """Torque constants and friction (S0 Table VI), and the reasons for the friction laws.

    Args:
        model: model of the arm.
    """
    # parameters of all laws in the order of their first joint
    names: dict[str, None] = {}
    for joint in model.joints:
        names.update(dict.fromkeys(joint.friction.law.parameters))
    rows: list[tuple[Cell, ...]] = []
    reasons: list[tuple[Cell, ...]] = []
    for joint in model.joints:
        law = joint.friction.law
        values = joint.friction.parameters
        row: list[Cell] = [
            joint.name,
            with_interval(joint.torque_constant, joint.std.get("torque_constant")),
            law.name.replace("_", " "),
        ]
        for name in names:
            cell: Cell = None
            if name in values:
                cell = with_interval(values[name], joint.std.get(name))
            row.append(cell)
        row.append(_source(joint.source, "torque_constant"))
        rows.append(tuple(row))
        reason = joint.friction_reason or "as requested"
        reasons.append((joint.name, f"{law.description}: {reason}"))
    units = parameter_units()
    headings = [f"{name.replace('_', ' ')} [{units[name]}]" for name in names]
    columns = ("joint", "k_t [N m/A]", "friction law", *headings, "from")
    title = "Torque constants and friction (Table VI)"
    return (
        Table(title, columns, rows, "Motor side, ± 95 %."),
        Table("Why these friction laws", ("", ""), reasons),
    )


def provenance_table(model: EnergyModel) -> Table:
    """Origin of the model: robot, software, recordings.

    Args:
        model: model of the arm, or generic.
    """
    made = model.provenance
    payload = model.setup.payload
    bus = model.bus
    power = (
        f"{bus.kind}, from {bus.source.replace('_', ' ')}; standby {bus.standby:.2f} W"
    )
    rows: list[tuple[Cell, ...]] = [("robot", model.robot)]
    if is_generic(model):
        rows.append(("model", model_words(model, None)))
    for heading, name in (
        ("serial number", "serial"),
        ("controller software", "firmware"),
        ("package version", "package_version"),
        ("made", "date"),
    ):
        value = made.get(name)
        rows.append((heading, "unknown" if value is None else str(value)))
    center = _vector_text(payload.center_of_mass)
    rows += [
        ("gravity in the base frame [m/s²]", _vector_text(model.setup.gravity)),
        ("payload", f"{payload.mass:.3f} kg at ({center}) m"),
        ("mounting and payload are", model.setup_source),
        ("bus power model", f"{power}; {bus.reason}"),
    ]
    for bag in made.get("bags") or ():
        text = (
            f"{bag.get('path')}: {bag.get('samples')} samples, {bag.get('duration', 0):.1f} s, "
            f"SHA-256 {bag.get('sha256')}"
        )
        rows.append(("fitted on", text))
    return Table("Origin of the model", ("", ""), rows)


def _vector_text(vector: Iterable[float]) -> str:
    """Components of a vector, separated by commas."""
    return ", ".join(f"{component:.3f}" for component in vector)
