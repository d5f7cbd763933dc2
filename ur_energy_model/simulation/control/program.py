"""Programs that clients upload to the simulated controller."""

from __future__ import annotations

from typing import Protocol

from ur_energy_model.errors import UrEnergyError


class ScriptError(UrEnergyError):
    """Stops the running program; the message is sent to the clients."""


class Program(Protocol):
    """An uploaded program."""

    @property
    def name(self) -> str:
        """Name given by the client."""
        ...

    @property
    def needs_arm(self) -> bool:
        """Whether it can start only while the arm is able to move."""
        ...

    def step(self) -> bool:
        """Run one controller cycle; returns False when the program has ended.

        Raises:
            ScriptError: the program cannot continue.
            MotionRefusedError: the arm cannot execute a requested motion.
        """
        ...
