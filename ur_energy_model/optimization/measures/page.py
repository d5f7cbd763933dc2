# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""What can be done for less energy, as a section of a page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ur_energy_model.energy.advice import AdviceSection, AdviceTable
from ur_energy_model.energy.tariff import Tariff
from ur_energy_model.optimization.measures.measure import Measure
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

if TYPE_CHECKING:
    from ur_energy_model.optimization.measures.ranking import Measures


def measures_section(measures: Measures, tariff: Tariff) -> AdviceSection:
    """The measures of all recordings together, the best first, and why there are no others."""
    listed = measures.measures
    tables: list[AdviceTable] = []
    text = "Nothing was found."
    if listed:
        text = (
            "Ranked by what they save in a year. Savings overlap: they cannot be added."
        )
        tables += [_savings(measures, tariff), _actions(listed)]
    if measures.omitted:
        omitted = [(NAMES[each.kind], each.reason) for each in measures.omitted]
        tables.append(AdviceTable("Not listed, and why", ("", ""), omitted))
    return AdviceSection("measures", TITLE, text, tables)


def _savings(measures: Measures, tariff: Tariff) -> AdviceTable:
    """What each measure saves, per cycle and in a year."""
    is_paid = tariff.price is not None or tariff.co2 is not None
    columns = ["", "at the supply", "in a year, at the wall"]
    if is_paid:
        columns.append("paid in a year")
    columns.append("how sure")
    rows: list[Sequence[str]] = []
    for name, measure in _named(measures.measures):
        year = measures.per_year(measure, tariff)
        amounts = [in_recording_words(measure), per_year_words(year, tariff)]
        if is_paid:
            amounts.append(paid_words(year, tariff))
        rows.append((name, *amounts, measure.sure))
    clause = assumption(measures, tariff)
    note = f"{clause[0].upper()}{clause[1:]}."
    return AdviceTable("What they save", columns, rows, note)


def _actions(listed: Sequence[Measure]) -> AdviceTable:
    """What to do for each measure, with the command that gives what to type."""
    rows = []
    for name, measure in _named(listed):
        command = f" Command: {measure.command}" if measure.command else ""
        todo = what_to_do(measure)
        rows.append((name, f"{todo[0].upper()}{todo[1:]}.{command}"))
    return AdviceTable("What to do", ("", ""), rows)


def _named(listed: Sequence[Measure]) -> list[tuple[str, Measure]]:
    """Measures with a number and a name, which contains the recording if there are several."""
    several = len({each.source for each in listed}) > 1
    named = []
    for number, measure in enumerate(listed, 1):
        name = f"{number}. {name_of(measure)}"
        if several:
            name += f", {Path(measure.source).name}"
        named.append((name, measure))
    return named
