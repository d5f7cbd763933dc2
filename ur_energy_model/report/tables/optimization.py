"""Tables of an optimized cycle: what to type, and what is saved."""

from __future__ import annotations

from ur_energy_model.optimization.optimized_cycle import BREAK, DAYS, MeasuredSaving, OptimizedCycle
from ur_energy_model.report.tables.table import Cell, Lock, Table
from ur_energy_model.report.tariff import Tariff

DAY = 86400.0
"""Of a machine that never stops [s]."""


def sheet_table(optimized: OptimizedCycle) -> Table:
    """What to type, step by step; each move with its lock."""
    energies = {k: (move.move.energy, move.typed_energy) for k, move in enumerate(optimized.moves)}
    lines = any(step.line is not None for step in optimized.sheet)
    rows: list[tuple[Cell, ...]] = []
    for number, step in enumerate(optimized.sheet, 1):
        wait = step.do == "wait"
        before, after = energies[step.move]
        rows.append(
            (
                f"{number} {step.do}",
                Lock(number, step.kept) if not wait else "kept" if step.kept else "",
                *((None if step.line is None else str(step.line),) if lines else ()),
                "" if step.waypoint is None else "  ".join(f"{q:.2f}" for q in step.waypoint),
                "" if wait else step.text("speed"),
                "" if wait else step.text("acceleration"),
                step.text("wait") if wait else "",
                "" if wait else f"{before:.1f} → {after:.1f}",
            )
        )
    return Table(
        "what_to_type",
        "What to type",
        (
            "step",
            "lock",
            *(("line",) if lines else ()),
            "waypoint [°]",
            "speed",
            "acceleration",
            "wait",
            "energy [J]",
        ),
        tuple(rows),
        "Steps in the order of the program, as recorded → to type; all of them, and nothing else. "
        "The waypoint is where the move ends. Speed and acceleration are those of the leading "
        "joint for moveJ, of the tool for moveL; a step without values is neither straight in "
        "joint space nor at the tool and stays. Ticked moves stay exactly as recorded; after a "
        "change, compute the sheet anew with",
        "ur_energy optimize MODEL.yaml BAG --no-keep-slow",
    )


def saving_table(optimized: OptimizedCycle, tariff: Tariff) -> Table:
    """Saving of one cycle, one day and one year."""
    saved = optimized.energy - optimized.typed_energy
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
        row("as typed", optimized.typed_duration, optimized.typed_energy),
        row("as set points", optimized.duration, optimized.new_energy),
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
        "Of the whole arm at the supply, from the model where not stated otherwise. As typed is "
        "the sheet; as set points is the motion of servoj.csv and joint_trajectory.yaml, which is "
        "not bound to trapezoids of speed.",
    )


def ceiling_table(optimized: OptimizedCycle) -> Table | None:
    """What can be saved at all, and what speed costs the arm; None if it was not computed."""
    ceiling, loads = optimized.ceiling, optimized.loads
    if ceiling is None or loads is None:
        return None
    second = ceiling.joules_per_second
    now, typed, fast = loads
    rows: list[tuple[Cell, ...]] = [
        ("standby, part of this cycle", f"{100 * ceiling.standby_share:.0f} %"),
        ("most that can be saved at this cycle time", f"{ceiling.most_saving_percent:.1f} %"),
        (
            "saved by a cycle that is a second shorter",
            "it cannot be shorter" if second is None else f"{second:.0f} J",
        ),
        (
            f"switched off in a break of {BREAK:.0f} min a day, saved in a year",
            f"{ceiling.break_energy() / 3.6e6:.0f} kWh",
        ),
        (
            "largest torque, share of the limit: now, as typed, as fast as possible",
            ", ".join(f"{100 * load.torque_share:.0f} %" for load in (now, typed, fast)),
        ),
        (
            "effective torque (gears, motors): as typed and as fast as possible, over now",
            ", ".join(f"{load.torque_rms / now.torque_rms:.2f}" for load in (typed, fast)),
        ),
        (
            "peak power: now, as typed, as fast as possible",
            ", ".join(f"{load.power:.0f} W" for load in (now, typed, fast)),
        ),
    ]
    return Table(
        "ceiling",
        "What can be saved at all",
        ("", "value"),
        tuple(rows),
        "Predicted, at the robot bus. The most that can be saved is that of the optimum with every "
        "move and every wait free, on the same paths.",
    )


def measured_table(measured: MeasuredSaving | None) -> Table | None:
    """The measured saving; None if it was not measured."""
    if measured is None:
        return None
    rows: list[tuple[Cell, ...]] = [
        ("energy of a cycle as recorded [J]", f"{measured.energy:.1f}"),
        ("energy of a cycle as typed [J]", f"{measured.new_energy:.1f}"),
        ("saving [%]", f"{measured.saving_percent:.2f}"),
        ("its 95 % interval [%]", "{:.2f} to {:.2f}".format(*measured.interval)),
        ("cycles of each kind", f"{measured.cycles}"),
    ]
    if measured.temperature is not None:
        for name, values in zip(("recorded", "typed"), measured.temperature, strict=True):
            text = ", ".join(f"{value:.1f}" for value in values)
            rows.append((f"joint temperatures, {name} cycles [°C]", text))
    return Table(
        "measured",
        "Measured on the arm",
        ("", "value"),
        tuple(rows),
        "The cycles as recorded and as typed were run in turns and their bus voltage times current "
        "was integrated; the interval comes from the differences of neighbouring cycles.",
    )
