# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Mechanics of the simulated arm: motors behind strain-wave gears, links as rigid bodies.

Every joint has a motor side and a link side (Battistini et al.), both in joint-side
units: rotor angle and speed are motor angle and speed over the gear ratio. They are
connected by a spring of piecewise constant stiffness K1, K2, K3 with knees at T1, T2 and
by a damper. Rotor friction follows the joint's calibration, with breakaway friction at
low speed (Stribeck), a load-dependent part that differs between driving and back-driving,
and a temperature-dependent part. The flex spline adds friction on the link side.

Pinocchio computes the inverse mass matrix and bias torques of the links once per block of
at most 2 ms, at its midpoint; within the block the stiff drives are integrated in steps
of at most 0.1 ms (`drive_integration`).
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numba
import numpy as np
import pinocchio as pin

from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.setup import Setup
from ur_energy_model.simulation.arm_constants import constants
from ur_energy_model.simulation.parameters import ArmParameters
from ur_energy_model.typing import Array

DENSITY = 1500.0
"""Assumed mean density of a link, a tube with two joints [kg/m^3]."""
SHORTEST = 0.05  # assumed smallest length of a link [m]


def solid_links(robot: RobotDescription) -> RobotDescription:
    """The arm with physically possible inertia tensors.

    Links without a published tensor (zero, or not positive definite) become solid
    cylinders along the line between their two joints, as in Clochiatti et al. 2024 (Table
    III); the radius follows from mass and density. Masses and centres of mass stay.

    Args:
        robot: the arm as its robot file describes it.
    """
    inertia = robot.inertia.copy()
    for link, mass in enumerate(robot.mass):
        if mass > 0 and np.linalg.eigvalsh(inertia[link])[0] < 1e-9:
            inertia[link] = cylinder(float(mass), _between_joints(robot, link))
    return replace(robot, inertia=inertia)


def _between_joints(robot: RobotDescription, link: int) -> Array:
    """Vector between the two joints of a link in its DH frame [3], m."""
    d = robot.d[link]
    a = robot.a[link]
    if robot.convention == "standard":
        alpha = robot.alpha[link]
        return np.array([a, d * np.sin(alpha), d * np.cos(alpha)])
    if d:
        return np.array([0.0, 0.0, d])
    return np.array([a, 0.0, 0.0])


def cylinder(mass: float, axis: Array) -> Array:
    """Inertia tensor [3, 3], kg m^2, about the centre of a solid cylinder.

    Args:
        mass: mass of the cylinder [kg].
        axis: vector from end to end [3], m.
    """
    length = max(float(np.linalg.norm(axis)), SHORTEST)
    along = np.array([0.0, 0.0, 1.0])
    if np.linalg.norm(axis) > 1e-9:
        along = axis / length
    radius_squared = mass / (np.pi * DENSITY * length)
    axial = 0.5 * mass * radius_squared
    across = mass * (3.0 * radius_squared + length**2) / 12.0
    direction = np.outer(along, along)
    return np.asarray(axial * direction + across * (np.eye(3) - direction))


# Torsional stiffness of strain-wave gears, joint side (catalogue of Harmonic Drive):
# piecewise constant, K1 up to the torque T1, K2 between T1 and T2, K3 above. Arrays of n
# gears: stiffness [n, 3], N m/rad, and knees [n, 2], N m.


@numba.njit(cache=True)
def spring_torque(
    twist: float, k1: float, k2: float, k3: float, t1: float, t2: float
) -> float:
    """Torque [N m] of a gear at a twist [rad].

    Args:
        twist: angle by which the gear is twisted [rad].
        k1: stiffness below the first knee [N m/rad].
        k2: stiffness between the knees [N m/rad].
        k3: stiffness above the second knee [N m/rad].
        t1: torque of the first knee [N m].
        t2: torque of the second knee [N m].
    """
    size = abs(twist)
    first = t1 / k1
    second = first + (t2 - t1) / k2
    if size <= first:
        torque = k1 * size
    elif size <= second:
        torque = t1 + k2 * (size - first)
    else:
        torque = t2 + k3 * (size - second)
    return math.copysign(torque, twist)


