"""State of the arm as far as its energy is concerned."""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from ur_energy_model.telemetry.modes import BRAKES_RELEASED, POWER_OFF, PROTECTIVE_STOP
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.typing import Array, Indices


class ArmState(IntEnum):
    """State of the arm; exactly one applies at any time."""

    OFF = 0
    """Joints without power."""
    BRAKED = 1
    """Joints powered, brakes engaged (idle)."""
    STANDSTILL = 2
    """Brakes released, held in place by the motors."""
    MOVING = 3
    PROTECTIVE_STOP = 4


_MOVING, _STANDSTILL = int(ArmState.MOVING), int(ArmState.STANDSTILL)
STANDSTILL_SPEED = 0.005
"""A joint slower than this stands still [rad/s]; velocity noise is below 0.002."""


def arm_states(batch: Telemetry, qd: Array) -> Indices:
    """ArmState of each sample.

    Args:
        batch: robot_mode and safety_mode; without them, and where they are NaN, the arm counts as
            running.
        qd: joint velocities [samples, n], rad/s.
    """
    moving = np.abs(qd).max(axis=1) > STANDSTILL_SPEED
    states = np.where(moving, _MOVING, _STANDSTILL)
    modes = batch.columns.get("robot_mode")
    if modes is not None and not (modes == BRAKES_RELEASED[-1]).all():
        states[~np.isin(modes, BRAKES_RELEASED) & ~np.isnan(modes)] = ArmState.BRAKED
        states[modes <= POWER_OFF] = ArmState.OFF
    safety = batch.columns.get("safety_mode")
    if safety is not None and (safety == PROTECTIVE_STOP).any():
        states[(safety == PROTECTIVE_STOP) & (states != ArmState.OFF)] = ArmState.PROTECTIVE_STOP
    return states
