"""Tables of an optimized cycle: what to type, and what is saved."""

from __future__ import annotations

import math

from ur_energy_model.optimization.optimized_cycle import MeasuredSaving, OptimizedCycle
from ur_energy_model.optimization.pendant import typed_text
from ur_energy_model.report.tables.table import Cell, Table
from ur_energy_model.report.tariff import Tariff

DAY, DAYS = 86400.0, 365.0
"""Of a machine that never stops [s, days]."""


def moves_table(optimized: OptimizedCycle) -> Table:
    """Moves with their times, energies and what to type."""
    rows: list[tuple[Cell, ...]] = []
    for number, move in enumerate(optimized.moves, 1):
        before = move.move
        speed, acceleration = typed_text(move)
        rows.append(
            (
                f"{number} {before.kind}",
                f"{before.start:.2f}",
                f"{before.duration:.2f} → {move.duration:.2f}",
                speed,
                acceleration,
                f"{before.energy:.1f} → {move.energy:.1f}",
                f"{move.typed_energy:.1f}" if math.isfinite(move.typed_energy) else None,
                f"{before.peak_power:.0f}",
            )
        )
    return Table(
        "what_to_type",
        "What to type",
        (
            "move",
            "starts at [s]",
            "duration [s]",
            "speed",
            "acceleration",
            "energy [J]",
            "with typed values [J]",
            "peak now [W]",
        ),
        tuple(rows),
        "Speed and acceleration of the leading joint for moveJ, of the tool for moveL: as recorded "
        "and to type. The last energy includes the wait until the end of the move's time. A move "
        "without values is neither straight in joint space nor at the tool; its set points are "
        "among the exported files.",
    )


def saving_table(optimized: OptimizedCycle, tariff: Tariff) -> Table:
    """Saving of one cycle, one day and one year."""
    saved = optimized.energy - optimized.new_energy
    if optimized.measured is not None:
        saved = optimized.measured.energy - optimized.measured.new_energy
    daily = DAY / optimized.duration
    columns = ["", "cycles", "energy"]
    if tariff.price is not None:
        columns.append(f"cost [{tariff.currency}]")
    if tariff.co2 is not None:
        columns.append("CO₂ [kg]")

    def row(name: str, cycles: float) -> tuple[Cell, ...]:
        energy = cycles * saved
        text = f"{energy:.1f} J" if cycles == 1 else f"{tariff.kwh(energy):.2f} kWh"
        cost, emission = tariff.cost(energy), tariff.emission(energy)
        cells: list[Cell] = [name, f"{cycles:.0f}", text]
        cells += [f"{cost:.4g}"] if cost is not None else []
        cells += [f"{emission:.4g}"] if emission is not None else []
        return tuple(cells)

    basis = "measured" if optimized.measured is not None else "predicted"
    return Table(
        "saving",
        "What is saved",
        tuple(columns),
        (row("one cycle", 1.0), row("one day", daily), row("one year", DAYS * daily)),
        f"From the {basis} saving, for a machine that runs {DAY / 3600:.0f} hours a day and "
        f"{DAYS:.0f} days a year. The cycle's energy is that of the robot bus; kWh, cost and CO₂ "
        f"are at the wall, with {100 * tariff.supply_efficiency:.0f} % of the power reaching the "
        "bus. The controller's computer and power supply are not included.",
    )


def energies_table(optimized: OptimizedCycle) -> Table:
    """Energies of the cycle: recorded, new, and those it is compared with."""

    def row(name: str, duration: float, energy: float) -> tuple[Cell, ...]:
        share = 100.0 * (energy / optimized.energy - 1.0)
        return name, f"{duration:.2f}", f"{energy:.1f}", f"{share:+.1f}".replace("-", "−")

    cycle = optimized.cycle
    rows = [row("as recorded", cycle.duration, optimized.energy)]
    if cycle.measured_energy is not None:
        rows.append(row("as recorded, measured", cycle.duration, cycle.measured_energy))
    rows += [
        row("new", optimized.duration, optimized.new_energy),
        row("new, with typed values", optimized.duration, optimized.typed_energy),
        row("slowed by speed scaling", optimized.duration, optimized.scaled_energy),
        row(
            "as fast as the limits allow",
            optimized.time_optimal_duration,
            optimized.time_optimal_energy,
        ),
    ]
    return Table(
        "energies",
        "Energy of one cycle",
        ("", "duration [s]", "energy [J]", "difference [%]"),
        tuple(rows),
        "Of the whole arm at the supply, from the model where not stated otherwise.",
    )


def measured_table(measured: MeasuredSaving | None) -> Table | None:
    """The measured saving; None if it was not measured."""
    if measured is None:
        return None
    rows: list[tuple[Cell, ...]] = [
        ("energy of a cycle as recorded [J]", f"{measured.energy:.1f}"),
        ("energy of a new cycle [J]", f"{measured.new_energy:.1f}"),
        ("saving [%]", f"{measured.saving_percent:.2f}"),
        ("its 95 % interval [%]", "{:.2f} to {:.2f}".format(*measured.interval)),
        ("cycles of each kind", f"{measured.cycles}"),
    ]
    if measured.temperature is not None:
        for name, values in zip(("recorded", "new"), measured.temperature, strict=True):
            text = ", ".join(f"{value:.1f}" for value in values)
            rows.append((f"joint temperatures, {name} cycles [°C]", text))
    return Table(
        "measured",
        "Measured on the arm",
        ("", "value"),
        tuple(rows),
        "Both cycles were run in turns and their bus voltage times current was integrated; the "
        "interval comes from the differences of neighbouring cycles.",
    )
