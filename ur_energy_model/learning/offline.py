"""Learning from recordings, as the estimator would learn live."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ur_energy_model.energy.recording_checks import check_robot, check_width
from ur_energy_model.errors import RecordingError, WrongRobotError
from ur_energy_model.identification.fields import FIELDS
from ur_energy_model.identification.recording_reader import REQUIRED
from ur_energy_model.learning.history import Attempt, Change
from ur_energy_model.learning.learner import Learner
from ur_energy_model.telemetry.bag.reader import iterate_bag
from ur_energy_model.telemetry.clock_check import checked_clock
from ur_energy_model.typing import Progress


@dataclass(frozen=True)
class LearningHistory:
    """What learning did and noticed.

    Attributes:
        attempts: in order of time.
        changes: of the arm.
    """

    attempts: tuple[Attempt, ...]
    changes: tuple[Change, ...]


def learn(
    learner: Learner, bags: Sequence[str | Path], *, progress: Progress | None = None
) -> LearningHistory:
    """Let a learner go through recordings in order, in constant memory.

    Args:
        learner: of the arm; its model is the result.
        bags: recordings; each is a session of its own.
        progress: called with fraction (NaN if unknown) and text.

    Raises:
        UrEnergyError: input that cannot be used, with place and remedy.
    """
    attempts: list[Attempt] = []
    changes: list[Change] = []
    for bag in map(Path, bags):
        samples = 0
        for batch in checked_clock(iterate_bag(bag, FIELDS), bag):
            if not len(batch):
                continue
            if not samples:
                check_robot(bag, batch.info, learner.robot)
                check_width(bag, batch, REQUIRED, learner.robot.dof)
                _check_serial(bag, batch.info.serial, learner.serial)
            samples += len(batch)
            learner.update(batch)
            attempts += learner.attempts()
            changes += learner.take_changes()
            if progress is not None:
                progress(float("nan"), f"learning from {bag.name}: {samples} samples")
        if not samples:
            raise RecordingError(bag, "holds no samples", "record again")
        learner.finish()
        attempts += learner.attempts()
        changes += learner.take_changes()
    return LearningHistory(tuple(attempts), tuple(changes))


def _check_serial(bag: Path, found: str | None, known: str | None) -> None:
    """Refuse a recording of another arm of the same type."""
    if None not in (found, known) and found != known:
        raise WrongRobotError(
            bag,
            f"was recorded on the arm {found}, the recordings before on {known}",
            "learn a model of each arm from its own recordings",
            field="serial",
        )
