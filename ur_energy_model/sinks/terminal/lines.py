"""Lines: the live view where there is no terminal, one line a second."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import asdict
from datetime import datetime, timezone
from typing import Any

from ur_energy_model.energy.live.snapshot import Snapshot
from ur_energy_model.energy.meter import CONFIDENCE
from ur_energy_model.plain import plain
from ur_energy_model.sinks.joint_row import joint_rows, part_rows
from ur_energy_model.sinks.live_state import LiveState
from ur_energy_model.sinks.terminal.quantities import joules, watts
from ur_energy_model.telemetry.host_clock import HOST_CLOCK
from ur_energy_model.terminal_text import one_line, span
from ur_energy_model.typing import Self


class Lines:
    """Prints one line a second on stdout, and problems on stderr as they begin.

    Args:
        state: the state for a viewer of this name, powers since its previous one.
        stop: set by signals.
        line: text of a state.
        notice: receives each problem when it begins.
        patience: time between two lines while no samples come [s]; `line` then states why, and
            `notice` does not.

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
        self._state, self._stop, self._line, self._notice = state, stop, line, notice
        self._told: frozenset[str] = frozenset()
        self._patience = patience
        self._silent_line = float("-inf")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: Any) -> None:
        return

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
        problems = dict(zip(map(_subject, texts), texts, strict=True))
        for subject, problem in problems.items():
            if subject not in self._told:
                self._notice(problem)
        self._told = frozenset(problems)

    def wait(self, seconds: float) -> bool:
        """Wait for a time; returns whether to quit."""
        return self._stop.wait(seconds)


def text_line(state: LiveState) -> str:
    """A state as a line for people."""
    reading = state.reading
    if reading is None:
        return one_line(f"{_clock(None)} waiting for {state.source}: {state.silence}")
    snapshot = reading.snapshot
    columns = [snapshot.channels.arm[name] for name in ("total", "bus")]
    parts = [
        f"{energy} at {watts(float(snapshot.power[column]))}"
        for column, energy in zip(columns, _energies(snapshot), strict=False)
    ]
    powers = " ".join(f"{row.power:.1f}" for row in joint_rows(reading))
    others = ", ".join(f"{row.name} {row.power:.1f}" for row in part_rows(reading))
    parts.append(f"joints from the base {powers}, {others} W")
    if state.link.lost:
        parts.append(f"{state.link.lost:,} samples lost")
    doing = snapshot.state.name.lower().replace("_", " ")
    if state.silence is not None:
        doing = f"no samples ({state.silence})"
    return one_line(f"{_clock(reading.stamp)} {reading.arm} {doing}: {', '.join(parts)}")


def last_text_line(state: LiveState) -> str:
    """What was counted up to the end, as a line for people."""
    reading = state.reading
    if reading is None:
        return text_line(state)
    snapshot = reading.snapshot
    energies, lost = _energies(snapshot), state.link.lost
    return one_line(
        f"{_clock(reading.stamp)} {reading.arm}: {', '.join(energies)} in "
        f"{span(snapshot.since_reset.accounted)}, {lost:,} samples lost"
    )


def last_json_line(state: LiveState) -> str:
    """The state after the last sample as one line of JSON, `ended` being true."""
    return json_line(state, ended=True)


def json_line(state: LiveState, *, ended: bool = False) -> str:
    """A state as one line of JSON; energies in J, powers in W, temperatures in °C."""
    reading, link = state.reading, state.link
    content: dict[str, Any] = {
        "time": _moment(None if reading is None else reading.stamp).isoformat(),
        "source": state.source,
        "ended": ended,
        "connected": state.silence is None,
        "problem": state.silence,
        "samples_lost": link.lost,
        "seconds_lost": link.lost_seconds,
        "interruptions": link.reconnects,
        "disk_problem": state.disk_problem,
        "warnings": [] if state.arm_warning is None else [state.arm_warning],
        "sinks": [asdict(sink) for sink in state.sinks],
    }
    if reading is not None:
        snapshot = reading.snapshot
        channels, net = snapshot.channels, snapshot.since_reset.net
        content |= {
            "arm": reading.arm,
            "robot": None if reading.robot is None else reading.robot.name,
            "model": reading.model,
            "state": snapshot.state.name.lower(),
            "samples": snapshot.samples,
            "accounted_s": snapshot.since_reset.accounted,
            "unaccounted_s": snapshot.since_reset.unaccounted,
            "values": reading.numbers(),
            "total_energy_std": channels.deviations(net)[1],
            "joints": [asdict(row) for row in joint_rows(reading)],
            "reset_time": snapshot.reset_time,
        }
        cycle = state.cycle
        content["cycle"] = (
            None
            if cycle is None
            else {"number": cycle.number, "program": cycle.program, **cycle.summary(channels)}
        )
    return json.dumps(plain(content), allow_nan=False)


def _energies(snapshot: Snapshot) -> list[str]:
    """Energy of the arm with its 95 % interval, and that of the bus if it is measured."""
    arm, net = snapshot.channels.arm, snapshot.since_reset.net
    half = CONFIDENCE * snapshot.channels.deviations(net)[1]
    total = f"total {joules(float(net[arm['total']]))} ± {joules(half)}"
    bus = [f"bus {joules(float(net[arm['bus']]))}"] if snapshot.bus_measured else []
    return [total, *bus]


def _moment(stamp: int | None) -> datetime:
    """Host time of a sample [ns], or now."""
    nanoseconds = HOST_CLOCK.stamp() if stamp is None else stamp
    return datetime.fromtimestamp(nanoseconds * 1e-9, timezone.utc)


def _clock(stamp: int | None) -> str:
    return _moment(stamp).astimezone().strftime("%H:%M:%S")


def _subject(problem: str) -> str:
    """What a problem is about: its numbers may change with time."""
    return "".join(each for each in problem if not each.isdigit())
