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
        self._told: dict[tuple[bool, tuple[str, ...]], tuple[list[str], Array, Array]] = {}

    def __call__(self, batch: Telemetry, current: Array | None) -> Mask:
        """Usable samples [samples].

        Args:
            batch: any samples.
            current: motor currents [samples, n], A; None where powers are computed from the motion.
        """
        columns = batch.columns
        if self._all_told(batch, current):
            return np.ones(len(batch), dtype=bool)
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

    def _all_told(self, batch: Telemetry, current: Array | None) -> bool:
        """Whether all values are told and possible, the usual case; False for no certainty."""
        columns = batch.columns
        key = current is None, tuple(columns)
        if key not in self._told:
            used = (*ALWAYS, *OPTIONAL, *(MOTION if current is None else MOTION[:1]))
            names = [name for name in used if name in columns]
            widths = [1 if columns[name].ndim == 1 else columns[name].shape[1] for name in names]
            names, widths = ["timestamp", *names], [1, *widths]
            if current is not None:
                names, widths = [*names, "actual_current"], [*widths, current.shape[1]]
            limits = [
                np.concatenate(
                    [
                        np.broadcast_to(self._limits[n][k], w)
                        for n, w in zip(names, widths, strict=True)
                    ]
                )
                for k in (0, 1)
            ]
            self._told[key] = names[1 : len(names) - (current is not None)], limits[0], limits[1]
        names, low, high = self._told[key]
        count = len(batch)
        parts = [batch.time, *(columns[name] for name in names)]
        if current is not None:
            parts.append(current)
        values = np.concatenate([part.reshape(count, -1) for part in parts], axis=1)
        if not ((values >= low).all() and (values <= high).all()):  # NaN is neither
            return False
        if not batch.has_bus_power:
            return True
        power = columns["actual_robot_voltage"] * columns["actual_robot_current"]
        return bool(np.abs(power).max(initial=0.0) <= self._most_power)

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
