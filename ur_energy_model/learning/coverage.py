"""What work has shown of an arm: speeds of each joint, temperatures, standstill with bus power."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ur_energy_model.energy.arm_state import ArmState, arm_states
from ur_energy_model.identification.regression.filtered_motion import merged_ranges
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.typing import Array

SPEED_EDGES = np.array(
    [0.02, 0.05, 0.1, 0.2, 0.4, 0.7, 1.0, 1.4, 1.8, 2.2, 2.7, 3.3, 4.0, 5.0, 7.0]
)
"""Bounds of the counted speed ranges [rad/s], about even in their effect on friction."""
_LONGEST_STEP = 0.5


class Coverage:
    """Sums over all work of an arm with n joints, in constant memory.

    Args:
        joints: n.

    Attributes:
        speed_seconds: motion in each range between SPEED_EDGES [n, ranges], s.
        temperature: lowest and highest of each joint in motion [n, 2], degC; NaN where unknown.
        bus_seconds: time with measured bus power [s].
        still_seconds: standstill with measured bus power, brakes released [s].
    """

    def __init__(self, joints: int) -> None:
        self.speed_seconds = np.zeros((joints, len(SPEED_EDGES) - 1))
        self.temperature = np.full((joints, 2), np.nan)
        self.bus_seconds = self.still_seconds = 0.0

    def observe(self, window: Telemetry) -> None:
        """Use samples; those with unknown speeds are left out."""
        if "actual_qd" not in window or len(window) < 2:
            return
        speed = np.abs(window["actual_qd"])
        steps = np.clip(np.diff(window.time, prepend=window.time[:1]), 0.0, _LONGEST_STEP)
        ranges = np.digitize(np.nan_to_num(speed), SPEED_EDGES) - 1
        for joint, places in enumerate(ranges.T):
            inside = (places >= 0) & (places < self.speed_seconds.shape[1])
            self.speed_seconds[joint] += np.bincount(
                places[inside], steps[inside], self.speed_seconds.shape[1]
            )
        if "joint_temperatures" in window:
            moving = speed > SPEED_EDGES[1]
            shown = np.where(moving, window["joint_temperatures"], np.nan)
            low, high = np.fmin.reduce(shown), np.fmax.reduce(shown)
            self.temperature = merged_ranges(self.temperature, np.stack([low, high], axis=1))
        bus = window.bus_power
        if bus is not None:
            known = np.isfinite(bus)
            still = arm_states(window, window["actual_qd"]) == ArmState.STANDSTILL
            self.bus_seconds += float(steps[known].sum())
            self.still_seconds += float(steps[known & still].sum())

    def state(self) -> dict[str, Array]:
        """Everything needed to continue."""
        return {
            "speed_seconds": self.speed_seconds,
            "temperature": self.temperature,
            "seconds": np.array([self.bus_seconds, self.still_seconds]),
        }

    def restore(self, state: Mapping[str, Array]) -> None:
        """Continue from `state`.

        Raises:
            ValueError: it is of another number of joints.
            KeyError: a part is missing.
        """
        speed, temperature = np.array(state["speed_seconds"]), np.array(state["temperature"])
        same = speed.shape == self.speed_seconds.shape
        if not same or temperature.shape != self.temperature.shape:
            raise ValueError("coverage of another arm")
        self.speed_seconds, self.temperature = speed, temperature
        self.bus_seconds, self.still_seconds = np.asarray(state["seconds"], float).tolist()
