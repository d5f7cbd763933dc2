# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Measure: one thing that can be done for less energy, what it saves, and how sure that is.

A saving is that of the recording as it is: what each cycle saves times the cycles, what
all pauses save together. Per cycle it is divided by the number of cycles; in a year the
recording is repeated for the hours of work that a tariff states. Standard deviations are
those of energies: from the covariance of the model's parameters, and from the scatter of
what was measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import erf, sqrt
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from ur_energy_model.energy.meter import interval
from ur_energy_model.energy.tariff import Tariff
from ur_energy_model.errors import InputError, UrEnergyError
from ur_energy_model.model.wall import SQUARE, SUPPLY, TERMS, WallModel
from ur_energy_model.typing import Array

Kind = Literal["payload", "pose", "pause", "moves", "line", "cold_start"]
"""A wrong payload; waiting in a cheaper pose; switching off in pauses; speeds and accelerations of
all moves, or of one line of the program; a cold start."""
KINDS: tuple[Kind, ...] = get_args(Kind)

SURE = 0.975  # least probability that a measure saves energy, of one that is called sure
LIKELY = 0.8  # the same of one that is listed at all; such ones are called likely
# of the energy that a measure is about, below which a saving is no measure
LEAST_SHARE = 0.005


class Saving(NamedTuple):
    """Energy that is saved in some time, with standard deviations [J]."""

    energy: float  # at the supply
    std: float
    wall_energy: float  # at the mains
    wall_std: float

    def times(self, factor: float) -> Saving:
        """The saving of so many times the time."""
        return Saving(*(factor * each for each in self))


def saving_while_running(
    wall: WallModel, energy: float, std: float, *, power: float
) -> Saving:
    """A saving while the arm stays switched on.

    Args:
        wall: power at the mains.
        energy: saved at the supply [J].
        std: its standard deviation [J].
        power: mean power at the supply while it is saved [W].
    """
    terms = np.zeros(TERMS)
    terms[SUPPLY] = energy
    # change of the square of the power, to first order
    terms[SQUARE] = 2.0 * power * energy
    return saving_of_terms(wall, terms, std, power=power)


def saving_of_terms(wall: WallModel, terms: Array, std: float, *, power: float) -> Saving:
    """A saving from the change of what the wall depends on.

    Args:
        wall: power at the mains.
        terms: integrals of the wall's terms that are saved [5]: times of the box's
            states, energy at the supply and integral of the square of the power.
        std: standard deviation of the energy at the supply [J].
        power: mean power at the supply while it is saved [W].
    """
    of_wall = float(np.sqrt(max(float(terms @ wall.covariance @ terms), 0.0)))
    of_supply = float(wall.slope(power)) * std
    return Saving(
        energy=float(terms[SUPPLY]),
        std=std,
        wall_energy=float(wall.value(terms)),
        wall_std=float(np.hypot(of_wall, of_supply)),
    )


@dataclass(frozen=True)
class Measure:
    """One measure.

    Texts are clauses without a full stop, with values and units, for one line of a
    terminal.
    """

    kind: Kind
    title: str  # what was found
    action: str  # what to set or to type
    saving: Saving  # in the recording; of a cold start, in one of them
    # of work in the recording; 0 where a saving per cycle has no meaning
    cycles: float = 0.0
    command: str = ""  # of this package that gives what to type; none if empty
    condition: str = ""  # what it presupposes; nothing if empty
    # that the finding is right; None for that of the saving
    certainty: float | None = None
    # how often it is saved; None: as often as recorded
    times_per_year: float | None = None
    place: str = ""  # in the program, such as "line 6"; empty for all of it
    source: str = ""  # the recording

    @property
    def probability(self) -> float:
        """Probability that it saves energy, or that a finding without a saving is right."""
        if self.certainty is not None:
            return self.certainty
        saved = self.saving.wall_energy
        deviation = self.saving.wall_std
        if deviation <= 0.0:
            return 1.0 if saved > 0.0 else 0.0
        return 0.5 * (1.0 + erf(saved / deviation / sqrt(2.0)))

    @property
    def sure(self) -> Literal["sure", "likely"]:
        """How sure it is, in a word."""
        return "sure" if self.probability >= SURE else "likely"

    @property
    def per_cycle(self) -> Saving | None:
        """The mean saving of a cycle; None where that has no meaning."""
        return self.saving.times(1.0 / self.cycles) if self.cycles > 0.0 else None


