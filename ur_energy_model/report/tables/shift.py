"""Tables of a shift: energy by state with its cost and CO2, and cycles."""

from __future__ import annotations

import numpy as np

from ur_energy_model.energy.arm_state import ArmState
from ur_energy_model.report.shift import Shift
from ur_energy_model.report.tables.table import Table
from ur_energy_model.report.tariff import Tariff

STATE_NAMES: dict[ArmState, str] = {
    ArmState.OFF: "off",
    ArmState.BRAKED: "brakes engaged",
    ArmState.STANDSTILL: "standing, brakes released",
    ArmState.MOVING: "moving",
    ArmState.PROTECTIVE_STOP: "protective stop",
}


def shift_table(shift: Shift, tariff: Tariff) -> Table:
    """Time, energy, cost and CO2 by state of the arm."""
    columns = ["", "time [min]", "energy [Wh]", "mean power [W]", "share of energy [%]"]
    if tariff.price is not None:
        columns.append(f"cost [{tariff.currency}]")
    if tariff.co2 is not None:
        columns.append("CO2 [g]")

    def row(name: str, seconds: float, joules: float) -> tuple[str | float | None, ...]:
        cost, emission = tariff.cost(joules), tariff.emission(joules)
        cells: list[str | float | None] = [
            name,
            seconds / 60,
            joules / 3600,
            joules / seconds if seconds > 0 else None,
            100 * joules / shift.energy if shift.energy > 0 else None,
        ]
        if cost is not None:
            cells.append(cost)
        if emission is not None:
            cells.append(1000 * emission)
        return tuple(cells)

    rows = [
        row(STATE_NAMES[state], shift.state_time[state], shift.state_energy[state])
        for state in ArmState
        if shift.state_time[state] > 0
    ]
    rows.append(row("whole recording", shift.seconds, shift.energy))
    note = "Energy of the robot bus"
    if tariff.supply_efficiency < 1:
        note += f"; cost and CO2 at the wall with {100 * tariff.supply_efficiency:.0f} % efficiency"
    note += ". Telemetry does not include the controller's computer and power supply."
    return Table("shift", "Energy of the shift", tuple(columns), tuple(rows), note)


def cycle_table(shift: Shift) -> Table | None:
    """Mean, standard deviation and range of the cycles' durations, energies and peak powers."""
    if not shift.cycles:
        return None
    figures = [cycle.summary(shift.channels) for cycle in shift.cycles]
    rows = []
    for key, name in (
        ("duration", "duration [s]"),
        ("total_energy", "energy [J]"),
        ("motion_energy", "energy while moving [J]"),
        ("idle_energy", "energy while waiting [J]"),
        ("peak_power", "peak power [W]"),
        *((f"{joint}_energy", f"{joint} [J]") for joint in shift.joint_names),
    ):
        values = np.array([f[key] for f in figures])
        rows.append(
            (
                name,
                float(values.mean()),
                float(values.std()),
                float(values.min()),
                float(values.max()),
            )
        )
    return Table(
        "cycle_table",
        f"{len(figures)} cycles",
        ("per cycle", "mean", "standard deviation", "smallest", "largest"),
        tuple(rows),
    )
