"""Options of a simulated arm that most users leave at their defaults."""

from __future__ import annotations

from dataclasses import dataclass

from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.simulation.arm.drive_sets import DriveSet
from ur_energy_model.simulation.arm.joint_controller import ControllerKind

_DEFAULT_VERSION = {"cb3": (3, 15, 8), "other": (5, 23, 0)}
"""Arms of other makers get the version that reports measured torques."""
_E_SERIES_VERSION = (5, 11, 1)


@dataclass(frozen=True)
class ArmOptions:
    """How a simulated arm is operated.

    Attributes:
        session: number of the arm's session, 0 for the arm as drawn.
        ambient: ambient temperature [degC].
        controller: "feedforward" (inverse dynamics and feedback) or "pd" (with gravity
            compensation).
        controller_version: reported software version; it decides which RTDE fields exist.
        warmth: joint temperatures at the start: 0 ambient, 1 as after hours powered at rest; None
            for the session's.
        frictionless: no friction in motors and gears, to see what friction does.
        drive_set: constants of the gears: "typical" of the arm's type, or a set of drive_sets.py.
    """

    session: int = 0
    ambient: float = 25.0
    controller: ControllerKind = "feedforward"
    controller_version: tuple[int, ...] = (5, 11, 0)
    warmth: float | None = None
    frictionless: bool = False
    drive_set: DriveSet = "typical"


def default_version(robot: RobotDescription) -> tuple[int, ...]:
    """Software version of a controller that runs this arm."""
    return _DEFAULT_VERSION.get(robot.generation, _E_SERIES_VERSION)
