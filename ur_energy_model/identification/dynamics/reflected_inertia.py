"""Inertia of bodies and drives: what is expected, what is possible, and motor against reducer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.typing import Array, Mask

_NOMINAL_SPREAD = 0.1
"""Relative deviation of reflected inertias from the robot file's: target_moment of recordings of a
UR3e, two UR5e and a UR10e gives 0 to 2 %, but 14 % for one small wrist."""
_INERTIA_PER_TORQUE = 0.011
"""Reflected inertia over rated torque where a robot file has no inertia [kg m^2/(N m)]: the robot
files of UR3e, UR5e, UR10e and UR16e give 0.008 to 0.018."""
_PER_TORQUE_SPREAD = 0.5
_UNRATED_INERTIA = (0.5, 0.5)
"""Reflected inertia and its spread where not even the torque is rated [kg m^2]: those of the
e-Series lie between 0.07 (wrist of a UR3e) and 6 (shoulder of a UR10e)."""


@dataclass(frozen=True)
class InertiaEstimate:
    """Reflected inertia of motors and reducers, joint side.

    Attributes:
        value: [n], kg m^2.
        std: standard deviation [n], kg m^2.
        source: per joint "target_moment", "current" or "prior".
    """

    value: Array
    std: Array
    source: tuple[str, ...]

    @property
    def unknown(self) -> Mask:
        """Joints [n] whose inertia is only believed."""
        return np.array([source == "prior" for source in self.source])


def expected_inertia(robot: RobotDescription) -> InertiaEstimate:
    """What is believed of the reflected inertias before any data.

    The robot file's values; where it has none, what the rated torque suggests.
    """
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
    """Reflected inertia of the joints, taken apart as Clochiatti et al. 2024 report it.

    Attributes:
        reflected: joint side [n], kg m^2.
        motor_side: motor and reducer, motor side [n], kg m^2.
        reducer: catalogue value, motor side [n], kg m^2; NaN where unknown.
        rotor: what is left for the motor [n], kg m^2; NaN where the reducer is unknown.
    """

    reflected: Array
    motor_side: Array
    reducer: Array
    rotor: Array


def split_inertia(reflected: Array, robot: RobotDescription) -> DriveInertia:
    """Motor and reducer shares of reflected inertias [n], kg m^2, joint side."""
    motor_side = reflected / robot.gear_ratio**2
    rotor = motor_side - robot.reducer_inertia
    return DriveInertia(reflected, motor_side, robot.reducer_inertia, rotor)
