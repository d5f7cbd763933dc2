"""Links with inertia tensors, for descriptions that contain point masses only."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.typing import Array

DENSITY = 1500.0
"""Assumed mean density of a link [kg/m^3]: a tube with two joints."""
SHORTEST = 0.05
"""Smallest length of a link [m]."""


def solid_links(robot: RobotDescription) -> RobotDescription:
    """The arm with physically possible inertia tensors.

    Links without a published tensor (zero, or not positive definite) become solid cylinders along
    the line between their two joints, as in Clochiatti et al. 2024 (Table III); the radius follows
    from mass and density. Masses and centres of mass stay.
    """
    inertia = robot.inertia.copy()
    for link in range(len(robot.mass)):
        if robot.mass[link] > 0 and np.linalg.eigvalsh(inertia[link])[0] < 1e-9:
            offset = _between_joints(robot, link)
            inertia[link] = cylinder(float(robot.mass[link]), offset)
    return replace(robot, inertia=inertia)


def cylinder(mass: float, axis: Array) -> Array:
    """Inertia tensor [3, 3], kg m^2, of a solid cylinder about its centre.

    Args:
        mass: kg.
        axis: vector from end to end [3], m.
    """
    length = max(float(np.linalg.norm(axis)), SHORTEST)
    along = axis / length if np.linalg.norm(axis) > 1e-9 else np.array([0.0, 0.0, 1.0])
    radius_squared = mass / (np.pi * DENSITY * length)
    axial = 0.5 * mass * radius_squared
    across = mass * (3.0 * radius_squared + length**2) / 12.0
    direction = np.outer(along, along)
    return np.asarray(axial * direction + across * (np.eye(3) - direction))


def _between_joints(robot: RobotDescription, link: int) -> Array:
    """Vector between the joints of a link in its DH frame [3], m."""
    sin, cos = np.sin(robot.alpha[link]), np.cos(robot.alpha[link])
    d, a = robot.d[link], robot.a[link]
    if robot.convention == "standard":
        return np.array([a, d * sin, d * cos])
    return np.array([0.0, 0.0, d]) if d else np.array([a, 0.0, 0.0])
