"""A repeated work cycle: moves along recorded paths, and the dwells between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ur_energy_model.model.setup import Payload
from ur_energy_model.optimization.power_off import Switching
from ur_energy_model.typing import Array

Kind = Literal["moveJ", "moveL", "other"]
"""How the path of a move can be programmed: straight in joint space, straight at the tool, or
neither (a blend, a spline: only its time law can be exported)."""


@dataclass(frozen=True)
class Move:
    """One move from rest to rest as recorded; n joints, k samples.

    Attributes:
        start: time since the start of the cycle [s].
        time: of the samples since the start of the move [k], s; the first is 0.
        q, qd: target positions and velocities [k, n], rad, rad/s.
        kind: how its path can be programmed.
        speed, acceleration: of the fitted trapezoid; rad/s and rad/s^2 of the leading joint for
            moveJ, m/s and m/s^2 of the tool for moveL; NaN for "other".
        energy, energy_std: whole arm at the supply during the move as recorded, from the model [J].
        peak_power: largest supply power during the move [W].
        qdd: target accelerations [k, n], rad/s^2; None where they were not recorded.
        payload: on the flange, as set in the controller; None stands for the model's.
        line: of the program, where `script_control_line` was recorded.
    """

    start: float
    time: Array
    q: Array
    qd: Array
    kind: Kind
    speed: float
    acceleration: float
    energy: float
    energy_std: float
    peak_power: float
    qdd: Array | None = None
    payload: Payload | None = None
    line: int | None = None

    @property
    def duration(self) -> float:
        """Of the move as recorded [s]."""
        return float(self.time[-1])


@dataclass(frozen=True)
class Wait:
    """A wait of the program.

    Attributes:
        duration: as the program has it, to 0.01 s [s].
        kept: whether it must stay (gripper, sensor); else it is slack.
        line: of the program, where `script_control_line` was recorded.
    """

    duration: float
    kept: bool
    line: int | None = None


@dataclass(frozen=True)
class Dwell:
    """Standstill between two moves.

    Attributes:
        start: time since the start of the cycle [s].
        duration: as recorded [s].
        q: position [n], rad.
        waits: of the program, in order; the rest of the duration is the controller's own, as for
            planning a line.
        energy: whole arm at the supply as recorded, from the model [J].
        payload: as in `Move`.
    """

    start: float
    duration: float
    q: Array
    waits: tuple[Wait, ...] = ()
    energy: float = 0.0
    payload: Payload | None = None

    @property
    def slack(self) -> float:
        """Time that need not stay [s]."""
        return min(sum(wait.duration for wait in self.waits if not wait.kept), self.duration)

    @property
    def kept(self) -> float:
        """Time that must stay [s]."""
        return self.duration - self.slack

    @property
    def pause(self) -> float:
        """What the controller takes beside the waits of the program [s]."""
        return self.duration - sum(wait.duration for wait in self.waits)


@dataclass(frozen=True)
class WorkCycle:
    """The repeated cycle of a recording: its typical instance, and the scatter over all.

    Attributes:
        source: recording.
        robot: name of the arm.
        found_by: "program", "digital_output", "int_register", "repetition", or "whole" if the
            recording holds one cycle only.
        start: of the typical instance in the recording [s].
        duration: of the typical instance [s].
        moves, dwells: in order of time; together they cover the duration. The cycle starts with
            a move; dwells of no length are left out.
        count: complete cycles in the recording.
        duration_std: scatter of their durations [s]; 0 for a single one.
        measured_energy: mean over the cycles of the measured bus energy [J], None if not recorded.
        measured_energy_std: its scatter between cycles [J].
        temperature: mean joint temperatures [n], degC; None if not recorded.
        notes: what the recording does not show, one sentence each.
        tool: tool centre point in the flange frame [6], m and rad; None if not recorded.
        switching: what switching the arm off and on takes; None where the recording lacks it.
        leading: how many waits of the last dwell the program has before its first move.
        scaling: speed slider times limiter while it was recorded.
    """

    source: str
    robot: str
    found_by: str
    start: float
    duration: float
    moves: tuple[Move, ...]
    dwells: tuple[Dwell, ...]
    count: int
    duration_std: float
    measured_energy: float | None
    measured_energy_std: float
    temperature: Array | None
    notes: tuple[str, ...] = ()
    switching: Switching | None = None
    tool: Array | None = None
    leading: int = 0
    scaling: float = 1.0

    @property
    def rests(self) -> tuple[Dwell, ...]:
        """The standstill after each move, also where it has no length."""
        after = {round(dwell.start, 6): dwell for dwell in self.dwells}
        out = []
        for move in self.moves:
            end = move.start + move.duration
            none = Dwell(end, 0.0, move.q[-1], payload=move.payload)
            out.append(after.get(round(end, 6), none))
        return tuple(out)

    @property
    def slack(self) -> float:
        """Standstill that need not be kept [s]."""
        return sum(dwell.slack for dwell in self.dwells)

    @property
    def program(self) -> tuple[tuple[int, int | None], ...]:
        """Steps of the program in order: number of a move, and of a wait after it or None."""
        waits = [[(k, j) for j in range(len(rest.waits))] for k, rest in enumerate(self.rests)]
        cut = len(waits[-1]) - self.leading
        first, waits[-1] = waits[-1][cut:], waits[-1][:cut]
        steps: list[tuple[int, int | None]] = list(first)
        for k, after in enumerate(waits):
            steps += [(k, None), *after]
        return tuple(steps)
