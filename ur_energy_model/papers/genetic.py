# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The genetic search for an exciting trajectory by which the papers designed theirs.

Raviola et al., RAAD 2021, code Fourier coefficients as numbers; Machines 2024, 12(9), 595
codes them in bits. `ur_energy excite --optimizer genetic` compares the search with the
gradient descents of `experiment.design`.
"""

from __future__ import annotations

import time

import numpy as np

from ur_energy_model.errors import MotionRefusedError
from ur_energy_model.experiment.design import Design, make_design
from ur_energy_model.experiment.design_problem import DesignProblem, DesignRequest
from ur_energy_model.papers.room import GeneticOptions
from ur_energy_model.rooms import Given
from ur_energy_model.typing import Array, Progress


class GeneticSearch:
    """The genetic search as a choice of --optimizer, a `DesignSearch`."""

    def design(
        self,
        request: DesignRequest,
        given: Given,
        *,
        time_limit: float,
        progress: Progress | None = None,
    ) -> Design:
        """Design a trajectory with population and generations of the options.

        Args:
            request: requirements on the trajectory.
            given: options of the command.
            time_limit: time limit of the search [s], see `genetic_search`.
            progress: called with a fraction and a text.

        Raises:
            MotionRefusedError: no individual passed the checks.
        """
        options = given.of(GeneticOptions)
        return genetic_search(
            request,
            population=options.population,
            generations=options.generations,
            time_limit=time_limit,
            progress=progress,
        )


SEARCH = GeneticSearch()
_PARENTS = 2  # parents of a child; the first generation has at least as many individuals
_ELITE = 10  # one of so many individuals survives unchanged
_CHECKED = 20  # best individuals that the decisive check is tried on


def genetic_search(
    request: DesignRequest,
    *,
    population: int = 300,
    generations: int = 5,
    binary: bool = False,
    time_limit: float = float("inf"),
    progress: Progress | None = None,
) -> Design:
    """Search with a genetic algorithm; the defaults are from Raviola et al. 2021 (300 x 5).

    Individuals are Fourier coefficients scaled into the joint limits; those that violate
    another limit rank behind all others. Selection is by tournament, crossover by
    blending, mutation is Gaussian, and the best tenth of each generation survives.

    Args:
        request: requirements on the trajectory; the seed determines all random choices.
        population: number of individuals of a generation.
        generations: number of generations after the first, random one.
        binary: code the coefficients in bits (Machines 2024, 12(9), 595), with uniform
            crossover and flipped bits.
        time_limit: time after which no individual and no generation is added [s]; a
            generation that has begun is finished.
        progress: called with a fraction and a text.

    Returns:
        The best individual that passed every check.

    Raises:
        MotionRefusedError: no individual passed the checks.
    """
    begin = time.monotonic()
    problem = DesignProblem(request)
    random = np.random.default_rng(request.seed)
    first: list[Array] = []
    first_fitness: list[float] = []
    while len(first) < population:
        if len(first) >= _PARENTS and time.monotonic() - begin >= time_limit:
            break
        x = problem.random_start(random)
        first.append(x)
        first_fitness.append(_rank(problem, x))
    individuals = np.array(first)
    fitness = np.array(first_fitness)
    population = len(first)
    tried = population
    for generation in range(generations):
        if time.monotonic() - begin > time_limit:
            break
        if progress is not None:
            progress(generation / generations, f"generation {generation + 1}")
        order = np.argsort(fitness)
        elite = order[: max(1, population // _ELITE)]
        # Each of two parents is the fitter one of two individuals drawn at random.
        pairs = random.integers(0, population, (population - len(elite), _PARENTS, 2))
        first_wins = fitness[pairs[..., 0]] < fitness[pairs[..., 1]]
        parents = individuals[np.where(first_wins, pairs[..., 0], pairs[..., 1])]
        if binary:
            children = _binary_children(parents, random)
        else:
            children = _blended_children(parents, random)
        children = problem.centred(children)
        children = np.stack([problem.within_joint_limits(x) for x in children])
        individuals = np.concatenate([individuals[elite], children])
        fitness = np.concatenate([fitness[elite], [_rank(problem, x) for x in children]])
        tried += len(children)
    for index in np.argsort(fitness)[:_CHECKED]:
        x, verdict = problem.finish(individuals[index])
        if verdict.passed:
            return make_design(problem, x, begin, tried)
    raise MotionRefusedError(
        "no individual of the genetic search passed every check; use a larger --population or "
        "the gradient search"
    )


_BEYOND = 0.25  # reach of children beyond their parents, over the distance of the parents
_MUTATED = 0.05  # share of the coefficients that mutate
_MUTATION = 0.1  # standard deviation of a mutation [rad]


def _blended_children(parents: Array, random: np.random.Generator) -> Array:
    """Children between their parents or a little beyond, with some mutated coefficients.

    Args:
        parents: coefficients of pairs [pairs, 2, ...], rad.
        random: generator of all random choices.

    Returns:
        One child of each pair [pairs, ...], rad.
    """
    mother = parents[:, 0]
    father = parents[:, 1]
    blend = random.uniform(-_BEYOND, 1 + _BEYOND, mother.shape)
    children = mother + blend * (father - mother)
    mutated = random.random(children.shape) < _MUTATED
    steps = _MUTATION * random.standard_normal(children.shape)
    return np.asarray(children + mutated * steps)


_BITS = 16  # bits of a coefficient between -pi and pi
_FLIPPED = 0.01  # share of the bits that mutation flips


def _binary_children(parents: Array, random: np.random.Generator) -> Array:
    """Children in binary code: each bit is from either parent, and some bits are flipped.

    Args:
        parents: coefficients of pairs [pairs, 2, ...], rad; clipped to plus or minus pi.
        random: generator of all random choices.

    Returns:
        One child of each pair [pairs, ...], rad.
    """
    step = 2 * np.pi / (2**_BITS - 1)
    genes = np.round((np.clip(parents, -np.pi, np.pi) + np.pi) / step).astype(np.int64)
    mother = genes[:, 0]
    father = genes[:, 1]
    from_mother = random.integers(0, 2**_BITS, mother.shape)  # a bit for each bit
    crossed = (mother & from_mother) | (father & ~from_mother)
    is_flipped = random.random((*mother.shape, _BITS)) < _FLIPPED
    flips = is_flipped @ (1 << np.arange(_BITS))
    return np.asarray((crossed ^ flips) * step - np.pi)


_NO_PENALTY = 1e-6  # penalty up to which no limit counts as violated
_INFEASIBLE = 1e6  # more than any feasible objective


def _rank(problem: DesignProblem, x: Array) -> float:
    """Objective on the search grid; any violated limit ranks behind all feasible values.

    Args:
        problem: objective and limits.
        x: free coefficients [2 L - 1, n], rad.
    """
    motion = problem.motion(x)
    penalty = float(problem.limits.penalty(*motion)[0])
    value = float(problem.objective.value(*motion))
    if penalty > _NO_PENALTY:
        return value + _INFEASIBLE * (1.0 + penalty)
    return value
