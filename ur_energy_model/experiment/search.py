"""Searches for exciting trajectories: many gradient descents in parallel, and S1's genetic one."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from ur_energy_model.errors import MotionRefusedError
from ur_energy_model.experiment.limits import Verdict
from ur_energy_model.experiment.problem import DesignProblem, DesignRequest
from ur_energy_model.model.fourier import FourierTrajectory

Array = NDArray[np.float64]
Progress = Callable[[float, str], None]

_STAGES = ((3.0, 4.0, 150), (100.0, 8.0, 80), (3000.0, 16.0, 80))
"""Penalty weight, sharpness of the objective and iterations of each stage of a descent."""
_CLOSING = 2.5
"""Part of the time limit kept for the last checks [s]."""
_PATIENCE = 1.0
"""How much longer than the time limit the first descent may take, in time limits."""
_HOP = 0.08
"""Random part of a start beside the best trajectory so far [rad]."""
_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True)
class Candidate:
    """A trajectory that passed every check.

    Attributes:
        x: free coefficients, see `DesignProblem`.
        value: of the objective, as reported.
        verdict: of the checks.
    """

    x: Array
    value: float
    verdict: Verdict


@dataclass(frozen=True)
class Design:
    """A designed trajectory with its figures.

    Attributes:
        trajectory: passed every check.
        condition_number: of its stacked base regressor over one period.
        objective: name of what was minimised.
        value: of the objective.
        verdict: of the checks.
        seconds: that the search took.
        starts: descents (or individuals) tried.
    """

    trajectory: FourierTrajectory
    condition_number: float
    objective: str
    value: float
    verdict: Verdict
    seconds: float
    starts: int

    def figures(self) -> dict[str, Any]:
        """The figures of the command line's JSON and of the trajectory file."""
        return {
            "condition_number": self.condition_number,
            "objective": self.objective,
            "max_velocity_ratio": self.verdict.max_velocity_ratio,
            "max_acceleration_ratio": self.verdict.max_acceleration_ratio,
            "clearance": self.verdict.clearance,
            "seconds": self.seconds,
            "objective_value": self.value,
            "max_position_ratio": self.verdict.max_position_ratio,
            "max_torque_ratio": self.verdict.max_torque_ratio,
            "max_tool_speed": self.verdict.max_tool_speed,
            "closest": list(self.verdict.closest),
            "starts": self.starts,
        }


