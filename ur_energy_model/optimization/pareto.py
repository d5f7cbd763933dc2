"""Energy of the cheapest cycle over its cycle time."""

from __future__ import annotations

import numpy as np

from ur_energy_model.optimization.cycle_problem import CycleProblem
from ur_energy_model.typing import Array

POINTS = 25
LONGEST = 2.0
"""Longest cycle time of the curve, relative to the recorded one."""


def pareto_curve(problem: CycleProblem) -> Array:
    """Cycle times [s] and least energies [J] [k, 2], from the time-optimal to twice the recorded.

    Times are denser where the curve is steep.
    """
    shortest, longest = problem.shortest, LONGEST * problem.cycle.duration
    share = np.linspace(0.0, 1.0, POINTS) ** 1.5
    out = []
    for duration in shortest + share * (max(longest, shortest) - shortest):
        allocation = problem.allocate(max(float(duration), shortest))
        parts = problem.energies.of(problem.stretches(allocation), std=False)
        out.append((float(duration), sum(part.energy for part in parts)))
    return np.array(out)
