# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Where the live view is shown: a terminal until the user quits, or one line a second."""

from __future__ import annotations

import json
import os
import re
import select
import sys
import termios
import threading
import time
import tty
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import asdict
from datetime import datetime, timezone
from typing import Any

from rich.console import Console, ConsoleDimensions, Group
from rich.live import Live
from rich.text import Text

from ur_energy_model.codec import plain
from ur_energy_model.energy.cycle_energies import UNACCOUNTED, Cycle, without_units
from ur_energy_model.energy.topics import source_values
from ur_energy_model.errors import counted, one_line, span
from ur_energy_model.interrupts import leave_closed_terminal
from ur_energy_model.sinks.live_arm import LiveState, joint_rows, part_rows
from ur_energy_model.sinks.live_view import (
    LiveView,
    arm_energies,
    arm_powers,
    joules,
    watts,
)
from ur_energy_model.sinks.sink import ArmReading
from ur_energy_model.telemetry.clock import HOST_CLOCK
from ur_energy_model.typing import Self

USUAL_SIZE = ConsoleDimensions(80, 24)
"""Size of a terminal that states none [columns, lines]."""
PERIOD = 0.25
"""Time between two pictures [s]."""
PICTURES_A_SECOND = round(1.0 / PERIOD)


class Screen(ExitStack):
    """Fills the terminal with the live view; the key `q` quits. A context manager.

    Attributes:
        period: time between two updates [s].
    """

    period = PERIOD

    def __init__(
        self, console: Console, state: Callable[[str], LiveState], stop: threading.Event
    ) -> None:
        """A screen that is not shown yet.

        Args:
            console: console of the terminal.
            state: returns the state for a viewer of a name; powers are means since its
                previous state.
            stop: event that signals set, and this view where the terminal is closed.
        """
        super().__init__()
        self._console = console
        self._state = state
        self._stop = stop
        self._view = LiveView(ascii_only=console.options.ascii_only)
        self._live = Live(Text(), console=console, screen=True, auto_refresh=False)
        self._pictures = 0
        self._keyboard: int | None = None

    def __enter__(self) -> Self:
        """Read single keys from the keyboard, and fill the terminal."""
        if sys.stdin is not None and sys.stdin.isatty():
            keyboard = sys.stdin.fileno()
            before = termios.tcgetattr(keyboard)
            self.callback(_restore, keyboard, before)
            tty.setcbreak(keyboard)
            self._keyboard = keyboard
        self.enter_context(self._live)
        return self

    def update(self) -> None:
        """Draw the present state."""
        if self._pictures % PICTURES_A_SECOND == 0:
            self._view.add(self._state("second"))
        self._pictures += 1
        # Not COLUMNS and LINES: a shell may have exported them before a resize.
        try:
            columns, lines = os.get_terminal_size(self._console.file.fileno())
            # A terminal of a container or a script may have no size.
            size = ConsoleDimensions(
                columns or USUAL_SIZE.width, lines or USUAL_SIZE.height
            )
            self._console.size = size
            picture = self._view.lines(self._state("picture"), size.width, size.height)
            self._live.update(Group(*picture), refresh=True)
        except OSError:
            if not leave_closed_terminal():
                raise
            self._stop.set()

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


def _restore(keyboard: int, attributes: list[Any]) -> None:
    """Set the attributes of a terminal, unless it is closed."""
    with suppress(termios.error):
        termios.tcsetattr(keyboard, termios.TCSADRAIN, attributes)


class LinePrinter(ExitStack):
    """Prints the live view on stdout where there is no terminal, line by line.

    Attributes:
        period: time between two updates [s].
    """

    period = 1.0

    def __init__(
        self,
        state: Callable[[str], LiveState],
        stop: threading.Event,
        line: Callable[[LiveState], str],
        notice: Callable[[str], None],
        patience: float = 0.0,
    ) -> None:
        """A printer that has printed nothing yet.

        Args:
            state: returns the state for a viewer of a name; powers are means since its
                previous state.
            stop: event that signals set.
            line: text of a state.
            notice: receives each problem once, as it begins. With a patience it does not
                receive the reason why no samples come, which `line` states.
            patience: shortest time between two lines while no samples come [s].
        """
        super().__init__()
        self._state = state
        self._stop = stop
        self._line = line
        self._notice = notice
        self._noticed: frozenset[str] = frozenset()
        self._patience = patience
        self._silent_line = float("-inf")

    def update(self) -> None:
        """Print the present state."""
        state = self._state("second")
        now = time.monotonic()
        if state.silence is None:
            self._silent_line = float("-inf")
        if now >= self._silent_line + self._patience:
            print(self._line(state), flush=True)
            if state.silence is not None:
                self._silent_line = now
        self._notice_problems(state)

    def _notice_problems(self, state: LiveState) -> None:
        """Pass each problem on that the previous state did not have.

        Problems are compared without their digits, because numbers in them change with
        time.
        """
        problems = state.problems
        if self._patience and state.silence is not None:
            problems = problems[1:]  # the silence, which the printed line states
        subjects: set[str] = set()
        for problem in problems:
            subject = re.sub(r"\d", "", problem)
            if subject not in self._noticed and subject not in subjects:
                self._notice(problem)
            subjects.add(subject)
        self._noticed = frozenset(subjects)

    def wait(self, seconds: float) -> bool:
        """Wait for a time; returns whether to quit."""
        return self._stop.wait(seconds)


