"""Tables of many arms: energies, cycles, unusual days, and where the figures are from."""

from __future__ import annotations

import numpy as np

from ur_energy_model.plant.history.anomalies import number_text
from ur_energy_model.plant.history.fleet_days import FleetDays, Work, day_of
from ur_energy_model.report.plant import PlantReport
from ur_energy_model.report.tables.table import Cell, Table
from ur_energy_model.report.tariff import JOULES_PER_KWH, Tariff

MOST_ROWS = 200


def arms_table(fleet: FleetDays, tariff: Tariff) -> Table | None:
    """Every arm: energy, shares, mean power, cost."""
    if not fleet.arms:
        return None
    columns = ["arm", "type", "days", "time [h]", "energy [kWh]", "share of all [%]", "mean [W]",
               "standby [%]", "idle [%]", "left on [h]", "left on [kWh]"]  # fmt: skip
    if tariff.price is not None:
        columns.append(f"cost [{tariff.currency}]")
    if tariff.co2 is not None:
        columns.append("CO₂ [kg]")
    sums = {name: fleet.by_arm(name) for name in fleet.daily}
    everything = max(fleet.total("energy"), 1e-12)
    rows = []
    for k in np.argsort(-sums["energy"], kind="stable")[:MOST_ROWS]:
        energy, time = float(sums["energy"][k]), float(sums["duration"][k])
        share = 100 / energy if energy > 0 else float("nan")
        cells: list[Cell] = [
            fleet.arms[k],
            fleet.robots[k],
            str(int(np.isfinite(fleet.daily["energy"][k]).sum())),
            time / 3600,
            energy / JOULES_PER_KWH,
            100 * energy / everything,
            energy / time if time > 0 else None,
            share * float(sums["standby"][k]),
            share * (energy - float(sums["motion"][k])),
            float(sums["left_on_time"][k]) / 3600,
            float(sums["left_on"][k]) / JOULES_PER_KWH,
        ]
        cells += [] if tariff.price is None else [tariff.cost(energy)]
        cells += [] if tariff.co2 is None else [tariff.emission(energy)]
        rows.append(tuple(cells))
    note = (
        "Standby is what the arm takes at all times, also in motion; idle is all energy while no "
        "joint moves; left on are the hours without any motion, a part of idle."
    )
    if len(fleet.arms) > MOST_ROWS:
        note += f" The first {MOST_ROWS} of {len(fleet.arms)} arms."
    if tariff.supply_efficiency < 1:
        note += (
            f" Cost and CO₂ at the wall, with {100 * tariff.supply_efficiency:.0f} % efficiency."
        )
    return Table("arms_table", "Arms", tuple(columns), tuple(rows), note)


def works_table(works: tuple[Work, ...], tariff: Tariff) -> Table | None:
    """Cycles by arm and program."""
    if not works:
        return None
    columns = ["arm: program", "cycles", "duration [s]", "energy per cycle [J]",
               "standard deviation [J]", "idle [%]"]  # fmt: skip
    if tariff.price is not None:
        columns.append(f"1000 cycles [{tariff.currency}]")
    rows = []
    for work in works[:MOST_ROWS]:
        count, energy = float(work.sums["cycles"].sum()), float(work.sums["energy"].sum())
        mean = energy / count
        spread = np.sqrt(max(float(work.sums["energy_squared"].sum()) / count - mean**2, 0.0))
        cells: list[Cell] = [
            work.name,
            f"{count:.0f}",
            float(work.sums["duration"].sum()) / count,
            mean,
            float(spread),
            100 * float(work.sums["idle"].sum()) / energy if energy > 0 else None,
        ]
        cells += [] if tariff.price is None else [tariff.cost(1000 * mean)]
        rows.append(tuple(cells))
    note = f"The first {MOST_ROWS} of {len(works)}." if len(works) > MOST_ROWS else ""
    return Table("works_table", "Cycles", tuple(columns), tuple(rows), note)


def anomalies_table(report: PlantReport) -> Table | None:
    """Unusual days."""
    if not report.anomalies:
        return None
    rows = tuple(
        (
            each.arm,
            each.when,
            f"{each.quantity} [{each.unit}]",
            number_text(each.value),
            number_text(each.usual),
            f"{each.deviations:.0f}" if each.deviations < 1000 else "> 1000",
        )
        for each in report.anomalies[:MOST_ROWS]
    )
    return Table(
        "anomalies_table",
        "Unusual days",
        ("arm", "day", "what", "value", "usual", "standard deviations"),
        rows,
        "Compared with the median of the same arm over the period. A change of standby power or "
        "of the energy per cycle can also come from another model or another program; ask "
        "ur_energy history health about changes that stay.",
    )


def history_table(report: PlantReport) -> Table:
    """Where the figures are from."""
    fleet = report.fleet
    rows: list[tuple[Cell, ...]] = [
        ("store", report.store),
        ("days and hours", report.zone),
    ]
    if len(fleet.days):
        rows.append(("period", f"{day_of(fleet.days[0])} to {day_of(fleet.days[-1])}"))
        models = sorted({name for text in fleet.models for name in text.split(", ") if name})
        generic = sum("generic" in text for text in fleet.models)
        rows += [
            ("models", ", ".join(models[:20]) + (", …" if len(models) > 20 else "")),
            ("arms with a generic model", f"{generic} of {len(fleet.arms)}"),
        ]
    return Table("history", "Where the figures are from", ("", ""), tuple(rows),
                 "Energy is that at the supply of the arm, by the model; the controller's computer "
                 "and power supply are not included.")  # fmt: skip
