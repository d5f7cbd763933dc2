"""What is wrong with a robot while it moves, told from every sample that is read."""

from __future__ import annotations

import threading
import time

import numpy as np

from ur_energy_model.telemetry.modes import NORMAL_SAFETY, SAFETY_MODES
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.typing import Array

FOLLOWING_ERROR = 0.1
"""Largest deviation of measured from commanded joint position that is borne [rad]."""
SILENCE = 1.0
"""Without telemetry for this long the connection counts as lost and the motion is ended [s]."""


class SafetyMonitor:
    """The latest state of the robot, from every sample that is read, and what is wrong with it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._batch: Telemetry | None = None
        self._heard = time.monotonic()
        self._following_error = 0.0
        self._problem = ""
        self.guarding = False

    def __call__(self, batch: Telemetry) -> None:
        """Take a batch; called by the recorder's reading thread."""
        safety, error = batch.columns.get("safety_mode"), 0.0
        if "target_q" in batch and "actual_q" in batch:
            error = float(np.nanmax(np.abs(batch["target_q"] - batch["actual_q"])))
        with self._lock:
            self._batch, self._heard = batch, time.monotonic()
            if not self.guarding:
                return
            self._following_error = max(self._following_error, error)
            if self._problem:
                return
            if error > FOLLOWING_ERROR:
                self._problem = f"following error of {error:.2f} rad"
            if safety is not None:
                bad = [code for code in safety.astype(int) if code not in NORMAL_SAFETY]
                if bad:
                    self._problem = SAFETY_MODES.get(bad[0], f"safety mode {bad[0]}")

    def guard(self) -> None:
        """From now on following error and safety mode are held against the robot."""
        with self._lock:
            self.guarding, self._following_error, self._problem = True, 0.0, ""

    @property
    def problem(self) -> str:
        """What is wrong, "" where nothing is."""
        with self._lock:
            if self._problem or not self.guarding:
                return self._problem
            quiet = time.monotonic() - self._heard
        return f"connection lost, nothing heard for {quiet:.1f} s" if quiet > SILENCE else ""

    @property
    def following_error(self) -> float:
        """Largest since `guard` [rad]."""
        with self._lock:
            return self._following_error

    def latest(self, name: str) -> Array | None:
        """The last value of a field [width]; None where it is not known yet."""
        with self._lock:
            batch = self._batch
        if batch is None or name not in batch:
            return None
        return np.atleast_1d(batch[name][-1])

    def code(self, name: str) -> int | None:
        """The last value of a field that holds a code."""
        value = self.latest(name)
        return None if value is None or not np.isfinite(value[0]) else int(value[0])
