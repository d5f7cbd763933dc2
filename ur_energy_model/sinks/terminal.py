# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The live view: on a terminal until the user quits, or one line a second."""

from __future__ import annotations

import json
import math
import os
import re
import select
import sys
import termios
import threading
import time
import tty
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict
from datetime import datetime, timezone
from textwrap import wrap
from typing import Any, NamedTuple

from rich.console import Console, ConsoleDimensions, Group
from rich.live import Live
from rich.text import Text

from ur_energy_model.codec import plain
from ur_energy_model.energy.cycle_energies import UNACCOUNTED, without_units
from ur_energy_model.energy.live import Snapshot
from ur_energy_model.energy.meter import CONFIDENCE
from ur_energy_model.energy.topics import source_values
from ur_energy_model.errors import one_line, span, unsigned_zeros
from ur_energy_model.interrupts import leave_closed_terminal
from ur_energy_model.model.wall import MEASURED
from ur_energy_model.sinks.live_arm import LiveState, joint_rows, part_rows
from ur_energy_model.sinks.sink import NOT_OPEN, ArmReading, SinkStatus
from ur_energy_model.telemetry.clock import HOST_CLOCK
from ur_energy_model.typing import Self

SECONDS = 300  # length of the history of powers; no terminal shows more
LEAST_ENERGY = 1.0  # electrical energy from which on an efficiency is shown [J]
# widths of columns
NAME = 20
POWER = 9
ENERGY = 11
SMALL = 7
LEAST_BAR = 4
WIDEST = 120  # columns that are used of a wider terminal
FOOTER = "q or Ctrl-C: quit"
UNKNOWN = "-"
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_HEIGHTS = "▁▂▃▄▅▆▇█"


def bar(share: float, width: int, *, ascii_only: bool = False) -> str:
    """A horizontal bar of a share of 0 to 1, cut to it, padded to its width in columns."""
    share = min(max(share, 0.0), 1.0) if math.isfinite(share) else 0.0
    if ascii_only:
        return ("#" * round(share * width)).ljust(width)
    whole, eighths = divmod(round(8 * share * width), 8)
    return ("█" * whole + (_EIGHTHS[eighths] if eighths else "")).ljust(width)


def left_bar(share: float, width: int, *, ascii_only: bool = False) -> Text:
    """A bar like that of `bar`, which begins at the right end of its width and goes to the left.

    Blocks of eighths are filled from their left: the last one is drawn in reverse.
    """
    if ascii_only:
        return Text(bar(share, width, ascii_only=True)[::-1])
    share = min(max(share, 0.0), 1.0) if math.isfinite(share) else 0.0
    whole, eighths = divmod(round(8 * share * width), 8)
    blank = width - whole - (eighths > 0)
    line = Text(" " * blank)
    if eighths:
        line.append(_EIGHTHS[8 - eighths], "reverse")
    return line.append("█" * whole)


