"""Power modes of the arm and their power at rest."""

from __future__ import annotations

from ur_energy_model.simulation.arm.commands import PowerCommand
from ur_energy_model.simulation.arm.modes import JOINT_MODE_OF, JointMode, RobotMode
from ur_energy_model.simulation.arm.parameters import constants

POWER_ON_TIME = 1.0
"""From power off to idle [s], assumed (real arms take some seconds)."""
BRAKE_TIME = 0.5
"""From idle to running [s], assumed."""


class PowerSupply:
    """Sequence of power modes; the arm starts in running mode.

    Args:
        dt: length of a controller cycle [s].

    Attributes:
        mode: current mode.
    """

    def __init__(self, dt: float) -> None:
        self.mode = RobotMode.RUNNING
        self._brake_power = float(constants()["bus"]["brake_release_power"])
        self._dt = dt
        self._target = RobotMode.RUNNING
        self._remaining = 0.0

    @property
    def joint_mode(self) -> JointMode:
        """Mode of all joints."""
        return JOINT_MODE_OF[self.mode]

    @property
    def powered(self) -> bool:
        """Whether the arm is switched on."""
        return self.mode is not RobotMode.POWER_OFF

    def command(self, command: PowerCommand) -> None:
        """Start a change of mode; power off takes effect immediately."""
        if command is PowerCommand.OFF:
            self.mode = self._target = RobotMode.POWER_OFF
            return
        if command is PowerCommand.RELEASE_BRAKES:
            self._target = RobotMode.RUNNING
        elif self.mode is RobotMode.POWER_OFF:
            self._target = RobotMode.IDLE
        self._start_next()

    def advance(self) -> None:
        """Advance by one controller cycle."""
        if self.mode is self._target:
            return
        self._remaining -= self._dt
        if self._remaining > 0.0:
            return
        self.mode = RobotMode.IDLE if self.mode is RobotMode.POWER_ON else RobotMode.RUNNING
        if self.mode is not self._target:
            self._remaining = BRAKE_TIME

    def standby(self, running: float, joints: int) -> float:
        """Power at rest [W] from that of the running arm; closed brakes need no coil current."""
        if self.mode is RobotMode.POWER_OFF:
            return 0.0
        if self.mode is RobotMode.RUNNING:
            return running
        return max(0.0, running - joints * self._brake_power)

    def _start_next(self) -> None:
        if self.mode is RobotMode.POWER_OFF and self._target is not RobotMode.POWER_OFF:
            self.mode, self._remaining = RobotMode.POWER_ON, POWER_ON_TIME
        elif self.mode is RobotMode.IDLE and self._target is RobotMode.RUNNING:
            self._remaining = BRAKE_TIME
