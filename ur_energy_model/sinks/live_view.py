# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The live view: an arm as lines of text, with bars, for a terminal of any size."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from textwrap import wrap
from typing import NamedTuple

from rich.text import Text

from ur_energy_model.energy.meter import CONFIDENCE
from ur_energy_model.energy.snapshot import Snapshot
from ur_energy_model.errors import counted, one_line, span, unsigned_zeros
from ur_energy_model.model.wall import MEASURED
from ur_energy_model.sinks.live_arm import JointRow, LiveState, joint_rows, part_rows
from ur_energy_model.sinks.sink import NOT_OPEN, ArmReading, SinkStatus

SECONDS = 300
"""Length of the history of powers; no terminal shows more."""
LEAST_ENERGY = 1.0
"""Electrical energy from which on an efficiency is shown [J]."""
# Widths of the columns of the table of joints [characters].
NAME = 20
POWER = 9
ENERGY = 11
SMALL = 7
"""Width of efficiency and temperature, which a narrow terminal does not show."""
LEAST_BAR = 4
LEAST_AXIS = 12
"""Least width of the bars with which the ends of their axis are written above them."""
ENERGIES = 22
"""Least width that is kept for an energy with its interval."""
LEAST_MODEL = 20
"""Least width in which the model is named behind the name of the arm."""
WIDEST = 120
"""Characters that are used of a wider terminal."""
MOST_DECIMALS = 3
"""Decimals of an energy [J]."""
FOOTER = "q or Ctrl-C: quit"
UNKNOWN = "-"
"""Text in place of a number that is not known."""
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_HEIGHTS = "▁▂▃▄▅▆▇█"
_ASCII_HEIGHTS = "_.-=+*%#"


def bar(share: float, width: int, *, ascii_only: bool = False) -> str:
    """A horizontal bar as text.

    Args:
        share: filled share of the width, which is cut to 0 to 1; NaN is 0.
        width: width of the text, which is padded with blanks [characters].
        ascii_only: whether the bar is made of "#", in place of blocks of eighths.
    """
    share = _cut_share(share)
    if ascii_only:
        return ("#" * round(share * width)).ljust(width)
    whole, eighths = divmod(round(8 * share * width), 8)
    blocks = "█" * whole
    if eighths:
        blocks += _EIGHTHS[eighths]
    return blocks.ljust(width)


def _cut_share(share: float) -> float:
    """A share cut to 0 to 1; 0 for NaN and infinity."""
    if not math.isfinite(share):
        return 0.0
    return min(max(share, 0.0), 1.0)


