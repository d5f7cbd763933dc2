# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Tables of recordings: energies, and errors of the model.

They are numbered as in Clochiatti et al., Robotica 2024 (S0); errors of the power are
defined by Heredia et al., EcBot, eq. 22-26.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ur_energy_model.energy.energy_summary import EnergySummary
from ur_energy_model.identification.evaluation import POWERS, r2_words
from ur_energy_model.report.page import Cell, Table, with_interval

# a row of `energy_table`: name, then a cell for each of the other columns
_EnergyRow = tuple[Cell, ...]


def energy_table(summary: EnergySummary, label: str) -> Table:
    """Energy and efficiency of joints and whole arm (S0 Table VIII).

    Args:
        summary: energies of a recording.
        label: short name of the recording.
    """
    columns = (
        "",
        "mechanical [J]",
        "electrical [J]",
        "efficiency [%]",
        "copper loss [J]",
        "friction [J]",
        "fed back [J]",
    )
    source = summary.total_source.words(summary.explained_share)
    session = summary.session
    note = (
        "Over the whole recording, ± 95 %. Mechanical energy is that at the motor shaft, "
        "friction included. Regeneration is what the supply cannot take back; with motors, drivers "
        f"and standby it is the sum of the model. Whole arm: {source}. "
        f"Standby: {session.power_words()}, {session.words()}."
    )
    rows = [*_energies_of_joints(summary), *_energies_of_arm(summary)]
    return Table(f"Energy and efficiency, {label} (Table VIII)", columns, rows, note)


def _energies_of_joints(summary: EnergySummary) -> list[_EnergyRow]:
    """A row for each joint, and one for their sums."""
    rows: list[_EnergyRow] = []
    for j, name in enumerate(summary.names):
        rows.append(
            (
                name,
                summary.mechanical[j],
                with_interval(summary.electrical[j], summary.electrical_std[j]),
                100 * summary.efficiency[j],
                summary.copper[j],
                summary.friction[j],
                summary.regenerated[j],
            )
        )
    electrical = float(summary.electrical.sum())
    rows.append(
        (
            "all motors",
            float(summary.mechanical.sum()),
            electrical,
            _efficiency(summary, electrical),
            float(summary.copper.sum()),
            float(summary.friction.sum()),
            float(summary.regenerated.sum()),
        )
    )
    return rows


def _energies_of_arm(summary: EnergySummary) -> list[_EnergyRow]:
    """A row for each part of the energy that belongs to no joint, and one for the whole arm."""
    parts: list[tuple[str, Cell]] = [
        ("drivers", summary.driver),
        ("standby", summary.standby),
        ("regeneration", summary.regeneration),
    ]
    if summary.total_source.name != "modelled":
        modelled = with_interval(summary.model, summary.model_std)
        unexplained = with_interval(summary.unexplained, summary.unexplained_std)
        parts += [("sum of the model", modelled), ("unexplained", unexplained)]
    rows: list[_EnergyRow] = [
        (name, None, energy, None, None, None, None) for name, energy in parts
    ]
    total = with_interval(summary.supply, summary.supply_std)
    efficiency = _efficiency(summary, summary.supply)
    name = f"whole arm, {summary.total_source.name}"
    rows.append((name, None, total, efficiency, None, None, None))
    return rows


def _efficiency(summary: EnergySummary, energy: float) -> float | None:
    """Mechanical energy of all joints over an energy [J], in percent; None over none."""
    return 100 * float(summary.mechanical.sum()) / energy if energy > 0 else None


_ERRORS = {
    "torque": ("Torque", "N m", "V", "The mean is that of absolute errors."),
    "current": (
        "Current",
        "A",
        "VII",
        "Filtered currents of joints that move; the mean is that of absolute errors. The paper "
        "takes every sample unfiltered and keeps the sign of the mean: ur_energy protocol s0.",
    ),
}
"""Name, unit, number of the table in S0, and note of the signals in METRICS."""


def error_table(
    key: str, metrics: Mapping[str, Any], names: Sequence[str], label: str
) -> Table | None:
    """Mean, largest and RMS error and R² by joint (S0 Tables V and VII).

    Args:
        key: "torque" or "current", as in METRICS.
        metrics: METRICS of a recording.
        names: names of the joints.
        label: short name of the recording.

    Returns:
        The table; None where the signal was not recorded.
    """
    what, unit, number, note = _ERRORS[key]
    entries = metrics.get(key)
    if entries is None:
        return None
    columns = ("joint", f"mean [{unit}]", f"largest [{unit}]", f"RMS [{unit}]", "R²")
    rows = [
        (name, entry["mean"], entry["max"], entry["rms"], r2_words(entry))
        for name, entry in zip(names, entries, strict=True)
    ]
    return Table(f"{what} error, {label} (Table {number})", columns, rows, note)


def joint_power_table(metrics: Mapping[str, Any], label: str) -> Table | None:
    """Modelled and measured energy of each joint, or why there is no measured one.

    Args:
        metrics: METRICS of a recording.
        label: short name of the recording.

    Returns:
        The table; None where the metrics have no entry of the joints.
    """
    joints = metrics.get("joint_power")
    if not joints:
        return None
    title = f"Energy of the joints: modelled and measured, {label}"
    columns = ("joint", "modelled [J]", "measured [J]", "measured / modelled")
    rows: list[tuple[Cell, ...]] = []
    if "reason" in joints[0]:
        rows.append(("all", None, "not measured", None))
        return Table(title, columns, rows, f"Not measured: {joints[0]['reason']}.")
    for joint in joints:
        ratio: Cell = None
        if joint["ratio"] is not None:
            ratio = with_interval(joint["ratio"], joint["ratio_std"])
        modelled = with_interval(joint["modelled_J"], joint["modelled_std_J"])
        measured = with_interval(joint["measured_J"], joint["measured_std_J"])
        rows.append((joint["joint"], modelled, measured, ratio))
    note = (
        "Motor and drive while the arm moves, ± 95 %; measured by the voltages at the joints and "
        "the current of the supply."
    )
    further = joints[0].get("note", "")
    if further:
        note += f" {further[0].upper()}{further[1:]}."
    return Table(title, columns, rows, note)


def power_table(
    metrics: Sequence[Mapping[str, Any]], labels: Sequence[str]
) -> Table | None:
    """Errors of power and energy at the supply (EcBot, eq. 22-23).

    Args:
        metrics: METRICS of the recordings.
        labels: short names of the recordings.

    Returns:
        The table; None where power was not recorded.
    """
    rows: list[tuple[Cell, ...]] = []
    for entry, label in zip(metrics, labels, strict=True):
        for key, how in POWERS.items():
            power = entry.get(key)
            if power is None:
                continue
            # Models written before the interval was stored have none.
            low = power.get("rmse_low")
            high = power.get("rmse_high")
            interval = None
            if low is not None and high is not None:
                interval = f"{low:.2f} to {high:.2f}"
            error_of_motion = None
            if key == "power_from_motion":
                error_of_motion = entry.get("motion_energy_error_percent")
            rows.append(
                (
                    f"{label}, {how}",
                    power["rmse"],
                    power["energy_error_percent"],
                    error_of_motion,
                    interval,
                    power["rmse_percent"],
                    power["r2"],
                )
            )
    if not rows:
        return None
    columns = (
        "recording",
        "RMSE [W]",
        "energy error [%]",
        "error of motion energy [%]",
        "95 % [W]",
        "RMSE [% of range]",
        "R²",
    )
    note = "Motion energy is the energy of the supply above its power at standstill."
    return Table("Power at the supply: model against measurement", columns, rows, note)
