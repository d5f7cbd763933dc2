"""Days on which an arm was unlike itself, in words.

A quantity of an arm on a day is compared with its median over all days. It is unusual if it is
further away than OUTLIER standard deviations (1.4826 times the median absolute deviation; Rousseeuw
and Croux, J. Am. Stat. Assoc. 88 (1993), eq. 1.2) and further than what matters to a user.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from ur_energy_model.plant.history.fleet_days import FleetDays, Work, day_of
from ur_energy_model.typing import Array, Indices

OUTLIER = 6.0
"""Standard deviations."""
FEWEST_DAYS = 7
"""Without as many days it is not known what is usual."""
LEAST_TIME, LEAST_CYCLES = 600.0, 5
"""Of a day that is compared: s accounted for; cycles."""


@dataclass(frozen=True)
class Anomaly:
    """Consecutive days on which a quantity of an arm was unusual.

    Attributes:
        arm: its name.
        first, last: days since 1970.
        quantity: in words, with the program if it is of one.
        unit: of value and usual.
        value: the one furthest from the usual one.
        usual: median over all days.
        deviations: distance of `value`, in standard deviations.
    """

    arm: str
    first: int
    last: int
    quantity: str
    unit: str
    value: float
    usual: float
    deviations: float

    @property
    def when(self) -> str:
        """The days."""
        begin, end = day_of(self.first), day_of(self.last)
        return f"{begin}" if begin == end else f"{begin} to {end}"

    @property
    def text(self) -> str:
        """One sentence."""
        change = "above" if self.value > self.usual else "below"
        return (
            f"{self.arm}, {self.when}: {self.quantity} {number_text(self.value)} {self.unit}, "
            f"{change} the usual {number_text(self.usual)} {self.unit}."
        )


@dataclass(frozen=True)
class _Quantity:
    """What is compared: its name and unit, and the change that matters, absolute and as a share."""

    name: str
    unit: str
    least: float = 0.0
    share: float = 0.05

    def matters(self, usual: float) -> float:
        """Least change from the usual value that a user should know."""
        return max(self.least, self.share * abs(usual))


_STANDBY = _Quantity("standby power", "W", least=2.0)
_MODEL = _Quantity("model minus measured bus energy", "%", least=3.0)
_ENERGY = _Quantity("energy per cycle", "J")
_DURATION = _Quantity("duration of a cycle", "s")


def number_text(value: float) -> str:
    """A number with four digits, or all of its whole ones."""
    return (f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}").replace("-", "−")


def find_anomalies(fleet: FleetDays) -> tuple[Anomaly, ...]:
    """Unusual standby power, model error, and energy and duration of cycles; strongest first."""
    found = [*_of_arms(fleet), *(a for work in fleet.works for a in _of_work(work))]
    return tuple(sorted(found, key=lambda anomaly: -anomaly.deviations))


def _of_arms(fleet: FleetDays) -> Iterator[Anomaly]:
    daily, days = fleet.daily, fleet.days
    duration = np.where(daily["duration"] >= LEAST_TIME, daily["duration"], np.nan)
    standby = daily["standby"] / duration
    measured = np.where((daily["bus"] > 0) & np.isfinite(duration), daily["bus"], np.nan)
    error = 100 * (daily["bus_model"] - measured) / measured
    for number, arm in enumerate(fleet.arms):
        yield from _unusual(arm, _STANDBY, days, standby[number])
        yield from _unusual(arm, _MODEL, days, error[number])


def _of_work(work: Work) -> Iterator[Anomaly]:
    enough = work.sums["cycles"] >= LEAST_CYCLES
    of = f" of {work.program}" if work.program else ""
    duration = work.sums["duration"] / work.sums["cycles"]
    for quantity, values in ((_ENERGY, work.mean), (_DURATION, duration)):
        named = replace(quantity, name=quantity.name + of)
        yield from _unusual(work.arm, named, work.days[enough], values[enough])


def _unusual(arm: str, quantity: _Quantity, days: Indices, values: Array) -> Iterator[Anomaly]:
    """Runs of days with unusual values.

    Args:
        arm: its name.
        quantity: what the values are.
        days: days since 1970, ascending [k].
        values: [k]; NaN where there is none.
    """
    known = np.isfinite(values)
    days, values = days[known], values[known]
    if len(values) < FEWEST_DAYS:
        return
    usual = float(np.median(values))
    distance = np.abs(values - usual)
    deviation = max(1.4826 * float(np.median(distance)), 1e-12)
    unusual = np.flatnonzero(
        (distance > OUTLIER * deviation) & (distance > quantity.matters(usual))
    )
    if not len(unusual):
        return
    breaks = np.flatnonzero(np.diff(unusual) > 1) + 1  # days without work do not end a run
    for run in np.split(unusual, breaks):
        worst = run[np.argmax(distance[run])]
        yield Anomaly(
            arm,
            int(days[run[0]]),
            int(days[run[-1]]),
            quantity.name,
            quantity.unit,
            float(values[worst]),
            usual,
            float(distance[worst] / deviation),
        )
