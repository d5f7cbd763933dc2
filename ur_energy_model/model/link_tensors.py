"""LinkTensors: identified inertia tensors of the links."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.typing import Array

_ROUNDING = 1e-6
"""Second moment of mass that counts as zero, relative to the largest of the body."""


@dataclass(frozen=True)
class LinkTensors:
    """Inertia tensors of the n moving links, which replace those of the robot file.

    Only some combinations of their entries affect an arm's torques. The others keep the values of
    the robot file, with a correspondingly large standard deviation.

    Attributes:
        values: about each link's centre of mass, axes of its frame [n, 3, 3], kg m^2.
        std: of every entry [n, 3, 3], kg m^2.
        source: the identification stage, such as "target_moment".
    """

    values: Array
    std: Array
    source: str = "target_moment"

    def applied_to(self, robot: RobotDescription) -> RobotDescription:
        """The robot description with these tensors."""
        inertia = robot.inertia.copy()
        inertia[~robot.fixed] = self.values
        return replace(robot, inertia=inertia)


def is_possible(tensor: Array) -> bool:
    """Whether a mass distribution can have this tensor [3, 3] about its centre of mass.

    It can if the second moments of mass, trace/2 - tensor, are not negative.
    """
    moments = np.linalg.eigvalsh(0.5 * np.trace(tensor) * np.eye(3) - tensor)
    return bool(moments[0] >= -_ROUNDING * max(moments[-1], 0.0))
