"""The mechanics of the simulated arm: motors behind strain-wave gears, links as rigid bodies.

Every joint has a motor side and a link side (Battistini et al.), both told in joint-side units:
rotor angle and speed are motor angle and speed over the gear ratio. Between them is a spring of
piecewise constant stiffness K1, K2, K3 with knees at T1, T2 and a damper. Friction: on the rotor
what the joint's calibration shows, with a static excess at creeping speed (Stribeck), a share of
the transmitted torque that depends on the direction of power, and the motor's temperature; on the
link side that of the flex spline.

The links' inverse mass matrix and bias torques come from pinocchio once per block of at most
2 ms, at the block's middle; within it the stiff drive runs in steps of at most 0.1 ms, compiled.
Friction is taken implicitly (the set-valued Coulomb law solved for the end of the step, on the
link side joint after joint), so that joints stick at rest without creeping and friction never
adds energy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numba
import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.setup import Setup
from ur_energy_model.simulation.harmonic_drive import gear_energy, gear_twist, spring_torque
from ur_energy_model.simulation.links import solid_links
from ur_energy_model.simulation.parameters import ArmParameters, constants

Array = NDArray[np.float64]

BLOCK = 2e-3
"""Longest time between two evaluations of the links' dynamics [s]."""
STEP = 1e-4
"""Longest step of the drives [s]."""

Q, QD, ROTOR, ROTOR_SPEED, CURRENT = range(5)
"""Rows of the plant's state [5, n]."""
SHAFT, COPPER, FRICTION, GEAR, ABS_CURRENT = range(5)
"""Rows of what the kernel sums up [5, n]: J, J, J, J and A s."""


@dataclass(frozen=True)
class ServoGains:
    """The drives' position loop, arrays [n].

    Attributes:
        stiffness: N m/rad, joint side.
        damping: N m s/rad, joint side.
    """

    stiffness: Array
    damping: Array


class Plant:
    """State and motion of one arm's mechanics and drives.

    Args:
        robot: the arm, n joints.
        parameters: its true constants.
        setup: its mounting and what it carries, as they are.
        q: joint positions at rest [n], rad.

    Attributes:
        state: link position and speed, rotor position and speed, motor current [5, n].
        energy: sums since the start [5, n]: work of the motors k_t i w [J], copper loss [J],
            friction heat [J], loss in the gears' dampers [J], and integral of |i| [A s].
        stopped: True while the brakes hold: rotors do not move and currents decay.
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
        self._constants = _kernel_constants(parameters)
        unrest = np.sqrt(parameters.current_noise_moving**2 - parameters.current_noise_rest**2)
        self._unrest = unrest * parameters.current_to_torque
        self._unrest_speed = float(constants()["sensors"]["current_noise_speed"])
        gravity = pin.computeGeneralizedGravity(self._model, self._data, np.asarray(q, float))
        hanging = gear_twist(gravity, parameters.stiffness, parameters.knees)
        self.state[Q], self.state[ROTOR] = q, q + hanging
        self.state[CURRENT] = gravity / parameters.current_to_torque
        self.step = min(STEP, 0.5 / self._fastest())

    def set_setup(self, robot: RobotDescription, setup: Setup) -> None:
        """Change mounting or payload."""
        self.dynamics = ArmDynamics(solid_links(robot), setup)
        self._model, self._data = self.dynamics.model, self.dynamics.data

    def advance(
        self, dt: float, start: Array, end: Array, feed_forward: Array,
        gains: ServoGains, noise: Array | None = None,
    ) -> None:  # fmt: skip
        """Move on by `dt` under the drives' servo.

        Args:
            dt: s.
            start: reference [2, n] at the beginning: rotor position, rad, and speed, rad/s.
            end: the same at the end; in between it is interpolated.
            feed_forward: torque [n] of the drives beside their servo, joint side, N m.
            gains: of the servo.
            noise: standard normal numbers [n] of the drives' own unrest in motion; None for none.
        """
        blocks = max(1, math.ceil(dt / BLOCK - 1e-9))
        block = dt / blocks
        steps = max(1, math.ceil(block / self.step - 1e-9))
        if noise is not None:
            moving = 1.0 - np.exp(-np.abs(self.state[QD]) / self._unrest_speed)
            feed_forward = feed_forward + self._unrest * moving * noise
        for k in range(blocks):
            middle = self.state[Q] + 0.5 * block * self.state[QD]
            bias = pin.nonLinearEffects(self._model, self._data, middle, self.state[QD])
            inverse = np.ascontiguousarray(
                pin.computeMinverse(self._model, self._data, middle)
            )  # symmetric, all of it filled
            first = start + (end - start) * (k / blocks)
            last = start + (end - start) * ((k + 1) / blocks)
            _advance(
                self.state, self.energy, steps, block / steps, inverse, bias, first, last,
                feed_forward, gains.stiffness, gains.damping, self._constants, self._factor,
                self.stopped,
            )  # fmt: skip

    def set_temperature(self, temperature: Array) -> None:
        """Let friction follow joint temperatures [n], degC: its share that grows with speed."""
        a, b, c, d = self.parameters.temperature_model.T
        reference = self.parameters.calibration_temperature

        def model(t: Array | float) -> Array:
            return np.asarray(a * np.exp(b * t) + c * np.exp(d * t))

        self._factor = model(temperature) / model(reference)

    def stored_energy(self) -> float:
        """Kinetic energy of links and rotors, potential energy, energy of the springs [J]."""
        q, qd = self.state[Q], self.state[QD]
        pin.computeAllTerms(self._model, self._data, q, qd)
        links = pin.computeKineticEnergy(self._model, self._data) + pin.computePotentialEnergy(
            self._model, self._data
        )
        rotors = 0.5 * float(self.parameters.rotor_inertia @ self.state[ROTOR_SPEED] ** 2)
        twist = self.state[ROTOR] - q
        springs = gear_energy(twist, self.parameters.stiffness, self.parameters.knees).sum()
        return float(links + rotors + springs)

    def _fastest(self) -> float:
        """Upper estimate of the drives' highest natural frequency [rad/s]."""
        random = np.random.default_rng(0)
        fastest = 0.0
        for q in random.uniform(-np.pi, np.pi, (20, self.state.shape[1])):
            inverse = np.diag(pin.computeMinverse(self._model, self._data, q))
            stiffest = self.parameters.stiffness[:, 2]
            frequency = np.sqrt(stiffest * (inverse + 1.0 / self.parameters.rotor_inertia))
            fastest = max(fastest, float(frequency.max()))
        return fastest


