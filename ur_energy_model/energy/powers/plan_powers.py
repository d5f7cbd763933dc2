"""Powers of planned motions, one after the other: friction and bus capacitor keep their state."""

from __future__ import annotations

import numpy as np

from ur_energy_model.energy.powers.bus_capacitor import BusCapacitor
from ur_energy_model.model.drive_powers import DrivePowers
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.friction.presliding import FrictionDirection
from ur_energy_model.trajectory.plan import SHORTEST_STEP, Motion
from ur_energy_model.typing import Array


class PlanPowers:
    """Computes the powers of consecutive motions of one arm.

    Args:
        model: of the arm, n joints.
        temperature: of the joints [n], degC; None if unknown.
        std: compute the sensitivities, which standard deviations need.
    """

    def __init__(
        self, model: EnergyModel, temperature: Array | None = None, *, std: bool = True
    ) -> None:
        self.model, self.temperature, self.std = model, temperature, std
        self._direction = FrictionDirection(model.presliding)
        self._supply = BusCapacitor(model.bus.capacitor_energy, model.bus.floor)
        self._last = 0.0

    def restarted(self, *, std: bool) -> PlanPowers:
        """The same state of the arm at time zero, with or without sensitivities."""
        out = PlanPowers(self.model, self.temperature, std=std)
        out._direction, out._supply = self._direction, self._supply
        return out

    def __call__(self, motion: Motion, dynamics: ArmDynamics) -> tuple[DrivePowers, Array]:
        """Powers of the motors, and power at the supply [samples], W.

        Args:
            motion: follows that of the last call; its time counts on.
            dynamics: of the arm with its payload.
        """
        split = self.model.from_link_torque(
            dynamics.inverse_dynamics(motion.q, motion.qd, motion.qdd),
            motion.qd,
            motion.qdd,
            temperature=self.temperature,
            direction=self._direction(motion.q, motion.qd),
            std=self.std,
        )
        steps = np.diff(motion.time, prepend=self._last)
        total = self._supply(np.maximum(steps, SHORTEST_STEP), split.demand)
        self._last = float(motion.time[-1])
        return split, total
