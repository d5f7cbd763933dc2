"""Samples that energy can be computed from: values that are finite and possible for the arm."""

from __future__ import annotations

import numpy as np

from ur_energy_model.energy.operating_conditions import PAYLOAD
from ur_energy_model.telemetry.plausibility import PlausibleRanges
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.typing import Array, Mask

ALWAYS: tuple[str, ...] = ("actual_qd", "joint_temperatures")
"""Fields whose values must be finite, where the source has them."""
MOTION: tuple[str, ...] = ("actual_q", "target_q", "target_qd", "target_qdd")
"""Fields whose values must be finite too where powers are computed from the motion."""
OPTIONAL: tuple[str, ...] = (
    "actual_robot_voltage",
    "actual_robot_current",
    "robot_mode",
    "safety_mode",
    *PAYLOAD,
    "speed_scaling",
    "target_speed_fraction",
)
"""Fields that a sample may lack: NaN stands for not measured."""


class UsableSamples:
    """Finds the samples whose values are finite and possible.

    Args:
        limits: of the arm; every field above has some.
        most_power: that the bus can show [W].
    """

    def __init__(self, limits: PlausibleRanges, most_power: float) -> None:
        self._limits, self._most_power = limits, most_power
        self._known: dict[tuple[tuple[str, int], ...], tuple[Array, Array]] = {}

    def __call__(self, batch: Telemetry, current: Array | None) -> Mask:
        """Usable samples [samples].

        Args:
            batch: any samples.
            current: motor currents [samples, n], A; None where powers are computed from the motion.
        """
        columns = batch.columns
        required: dict[str, Array] = {"timestamp": batch.time}
        names, optional = ALWAYS, OPTIONAL
        if current is None:
            names += MOTION
        else:
            required["actual_current"] = current
            optional += MOTION[:1]
        required |= {name: columns[name] for name in names if name in columns}
        values, low, high = self._side_by_side(required)
        good = ((values >= low) & (values <= high)).all(axis=1)
        told = {name: columns[name] for name in optional if name in columns}
        if told:
            values, low, high = self._side_by_side(told)
            good &= ~((values < low) | (values > high)).any(axis=1)  # NaN is neither
        if batch.has_bus_power:
            with np.errstate(over="ignore", invalid="ignore"):
                power = columns["actual_robot_voltage"] * columns["actual_robot_current"]
            good &= ~(np.abs(power) > self._most_power)
        return np.asarray(good)

    def _side_by_side(self, columns: dict[str, Array]) -> tuple[Array, Array, Array]:
        """Columns as one matrix [samples, values], and lowest and highest values [values]."""
        wide = [values if values.ndim == 2 else values[:, None] for values in columns.values()]
        key = tuple((name, part.shape[1]) for name, part in zip(columns, wide, strict=True))
        if key not in self._known:
            low, high = (
                np.concatenate(
                    [np.broadcast_to(self._limits[name][end], width) for name, width in key]
                )
                for end in (0, 1)
            )
            self._known[key] = (low, high)
        return np.concatenate(wide, axis=1), *self._known[key]
