"""A cycle as one continuous motion: moves along their paths, rest between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ur_energy_model.errors import InputError
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.optimization.cycle import WorkCycle
from ur_energy_model.optimization.cycle_energy import Stretch, recorded_stretches
from ur_energy_model.optimization.optimized_cycle import OptimizedCycle
from ur_energy_model.optimization.pendant import typed_stretches
from ur_energy_model.trajectory.motions import Motion, Sampled
from ur_energy_model.trajectory.plan import Plan
from ur_energy_model.typing import Array

CLOSED = 2e-3
"""Largest joint distance between the end of a move and the start of the next one [rad]."""


@dataclass(frozen=True)
class TimedMoves:
    """Moves at their times, at rest before, between and after them; a `Motion`.

    Attributes:
        starts: of the moves since the start of the cycle, increasing, s.
        moves: from rest to rest; they do not overlap.
        duration: of the whole cycle [s].
    """

    starts: tuple[float, ...]
    moves: tuple[Motion, ...]
    duration: float

    def sample(self, time: Array) -> tuple[Array, Array, Array]:
        """As `Motion.sample`."""
        which = np.searchsorted(self.starts, time, side="right") - 1
        first = self.moves[0].sample(np.zeros(1))[0]
        q = np.repeat(first, len(time), axis=0)
        qd, qdd = np.zeros_like(q), np.zeros_like(q)
        for index in np.unique(which[which >= 0]):
            here = which == index
            parts = self.moves[index].sample(time[here] - self.starts[index])
            for whole, part in zip((q, qd, qdd), parts, strict=True):
                whole[here] = part
        return q, qd, qdd


def recorded_motion(cycle: WorkCycle) -> TimedMoves:
    """The motion of a cycle as recorded.

    Raises:
        InputError: a move does not start where the one before it ended.
    """
    return _in_turn(cycle.source, recorded_stretches(cycle))


def typed_cycle(optimized: OptimizedCycle, robot: RobotDescription) -> TimedMoves:
    """The motion of a cycle when exactly the sheet is typed.

    Raises:
        InputError: a move does not start where the one before it ended.
    """
    cycle = optimized.cycle
    return _in_turn(cycle.source, typed_stretches(cycle, optimized.sheet, robot))


def new_motion(optimized: OptimizedCycle) -> TimedMoves:
    """The motion of an optimized cycle as set points, which need no trapezoids.

    Raises:
        InputError: a move does not start where the one before it ended.
    """
    moves = [(move.start, move.time, move.q, move.qd, move.qdd) for move in optimized.moves]
    return _timed(optimized.cycle.source, moves, optimized.duration)


def plan_at(motion: TimedMoves, rate: float, source: str) -> Plan:
    """A motion at the controller's cycles.

    Args:
        motion: one cycle.
        rate: cycles per second [Hz]; the last point is at the end of the motion.
        source: for error messages.
    """
    time = np.arange(0.0, motion.duration, 1.0 / rate)
    if motion.duration - time[-1] > 1e-6:
        time = np.append(time, motion.duration)
    return Plan(time, *motion.sample(time), source=source)


def _in_turn(source: str, stretches: Sequence[Stretch]) -> TimedMoves:
    moves, start = [], 0.0
    for stretch in stretches:
        plan = stretch.plan
        if stretch.moving:
            assert plan.qd is not None
            qdd = np.gradient(plan.qd, plan.time, axis=0) if plan.qdd is None else plan.qdd
            moves.append((start, plan.time, plan.q, plan.qd, qdd))
        start += plan.duration
    return _timed(source, moves, start)


def _timed(
    source: str, moves: Sequence[tuple[float, Array, Array, Array, Array]], duration: float
) -> TimedMoves:
    """Moves from rest to rest that follow each other without jumps.

    Args:
        source: for error messages.
        moves: start [s], time [k], q, qd and qdd [k, n] of each.
        duration: of the cycle [s].
    """
    out: list[Motion] = []
    here = moves[0][2][0]
    for number, (_, time, q, qd, qdd) in enumerate(moves, 1):
        gap = here - q[0]
        if np.abs(gap).max() > CLOSED:
            raise InputError(
                source,
                f"move {number} does not start where the one before it ended",
                "record cycles whose moves end at rest",
            )
        here = q[-1]
        left = 1.0 - time[:, None] / time[-1]
        rest = np.ones_like(time)[:, None]
        rest[[0, -1]] = 0.0
        out.append(Sampled(time, q + left * gap, rest * qd, qdd))
    return TimedMoves(tuple(start for start, *_ in moves), tuple(out), duration)
