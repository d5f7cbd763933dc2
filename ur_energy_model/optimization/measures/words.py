# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Measures in words: for a terminal, and for the cells of a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ur_energy_model.energy.meter import CONFIDENCE
from ur_energy_model.energy.tariff import Tariff
from ur_energy_model.optimization.measures.measure import (
    Kind,
    Measure,
    Omitted,
    Saving,
    year_words,
)

if TYPE_CHECKING:
    from ur_energy_model.optimization.measures.ranking import Measures

TITLE = "What can be done"
NAMES: Mapping[Kind, str] = {
    "payload": "set the right payload",
    "pose": "wait in a cheaper pose",
    "pause": "switch off in pauses",
    "moves": "other speeds of all moves",
    "line": "other speed of one line",
    "cold_start": "fewer cold starts",
}
MOST_SHOWN = 8  # measures that are shown in a terminal


def name_of(measure: Measure) -> str:
    """The kind of a measure, with its place in the program if it has one."""
    name = NAMES[measure.kind]
    if measure.place:
        name += f" ({measure.place})"
    return name


def with_half_width(value: float, std: float) -> str:
    """A value with half of its 95 % interval, in digits that are meaningful for this half."""
    half = CONFIDENCE * std
    digits = 0
    if 0.95 <= half < 9.5:
        digits = 1
    elif 0.0 < half < 0.95:
        digits = 2
    return f"{value + 0.0:.{digits}f} ± {half:.{digits}f}"


def in_recording_words(measure: Measure) -> str:
    """The saving at the supply: per cycle, per cold start, or in the whole recording."""
    saving = measure.saving
    per = "in the recording"
    if measure.per_cycle is not None:
        saving = measure.per_cycle
        per = "per cycle"
    elif measure.kind == "cold_start":
        per = "per cold start"
    return f"{with_half_width(saving.energy, saving.std)} J {per}"


def per_year_words(year: Saving, tariff: Tariff) -> str:
    """The saving of a year in kWh, as the tariff counts them (at the wall or at the supply)."""
    energy = tariff.kwh(year.energy, year.wall_energy)
    std = abs(tariff.kwh(year.std, year.wall_std))
    return f"{with_half_width(energy, std)} kWh a year"


def paid_words(year: Saving, tariff: Tariff) -> str:
    """Cost and CO2 of a year's saving; empty without a tariff."""
    parts = []
    for amount_of, unit in ((tariff.cost, tariff.currency), (tariff.emission, "kg CO₂")):
        value = amount_of(year.energy, year.wall_energy)
        std = amount_of(year.std, year.wall_std)
        if value is not None and std is not None:
            parts.append(f"{with_half_width(value, abs(std))} {unit}")
    return ", ".join(parts)


def what_to_do(measure: Measure) -> str:
    """The finding of a measure, what to do about it, and its condition if there is one."""
    condition = f" ({measure.condition})" if measure.condition else ""
    return f"{measure.title}: {measure.action}{condition}"


def assumption(measures: Measures, tariff: Tariff) -> str:
    """A clause on what the figures mean."""
    years = list(dict.fromkeys(year_words(each, tariff) for each in measures.measures))
    return f"95 % intervals; kWh at the wall; in a year {' or '.join(years)}"


def omitted_words(omitted: Sequence[Omitted]) -> str:
    """Kinds of measures that are not listed, grouped by the reason."""
    names_by_reason: dict[str, list[str]] = {}
    for each in omitted:
        names_by_reason.setdefault(each.reason, []).append(NAMES[each.kind])
    groups = [
        f"{', '.join(names)}: {reason}" for reason, names in names_by_reason.items()
    ]
    return "; ".join(groups)


def no_measure(measures: Measures) -> str:
    """A sentence where no measure was found."""
    return f"{TITLE}: nothing was found ({omitted_words(measures.omitted)})."


def text_lines(
    measures: Measures, tariff: Tariff, *, named: bool = False
) -> Iterator[str]:
    """Measures as lines of text; further lines of a measure are indented below its first one.

    Args:
        measures: measures of one or several recordings.
        tariff: cost and CO2 of energy.
        named: whether each measure has the name of its recording.
    """
    if not measures.measures:
        yield no_measure(measures)
        return
    yield f"{TITLE} ({assumption(measures, tariff)}):"
    for number, measure in enumerate(measures.measures[:MOST_SHOWN], 1):
        year = measures.per_year(measure, tariff)
        amounts = [in_recording_words(measure), per_year_words(year, tariff)]
        paid = paid_words(year, tariff)
        if paid:
            amounts.append(paid)
        bag = f"{Path(measure.source).name}: " if named else ""
        text = ", ".join([*amounts, measure.sure])
        yield f"{number}. {bag}{name_of(measure)}: {text}"
        yield f"   {what_to_do(measure)}"
        if measure.command:
            yield f"   $ {measure.command}"
    more = len(measures.measures) - MOST_SHOWN
    if more > 0:
        yield f"{more} more: --json lists all"
    if measures.omitted:
        yield f"Not listed: {omitted_words(measures.omitted)}"
