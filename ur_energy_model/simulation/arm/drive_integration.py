"""Compiled time integration of motors, strain-wave gears and joint friction.

Friction is implicit: the set-valued Coulomb law is solved for the end of each step, on the link
side joint after joint. Joints therefore stick at rest without creeping, and friction never adds
energy.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numba
import numpy as np

from ur_energy_model.simulation.arm.harmonic_drive import spring_torque
from ur_energy_model.simulation.arm.parameters import ArmParameters
from ur_energy_model.typing import Array

Q, QD, ROTOR, ROTOR_SPEED, CURRENT = range(5)
"""Rows of the state [5, n]: link position and speed, rotor position and speed (joint side), A."""
SHAFT, COPPER, FRICTION, GEAR, ABS_CURRENT = range(5)
"""Rows of the energy sums [5, n]: J, J, J, J and A s; see `Plant.energy`."""


class DriveConstants(NamedTuple):
    """Constants of n drives for the compiled code, [n] unless noted; see `ArmParameters`."""

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
    friction_factor: Array  # of the speed-dependent friction, by temperature

    @classmethod
    def from_parameters(cls, p: ArmParameters, temperature: Array) -> DriveConstants:
        """Constants of an arm at joint temperatures [n], degC."""
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
            p.friction_factor(temperature),
        )


class Servo(NamedTuple):
    """Position loop of the drives within one block, arrays [n] unless noted.

    Attributes:
        start: reference at the beginning [2, n]: rotor position, rad, and speed, rad/s.
        end: reference at the end [2, n]; linear in between.
        feed_forward: joint side, N m.
        stiffness: joint side, N m/rad.
        damping: joint side, N m s/rad.
    """

    start: Array
    end: Array
    feed_forward: Array
    stiffness: Array
    damping: Array


class Links(NamedTuple):
    """Dynamics of the links, constant within one block.

    Attributes:
        inverse_mass: inverse of the mass matrix [n, n].
        bias: Coriolis, centrifugal and gravity torques [n], N m.
    """

    inverse_mass: Array
    bias: Array


class IntegrationSteps(NamedTuple):
    """Time steps of one block.

    Attributes:
        number: how many steps.
        length: of one step [s].
        lag: share of a change of the current that one step follows.
    """

    number: int
    length: float
    lag: float


@numba.njit(cache=True)
def _friction(
    drives: DriveConstants, j: int, speed: float, ahead: float, transmitted: float
) -> float:
    """Magnitude of the rotor friction [N m] of joint `j` that moves on with speed `ahead`."""
    direction = 0 if ahead >= 0.0 else 1
    size = abs(speed)
    stribeck = math.exp(-((size / drives.stribeck_speed[j]) ** 2))
    moving = (
        drives.rise[direction, j] * (1.0 - math.exp(-size / drives.pace[direction, j]))
        + drives.viscous[direction, j] * size
    )
    share = drives.load_direct[j] if transmitted * ahead >= 0.0 else drives.load_reverse[j]
    level = drives.coulomb[direction, j] * (1.0 + (drives.breakaway[j] - 1.0) * stribeck)
    return float(level + drives.friction_factor[j] * moving + share * abs(transmitted))


@numba.njit(cache=True)
def advance_drives(
    state: Array,
    energy: Array,
    steps: IntegrationSteps,
    links: Links,
    servo: Servo,
    drives: DriveConstants,
    stopped: bool,
) -> None:
    """Integrate one block: symplectic Euler, friction implicit.

    Args:
        state: see `Q` to `CURRENT` [5, n]; updated in place.
        energy: see `SHAFT` to `ABS_CURRENT` [5, n]; updated in place.
        steps: number and length of the steps.
        links: mass matrix and bias torques.
        servo: references and gains.
        drives: constants of the drives.
        stopped: brakes are closed: rotors stand still and currents decay.
    """
    h, inverse = steps.length, links.inverse_mass
    first, last = servo.start, servo.end
    n = state.shape[1]
    load = np.empty(n)
    for k in range(steps.number):
        share = (k + 0.5) / steps.number
        for j in range(n):
            q, qd = state[Q, j], state[QD, j]
            rotor, speed, current = state[ROTOR, j], state[ROTOR_SPEED, j], state[CURRENT, j]
            to_torque, inertia = drives.to_torque[j], drives.inertia[j]
            # Drive: servo and current loop.
            target = 0.0
            if not stopped:
                error = first[0, j] + share * (last[0, j] - first[0, j]) - rotor
                slip = first[1, j] + share * (last[1, j] - first[1, j]) - speed
                torque = servo.feed_forward[j] + servo.stiffness[j] * error
                target = (torque + servo.damping[j] * slip) / to_torque
                target = min(max(target, -drives.max_current[j]), drives.max_current[j])
            current += steps.lag * (target - current)
            # Gear.
            k1, k2, k3 = drives.stiffness[j, 0], drives.stiffness[j, 1], drives.stiffness[j, 2]
            elastic = spring_torque(rotor - q, k1, k2, k3, drives.knees[j, 0], drives.knees[j, 1])
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
            load[j] = transmitted - links.bias[j]
            energy[SHAFT, j] += h * to_torque * current * mean
            energy[COPPER, j] += h * drives.resistance[j] * current * current
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
            level = drives.flex_coulomb[j] + drives.flex_viscous[j] * abs(before)
            impulse = math.copysign(min(h * level, abs(before) / inverse[j, j]), before)
            for i in range(n):
                state[QD, i] -= inverse[i, j] * impulse
            energy[FRICTION, j] += impulse * 0.5 * (before + state[QD, j])
        for i in range(n):
            state[Q, i] += h * state[QD, i]
