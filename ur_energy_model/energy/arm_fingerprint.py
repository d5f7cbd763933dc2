# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The torque constants of the arm at hand, found while it works.

The controller states them from the first seconds of standstill on
(`consistency.controller_constants`). They are looked at after 1, 2, 4, ... seconds, and reported
where a further joint is known or one has become clearly more certain, so that a model changes a
few times only.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ur_energy_model.consistency.controller_constants import (
    FIELDS,
    MOST_READ,
    ControllerConstantsFit,
)
from ur_energy_model.model.controller_constants import ControllerConstants
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.telemetry.samples import Telemetry, concatenate

FIRST_LOOK = 1.0
"""Time of samples after which the constants are looked at first [s]; each next time is twice it."""
TOGETHER = 1.0
"""Time of samples that are accumulated together [s]: small batches cost several times as much."""
LEAST_GAIN = 0.5
"""Ratio of a relative deviation, calibration included, to the one reported last from which a
constant counts as clearly more certain."""


class LiveConstants:
    """Finds the constants of one arm from its stream; memory is bounded."""

    def __init__(self, robot: RobotDescription) -> None:
        self._fit = ControllerConstantsFit(robot)
        self._reported = ControllerConstants.unknown(robot.dof)
        self._waiting: list[Telemetry] = []
        self._observed = 0.0  # time of the samples accumulated [s]
        self._next_look = FIRST_LOOK

    def update(self, batch: Telemetry) -> ControllerConstants | None:
        """Add samples; returns the constants where they are new or clearly more certain."""
        if self._observed > MOST_READ or not len(batch):
            return None
        columns = {name: batch[name] for name in FIELDS if name in batch}
        part = replace(batch, columns=columns, gaps=())
        if self._waiting and self._waiting[0].columns.keys() != columns.keys():
            self._waiting = []
        self._waiting.append(part)
        seconds = float(batch.time[-1]) - float(self._waiting[0].time[0])
        if 0.0 <= seconds < TOGETHER:
            return None
        self._fit.accumulate(concatenate(self._waiting))
        self._waiting = []
        self._observed += abs(seconds)
        if self._observed < self._next_look:
            return None
        self._next_look = 2.0 * self._observed
        return self._news()

    def _news(self) -> ControllerConstants | None:
        """The constants found, where they are clearly more than those reported last."""
        found = self._fit.result()
        before = self._reported.relative_deviation
        now = found.relative_deviation
        better = found.known & (now < LEAST_GAIN * before)
        if not np.any(better):
            return None
        self._reported = found
        return found
