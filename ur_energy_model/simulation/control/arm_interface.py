"""Interface between the control box and an arm."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.setup import Payload
from ur_energy_model.simulation.arm.commands import Command
from ur_energy_model.simulation.arm.modes import ProgramState, RobotMode, SafetyMode
from ur_energy_model.typing import Array


class ArmInterface(Protocol):
    """What the control box needs from an arm; `SimulatedArm` implements it."""

    @property
    def robot(self) -> RobotDescription:
        """Robot description."""
        ...

    @property
    def outputs(self) -> Mapping[str, Any]:
        """Values of RTDE fields by name in the current cycle."""
        ...

    @property
    def busy(self) -> bool:
        """Whether a commanded move or stop is still running."""
        ...

    @property
    def robot_mode(self) -> RobotMode:
        """Power mode."""
        ...

    @property
    def safety_mode(self) -> SafetyMode:
        """Safety mode."""
        ...

    @property
    def program_state(self) -> ProgramState:
        """State of the built-in motion."""
        ...

    def tick(self) -> None:
        """Advance by one controller cycle."""
        ...

    def carry(self, payload: Payload) -> None:
        """Mount another payload without informing the controller."""
        ...

    def tilt(self, gravity: Array) -> None:
        """Mount the arm another way without informing it; gravity in the base frame, m/s^2."""
        ...

    def change_friction(self, joint: int, factor: float) -> None:
        """Multiply the friction of the joint with this index."""
        ...

    def command(self, command: Command) -> None:
        """Accept a command.

        Raises:
            MotionRefusedError: the arm cannot execute it now.
        """
        ...
