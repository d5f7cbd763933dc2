# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""What stays as recorded in a cycle: steps by their number, and moves that are deliberately slow.

A move near a part, a person or a fixture is programmed slowly on purpose. A recording
shows no purpose, only that the move is slow beside the others, by which it is kept
unless the user frees it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ur_energy_model.errors import InputError
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.optimization.cycle import (
    Dwell,
    OptimizationOptions,
    Reason,
    WorkCycle,
)
from ur_energy_model.optimization.programmed import ProgrammedMove
from ur_energy_model.typing import Array, Mask

SLOW = 0.6
"""Share of the typical speed of moves of the same kind below which a move is deliberately slow."""
SLOW_TOOL = 0.25
"""Share of the typical speed of the tool below which a move is deliberately slow."""
TRIANGLE = 0.95
"""Share of the distance from which its two ramps count as all of a move: the move is too short to
reach its speed."""


def with_locks(
    cycle: WorkCycle, options: OptimizationOptions, dynamics: ArmDynamics
) -> WorkCycle:
    """A cycle with the moves and waits that stay as recorded.

    Args:
        cycle: recorded cycle.
        options: what the cycle may become.
        dynamics: the arm, for the speed of the flange.

    Raises:
        InputError: the sheet has no step of a number in `options.keep`.
    """
    program = cycle.program
    wrong = [str(number) for number in options.keep if not 1 <= number <= len(program)]
    if wrong:
        problem = f"there is no step {', '.join(wrong)} in the sheet"
        raise InputError("--keep", problem, f"give numbers from 1 to {len(program)}")
    locked = {program[number - 1] for number in options.keep}
    slow: set[int] = set()
    if options.keep_slow:
        slow = _slow_moves(cycle, dynamics)
    moves = []
    for number, move in enumerate(cycle.moves):
        reason: Reason = ""
        if (number, None) in locked:
            reason = "asked with --keep"
        elif number in slow:
            reason = "slow beside the others"
        rest = _with_waits_kept(move.rest, number, locked, "asked with --keep")
        moves.append(replace(move, rest=rest, reason=reason))
    return _with_lines_kept(replace(cycle, moves=tuple(moves)))


def _with_lines_kept(cycle: WorkCycle) -> WorkCycle:
    """A cycle in which all waits of a line stay where one of them does."""
    locked: set[tuple[int, int | None]] = set()
    for places in cycle.shared_waits:
        waits = [cycle.rests[number].waits[wait] for number, wait in places]
        if any(wait.kept for wait in waits):
            locked.update(places)
    reason: Reason = "same line as another kept step"
    moves = []
    for number, move in enumerate(cycle.moves):
        rest = _with_waits_kept(move.rest, number, locked, reason)
        moves.append(replace(move, rest=rest))
    return replace(cycle, moves=tuple(moves))


def _with_waits_kept(
    rest: Dwell, move: int, locked: set[tuple[int, int | None]], reason: Reason
) -> Dwell:
    """The rest after a move with a reason for each locked wait that has none yet.

    Args:
        rest: standstill after the move.
        move: number of the move.
        locked: places that stay, by number of the move, and of the wait or None.
        reason: reason why the places stay.
    """
    waits = list(rest.waits)
    for number, wait in enumerate(waits):
        if (move, number) in locked and not wait.kept:
            waits[number] = replace(wait, reason=reason)
    return replace(rest, waits=tuple(waits))


def _slow_moves(cycle: WorkCycle, dynamics: ArmDynamics) -> set[int]:
    """Numbers of the moves that are deliberately slow.

    A moveJ or moveL is slow if its speed is below a share of the typical speed of its
    kind. All but a moveJ are also slow if the speed of the tool is below a share of the
    typical one.
    """
    slow_tool = _slow_at_tool(cycle, dynamics)
    slow = set()
    for number, move in enumerate(cycle.moves):
        if move.kind == "other" and slow_tool[number]:
            slow.add(number)
    for kind in ("moveJ", "moveL"):
        slow |= _slow_of_kind(cycle, kind, slow_tool)
    return slow


def _slow_at_tool(cycle: WorkCycle, dynamics: ArmDynamics) -> Mask:
    """Whether the tool is slow in each move [moves]."""
    highest = np.zeros(len(cycle.moves))  # speed of the flange [m/s]
    length = np.zeros(len(cycle.moves))  # travel of the flange [m]
    for number, move in enumerate(cycle.moves):
        speed = np.linalg.norm(dynamics.flange_speed(move.q, move.qd), axis=1)
        highest[number] = speed.max()
        length[number] = np.trapezoid(speed, move.time)
    return np.asarray(highest < SLOW_TOOL * _typical(highest, length))


def _slow_of_kind(cycle: WorkCycle, kind: str, slow_tool: Mask) -> set[int]:
    """Numbers of the slow moves among the moveJ or moveL of a cycle.

    A move that is too short to reach its speed is slow only if its acceleration is below
    the same share of the typical acceleration.

    Args:
        cycle: recorded cycle.
        kind: moveJ or moveL.
        slow_tool: whether the tool is slow in each move [moves].
    """
    runs: dict[int, ProgrammedMove] = {}
    travels: dict[int, float] = {}
    for number, move in enumerate(cycle.moves):
        run = move.programmed
        if run is not None and run.kind == kind:
            ramp = run.speed / run.acceleration
            runs[number] = run
            travels[number] = run.speed * max(move.duration - ramp, ramp)  # trapezoid
    if not runs:
        return set()
    speeds = np.array([run.speed for run in runs.values()])
    accelerations = np.array([run.acceleration for run in runs.values()])
    weights = np.array(list(travels.values()))
    low_speed = SLOW * _typical(speeds, weights)
    low_acceleration = SLOW * _typical(accelerations, weights)
    slow = set()
    for number, run in runs.items():
        is_slow = run.speed < low_speed or (kind == "moveL" and slow_tool[number])
        too_short = run.speed**2 / run.acceleration > TRIANGLE * travels[number]
        if is_slow and (not too_short or run.acceleration < low_acceleration):
            slow.add(number)
    return slow


def _typical(values: Array, weights: Array) -> float:
    """The highest value that half of the weight reaches."""
    order = np.argsort(-values)
    reached = np.cumsum(weights[order]) >= 0.5 * weights.sum() - 1e-9
    return float(values[order][int(np.argmax(reached))])
