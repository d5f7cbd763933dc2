# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""All statements about a finished recording, compared with its samples in one pass."""

from __future__ import annotations

from ur_energy_model.consistency.arm_type import ArmTypeCheck
from ur_energy_model.consistency.contradiction import Contradiction
from ur_energy_model.consistency.effort_unit import CurrentCheck
from ur_energy_model.consistency.time_unit import TimeCheck
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.telemetry.samples import Telemetry


class RecordingCheck:
    """Compares time, arm and currents of one recording with its samples, batch by batch."""

    def __init__(self) -> None:
        self._time = TimeCheck()
        self._arm_type = ArmTypeCheck()
        self._current = CurrentCheck()

    def observe(self, part: Telemetry) -> None:
        """Add the next part."""
        self._time.observe(part)
        self._arm_type.observe(part)
        self._current.observe(part)

    def contradictions(self, robot: RobotDescription | None) -> tuple[Contradiction, ...]:
        """Contradictions of the times, of the type of the arm, or of the unit of currents.

        With wrong times nothing else can be compared, with a wrong arm no currents.

        Args:
            robot: the arm that is stated; None if none is.
        """
        of_time = self._time.contradictions()
        if of_time or robot is None:
            return of_time
        return self._arm_type.contradictions(robot) or self._current.contradictions(robot)