def text_line(state: LiveState) -> str:
    """A state as a line for people: energies, powers of joints and parts, and losses."""
    reading = state.reading
    if reading is None:
        return one_line(f"{_clock(reading)} waiting for {state.source}: {state.silence}")
    power = arm_powers(reading.snapshot)
    energies = arm_energies(reading.snapshot)
    parts: list[str] = []
    for name, energy in energies.items():
        parts.append(f"{name} {energy} at {watts(power[name])}")
    powers = " ".join(f"{row.power:.1f}" for row in joint_rows(reading))
    others = ", ".join(f"{row.name} {row.power:.1f}" for row in part_rows(reading))
    parts.append(f"joints from the base {powers}, {others} W")
    lost = state.link.losses.samples
    if lost:
        parts.append(f"{lost:,} samples lost")
    doing = reading.state.replace("_", " ")
    if state.silence is not None:
        doing = f"no samples ({state.silence})"
    return one_line(f"{_clock(reading)} {reading.arm} {doing}: {', '.join(parts)}")


def last_text_line(state: LiveState) -> str:
    """The energies at the end and the dearest parts of the program, for people."""
    reading = state.reading
    if reading is None:
        return text_line(state)
    energies = ", ".join(map(" ".join, arm_energies(reading.snapshot).items()))
    accounted = span(reading.snapshot.since_reset.accounted)
    lost = f"{state.link.losses.samples:,} samples lost"
    text = f"{_clock(reading)} {reading.arm}: {energies} in {accounted}, {lost}"
    dearest: list[str] = []
    for node in state.nodes[:3]:
        spent = f"{joules(node.energy)} in {counted(node.executions, 'execution')}"
        dearest.append(f"{node.node} {spent}")
    if dearest:
        text += f"; most: {', '.join(dearest)}"
    return one_line(text)


def json_line(state: LiveState, ended: Mapping[str, Any] | None = None) -> str:
    """A state as one line of JSON; energies in J, powers in W, temperatures in °C.

    Args:
        state: what is written.
        ended: what the line after the last sample has beside the state; None while
            samples come.
    """
    reading = state.reading
    link = state.link
    content: dict[str, Any] = {
        "time": _moment(reading).isoformat(),
        "source": state.source,
        "ended": ended is not None,
        "connected": state.silence is None,
        "problem": state.silence,
        "samples_lost": link.losses.samples,
        "seconds_lost": link.losses.seconds,
        "interruptions": link.reconnects,
        "disk_problem": state.disk_problem,
        "warnings": [] if state.arm_warning is None else [state.arm_warning],
        "sinks": [asdict(sink) for sink in state.sinks],
    }
    if reading is not None:
        content |= _reading_json(reading)
        now = state.program
        content["program"] = None if now is None else now._asdict()
        if ended is not None:
            content["nodes"] = [node._asdict() for node in state.nodes]
        content["cycle"] = _cycle_json(state.cycle, reading)
    if ended is not None:
        content |= ended
    return json.dumps(plain(content), allow_nan=False)


def _reading_json(reading: ArmReading) -> dict[str, Any]:
    """Entries of JSON about an arm: model, powers [W], energies [J] and times [s]."""
    snapshot = reading.snapshot
    channels = snapshot.channels
    net = snapshot.since_reset.net
    parts = [
        {"name": row.name, "power": row.power, "energy": row.energy}
        for row in part_rows(reading)
    ]
    return {
        "arm": reading.arm,
        "robot": None if reading.robot is None else reading.robot.name,
        "model": reading.model,
        "state": reading.state,
        "samples": snapshot.samples,
        "accounted_s": snapshot.since_reset.accounted,
        "unaccounted_s": snapshot.since_reset.unaccounted,
        "values": reading.numbers(),
        "total_energy_std": float(channels.deviations_of_total(net)),
        "model_energy_std": float(channels.deviations_of_model(net)),
        "unexplained_energy_std": float(channels.deviations_of_unexplained(net)),
        **source_values(snapshot.since_reset, channels),
        "joints": [row._asdict() for row in joint_rows(reading)],
        "parts": parts,
        "reset_time": snapshot.reset_time,
    }


def _cycle_json(cycle: Cycle | None, reading: ArmReading) -> dict[str, Any] | None:
    """Entry of JSON about the last cycle; None before the first one."""
    if cycle is None:
        return None
    return {
        "number": cycle.number,
        "program": cycle.program,
        **without_units(cycle.summary(reading.snapshot.channels)),
        UNACCOUNTED: cycle.unaccounted,
    }


def _moment(reading: ArmReading | None) -> datetime:
    """Host time of a reading, or now."""
    nanoseconds = HOST_CLOCK.stamp() if reading is None else reading.stamp
    return datetime.fromtimestamp(nanoseconds * 1e-9, timezone.utc)


def _clock(reading: ArmReading | None) -> str:
    """Local time of a reading, or now."""
    return _moment(reading).astimezone().strftime("%H:%M:%S")
