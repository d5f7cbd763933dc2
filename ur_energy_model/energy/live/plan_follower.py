"""Measured energy of a planned motion that the robot has carried out."""

from __future__ import annotations

from ur_energy_model.energy.arm_state import ArmState
from ur_energy_model.energy.live.snapshot import Snapshot
from ur_energy_model.energy.meter import MeterReading
from ur_energy_model.energy.prediction import PlanEnergy

EXPECTED_WITHIN = 60.0
"""Longest time between a plan and the start of its motion [s]."""
AT_REST = 0.3
"""Standstill that ends a motion after most of its planned duration [s]."""
NEARLY = 0.9
"""Share of the planned duration that must have passed."""


class PlanFollower:
    """Measures the first motion after a plan, from its start to standstill."""

    def __init__(self) -> None:
        self._plan: PlanEnergy | None = None
        self._expected_since: float | None = None
        self._start: tuple[float, MeterReading] | None = None
        self._rest: tuple[float, MeterReading] | None = None
        self._before: MeterReading | None = None

    def expect(self, plan: PlanEnergy) -> None:
        """Wait for the motion of a plan; replaces the previous plan."""
        self._plan = plan
        self._expected_since = self._start = self._rest = self._before = None

    def update(self, snapshot: Snapshot) -> tuple[PlanEnergy, MeterReading] | None:
        """Follow the motion; returns plan and measured energy when it has ended, else None."""
        if self._plan is None:
            return None
        now, moving = snapshot.time, snapshot.state == ArmState.MOVING
        if self._start is None:
            if self._expected_since is None:
                self._expected_since = now
            if now - self._expected_since > EXPECTED_WITHIN:
                self._plan = None
            elif moving:
                before = snapshot.lifetime if self._before is None else self._before
                self._start = (now, before)
            self._before = snapshot.lifetime
            return None
        if moving:
            self._rest = None
            return None
        if self._rest is None:
            self._rest = (now, snapshot.lifetime)
        began, reading = self._start
        if now - self._rest[0] < AT_REST or self._rest[0] - began < NEARLY * self._plan.duration:
            return None
        done = (self._plan, self._rest[1] - reading)
        self._plan = None
        return done
