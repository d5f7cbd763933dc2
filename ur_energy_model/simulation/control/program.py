"""Programs that clients upload to the simulated controller."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from ur_energy_model.simulation.control.control_box import ControlBox


class Program(Protocol):
    """A program that a client uploaded."""

    @property
    def name(self) -> str:
        """Name it was sent with."""
        ...

    @property
    def needs_arm(self) -> bool:
        """Whether it starts only where the arm can move."""
        ...

    def step(self, box: ControlBox) -> bool:
        """One controller cycle; False where the program has ended.

        Raises:
            ScriptError: it cannot go on.
            MotionRefusedError: the arm cannot do what it asks.
        """
        ...


class ScriptError(Exception):
    """A running program that had to stop; the message is for the client."""
