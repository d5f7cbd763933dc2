# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""What can be done for less energy, as a section of a page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ur_energy_model.energy.tariff import Tariff
from ur_energy_model.optimization.measures.measure import Measure, Measures
from ur_energy_model.optimization.measures.words import (
    NAMES,
    TITLE,
    assumption,
    in_recording_words,
    name_of,
    paid_words,
    per_year_words,
    what_to_do,
)
from ur_energy_model.report.page import Cell, Section, Table, items


def measures_section(measures: Measures, tariff: Tariff) -> Section:
    """The measures of all recordings together, the best first, and why there are no others."""
    listed = measures.measures
    text = "Ranked by what they save in a year. Savings overlap: they cannot be added."
    if not listed:
        text = "Nothing was found."
    omitted = [(NAMES[each.kind], each.reason) for each in measures.omitted]
    reasons = Table("Not listed, and why", ("", ""), omitted) if omitted else None
    found = (_savings(measures, tariff), _actions(listed)) if listed else ()
    return Section("measures", TITLE, text, items(*found, reasons))


def _savings(measures: Measures, tariff: Tariff) -> Table:
    """What each measure saves, per cycle and in a year."""
    paid = [] if tariff.price is None and tariff.co2 is None else ["paid in a year"]
    columns = ("", "at the supply", "in a year, at the wall", *paid, "how sure")
    rows: list[Sequence[Cell]] = []
    for name, measure in _named(measures.measures):
        year = measures.per_year(measure, tariff)
        amounts = [in_recording_words(measure), per_year_words(year, tariff)]
        amounts += [paid_words(year, tariff)] if paid else []
        rows.append((name, *amounts, measure.sure))
    clause = assumption(measures, tariff)
    return Table("What they save", columns, rows, f"{clause[0].upper()}{clause[1:]}.")


def _actions(listed: Sequence[Measure]) -> Table:
    """What to do for each measure, with the command that gives what to type."""
    rows = []
    for name, measure in _named(listed):
        command = f" Command: {measure.command}" if measure.command else ""
        todo = what_to_do(measure)
        rows.append((name, f"{todo[0].upper()}{todo[1:]}.{command}"))
    return Table("What to do", ("", ""), rows)


def _named(listed: Sequence[Measure]) -> list[tuple[str, Measure]]:
    """Measures with names, which have the recording where there are several."""
    several = len({each.source for each in listed}) > 1
    named = []
    for number, measure in enumerate(listed, 1):
        of = f", {Path(measure.source).name}" if several else ""
        named.append((f"{number}. {name_of(measure)}{of}", measure))
    return named
