"""The report's tables; their numbers are those of Clochiatti et al., Robotica 2024 (S0)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ur_energy_model.energy.energy_summary import EnergySummary
from ur_energy_model.energy.meter import CONFIDENCE
from ur_energy_model.identification.dynamics.reflected_inertia import split_inertia
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.friction.law import PARAMETER_UNITS
from ur_energy_model.model.robots import load_robot
from ur_energy_model.report.charts import Table
from ur_energy_model.report.curves import short_name
from ur_energy_model.report.drive_table import drive_table

Cell = str | float | None


def inertia_table(model: EnergyModel) -> Table:
    """Motor and reducer inertia (S0 Table IV)."""
    robot = load_robot(model.robot)
    reflected = np.array([joint.reflected_inertia for joint in model.joints])
    split = split_inertia(reflected, robot)
    rows = [
        (
            short_name(joint.name),
            reflected[j],
            CONFIDENCE * float(joint.std.get("reflected_inertia", np.nan)),
            robot.reflected_inertia[j],
            split.motor_side[j] * 1e4,
            split.reducer[j] * 1e4,
            split.rotor[j] * 1e4,
            _source(joint.source, "reflected_inertia"),
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
        "From target_moment, which contains motor inertia but no friction.",
    )


def error_table(
    key: str, metrics: Mapping[str, Any], names: Sequence[str], label: str
) -> Table | None:
    """Mean, largest and RMS error and R² by joint (S0 Tables V and VII)."""
    what, unit, number, note = {
        "torque": ("Torque", "N m", "V", ""),
        "current": ("Current", "A", "VII", "Over samples at which the joint moves."),
    }[key]
    entries = metrics.get(key)
    if entries is None:
        return None
    return Table(
        f"table_{key}",
        f"{what} error, {label} (Table {number})",
        ("joint", f"mean [{unit}]", f"largest [{unit}]", f"RMS [{unit}]", "R²"),
        tuple(
            (name, row["mean"], row["max"], row["rms"], row["r2"])
            for name, row in zip(names, entries, strict=True)
        ),
        note,
    )


def friction_table(model: EnergyModel) -> Table:
    """Torque constants and friction (S0 Table VI)."""
    names = list(dict.fromkeys(n for j in model.joints for n in j.friction.law.parameters))
    rows = []
    for joint in model.joints:
        row: list[Cell] = [
            short_name(joint.name),
            _pm(joint.torque_constant, joint.std.get("torque_constant")),
            joint.friction.law.name.replace("_", " "),
        ]
        for name in names:
            value = joint.friction.parameters.get(name)
            row.append(None if value is None else _pm(value, joint.std.get(name)))
        row.append(_source(joint.source, "torque_constant"))
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
    """Why each joint has its friction law."""
    return Table(
        "friction_choice",
        "Why these friction laws",
        ("", ""),
        tuple(
            (
                short_name(joint.name),
                f"{joint.friction.law.description}: {joint.friction_reason or 'as asked for'}",
            )
            for joint in model.joints
        ),
    )


def drives_table(model: EnergyModel) -> Table:
    """Drive constants: robot file beside what was identified."""
    title, columns, rows = drive_table(model)
    return Table(
        "drives", title[0].upper() + title[1:], tuple(columns), tuple(tuple(row) for row in rows)
    )


def energy_table(summary: EnergySummary, label: str) -> Table:
    """Energy and efficiency (S0 Table VIII)."""
    rows: list[tuple[Cell, ...]] = [
        (
            short_name(name),
            summary.mechanical[j],
            _pm(summary.electrical[j], summary.electrical_std[j]),
            100 * summary.efficiency[j],
            summary.copper[j],
            summary.friction[j],
            summary.regenerated[j],
        )
        for j, name in enumerate(summary.names)
    ]
    mechanical, electrical = float(summary.mechanical.sum()), float(summary.electrical.sum())
    rows += [
        (
            "all motors",
            mechanical,
            electrical,
            100 * mechanical / electrical if electrical > 0 else None,
            float(summary.copper.sum()),
            float(summary.friction.sum()),
            float(summary.regenerated.sum()),
        ),
        ("drivers", None, summary.driver, None, None, None, None),
        ("standby", None, summary.standby, None, None, None, None),
        (
            "whole arm",
            None,
            _pm(summary.supply, summary.supply_std),
            100 * mechanical / summary.supply if summary.supply > 0 else None,
            None,
            None,
            None,
        ),
    ]
    if summary.bus is not None:
        rows.append(("measured at the bus", None, summary.bus, None, None, None, None))
    return Table(
        "table8",
        f"Energy and efficiency, {label} (Table VIII)",
        (
            "",
            "mechanical [J]",
            "electrical [J]",
            "efficiency [%]",
            "copper loss [J]",
            "friction [J]",
            "fed back [J]",
        ),
        tuple(rows),
        "Over the whole recording, ± 95 %. Mechanical energy is what reaches the motor shaft, "
        f"friction included. {_session_note(summary)}",
    )


def _session_note(summary: EnergySummary) -> str:
    """Where the standby power of the recording is from."""
    session = summary.session
    power = f"{session.power:.1f} ± {CONFIDENCE * session.std:.1f} W"
    if session.anchored:
        return (
            f"Standby: {power}, from {session.still_seconds:.1f} s of this recording's standstill."
        )
    return f"Standby: {power}, the model's, for this recording shows no standstill with bus power."


_POWERS = {"power": "from measured currents", "power_from_motion": "from the motion alone"}
"""METRICS keys of power, and how people say them."""


def power_table(metrics: Sequence[Mapping[str, Any]], labels: Sequence[str]) -> Table | None:
    """Errors of power and energy at the supply (EcBot eq. 22-26)."""
    rows = [
        (
            f"{label}, {how}",
            p["rmse"],
            p["rmse_percent"],
            p["r2"],
            p["energy_error_percent"],
            entry.get("motion_energy_error_percent") if key == "power_from_motion" else None,
        )
        for entry, label in zip(metrics, labels, strict=True)
        for key, how in _POWERS.items()
        if (p := entry.get(key)) is not None
    ]
    if not rows:
        return None
    return Table(
        "power_error",
        "Power at the supply: model against measurement",
        (
            "recording",
            "RMSE [W]",
            "RMSE [% of range]",
            "R²",
            "energy error [%]",
            "error of motion energy [%]",
        ),
        tuple(rows),
        "Motion energy is what the supply gives above its power at standstill.",
    )


def provenance_table(model: EnergyModel) -> Table:
    """What made the model."""
    made = model.provenance
    payload = model.setup.payload
    rows: list[tuple[Cell, ...]] = [
        ("robot", model.robot),
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
    return Table("provenance", "Where the model comes from", ("", ""), tuple(rows))


def _pm(value: float, std: float | None) -> Cell:
    """A value with its 95 % interval, or the value alone."""
    if std is None or not np.isfinite(std) or std == 0:
        return float(value)
    half = CONFIDENCE * float(std)
    digits = 1 - int(np.floor(np.log10(half)))
    if digits > 6:
        text = f"{value:.2e} ± {half:.0e}"
    else:
        text = f"{value:.{max(0, digits)}f} ± {half:.{max(0, digits)}f}"
    return text.replace("-", "−")


def _source(sources: Mapping[str, str], name: str) -> str:
    return sources.get(name, "given").replace("_", " ")


def _text(value: Any) -> str:
    return "unknown" if value is None else str(value)
