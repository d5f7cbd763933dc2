"""What an identification does with each recording, wherever a `ForEachBag` works."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from ur_energy_model.errors import IdentificationError
from ur_energy_model.identification.dynamics.recording_dynamics import RecordingDynamics
from ur_energy_model.identification.evaluation.evaluation import Metrics, measure
from ur_energy_model.identification.long_recordings.part_pool import KeptTime
from ur_energy_model.identification.payload.payload_check import PayloadCheck, check_payload
from ur_energy_model.identification.recording import Recording
from ur_energy_model.identification.recording_reader import read_recording
from ur_energy_model.many_bags import BagResult, ForEachBag, Result
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.typing import Progress

OwnDynamics: TypeAlias = tuple[Recording, RecordingDynamics]
"""A recording and its dynamics."""


class ManyRecordings:
    """Reads the bags of an identification, checks their payloads and compares a model with them.

    Args:
        each: does so for every bag; if None it is done here, and a bag that fails is an error.
        progress: called with fraction (NaN if unknown) and text.

    Attributes:
        failed: bags that were left out, with reasons.
    """

    def __init__(self, each: ForEachBag | None, progress: Progress | None) -> None:
        self._each, self._progress = each, progress
        self.failed: list[BagResult[Any]] = []

    def read(
        self,
        bags: Sequence[Path],
        robot: RobotDescription,
        opened: ExitStack,
        kept: KeptTime | None = None,
    ) -> list[Recording]:
        """Recordings that identification can use, in the order of the bags.

        Args:
            bags: to read, perhaps none.
            robot: the arm.
            opened: closes the recordings.
            kept: time that is kept of long recordings, see `read_recording`.

        Raises:
            IdentificationError: there are bags, but none can be used.
            UrEnergyError: a bag fails, and no bag may be left out.
        """
        work = partial(_read, robot, kept, None if self._each else self._progress)
        recordings = []
        for result in self._results(work, bags):
            if result.value is not None:
                recording = opened.enter_context(closing(result.value))
                recordings.append(recording.renamed(result.bag))
        if bags and not recordings:
            others = f" (and {len(bags) - 1} more bags)" if len(bags) > 1 else ""
            raise IdentificationError(f"no bag can be used: {self.failed[0].reason}{others}")
        return recordings

    def check_payloads(
        self, model: EnergyModel, robot: RobotDescription, fitted: Sequence[OwnDynamics]
    ) -> tuple[PayloadCheck, ...]:
        """Payloads of recordings, see `check_payload`.

        Raises:
            UrEnergyError: a bag fails, and no bag may be left out.
        """
        bags = [recording.path for recording, _ in fitted]
        given = [(recording.motion_only(), own.alone()) for recording, own in fitted]
        checks = self._results(partial(_check, model, robot), bags, given)
        return tuple(
            replace(check, source=str(result.bag))
            for result in checks
            for check in result.value or ()
        )

    def measure(
        self, model: EnergyModel, compared: Sequence[OwnDynamics], anchored: Sequence[bool]
    ) -> list[Metrics | None]:
        """METRICS of recordings, in their order; None for those that failed.

        Args:
            model: of the arm.
            compared: recordings and their dynamics.
            anchored: whether the model is anchored on each of them.

        Raises:
            UrEnergyError: a bag fails, and no bag may be left out.
        """
        bags = [recording.path for recording, _ in compared]
        given = [
            (recording, own.alone(), anchor)
            for (recording, own), anchor in zip(compared, anchored, strict=True)
        ]
        return [
            None if result.value is None else replace(result.value, bag=str(result.bag))
            for result in self._results(partial(_measure, model), bags, given)
        ]

    def _results(
        self, work: partial[Result], bags: Sequence[Path], given: Sequence[Any] | None = None
    ) -> Iterator[BagResult[Result]]:
        """Results of the work; those without a value are noted as failed."""
        if self._each is None:
            for number, bag in enumerate(bags):
                yield BagResult(bag, work(bag) if given is None else work(bag, given[number]))
            return
        for result in self._each(work, bags, self._progress, given):
            if result.value is None:
                self.failed.append(result)
            yield result


def longest_first(recordings: Sequence[Recording]) -> list[Recording]:
    """Recordings by number of samples, those of equal number by hash.

    In this order sums are rounded, blocks of cross-validation cut, and what a single recording
    decides is decided, so that results do not depend on the order in which bags are named.
    """
    return sorted(recordings, key=lambda recording: (-recording.samples, recording.sha256))


def _read(
    robot: RobotDescription, kept: KeptTime | None, progress: Progress | None, path: Path
) -> Recording:
    recording = read_recording(path, robot, kept=kept, progress=progress)
    try:
        recording.quality.require_usable()
    except IdentificationError:
        recording.close()
        raise
    return recording


def _check(
    model: EnergyModel, robot: RobotDescription, path: Path, fitted: OwnDynamics
) -> tuple[PayloadCheck, ...]:
    return check_payload(model, robot, *fitted)


def _measure(
    model: EnergyModel, path: Path, compared: tuple[Recording, RecordingDynamics, bool]
) -> Metrics:
    recording, dynamics, anchor = compared
    return measure(model, recording.renamed(path), dynamics, anchor=anchor)
