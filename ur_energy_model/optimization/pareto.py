"""Energy of the cheapest cycle over its cycle time."""

from __future__ import annotations

import numpy as np

from ur_energy_model.optimization.allocation import SLOWEST
from ur_energy_model.optimization.cycle_problem import CycleProblem
from ur_energy_model.typing import Array

WORTHS = np.geomspace(SLOWEST, 300.0, 16)
"""What a second is worth more than waiting at the points of the curve [W]."""
NEXT = 1.003
"""Least ratio of consecutive cycle times."""
LONGEST = 2.0
"""Longest cycle time of the curve, relative to the recorded one."""


def pareto_curve(problem: CycleProblem) -> Array:
    """Cycle times [s] and least energies [J] [k, 2], from the time-optimal to twice the recorded.

    Every point is an optimal cycle: one price of time for all moves. Beyond the time at which
    moves have become as slow as is worthwhile, the rest of the time is waited.
    """
    longest = LONGEST * problem.cycle.duration
    points = [(problem.shortest, problem.fastest())]
    for worth in WORTHS[::-1].tolist():
        laws = problem.allocator.at(worth)
        duration = sum(law.duration for law in laws) + problem.kept
        if NEXT * points[-1][0] < duration < longest:
            points.append((duration, problem.stretches(laws)))
    last = problem.allocate(longest)
    points.append((longest, problem.stretches(last.laws, last.waiting)))
    return np.array([(duration, problem.energies.total(cycle)) for duration, cycle in points])
