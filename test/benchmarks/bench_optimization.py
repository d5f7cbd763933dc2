# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The optimization beside an independent search, and its time.

The search shares nothing with the optimization: differential evolution over a generic
time law (path speeds at a few points, joined smoothly), then a simplex, judged by
`predict_energy` of the sampled trajectory and the limits of its samples.
"""

from __future__ import annotations

import itertools
import time

import numpy as np
from scipy.interpolate import PchipInterpolator
from scipy.optimize import Bounds, differential_evolution, minimize

from test.energy.work_cycles import arm_model
from ur_energy_model.energy.prediction import predict_energy
from ur_energy_model.model.robots import load_robot
from ur_energy_model.optimization.path import PathLimits
from ur_energy_model.optimization.plan_optimization import optimize_plan
from ur_energy_model.trajectory.motions import move
from ur_energy_model.trajectory.named_motions import Planner
from ur_energy_model.trajectory.plan import Plan
from ur_energy_model.typing import Array

SEEDS = (3, 4, 5)
FACTORS = (1.3, 2.0, 4.0)  # durations relative to those of moves at 3 rad/s and 6 rad/s^2
_POINTS = 9
_SAMPLES = 300
_PEAK_COST = 5.0  # [J/W]


def law(start: Array, end: Array, duration: float, speeds: Array) -> Plan:
    """A straight move with relative path speeds (logarithms) at even points of its path."""
    share = np.linspace(0.0, 1.0, 801)
    curve = PchipInterpolator(np.linspace(0.0, 1.0, _POINTS), speeds)(share)
    v = np.exp(curve) * np.sqrt(np.maximum(share * (1.0 - share), 1e-7))
    clock = np.concatenate([[0.0], np.cumsum(2 * np.diff(share) / (v[1:] + v[:-1]))])
    factor = clock[-1] / duration
    at = np.linspace(0.0, clock[-1], _SAMPLES)
    s = np.interp(at, clock, share)
    pace = np.interp(at, clock, v) * factor
    pace[0] = pace[-1] = 0.0
    even = at / factor
    way = end - start
    rate = np.gradient(pace, even)
    return Plan(even, start + s[:, None] * way, pace[:, None] * way, rate[:, None] * way)


def search(
    start: Array,
    end: Array,
    duration: float,
    limits: PathLimits,
    seed: int,
    *,
    generations: int = 40,
) -> float:
    """The least energy that the search finds within limits of speed, acceleration, power [J].

    A peak above the limit of power costs `_PEAK_COST` for each watt.
    """
    model = arm_model()

    def cost(speeds: Array) -> float:
        plan = law(start, end, duration, speeds)
        assert plan.qd is not None
        assert plan.qdd is not None
        shares = np.abs(plan.qd) / limits.speed, np.abs(plan.qdd) / limits.acceleration
        over = max(1.0, *(float(share.max()) for share in shares))
        penalty = 1e3 * (over - 1.0)
        if over > 1.02:
            return 1e3 * over
        found = predict_energy(model, plan)
        above = max(found.peak_power - limits.power, 0.0)
        return found.total + penalty + _PEAK_COST * above

    bounds = Bounds(np.full(_POINTS, -1.5), np.full(_POINTS, 1.5))
    wide = differential_evolution(
        cost, bounds, seed=seed, maxiter=generations, popsize=6, polish=False
    )
    fine = minimize(cost, wide.x, method="Nelder-Mead", options={"maxfev": 1500})
    return float(min(wide.fun, fine.fun))


def main() -> None:
    """Print each move's energy: even time law, the search's best, the optimization's."""
    limits = PathLimits.of_robot(load_robot("ur5e"))
    print(
        "duration [s]   as moveJ   search   optimization [J]   above the search   time [s]"
    )
    model = arm_model()
    planner = Planner(load_robot("ur5e"))
    for number, (seed, factor) in enumerate(itertools.product(SEEDS, FACTORS)):
        start, end = planner.random_points(seed, 2)
        segment = move(start, end, 3.0, 6.0)
        duration = factor * segment.duration
        at = np.linspace(0.0, segment.duration, _SAMPLES)
        plan = Plan(at, *segment.sample(at))
        scaled = predict_energy(model, plan, speed_scaling=1.0 / factor).total
        begin = time.process_time()
        new = optimize_plan(model, plan, duration=duration, limits=limits)
        spent = time.process_time() - begin
        energy = predict_energy(model, new).total
        best = search(start, end, duration, limits, number)
        print(
            f"{duration:12.2f} {scaled:10.1f} {best:8.1f} {energy:18.1f} "
            f"{100 * (energy / best - 1):16.2f} % {spent:10.2f}",
            flush=True,
        )
