"""What the control box needs of an arm."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.setup import Payload
from ur_energy_model.simulation.arm.commands import Command
from ur_energy_model.simulation.arm.modes import ProgramState, RobotMode, SafetyMode


class ArmInterface(Protocol):
    """What the control box needs of an arm; simulation.arm.SimulatedArm is one."""

    @property
    def robot(self) -> RobotDescription:
        """Its description."""
        ...

    @property
    def outputs(self) -> Mapping[str, Any]:
        """Values of RTDE fields by name in the present cycle."""
        ...

    @property
    def busy(self) -> bool:
        """Whether a commanded move or stop has not come to its end."""
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
        """State of its own motion."""
        ...

    def tick(self) -> None:
        """Advance by one controller cycle."""
        ...

    def carry(self, payload: Payload) -> None:
        """Carry this from now on, whatever the controller was told."""
        ...

    def command(self, command: Command) -> None:
        """Take a command.

        Raises:
            MotionRefusedError: the arm cannot do it now.
        """
        ...
