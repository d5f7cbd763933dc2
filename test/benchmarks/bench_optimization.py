"""The optimization beside an independent search, and its time.

The search knows nothing of the optimization: differential evolution over a generic time law (path
speeds at a few points, joined smoothly), then a simplex, judged by `predict_energy` of the sampled
trajectory and the limits of its samples.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.interpolate import PchipInterpolator
from scipy.optimize import Bounds, differential_evolution, minimize

from test.optimization.simulated_cycle import arm_model
from ur_energy_model.energy.prediction import predict_energy
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.robots import load_robot
from ur_energy_model.optimization.path import PathLimits
from ur_energy_model.optimization.plan_optimization import optimize_plan
from ur_energy_model.trajectory.motions import move
from ur_energy_model.trajectory.named_motions import Planner
from ur_energy_model.trajectory.plan import Plan
from ur_energy_model.typing import Array

SEEDS = (3, 4, 5)
FACTORS = (1.3, 2.0, 4.0)
"""Durations relative to those of moves at 3 rad/s and 6 rad/s^2."""
_POINTS, _SAMPLES = 9, 300


@dataclass(frozen=True)
class StraightMove:
    """A straight joint-space move with a generic time law."""

    model: EnergyModel
    start: Array
    end: Array
    duration: float

    def plan(self, speeds: Array) -> Plan:
        """The move with relative path speeds (logarithms) at even points of the path."""
        share = np.linspace(0.0, 1.0, 801)
        curve = PchipInterpolator(np.linspace(0.0, 1.0, _POINTS), speeds)(share)
        v = np.exp(curve) * np.sqrt(np.maximum(share * (1.0 - share), 1e-7))
        steps = 2 * np.diff(share) / (v[1:] + v[:-1])
        clock = np.concatenate([[0.0], np.cumsum(steps)])
        factor = clock[-1] / self.duration
        at = np.linspace(0.0, clock[-1], _SAMPLES)
        s, pace = np.interp(at, clock, share), np.interp(at, clock, v) * factor
        pace[0] = pace[-1] = 0.0
        even = at / factor
        rate = np.gradient(pace, even)
        way = self.end - self.start
        return Plan(even, self.start + s[:, None] * way, pace[:, None] * way, rate[:, None] * way)

    def cost(self, speeds: Array, limits: PathLimits) -> float:
        """Predicted energy [J], with a penalty beyond the limits of speed and acceleration."""
        plan = self.plan(speeds)
        assert plan.qd is not None
        assert plan.qdd is not None
        over = max(
            float((np.abs(plan.qd) / limits.speed).max()),
            float((np.abs(plan.qdd) / limits.acceleration).max()),
            1.0,
        )
        if over > 1.02:
            return 1e3 * over
        return predict_energy(self.model, plan).total + 1e3 * (over - 1.0)


def search(case: StraightMove, limits: PathLimits, seed: int, rounds: int = 40) -> float:
    """The least energy that the search finds [J]."""
    bounds = Bounds(np.full(_POINTS, -1.5), np.full(_POINTS, 1.5))
    wide = differential_evolution(
        case.cost, bounds, args=(limits,), seed=seed, maxiter=rounds, popsize=6, polish=False
    )
    fine = minimize(
        case.cost, wide.x, args=(limits,), method="Nelder-Mead", options={"maxfev": 1500}
    )
    return float(min(wide.fun, fine.fun))


def cases() -> Iterator[StraightMove]:
    """Random moves of a simulated UR5e, each at several durations."""
    robot = load_robot("ur5e")
    model = arm_model()
    planner = Planner(robot)
    for seed in SEEDS:
        start, end = planner.random_points(seed, 2)
        fast = move(start, end, 3.0, 6.0).duration
        for factor in FACTORS:
            yield StraightMove(model, start, end, factor * fast)


def main() -> None:
    """Print each move's energy: even time law, the search's best, the optimization's."""
    limits = PathLimits.of_robot(load_robot("ur5e"))
    print("duration [s]   as moveJ   search   optimization [J]   above the search   time [s]")
    for number, case in enumerate(cases()):
        segment = move(case.start, case.end, 3.0, 6.0)
        at = np.linspace(0.0, segment.duration, _SAMPLES)
        plan = Plan(at, *segment.sample(at))
        scaled = predict_energy(
            case.model, plan, speed_scaling=segment.duration / case.duration
        ).total
        begin = time.process_time()
        new = optimize_plan(case.model, plan, duration=case.duration, limits=limits)
        spent = time.process_time() - begin
        energy = predict_energy(case.model, new).total
        best = search(case, limits, number)
        print(
            f"{case.duration:12.2f} {scaled:10.1f} {best:8.1f} {energy:18.1f} "
            f"{100 * (energy / best - 1):16.2f} % {spent:10.2f}",
            flush=True,
        )
