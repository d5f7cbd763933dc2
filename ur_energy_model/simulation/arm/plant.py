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
from typing import NamedTuple

import numba
import numpy as np
import pinocchio as pin

from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.setup import Setup
from ur_energy_model.simulation.arm.harmonic_drive import gear_energy, gear_twist, spring_torque
from ur_energy_model.simulation.arm.links import solid_links
from ur_energy_model.simulation.arm.parameters import ArmParameters, constants
from ur_energy_model.typing import Array

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
        self._drives = _Drives.of(parameters)
        self._time_constant = float(constants()["motor"]["current_time_constant"])
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
        self,
        dt: float,
        start: Array,
        end: Array,
        feed_forward: Array,
        gains: ServoGains,
        noise: Array | None = None,
    ) -> None:
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
        h = block / steps
        lag = 1.0 - math.exp(-h / self._time_constant)
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
                self.state,
                self.energy,
                steps,
                h,
                inverse,
                bias,
                first,
                last,
                feed_forward,
                gains.stiffness,
                gains.damping,
                self._drives,
                self._factor,
                lag,
                self.stopped,
            )

    def set_temperature(self, temperature: Array) -> None:
        """Let friction follow joint temperatures [n], degC: its share that grows with speed."""
        self._factor = self.parameters.friction_factor(temperature)

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


class _Drives(NamedTuple):
    """Constants of the drives as the kernel reads them, [n] unless said; see `ArmParameters`."""

    to_torque: Array
    resistance: Array
    inertia: Array
    max_current: Array
    stiffness: Array  # [n, 3]
    knees: Array  # [n, 2]
    damping: Array
    coulomb: Array  # forwards and backwards [2, n], as the next three
    rise: Array
    pace: Array
    viscous: Array
    breakaway: Array
    stribeck_speed: Array
    load_direct: Array
    load_reverse: Array
    flex_coulomb: Array
    flex_viscous: Array

    @classmethod
    def of(cls, p: ArmParameters) -> _Drives:
        """From the parameters of an arm."""
        curve = p.friction
        return cls(
            p.current_to_torque,
            p.effective_resistance,
            p.rotor_inertia,
            p.max_current,
            p.stiffness,
            p.knees,
            p.damping,
            curve.coulomb,
            curve.rise,
            curve.pace,
            curve.viscous,
            curve.breakaway,
            curve.stribeck_speed,
            p.load_direct,
            p.load_reverse,
            p.flex_spline_coulomb,
            p.flex_spline_viscous,
        )


@numba.njit(cache=True)
def _friction(
    drives: _Drives, j: int, factor: float, speed: float, ahead: float, transmitted: float
) -> float:
    """Rotor friction [N m, not negative] of joint `j`, as it goes on at speed `ahead`."""
    way = 0 if ahead >= 0.0 else 1
    pace = abs(speed)
    dip = math.exp(-((pace / drives.stribeck_speed[j]) ** 2))
    moving = (
        drives.rise[way, j] * (1.0 - math.exp(-pace / drives.pace[way, j]))
        + drives.viscous[way, j] * pace
    )
    share = drives.load_direct[j] if transmitted * ahead >= 0.0 else drives.load_reverse[j]
    level = drives.coulomb[way, j] * (1.0 + (drives.breakaway[j] - 1.0) * dip)
    return float(level + factor * moving + share * abs(transmitted))


@numba.njit(cache=True)
def _advance(
    state: Array,
    energy: Array,
    steps: int,
    h: float,
    inverse: Array,
    bias: Array,
    first: Array,
    last: Array,
    feed_forward: Array,
    stiffness: Array,
    damping: Array,
    drives: _Drives,
    factor: Array,
    lag: float,
    stopped: bool,
) -> None:
    """`steps` steps of length `h`; symplectic Euler, friction implicit."""
    n = state.shape[1]
    load = np.empty(n)
    for k in range(steps):
        share = (k + 0.5) / steps
        for j in range(n):
            q, qd, rotor, speed, current = (
                state[0, j],
                state[1, j],
                state[2, j],
                state[3, j],
                state[4, j],
            )
            to_torque, inertia = drives.to_torque[j], drives.inertia[j]
            # Drive: servo and current loop.
            wanted = 0.0
            if not stopped:
                error = first[0, j] + share * (last[0, j] - first[0, j]) - rotor
                slip = first[1, j] + share * (last[1, j] - first[1, j]) - speed
                wanted = (feed_forward[j] + stiffness[j] * error + damping[j] * slip) / to_torque
                wanted = min(max(wanted, -drives.max_current[j]), drives.max_current[j])
            current += lag * (wanted - current)
            # Gear.
            k1, k2, k3 = drives.stiffness[j, 0], drives.stiffness[j, 1], drives.stiffness[j, 2]
            elastic = spring_torque(rotor - q, k1, k2, k3, drives.knees[j, 0], drives.knees[j, 1])
            lossy = drives.damping[j] * (speed - qd)
            transmitted = elastic + lossy
            # Rotor, with its friction solved for the end of the step.
            free = speed + h / inertia * (to_torque * current - transmitted)
            level = _friction(drives, j, factor[j], speed, free, transmitted)
            most = inertia * abs(free) / h
            if stopped or level >= most:
                level = most
            friction = math.copysign(level, free)
            new_speed = free - h / inertia * friction if level < most else 0.0
            mean = 0.5 * (speed + new_speed)
            state[2, j] = rotor + h * new_speed
            state[3, j] = new_speed
            state[4, j] = current
            load[j] = transmitted - bias[j]
            energy[0, j] += h * to_torque * current * mean
            energy[1, j] += h * drives.resistance[j] * current * current
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
            level = drives.flex_coulomb[j] + drives.flex_viscous[j] * abs(before)
            impulse = math.copysign(min(h * level, abs(before) / inverse[j, j]), before)
            for i in range(n):
                state[1, i] -= inverse[i, j] * impulse
            energy[2, j] += impulse * 0.5 * (before + state[1, j])
        for i in range(n):
            state[0, i] += h * state[1, i]
