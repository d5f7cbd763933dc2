"""Energy of a move with typed values, within the limits of its cycle."""

from __future__ import annotations

import math

import numpy as np

from ur_energy_model.optimization.cycle_energy import Stretch, dwelling
from ur_energy_model.optimization.cycle_problem import CycleProblem
from ur_energy_model.optimization.motion_limits import reached
from ur_energy_model.optimization.optimized_cycle import OptimizedMove
from ur_energy_model.trajectory.motions import Motion
from ur_energy_model.trajectory.plan import Plan

TOLERANCE = 1.001
"""Factor by which a limit may be exceeded: the recording's own values are among the limits."""
PERIOD = 0.004
"""Sample period of the motion [s]."""
SHORTEST_REST = 1e-3
"""Rest after a move that counts [s]."""


class TypedCost:
    """Energies of moves in their slots, by the calculation that the cycle's energies come from.

    Args:
        problem: the cycle.
    """

    def __init__(self, problem: CycleProblem) -> None:
        self._problem = problem

    def __call__(self, motion: Motion, move: OptimizedMove) -> float:
        """Energy of a motion, and of the rest until the end of the move's slot [J].

        Infinite if the motion exceeds a limit.

        Args:
            motion: from the start of the move to its end.
            move: whose slot and payload it has.
        """
        samples = max(2, round(motion.duration / PERIOD) + 1)
        time = np.linspace(0.0, motion.duration, samples)
        q, qd, qdd = motion.sample(time)
        payload = move.move.payload
        stretches = [Stretch(Plan(time, q, qd, qdd), payload)]
        rest = move.duration - motion.duration
        if rest > SHORTEST_REST:
            stretches.append(dwelling(q[-1], rest, payload))
        energies = self._problem.energies
        parts = energies.of(stretches, std=False)
        torque = parts[0].torque
        shown = reached(q, qd, qdd, torque, energies.dynamics(payload))
        if not shown.within(self._problem.limits, TOLERANCE):
            return math.inf
        return sum(part.energy for part in parts)
