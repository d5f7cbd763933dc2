"""Screen: the live view on a terminal, until the user quits."""

from __future__ import annotations

import os
import select
import sys
import termios
import threading
import tty
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import Any

from rich.console import Console, ConsoleDimensions, Group
from rich.live import Live
from rich.text import Text

from ur_energy_model.sinks.live_state import LiveState
from ur_energy_model.sinks.terminal.live_view import LiveView
from ur_energy_model.typing import Self

PERIOD = 0.25
"""Time between two pictures [s]."""
PICTURES_A_SECOND = round(1.0 / PERIOD)


class Screen:
    """Fills the terminal with the live view; `q` quits.

    Args:
        console: of the terminal.
        state: the state for a viewer of this name, powers since its previous one.
        stop: set by signals.

    Attributes:
        period: time between two updates [s].
    """

    period = PERIOD

    def __init__(
        self, console: Console, state: Callable[[str], LiveState], stop: threading.Event
    ) -> None:
        self._console, self._state, self._stop = console, state, stop
        self._view = LiveView(ascii_only=console.options.ascii_only)
        self._live = Live(Text(), console=console, screen=True, auto_refresh=False)
        self._held = ExitStack()
        self._pictures = 0
        self._keyboard: int | None = None

    def __enter__(self) -> Self:
        if sys.stdin is not None and sys.stdin.isatty():
            keyboard = sys.stdin.fileno()
            before = termios.tcgetattr(keyboard)
            self._held.callback(termios.tcsetattr, keyboard, termios.TCSADRAIN, before)
            tty.setcbreak(keyboard)
            self._keyboard = keyboard
        self._held.enter_context(self._live)
        return self

    def __exit__(self, *_: Any) -> None:
        self._held.close()

    def update(self) -> None:
        """Draw the present state."""
        if self._pictures % PICTURES_A_SECOND == 0:
            self._view.history.add(self._state("second"))
        self._pictures += 1
        # Not what COLUMNS and LINES say: a shell may have exported them before a resize.
        size = ConsoleDimensions(*os.get_terminal_size(self._console.file.fileno()))
        self._console.size = size
        lines = self._view.lines(self._state("picture"), size.width, size.height)
        self._live.update(Group(*lines), refresh=True)

    def wait(self, seconds: float) -> bool:
        """Wait for a time or a key; returns whether to quit."""
        if self._keyboard is None or self._stop.is_set():
            return self._stop.wait(seconds)
        if not select.select([self._keyboard], [], [], max(seconds, 0.0))[0]:
            return self._stop.is_set()
        keys = b""
        with suppress(OSError):
            keys = os.read(self._keyboard, 64)
        if not keys:  # the keyboard is gone
            self._keyboard = None
        return b"q" in keys.lower() or self._stop.is_set()
