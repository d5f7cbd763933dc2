"""LiveView: the lines of the live view for a terminal of any size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from textwrap import wrap

from rich.text import Text

from ur_energy_model.energy.meter import CONFIDENCE
from ur_energy_model.sinks.arm_reading import ArmReading
from ur_energy_model.sinks.joint_row import joint_rows, part_rows
from ur_energy_model.sinks.live_state import LiveState
from ur_energy_model.sinks.sink import NOT_OPEN, SinkStatus
from ur_energy_model.sinks.terminal.bars import bar, end_of_scale, sparkline
from ur_energy_model.sinks.terminal.history import PowerHistory
from ur_energy_model.sinks.terminal.quantities import (
    UNKNOWN,
    degrees,
    joules,
    percent,
    watts,
)
from ur_energy_model.terminal_text import one_line, span

LEAST_ENERGY = 1.0
"""Electrical energy from which on an efficiency is shown [J]."""
NAME, POWER, ENERGY, SMALL = 20, 9, 11, 7
"""Widths of columns."""
LEAST_BAR = 4
WIDEST = 120
"""Columns that are used of a wider terminal."""
FOOTER = "q or Ctrl-C: quit"


@dataclass
class LiveView:
    """Lays out what a live view shows.

    Attributes:
        ascii_only: whether the terminal has no block characters.
        history: of the powers.
    """

    ascii_only: bool = False
    history: PowerHistory = field(default_factory=PowerHistory)

    def lines(self, state: LiveState, width: int, height: int) -> list[Text]:
        """At most `height` lines of at most `width` columns.

        Blank lines are left out first, then the lines about sinks become one.
        """
        width = min(width, WIDEST)
        blocks = [
            list(self._head(state, width)),
            list(self._arm(state.reading, width)),
            list(self._joints(state, width)),
            list(_below(state)),
            list(_sinks(state.sinks)),
        ]
        shown = _joined([block for block in blocks if block], Text())
        if len(shown) > height - 1:
            shown = _joined([block for block in blocks if block])
        if len(shown) > height - 1:
            blocks[-1] = [_sinks_together(state.sinks)] if state.sinks else []
            shown = _joined([block for block in blocks if block])
        shown = [*shown[: max(height - 1, 1)], Text(FOOTER, "dim")][:height]
        for line in shown:
            line.truncate(width, overflow="crop" if self.ascii_only else "ellipsis")
        return shown

    def _head(self, state: LiveState, width: int) -> Iterator[Text]:
        reading = state.reading
        if reading is None:
            text = one_line(f"waiting for {state.source}: {state.silence}")
            yield from (Text(line, "yellow") for line in wrap(text, width))
            return
        robot = "" if reading.robot is None else f"{reading.robot.name} "
        if robot.strip() == reading.arm:  # an arm without serial number is called as its type
            robot = ""
        left = Text.assemble((one_line(robot + reading.arm), "bold"), "  ")
        if state.silence is None:
            left.append(reading.snapshot.state.name.lower().replace("_", " "), "green")
        else:
            left.append(f"no samples: {one_line(state.silence)}", "bold red")
        model = f"model: {one_line(reading.model)}"
        room = width - left.cell_len - 2
        if room >= len(model):
            left.append(model.rjust(room + 2), "dim")
        elif room > 20:
            left.append("  " + "…" + model[-(room - 1) :], "dim")
        yield left

    def _arm(self, reading: ArmReading | None, width: int) -> Iterator[Text]:
        if reading is None:
            return
        snapshot = reading.snapshot
        arm, net = snapshot.channels.arm, snapshot.since_reset.net
        half = CONFIDENCE * snapshot.channels.deviations(net)[1]
        energy = f"{joules(float(net[arm['total']]))} ± {joules(half)}"
        power = float(snapshot.power[arm["total"]])
        yield self._supply(("total", power, energy), self.history.total, width)
        if snapshot.bus_measured:
            energy = f"{joules(float(net[arm['bus']]))} measured"
            power = float(snapshot.power[arm["bus"]])
            yield self._supply(("bus", power, energy), self.history.bus, width)
        line = Text.assemble("standby".ljust(NAME), watts(snapshot.standby).rjust(POWER))
        line.append("  measured" if snapshot.standby_measured is not None else "  of the model")
        if snapshot.bus_measured:
            residual = f"  residual {watts(snapshot.residual_mean)}"
            line.append(f"{residual} ± {watts(snapshot.residual_std)}")
        if snapshot.drifting:
            line.append("  drifting", "bold yellow")
        yield line

    def _supply(self, values: tuple[str, float, str], past: Sequence[float], width: int) -> Text:
        """Name, power and energy of the whole arm, and the power of the past seconds."""
        name, power, energy = values
        line = Text.assemble((name.ljust(NAME), "bold"), watts(power).rjust(POWER), "  ")
        room = width - line.cell_len - max(len(energy), 22) - 2
        if room >= LEAST_BAR:
            line.append(sparkline(past, room, ascii_only=self.ascii_only) + "  ", "cyan")
        line.append(energy)
        return line

    def _joints(self, state: LiveState, width: int) -> Iterator[Text]:
        if state.reading is None:
            return
        rows = joint_rows(state.reading)
        for row in rows:
            self.history.observe(row.power)
        fixed = NAME + POWER + ENERGY + 2
        small = SMALL if width >= fixed + 2 * SMALL + LEAST_BAR else 0  # columns may be left out
        room = max(width - fixed - 2 * small, LEAST_BAR)
        scale = end_of_scale(self.history.largest)
        quiet = "dim" if state.silence is not None else ""
        limits = f"0 to {scale:,.0f} W" if room >= 12 else ""
        cells = ["joint".ljust(NAME), "power".rjust(POWER), "  ", limits.ljust(room)]
        cells += [
            "energy".rjust(ENERGY),
            *(name.rjust(small) for name in ("effic.", "temp.") if small),
        ]
        yield Text("".join(cells), "dim")
        for row in (*rows, *part_rows(state.reading)):
            ratio = percent(row.efficiency) if abs(row.energy) >= LEAST_ENERGY else UNKNOWN
            name = one_line(row.name)[1 - NAME :]  # a prefix may be cut, the joint not
            line = Text(name.ljust(NAME) + watts(row.power).rjust(POWER) + "  ", quiet)
            filled = bar(abs(row.power) / scale, room, ascii_only=self.ascii_only)
            line.append(filled, "green" if row.power < 0.0 else "cyan")
            line.append(joules(row.energy).rjust(ENERGY))
            if small:
                line.append(ratio.rjust(small) + degrees(row.temperature).rjust(small))
            yield line


def _joined(blocks: Sequence[Sequence[Text]], between: Text | None = None) -> list[Text]:
    """The lines of all blocks, with a blank line between them if there is one."""
    out: list[Text] = []
    for block in blocks:
        if out and between is not None:
            out.append(between.copy())
        out.extend(line.copy() for line in block)
    return out


def _below(state: LiveState) -> Iterator[Text]:
    """Cycle, counters and connection."""
    reading, cycle, link = state.reading, state.cycle, state.link
    if reading is not None:
        if cycle is not None:
            energy = float(cycle.reading.net[reading.snapshot.channels.arm["total"]])
            program = "" if cycle.program is None else f" of {one_line(cycle.program)}"
            yield Text(
                f"cycle {cycle.number}{program}: {joules(energy)} in {span(cycle.duration)}, "
                f"peak {watts(cycle.peak_power)}"
            )
        else:
            yield Text("cycle: none completed yet", "dim")
        lost = f"{link.lost:,} samples lost"
        if link.lost_seconds > 0.0:
            lost += f" in {span(link.lost_seconds)}"
        interruptions = f"{link.reconnects} interruption{'' if link.reconnects == 1 else 's'}"
        style = "yellow" if link.lost or link.reconnects else "dim"
        yield Text(f"{one_line(state.source)}: {lost}, {interruptions}", style)
    if state.arm_warning is not None:
        yield Text(one_line(state.arm_warning), "yellow")
    if state.disk_problem is not None:
        yield Text(one_line(state.disk_problem), "bold red")


def _sinks(sinks: Sequence[SinkStatus]) -> Iterator[Text]:
    for sink in sinks:
        parts, style = [f"{sink.delivered:,} sent"], ""
        if sink.clients is not None:
            parts.insert(0, f"{sink.clients} client{'' if sink.clients == 1 else 's'}")
        if sink.problem is not None:
            parts, style = [one_line(sink.problem), f"{sink.waiting:,} waiting"], "bold red"
        if sink.dropped:
            parts, style = [*parts, f"{sink.dropped:,} dropped"], style or "yellow"
        if sink.problem == NOT_OPEN:
            style = "dim"
        yield Text(f"{one_line(sink.name)}: {', '.join(parts)}", style)


def _sinks_together(sinks: Sequence[SinkStatus]) -> Text:
    """All sinks in one line, for small terminals."""
    bad = [sink.name for sink in sinks if sink.problem not in (None, NOT_OPEN)]
    if bad:
        return Text(f"sinks with a problem: {one_line(', '.join(bad))}", "bold red")
    dropped = sum(sink.dropped for sink in sinks)
    return Text(f"{len(sinks)} sinks: {dropped:,} readings dropped", "yellow" if dropped else "dim")
