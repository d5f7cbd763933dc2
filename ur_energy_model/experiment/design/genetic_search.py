"""Genetic search of Raviola et al. 2021 for an exciting trajectory, for comparison."""

from __future__ import annotations

import time

import numpy as np

from ur_energy_model.errors import MotionRefusedError
from ur_energy_model.experiment.design.design import Design, DesignCandidate, make_design
from ur_energy_model.experiment.design.problem import DesignProblem, DesignRequest
from ur_energy_model.typing import Array, Progress


def genetic_search(
    request: DesignRequest,
    *,
    population: int = 300,
    generations: int = 5,
    time_limit: float = float("inf"),
    progress: Progress | None = None,
) -> Design:
    """A genetic algorithm; the defaults are those of Raviola et al. 2021 (300 x 5).

    Individuals are Fourier coefficients scaled into the joint limits; those that violate another
    limit rank behind all others. Tournament selection, blend crossover, Gaussian mutation, elitism
    of one tenth.

    Args:
        request: the wanted trajectory.
        population: number of individuals.
        generations: number of generations.
        time_limit: wall time after which no individual and no generation is added [s]; the last
            generation may take as long again.
        progress: called with a fraction and a text.

    Raises:
        MotionRefusedError: no individual passed the checks.
    """
    begin = time.monotonic()
    problem = DesignProblem(request)
    random = np.random.default_rng(request.seed)
    first: list[tuple[Array, float]] = []
    while len(first) < population and (len(first) < 2 or time.monotonic() - begin < time_limit):
        x = problem.random_start(random)
        first.append((x, _rank(problem, x)))
    individuals, fitness = (np.array(each) for each in zip(*first, strict=True))
    population = tried = len(first)
    for generation in range(generations):
        if time.monotonic() - begin > time_limit:
            break
        if progress is not None:
            progress(generation / generations, f"generation {generation + 1}")
        order = np.argsort(fitness)
        elite = order[: max(1, population // 10)]
        pairs = random.integers(0, population, (population - len(elite), 2, 2))
        parents = individuals[
            np.where(fitness[pairs[..., 0]] < fitness[pairs[..., 1]], pairs[..., 0], pairs[..., 1])
        ]
        blend = random.uniform(-0.25, 1.25, parents[:, 0].shape)
        children = parents[:, 0] + blend * (parents[:, 1] - parents[:, 0])
        mutated = random.random(children.shape) < 0.05
        children = children + mutated * 0.1 * random.standard_normal(children.shape)
        children = np.stack([problem.within_joint_limits(x) for x in problem.centred(children)])
        individuals = np.concatenate([individuals[elite], children])
        fitness = np.concatenate([fitness[elite], [_rank(problem, x) for x in children]])
        tried += len(children)
    for index in np.argsort(fitness)[:20]:
        x, verdict = problem.finish(individuals[index])
        if verdict.passed:
            found = DesignCandidate(x, problem.value(problem.trajectory(x)), verdict)
            return make_design(problem, found, time.monotonic() - begin, tried)
    raise MotionRefusedError(
        "no individual of the genetic search passed every check; use a larger --population or "
        "the gradient search"
    )


def _rank(problem: DesignProblem, x: Array) -> float:
    """Objective on the search grid; any violated limit ranks behind all feasible values."""
    motion = problem.motion(x)
    penalty = problem.limits.penalty(*motion)[0]
    value = problem.objective.value(*motion)
    return value + (1e6 * (1 + penalty) if penalty > 1e-6 else 0.0)
