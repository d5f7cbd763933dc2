# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Measure: one thing that can be done for less energy, what it saves, and how sure that is.

A saving is the saving in the recording as it is: of a cycle, times the number of cycles;
or of all pauses together. Per cycle it is divided by the number of cycles; in a year the
recording is repeated for the hours of work that a tariff states. Standard deviations are
standard deviations of energies: from the covariance of the model's parameters, and from
the scatter of what was measured.
"""

from __future__ import annotations

from dataclasses import dataclass
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

SURE = 0.975  # least probability of saving energy with which a measure is called sure
LIKELY = 0.8  # least probability with which a measure is listed, and called likely
LEAST_SHARE = 0.005
"""Share of the energy that a measure saves at least to be listed."""


class Saving(NamedTuple):
    """Energy that is saved in some time, with standard deviations [J].

    Attributes:
        energy: saved energy at the supply.
        std: standard deviation of `energy`.
        wall_energy: saved energy at the mains.
        wall_std: standard deviation of `wall_energy`.
    """

    energy: float
    std: float
    wall_energy: float
    wall_std: float

    def times(self, factor: float) -> Saving:
        """The saving in `factor` times the time."""
        return Saving(
            factor * self.energy,
            factor * self.std,
            factor * self.wall_energy,
            factor * self.wall_std,
        )


def saving_while_running(
    wall: WallModel, energy: float, std: float, *, power: float
) -> Saving:
    """A saving while the arm stays switched on.

    Args:
        wall: power at the mains.
        energy: saved energy at the supply [J].
        std: standard deviation of the saved energy [J].
        power: mean power at the supply while energy is saved [W].
    """
    terms = np.zeros(TERMS)
    terms[SUPPLY] = energy
    # The integral of the square of the power changes to first order by this.
    terms[SQUARE] = 2.0 * power * energy
    return saving_of_terms(wall, terms, std, power=power)


def saving_of_terms(wall: WallModel, terms: Array, std: float, *, power: float) -> Saving:
    """A saving from the changes of the integrals on which the energy at the mains depends.

    Args:
        wall: power at the mains.
        terms: integrals of the wall's terms that are saved [5]: times of the box's
            states, energy at the supply and integral of the square of the power.
        std: standard deviation of the energy at the supply [J].
        power: mean power at the supply while energy is saved [W].
    """
    # Standard deviations at the mains [J]: by the wall's constants, and by the saving.
    variance = float(terms @ wall.covariance @ terms)
    of_wall = float(np.sqrt(max(variance, 0.0)))
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

    Attributes:
        kind: what is to be done.
        title: what was found.
        action: what to set or to type.
        saving: saving in the recording; for a cold start, in one cold start.
        cycles: number of cycles of work in the recording; 0 where a saving per cycle has
            no meaning.
        command: command of this package that prints the values to type; empty for none.
        condition: what the measure presupposes; nothing if empty.
        certainty: probability that the finding is right, where this decides; None where
            the probability of a saving does.
        times_per_year: how often the saving is made; None: as often as recorded.
        place: place in the program, such as "line 6"; empty for the whole program.
        source: the recording.
    """

    kind: Kind
    title: str
    action: str
    saving: Saving
    cycles: float = 0.0
    command: str = ""
    condition: str = ""
    certainty: float | None = None
    times_per_year: float | None = None
    place: str = ""
    source: str = ""

    @property
    def probability(self) -> float:
        """Probability that the measure saves energy, or that its finding is right.

        The saving has a normal distribution.
        """
        if self.certainty is not None:
            return self.certainty
        saved = self.saving.wall_energy
        deviation = self.saving.wall_std
        if deviation <= 0.0:
            return 1.0 if saved > 0.0 else 0.0
        return 0.5 * (1.0 + erf(saved / deviation / sqrt(2.0)))

    @property
    def sure(self) -> Literal["sure", "likely"]:
        """Certainty of the measure, in a word."""
        return "sure" if self.probability >= SURE else "likely"

    @property
    def per_cycle(self) -> Saving | None:
        """The mean saving of a cycle; None where the measure does not belong to cycles."""
        if self.cycles <= 0.0:
            return None
        return self.saving.times(1.0 / self.cycles)


class Omitted(NamedTuple):
    """A kind of measure of which none is listed, and why.

    Attributes:
        kind: what would be done.
        reason: a clause without a full stop.
    """

    kind: Kind
    reason: str


Finding: TypeAlias = Measure | Omitted


def reason_of(error: UrEnergyError) -> str:
    """The problem that an error states, as a reason why a measure is left out."""
    return error.problem if isinstance(error, InputError) else str(error)


def year_words(measure: Measure, tariff: Tariff) -> str:
    """Assumptions of the saving in a year."""
    if measure.times_per_year is not None:
        return f"{measure.times_per_year:.0f} times"
    return f"the recording repeated for {tariff.hours_per_year:.0f} h"


def amounts(saving: Saving, tariff: Tariff) -> dict[str, Any]:
    """A saving in JSON: energies [J], cost and CO2 [kg], each with its 95 % interval.

    Cost and CO2 are None without a price and an emission per kWh.
    """
    entries: dict[str, Any] = {
        "energy": saving.energy,
        "interval": interval(saving.energy, saving.std),
        "wall_energy": saving.wall_energy,
        "wall_interval": interval(saving.wall_energy, saving.wall_std),
    }
    for name, amount_of in (("cost", tariff.cost), ("co2", tariff.emission)):
        value = amount_of(saving.energy, saving.wall_energy)
        std = amount_of(saving.std, saving.wall_std)
        entries[name] = value
        entries[f"{name}_interval"] = None
        if value is not None and std is not None:
            entries[f"{name}_interval"] = interval(value, abs(std))
    return entries
