"""What to type for every move of a cycle, beside what was recorded."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.optimization.cycle import Move
from ur_energy_model.optimization.optimized_cycle import OptimizedCycle, OptimizedMove
from ur_energy_model.optimization.programmed_path import programmed_path
from ur_energy_model.optimization.trapezoid_fit import best_trapezoid, fit_trapezoid
from ur_energy_model.trajectory.motions import Motion
from ur_energy_model.typing import Array

SlotCost = Callable[[Motion, OptimizedMove], float]
"""Energy of a motion and the rest after it in the slot of a move [J]; infinite if the motion
exceeds a limit."""


def with_typed_moves(
    optimized: OptimizedCycle,
    robot: RobotDescription,
    cost: SlotCost,
) -> OptimizedCycle:
    """The cycle with what was typed for its moves, and what to type for less energy.

    Args:
        optimized: speeds and accelerations are replaced.
        robot: the arm; its nominal kinematics tell moveL from other paths.
        cost: of a motion in a slot.
    """
    tool = optimized.cycle.tool
    moves = tuple(_typed(move, robot, cost, tool) for move in optimized.moves)
    cycle = replace(optimized.cycle, moves=tuple(move.move for move in moves))
    return replace(optimized, cycle=cycle, moves=moves)


def with_recorded_values(move: Move, robot: RobotDescription, tool: Array | None = None) -> Move:
    """A recorded move with its kind, and the speed and acceleration that it was run with."""
    path = programmed_path(move.q, robot, tool)
    if path is None:
        return replace(move, kind="other", speed=math.nan, acceleration=math.nan)
    trapezoid = fit_trapezoid(move.time, path.progress)
    return replace(
        move,
        kind=path.kind,
        speed=float(trapezoid.peak),
        acceleration=float(trapezoid.acceleration),
    )


def typed_motion(
    move: OptimizedMove, robot: RobotDescription, tool: Array | None = None
) -> Motion | None:
    """A move as the controller runs it with the values to type; None if there are none."""
    if not math.isfinite(move.speed):
        return None
    path = programmed_path(move.move.q, robot, tool)
    return None if path is None else path.motion(move.speed, move.acceleration)


def _typed(
    move: OptimizedMove, robot: RobotDescription, cost: SlotCost, tool: Array | None
) -> OptimizedMove:
    recorded = with_recorded_values(move.move, robot, tool)
    path = programmed_path(recorded.q, robot, tool)
    best = None
    if path is not None:
        best = best_trapezoid(path, move.duration, lambda motion: cost(motion, move))
    if best is None:
        return replace(
            move, move=recorded, speed=math.nan, acceleration=math.nan, typed_energy=math.nan
        )
    return replace(
        move,
        move=recorded,
        speed=best.speed,
        acceleration=best.acceleration,
        typed_energy=best.energy,
    )
