# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Efforts of a driver's samples, used once their unit is decided or as it was stated.

Until then, and where efforts are neither motor currents nor joint torques that determine
them, samples pass without them: powers are computed from the motion alone, so that no
energy is counted in a wrong unit.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace

import numpy as np

from ur_energy_model.consistency.contradiction import Contradiction
from ur_energy_model.consistency.effort_unit import (
    DECIDED,
    LEAST_EVIDENCE,
    EffortEvidence,
    EffortUnit,
    EffortVerdict,
)
from ur_energy_model.consistency.torque_field import (
    FIELD_OF_UNIT,
    MEANING_IN_WORDS,
    StatedUnit,
    unit_of,
)
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.telemetry.samples import Telemetry, concatenate

EFFORT = "effort"
"""Column of efforts whose unit is not decided."""
OBSERVED_TOGETHER = 0.5  # time of samples that are compared at once [s]
WINDOW = 20.0
"""Time of samples after which the comparison begins again if nothing is decided [s]:
motion after hours of standstill counts as motion."""
RESTART_GAP = 2.0
"""Time without samples after which the driver may have been started with another unit
[s]."""
MOST_HELD = 10.0  # time of samples that are held back, where efforts are required [s]


class EffortStream:
    """Decides the unit of the efforts of one driver, and passes its samples on accordingly.

    Efforts with a stated unit are used after LEAST_EVIDENCE, unless the motion excludes
    that unit.

    Args:
        model: model of the arm, identified or generic.
        robot: description of the arm.
        stated: unit of the efforts, or "auto" to decide it from the motion.
        required: whether samples without efforts are of no use; they are then held back
            until the unit is decided, MOST_HELD of them.
        source: name of the topic, for messages.

    Attributes:
        unit: unit in which efforts are used now; None while they are not.
        verdict: what the efforts are, by the samples so far; None before any were
            compared.
        contradiction: contradiction between the stated unit and the motion; None without
            one.
    """

    def __init__(
        self,
        model: EnergyModel,
        robot: RobotDescription,
        stated: StatedUnit,
        *,
        required: bool = False,
        source: str = "joint_states",
    ) -> None:
        self._model = model
        self._robot = robot
        self._stated = stated
        self._required = required
        self._source = source
        self._last: float | None = None  # time of the last sample [s]
        self._begin()

    def _begin(self) -> None:
        """Decide anew, as for a driver that was just started."""
        self.unit: EffortUnit | None = None
        self.verdict: EffortVerdict | None = None
        self.contradiction: Contradiction | None = None
        self._evidence = EffortEvidence(self._model, self._robot)
        self._compares = True
        self._begun: float | None = None  # time of the first sample with efforts [s]
        self._any_effort = False  # a driver without efforts publishes zeros
        self._only_zeros = False  # known well enough, where a unit is stated
        self._waiting: list[Telemetry] = []
        self._held: deque[Telemetry] = deque()

    def __call__(self, batch: Telemetry) -> list[Telemetry]:
        """Samples that can be used now, with their efforts under the name of a field.

        Args:
            batch: samples that follow those of earlier calls; the column EFFORT is missing
                where a message had no efforts.

        Returns:
            Samples in order of time, without efforts while their unit is not decided.
        """
        before = self._last
        self._last = float(batch.time[-1])
        if before is not None and float(batch.time[0]) - before > RESTART_GAP:
            self._begin()
        if EFFORT not in batch:
            return [batch]
        if self._compares:
            self._compare(batch)
        if self._begun is None:
            self._begun = float(batch.time[0])
        self._any_effort = self._any_effort or bool(batch[EFFORT].any())
        if self._stated != "auto" and self.contradiction is None:
            confirmed = batch.time[-1] - self._begun >= LEAST_EVIDENCE
            self._only_zeros = confirmed and not self._any_effort
            self.unit = self._stated if confirmed and self._any_effort else None
        if self.unit is None and self._required:
            self._hold(batch)
            return []
        held = [*self._held]
        self._held = deque()
        return [self._named(each) for each in (*held, batch)]

    @property
    def words(self) -> str:
        """How the efforts are used, or why not, for people."""
        if self.unit is not None:
            how = "as stated" if self._stated != "auto" else "recognised from the motion"
            return f"used as {MEANING_IN_WORDS[self.unit]} ({how})"
        if self.problem is not None:
            return f"not used: {self.problem}"
        return (
            "not used yet: their unit is not decided; powers are computed from the motion"
        )

    @property
    def problem(self) -> str | None:
        """Why efforts are not used although they are known well enough; None otherwise."""
        if self.contradiction is not None:
            return self.contradiction.words()
        if self._only_zeros:
            return "all of them are zero, as those of a driver that measures none"
        if self.verdict is None or self._stated != "auto" or self.unit is not None:
            return None
        meaning = self.verdict.meaning
        if meaning is not None:
            return f"they are {MEANING_IN_WORDS[meaning]} ({self._evidence.words()})"
        if self.verdict.without_gravity:
            return (
                "they are joint torques without gravity, whether with friction is not decided "
                f"({self._evidence.words()})"
            )
        return None

    def _compare(self, batch: Telemetry) -> None:
        """Add samples to the evidence, and decide."""
        self._waiting.append(batch)
        if batch.time[-1] - self._waiting[0].time[0] < OBSERVED_TOGETHER:
            return
        joined = concatenate(self._waiting)
        self._waiting = []
        if not joined[EFFORT].any():
            return
        if self._evidence.seconds > WINDOW:
            self._evidence = EffortEvidence(self._model, self._robot)
        columns = (joined["actual_q"], joined["actual_qd"], joined[EFFORT])
        self._evidence.observe(joined.time, *columns)
        verdict = self._evidence.verdict()
        meaning = verdict.meaning
        self.verdict = verdict
        if self._stated == "auto":
            self.unit = unit_of(meaning)
        elif verdict.excludes(self._stated):
            self.unit = None
            self.contradiction = self._contradiction(self._stated, verdict)
        # Efforts that are not used may still turn out to be usable: at standstill,
        # torques without gravity look like no efforts at all.
        self._compares = meaning is None or self.unit != meaning

    def _contradiction(self, stated: EffortUnit, verdict: EffortVerdict) -> Contradiction:
        """Between the stated unit and what the efforts are instead."""
        probability = verdict.probability
        possible = [
            each for each in MEANING_IN_WORDS if probability[each] > 1.0 - DECIDED
        ]
        shown = " or ".join(MEANING_IN_WORDS[each] for each in possible)
        remedy = "set effort_unit:=auto"
        if len(possible) == 1 and unit_of(possible[0]) is not None:
            remedy = f"set effort_unit:={possible[0]}, or auto"
        return Contradiction(
            subject="effort_unit",
            stated=f"effort_unit is {stated}",
            shown=f"efforts of {self._source} are {shown}",
            evidence=self._evidence.words(),
            remedy=remedy,
            refused=True,
        )

    def _hold(self, batch: Telemetry) -> None:
        """Keep samples until their unit is decided; the oldest are given up after MOST_HELD."""
        self._held.append(batch)
        newest = batch.time[-1]
        while self._held and newest - self._held[0].time[-1] > MOST_HELD:
            self._held.popleft()

    def _named(self, batch: Telemetry) -> Telemetry:
        """Samples with their efforts as the field of the unit in use, or without efforts."""
        columns = dict(batch.columns)
        efforts = columns.pop(EFFORT)
        if self.unit is not None:
            columns[FIELD_OF_UNIT[self.unit]] = np.asarray(efforts)
        return replace(batch, columns=columns)