def left_bar(share: float, width: int, *, ascii_only: bool = False) -> Text:
    """A bar that begins at the right end of its width and goes to the left.

    Blocks of eighths are filled from their left, so that the leftmost block of the bar is
    the complement of the wanted one, drawn in reverse.

    Args:
        share: filled share of the width, which is cut to 0 to 1; NaN is 0.
        width: width of the text, which is padded with blanks [characters].
        ascii_only: whether the bar is made of "#", in place of blocks of eighths.
    """
    if ascii_only:
        return Text(bar(share, width, ascii_only=True)[::-1])
    whole, eighths = divmod(round(8 * _cut_share(share) * width), 8)
    if not eighths:
        return Text(" " * (width - whole) + "█" * whole)
    line = Text(" " * (width - whole - 1))
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
            lowest: lowest of the powers that the axis holds [W].
            largest: largest of the powers that the axis holds [W].
            width: width of both parts [characters].
        """
        high = _round_above(largest)
        if round(lowest, 1) >= 0.0:
            return cls(0, width, 0.0, high)
        low = _round_above(-lowest)
        left = min(max(round(width * low / (low + high)), 1), width // 2)
        return cls(left, width - left, -low, high)

    def bar(self, power: float, *, ascii_only: bool = False) -> Text:
        """The bar of a power [W], from zero to the right, or to the left if negative."""
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
        """The ends of the axis, such as "-5 to 100 W"."""
        return f"{self.low:,.0f} to {self.high:,.0f} W"


def _round_above(power: float) -> float:
    """The smallest of 1, 2, 5, 10, 20, ... W that is not below a power [W]."""
    decade = 10.0 ** math.floor(math.log10(max(power, 1.0)))
    for factor in (1.0, 2.0, 5.0):
        if factor * decade >= power:
            return factor * decade
    return 10.0 * decade


def sparkline(values: Sequence[float], width: int, *, ascii_only: bool = False) -> str:
    """A curve as text: a character for each value, higher for larger values.

    Args:
        values: values of which the last ones are shown; the largest shown value has the
            full height, zero and negative values the least height, NaN a blank.
        width: width of the text, which is padded on the left [characters].
        ascii_only: whether the heights are ASCII characters, in place of blocks.
    """
    if width <= 0:
        return ""
    last = values[-width:]
    finite = [value for value in last if math.isfinite(value)]
    top = max(finite, default=0.0) or 1.0
    heights = _ASCII_HEIGHTS if ascii_only else _HEIGHTS
    highest = len(heights) - 1
    columns = ""
    for value in last:
        if math.isfinite(value):
            columns += heights[round(max(value / top, 0.0) * highest)]
        else:
            columns += " "
    return columns.rjust(width)


def watts(value: float) -> str:
    """A power, such as "123.4 W"; UNKNOWN for NaN and infinity."""
    if not math.isfinite(value):
        return UNKNOWN
    return unsigned_zeros(f"{value:.1f} W")


def joules(value: float) -> str:
    """An energy [J] with four digits or more, such as "1,234 J" or "123.4 kJ".

    UNKNOWN for NaN and infinity.
    """
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
    """Channels of the arm that are shown: total, and model where it is another value."""
    if snapshot.total_source.name == "modelled":
        return ("total",)
    return ("total", "model")


def arm_powers(snapshot: Snapshot) -> dict[str, float]:
    """Powers of the whole arm [W], means since the previous snapshot.

    Returns:
        "total", "model" unless nothing of the total was measured, and "wall".
    """
    columns = snapshot.channels
    power = snapshot.power
    found = {name: float(power[columns.arm[name]]) for name in _shown_names(snapshot)}
    return {**found, "wall": float(columns.value_at_wall(power))}


def arm_energies(snapshot: Snapshot) -> dict[str, str]:
    """Energies of the whole arm since reset as text, with 95 % intervals and sources.

    Returns:
        "total", "model" unless nothing of the total was measured, and "wall".
    """
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
    """An energy with its interval as text; the interval is never rounded to zero.

    Args:
        value: the energy [J].
        half: half the width of the interval [J].
    """
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
        history: powers of "total", "model" and "wall" in the last SECONDS seconds [W],
            the oldest first; NaN where they were not known.
    """

    def __init__(self, *, ascii_only: bool = False) -> None:
        """A view without history.

        Args:
            ascii_only: whether the terminal has no block characters.
        """
        self._ascii_only = ascii_only
        names = ("total", "model", "wall")
        self.history = {name: deque[float](maxlen=SECONDS) for name in names}
        # Largest powers so far, so that the axis of the bars only grows.
        self._lowest = 0.0
        self._largest = 0.0

    def add(self, state: LiveState) -> None:
        """Add a state whose powers are means over a second, if samples arrive."""
        if state.reading is not None and state.silence is None:
            powers = arm_powers(state.reading.snapshot)
            for name, past in self.history.items():
                past.append(powers.get(name, math.nan))

    def lines(self, state: LiveState, width: int, height: int) -> list[Text]:
        """The view as lines of text.

        Args:
            state: state that the view shows.
            width: width of the terminal; no line is longer [characters].
            height: height of the terminal, and most lines; the last one is FOOTER. Blank
                lines between blocks are left out first, then lines from the end.
        """
        width = min(width, WIDEST)
        blocks = self._blocks(state, width)
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

    def _blocks(self, state: LiveState, width: int) -> list[list[Text]]:
        """The lines of the view by subject: arm, joints, work, problems and sinks.

        Args:
            state: state that the lines show.
            width: width of the terminal [characters].
        """
        reading = state.reading
        if reading is None:
            text = one_line(f"waiting for {state.source}: {state.silence}")
            blocks = [[Text(line, "yellow") for line in wrap(text, width)]]
        else:
            blocks = [
                [_head(state, reading, width)],
                self._arm(reading.snapshot, width),
                self._joints(state, reading, width),
                _work(state, reading),
            ]
        problems: list[Text] = []
        if state.arm_warning is not None:
            problems.append(Text(one_line(state.arm_warning), "yellow"))
        if state.disk_problem is not None:
            problems.append(Text(one_line(state.disk_problem), "bold red"))
        sinks = [_sink(sink) for sink in state.sinks]
        return [*blocks, problems, sinks]

    def _arm(self, snapshot: Snapshot, width: int) -> list[Text]:
        """Powers, their history and energies of arm, model and wall; and standby.

        Args:
            snapshot: snapshot of the arm.
            width: width of the terminal [characters]; a narrow one does not show the
                history.
        """
        lines: list[Text] = []
        powers = arm_powers(snapshot)
        for name, energy in arm_energies(snapshot).items():
            power = watts(powers[name]).rjust(POWER)
            line = Text.assemble((name.ljust(NAME), "bold"), power, "  ")
            room = width - line.cell_len - max(len(energy), ENERGIES) - 2
            if room >= LEAST_BAR:
                history = tuple(self.history[name])
                past = sparkline(history, room, ascii_only=self._ascii_only)
                line.append(past + "  ", "cyan")
            lines.append(line.append(energy))
        line = Text("standby".ljust(NAME) + watts(snapshot.standby).rjust(POWER))
        source = "of the model"
        if snapshot.standby_measured is not None:
            source = "measured"
        line.append(f"  {source}")
        if snapshot.bus_measured:
            unexplained = f"  unexplained {watts(snapshot.unexplained_mean)}"
            line.append(f"{unexplained} ± {watts(snapshot.unexplained_std)}")
        if snapshot.drifting:
            line.append("  drifting", "bold yellow")
        return [*lines, line]

    def _joints(self, state: LiveState, reading: ArmReading, width: int) -> list[Text]:
        """The table of joints and other parts of the arm, with bars of their powers.

        Args:
            state: whether samples arrive; old powers are dim.
            reading: reading of the arm.
            width: width of the terminal [characters]; a narrow one does not show
                efficiency and temperature.
        """
        rows = (*joint_rows(reading), *part_rows(reading))
        powers = [row.power for row in rows if math.isfinite(row.power)]
        self._lowest = min(self._lowest, *powers)
        self._largest = max(self._largest, *powers)
        fixed = NAME + POWER + ENERGY + 2
        detailed = width >= fixed + 2 * SMALL + LEAST_BAR
        details = 2 * SMALL if detailed else 0
        room = max(width - fixed - details, LEAST_BAR)
        axis = BarAxis.of(self._lowest, self._largest, room)
        limits = axis.text() if room >= LEAST_AXIS else ""
        heading = (
            f"{'joint':{NAME}}{'power':>{POWER}}  {limits:{room}}{'energy':>{ENERGY}}"
        )
        if detailed:
            heading += f"{'effic.':>{SMALL}}{'temp.':>{SMALL}}"
        lines = [Text(heading, "dim")]
        style = "" if state.silence is None else "dim"
        for row in rows:
            name = one_line(row.name)[1 - NAME :]  # a prefix may be cut, the joint not
            line = Text(name.ljust(NAME) + watts(row.power).rjust(POWER) + "  ", style)
            line.append_text(axis.bar(row.power, ascii_only=self._ascii_only))
            line.append(joules(row.energy).rjust(ENERGY))
            if detailed:
                line.append(_details(row))
            lines.append(line)
        return lines


