"""Moves of a recording: stretches of motion between two instants of rest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ur_energy_model.energy.arm_state import STANDSTILL_SPEED
from ur_energy_model.optimization.recorded_motion import RecordedMotion
from ur_energy_model.telemetry.runs import equal_runs
from ur_energy_model.typing import Array, Mask

STILL_TARGET = 1e-3
"""Target speed below which a joint stands still [rad/s]; streamed targets tremble by less."""
NEARLY_STILL = 0.03
"""Speed with which a recording may begin or end so that its first or last move is complete
[rad/s]."""
SETTLING = 0.1
"""Time for which a move may begin and end more slowly than that [s]."""
SHORTEST_MOVE = 0.02
"""Distance below which a motion is none, as a joint that settles [rad]."""
TURN = 0.05
"""Change of direction at which a slow instant counts as a stop between two moves [rad]."""


@dataclass(frozen=True)
class Stretch:
    """Samples of one move, rest to rest.

    Attributes:
        first, last: samples at rest before and after the motion; consecutive moves without a
            dwell share one.
    """

    first: int
    last: int


def find_moves(motion: RecordedMotion) -> list[Stretch]:
    """Complete moves of a recording, in order; partial ones at its ends are left out.

    A move ends where all joints stand still, also if only for an instant between two samples.
    Blended moves, which do not stop, are one move.
    """
    still_speed = STANDSTILL_SPEED if motion.measured else STILL_TARGET
    moving = np.abs(motion.qd).max(axis=1) > still_speed
    moving[_instant_stops(motion)] = False
    for end in (0, -1):
        moving[end] &= np.abs(motion.qd[end]).max() > NEARLY_STILL
    for gap in motion.telemetry.gaps:
        moving[max(gap.index - 1, 0) : gap.index + 1] |= _travelled(motion, gap.index)
    whole = [
        Stretch(rows.start - 1, rows.stop)
        for rows in equal_runs(moving)
        if moving[rows.start] and rows.start > 0 and rows.stop < len(moving)
    ]
    broken = [gap.index for gap in motion.telemetry.gaps if gap.seconds > 0.1]
    return [
        move
        for move in _to_full_rest(motion, whole)
        if _reach(motion.q[move.first : move.last + 1]) > SHORTEST_MOVE
        and not any(move.first < index <= move.last for index in broken)
    ]


def _to_full_rest(motion: RecordedMotion, moves: list[Stretch]) -> list[Stretch]:
    """Moves whose slow beginnings and ends are included, so that each starts where one ended."""
    speed = np.abs(motion.qd).max(axis=1)
    most = round(SETTLING / motion.period)
    out: list[Stretch] = []
    for k, move in enumerate(moves):
        lowest = max(move.first - most, out[-1].last if out else 0)
        highest = min(
            move.last + most, moves[k + 1].first if k + 1 < len(moves) else len(speed) - 1
        )
        first, last = move.first, move.last
        while first > lowest and 0.0 < speed[first] <= speed[first + 1]:
            first -= 1
        while last < highest and 0.0 < speed[last] <= speed[last - 1]:
            last += 1
        out.append(Stretch(first, last))
    return out


def _travelled(motion: RecordedMotion, index: int) -> bool:
    """Whether the arm moved during the gap in front of a sample."""
    if not 0 < index < len(motion.q):
        return False
    return bool(np.abs(motion.q[index] - motion.q[index - 1]).max() > SHORTEST_MOVE)


def _reach(q: Array) -> float:
    """Largest travel of a joint in a stretch [rad]."""
    return float(np.ptp(q, axis=0).max())


def _instant_stops(motion: RecordedMotion) -> Mask:
    """Samples nearest to an instant of rest that lies between two samples [k].

    The speed falls to less than one sample's change of speed, and the arm leaves in another
    direction than it came in.
    """
    speed = np.linalg.norm(motion.qd, axis=1)
    out = np.zeros(len(speed), dtype=bool)
    if len(speed) < 5:
        return out
    inner = speed[1:-1]
    lowest = (inner <= speed[:-2]) & (inner < speed[2:]) & (inner > 0.0)
    for k in (np.flatnonzero(lowest) + 1).tolist():
        low, high = max(k - 2, 0), min(k + 2, len(speed) - 1)
        before, after = motion.qd[low], motion.qd[high]
        change = min(speed[low] - speed[k], speed[high] - speed[k]) / 2
        if change <= 0.0 or speed[k] > 1.5 * change:
            continue
        cosine = before @ after / max(speed[low] * speed[high], 1e-12)
        out[k] = cosine < np.cos(TURN)
    return out
