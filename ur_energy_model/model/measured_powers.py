"""Powers from recorded speeds and currents, batch by batch.

What a single sample does not tell is kept from batch to batch: the speed of the sample before (the
currents' delay) and the energy that the bus holds.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.model.alignment import SpeedAlignment
from ur_energy_model.model.drive import Prediction
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.supply import SupplyStore

Array = NDArray[np.float64]


class MeasuredPowers:
    """Powers of an arm under a model, from what it measures of itself.

    Args:
        model: of the arm, n joints.
    """

    def __init__(self, model: EnergyModel) -> None:
        self.model = model
        self._aligned = SpeedAlignment(model.current_delay)
        self._store = SupplyStore(model.bus.storage, model.bus.floor)
        self._inductive = bool(model.bus.inductance.any())

    def __call__(
        self, time: Array, qd: Array, current: Array, *, temperature: Array | None = None,
        standby: float | None = None, std: bool = True,
    ) -> Prediction:  # fmt: skip
        """Powers of the samples that follow those of the last call.

        Args:
            time: [samples], s.
            qd: joint velocities as recorded [samples, n], rad/s.
            current: motor currents [samples, n], A.
            temperature: joint temperatures [n] or [samples, n], degC; None if unknown.
            standby: standby power in place of the model's [W].
            std: whether to work out the sensitivities that standard deviations need.
        """
        powers = self.model.joint_power(
            self._aligned(time, qd), current, temperature=temperature, standby=standby,
            current_rate=current_rate(time, current) if self._inductive else None, std=std,
        )  # fmt: skip
        return replace(powers, total_power=self._store(time, powers.demand))


def current_rate(time: Array, current: Array) -> Array:
    """dI/dt [samples, n], zero across gaps; for EcBot's inductive term."""
    if len(time) < 3:
        return np.zeros_like(current)
    rate = np.gradient(current, time, axis=0)
    steps = np.diff(time)
    far = np.concatenate([[False], (steps > 3 * np.median(steps)) | (steps <= 0)])
    rate[far | np.roll(far, -1)] = 0.0
    return np.asarray(rate)
