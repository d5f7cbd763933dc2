# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Options of a simulated arm: its drives, its session, and how it is operated."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from ur_energy_model.errors import InputError
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.simulation.arm_constants import constants
from ur_energy_model.simulation.joint_controller import ControllerKind
from ur_energy_model.simulation.parameters import (
    ArmParameters,
    FrictionCompensation,
    NoLoadFriction,
    closest_sizes,
    draw_parameters,
    joint_sizes,
)
from ur_energy_model.typing import Array

DriveSet = Literal["typical", "s3"]
"""Drive constants: typical of the arm's type, or from Battistini, Samori, Subini,
"Modeling and simulation of an UR5 robot manipulator" (slides; stiffness, wave generator
and flex spline of HFUS-20-2SH and HFUS-14-2SH gears). Motors, electronics and sensors of
the arm stay as they are."""
TorqueField = Literal["with_gravity", "without_gravity"]
"""Content of actual_current_as_torque: the current times torque constant and gear ratio, or
this less the gravity torque of the arm with the payload that is set in the controller."""


@dataclass(frozen=True)
class ArmOptions:
    """Options of a simulated arm.

    Attributes:
        session: number of the arm's session, 0 for the arm as drawn.
        ambient: temperature of the air [degC].
        controller: kind of the joint controller; "pd" compensates gravity.
        controller_version: version of the controller that the arm reports; it decides
            which RTDE fields exist.
        warmth: temperature state of the joints at the start: 0 as ambient, 1 as after
            hours powered at rest; None for the state of the session.
        viscous_only: no other friction, to see what static friction does.
        drive_set: gears and friction: typical ones, or the values of a paper.
        torque_field: content of actual_current_as_torque.
    """

    session: int = 0
    ambient: float = 25.0
    controller: ControllerKind = "feedforward"
    controller_version: tuple[int, ...] = (5, 11, 0)
    warmth: float | None = None
    viscous_only: bool = False
    drive_set: DriveSet = "typical"
    torque_field: TorqueField = "with_gravity"


def default_version(robot: RobotDescription) -> tuple[int, ...]:
    """Software version of a controller that runs this arm; 5.23 reports measured torques.

    Args:
        robot: the arm's type.
    """
    if robot.generation == "cb3":
        return (3, 15, 8)
    return (5, 23, 0) if robot.generation == "other" else (5, 11, 1)


def actual_parameters(
    robot: RobotDescription, seed: int, session: SimulatedSession, options: ArmOptions
) -> ArmParameters:
    """True constants of an arm of this type, with its drive set, in a session.

    Args:
        robot: the arm's type.
        seed: number of the arm among the arms of its type.
        session: the session, which changes friction, standby power and temperatures.
        options: options of the arm: its drive set, and whether it has viscous friction
            only.
    """
    drawn = with_drive_set(draw_parameters(robot, seed), robot, options.drive_set)
    parameters = session.applied_to(drawn)
    if options.viscous_only:
        return parameters.with_viscous_friction_only()
    return parameters


