"""URScript program of an optimized cycle: moves with what to type, waits between them.

Every line is a plain call with literal arguments, which real and simulated controllers run.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ur_energy_model.experiment.export import (
    APPROACH_ACCELERATION,
    APPROACH_SPEED,
    GAIN,
    LOOKAHEAD_TIME,
)
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.optimization.cycle_motion import TimedMoves
from ur_energy_model.optimization.optimized_cycle import OptimizedCycle, OptimizedMove
from ur_energy_model.optimization.typed_moves import typed_motion
from ur_energy_model.typing import Array

MOST_SET_POINTS = 4000
"""Set points of all such moves together; simulated controllers run 5000 lines."""
_SHORTEST_WAIT = 1e-3


def urscript_of(optimized: OptimizedCycle, motion: TimedMoves, robot: RobotDescription) -> str:
    """The program of one cycle.

    A moveL is given by the joint positions of its end, so that it does not depend on the tool
    centre point that is set. A move that can be typed takes the time that it needs with typed
    values; the rest of its slot becomes a wait.

    Args:
        optimized: with what to type.
        motion: of the optimized cycle.
        robot: the arm; gives the rate of its controller.
    """
    streamed = [move for move in optimized.moves if not np.isfinite(move.speed)]
    step = max(1.0 / robot.rate, sum(move.duration for move in streamed) / MOST_SET_POINTS)
    step = np.ceil(step * robot.rate - 1e-6) / robot.rate
    start = motion.sample(np.zeros(1))[0][0]
    lines = [
        "def energy_cycle():",
        f"  # {robot.name}: one cycle of {optimized.duration:.2f} s, predicted "
        f"{optimized.new_energy:.0f} J instead of {optimized.energy:.0f} J",
        "  # gripper and other commands of your program belong to the waits",
        f"  movej({_vector(start)}, a={APPROACH_ACCELERATION}, v={APPROACH_SPEED})",
    ]
    now = 0.0
    for number, move in enumerate(optimized.moves, 1):
        lines += _wait(move.start - now)
        now = move.start
        lines.append(f"  # move {number}: {move.energy:.1f} J in {move.duration:.2f} s")
        typed = typed_motion(move, robot, optimized.cycle.tool)
        if typed is not None:
            lines.append(
                f"  {move.move.kind.lower()}({_vector(move.q[-1])}, "
                f"a={move.acceleration:.5g}, v={move.speed:.5g})"
            )
            now += typed.duration
        else:
            lines += _set_points(move, motion, step)
            now += move.duration
    lines += _wait(optimized.duration - now)
    return "\n".join([*lines, "end", ""])


def _set_points(move: OptimizedMove, motion: TimedMoves, step: float) -> Sequence[str]:
    """Set points of servoj along a move that cannot be typed."""
    time = np.minimum(np.arange(step, move.duration + step, step), move.duration)
    q, _, _ = motion.sample(move.start + time)
    return [
        f"  servoj({_vector(each)}, 0, 0, {step:.4g}, {LOOKAHEAD_TIME}, {GAIN})" for each in q
    ] + ["  stopj(2.0)"]


def _wait(seconds: float) -> list[str]:
    return [f"  sleep({seconds:.3f})"] if seconds > _SHORTEST_WAIT else []


def _vector(q: Array) -> str:
    return "[" + ", ".join(f"{value + 0.0:.6f}" for value in q) + "]"
