"""Solid links for the simulated arm: most controllers compute with point masses, arms do not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.typing import Array

DENSITY = 1500.0
"""Mean density of a link [kg/m^3], assumed: a tube with two joints."""
SHORTEST = 0.05
"""Least length of a link [m]."""


def solid_links(robot: RobotDescription) -> RobotDescription:
    """The arm with inertia tensors that a body can have.

    Links without a disclosed tensor (zero, or not positive definite) become solid cylinders of
    their mass along the line between their two joints, as Clochiatti et al. 2024 build them
    (their Table III); their radius follows from a density. Masses and centres stay.
    """
    inertia = robot.inertia.copy()
    for link in range(len(robot.mass)):
        if robot.mass[link] > 0 and np.linalg.eigvalsh(inertia[link])[0] < 1e-9:
            offset = _between_joints(robot, link)
            inertia[link] = cylinder(float(robot.mass[link]), offset)
    return replace(robot, inertia=inertia)


def cylinder(mass: float, axis: Array) -> Array:
    """Tensor [3, 3], kg m^2, of a solid cylinder about its centre.

    Args:
        mass: kg.
        axis: from end to end [3], m.
    """
    length = max(float(np.linalg.norm(axis)), SHORTEST)
    along = axis / length if np.linalg.norm(axis) > 1e-9 else np.array([0.0, 0.0, 1.0])
    radius_squared = mass / (np.pi * DENSITY * length)
    axial = 0.5 * mass * radius_squared
    across = mass * (3.0 * radius_squared + length**2) / 12.0
    direction = np.outer(along, along)
    return np.asarray(axial * direction + across * (np.eye(3) - direction))


def _between_joints(robot: RobotDescription, link: int) -> Array:
    """Vector along a link in its own DH frame [3], m."""
    sin, cos = np.sin(robot.alpha[link]), np.cos(robot.alpha[link])
    d, a = robot.d[link], robot.a[link]
    if robot.convention == "standard":
        return np.array([a, d * sin, d * cos])
    return np.array([0.0, 0.0, d]) if d else np.array([a, 0.0, 0.0])
