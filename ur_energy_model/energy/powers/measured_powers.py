"""Powers of motors and drivers from measured speeds and currents, batch by batch."""

from __future__ import annotations

import numpy as np

from ur_energy_model.energy.powers.speed_alignment import SpeedAlignment, rate_of_change
from ur_energy_model.model.drive_powers import DrivePowers
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.typing import Array


class MeasuredPowers:
    """Powers of an arm from its measured speeds and currents.

    Keeps the last speed, for the delay of the currents, and the last current, for EcBot's inductive
    term.

    Args:
        model: of the arm, n joints.
    """

    def __init__(self, model: EnergyModel) -> None:
        self.model = model
        self._aligned = SpeedAlignment(model.current_delay)
        self._inductive = bool(model.bus.inductance.any())
        self._last_current: Array | None = None

    def __call__(
        self, steps: Array, qd: Array, current: Array, temperature: Array | None = None
    ) -> DrivePowers:
        """Powers of the samples that follow those of the last call, without sensitivities.

        Args:
            steps: bridged steps to the samples (`Steps.bridged`) [samples], s.
            qd: joint velocities as recorded [samples, n], rad/s.
            current: motor currents [samples, n], A.
            temperature: joint temperatures [n] or [samples, n], degC; None if unknown.

        Returns:
            Powers with the model's standby; `demand` is the arm's demand on the supply.
        """
        rate = None
        if self._inductive and len(current):
            before = current[:1] if self._last_current is None else self._last_current[None]
            rate = rate_of_change(steps, np.diff(current, axis=0, prepend=before))
            self._last_current = current[-1]
        return self.model.joint_power(
            self._aligned(steps, qd),
            current,
            temperature=temperature,
            current_rate=rate,
            std=False,
        )

    def sensitivities(
        self, qd: Array, current: Array, temperature: Array | None = None
    ) -> DrivePowers:
        """Powers at single samples with sensitivities; ignores the delay of the currents.

        Args:
            qd: joint velocities as recorded [samples, n], rad/s.
            current: motor currents [samples, n], A.
            temperature: joint temperatures [n] or [samples, n], degC; None if unknown.
        """
        return self.model.joint_power(qd, current, temperature=temperature)
