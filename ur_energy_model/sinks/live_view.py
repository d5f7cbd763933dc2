# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""What the live view shows: an arm as lines of text, with bars, for a terminal of any size."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from textwrap import wrap
from typing import NamedTuple

from rich.text import Text

from ur_energy_model.energy.live import Snapshot
from ur_energy_model.energy.meter import CONFIDENCE
from ur_energy_model.errors import one_line, span, unsigned_zeros
from ur_energy_model.model.wall import MEASURED
from ur_energy_model.sinks.live_arm import LiveState, joint_rows, part_rows
from ur_energy_model.sinks.sink import NOT_OPEN, ArmReading, SinkStatus

SECONDS = 300
"""Length of the history of powers; no terminal shows more."""
LEAST_ENERGY = 1.0
"""Electrical energy from which on an efficiency is shown [J]."""
NAME = 20
POWER = 9
ENERGY = 11
SMALL = 7
LEAST_BAR = 4
"""Widths of the columns of the table [characters]: SMALL ones are left out where it is narrow."""
WIDEST = 120
"""Characters that are used of a wider terminal."""
MOST_DECIMALS = 3
"""Decimals of an energy [J]."""
FOOTER = "q or Ctrl-C: quit"
UNKNOWN = "-"
"""What stands for a number that is not known."""
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
    """A bar of a share of 0 to 1 that begins at the right end of its width and goes to the left.

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
    """The common axis of several bars of powers; zero is between its two parts.

    Attributes:
        left: width of the part with negative powers [characters].
        right: width of the part with positive powers [characters].
        low: least power [W].
        high: largest power [W].
    """

    left: int
    right: int
    low: float
    high: float

    @classmethod
    def of(cls, lowest: float, largest: float, width: int) -> BarAxis:
        """The axis that just holds some powers, with round ends.

        Args:
            lowest: of the powers [W].
            largest: of the powers [W].
            width: of both parts [characters].
        """
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
    for factor in (1.0, 2.0, 5.0):
        if factor * decade >= power:
            return factor * decade
    return 10.0 * decade


def sparkline(values: Sequence[float], width: int, *, ascii_only: bool = False) -> str:
    """The last values as columns between zero and their maximum, padded on the left."""
    last = values[-width:] if width > 0 else ()
    top = max((value for value in last if math.isfinite(value)), default=0.0) or 1.0
    heights = "_.-=+*%#" if ascii_only else _HEIGHTS
    columns = ""
    for value in last:
        if math.isfinite(value):
            columns += heights[round(max(value / top, 0.0) * (len(heights) - 1))]
        else:
            columns += " "
    return columns.rjust(width)


def watts(value: float) -> str:
    """A power, such as "123.4 W"."""
    return unsigned_zeros(f"{value:.1f} W") if math.isfinite(value) else UNKNOWN


def joules(value: float) -> str:
    """An energy with four digits or more, such as "1,234 J" or "123.4 kJ"."""
    if not math.isfinite(value):
        return UNKNOWN
    if abs(value) < 1e4:
        return unsigned_zeros(f"{value:,.0f} J")
    factor = 1e3
    prefix = "k"
    if abs(value) >= 1e9:
        factor = 1e9
        prefix = "G"
    elif abs(value) >= 1e6:
        factor = 1e6
        prefix = "M"
    decimals = 2 if abs(value) < 1e2 * factor else 1
    return f"{value / factor:.{decimals}f} {prefix}J"


def _shown_names(snapshot: Snapshot) -> tuple[str, ...]:
    """Channels of the whole arm with values of their own: a modelled total is the model's."""
    if snapshot.total_source.name == "modelled":
        return ("total",)
    return ("total", "model")


def arm_powers(snapshot: Snapshot) -> dict[str, float]:
    """Power [W] of the arm, of the model where it differs, and of the wall."""
    columns = snapshot.channels
    power = snapshot.power
    found = {name: float(power[columns.arm[name]]) for name in _shown_names(snapshot)}
    return {**found, "wall": float(columns.value_at_wall(power))}


