"""Mounting, payloads and inertias from target_moment while the arm works."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ur_energy_model.errors import IdentificationError
from ur_energy_model.identification.dynamics.dynamics_estimate import (
    DynamicsEstimate,
    angle_between,
    estimate_dynamics,
)
from ur_energy_model.identification.dynamics.recording_dynamics import RecordingDynamics
from ur_energy_model.learning.torque_rows import TorqueRows
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.setup import Setup
from ur_energy_model.telemetry.samples import RecordingInfo, Telemetry

_MOST_SESSIONS = 3
"""Sessions whose samples are kept; the inertias are common to them."""
_GROWTH = 1.3
"""Factor by which the samples must grow before an undecided setup is estimated again."""
_SAME = np.radians(0.5)
"""Mountings that differ by less are the same [rad]."""


class SetupEstimate:
    """Setup of the current session, estimated anew as samples arrive.

    A mounting may change between sessions, the inertias of the arm do not.

    Args:
        robot: the arm.
        fallback: setup where target_moment shows none.

    Attributes:
        estimate: setups and inertias; None without target_moment.
    """

    def __init__(self, robot: RobotDescription, fallback: Setup) -> None:
        self.robot, self.fallback = robot, fallback
        self.estimate: DynamicsEstimate | None = None
        self._rows: list[TorqueRows] = [TorqueRows()]
        self._first = 0
        """Number of the first session whose samples are kept."""
        self._used = 0
        """Samples of this session in the last estimate."""

    def start_session(self) -> None:
        """Start another session."""
        if not self._rows[-1].samples:
            return
        self._rows = [*(rows.shortened() for rows in self._rows), TorqueRows()]
        self._used = 0
        if len(self._rows) > _MOST_SESSIONS:
            self._first += 1
            del self._rows[0]

    def add(self, window: Telemetry) -> bool:
        """Add usable samples; True if the mounting turns out to be another one."""
        rows = self._rows[-1]
        rows.append(window)
        if self._decided or rows.samples < max(1, _GROWTH * self._used):
            return False
        return self.update()

    def update(self) -> bool:
        """Estimate from all samples; True if the mounting turns out to be another one."""
        before = self.dynamics(RecordingInfo()).actual_setup(np.full(4, np.nan)).gravity
        parts = [
            rows.telemetry(self._source(k)) for k, rows in enumerate(self._rows) if rows.samples
        ]
        if not parts:
            return False
        self._used = self._rows[-1].samples
        try:
            found = estimate_dynamics(parts, self.robot)
        except IdentificationError:
            return False
        own = [entry for entry in found.recordings if entry.source == self._current]
        if own:
            longest = max(own, key=lambda entry: entry.samples)
            found = replace(found, setup=longest.setup, setup_source=longest.setup_source)
        self.estimate = found
        after = self.dynamics(RecordingInfo()).actual_setup(np.full(4, np.nan)).gravity
        return bool(angle_between(before, after) > _SAME)

    def dynamics(self, info: RecordingInfo) -> RecordingDynamics:
        """Dynamics of the arm in this session.

        Args:
            info: of the samples.
        """
        told = info if self.estimate is None else replace(info, gravity=None)
        fallback = self.fallback if self.estimate is None else self.estimate.setup
        named = replace(told, source=self._current)
        return RecordingDynamics(self.robot, named, self.estimate, None, fallback)

    def saved(self) -> dict[str, Any]:
        """Everything needed to continue, see `restore`."""
        return {"rows": [rows.saved() for rows in self._rows], "first": self._first}

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Continue with saved samples."""
        self._rows = [TorqueRows.restored(rows) for rows in saved["rows"]]
        self._first = int(saved["first"])
        self.update()

    @property
    def _decided(self) -> bool:
        """Whether target_moment determines the setup of this session."""
        return self.estimate is not None and any(
            entry.source == self._current and entry.setup_source == "estimated"
            for entry in self.estimate.recordings
        )

    @property
    def _current(self) -> str:
        return self._source(len(self._rows) - 1)

    def _source(self, index: int) -> str:
        return f"session {self._first + index}"
