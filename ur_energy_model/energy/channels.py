"""Layout of the power matrix that the calculator computes and meters integrate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ur_energy_model.energy.arm_state import ArmState
from ur_energy_model.energy.meter import MeterReading
from ur_energy_model.typing import Array

QUANTITIES: tuple[str, ...] = (
    "electrical_power",
    "mechanical_power",
    "copper_loss",
    "friction_loss",
)
"""Of each joint, W."""

ARM: tuple[str, ...] = ("total", "standby", "driver", "regeneration", "bus")
"""Of the whole arm, W; bus is the measured power. The total is the sum of the joints' electrical
power, standby, driver and regeneration. Regeneration is what the supply cannot take back: positive
while the bus capacitor stores it or the braking resistor burns it, negative while the capacitor
feeds the arm."""


class Channels:
    """Columns of the power matrix [samples, channels] of an arm with n joints.

    In this order: every quantity of every joint; those of the arm; the total power by state; the
    number 1 by state, whose integral is the time in that state; the sensitivities of the powers to
    the model's parameter errors, whose integrals give the standard deviations of the energies.

    Args:
        joints: n joint names.
        errors: number of independent parameter errors of a joint's power, and of the total.
    """

    def __init__(self, joints: Sequence[str], errors: tuple[int, int] = (0, 0)) -> None:
        self.joints = tuple(joints)
        n = len(self.joints)
        self.names: tuple[str, ...] = (
            *(f"{joint}/{quantity}" for quantity in QUANTITIES for joint in self.joints),
            *ARM,
            *(f"energy_{state.name.lower()}" for state in ArmState),
            *(f"time_{state.name.lower()}" for state in ArmState),
            *(f"{joint}/error_{k}" for joint in self.joints for k in range(errors[0])),
            *(f"total/error_{k}" for k in range(errors[1])),
        )
        self.errors = errors
        self.per_joint = {name: slice(i * n, (i + 1) * n) for i, name in enumerate(QUANTITIES)}
        """Columns of each joint quantity."""
        arm = n * len(QUANTITIES)
        self.arm = {name: arm + i for i, name in enumerate(ARM)}
        """Column of each quantity of the whole arm."""
        self.state_energy = arm + len(ARM)
        """First of the columns of total power by state."""
        self.state_time = self.state_energy + len(ArmState)
        """First of the columns of time by state."""
        self.sensitivity = self.state_time + len(ArmState)
        """First of the columns of sensitivities: those of the joints, then those of the total."""

    @property
    def shared_errors(self) -> slice:
        """Columns of the sensitivities of the total to the model's errors, without standby's."""
        return slice(len(self) - self.errors[1], len(self) - 1)

    def deviations(self, net: Array) -> tuple[Array, float]:
        """Standard deviations from integrals (or means) of the channels [channels].

        Returns:
            those of the joints' electrical energies [n] and of the total energy, J (or W).
        """
        n, (each, _) = len(self.joints), self.errors
        errors = net[self.sensitivity :]
        joints = np.linalg.norm(errors[: n * each].reshape(n, each), axis=1)
        return joints, float(np.linalg.norm(errors[n * each :]))

    def deviations_of_total(self, power: Array) -> Array:
        """Standard deviation of the total power at each sample [samples], W.

        Args:
            power: of every channel [samples, channels], W.
        """
        start = self.sensitivity + len(self.joints) * self.errors[0]
        return np.asarray(np.linalg.norm(power[:, start:], axis=1))

    def deviation_of_standby(self, net: Array) -> float:
        """Standard deviation of the standby energy, J (or W): the last error of the total."""
        return abs(float(net[-1])) if self.errors[1] else float("nan")

    def deviation_of_joints(self, net: Array) -> float:
        """Standard deviation of the sum of all joints' electrical energies, J (or W).

        Errors of the drives are common to the joints and add up.
        """
        n, (each, _) = len(self.joints), self.errors
        errors = net[self.sensitivity : self.sensitivity + n * each].reshape(n, each)
        return float(np.linalg.norm(errors.sum(axis=0)))

    def by_state(self, net: Array, first: int) -> dict[ArmState, float]:
        """Values of the columns by state from `first` on (state_energy or state_time)."""
        return {state: float(net[first + state]) for state in ArmState}

    def convert(self, reading: MeterReading, names: Sequence[str]) -> MeterReading:
        """A reading of other channels `names` for these channels; see `convert_values`."""
        net, consumed = (
            self.convert_values(values, names) for values in (reading.net, reading.consumed)
        )
        if "regeneration" not in names:
            column = self.arm["regeneration"]
            consumed[column] = max(float(net[column]), 0.0)
        return replace(reading, net=net, consumed=consumed)

    def convert_values(self, values: Array, names: Sequence[str]) -> Array:
        """Values of other channels `names` for these channels; new ones are zero.

        Earlier versions did not count regeneration: it is what the other parts lack of the total.
        """
        if tuple(names) == self.names:
            return values
        old = dict(zip(names, values.tolist(), strict=True))
        new = np.array([old.get(name, 0.0) for name in self.names])
        if "regeneration" not in old:
            new[self.arm["regeneration"]] = new[self.arm["total"]] - self.sum_of_parts(new)
        return new

    def sum_of_parts(self, values: Array) -> Array:
        """Sum of the joints' electrical values, standby, driver and regeneration [...].

        Args:
            values: of every channel [..., channels].
        """
        parts = [self.arm[name] for name in ("standby", "driver", "regeneration")]
        joints = values[..., self.per_joint["electrical_power"]].sum(axis=-1)
        return np.asarray(joints + values[..., parts].sum(axis=-1))

    def __len__(self) -> int:
        return len(self.names)
