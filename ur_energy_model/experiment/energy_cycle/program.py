"""URScript program of an optimized cycle: moves with what to type, waits between them.

Every line is a plain call with literal arguments, which real and simulated controllers run.
"""

from __future__ import annotations

import numpy as np
from scipy.interpolate import CubicHermiteSpline

from ur_energy_model.experiment.export import (
    APPROACH_ACCELERATION,
    APPROACH_SPEED,
    GAIN,
    LOOKAHEAD_TIME,
)
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.optimization.cycle import Move
from ur_energy_model.optimization.optimized_cycle import OptimizedCycle
from ur_energy_model.optimization.trapezoid_fit import pendant_unit
from ur_energy_model.typing import Array

MOST_SET_POINTS = 4000
"""Set points of all such moves together; simulated controllers run 5000 lines."""


def urscript_of(optimized: OptimizedCycle, robot: RobotDescription) -> str:
    """The program of one cycle: exactly what the sheet has to type.

    A moveL is given by the joint positions of its end, so that it does not depend on the tool
    centre point that is set. A move that is neither moveJ nor moveL is streamed as recorded.

    Args:
        optimized: with its sheet.
        robot: the arm; gives the rate of its controller.
    """
    cycle = optimized.cycle
    streamed = sum(cycle.moves[step.move].duration for step in optimized.sheet if step.do == "move")
    step_time = max(1.0 / robot.rate, streamed / MOST_SET_POINTS)
    step_time = np.ceil(step_time * robot.rate - 1e-6) / robot.rate
    lines = [
        "def energy_cycle():",
        f"  # {robot.name}: one cycle of {optimized.typed_duration:.2f} s, predicted "
        f"{optimized.typed_energy:.0f} J instead of {optimized.energy:.0f} J",
        "  # gripper and other commands of your program belong to the waits",
        f"  movej({_vector(cycle.moves[0].q[0])}, a={APPROACH_ACCELERATION}, v={APPROACH_SPEED})",
    ]
    for number, step in enumerate(optimized.sheet, 1):
        lines.append(f"  # step {number}: {step.do}{', kept' if step.kept else ''}")
        if step.do == "wait":
            lines += [f"  sleep({step.new_wait:.2f})"] if step.new_wait else []
            continue
        move = cycle.moves[step.move]
        if step.new_speed is None or step.new_acceleration is None:
            lines += _set_points(move, step_time)
            continue
        unit = pendant_unit(step.do)
        lines.append(
            f"  {step.do.lower()}({_vector(move.q[-1])}, "
            f"a={step.new_acceleration * unit:.6g}, v={step.new_speed * unit:.6g})"
        )
    return "\n".join([*lines, "end", ""])


def _set_points(move: Move, step: float) -> list[str]:
    """Set points of servoj along a move that cannot be typed, as recorded."""
    time = np.minimum(np.arange(step, move.duration + step, step), move.duration)
    path = CubicHermiteSpline(move.time, move.q, move.qd)
    return [
        f"  servoj({_vector(q)}, 0, 0, {step:.4g}, {LOOKAHEAD_TIME}, {GAIN})" for q in path(time)
    ] + ["  stopj(2.0)"]


def _vector(q: Array) -> str:
    return "[" + ", ".join(f"{value + 0.0:.6f}" for value in q) + "]"
