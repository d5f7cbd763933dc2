"""ModelLearning: the parameter `learn` of the estimator: what is learned, kept and reported."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ur_energy_model.energy.meter import CONFIDENCE
from ur_energy_model.errors import ModelFileError
from ur_energy_model.learning.background import BackgroundLearning, LearningNews
from ur_energy_model.learning.kept_models import save_learned
from ur_energy_model.learning.needs import next_needed
from ur_energy_model.learning.state_store import StateStore
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.file.model_file import load_model
from ur_energy_model.model.sessions import SessionFriction
from ur_energy_model.nodes.terminal.learning_lines import LearningLines
from ur_energy_model.nodes.terminal.line import Line
from ur_energy_model.nodes.watched_model import WatchedModel
from ur_energy_model.telemetry.samples import Telemetry

CHANGE_SHOWN = 60.0
"""Time for which a change of the arm is a warning on /diagnostics [s]."""


class ModelLearning:
    """Learning beside the estimator, as the parameters say.

    Args:
        model: that learning begins with.
        value: returns the value of a parameter by its name.
    """

    def __init__(self, model: WatchedModel, value: Callable[[str], Any]) -> None:
        self._model, self._keep = model, value("learn") == "keep"
        state_file, played = value("state_file"), value("source") == "bag"
        # A bag that is played again would count twice.
        store = None if played or not state_file else StateStore(Path(state_file))
        self._once = played
        self._background = BackgroundLearning(model.robot, model.first, store=store)
        self._lines = LearningLines()
        self._reason: str | None = None
        self._minutes = 0.0
        """Work that the model in use was learned from [min]."""
        self._change: str | None = None
        self._change_until = 0.0
        self._write_problem: str | None = None
        # Serial number of the arm of the model file.
        self._owner: object = model.first.provenance.get("serial")

    @property
    def words(self) -> str:
        """What was learned, to be added to the words about the first model; empty for nothing."""
        version = self._background.version
        if version == 0:
            return ""
        return f", version {version} learned from {self._minutes:.1f} min of work"

    @property
    def version(self) -> int:
        """Of the model in use; 0 while nothing was learned."""
        return self._background.version

    @property
    def friction(self) -> SessionFriction | None:
        """Friction at present, over that of the model in use; None before it is known."""
        return self._background.friction

    @property
    def warning(self) -> str | None:
        """A change of the arm that was noticed a moment ago, in words."""
        return self._change if time.monotonic() < self._change_until else None

    def offer(self, batch: Telemetry, attempt: int) -> None:
        """Learn from samples; never waits.

        Args:
            batch: follows the previous one.
            attempt: number of times that the source was opened; a bag is learned from once.
        """
        if not self._once or attempt <= 1:
            self._background.offer(batch)

    def look(self, base: EnergyModel) -> tuple[EnergyModel | None, list[Line]]:
        """The model to use from now on, None for the present one, and lines about the news.

        Args:
            base: the model that is not learned.
        """
        news = self._background.look()
        model = news.model
        if model is None and news.other_arm:
            model = base
        lines = self._told(news)
        new = any(attempt.accepted for attempt in news.attempts)  # not one of before a restart
        if news.model is not None and new and self._keep:
            self._write(news.model)
        lines += self._lines.problems(self._write_problem, self._background.disk_problem)
        return model, lines

    def begin_again(self, model: EnergyModel) -> None:
        """Learn from another first model from now on: the model file was changed."""
        self._owner = model.provenance.get("serial")
        self._background.begin_again(model)

    def stop(self) -> None:
        """End the process and save the state."""
        self._background.stop()

    def values(self) -> dict[str, object]:
        """Figures for /diagnostics."""
        learning = self._background
        return {
            "model_version": learning.version,
            "learned_minutes": learning.learned_minutes,
            "next_needed": next_needed(learning.needs),
            "learned_because": self._because(),
            "friction_now": self._friction_words(),
            "last_change": self._change or "none",
            "learning_cpu_percent": 100.0 * learning.cpu_share,
            "learning_left_out": learning.left_out,
            "learning_restarts": learning.failures,
            "learning_problem": learning.problem or self._write_problem or "none",
        }

    def _because(self) -> str:
        if self._background.version == 0:
            return "nothing learned yet"
        return self._reason or "learned before the last start"

    def _friction_words(self) -> str:
        friction = self.friction
        if friction is None or np.isnan(friction.scale).all():
            return "that of the model"
        percent = zip(100.0 * friction.scale, 100.0 * CONFIDENCE * friction.std, strict=True)
        return ", ".join(
            "unknown" if np.isnan(scale) else f"{scale:.0f} +-{half:.0f} %"
            for scale, half in percent
        )

    def _told(self, news: LearningNews) -> list[Line]:
        lines: list[Line] = []
        for trouble in news.troubles:
            lines += self._lines.trouble(trouble)
        for change in news.changes:
            self._change = change.words
            self._change_until = time.monotonic() + CHANGE_SHOWN
            lines.append(self._lines.change(change))
        accepted = [attempt for attempt in news.attempts if attempt.accepted]
        if accepted:
            self._reason = accepted[-1].reason
        if news.model is not None:
            self._minutes = _minutes(news.model, self._background.learned_minutes)
            lines += self._lines.taken_over(self._background.version, self._minutes, self._reason)
        need = next_needed(self._background.needs)
        lines += self._lines.lacks(need, self._background.learned_minutes)
        return lines

    def _write(self, model: EnergyModel) -> None:
        """Write a learned model to the model file."""
        path = self._model.path
        assert path is not None  # see check_parameters
        owner, serial = self._owner, self._background.serial
        if None not in (owner, serial) and str(owner) != serial:
            self._write_problem = f"{path} is the model of arm {owner}, and this is arm {serial}"
            return
        try:
            save_learned(model, path)
            written = load_model(path)
        except ModelFileError as error:
            self._write_problem = str(error)
            return
        self._write_problem, self._owner = None, serial or owner
        self._model.note_written()
        self._background.note_written(written)


def _minutes(model: EnergyModel, default: float) -> float:
    """Work that a learned model states to be learned from, else the default [min]."""
    learned = model.provenance.get("learned")
    return float(learned["minutes"]) if isinstance(learned, dict) else default
