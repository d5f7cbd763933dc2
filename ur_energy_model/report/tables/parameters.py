"""Tables of the identified parameters, numbered as in Clochiatti et al., Robotica 2024 (S0)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ur_energy_model.energy.meter import CONFIDENCE
from ur_energy_model.identification.dynamics.reflected_inertia import split_inertia
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.friction.law import PARAMETER_UNITS
from ur_energy_model.model.generic import is_generic, model_words
from ur_energy_model.model.robots import load_robot
from ur_energy_model.report.drive_table import drive_table
from ur_energy_model.report.tables.table import Cell, Table, source_text, with_interval


def inertia_table(model: EnergyModel) -> Table:
    """Motor and reducer inertia (S0 Table IV)."""
    robot = load_robot(model.robot)
    reflected = np.array([joint.reflected_inertia for joint in model.joints])
    split = split_inertia(reflected, robot)
    rows = [
        (
            joint.name,
            reflected[j],
            CONFIDENCE * float(joint.std.get("reflected_inertia", np.nan)),
            robot.reflected_inertia[j],
            split.motor_side[j] * 1e4,
            split.reducer[j] * 1e4,
            split.rotor[j] * 1e4,
            source_text(joint.source, "reflected_inertia"),
        )
        for j, joint in enumerate(model.joints)
    ]
    return Table(
        "table4",
        "Inertia of motors and reducers (Table IV)",
        (
            "joint",
            "reflected, joint side [kg m²]",
            "± 95 %",
            "robot file [kg m²]",
            "motor side [10⁻⁴ kg m²]",
            "reducer, catalogue [10⁻⁴ kg m²]",
            "motor [10⁻⁴ kg m²]",
            "from",
        ),
        tuple(rows),
        "From target_moment, which includes motor inertia but no friction.",
    )


def friction_table(model: EnergyModel) -> Table:
    """Torque constants and friction (S0 Table VI)."""
    names = list(dict.fromkeys(n for j in model.joints for n in j.friction.law.parameters))
    rows = []
    for joint in model.joints:
        row: list[Cell] = [
            joint.name,
            with_interval(joint.torque_constant, joint.std.get("torque_constant")),
            joint.friction.law.name.replace("_", " "),
        ]
        for name in names:
            value = joint.friction.parameters.get(name)
            row.append(None if value is None else with_interval(value, joint.std.get(name)))
        row.append(source_text(joint.source, "torque_constant"))
        rows.append(tuple(row))
    return Table(
        "table6",
        "Torque constants and friction (Table VI)",
        (
            "joint",
            "k_t [N m/A]",
            "friction law",
            *(f"{n.replace('_', ' ')} [{PARAMETER_UNITS.get(n, '')}]" for n in names),
            "from",
        ),
        tuple(rows),
        "Motor side, ± 95 %.",
    )


def friction_choice_table(model: EnergyModel) -> Table:
    """The reasons for the joints' friction laws."""
    return Table(
        "friction_choice",
        "Why these friction laws",
        ("", ""),
        tuple(
            (
                joint.name,
                f"{joint.friction.law.description}: {joint.friction_reason or 'as requested'}",
            )
            for joint in model.joints
        ),
    )


def drives_table(model: EnergyModel) -> Table:
    """Drive constants: identified ones beside those of the robot file."""
    title, columns, rows = drive_table(model)
    return Table(
        "drives", title[0].upper() + title[1:], tuple(columns), tuple(tuple(row) for row in rows)
    )


def provenance_table(model: EnergyModel) -> Table:
    """Origin of the model: robot, software, recordings."""
    made = model.provenance
    payload = model.setup.payload
    rows: list[tuple[Cell, ...]] = [
        ("robot", model.robot),
        *([("model", model_words(model, None))] if is_generic(model) else []),
        ("serial number", _text(made.get("serial"))),
        ("controller software", _text(made.get("firmware"))),
        ("package version", _text(made.get("package_version"))),
        ("made", _text(made.get("date"))),
        ("gravity in the base frame [m/s²]", ", ".join(f"{g:.3f}" for g in model.setup.gravity)),
        (
            "payload",
            f"{payload.mass:.3f} kg at ({', '.join(f'{c:.3f}' for c in payload.center_of_mass)}) m",
        ),
        ("mounting and payload are", model.setup_source),
        (
            "bus power model",
            f"{model.bus.kind}, from {model.bus.source.replace('_', ' ')}; "
            f"standby {model.bus.standby:.2f} W; {model.bus.reason}",
        ),
    ]
    rows += [
        (
            "fitted on",
            f"{bag.get('path')}: {bag.get('samples')} samples, {bag.get('duration', 0):.1f} s, "
            f"SHA-256 {bag.get('sha256')}",
        )
        for bag in made.get("bags") or ()
    ]
    return Table("provenance", "Origin of the model", ("", ""), tuple(rows))


def _text(value: Any) -> str:
    return "unknown" if value is None else str(value)
