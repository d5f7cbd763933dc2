"""Energy of the cheapest cycle over its cycle time, and that of speed scaling beside it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ur_energy_model.optimization.allocation import SLOWEST
from ur_energy_model.optimization.cycle_energy import Stretch
from ur_energy_model.optimization.cycle_problem import CycleProblem
from ur_energy_model.typing import Array

WORTHS = np.geomspace(SLOWEST, 300.0, 16)
"""What a second is worth more than waiting at the points of the curve [W]."""
NEXT = 1.003
"""Least ratio of consecutive cycle times."""
LONGEST = 2.0
"""Longest cycle time of the curve, relative to the recorded one."""
_SCALED = 30


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
    return np.array([(duration, _energy(problem, cycle)) for duration, cycle in points])


def scaled_curve(problem: CycleProblem) -> Array:
    """Cycle times [s] and energies [J] [k, 2] of the recorded cycle at other speed scaling."""
    times = np.geomspace(problem.shortest, LONGEST * problem.cycle.duration, _SCALED)
    return np.array([(time, _energy(problem, problem.scaled(time))) for time in times.tolist()])


def _energy(problem: CycleProblem, stretches: Sequence[Stretch]) -> float:
    return sum(part.energy for part in problem.energies.of(stretches, std=False))