class Omitted(NamedTuple):
    """A kind of measure of which none is listed, and why."""

    kind: Kind
    reason: str  # a clause without a full stop


Finding: TypeAlias = Measure | Omitted


def reason_of(error: UrEnergyError) -> str:
    """An error as a reason."""
    return error.problem if isinstance(error, InputError) else str(error)


@dataclass(frozen=True)
class Measures:
    """The measures that recordings show, the best first, and why there are no others."""

    measures: tuple[Measure, ...] = ()
    omitted: tuple[Omitted, ...] = ()
    seconds: float = 0.0  # of the recordings, one after another [s]

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
        listed = [each for each in found if each.probability >= LIKELY]
        unsure = [each for each in found if each.probability < LIKELY]
        reasons = {each.kind: each.reason for each in unsure_reasons(unsure)}
        reasons |= {each.kind: each.reason for each in omitted}
        kinds = {each.kind for each in listed}
        left = [
            Omitted(kind, reasons[kind])
            for kind in KINDS
            if kind in reasons.keys() - kinds
        ]
        tariff = Tariff()
        made = cls((), tuple(left), seconds)
        listed.sort(
            key=lambda each: (
                each.kind != "payload",
                -made.per_year(each, tariff).wall_energy,
            )
        )
        return replace(made, measures=tuple(listed))

    @classmethod
    def together(cls, parts: Sequence[Measures]) -> Measures:
        """Those of several recordings, which are one after another in a year's work.

        Measures that are alike, as of recordings of the same program, are one.
        """
        seconds = sum(part.seconds for part in parts)
        groups: list[list[Measure]] = []
        for each in (each for part in parts for each in part.measures):
            known = next((group for group in groups if _are_alike(group[0], each)), None)
            if known is None:
                groups.append([each])
            else:
                known.append(each)
        found = [_as_one(group) for group in groups]
        omitted = [each for part in parts for each in part.omitted]
        return cls.ranked(found, omitted, seconds)

    def per_year(self, measure: Measure, tariff: Tariff) -> Saving:
        """The saving of a year, whose hours of work the tariff states."""
        times = measure.times_per_year
        if times is None:
            times = tariff.seconds_per_year / self.seconds if self.seconds > 0.0 else 0.0
        return measure.saving.times(times)

    def as_json(self, tariff: Tariff) -> dict[str, Any]:
        """The entries `measures` and `measures_omitted` of JSON output."""
        return {
            "measures": [self._entry(each, tariff) for each in self.measures],
            "measures_omitted": [each._asdict() for each in self.omitted],
        }

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


def unsure_reasons(unsure: Sequence[Measure]) -> list[Omitted]:
    """Why measures are not listed of which it is not even likely that they save energy."""
    return [
        Omitted(each.kind, f"what was found is within its uncertainty ({each.title})")
        for each in unsure
    ]


def year_words(measure: Measure, tariff: Tariff) -> str:
    """What the saving of a year assumes."""
    if measure.times_per_year is not None:
        return f"{measure.times_per_year:.0f} times"
    return f"the recording repeated for {tariff.hours_per_year:.0f} h"


def amounts(saving: Saving, tariff: Tariff) -> dict[str, Any]:
    """A saving in JSON: energies [J], cost and CO2 [kg], each with its 95 % interval.

    Cost and CO2 are None without a price and an emission per kWh.
    """
    out: dict[str, Any] = {
        "energy": saving.energy,
        "interval": interval(saving.energy, saving.std),
        "wall_energy": saving.wall_energy,
        "wall_interval": interval(saving.wall_energy, saving.wall_std),
    }
    for name, amount_of in (("cost", tariff.cost), ("co2", tariff.emission)):
        value = amount_of(saving.energy, saving.wall_energy)
        std = amount_of(saving.std, saving.wall_std)
        out[name] = value
        out[f"{name}_interval"] = None
        if value is not None and std is not None:
            out[f"{name}_interval"] = interval(value, abs(std))
    return out
