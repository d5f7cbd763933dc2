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
        measures: those that are at least likely, the best first.
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

        A wrong payload saves nothing itself, but what is predicted from the motion rests
        on it.

        Args:
            found: in any order.
            omitted: reasons why kinds were not looked for, or not found.
            seconds: of the recording [s].
        """
        reasons: dict[Kind, str] = {}
        listed: list[Measure] = []
        for each in found:
            if each.probability >= LIKELY:
                listed.append(each)
            else:
                reasons[each.kind] = _unsure(each)
        reasons |= {each.kind: each.reason for each in omitted}
        for each in listed:
            reasons.pop(each.kind, None)
        left = [Omitted(kind, reasons[kind]) for kind in KINDS if kind in reasons]
        without = cls((), tuple(left), seconds)
        tariff = Tariff()

        def rank(measure: Measure) -> tuple[bool, float]:
            year = without.per_year(measure, tariff)
            return measure.kind != "payload", -year.wall_energy

        return replace(without, measures=tuple(sorted(listed, key=rank)))

    @classmethod
    def together(cls, parts: Sequence[Measures]) -> Measures:
        """The measures of several recordings, which are one after another in a year's work.

        Measures that are alike, as of recordings of the same program, are one.
        """
        every: list[Measure] = []
        omitted: list[Omitted] = []
        for part in parts:
            every += part.measures
            omitted += part.omitted
        groups: list[list[Measure]] = []
        for each in every:
            for group in groups:
                if _are_alike(group[0], each):
                    group.append(each)
                    break
            else:
                groups.append([each])
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
        """Lines for people; `named`: with the name of each recording."""
        return text_lines(self, tariff, named=named)

    def section(self, tariff: Tariff) -> AdviceSection:
        """The section of a report."""
        return measures_section(self, tariff)

    def _entry(self, measure: Measure, tariff: Tariff) -> dict[str, Any]:
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
    """Whether measures of two recordings are the same: the saving of a cycle is, within errors."""
    if (one.kind, one.place) != (other.kind, other.place):
        return False
    first = one.per_cycle or one.saving
    second = other.per_cycle or other.saving
    return abs(first.energy - second.energy) <= first.std + second.std


def _as_one(group: Sequence[Measure]) -> Measure:
    """Measures of several recordings that are alike as one, in the words of the largest.

    Their errors are those of one model, and add up. What is saved so often a year does
    not become more by further recordings.
    """
    largest = max(group, key=lambda each: each.saving.wall_energy)
    if len(group) == 1:
        return largest
    title = f"{largest.title} (alike in {len(group)} recordings)"
    if largest.times_per_year is not None:
        return replace(largest, title=title)
    savings = np.array([each.saving for each in group])
    cycles = sum(each.cycles for each in group)
    return replace(
        largest, title=title, saving=Saving(*savings.sum(axis=0).tolist()), cycles=cycles
    )


def _unsure(measure: Measure) -> str:
    """Why a measure is not listed of which it is not even likely that it saves energy."""
    return f"what was found is within its uncertainty ({measure.title})"
