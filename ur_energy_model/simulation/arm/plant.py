"""Mechanics of the simulated arm: motors behind strain-wave gears, links as rigid bodies.

Every joint has a motor side and a link side (Battistini et al.), both in joint-side units: rotor
angle and speed are motor angle and speed over the gear ratio. They are connected by a spring of
piecewise constant stiffness K1, K2, K3 with knees at T1, T2 and by a damper. Rotor friction follows
the joint's calibration, with breakaway friction at low speed (Stribeck), a load-dependent part that
differs between driving and back-driving, and a temperature-dependent part. The flex spline adds
friction on the link side.

Pinocchio computes the inverse mass matrix and bias torques of the links once per block of at most
2 ms, at its midpoint; within the block the stiff drives are integrated in steps of at most 0.1 ms
(`drive_integration`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.setup import Setup
from ur_energy_model.simulation.arm.drive_integration import (
    CURRENT,
    QD,
    ROTOR,
    ROTOR_SPEED,
    DriveConstants,
    IntegrationSteps,
    Links,
    Q,
    Servo,
    advance_drives,
)
from ur_energy_model.simulation.arm.harmonic_drive import gear_energy, gear_twist
from ur_energy_model.simulation.arm.links import solid_links
from ur_energy_model.simulation.arm.parameters import ArmParameters, constants
from ur_energy_model.typing import Array

BLOCK = 2e-3
"""Longest time between two evaluations of the links' dynamics [s]."""
STEP = 1e-4
"""Longest step of the drives [s]."""


@dataclass(frozen=True)
class ServoGains:
    """Gains of the position loop of the drives, arrays [n].

    Attributes:
        stiffness: N m/rad, joint side.
        damping: N m s/rad, joint side.
    """

    stiffness: Array
    damping: Array


class Plant:
    """Mechanics and drives of one arm.

    Args:
        robot: the arm, n joints.
        parameters: its true constants.
        setup: true mounting and payload.
        q: joint positions at rest [n], rad.

    Attributes:
        state: link position and speed, rotor position and speed, motor current [5, n].
        energy: sums since the start [5, n]: motor work k_t i w [J], copper loss [J], friction
            loss [J], loss in the gear dampers [J], and integral of |i| [A s].
        stopped: True while the brakes are closed: rotors stand still and currents decay.
    """

    def __init__(
        self, robot: RobotDescription, parameters: ArmParameters, setup: Setup, q: Array
    ) -> None:
        self.parameters = parameters
        self.set_temperature(np.full(robot.dof, parameters.calibration_temperature))
        self.stopped = False
        self.energy = np.zeros((5, robot.dof))
        self.state = np.zeros((5, robot.dof))
        self.set_setup(robot, setup)
        self._time_constant = float(constants()["motor"]["current_time_constant"])
        ripple = np.sqrt(parameters.current_noise_moving**2 - parameters.current_noise_rest**2)
        self._torque_ripple = ripple * parameters.current_to_torque
        self._ripple_speed = float(constants()["sensors"]["current_noise_speed"])
        gravity = pin.computeGeneralizedGravity(self._model, self._data, np.asarray(q, float))
        twist = gear_twist(gravity, parameters.stiffness, parameters.knees)
        self.state[Q], self.state[ROTOR] = q, q + twist
        self.state[CURRENT] = gravity / parameters.current_to_torque
        self.step = min(STEP, 0.5 / self._highest_frequency())

    def set_setup(self, robot: RobotDescription, setup: Setup) -> None:
        """Change mounting or payload."""
        self.dynamics = ArmDynamics(solid_links(robot), setup)
        self._model, self._data = self.dynamics.model, self.dynamics.data

    def advance(
        self,
        dt: float,
        start: Array,
        end: Array,
        feed_forward: Array,
        gains: ServoGains,
        noise: Array | None = None,
    ) -> None:
        """Advance by `dt` under the servo of the drives.

        Args:
            dt: s.
            start: reference [2, n] at the beginning: rotor position, rad, and speed, rad/s.
            end: reference at the end; linear in between.
            feed_forward: torque [n] added to that of the servo, joint side, N m.
            gains: of the servo.
            noise: standard normal numbers [n] for the torque ripple in motion; None for none.
        """
        blocks = max(1, math.ceil(dt / BLOCK - 1e-9))
        block = dt / blocks
        steps = max(1, math.ceil(block / self.step - 1e-9))
        h = block / steps
        lag = 1.0 - math.exp(-h / self._time_constant)
        timing = IntegrationSteps(steps, h, lag)
        if noise is not None:
            moving = 1.0 - np.exp(-np.abs(self.state[QD]) / self._ripple_speed)
            feed_forward = feed_forward + self._torque_ripple * moving * noise
        for k in range(blocks):
            middle = self.state[Q] + 0.5 * block * self.state[QD]
            bias = pin.nonLinearEffects(self._model, self._data, middle, self.state[QD])
            inverse = np.ascontiguousarray(pin.computeMinverse(self._model, self._data, middle))
            first = start + (end - start) * (k / blocks)
            last = start + (end - start) * ((k + 1) / blocks)
            advance_drives(
                self.state,
                self.energy,
                timing,
                Links(inverse, bias),
                Servo(first, last, feed_forward, gains.stiffness, gains.damping),
                self._drives,
                self.stopped,
            )

    def set_temperature(self, temperature: Array) -> None:
        """Adapt the friction to joint temperatures [n], degC."""
        self._drives = DriveConstants.from_parameters(self.parameters, temperature)

    def stored_energy(self) -> float:
        """Kinetic, potential and elastic energy of links, rotors and gears [J]."""
        q, qd = self.state[Q], self.state[QD]
        pin.computeAllTerms(self._model, self._data, q, qd)
        links = pin.computeKineticEnergy(self._model, self._data) + pin.computePotentialEnergy(
            self._model, self._data
        )
        rotors = 0.5 * float(self.parameters.rotor_inertia @ self.state[ROTOR_SPEED] ** 2)
        twist = self.state[ROTOR] - q
        springs = gear_energy(twist, self.parameters.stiffness, self.parameters.knees).sum()
        return float(links + rotors + springs)

    def _highest_frequency(self) -> float:
        """Estimate of the highest natural frequency of the drives [rad/s]."""
        random = np.random.default_rng(0)
        highest = 0.0
        for q in random.uniform(-np.pi, np.pi, (20, self.state.shape[1])):
            inverse = np.diag(pin.computeMinverse(self._model, self._data, q))
            stiffest = self.parameters.stiffness[:, 2]
            frequency = np.sqrt(stiffest * (inverse + 1.0 / self.parameters.rotor_inertia))
            highest = max(highest, float(frequency.max()))
        return highest
