# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Learning from recordings, as the estimator learns live."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ur_energy_model.consistency.contradiction import refuse
from ur_energy_model.consistency.recording_check import RecordingCheck
from ur_energy_model.energy.matched_model import check_robot
from ur_energy_model.energy.telemetry_checks import check_width
from ur_energy_model.errors import RecordingError, WrongRobotError
from ur_energy_model.identification.recording import FIELDS, REQUIRED
from ur_energy_model.learning.history import Attempt, Change
from ur_energy_model.learning.learner import Learner
from ur_energy_model.telemetry.bag.reader import iterate_bag
from ur_energy_model.telemetry.clock import checked_clock
from ur_energy_model.telemetry.samples import RecordingInfo
from ur_energy_model.typing import Progress


def learn_from_bags(
    learner: Learner, bags: Sequence[str | Path], *, progress: Progress | None = None
) -> tuple[list[Attempt], list[Change]]:
    """Learn from recordings, one after another, in constant memory.

    Args:
        learner: learner of the arm; its model is the result.
        bags: recordings of the arm in order of time, each a separate session.
        progress: called with NaN, as the length of a bag is not known, and text.

    Returns:
        The attempts to improve the model in order of time, and the changes of the arm.

    Raises:
        UrEnergyError: a recording is of another arm, empty or contradictory, or cannot be
            read.
    """
    attempts: list[Attempt] = []
    changes: list[Change] = []
    for bag in map(Path, bags):
        samples = 0
        check = RecordingCheck()
        for batch in checked_clock(iterate_bag(bag, FIELDS), bag):
            if not len(batch):
                continue
            if not samples:
                check_robot(bag, batch.info, learner.robot)
                check_width(bag, batch, REQUIRED, learner.robot.dof)
                _check_serial(bag, batch.info, learner)
            samples += len(batch)
            check.observe(batch)
            learner.update(batch)
            attempts += learner.attempts()
            if progress is not None:
                progress(float("nan"), f"learning from {bag.name}: {samples} samples")
        if not samples:
            raise RecordingError(bag, "holds no samples", "record again")
        refuse(bag, check.contradictions(learner.robot))
        learner.end_session()
        attempts += learner.attempts()
        changes += learner.take_changes()
    learner.finish()
    return attempts + learner.attempts(), [*changes, *learner.take_changes()]


def _check_serial(bag: Path, info: RecordingInfo, learner: Learner) -> None:
    """Check that a recording is of the arm that a learner learns about.

    Args:
        bag: path of the recording.
        info: metadata of the recording.
        learner: learner of the arm.

    Raises:
        WrongRobotError: both serial numbers are known, and they differ.
    """
    found = info.serial
    known = learner.serial
    if None not in (found, known) and found != known:
        problem = f"was recorded on the arm {found}, the recordings before on {known}"
        remedy = "learn a model of each arm from its own recordings"
        raise WrongRobotError(bag, problem, remedy, field="serial")
