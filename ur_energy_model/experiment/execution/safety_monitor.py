"""Monitors telemetry for problems while a robot moves."""

from __future__ import annotations

import threading
import time

import numpy as np

from ur_energy_model.telemetry.modes import NORMAL_SAFETY, SAFETY_MODES
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.typing import Array

FOLLOWING_ERROR = 0.1
"""Tolerated difference of measured and commanded joint position [rad]."""
SILENCE = 1.0
"""Time without telemetry after which the connection counts as lost [s]."""


class SafetyMonitor:
    """Keeps the latest telemetry of the robot and detects problems; safe to use across threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._batch: Telemetry | None = None
        self._received = time.monotonic()
        self._following_error = 0.0
        self._problem = ""
        self._active = False

    def __call__(self, batch: Telemetry) -> None:
        """Process a batch; called by the reading thread of the recorder."""
        safety, error = batch.columns.get("safety_mode"), 0.0
        if "target_q" in batch and "actual_q" in batch:
            error = float(np.nanmax(np.abs(batch["target_q"] - batch["actual_q"])))
        with self._lock:
            self._batch, self._received = batch, time.monotonic()
            if not self._active:
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

    def activate(self) -> None:
        """Start to check following error, safety mode and connection."""
        with self._lock:
            self._active, self._following_error, self._problem = True, 0.0, ""

    @property
    def problem(self) -> str:
        """Description of the problem, "" without one."""
        with self._lock:
            if self._problem or not self._active:
                return self._problem
            quiet = time.monotonic() - self._received
        return f"connection lost, no telemetry for {quiet:.1f} s" if quiet > SILENCE else ""

    @property
    def following_error(self) -> float:
        """Largest following error since `activate` [rad]."""
        with self._lock:
            return self._following_error

    def latest(self, name: str) -> Array | None:
        """Latest value of a field [width]; None if it is not known yet."""
        batch = self.batch
        if batch is None or name not in batch:
            return None
        return np.atleast_1d(batch[name][-1])

    @property
    def batch(self) -> Telemetry | None:
        """The latest samples; None before the first."""
        with self._lock:
            return self._batch

    def code(self, name: str) -> int | None:
        """Latest value of a field that contains a code; None if it is unknown."""
        value = self.latest(name)
        return None if value is None or not np.isfinite(value[0]) else int(value[0])