def _head(state: LiveState, reading: ArmReading, width: int) -> Text:
    """The first line: the arm, what it does or why no samples come, and the model.

    Args:
        state: whether samples arrive.
        reading: reading of the arm.
        width: width of the terminal [characters]; where the model is too long, its end is
            shown.
    """
    name = reading.arm
    robot = reading.robot
    if robot is not None and robot.name != name:  # without serial number they are equal
        name = f"{robot.name} {name}"
    line = Text.assemble((one_line(name), "bold"), "  ")
    if state.silence is None:
        line.append(reading.state.replace("_", " "), "green")
    else:
        line.append(f"no samples: {one_line(state.silence)}", "bold red")
    model = f"model: {one_line(reading.model)}"
    room = width - line.cell_len - 2
    if room > LEAST_MODEL:
        if len(model) > room:
            model = f"…{model[-(room - 1) :]}"
        line.append(model.rjust(room + 2), "dim")
    return line


def _details(row: JointRow) -> str:
    """Efficiency and temperature of a joint, in columns of SMALL characters."""
    share = UNKNOWN
    if abs(row.energy) >= LEAST_ENERGY and math.isfinite(row.efficiency):
        share = unsigned_zeros(f"{100.0 * row.efficiency:.0f} %")
    degrees = UNKNOWN
    if row.temperature is not None and math.isfinite(row.temperature):
        degrees = f"{row.temperature:.0f} °C"
    return share.rjust(SMALL) + degrees.rjust(SMALL)