class BarAxis(NamedTuple):
    """The common axis of several bars of powers; zero is between its two parts."""

    left: int  # columns of negative powers
    right: int  # columns of positive powers
    low: float  # least power [W]
    high: float  # largest power [W]

    @classmethod
    def of(cls, lowest: float, largest: float, width: int) -> BarAxis:
        """The axis for powers from `lowest` to `largest` [W] in a width in columns."""
        high = _round_above(largest)
        if round(lowest, 1) >= 0.0:
            return cls(0, width, 0.0, high)
        low = _round_above(-lowest)
        left = min(max(round(width * low / (low + high)), 1), width // 2)
        return cls(left, width - left, -low, high)

    def bar(self, power: float, *, ascii_only: bool = False) -> Text:
        """The bar of a power [W]: from zero to the right, or to the left where it is negative."""
        watts_per_column = self.high / self.right
        if self.left:
            watts_per_column = max(watts_per_column, -self.low / self.left)
        if power < 0.0 and self.left:
            share = -power / (watts_per_column * self.left)
            line = left_bar(share, self.left, ascii_only=ascii_only)
            line.stylize("green")
            return line.append(" " * self.right)
        share = max(power, 0.0) / (watts_per_column * self.right)
        line = Text(" " * self.left)
        return line.append(bar(share, self.right, ascii_only=ascii_only), "cyan")

    def text(self) -> str:
        """Its ends, such as "-5 to 100 W"."""
        return f"{self.low:,.0f} to {self.high:,.0f} W"


def _round_above(power: float) -> float:
    """The smallest of 1, 2, 5, 10, 20, ... W that is not below a power [W]."""
    decade = 10.0 ** math.floor(math.log10(max(power, 1.0)))
    return decade * next((k for k in (1.0, 2.0, 5.0) if k * decade >= power), 10.0)


def sparkline(values: Sequence[float], width: int, *, ascii_only: bool = False) -> str:
    """The last values as columns between zero and their maximum, padded on the left."""
    last = values[-width:] if width > 0 else ()
    top = max((value for value in last if math.isfinite(value)), default=0.0) or 1.0
    heights = "_.-=+*%#" if ascii_only else _HEIGHTS
    columns = [
        heights[round(max(value / top, 0.0) * (len(heights) - 1))]
        if math.isfinite(value)
        else " "
        for value in last
    ]
    return "".join(columns).rjust(width)


def watts(value: float) -> str:
    """A power, such as "123.4 W"."""
    return unsigned_zeros(f"{value:.1f} W") if math.isfinite(value) else UNKNOWN


def joules(value: float) -> str:
    """An energy with four digits or more, such as "1,234 J" or "123.4 kJ"."""
    if not math.isfinite(value):
        return UNKNOWN
    if abs(value) < 1e4:
        return unsigned_zeros(f"{value:,.0f} J")
    factor, prefix = next(
        each for each in ((1e9, "G"), (1e6, "M"), (1e3, "k")) if abs(value) >= each[0]
    )
    return f"{value / factor:.{2 if abs(value) < 1e2 * factor else 1}f} {prefix}J"


def _shown_names(snapshot: Snapshot) -> tuple[str, ...]:
    """Channels of the whole arm with values of their own: a modelled total is the model's."""
    return ("total",) if snapshot.total_source.name == "modelled" else ("total", "model")


def _powers(snapshot: Snapshot) -> dict[str, float]:
    """Power [W] of the arm, of the model where it differs, and of the wall."""
    columns = snapshot.channels
    power = snapshot.power
    found = {name: float(power[columns.arm[name]]) for name in _shown_names(snapshot)}
    return {**found, "wall": float(columns.value_at_wall(power))}


def _energies(snapshot: Snapshot) -> dict[str, str]:
    """Energy of the same, with 95 % intervals, and where it comes from."""
    columns = snapshot.channels
    net = snapshot.since_reset.net
    source = snapshot.total_source
    total_std = float(columns.deviations_of_total(net))
    total = with_interval(float(net[columns.arm["total"]]), CONFIDENCE * total_std)
    found = {"total": f"{total} {source.name}"}
    if source.name == "mixed":
        found["total"] += f" ({100.0 * source.share:.1f} % of the time measured)"
    if "model" in _shown_names(snapshot):
        model_std = float(columns.deviations_of_model(net))
        found["model"] = with_interval(
            float(net[columns.arm["model"]]), CONFIDENCE * model_std
        )
    if "model" in found and (explained := _explained(snapshot)) is not None:
        found["model"] += f" (explains {100.0 * explained:.1f} %)"
    wall, wall_std = map(float, columns.at_wall(net))
    words = "" if columns.wall.source == MEASURED else " not measured"
    found["wall"] = f"{with_interval(wall, CONFIDENCE * wall_std)}{words}"
    return found


def _explained(snapshot: Snapshot) -> float | None:
    """Share of the measured energy since reset that the model explains; None without any."""
    return snapshot.channels.explained_share(snapshot.since_reset.net)


def with_interval(value: float, half: float) -> str:
    """An energy and half the width of its interval [J], which is never rounded to zero."""
    if not 0.0 < half < 1.0:
        return f"{joules(value)} ± {joules(half)}"
    if abs(value) >= 1e4:
        return f"{joules(value)} ± {joules(1.0)}"
    decimals = min(-math.floor(math.log10(half)), MOST_DECIMALS)
    least = 10.0**-decimals
    return unsigned_zeros(f"{value:,.{decimals}f} J ± {max(half, least):.{decimals}f} J")


MOST_DECIMALS = 3  # of an energy [J]


# The live view on a terminal of any size.


class LiveView:
    """Lays out what a live view shows, with the powers of the last seconds [W], oldest first."""

    def __init__(self, *, ascii_only: bool = False) -> None:
        self._ascii_only = ascii_only
        names = ("total", "model", "wall")
        self.history = {name: deque[float](maxlen=SECONDS) for name in names}
        self._lowest = self._largest = 0.0

    def add(self, state: LiveState) -> None:
        """Add a state whose powers are means over a second; nothing while no samples arrive."""
        if state.reading is not None and state.silence is None:
            powers = _powers(state.reading.snapshot)
            for name, past in self.history.items():
                past.append(powers.get(name, math.nan))

    def lines(self, state: LiveState, width: int, height: int) -> list[Text]:
        """At most `height` lines of at most `width` columns; blank lines are left out first."""
        width = min(width, WIDEST)
        reading = state.reading
        if reading is None:
            text = one_line(f"waiting for {state.source}: {state.silence}")
            blocks = [[Text(line, "yellow") for line in wrap(text, width)]]
        else:
            blocks = [
                [self._head(state, reading, width)],
                self._arm(reading.snapshot, width),
                self._joints(state, reading, width),
                _work(state, reading),
            ]
        problems = (state.arm_warning, "yellow"), (state.disk_problem, "bold red")
        blocks.append([Text(one_line(text), style) for text, style in problems if text])
        blocks.append([_sink(sink) for sink in state.sinks])
        shown = [line for block in blocks if block for line in (Text(), *block)][1:]
        if len(shown) > height - 1:
            shown = [line for block in blocks for line in block]
        shown = [*shown[: max(height - 1, 1)], Text(FOOTER, "dim")][:height]
        for line in shown:
            line.truncate(width, overflow="crop" if self._ascii_only else "ellipsis")
        return shown

    def _head(self, state: LiveState, reading: ArmReading, width: int) -> Text:
        robot = "" if reading.robot is None else reading.robot.name
        # An arm without serial number is called as its type.
        name = reading.arm if robot in ("", reading.arm) else f"{robot} {reading.arm}"
        line = Text.assemble((one_line(name), "bold"), "  ")
        if state.silence is None:
            line.append(reading.state.replace("_", " "), "green")
        else:
            line.append(f"no samples: {one_line(state.silence)}", "bold red")
        model = f"model: {one_line(reading.model)}"
        room = width - line.cell_len - 2
        if room > 20:
            model = model if len(model) <= room else f"…{model[-(room - 1) :]}"
            line.append(model.rjust(room + 2), "dim")
        return line

    def _arm(self, snapshot: Snapshot, width: int) -> list[Text]:
        lines = []
        powers = _powers(snapshot)
        for name, energy in _energies(snapshot).items():
            power = watts(powers[name]).rjust(POWER)
            line = Text.assemble((name.ljust(NAME), "bold"), power, "  ")
            room = width - line.cell_len - max(len(energy), 22) - 2
            if room >= LEAST_BAR:
                past = sparkline(
                    tuple(self.history[name]), room, ascii_only=self._ascii_only
                )
                line.append(past + "  ", "cyan")
            lines.append(line.append(energy))
        line = Text("standby".ljust(NAME) + watts(snapshot.standby).rjust(POWER))
        line.append(
            "  measured" if snapshot.standby_measured is not None else "  of the model"
        )
        if snapshot.bus_measured:
            unexplained = f"  unexplained {watts(snapshot.unexplained_mean)}"
            line.append(f"{unexplained} ± {watts(snapshot.unexplained_std)}")
        if snapshot.drifting:
            line.append("  drifting", "bold yellow")
        return [*lines, line]

    def _joints(self, state: LiveState, reading: ArmReading, width: int) -> list[Text]:
        rows = (*joint_rows(reading), *part_rows(reading))
        powers = [row.power for row in rows if math.isfinite(row.power)]
        self._lowest = min(self._lowest, *powers)
        self._largest = max(self._largest, *powers)
        fixed = NAME + POWER + ENERGY + 2
        # columns may be left out
        small = SMALL if width >= fixed + 2 * SMALL + LEAST_BAR else 0
        room = max(width - fixed - 2 * small, LEAST_BAR)
        axis = BarAxis.of(self._lowest, self._largest, room)
        limits = axis.text() if room >= 12 else ""
        heading = (
            f"{'joint':{NAME}}{'power':>{POWER}}  {limits:{room}}{'energy':>{ENERGY}}"
        )
        lines = [
            Text(
                heading + (f"{'effic.':>{small}}{'temp.':>{small}}" if small else ""),
                "dim",
            )
        ]
        for row in rows:
            name = one_line(row.name)[1 - NAME :]  # a prefix may be cut, the joint not
            quiet = "dim" if state.silence is not None else ""
            line = Text(name.ljust(NAME) + watts(row.power).rjust(POWER) + "  ", quiet)
            line.append_text(axis.bar(row.power, ascii_only=self._ascii_only))
            line.append(joules(row.energy).rjust(ENERGY))
            if small:
                known = abs(row.energy) >= LEAST_ENERGY and math.isfinite(row.efficiency)
                share = (
                    unsigned_zeros(f"{100.0 * row.efficiency:.0f} %")
                    if known
                    else UNKNOWN
                )
                degrees = math.nan if row.temperature is None else row.temperature
                heat = f"{degrees:.0f} °C" if math.isfinite(degrees) else UNKNOWN
                line.append(share.rjust(small) + heat.rjust(small))
            lines.append(line)
        return lines


def _work(state: LiveState, reading: ArmReading) -> list[Text]:
    """Cycle and connection."""
    cycle = state.cycle
    link = state.link
    done = Text("cycle: none completed yet", "dim")
    if cycle is not None:
        program = "" if cycle.program is None else f" of {one_line(cycle.program)}"
        energy = f"{joules(reading.energy_of(cycle))} in {span(cycle.duration)}"
        text = f"cycle {cycle.number}{program}: {energy}, peak {watts(cycle.peak_power)}"
        if not cycle.is_whole:
            text += f"; {span(cycle.unaccounted)} of it without samples"
        done = Text(text, "" if cycle.is_whole else "yellow")
    place = []
    if (now := state.program) is not None:
        at = "" if now.node == f"line {now.line}" else f", line {now.line}"
        text = (
            f"program: {now.node}{at}: {joules(now.energy)} in {_times(now.executions)}"
        )
        place = [Text(one_line(text))]
    lost = f"{link.losses.samples:,} samples lost"
    lost += f" in {span(link.losses.seconds)}" if link.losses.seconds > 0.0 else ""
    interruptions = f"{link.reconnects} interruption{'' if link.reconnects == 1 else 's'}"
    style = "yellow" if link.losses.samples or link.reconnects else "dim"
    return [
        done,
        *place,
        Text(f"{one_line(state.source)}: {lost}, {interruptions}", style),
    ]


def _sink(sink: SinkStatus) -> Text:
    parts = [f"{sink.delivered:,} sent"]
    style = "yellow" if sink.dropped else ""
    if sink.clients is not None:
        parts.insert(0, f"{sink.clients} client{'' if sink.clients == 1 else 's'}")
    if sink.problem is not None:
        parts = [one_line(sink.problem), f"{sink.waiting:,} waiting"]
        style = "dim" if sink.problem == NOT_OPEN else "bold red"
    parts += [f"{sink.dropped:,} dropped"] if sink.dropped else []
    return Text(f"{one_line(sink.name)}: {', '.join(parts)}", style)


USUAL_SIZE = ConsoleDimensions(80, 24)  # of a terminal that states none
PERIOD = 0.25  # time between two pictures [s]
PICTURES_A_SECOND = round(1.0 / PERIOD)


class Screen(ExitStack):
    """Fills the terminal with the live view, each `period` [s]; `q` quits.

    `state` has the state for a viewer of this name, powers since its previous one;
    signals set `stop`.
    """

    period = PERIOD

    def __init__(
        self, console: Console, state: Callable[[str], LiveState], stop: threading.Event
    ) -> None:
        super().__init__()
        self._console = console
        self._state = state
        self._stop = stop
        self._view = LiveView(ascii_only=console.options.ascii_only)
        self._live = Live(Text(), console=console, screen=True, auto_refresh=False)
        self._pictures = 0
        self._keyboard: int | None = None

    def __enter__(self) -> Self:
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


# LinePrinter: the live view where there is no terminal, one line a second.


class LinePrinter(ExitStack):
    """Prints one line each `period` [s] on stdout; `notice` receives problems as they begin.

    `state` and `stop` are as of `Screen`, `line` is the text of a state. While no samples
    come, two lines are `patience` [s] apart; `line` then states why, and `notice` does
    not.
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
        # The line of a silent source states it already.
        texts = state.problems[bool(self._patience) and state.silence is not None :]
        # What a problem is about: its numbers may change with time.
        problems = {re.sub(r"\d", "", text): text for text in texts}
        for subject, problem in problems.items():
            if subject not in self._noticed:
                self._notice(problem)
        self._noticed = frozenset(problems)

    def wait(self, seconds: float) -> bool:
        """Wait for a time; returns whether to quit."""
        return self._stop.wait(seconds)


def text_line(state: LiveState) -> str:
    """A state as a line for people."""
    reading = state.reading
    if reading is None:
        return one_line(f"{_clock(reading)} waiting for {state.source}: {state.silence}")
    power = _powers(reading.snapshot)
    energies = _energies(reading.snapshot)
    parts = [
        f"{name} {energy} at {watts(power[name])}" for name, energy in energies.items()
    ]
    powers = " ".join(f"{row.power:.1f}" for row in joint_rows(reading))
    others = ", ".join(f"{row.name} {row.power:.1f}" for row in part_rows(reading))
    parts.append(f"joints from the base {powers}, {others} W")
    if lost := state.link.losses.samples:
        parts.append(f"{lost:,} samples lost")
    doing = reading.state.replace("_", " ")
    if state.silence is not None:
        doing = f"no samples ({state.silence})"
    return one_line(f"{_clock(reading)} {reading.arm} {doing}: {', '.join(parts)}")


def last_text_line(state: LiveState) -> str:
    """What was counted up to the end, as a line for people."""
    reading = state.reading
    if reading is None:
        return text_line(state)
    energies = ", ".join(map(" ".join, _energies(reading.snapshot).items()))
    dearest = [
        f"{n.node} {joules(n.energy)} in {_times(n.executions)}" for n in state.nodes[:3]
    ]
    return one_line(
        f"{_clock(reading)} {reading.arm}: {energies} in "
        f"{span(reading.snapshot.since_reset.accounted)}, "
        f"{state.link.losses.samples:,} samples lost"
        f"{'; most: ' if dearest else ''}{', '.join(dearest)}"
    )


def _times(count: int) -> str:
    return "1 execution" if count == 1 else f"{count:,} executions"


def json_line(state: LiveState, ended: Mapping[str, Any] | None = None) -> str:
    """A state as one line of JSON; energies in J, powers in W, temperatures in °C.

    `ended` is what the line after the last sample has beside it; None while samples come.
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
        snapshot = reading.snapshot
        channels = snapshot.channels
        net = snapshot.since_reset.net
        content |= {
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
            "parts": [
                {"name": row.name, "power": row.power, "energy": row.energy}
                for row in part_rows(reading)
            ],
            "reset_time": snapshot.reset_time,
        }
        cycle = state.cycle
        now = state.program
        content["program"] = None if now is None else now._asdict()
        if ended is not None:
            content["nodes"] = [node._asdict() for node in state.nodes]
        content["cycle"] = None
        if cycle is not None:
            content["cycle"] = {
                "number": cycle.number,
                "program": cycle.program,
                **without_units(cycle.summary(channels)),
                UNACCOUNTED: cycle.unaccounted,
            }
    return json.dumps(plain({**content, **(ended or {})}), allow_nan=False)


def _moment(reading: ArmReading | None) -> datetime:
    """Host time of a reading, or now."""
    nanoseconds = HOST_CLOCK.stamp() if reading is None else reading.stamp
    return datetime.fromtimestamp(nanoseconds * 1e-9, timezone.utc)


def _clock(reading: ArmReading | None) -> str:
    return _moment(reading).astimezone().strftime("%H:%M:%S")
