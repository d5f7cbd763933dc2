"""The layout of the page of an optimized cycle."""

from __future__ import annotations

from ur_energy_model.optimization.optimized_cycle import OptimizedCycle
from ur_energy_model.report.charts import optimization as charts
from ur_energy_model.report.optimization import OptimizationReport
from ur_energy_model.report.page.layout import arm_name
from ur_energy_model.report.page.page import Item, Page, Section, Tile
from ur_energy_model.report.tables.optimization import (
    ceiling_table,
    energies_table,
    measured_table,
    saving_table,
    sheet_table,
)
from ur_energy_model.report.verdict import Grade, ModelVerdict, Statement


def optimization_page(report: OptimizationReport) -> Page:
    """The page of an optimized cycle."""
    found = report.optimized
    cycle = found.cycle
    measured, curve = measured_table(found.measured), charts.cycle_time_chart(report)
    ceiling = ceiling_table(found)
    energy = (
        Item(energies_table(found)),
        *([Item(measured)] if measured is not None else []),
        Item(charts.power_chart(report)),
        *([] if curve is None else [Item(curve)]),
        Item(saving_table(found, report.tariff)),
    )
    moves = (
        Item(sheet_table(found)),
        Item(charts.moves_chart(report)),
        Item(charts.speed_chart(report)),
    )
    many = "1 cycle" if cycle.count == 1 else f"{cycle.count} cycles"
    return Page(
        title=f"Less energy for a cycle of a {arm_name(cycle.robot)}",
        subtitle=f"Recording: {cycle.source}, {many} of {cycle.duration:.2f} s with "
        f"{len(cycle.moves)} moves.",
        verdict=_verdict(found),
        tiles=_tiles(report),
        joint_names=report.joint_names,
        recordings=(),
        sections=(
            *(
                ()
                if ceiling is None
                else (Section("ceiling", "The ceiling", "", (Item(ceiling),)),)
            ),
            Section("moves", "The program", "", moves),
            Section("energy", "Energy", "", energy),
        ),
    )


def _verdict(found: OptimizedCycle) -> ModelVerdict:
    """The saving in a sentence, and what it rests on."""
    low, high = found.typed_interval if found.measured is None else found.measured.interval
    saving = found.typed_saving_percent if found.measured is None else found.measured.saving_percent
    grade: Grade = "good" if found.proven else "fair" if saving > 0 else "poor"
    basis = "predicted as typed" if found.measured is None else "measured"
    headline = (
        f"{saving:.1f} % less energy per cycle, {basis} ({low:.1f} to {high:.1f} % with 95 % "
        f"confidence{'' if found.proven else ': not proven'})."
    )
    ceiling = () if found.ceiling is None else (Statement("good", found.ceiling.text()),)
    notes = tuple(Statement("fair", note) for note in found.notes)
    return ModelVerdict(grade, headline, (*ceiling, *notes))


def _tiles(report: OptimizationReport) -> tuple[Tile, ...]:
    found = report.optimized
    before, after = (float(powers.total.max()) for powers in (report.before, report.after))
    tiles = [
        Tile(f"{found.typed_saving_percent:.1f} %", "saving as typed, predicted"),
        Tile(f"{found.typed_energy:.0f} J", f"per cycle, predicted; now {found.energy:.0f} J"),
        Tile(f"{found.typed_duration:.2f} s", f"cycle time; now {found.cycle.duration:.2f} s"),
        Tile(f"{found.cycle.slack:.1f} s", "of waiting that need not stay"),
        Tile(f"{after:.0f} W", f"peak power; now {before:.0f} W"),
    ]
    if found.measured is not None:
        tiles.insert(1, Tile(f"{found.measured.saving_percent:.1f} %", "saving, measured"))
    return tuple(tiles)