def _work(state: LiveState, reading: ArmReading) -> list[Text]:
    """Lines about the last cycle, the running program and the connection."""
    lines = [_last_cycle(state, reading)]
    now = state.program
    if now is not None:
        place = now.node
        line = f"line {now.line}"
        if place != line:
            place = f"{place}, {line}"
        spent = f"{joules(now.energy)} in {counted(now.executions, 'execution')}"
        lines.append(Text(one_line(f"program: {place}: {spent}")))
    link = state.link
    lost = f"{link.losses.samples:,} samples lost"
    if link.losses.seconds > 0.0:
        lost += f" in {span(link.losses.seconds)}"
    interruptions = counted(link.reconnects, "interruption")
    style = "yellow" if link.losses.samples or link.reconnects else "dim"
    lines.append(Text(f"{one_line(state.source)}: {lost}, {interruptions}", style))
    return lines


def _last_cycle(state: LiveState, reading: ArmReading) -> Text:
    """The line of the last cycle; yellow if some of its samples are missing."""
    cycle = state.cycle
    if cycle is None:
        return Text("cycle: none completed yet", "dim")
    title = f"cycle {cycle.number}"
    if cycle.program is not None:
        title += f" of {one_line(cycle.program)}"
    energy = f"{joules(reading.energy_of(cycle))} in {span(cycle.duration)}"
    text = f"{title}: {energy}, peak {watts(cycle.peak_power)}"
    if cycle.is_whole:
        return Text(text)
    return Text(f"{text}; {span(cycle.unaccounted)} of it without samples", "yellow")


def _sink(sink: SinkStatus) -> Text:
    """The line of a sink: its clients and readings, or its problem."""
    style = "yellow" if sink.dropped else ""
    parts: list[str] = []
    if sink.problem is not None:
        parts = [one_line(sink.problem), f"{sink.waiting:,} waiting"]
        style = "dim" if sink.problem == NOT_OPEN else "bold red"
    else:
        if sink.clients is not None:
            parts.append(counted(sink.clients, "client"))
        parts.append(f"{sink.delivered:,} sent")
    if sink.dropped:
        parts.append(f"{sink.dropped:,} dropped")
    return Text(f"{one_line(sink.name)}: {', '.join(parts)}", style)
