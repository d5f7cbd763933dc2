"""Sets of drive constants that a simulated arm can have instead of its type's typical ones.

"s3" are those of Battistini, Samori, Subini, "Modeling and simulation of an UR5 robot manipulator"
(slides): stiffness, wave generator and flex spline of HFUS-20-2SH and HFUS-14-2SH gears. Motors,
electronics and sensors stay those of the arm.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal, get_args

import numpy as np

from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.simulation.arm.joint_friction import NoLoadFriction
from ur_energy_model.simulation.arm.parameters import (
    ArmParameters,
    closest_sizes,
    constants,
    joint_sizes,
)
from ur_energy_model.typing import Array

DriveSet = Literal["typical", "s3"]
DRIVE_SETS: tuple[DriveSet, ...] = get_args(DriveSet)
"""Names of the sets; "typical" is the default."""


def with_drive_set(
    parameters: ArmParameters, robot: RobotDescription, name: DriveSet
) -> ArmParameters:
    """The arm with the drives of a set; unchanged for "typical".

    A joint gets the gear of the set whose rated torque is closest to its own (on a logarithmic
    scale). Its friction does not depend on load or temperature, and the controller has it and the
    rotor's inertia as well as before.

    Args:
        parameters: of the arm, n joints.
        robot: the arm.
        name: of the set.
    """
    if name == "typical":
        return parameters
    gears = _gears(robot, constants()["drive_sets"][name])

    def of_gears(key: str) -> Array:
        return np.array([gear[key] for gear in gears], dtype=float)

    ratio, n = parameters.gear_ratio, robot.dof
    reflected = ratio**2 * of_gears("rotor_inertia")
    viscous = ratio**2 * of_gears("rotor_viscous")
    stiffness = of_gears("K")
    friction = NoLoadFriction(
        coulomb=ratio * of_gears("rotor_coulomb").T,
        rise=np.zeros((2, n)),
        pace=np.ones((2, n)),
        viscous=np.stack([viscous, viscous]),
        breakaway=np.ones(n),
        stribeck_speed=parameters.friction.stribeck_speed,
    )
    coulomb, slope = friction.straight_line(robot.max_velocity)
    known = parameters.controller_coulomb / parameters.friction.straight_line(robot.max_velocity)[0]
    return replace(
        parameters,
        reflected_inertia=reflected,
        rotor_inertia=reflected,
        friction=friction,
        temperature_model=np.tile([1.0, 0.0, 0.0, 0.0], (n, 1)),
        load_direct=np.zeros(n),
        load_reverse=np.zeros(n),
        flex_spline_coulomb=of_gears("flex_spline_coulomb"),
        flex_spline_viscous=of_gears("flex_spline_viscous"),
        stiffness=stiffness,
        knees=of_gears("T"),
        damping=parameters.damping * stiffness[:, 0] / parameters.stiffness[:, 0],
        controller_coulomb=known * coulomb,
        controller_viscous=known * slope,
    )


def _gears(robot: RobotDescription, table: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The gear of each joint."""
    sizes = np.array([gear["max_torque"] for gear in table])
    return [table[k] for k in closest_sizes(joint_sizes(robot), sizes).tolist()]
