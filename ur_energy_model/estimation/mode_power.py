"""Power of an arm that does not hold itself: switched off, or with its brakes engaged."""

from __future__ import annotations

from collections.abc import Mapping

from ur_energy_model.estimation.tracking import RunningMean
from ur_energy_model.telemetry.modes import POWER_OFF, ROBOT_MODES
from ur_energy_model.telemetry.samples import Telemetry

TIME_CONSTANT = 2.0
"""Of the power followed in each mode [s]."""
RUNNING = 7
"""Robot mode of samples that do not tell it."""


class ModePower:
    """Power by robot mode: as the bus shows it, else as the model knows it.

    Args:
        known: power by name of the mode, W, from the model.
    """

    def __init__(self, known: Mapping[str, float]) -> None:
        self._known = known
        self._followed: dict[int, RunningMean] = {}

    def follow(self, mode: int, duration: float, bus: float) -> None:
        """Add the mean bus power [W] of a stretch of samples in one mode, `duration` long [s]."""
        self._followed.setdefault(mode, RunningMean(TIME_CONSTANT)).update(duration, bus)

    def power(self, mode: int, braked: float) -> float:
        """Power in a mode [W].

        Args:
            mode: RTDE code.
            braked: with brakes engaged, where neither bus nor model tells [W].
        """
        followed = self._followed.get(mode)
        if followed is not None and followed.elapsed > 0:
            return followed.mean
        known = self._known.get(ROBOT_MODES.get(mode, ""))
        if known is not None:
            return known
        return 0.0 if mode <= POWER_OFF else braked


def mode_of(batch: Telemetry) -> int:
    """Robot mode of the last sample."""
    modes = batch.columns.get("robot_mode")
    return RUNNING if modes is None else int(modes[-1])