def with_drive_set(
    parameters: ArmParameters, robot: RobotDescription, name: DriveSet
) -> ArmParameters:
    """The arm with the drives of a set; unchanged for "typical".

    A joint gets the gear of the set whose rated torque is closest to its own (on a
    logarithmic scale). Its friction does not depend on load or temperature, and the
    controller has it and the rotor's inertia as well as before, and the motor's own
    torque constant.

    Args:
        parameters: true constants of the arm.
        robot: the arm's type.
        name: name of the set in config/simulation/arm.yaml, or "typical".
    """
    if name == "typical":
        return parameters
    table = constants()["drive_sets"][name]
    nearest = closest_sizes(joint_sizes(robot), [gear["max_torque"] for gear in table])

    def of_gears(key: str) -> Array:
        return np.array([gear[key] for gear in table], dtype=float)[nearest]

    ratio = parameters.gear_ratio
    n = robot.dof
    reflected = ratio**2 * of_gears("rotor_inertia")
    stiffness = of_gears("K")
    friction = NoLoadFriction(
        coulomb=ratio * of_gears("rotor_coulomb").T,
        rise=np.zeros((2, n)),
        pace=np.ones((2, n)),
        viscous=np.tile(ratio**2 * of_gears("rotor_viscous"), (2, 1)),
        breakaway=np.ones(n),
        stribeck_speed=parameters.friction.stribeck_speed,
    )
    flex_spline = of_gears("flex_spline_coulomb")
    whole = replace(friction, coulomb=friction.coulomb + flex_spline)
    of_rotor = parameters.friction.coulomb.mean(axis=0)
    known = parameters.compensation.coulomb / (of_rotor + parameters.flex_spline_coulomb)
    return replace(
        parameters,
        stated_torque_constant=parameters.torque_constant,
        reflected_inertia=reflected,
        rotor_inertia=reflected,
        friction=friction,
        temperature_model=np.tile([1.0, 0.0, 0.0, 0.0], (n, 1)),
        load_direct=np.zeros(n),
        load_reverse=np.zeros(n),
        flex_spline_coulomb=flex_spline,
        flex_spline_viscous=of_gears("flex_spline_viscous"),
        stiffness=stiffness,
        knees=of_gears("T"),
        damping=parameters.damping * stiffness[:, 0] / parameters.stiffness[:, 0],
        compensation=FrictionCompensation.of_curve(whole, known, np.zeros(n)),
    )


# Session-to-session (day-to-day) variation: standby power, friction and temperatures
# vary; inertia, torque constants, windings and gears belong to the arm and stay the same.

_STREAM = 20250610
_WEAR_STREAM = 20250611
_LARGEST = 3.0  # draws are limited to this many standard deviations


@dataclass(frozen=True)
class SimulatedSession:
    """One session of one arm with n joints; differences are those to session 0.

    Attributes:
        number: 0 for the arm as drawn, 1, 2, ... in order of time.
        standby_offset: difference of the standby power, W.
        friction_scale: factor on the friction at the same speed, load and temperature
            [n].
        ambient_offset: difference of the ambient temperature, K.
        warmth: temperature state of the joints at the start: 0 as ambient, 1 as after
            hours powered at rest.
    """

    number: int
    standby_offset: float
    friction_scale: Array
    ambient_offset: float
    warmth: float

    def applied_to(self, arm: ArmParameters) -> ArmParameters:
        """Constants of this session, from the constants of session 0.

        Args:
            arm: constants of session 0.
        """
        if self.number == 0:
            return arm
        standby = arm.standby_power + self.standby_offset
        return replace(
            arm.with_friction_scaled(self.friction_scale),
            standby_power=standby,
            standby_heat=arm.standby_heat / arm.standby_power * standby,
        )


def draw_session(seed: int, number: int, joints: int) -> SimulatedSession:
    """A session of an arm with n joints; repeated draws are equal.

    Args:
        seed: number of the arm among the arms of its type.
        number: number of the session; 0 is the arm as drawn.
        joints: number of joints n.

    Raises:
        InputError: negative number.
    """
    if number < 0:
        raise InputError("--session", f"is {number}", "use 0 or a positive number")
    if number == 0:
        return SimulatedSession(0, 0.0, np.ones(joints), 0.0, 1.0)
    table = constants()["session"]
    random = np.random.default_rng([seed, _STREAM, number])

    def normal(deviation: float, size: int | None = None) -> Any:
        return deviation * np.clip(random.standard_normal(size), -_LARGEST, _LARGEST)

    standby = float(normal(table["standby"]))
    common = 1.0 + normal(table["friction_common"])
    individual = 1.0 + normal(table["friction_joint"], joints)
    ambient = float(random.uniform(-table["ambient"], table["ambient"]))
    warmth = float(random.uniform(*table["warmth"]))
    # Running in reduces the friction of each joint towards a floor, by its own share.
    least, most = table["running_in"]
    lost = np.random.default_rng([seed, _WEAR_STREAM]).uniform(least, most, joints)
    run_in = 1.0 - lost * (1.0 - np.exp(-number / table["running_in_sessions"]))
    return SimulatedSession(
        number, standby, common * individual * run_in, ambient, warmth
    )
