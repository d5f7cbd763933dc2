# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Energy at the wall: of a power meter's readings, and of a model where there are none.

Readings are compared with what the wall depends on in `consistency.meter_readings`, and
are used only where they can belong to this robot (`consistency.wall_meter`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ur_energy_model.consistency.contradiction import Contradiction
from ur_energy_model.consistency.meter_readings import (
    FINE,
    READING,
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
    """Energy at the wall of some time.

    Attributes:
        energy: energy [J].
        std: its standard deviation [J].
        source: MEASURED, MODEL (a meter has measured this cell before) or GENERIC.
    """

    energy: float
    std: float
    source: str

    def as_json(self) -> dict[str, Any]:
        """The entries of `ur_energy estimate --json`."""
        return {
            "wall_energy": self.energy,
            "wall_interval": interval(self.energy, self.std),
            "wall_source": self.source,
        }

    @classmethod
    def summed(cls, parts: Sequence[WallEnergy]) -> WallEnergy:
        """The energy of several recordings, at least one, from the source of the worst.

        Errors of the model are common to the recordings and add up.
        """
        worst_first = reversed(SOURCES)
        sources = {part.source for part in parts}
        return cls(
            energy=sum(part.energy for part in parts),
            std=sum(part.std for part in parts),
            source=next(source for source in worst_first if source in sources),
        )

    def words(self) -> str:
        """The energy with its 95 % interval and its source, in words."""
        half = CONFIDENCE * self.std
        return f"{self.energy:.0f} ± {half:.0f} J, {SOURCES[self.source]}"


SOURCES = {
    MEASURED: "measured",
    MODEL: "by the model of this cell's control box and supply",
    GENERIC: "not measured: control box and supply as in other cells",
}
"""Sources of an energy in words, the best first."""


def box_terms(states: Indices, power: Array) -> Array:
    """Rates of the terms of the wall's energy [samples, 5], see `model.wall`.

    Args:
        states: states of the arm [samples].
        power: power at the supply [samples], W.
    """
    terms = BOX_TERMS[states]
    terms[:, SUPPLY] = power
    terms[:, SQUARE] = power * power
    return terms


class MeterSamples(NamedTuple):
    """Samples of a recording with a meter, as `MeterReadings.add` takes them.

    Attributes:
        time: controller timestamps [samples], s.
        steps: bridged steps to the samples [samples], s, 0 where the bus power is unknown.
        terms: rates of the terms of the wall's energy [samples, 5].
        watts: last reading of the meter [samples], W.
        number: number of readings so far [samples].
    """

    time: Array
    steps: Array
    terms: Array
    watts: Array
    number: Array


def meter_samples(batch: Telemetry, gaps: StepRule) -> MeterSamples | None:
    """Samples with a meter, from samples that follow those before; None without meter or bus power.

    `gaps` keeps the last sample between calls.
    """
    lacking = any(name not in batch for name in (*READING_FIELDS, "actual_qd"))
    if lacking or not batch.has_bus_power:
        return None
    batch = batch.distinct()
    power = np.asarray(batch.bus_power)
    steps = gaps(batch.time, batch.stamp, batch.gaps, batch.info.rate).bridged
    known = np.isfinite(power)
    states = arm_states(batch, batch["actual_qd"])
    watts_field, number_field = READING_FIELDS
    return MeterSamples(
        time=batch.time,
        steps=np.where(known, steps, 0.0),
        terms=box_terms(states, np.where(known, power, 0.0)),
        watts=batch[watts_field],
        number=batch[number_field],
    )


CHECK_PERIOD = 5.0  # time of samples after which a meter is checked again [s]


class RecordedMeter:
    """The meter of a recording or of a live source, checked against the bus power.

    Args:
        meter: address of the meter; None for the meter that the recording names.

    Attributes:
        contradictions: statements that the readings contradict, by the samples up to
            CHECK_PERIOD ago, or by all of them after `finish`; replaced as a whole.
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
    """Energy at the wall of a recording: by readings of a meter where it has some, else modelled.

    A reading covers the time of its mean. The rest of the time (before the first reading,
    in gaps, the delay at the end) is modelled. Readings that cannot belong to this robot
    are not used.

    Args:
        channels: channels of the powers.
        robot: the arm, whose controller shows what its cell usually takes; None for any
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

    def _include(self, compared: list[Compared]) -> None:
        """Include readings that were compared with the terms."""
        for part in compared:
            self._gram += part.gram
            self._count += part.readings

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
            energy, deviation = self._channels.at_wall(net)
            return WallEnergy(float(energy), float(deviation), model.energy_source)
        # At each moment one of the states applies, with the rate 1: the rows of the states
        # sum to the integrals over the time of the readings.
        best, left = best_pair(self._gram)
        sums = self._gram[best, :SUPPLY].sum(axis=0)
        metered = float(sums[READING])
        seconds = float(sums[:SUPPLY].sum())
        rest = terms - sums[:TERMS]
        all_seconds = float(terms[:SUPPLY].sum())
        share = 1.0 - seconds / max(all_seconds, seconds, 1e-9)
        std = model.deviation(rest, share * self._channels.deviations_of_total(net))
        rounded = rounding(self._readings.resolution) * seconds
        # Readings that come irregularly count for more or less time than they cover.
        irregular = np.sqrt(left * seconds / self._count)
        return WallEnergy(
            metered + float(model.value(rest)),
            float(np.sqrt(std**2 + rounded**2 + irregular**2)),
            MEASURED,
        )
