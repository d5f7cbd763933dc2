"""The table of energy and efficiency."""

from __future__ import annotations

from ur_energy_model.energy.energy_summary import EnergySummary
from ur_energy_model.energy.meter import CONFIDENCE
from ur_energy_model.report.tables.table import Cell, Table, with_interval


def energy_table(summary: EnergySummary, label: str) -> Table:
    """Energy and efficiency (S0 Table VIII)."""
    rows: list[tuple[Cell, ...]] = [
        (
            name,
            summary.mechanical[j],
            with_interval(summary.electrical[j], summary.electrical_std[j]),
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
        ("regeneration", None, summary.regeneration, None, None, None, None),
        (
            "whole arm",
            None,
            with_interval(summary.supply, summary.supply_std),
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
        "Over the whole recording, ± 95 %. Mechanical energy is that at the motor shaft, "
        "friction included. Regeneration is what the supply cannot take back; with motors, drivers "
        f"and standby it is the whole arm. {_session_note(summary)}",
    )


def _session_note(summary: EnergySummary) -> str:
    """The standby power of the recording, and its source."""
    session = summary.session
    power = f"{session.power:.1f} ± {CONFIDENCE * session.std:.1f} W"
    if session.anchored:
        return (
            f"Standby: {power}, from {session.still_seconds:.1f} s of this recording's standstill."
        )
    return f"Standby: {power}, from the model: the recording has no standstill with bus power."
