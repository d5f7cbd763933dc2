# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Energy at the wall: of a power meter's readings, and of a model where there are none.

Readings are compared with what the wall depends on in `consistency.meter_readings`, and
are used only where they can be those of this robot (`consistency.wall_meter`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ur_energy_model.consistency.contradiction import Contradiction
from ur_energy_model.consistency.meter_readings import (
    FINE,
    READING_FIELDS,
    Compared,
    MeterReadings,
    best_pair,
    rounding,
)
from ur_energy_model.consistency.wall_meter import MeterVerdict, WallMeterCheck
from ur_energy_model.energy.meter import CONFIDENCE, StepRule, interval
from ur_energy_model.energy.powers import BOX_TERMS, Channels, PowerTable, arm_states
from ur_energy_model.errors import RobotFileError
from ur_energy_model.model.robots import GENERATIONS, RobotDescription, load_robot
from ur_energy_model.model.wall import (
    GENERIC,
    MEASURED,
    MODEL,
    SQUARE,
    SUPPLY,
    TERMS,
    generic_wall,
)
from ur_energy_model.telemetry.samples import RecordingInfo, Telemetry
from ur_energy_model.typing import Array, Indices


class WallEnergy(NamedTuple):
    """Energy at the wall of some time."""

    energy: float  # [J]
    std: float  # standard deviation [J]
    source: str  # "meter", "model" (a meter measured this cell before) or "generic"

    def as_json(self) -> dict[str, Any]:
        """The entries of `ur_energy estimate --json`."""
        ends = interval(self.energy, self.std)
        return {
            "wall_energy": self.energy,
            "wall_interval": ends,
            "wall_source": self.source,
        }

    @classmethod
    def summed(cls, parts: Sequence[WallEnergy]) -> WallEnergy:
        """Of several recordings; errors of the model are common and add up."""
        source = max((each.source for each in parts), key=list(SOURCES).index)
        return cls(
            sum(each.energy for each in parts), sum(each.std for each in parts), source
        )

    def words(self) -> str:
        """For people."""
        return (
            f"{self.energy:.0f} ± {CONFIDENCE * self.std:.0f} J, {SOURCES[self.source]}"
        )


SOURCES = {
    MEASURED: "measured",
    MODEL: "by the model of this cell's control box and supply",
    GENERIC: "not measured: control box and supply as in other cells",
}
"""Sources of an energy in words, the best first."""


def box_terms(states: Indices, power: Array) -> Array:
    """Rates of what the wall depends on [samples, 5]: state of the box, power at the supply, W."""
    terms = BOX_TERMS[states]
    terms[:, SUPPLY] = power
    terms[:, SQUARE] = power * power
    return terms


class MeterSamples(NamedTuple):
    """Samples of a recording with a meter, as `MeterReadings.add` takes them."""

    time: Array  # [samples], s
    steps: Array  # bridged steps to them [samples], s, 0 where the bus power is unknown
    terms: Array  # rates of what the wall depends on [samples, 5]
    watts: Array  # column of the meter's last reading [samples], W
    number: Array  # column of the number of readings [samples]


def meter_samples(batch: Telemetry, gaps: StepRule) -> MeterSamples | None:
    """Samples that follow those before; None without meter or bus power.

    `gaps` keeps the last sample.
    """
    lacking = any(name not in batch for name in (*READING_FIELDS, "actual_qd"))
    if lacking or not batch.has_bus_power:
        return None
    batch = batch.distinct()
    power = np.asarray(batch.bus_power)
    steps = gaps(batch.time, batch.stamp, batch.gaps, batch.info.rate).bridged
    known = np.isfinite(power)
    terms = box_terms(arm_states(batch, batch["actual_qd"]), np.where(known, power, 0.0))
    watts, number = (batch[name] for name in READING_FIELDS)
    return MeterSamples(batch.time, np.where(known, steps, 0.0), terms, watts, number)


CHECK_PERIOD = 5.0
"""Time of samples after which a meter is checked again [s]."""


class RecordedMeter:
    """The meter of a recording or of a live source, checked against the bus power.

    Args:
        meter: its address; None for that which the recording names.

    Attributes:
        contradictions: what the readings contradict, by the samples up to CHECK_PERIOD
            ago, or all of them after `finish`; replaced as a whole.
    """

    def __init__(self, meter: str | None = None) -> None:
        self.contradictions: tuple[Contradiction, ...] = ()
        self._meter = meter
        self._check = WallMeterCheck()
        self._gaps = StepRule()
        self._info = RecordingInfo()
        self._checked = -np.inf

    def observe(self, batch: Telemetry) -> None:
        """Add samples that follow those before; without meter or bus power they are ignored."""
        samples = meter_samples(batch, self._gaps)
        if samples is None:
            return
        self._info = batch.info
        self._check.add(*samples)
        now = float(samples.time[-1])
        if abs(now - self._checked) >= CHECK_PERIOD:
            self._checked = now
            self._judge()

    def observed(self, batches: Iterable[Telemetry]) -> Iterator[Telemetry]:
        """Batches of a recording, which are observed while they are read."""
        for batch in batches:
            self.observe(batch)
            yield batch
        self.finish()

    def finish(self) -> None:
        """End the recording."""
        self._check.finish()
        self._judge()

    def _judge(self) -> None:
        usual = generic_wall(generation_of(self._info.robot))
        meter = meter_name(self._meter or self._info.extra.get("meter"))
        self.contradictions = self._check.verdict(usual, meter).contradictions


def generation_of(robot: str | None) -> str:
    """Generation of the controller of an arm, "other" for arms that the package does not have."""
    try:
        return GENERATIONS[-1] if robot is None else load_robot(robot).generation
    except RobotFileError:
        return GENERATIONS[-1]


def meter_name(meter: object) -> str:
    """A meter for messages: its address, where it is known."""
    return f"the power meter {meter}" if meter else "the power meter"


class RecordedWall:
    """Energy at the wall of a recording: the meter's readings where it has some, else the model.

    What the readings cover is the time of their means; all else (before the first one, in
    gaps, the delay at the end) is the model's. Readings that cannot be those of this
    robot are not used.

    `robot`: the arm, for what cells with its controller usually take; None for any
    controller.
    """

    def __init__(self, channels: Channels, robot: RobotDescription | None = None) -> None:
        self._channels = channels
        self._readings = MeterReadings()
        self._gram = np.zeros((len(FINE.delay), TERMS + 2, TERMS + 2))
        self._count = 0
        self._check = WallMeterCheck()
        self._usual = generic_wall(GENERATIONS[-1] if robot is None else robot.generation)
        self._meter: object = None

    def add(self, table: PowerTable) -> None:
        """Add powers of samples that follow those before."""
        columns = table.samples.columns
        if any(name not in columns for name in READING_FIELDS):
            return
        self._meter = table.samples.info.extra.get("meter")
        terms = self._channels.wall_terms(table.power)
        time = table.samples.time
        steps = table.steps.bridged
        meter = [columns[name] for name in READING_FIELDS]
        self._include(self._readings.add(time, steps, terms, *meter))
        self._check.add(time, steps, terms, *meter)

    def _include(self, found: list[Compared]) -> None:
        for each in found:
            self._gram += each.gram
            self._count += each.readings

    @cached_property
    def verdict(self) -> MeterVerdict:
        """What all readings show about the meter, which gets no more samples."""
        self._check.finish()
        return self._check.verdict(self._usual, meter_name(self._meter))

    def energy(self, net: Array) -> WallEnergy:
        """The energy, with the integrals of all channels [channels], J."""
        self._include(self._readings.finish())
        model = self._channels.wall
        terms = self._channels.wall_terms(net)
        if not self._count or not self.verdict.usable:
            energy, deviation = map(float, self._channels.at_wall(net))
            return WallEnergy(energy, deviation, model.energy_source)
        # The states cover all of the time, so these rows sum to the integrals over the
        # readings.
        best, left = best_pair(self._gram)
        sums = self._gram[best, :SUPPLY].sum(axis=0)
        metered = float(sums[-1])
        seconds = float(sums[:SUPPLY].sum())
        rest = terms - sums[:TERMS]
        share = 1.0 - seconds / max(float(terms[:SUPPLY].sum()), seconds, 1e-9)
        std = model.deviation(rest, share * self._channels.deviations_of_total(net))
        rounded = rounding(self._readings.resolution) * seconds
        # Readings that come irregularly count for more or less time than theirs.
        irregular = np.sqrt(left * seconds / self._count)
        return WallEnergy(
            metered + float(model.value(rest)),
            float(np.sqrt(std**2 + rounded**2 + irregular**2)),
            MEASURED,
        )
