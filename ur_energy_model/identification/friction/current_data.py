"""Data of the regression of current: Gram matrices of sessions, and what was observed beside."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ur_energy_model.identification.friction.current_columns import ACCELERATION, LOAD
from ur_energy_model.identification.friction.session_scales import SessionBlocks
from ur_energy_model.identification.regression.filtered_motion import merged_ranges
from ur_energy_model.identification.regression.gram_matrices import (
    MAX_BLOCKS,
    BlockedGram,
    gram_matrices_by_joint,
)
from ur_energy_model.telemetry.runs import time_blocks
from ur_energy_model.typing import Array, Mask

_BLOCK = 1.0
"""Duration of a block of time [s]."""


@dataclass
class CurrentData:
    """Sums over any number of sessions of an arm with n joints.

    Attributes:
        temperature: lowest and highest temperatures [n, 2], degC; NaN where not recorded.
        moving_time: motion of each joint [n], s.
        memory: samples over which the narrow filter correlates white noise.
        most_blocks: Gram matrices kept of a session.
        sessions: Gram matrices of [columns, current] per joint and block of time, and numbers of
            samples per joint.
    """

    temperature: Array
    moving_time: Array
    memory: float
    most_blocks: int = MAX_BLOCKS
    sessions: list[tuple[BlockedGram, BlockedGram]] = field(default_factory=list)

    def start_session(self) -> None:
        """Start another session, with its own friction level."""
        self.sessions.append((BlockedGram(self.most_blocks), BlockedGram(self.most_blocks)))

    def restart_session(self) -> None:
        """Forget the data of the current session."""
        if self.sessions:
            del self.sessions[-1]
        if not self.sessions:
            self.moving_time = np.zeros_like(self.moving_time)
        self.start_session()

    def add(self, time: Array, rows: Array, moving: Mask, temperature: Array) -> None:
        """Add samples to the current session.

        Args:
            time: evenly spaced [samples], s.
            rows: columns and current [samples, n, width], zero where the joint does not move.
            moving: joints that move [samples, n].
            temperature: lowest and highest [n, 2], degC.
        """
        self.temperature = merged_ranges(self.temperature, temperature)
        period = float(time[1] - time[0])
        self.moving_time = self.moving_time + moving.sum(axis=0) * period
        if not self.sessions:
            self.start_session()
        grams, counts = self.sessions[-1]
        for block in time_blocks(time, _BLOCK):
            duration = len(time[block]) * period
            grams.accumulate(gram_matrices_by_joint(rows[block]), duration)
            counts.accumulate(moving[block].sum(axis=0, dtype=float), duration)

    def of_joint(self, j: int) -> list[SessionBlocks]:
        """Sessions in which a joint moved."""
        sessions = (self.sessions[number] for number in self.moved(j))
        return [
            SessionBlocks(grams.blocks[:, j], counts.blocks[:, j]) for grams, counts in sessions
        ]

    def moved(self, j: int) -> tuple[int, ...]:
        """Numbers of these sessions."""
        return tuple(
            number
            for number, (_, counts) in enumerate(self.sessions)
            if len(counts) and counts.blocks[:, j].any()
        )

    def with_inertia_changed(self, change: Array) -> CurrentData:
        """The same data with loads computed from other inertias.

        Effects on friction that depends on the load are neglected.

        Args:
            change: of the reflected inertias [n], kg m^2; their columns are among the data.
        """
        if not any(len(grams) for grams, _ in self.sessions):
            return self
        width = next(g.blocks.shape[-1] for g, _ in self.sessions if len(g))
        matrix = np.repeat(np.eye(width)[None], len(change), axis=0)
        matrix[:, ACCELERATION, LOAD] = change
        moved = [(grams.transformed(matrix), counts) for grams, counts in self.sessions]
        return replace(self, sessions=moved)

    def saved(self) -> dict[str, Any]:
        """Everything needed to continue, see `restored`."""
        return {
            "sessions": [[grams.saved(), counts.saved()] for grams, counts in self.sessions],
            "temperature": self.temperature,
            "moving_time": self.moving_time,
            "memory": self.memory,
            "most_blocks": self.most_blocks,
        }

    @classmethod
    def restored(cls, saved: Mapping[str, Any]) -> CurrentData:
        """The data that `saved` describes."""
        return cls(
            temperature=np.array(saved["temperature"], dtype=float),
            moving_time=np.array(saved["moving_time"], dtype=float),
            memory=float(saved["memory"]),
            most_blocks=int(saved["most_blocks"]),
            sessions=[
                (BlockedGram.restored(grams), BlockedGram.restored(counts))
                for grams, counts in saved["sessions"]
            ],
        )
