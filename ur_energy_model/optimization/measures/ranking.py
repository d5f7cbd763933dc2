# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Measures of recordings together: ranked, of several recordings as one, and as advice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ur_energy_model.energy.advice import AdviceSection
from ur_energy_model.energy.tariff import Tariff
from ur_energy_model.optimization.measures.measure import (
    KINDS,
    LIKELY,
    Kind,
    Measure,
    Omitted,
    Saving,
    amounts,
    year_words,
)
from ur_energy_model.optimization.measures.page import measures_section
from ur_energy_model.optimization.measures.words import text_lines


@dataclass(frozen=True)
class Measures:
    """The measures that recordings show, and why there are no others: an `Advice`.

    Attributes:
        measures: measures whose saving is at least likely, the best first.
        omitted: kinds of which none is listed.
        seconds: time of the recordings, one after another [s].
    """

    measures: tuple[Measure, ...] = ()
    omitted: tuple[Omitted, ...] = ()
    seconds: float = 0.0

    @classmethod
    def ranked(
        cls, found: Sequence[Measure], omitted: Sequence[Omitted], seconds: float
    ) -> Measures:
        """Measures that are at least likely: a payload first, the others by their yearly saving.

        The right payload saves nothing itself, but all predictions rest on it.

        Args:
            found: measures that were found, in any order.
            omitted: reasons why kinds were not looked for, or not found.
            seconds: duration of the recording [s].
        """
        listed = [measure for measure in found if measure.probability >= LIKELY]
        reasons: dict[Kind, str] = {}
        for measure in found:
            reasons[measure.kind] = _unsure(measure)
        for each in omitted:
            reasons[each.kind] = each.reason
        for measure in listed:
            reasons.pop(measure.kind, None)
        left = [Omitted(kind, reasons[kind]) for kind in KINDS if kind in reasons]
        unranked = cls(tuple(listed), tuple(left), seconds)
        tariff = Tariff()

        def rank(measure: Measure) -> tuple[bool, float]:
            """A key by which a payload is first, and larger savings are earlier."""
            year = unranked.per_year(measure, tariff)
            return measure.kind != "payload", -year.wall_energy

        return replace(unranked, measures=tuple(sorted(listed, key=rank)))

    @classmethod
    def together(cls, parts: Sequence[Measures]) -> Measures:
        """The measures of several recordings, which are one after another in a year's work.

        Measures that are alike, as in recordings of the same program, become one.
        """
        omitted: list[Omitted] = []
        groups: list[list[Measure]] = []
        for part in parts:
            omitted += part.omitted
            for measure in part.measures:
                for group in groups:
                    if _are_alike(group[0], measure):
                        group.append(measure)
                        break
                else:
                    groups.append([measure])
        found = [_as_one(group) for group in groups]
        return cls.ranked(found, omitted, sum(part.seconds for part in parts))

    def per_year(self, measure: Measure, tariff: Tariff) -> Saving:
        """The saving of a year, whose hours of work the tariff states."""
        if measure.times_per_year is not None:
            return measure.saving.times(measure.times_per_year)
        if self.seconds <= 0.0:
            return measure.saving.times(0.0)
        return measure.saving.times(tariff.seconds_per_year / self.seconds)

    def as_json(self, tariff: Tariff) -> dict[str, Any]:
        """The entries `measures` and `measures_omitted` of JSON output."""
        return {
            "measures": [self._entry(each, tariff) for each in self.measures],
            "measures_omitted": [each._asdict() for each in self.omitted],
        }

    def text_lines(self, tariff: Tariff, *, named: bool = False) -> Iterator[str]:
        """Lines of text for people.

        Args:
            tariff: cost and CO2 of energy.
            named: whether each measure has the name of its recording.
        """
        return text_lines(self, tariff, named=named)

    def section(self, tariff: Tariff) -> AdviceSection:
        """The section of a report."""
        return measures_section(self, tariff)

    def _entry(self, measure: Measure, tariff: Tariff) -> dict[str, Any]:
        """A measure in JSON."""
        cycle = measure.per_cycle
        return {
            "kind": measure.kind,
            "place": measure.place or None,
            "title": measure.title,
            "action": measure.action,
            "command": measure.command or None,
            "condition": measure.condition or None,
            "bag": measure.source,
            "sure": measure.sure,
            "probability": measure.probability,
            "cycles": measure.cycles,
            "in_recording": amounts(measure.saving, tariff),
            "per_cycle": None if cycle is None else amounts(cycle, tariff),
            "per_year": amounts(self.per_year(measure, tariff), tariff),
            "year": year_words(measure, tariff),
        }


def _are_alike(one: Measure, other: Measure) -> bool:
    """Whether measures of two recordings are one: same kind and place, savings within errors."""
    if (one.kind, one.place) != (other.kind, other.place):
        return False
    first = one.per_cycle or one.saving
    second = other.per_cycle or other.saving
    return abs(first.energy - second.energy) <= first.std + second.std


def _as_one(group: Sequence[Measure]) -> Measure:
    """Alike measures of several recordings as one, in the words of the largest.

    Savings add up, and so do their errors, which are errors of one model. A measure that
    is counted by its times per year saves no more with further recordings.
    """
    largest = max(group, key=lambda each: each.saving.wall_energy)
    if len(group) == 1:
        return largest
    title = f"{largest.title} (alike in {len(group)} recordings)"
    if largest.times_per_year is not None:
        return replace(largest, title=title)
    sums = np.sum([each.saving for each in group], axis=0)
    saving = Saving(*sums.tolist())
    cycles = sum(each.cycles for each in group)
    return replace(largest, title=title, saving=saving, cycles=cycles)


def _unsure(measure: Measure) -> str:
    """The reason why a measure that is not even likely to save energy is not listed."""
    return f"what was found is within its uncertainty ({measure.title})"