def gear_twist(torque: Array, stiffness: Array, knees: Array) -> Array:
    """Twist [n], rad, under torques [n], N m; the inverse of `spring_torque`.

    Args:
        torque: torques of the gears [n], N m.
        stiffness: K1, K2, K3 [n, 3], N m/rad.
        knees: T1, T2 [n, 2], N m.
    """
    parts = _parts(np.abs(torque), np.diff(knees, axis=1, prepend=0.0))
    return np.asarray(np.sign(torque) * (parts / stiffness).sum(axis=1))


def gear_energy(twist: Array, stiffness: Array, knees: Array) -> Array:
    """Energy [n], J, of gears twisted by angles [n], rad.

    Args:
        twist: angles by which the gears are twisted [n], rad.
        stiffness: K1, K2, K3 [n, 3], N m/rad.
        knees: T1, T2 [n, 2], N m.
    """
    spans = np.diff(knees, axis=1, prepend=0.0) / stiffness[:, :2]
    parts = _parts(np.abs(twist), spans)
    start = np.concatenate([np.zeros((len(knees), 1)), knees], axis=1)
    return np.asarray((start * parts + 0.5 * stiffness * parts**2).sum(axis=1))


def _parts(size: Array, spans: Array) -> Array:
    """Parts of `size` [n] within the first two spans [n, 2] and beyond them: [n, 3]."""
    first = np.minimum(size, spans[:, 0])
    second = np.clip(size - spans[:, 0], 0.0, spans[:, 1])
    third = np.maximum(size - spans.sum(axis=1), 0.0)
    return np.stack([first, second, third], axis=1)


# Compiled time integration of motors, strain-wave gears and joint friction. Friction is
# implicit: the set-valued Coulomb law is solved for the end of each step, on the link
# side joint after joint. Joints therefore stick at rest without creeping, and friction
# never adds energy.

Q, QD, ROTOR, ROTOR_SPEED, CURRENT = range(5)
"""Rows of the state [5, n]: link position [rad] and speed [rad/s], rotor position [rad] and speed
[rad/s] (joint side), and motor current [A]."""
SHAFT, COPPER, FRICTION, GEAR, ABS_CURRENT = range(5)
"""Rows of the energy sums [5, n]: J, J, J, J and A s; see `Plant.energy`."""


class ServoGains(NamedTuple):
    """Gains of the position loop of the drives [n], joint side: N m/rad and N m s/rad.

    Attributes:
        stiffness: torque per position error [n], N m/rad.
        damping: torque per speed error [n], N m s/rad.
        of_link: whether the loop controls the position of the link, behind the gear; else
            it controls the position of the rotor.
    """

    stiffness: Array
    damping: Array
    of_link: bool


class DriveConstants(NamedTuple):
    """Constants of n drives for the compiled code, joint side.

    `NoLoadFriction` describes the first six attributes, `ArmParameters` the others, of
    which current_to_torque and friction_factor are computed.

    Attributes:
        coulomb: friction at a slow speed by direction [2, n], N m.
        rise: friction that shear-thinning grease adds at high speeds, by direction [2,
            n], N m.
        pace: speed over which this friction rises to 63 %, by direction [2, n], rad/s.
        viscous: friction per speed by direction [2, n], N m s/rad.
        breakaway: static over Coulomb friction [n].
        stribeck_speed: speed over which breakaway vanishes [n], rad/s.
        current_to_torque: gear ratio times torque constant [n], N m/A.
        effective_resistance: copper loss over squared current [n], ohm.
        rotor_inertia: inertia of rotor and reducer [n], kg m^2.
        max_current: largest current of the motors [n], A.
        stiffness: stiffness of the gears [n, 3], N m/rad.
        knees: torques T1, T2 at which the stiffness of the gears changes [n, 2], N m.
        damping: viscous damping of the gears [n], N m s/rad.
        load_direct: friction over transmitted torque while driving [n].
        load_reverse: friction over transmitted torque while driven by the load [n].
        flex_spline_coulomb: Coulomb friction of the flex spline [n], N m.
        flex_spline_viscous: viscous friction of the flex spline [n], N m s/rad.
        friction_factor: factor of the present temperature on the part of friction that
            depends on the speed [n].
    """

    coulomb: Array
    rise: Array
    pace: Array
    viscous: Array
    breakaway: Array
    stribeck_speed: Array
    current_to_torque: Array
    effective_resistance: Array
    rotor_inertia: Array
    max_current: Array
    stiffness: Array
    knees: Array
    damping: Array
    load_direct: Array
    load_reverse: Array
    flex_spline_coulomb: Array
    flex_spline_viscous: Array
    friction_factor: Array


