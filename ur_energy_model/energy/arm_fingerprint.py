# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The torque constants of the arm at hand, found while it works.

The controller states them from the first seconds of standstill on
(`consistency.controller_constants`). They are looked at after 1, 2, 4, ... seconds, and
reported where a further joint is known or one has become clearly more certain, so that a
model changes a few times only.
"""

from __future__ import annotations

import numpy as np

from ur_energy_model.consistency.controller_constants import (
    MOST_READ,
    ControllerConstantsFit,
)
from ur_energy_model.model.controller_constants import ControllerConstants
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.telemetry.samples import Telemetry

FIRST_LOOK = 1.0
"""Time of samples after which the constants are looked at first [s]; each next time is twice it."""
LONGEST_BATCH = 60.0  # a longer one contains a step of the clock [s]
LEAST_GAIN = 0.5
"""Ratio of a relative deviation, calibration included, to the one reported last from which a
constant counts as clearly more certain."""


class LiveConstants:
    """Finds the constants of one arm from its stream; memory is bounded."""

    def __init__(self, robot: RobotDescription) -> None:
        self._fit = ControllerConstantsFit(robot)
        self._reported = ControllerConstants.unknown(robot.dof)
        self._last: float | None = None  # time of the last sample [s]
        self._observed = 0.0  # time of the samples accumulated [s]
        self._next_look = FIRST_LOOK

    def update(self, batch: Telemetry) -> ControllerConstants | None:
        """Add samples; returns the constants where they are new or clearly more certain."""
        if self._observed > MOST_READ or not len(batch):
            return None
        self._fit.accumulate(batch)
        begin = float(batch.time[0]) if self._last is None else self._last
        self._last = float(batch.time[-1])
        self._observed += min(max(self._last - begin, 0.0), LONGEST_BATCH)
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
        differs = self._reported.same_arm(found) is False
        if not np.any(better) and not differs:
            return None
        self._reported = found
        return found
