"""A shift's energy as tables and charts, with its cost and CO2."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ur_energy_model.energy.arm_state import ArmState
from ur_energy_model.errors import InputError
from ur_energy_model.report.charts import BarChart, Bars, Line, LineChart, Panel, Role, Table
from ur_energy_model.report.curves import short_name
from ur_energy_model.report.decimate import break_at
from ur_energy_model.report.shift import Shift
from ur_energy_model.typing import Array

JOULES_PER_KWH = 3.6e6
SHOWN_CYCLES = 30

STATE_NAMES: dict[ArmState, str] = {
    ArmState.OFF: "off",
    ArmState.BRAKED: "brakes engaged",
    ArmState.STANDSTILL: "standing, brakes released",
    ArmState.MOVING: "moving",
    ArmState.PROTECTIVE_STOP: "protective stop",
}


@dataclass(frozen=True)
class Tariff:
    """What energy costs.

    Attributes:
        price: per kWh, in `currency`; None leaves cost out.
        currency: its name.
        co2: kg of CO2 per kWh; None leaves it out.
        supply_efficiency: share of the power from the wall that reaches the robot bus; the
            controller's own supply and computer are not in the telemetry.
    """

    price: float | None = None
    currency: str = "EUR"
    co2: float | None = None
    supply_efficiency: float = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.supply_efficiency <= 1:
            raise InputError(
                "--supply-efficiency",
                f"{self.supply_efficiency:g} is not a share",
                "give a number above 0 and at most 1, such as 0.85",
            )

    def cost(self, joules: float) -> float | None:
        """Cost of an energy at the bus."""
        return None if self.price is None else self.price * self.kwh(joules)

    def emission(self, joules: float) -> float | None:
        """CO2 of an energy at the bus [kg]."""
        return None if self.co2 is None else self.co2 * self.kwh(joules)

    def kwh(self, joules: float) -> float:
        """Energy from the wall [kWh] for an energy at the bus [J]."""
        return joules / JOULES_PER_KWH / self.supply_efficiency


def shift_table(shift: Shift, tariff: Tariff) -> Table:
    """Time, energy, cost and CO2 by what the arm was doing."""
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
    note += ". The controller's computer and power supply are not in the telemetry."
    return Table("shift", "Energy of the shift", tuple(columns), tuple(rows), note)


def shift_charts(shift: Shift) -> list[LineChart | BarChart]:
    """Power over the shift, energy by state, energy per cycle."""
    minutes = shift.time / 60

    def curve(label: str, values: Array, role: Role = "model") -> Line:
        x, y = break_at(minutes, values, shift.starts)
        return Line(label, x, y, role)

    lines = [curve("model", shift.power)]
    if np.isfinite(shift.bus).any():
        lines.insert(0, curve("measured", shift.bus, "measured"))
    charts: list[LineChart | BarChart] = [
        LineChart(
            key="shift_power",
            title="Power over the shift",
            caption="Mean power of the whole arm, second by second.",
            x_label="time [min]",
            y_label="power [W]",
            panels=(Panel("", tuple(lines)),),
            columns=1,
            group="shift",
        )
    ]
    if shift.cycles:
        charts.append(_cycle_chart(shift))
    return charts


def _cycle_chart(shift: Shift) -> BarChart:
    """Energy of the latest cycles, motion and idle."""
    latest = shift.cycles[-SHOWN_CYCLES:]
    figures = [cycle.summary(shift.channels) for cycle in latest]
    return BarChart(
        key="cycles",
        title="Energy per cycle",
        caption="Energy while moving and while waiting, by cycle"
        + (
            f"; the last {len(latest)} of {len(shift.cycles)}."
            if len(shift.cycles) > SHOWN_CYCLES
            else "."
        ),
        y_label="energy [J]",
        categories=tuple(f"cycle {cycle.number}" for cycle in latest),
        joints=(None,) * len(latest),
        bars=(
            Bars("moving", np.array([f["motion_energy"] for f in figures])),
            Bars("waiting", np.array([f["idle_energy"] for f in figures]), role="aside"),
        ),
        stacked=True,
    )


def cycle_table(shift: Shift) -> Table | None:
    """What cycles take on average, and how much they differ."""
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
        *((f"{joint}_energy", f"{short_name(joint)} [J]") for joint in shift.joint_names),
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