@numba.njit(cache=True)
def _friction(
    drives: DriveConstants, j: int, speed: float, ahead: float, transmitted: float
) -> float:
    """Magnitude of the rotor friction of a joint [N m].

    Args:
        drives: constants of the drives.
        j: number of the joint.
        speed: speed of the rotor, joint side [rad/s].
        ahead: speed that the rotor would have at the end of the step without friction
            [rad/s]; its sign is the direction of motion.
        transmitted: torque of the gear [N m].
    """
    direction = 0 if ahead >= 0.0 else 1
    size = abs(speed)
    stribeck = math.exp(-((size / drives.stribeck_speed[j]) ** 2))
    thinning = 1.0 - math.exp(-size / drives.pace[direction, j])
    viscous = drives.viscous[direction, j] * size
    moving = drives.rise[direction, j] * thinning + viscous
    share = drives.load_reverse[j]
    if transmitted * ahead >= 0.0:
        share = drives.load_direct[j]
    level = drives.coulomb[direction, j] * (1.0 + (drives.breakaway[j] - 1.0) * stribeck)
    return float(level + drives.friction_factor[j] * moving + share * abs(transmitted))


@numba.njit(cache=True)
def advance_drives(
    state: Array,
    energy: Array,
    steps: int,
    h: float,
    lag: float,
    inverse: Array,
    bias: Array,
    first: Array,
    last: Array,
    feed_forward: Array,
    gains: ServoGains,
    drives: DriveConstants,
    stopped: bool,
) -> None:
    """Integrate one block: symplectic Euler, friction implicit.

    Args:
        state: see `Q` to `CURRENT` [5, n]; updated in place.
        energy: see `SHAFT` to `ABS_CURRENT` [5, n]; updated in place.
        steps: number of time steps.
        h: length of one step [s].
        lag: share of a change of the current that one step follows.
        inverse: inverse of the mass matrix of the links [n, n].
        bias: Coriolis, centrifugal and gravity torques [n], N m.
        first: reference at the beginning [2, n]: rotor position, rad, and speed, rad/s.
        last: reference at the end [2, n]; it is linear in between.
        feed_forward: torque that the controller adds to the servo's torque [n], N m.
        gains: gains of the position loops; the reference is a position of the rotor or of
            the link.
        drives: constants of the drives.
        stopped: brakes are closed: rotors stand still and currents decay.
    """
    n = state.shape[1]
    load = np.empty(n)
    for k in range(steps):
        share = (k + 0.5) / steps
        for j in range(n):
            q = state[Q, j]
            qd = state[QD, j]
            rotor = state[ROTOR, j]
            speed = state[ROTOR_SPEED, j]
            current = state[CURRENT, j]
            to_torque = drives.current_to_torque[j]
            inertia = drives.rotor_inertia[j]
            # Drive: servo and current loop.
            target = 0.0
            if not stopped:
                error = first[0, j] + share * (last[0, j] - first[0, j])
                slip = first[1, j] + share * (last[1, j] - first[1, j])
                error -= q if gains.of_link else rotor
                slip -= qd if gains.of_link else speed
                torque = feed_forward[j] + gains.stiffness[j] * error
                target = (torque + gains.damping[j] * slip) / to_torque
                target = min(max(target, -drives.max_current[j]), drives.max_current[j])
            current += lag * (target - current)
            # Gear.
            k1 = drives.stiffness[j, 0]
            k2 = drives.stiffness[j, 1]
            k3 = drives.stiffness[j, 2]
            elastic = spring_torque(
                rotor - q, k1, k2, k3, drives.knees[j, 0], drives.knees[j, 1]
            )
            lossy = drives.damping[j] * (speed - qd)
            transmitted = elastic + lossy
            # Rotor, friction solved for the end of the step.
            free = speed + h / inertia * (to_torque * current - transmitted)
            level = _friction(drives, j, speed, free, transmitted)
            most = inertia * abs(free) / h
            if stopped or level >= most:
                level = most
            friction = math.copysign(level, free)
            new_speed = free - h / inertia * friction if level < most else 0.0
            mean = 0.5 * (speed + new_speed)
            state[ROTOR, j] = rotor + h * new_speed
            state[ROTOR_SPEED, j] = new_speed
            state[CURRENT, j] = current
            load[j] = transmitted - bias[j]
            energy[SHAFT, j] += h * to_torque * current * mean
            energy[COPPER, j] += h * drives.effective_resistance[j] * current * current
            energy[FRICTION, j] += h * friction * mean
            energy[GEAR, j] += h * lossy * (speed - qd)
            energy[ABS_CURRENT, j] += h * abs(current)
        for i in range(n):
            acceleration = 0.0
            for j in range(n):
                acceleration += inverse[i, j] * load[j]
            state[QD, i] += h * acceleration
        # Friction of the flex splines, joint after joint.
        for j in range(n):
            before = state[QD, j]
            level = drives.flex_spline_coulomb[j] + drives.flex_spline_viscous[j] * abs(
                before
            )
            impulse = math.copysign(min(h * level, abs(before) / inverse[j, j]), before)
            for i in range(n):
                state[QD, i] -= inverse[i, j] * impulse
            energy[FRICTION, j] += impulse * 0.5 * (before + state[QD, j])
        for i in range(n):
            state[Q, i] += h * state[QD, i]