def arm_energies(snapshot: Snapshot) -> dict[str, str]:
    """Energy of arm, model and wall since reset, with its 95 % interval and where it is from."""
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
        model = float(net[columns.arm["model"]])
        found["model"] = with_interval(model, CONFIDENCE * model_std)
        explained = columns.explained_share(net)
        if explained is not None:
            found["model"] += f" (explains {100.0 * explained:.1f} %)"
    wall, wall_std = map(float, columns.at_wall(net))
    found["wall"] = with_interval(wall, CONFIDENCE * wall_std)
    if columns.wall.source != MEASURED:
        found["wall"] += " not measured"
    return found


def with_interval(value: float, half: float) -> str:
    """An energy and half the width of its interval [J], which is never rounded to zero."""
    if not 0.0 < half < 1.0:
        return f"{joules(value)} ± {joules(half)}"
    if abs(value) >= 1e4:
        return f"{joules(value)} ± {joules(1.0)}"
    decimals = min(-math.floor(math.log10(half)), MOST_DECIMALS)
    least = 10.0**-decimals
    return unsigned_zeros(f"{value:,.{decimals}f} J ± {max(half, least):.{decimals}f} J")


class LiveView:
    """Lays out what a live view shows, on a terminal of any size.

    Attributes:
        history: powers of arm, model and wall in the last seconds [W], the oldest first.
    """

    def __init__(self, *, ascii_only: bool = False) -> None:
        """A view without history; `ascii_only` for terminals without block characters."""
        self._ascii_only = ascii_only
        names = ("total", "model", "wall")
        self.history = {name: deque[float](maxlen=SECONDS) for name in names}
        # Largest powers so far, so that the axis of the bars only grows.
        self._lowest = 0.0
        self._largest = 0.0

    def add(self, state: LiveState) -> None:
        """Add a state whose powers are means over a second; nothing while no samples arrive."""
        if state.reading is not None and state.silence is None:
            powers = arm_powers(state.reading.snapshot)
            for name, past in self.history.items():
                past.append(powers.get(name, math.nan))

    def lines(self, state: LiveState, width: int, height: int) -> list[Text]:
        """The view as lines of text.

        Args:
            state: what it shows.
            width: of the terminal; no line is longer [characters].
            height: of the terminal; there are at most as many lines, of which blank ones
                are left out first.
        """
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
        shown: list[Text] = []
        for block in blocks:
            if block and shown:
                shown.append(Text())
            shown += block
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
        powers = arm_powers(snapshot)
        for name, energy in arm_energies(snapshot).items():
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
    """Lines about the last cycle, the running program and the connection."""
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
    lines = [done]
    now = state.program
    if now is not None:
        at = "" if now.node == f"line {now.line}" else f", line {now.line}"
        spent = f"{joules(now.energy)} in {executions(now.executions)}"
        lines.append(Text(one_line(f"program: {now.node}{at}: {spent}")))
    lost = f"{link.losses.samples:,} samples lost"
    if link.losses.seconds > 0.0:
        lost += f" in {span(link.losses.seconds)}"
    interruptions = f"{link.reconnects} interruption{'' if link.reconnects == 1 else 's'}"
    style = "yellow" if link.losses.samples or link.reconnects else "dim"
    lines.append(Text(f"{one_line(state.source)}: {lost}, {interruptions}", style))
    return lines


def _sink(sink: SinkStatus) -> Text:
    """The line of a sink: its clients and readings, or its problem."""
    parts = [f"{sink.delivered:,} sent"]
    style = "yellow" if sink.dropped else ""
    if sink.clients is not None:
        parts.insert(0, f"{sink.clients} client{'' if sink.clients == 1 else 's'}")
    if sink.problem is not None:
        parts = [one_line(sink.problem), f"{sink.waiting:,} waiting"]
        style = "dim" if sink.problem == NOT_OPEN else "bold red"
    if sink.dropped:
        parts.append(f"{sink.dropped:,} dropped")
    return Text(f"{one_line(sink.name)}: {', '.join(parts)}", style)


def executions(count: int) -> str:
    """A number of executions of a part of the program, such as "1 execution"."""
    return "1 execution" if count == 1 else f"{count:,} executions"