def design_trajectory(
    request: DesignRequest,
    *,
    time_limit: float = 55.0,
    starts: int | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Design:
    """The best trajectory that many gradient descents find.

    Each descent follows the analytic gradient of objective and limits from a random motion, or
    from one beside the best so far; its end is kept where it passes every check.

    Args:
        request: what is wanted.
        time_limit: wall time of the search, its processes' start and the checks included [s]; a
            machine too busy to end a single descent in it takes up to twice as long.
        starts: end after this many descents per worker, for results that do not depend on the
            machine's speed; None searches until the time limit.
        workers: processes; None takes one a core.
        progress: called with a fraction done and a text.

    Returns:
        The best; also after Ctrl-C, where something was found by then.

    Raises:
        MotionRefusedError: no trajectory passed the checks.
    """
    begin = time.monotonic()
    count = workers or os.cpu_count() or 1
    context = multiprocessing.get_context("spawn")
    best: Candidate | None = None
    tried = 0
    with _single_threaded_children():
        deadline = begin + max(time_limit - _CLOSING, 0.5 * time_limit)
        pool = [_Worker(context, request, index, deadline, starts) for index in range(count)]
    try:
        open_pipes = {worker.pipe for worker in pool}
        while open_pipes:
            for pipe in wait(list(open_pipes), timeout=0.2):
                assert isinstance(pipe, Connection)
                try:
                    found: Candidate | None = pipe.recv()
                except EOFError:
                    open_pipes.discard(pipe)
                    continue
                tried += 1
                if found is not None and (best is None or found.value < best.value):
                    best = found
            elapsed = time.monotonic() - begin
            if progress is not None:
                state = "nothing yet" if best is None else f"best {best.value:.4g}"
                progress(min(elapsed / time_limit, 1.0), f"{tried} descents, {state}")
            if elapsed > time_limit and best is not None:
                break
    except KeyboardInterrupt:
        if best is None:
            raise
    finally:
        for worker in pool:
            worker.end()
    if best is None:
        raise MotionRefusedError(
            "no trajectory passed every check; give more time (--time-limit), a longer --period, "
            "a smaller --clearance or fewer walls"
        )
    problem = DesignProblem(request)
    return _design(problem, best, time.monotonic() - begin, tried)


def genetic_search(
    request: DesignRequest,
    *,
    population: int = 300,
    generations: int = 5,
    progress: Progress | None = None,
) -> Design:
    """A plain genetic algorithm with the setting of Raviola et al. 2021 (300 x 5) as default.

    Individuals are Fourier coefficients scaled into the joint limits; those that break another
    limit rank behind all that do not. Tournament selection, blend crossover, Gaussian mutation,
    the best tenth survives.

    Raises:
        MotionRefusedError: no individual passed the checks.
    """
    begin = time.monotonic()
    problem = DesignProblem(request)
    random = np.random.default_rng(request.seed)
    people = np.stack([problem.random_start(random) for _ in range(population)])
    fitness = np.array([_rank(problem, x) for x in people])
    for generation in range(generations):
        if progress is not None:
            progress(generation / generations, f"generation {generation + 1}")
        order = np.argsort(fitness)
        elite = order[: max(1, population // 10)]
        pairs = random.integers(0, population, (population - len(elite), 2, 2))
        parents = people[np.where(fitness[pairs[..., 0]] < fitness[pairs[..., 1]],
                                  pairs[..., 0], pairs[..., 1])]  # fmt: skip
        blend = random.uniform(-0.25, 1.25, parents[:, 0].shape)
        children = parents[:, 0] + blend * (parents[:, 1] - parents[:, 0])
        mutated = random.random(children.shape) < 0.05
        children = children + mutated * 0.1 * random.standard_normal(children.shape)
        children = np.stack([problem.within_joint_limits(x) for x in children])
        people = np.concatenate([people[elite], children])
        fitness = np.concatenate([fitness[elite], [_rank(problem, x) for x in children]])
    for index in np.argsort(fitness)[:20]:
        x, verdict = problem.finish(people[index])
        if verdict.passed:
            found = Candidate(x, problem.value(problem.trajectory(x)), verdict)
            tried = population * (generations + 1)
            return _design(problem, found, time.monotonic() - begin, tried)
    raise MotionRefusedError(
        "no individual of the genetic search passed every check; use a larger --population or "
        "the gradient search"
    )


def descend(problem: DesignProblem, x: Array, deadline: float = float("inf")) -> Candidate | None:
    """One descent from x [2 L - 1, n]; None where its end does not pass the checks.

    Args:
        problem: objective and limits.
        x: start.
        deadline: monotonic time at which to stop with what there is [s].
    """

    def watch(intermediate_result: Any) -> None:
        del intermediate_result
        if time.monotonic() > deadline:
            raise StopIteration

    flat = x.ravel()
    for weight, sharpness, iterations in _STAGES:

        def cost(
            flat: Array, weight: float = weight, sharpness: float = sharpness
        ) -> tuple[float, Array]:
            value, gradient = problem.cost(flat.reshape(problem.shape), weight, sharpness)
            return value, gradient.ravel()

        flat = minimize(
            cost, flat, jac=True, method="L-BFGS-B", callback=watch,
            options={"maxiter": iterations, "maxcor": 20},
        ).x  # fmt: skip
    end, verdict = problem.finish(flat.reshape(problem.shape))
    if not verdict.passed:
        return None
    return Candidate(end, problem.value(problem.trajectory(end)), verdict)


def _design(problem: DesignProblem, best: Candidate, seconds: float, tried: int) -> Design:
    request = problem.request
    plain = problem.trajectory(best.x)
    condition = problem.condition_number(plain)
    design = Design(plain, condition, request.objective, best.value, best.verdict, seconds, tried)
    record = {**design.figures(), "seed": request.seed, "clearance_kept": request.clearance,
              "tool_speed_limit": request.tool_speed}  # fmt: skip
    labelled = problem.trajectory(best.x, record)
    return Design(labelled, condition, request.objective, best.value, best.verdict, seconds, tried)


def _rank(problem: DesignProblem, x: Array) -> float:
    """Smooth objective on the search grid, with broken limits behind everything else."""
    motion = problem.motion(x)
    broken = problem.limits.penalty(*motion)[0]
    value = problem.objective.value(*motion)
    return value + (1e6 * (1 + broken) if broken > 1e-6 else 0.0)


class _Worker:
    """A process that descends until its time is over and sends what it finds."""

    def __init__(
        self, context: Any, request: DesignRequest, index: int, deadline: float,
        starts: int | None,
    ) -> None:  # fmt: skip
        self.pipe, theirs = context.Pipe(duplex=False)
        self._process = context.Process(
            target=_work, args=(theirs, request, index, deadline, starts), daemon=True
        )
        self._process.start()
        theirs.close()

    def end(self) -> None:
        """Stop the process, whatever it does."""
        self._process.terminate()
        self._process.join()
        self.pipe.close()


def _work(
    pipe: Connection, request: DesignRequest, index: int, deadline: float, starts: int | None
) -> None:
    """Body of a worker process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    begin = time.monotonic()
    problem = DesignProblem(request)
    random = np.random.default_rng([request.seed, index])
    best: Candidate | None = None
    done = 0
    while time.monotonic() < deadline and (starts is None or done < starts):
        x = problem.random_start(random)
        if best is not None and done % 3:
            x = problem.within_joint_limits(best.x + _HOP * random.standard_normal(x.shape))
        patience = _PATIENCE * (deadline - begin) if best is None else 0.0
        found = descend(problem, x, deadline + patience)
        if found is not None and (best is None or found.value < best.value):
            best = found
        done += 1
        try:
            pipe.send(found)
        except BrokenPipeError:  # the parent has left
            return


@contextmanager
def _single_threaded_children() -> Iterator[None]:
    """Child processes started inside use one BLAS thread each: there is one process a core."""
    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