def _kernel_constants(parameters: ArmParameters) -> Array:
    """Constants in the rows `_advance` reads [24, n]."""
    n = len(parameters.gear_ratio)
    friction = parameters.friction
    decay = np.full(n, constants()["motor"]["current_time_constant"])
    return np.ascontiguousarray(
        np.stack(
            [
                parameters.current_to_torque, parameters.effective_resistance,
                parameters.rotor_inertia, parameters.max_current, decay,
                *parameters.stiffness.T, *parameters.knees.T, parameters.damping,
                *friction.coulomb, *friction.slope, *friction.power, friction.viscous,
                friction.breakaway, friction.stribeck_speed,
                parameters.load_direct, parameters.load_reverse,
                parameters.flex_spline_coulomb, parameters.flex_spline_viscous,
            ]
        )
    )  # fmt: skip


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _advance(
    state: Array, energy: Array, steps: int, h: float, inverse: Array, bias: Array, first: Array,
    last: Array, feed_forward: Array, stiffness: Array, damping: Array, constants: Array,
    factor: Array, stopped: bool,
) -> None:  # fmt: skip
    """`steps` steps of length `h`; symplectic Euler, rotor friction implicit."""
    n = state.shape[1]
    load = np.empty(n)
    for k in range(steps):
        share = (k + 0.5) / steps
        for j in range(n):
            (
                to_torque, resistance, inertia, max_current, decay, k1, k2, k3, t1, t2, gear_loss,
                coulomb_f, coulomb_b, slope_f, slope_b, power_f, power_b, viscous, breakaway,
                stribeck, load_direct, load_reverse,
            ) = (
                constants[0, j], constants[1, j], constants[2, j], constants[3, j],
                constants[4, j], constants[5, j], constants[6, j], constants[7, j],
                constants[8, j], constants[9, j], constants[10, j], constants[11, j],
                constants[12, j], constants[13, j], constants[14, j], constants[15, j],
                constants[16, j], constants[17, j], constants[18, j], constants[19, j],
                constants[20, j], constants[21, j],
            )  # fmt: skip
            q, qd, rotor, speed, current = (
                state[0, j], state[1, j], state[2, j], state[3, j], state[4, j]
            )  # fmt: skip
            # Drive: servo and current loop.
            if stopped:
                wanted = 0.0
            else:
                error = first[0, j] + share * (last[0, j] - first[0, j]) - rotor
                slip = first[1, j] + share * (last[1, j] - first[1, j]) - speed
                wanted = (feed_forward[j] + stiffness[j] * error + damping[j] * slip) / to_torque
                wanted = min(max(wanted, -max_current), max_current)
            current += (1.0 - math.exp(-h / decay)) * (wanted - current)
            # Gear.
            elastic = spring_torque(rotor - q, k1, k2, k3, t1, t2)
            lossy = gear_loss * (speed - qd)
            transmitted = elastic + lossy
            # Rotor, with its friction solved for the end of the step.
            free = speed + h / inertia * (to_torque * current - transmitted)
            pace = abs(speed)
            if free >= 0.0:
                coulomb, slope, power = coulomb_f, slope_f, power_f
            else:
                coulomb, slope, power = coulomb_b, slope_b, power_b
            excess = 1.0 + (breakaway - 1.0) * math.exp(-((pace / stribeck) ** 2))
            driving = transmitted * free >= 0.0
            level = (
                coulomb * excess
                + factor[j] * (slope * pace**power + viscous * pace)
                + (load_direct if driving else load_reverse) * abs(transmitted)
            )
            most = inertia * abs(free) / h
            if stopped or level >= most:
                new_speed = 0.0
                friction = math.copysign(most, free)
            else:
                friction = math.copysign(level, free)
                new_speed = free - h / inertia * friction
            mean = 0.5 * (speed + new_speed)
            state[2, j] = rotor + h * new_speed
            state[3, j] = new_speed
            state[4, j] = current
            load[j] = transmitted - bias[j]
            energy[0, j] += h * to_torque * current * mean
            energy[1, j] += h * resistance * current * current
            energy[2, j] += h * friction * mean
            energy[3, j] += h * lossy * (speed - qd)
            energy[4, j] += h * abs(current)
        for i in range(n):
            acceleration = 0.0
            for j in range(n):
                acceleration += inverse[i, j] * load[j]
            state[1, i] += h * acceleration
        # Flex splines, one after the other: each takes the momentum that its friction can.
        for j in range(n):
            before = state[1, j]
            level = constants[22, j] + constants[23, j] * abs(before)
            impulse = math.copysign(min(h * level, abs(before) / inverse[j, j]), before)
            for i in range(n):
                state[1, i] -= inverse[i, j] * impulse
            energy[2, j] += impulse * 0.5 * (before + state[1, j])
        for i in range(n):
            state[0, i] += h * state[1, i]
