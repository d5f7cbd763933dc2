# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Learning in the estimator node: the parameter `learn`, and lines and figures about it.

The estimator begins with its first model. `BackgroundLearning` learns from its samples in
a separate process; once a second, `LearningCompanion.poll` takes over what was learned.
"""

from __future__ import annotations

import time

import numpy as np

from ur_energy_model.energy.meter import CONFIDENCE
from ur_energy_model.errors import InputError, ModelFileError
from ur_energy_model.identification.recording import FIELDS
from ur_energy_model.learning.background import BackgroundLearning, LearningUpdate
from ur_energy_model.learning.needs import next_needed
from ur_energy_model.learning.room import LearningParameters
from ur_energy_model.learning.state import save_learned
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.model_file import load_model
from ur_energy_model.model.sessions import SessionFriction
from ur_energy_model.nodes.estimated_arm import EstimatedArm, EstimatorCompanion
from ur_energy_model.nodes.lines import INFO, WARN, OperatorLines, without_numbers
from ur_energy_model.nodes.parameters import EstimatorParameters
from ur_energy_model.rooms import Given
from ur_energy_model.telemetry.samples import Telemetry

CHANGE_SHOWN = 60.0  # time for which a change of the arm is a warning on /diagnostics [s]


class LearningCompanion(EstimatorCompanion):
    """Improves the model of an estimator while the arm works.

    With learn:=keep, each accepted model is also written to the model file, which need not
    exist before: until then the model is the generic one. With learn:=off nothing is
    learned, and the figures on /diagnostics state that.

    Raises:
        InputError: learn is keep, and there is no model_file to write.
    """

    def __init__(self, given: Given, lines: OperatorLines) -> None:
        self._parameters = given.of(EstimatorParameters)
        self._lines = lines
        self._mode = given.of(LearningParameters).learn
        self._learning: BackgroundLearning | None = None
        self._arm_is_known = False
        self._owner: object = None  # serial number of the arm of the model file
        self._minutes = 0.0  # minutes of work that the model in use was learned from
        self._reason: str | None = None  # why the last refit was accepted
        self._lacking: str | None = None  # subject of the last line about missing work
        self._change: str | None = None
        self._change_until = 0.0
        self._write_problem: str | None = None
        self.writes_model_file = self._mode == "keep"
        self.follows_arm = self._mode != "off"
        if self.follows_arm:
            self.fields = FIELDS
        if self.writes_model_file and self._parameters.model_file is None:
            remedy = "give the path where the learned model is to be kept, or learn:=on"
            raise InputError(
                "estimator", "is not set, but learn is keep", remedy, field="model_file"
            )

    @property
    def warning(self) -> str | None:
        """A change of the arm that was noticed in the last CHANGE_SHOWN seconds."""
        return self._change if time.monotonic() < self._change_until else None

    def begin(self, arm: EstimatedArm) -> None:
        """Learn from the first model; the process is started with the first samples."""
        self._arm_is_known = True
        self._owner = arm.base.provenance.get("serial")
        if self._mode == "off":
            return
        # What is learned from a bag is not kept: the bag may be played again, and would
        # count twice.
        played = self._parameters.source == "bag"
        file = None if played else arm.estimator.state_file
        self._learning = BackgroundLearning(arm.robot, arm.base, file=file)

    def restart(self, arm: EstimatedArm) -> None:
        """Learn anew, from the changed model file."""
        self._owner = arm.base.provenance.get("serial")
        if self._learning is not None:
            self._learning.begin_again(arm.base)

    def take_samples(self, batch: Telemetry) -> None:
        """Learn from samples; never waits."""
        if self._learning is not None:
            self._learning.offer(batch)

    def poll(self, arm: EstimatedArm) -> None:
        """Use what was learned since the last call, and write the model file if it is kept."""
        learning = self._learning
        if learning is None:
            return
        update = learning.poll()
        self._report_events(update)
        accepted = [attempt for attempt in update.attempts if attempt.accepted]
        if accepted:
            self._reason = accepted[-1].reason
        if update.model is not None:
            self._minutes = _minutes_of(update.model, learning.progress.learned_minutes)
            self._report_version(learning.progress.version)
        self._report_needs(learning)
        # A model of before a restart was written then.
        if update.model is not None and accepted and self.writes_model_file:
            self._write(update.model, arm)
        self._report_file()
        if update.model is not None:
            origin = f"learned from {self._minutes:.1f} min of work"
            arm.use_model(update.model, learning.progress.version, origin)
        elif update.other_arm:
            arm.use_base()
        arm.use_friction(learning.progress.friction)

    def _report_events(self, update: LearningUpdate) -> None:
        """Write lines about what went wrong, and about changes of the arm."""
        for trouble in update.troubles:
            text = f"{trouble}; energies are counted as before"
            self._lines.event("learning", WARN, text)
        for change in update.changes:
            self._change = change.words
            self._change_until = time.monotonic() + CHANGE_SHOWN
            self._lines.log(WARN, f"change of the arm: {change.words}")

    def _report_version(self, version: int) -> None:
        """Write the line about a model that is used from now on."""
        text = f"model version {version} is used, "
        text += f"learned from {self._minutes:.1f} min of work"
        if self._reason:
            text += f": {self._reason}"
        self._lines.event("learned", INFO, text)

    def _report_needs(self, learning: BackgroundLearning) -> None:
        """Write a line about the work that the model lacks most, where that has changed."""
        minutes = learning.progress.learned_minutes
        need = next_needed(learning.progress.needs)
        subject = without_numbers(need)
        if minutes == 0.0 or subject == self._lacking:
            return
        text = f"after {minutes:.1f} min of work the model lacks: {need}"
        if self._lines.write("lacks", INFO, text, again=True):
            self._lacking = subject

    def _report_file(self) -> None:
        """Write a line where the model file cannot be written, or can be written again."""
        file = None
        if self._write_problem is not None:
            file = f"the learned model is not kept: {self._write_problem}"
        text = "learned models are written again"
        self._lines.problem("learned file", file, text, WARN)

    def _write(self, model: EnergyModel, arm: EstimatedArm) -> None:
        """Write a learned model to the model file, unless the file is of another arm."""
        path = self._parameters.model_file
        learning = self._learning
        assert path is not None  # see __init__
        assert learning is not None
        owner = self._owner
        serial = learning.serial
        if None not in (owner, serial) and str(owner) != serial:
            self._write_problem = (
                f"{path} is the model of arm {owner}, and this is arm {serial}"
            )
            return
        try:
            save_learned(model, path)
            written = load_model(path)
        except ModelFileError as error:
            self._write_problem = str(error)
            return
        self._write_problem = None
        self._owner = serial or owner
        arm.model_was_written()
        learning.note_written(written)

    def model_values(self) -> dict[str, object]:
        """Version, minutes, needs, friction and the process that learns, as figures."""
        learning = self._learning
        if learning is None:
            needed = "learn is off" if self._arm_is_known else None
            return {"learned_minutes": 0.0, "next_needed": needed}
        progress = learning.progress
        because = "nothing learned yet"
        if progress.version:
            because = self._reason or "learned before the last start"
        return {
            "model_version": progress.version,
            "learned_minutes": progress.learned_minutes,
            "next_needed": next_needed(progress.needs),
            "learned_because": because,
            "friction_now": _friction_words(progress.friction),
            "last_change": self._change or "none",
            "learning_cpu_percent": 100.0 * progress.cpu_share,
            "learning_left_out": learning.left_out,
            "learning_restarts": learning.failures,
            "learning_problem": learning.problem or self._write_problem or "none",
        }

    def stop(self) -> None:
        """End the process and save what was learned."""
        if self._learning is not None:
            self._learning.stop()


def _minutes_of(model: EnergyModel, learned_minutes: float) -> float:
    """Minutes of work that a model was learned from.

    The provenance of a model states its minutes, which include the work before a restart.

    Args:
        model: a learned model.
        learned_minutes: minutes for a model whose provenance states none.
    """
    learned = model.provenance.get("learned")
    if isinstance(learned, dict):
        return float(learned["minutes"])
    return learned_minutes


def _friction_words(friction: SessionFriction | None) -> str:
    """Friction of the joints now, in percent of the model's friction, with 95 % uncertainty."""
    if friction is None or np.isnan(friction.scale).all():
        return "that of the model"
    percent = 100.0 * friction.scale
    uncertainty = 100.0 * CONFIDENCE * friction.std
    words: list[str] = []
    for scale, half in zip(percent, uncertainty, strict=True):
        words.append("unknown" if np.isnan(scale) else f"{scale:.0f} +-{half:.0f} %")
    return ", ".join(words)
