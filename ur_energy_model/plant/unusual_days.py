# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Days on which a quantity of an arm was unusual for this arm, in numbers and in words.

A quantity of an arm on a day is compared with its median over all days. It is unusual if
it is further away than OUTLIER standard deviations (1.4826 times the median absolute
deviation; Rousseeuw and Croux, J. Am. Stat. Assoc. 88 (1993), eq. 1.2), and further than
what matters to a user.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ur_energy_model.plant.fleet_days import FleetDays, day_of
from ur_energy_model.typing import Array, Indices

OUTLIER = 6.0
"""Distance from the median beyond which a day is unusual [standard deviations]."""
FEWEST_DAYS = 7  # days from which on it is known what is usual
LEAST_TIME = 600.0  # least time accounted for on a day that is compared [s]
LEAST_CYCLES = 5  # least number of cycles of a day that is compared
LEAST_SHARE = 0.05  # least change that matters, as a share of the usual value
LEAST_STANDBY = 2.0  # least change of the standby power that matters [W]
LEAST_UNEXPLAINED = 3.0
"""Least change of the unexplained share that matters [percentage points]."""
_DEVIATION_OF_NORMAL = 1.4826
"""Standard deviation of a normal distribution over its median absolute deviation."""


@dataclass(frozen=True)
class Anomaly:
    """Consecutive days on which a quantity of an arm was unusual.

    Attributes:
        arm: name of the arm.
        first: first day, days since 1970.
        last: last day, days since 1970.
        quantity: name of the quantity, in words.
        unit: unit of the values.
        value: the value that is furthest from the usual one.
        usual: median over all days.
        deviations: distance between value and usual value in standard deviations.
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
        """The days in words: "2026-05-04", or "2026-05-04 to 2026-05-06"."""
        begin = day_of(self.first)
        end = day_of(self.last)
        return f"{begin}" if begin == end else f"{begin} to {end}"

    @property
    def text(self) -> str:
        """The anomaly in one sentence."""
        change = "above" if self.value > self.usual else "below"
        return (
            f"{self.arm}, {self.when}: {self.quantity} {number_text(self.value)} {self.unit}, "
            f"{change} the usual {number_text(self.usual)} {self.unit}."
        )


def number_text(value: float) -> str:
    """A number with four digits, or all digits before the point, for people."""
    text = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return text.replace("-", "−")


def find_anomalies(fleet: FleetDays) -> tuple[Anomaly, ...]:
    """Days on which a quantity was unusual for its arm, the strongest anomaly first.

    Quantities are the standby power (unusual by LEAST_STANDBY at least), the share of the
    measured energy that the model leaves unexplained (by LEAST_UNEXPLAINED at least), and
    energy and duration of the cycles of each program; each of them is unusual by
    LEAST_SHARE at least. Days with less than LEAST_TIME or LEAST_CYCLES are not compared.

    Args:
        fleet: energies by day.
    """
    daily = fleet.daily
    duration = np.where(daily["duration"] >= LEAST_TIME, daily["duration"], np.nan)
    measured = np.where((daily["bus"] > 0) & np.isfinite(duration), daily["bus"], np.nan)
    standby = daily["standby"] / duration
    unexplained = 100 * daily["unexplained"] / measured
    found: list[Anomaly] = []
    for number, arm in enumerate(fleet.arms):
        power = standby[number]
        found += _unusual(arm, "standby power", "W", LEAST_STANDBY, fleet.days, power)
        quantity = "measured energy that the model leaves unexplained"
        share = unexplained[number]
        found += _unusual(arm, quantity, "%", LEAST_UNEXPLAINED, fleet.days, share)
    for work in fleet.works:
        of_program = f" of {work.program}" if work.program else ""
        cycles = work.sums["cycles"]
        enough = cycles >= LEAST_CYCLES
        energy = np.where(enough, work.mean, np.nan)
        quantity = f"energy per cycle{of_program}"
        found += _unusual(work.arm, quantity, "J", 0.0, work.days, energy)
        duration = np.where(enough, work.sums["duration"] / cycles, np.nan)
        quantity = f"duration of a cycle{of_program}"
        found += _unusual(work.arm, quantity, "s", 0.0, work.days, duration)
    return tuple(sorted(found, key=lambda anomaly: -anomaly.deviations))


def _unusual(
    arm: str, quantity: str, unit: str, least: float, days: Indices, values: Array
) -> Iterator[Anomaly]:
    """Runs of days with unusual values; days without a value do not end a run.

    Args:
        arm: name of the arm.
        quantity: what the values are, in words.
        unit: unit of the values.
        least: least difference from the usual value that matters.
        days: days of the values, ascending [k], days since 1970.
        values: values of the quantity [k], NaN where there is none.
    """
    known = np.isfinite(values)
    days = days[known]
    values = values[known]
    if len(values) < FEWEST_DAYS:
        return
    usual = float(np.median(values))
    distance = np.abs(values - usual)
    deviation = _DEVIATION_OF_NORMAL * float(np.median(distance))
    deviations = distance / max(deviation, 1e-12)  # all days may be equal
    matters = max(least, LEAST_SHARE * abs(usual))
    unusual = np.flatnonzero((deviations > OUTLIER) & (distance > matters))
    breaks = np.flatnonzero(np.diff(unusual) > 1) + 1
    for run in np.split(unusual, breaks) if len(unusual) else ():
        worst = run[np.argmax(distance[run])]
        first = int(days[run[0]])
        last = int(days[run[-1]])
        value = float(values[worst])
        yield Anomaly(
            arm, first, last, quantity, unit, value, usual, float(deviations[worst])
        )
