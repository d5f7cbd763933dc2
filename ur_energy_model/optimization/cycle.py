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
        payload: on the flange, as the controller knew it; None stands for the model's.
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

    @property
    def duration(self) -> float:
        """Of the move as recorded [s]."""
        return float(self.time[-1])


@dataclass(frozen=True)
class Dwell:
    """Standstill between two moves.

    Attributes:
        start: time since the start of the cycle [s].
        duration: as recorded [s].
        q: position [n], rad.
        kept: whether the time must stay (gripper, sensor); else it is slack.
        energy: whole arm at the supply as recorded, from the model [J].
        payload: as in `Move`.
    """

    start: float
    duration: float
    q: Array
    kept: bool
    energy: float = 0.0
    payload: Payload | None = None


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

    @property
    def rests(self) -> tuple[Dwell, ...]:
        """The standstill after each move, also where it has no length."""
        after = {round(dwell.start, 6): dwell for dwell in self.dwells}
        out = []
        for move in self.moves:
            end = move.start + move.duration
            none = Dwell(end, 0.0, move.q[-1], kept=False, payload=move.payload)
            out.append(after.get(round(end, 6), none))
        return tuple(out)

    @property
    def slack(self) -> float:
        """Standstill that need not be kept [s]."""
        return sum(dwell.duration for dwell in self.dwells if not dwell.kept)
