"""Reflected inertia of the drives: prior, estimate, shares of motor and reducer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.typing import Array, Mask

_NOMINAL_SPREAD = 0.1
"""Relative standard deviation around the robot file's inertia: recorded target_moment of a UR3e,
two UR5e and a UR10e shows 0 to 2 %, but 14 % for one small wrist."""
_INERTIA_PER_TORQUE = 0.011
"""Reflected inertia over rated torque where a robot file has no inertia [kg m^2/(N m)]: the robot
files of UR3e, UR5e, UR10e and UR16e give 0.008 to 0.018."""
_PER_TORQUE_SPREAD = 0.5
_UNRATED_INERTIA = (0.5, 0.5)
"""Reflected inertia and its spread without a rated torque [kg m^2]: the e-Series lies between
0.07 (wrist of a UR3e) and 6 (shoulder of a UR10e)."""


@dataclass(frozen=True)
class InertiaEstimate:
    """Reflected inertia of motors and reducers, joint side."""

    value: Array  # [n], kg m^2
    std: Array  # standard deviation [n], kg m^2
    source: tuple[str, ...]  # per joint "target_moment", "current" or "prior"

    @property
    def unknown(self) -> Mask:
        """Joints [n] whose inertia is only a prior."""
        return np.array([source == "prior" for source in self.source])


def expected_inertia(robot: RobotDescription) -> InertiaEstimate:
    """Prior of the reflected inertias: the robot file's, else typical for the rated torque."""
    nominal, rated = robot.reflected_inertia, robot.max_torque
    known, sized = np.isfinite(nominal), np.isfinite(rated)
    typical = np.where(
        sized, _INERTIA_PER_TORQUE * np.where(sized, rated, 0.0), _UNRATED_INERTIA[0]
    )
    spread = np.where(sized, _PER_TORQUE_SPREAD * typical, _UNRATED_INERTIA[1])
    return InertiaEstimate(
        np.where(known, nominal, typical),
        np.where(known, _NOMINAL_SPREAD * np.nan_to_num(nominal), spread),
        ("prior",) * robot.dof,
    )


@dataclass(frozen=True)
class DriveInertia:
    """Reflected inertia of the joints, split as in Clochiatti et al. 2024."""

    motor_side: Array  # motor and reducer, motor side [n], kg m^2
    reducer: Array  # catalogue value, motor side [n], kg m^2; NaN where unknown
    rotor: Array  # the motor's remainder [n], kg m^2; NaN where the reducer is unknown


def split_inertia(reflected: Array, robot: RobotDescription) -> DriveInertia:
    """Motor and reducer shares of reflected inertias [n], kg m^2, joint side."""
    motor_side = reflected / robot.gear_ratio**2
    rotor = motor_side - robot.reducer_inertia
    return DriveInertia(motor_side, robot.reducer_inertia, rotor)