BLOCK = 2e-3  # longest time between evaluations of the links' dynamics [s]
STEP = 1e-4  # longest step of the drives [s]
_POSITIONS = 20  # random positions from which the step of the drives follows
_STABLE = 0.5  # longest step of the drives times their highest natural frequency


class Plant:
    """Mechanics and drives of one arm with n joints, at rest at first.

    Args:
        robot: the arm's type.
        parameters: true constants of the arm.
        setup: mounting and payload that the arm really has.
        q: joint positions at the start [n], rad.

    Attributes:
        state: link position and speed, rotor position and speed, motor current [5, n].
        energy: sums since the start [5, n]: motor work k_t i w [J], copper loss [J],
            friction loss [J], loss in the gear dampers [J], and integral of |i| [A s].
        stopped: True while the brakes are closed: rotors stand still and currents decay.
    """

    def __init__(
        self, robot: RobotDescription, parameters: ArmParameters, setup: Setup, q: Array
    ) -> None:
        self.parameters = parameters
        self.stopped = False
        self.set_temperature(np.full(robot.dof, parameters.calibration_temperature))
        self.energy = np.zeros((5, robot.dof))
        self.state = np.zeros((5, robot.dof))
        self.set_setup(robot, setup)
        self._time_constant = float(constants()["motor"]["current_time_constant"])
        at_rest = parameters.current_noise_rest**2
        ripple = np.sqrt(parameters.current_noise_moving**2 - at_rest)
        self._torque_ripple = ripple * parameters.current_to_torque
        self._ripple_speed = float(constants()["sensors"]["current_noise_speed"])
        position = np.asarray(q, float)
        gravity = pin.computeGeneralizedGravity(self._model, self._data, position)
        twist = gear_twist(gravity, parameters.stiffness, parameters.knees)
        self.state[Q] = q
        self.state[ROTOR] = q + twist
        self.state[CURRENT] = gravity / parameters.current_to_torque
        highest = 0.0  # natural frequency of the drives at random positions [rad/s]
        random = np.random.default_rng(0)
        for position in random.uniform(-np.pi, np.pi, (_POSITIONS, robot.dof)):
            inverse = np.diag(pin.computeMinverse(self._model, self._data, position))
            stiffest = parameters.stiffness[:, 2]
            frequency = np.sqrt(stiffest * (inverse + 1.0 / parameters.rotor_inertia))
            highest = max(highest, float(frequency.max()))
        self.step = min(STEP, _STABLE / highest)

    def set_setup(self, robot: RobotDescription, setup: Setup) -> None:
        """Change mounting or payload.

        Args:
            robot: description of the arm with the inertia tensors of its links.
            setup: what the arm really carries, and how it is mounted.
        """
        self.dynamics = ArmDynamics(solid_links(robot), setup)
        self._model = self.dynamics.model
        self._data = self.dynamics.data

    def set_temperature(self, temperature: Array) -> None:
        """Adapt the friction to joint temperatures.

        Args:
            temperature: temperatures of the joints [n], degC.
        """
        p = self.parameters
        known = vars(p) | vars(p.friction)
        known["current_to_torque"] = p.current_to_torque
        known["friction_factor"] = p.friction_factor(temperature)
        self._drives = DriveConstants(
            **{key: known[key] for key in DriveConstants._fields}
        )

    def advance(
        self,
        dt: float,
        start: Array,
        end: Array,
        feed_forward: Array,
        gains: ServoGains,
        noise: Array | None = None,
    ) -> None:
        """Advance under the servo of the drives, whose reference is linear in time.

        Args:
            dt: time to advance by [s].
            start: reference at the begin [2, n]: rotor position, rad, and speed, rad/s.
            end: reference at the end.
            feed_forward: torque that is added to the torque of the servo, joint side [n],
                N m.
            gains: gains of the servo loops.
            noise: standard normal numbers for the torque ripple in motion [n]; None
                without ripple.
        """
        blocks = max(1, math.ceil(dt / BLOCK - 1e-9))
        block = dt / blocks
        steps = max(1, math.ceil(block / self.step - 1e-9))
        h = block / steps
        lag = 1.0 - math.exp(-h / self._time_constant)
        if noise is not None:
            moving = 1.0 - np.exp(-np.abs(self.state[QD]) / self._ripple_speed)
            feed_forward = feed_forward + self._torque_ripple * moving * noise
        for k in range(blocks):
            middle = self.state[Q] + 0.5 * block * self.state[QD]
            bias = pin.nonLinearEffects(self._model, self._data, middle, self.state[QD])
            inverse = pin.computeMinverse(self._model, self._data, middle)
            inverse = np.ascontiguousarray(inverse)
            first = start + (end - start) * (k / blocks)
            last = start + (end - start) * ((k + 1) / blocks)
            advance_drives(
                self.state, self.energy, steps, h, lag, inverse, bias, first, last, feed_forward,
                gains, self._drives, self.stopped,
            )  # fmt: skip

    def stored_energy(self) -> float:
        """Kinetic, potential and elastic energy of links, rotors and gears [J]."""
        model = self._model
        data = self._data
        p = self.parameters
        q, qd, rotor, speed, _ = self.state
        pin.computeAllTerms(model, data, q, qd)
        kinetic = pin.computeKineticEnergy(model, data)
        links = kinetic + pin.computePotentialEnergy(model, data)
        rotors = 0.5 * float(p.rotor_inertia @ speed**2)
        gears = gear_energy(rotor - q, p.stiffness, p.knees).sum()
        return float(links + rotors + gears)
