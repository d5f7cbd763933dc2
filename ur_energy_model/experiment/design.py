# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The search for an exciting trajectory: many gradient descents in parallel.

Rooms may add further searches, see `DesignSearch`.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, Pipe, wait
from typing import Any, Protocol

import numpy as np

from ur_energy_model.errors import MotionRefusedError
from ur_energy_model.experiment.design_problem import DesignProblem, DesignRequest, shown
from ur_energy_model.experiment.limits import TrajectoryVerdict, check
from ur_energy_model.interrupts import exit_code
from ur_energy_model.processes import ChildProcess, single_threaded_children
from ur_energy_model.rooms import Given
from ur_energy_model.trajectory.fourier import FourierTrajectory
from ur_energy_model.typing import Array, Progress


@dataclass(frozen=True)
class Design:
    """A designed trajectory with its figures of merit.

    Attributes:
        trajectory: passed every check; its metadata contain the figures.
        condition_number: condition number of its stacked base regressor over one period.
        objective: name of the objective.
        value: value of the objective; smaller is better.
        verdict: verdict of the checks, with the largest shares of the limits.
        seconds: duration of the search [s].
        starts: number of descents, or individuals, that were tried.
    """

    trajectory: FourierTrajectory
    condition_number: float
    objective: str
    value: float
    verdict: TrajectoryVerdict
    seconds: float
    starts: int

    def figures(self) -> dict[str, Any]:
        """Figures of merit for JSON output and the trajectory file.

        Ratios are the largest shares of the joint limits, 1 at the limit.
        """
        names = ("position", "velocity", "acceleration", "torque")
        verdict = self.verdict
        return {
            "condition_number": self.condition_number,
            "objective": self.objective,
            "objective_value": self.value,
            **{
                f"max_{name}_ratio": getattr(verdict, f"max_{name}_ratio")
                for name in names
            },
            "max_tool_speed": verdict.max_tool_speed,
            "clearance": verdict.clearance,
            "closest": list(verdict.closest),
            "seconds": self.seconds,
            "starts": self.starts,
        }


def make_design(problem: DesignProblem, x: Array, begin: float, tried: int) -> Design:
    """The design of free coefficients, with its figures in the trajectory's metadata.

    Args:
        problem: problem whose checks the coefficients passed.
        x: free coefficients [2 L - 1, n], rad.
        begin: monotonic time at which the search began [s].
        tried: number of descents, or individuals, that were tried.
    """
    request = problem.request
    plain = problem.trajectory(x)
    design = Design(
        plain,
        problem.condition_number(plain),
        request.objective,
        problem.value(plain),
        check(plain, problem.limits),
        time.monotonic() - begin,
        tried,
    )
    record = {
        **design.figures(),
        "seed": request.seed,
        "clearance_kept": request.clearance,
        "tool_speed_limit": request.tool_speed,
    }
    if request.gaps:
        record["for_gap"] = shown(request.gaps, plain, request.robot)
    return replace(design, trajectory=problem.trajectory(x, record))


class DesignSearch(Protocol):
    """A search for an exciting trajectory that a room adds beside `design_trajectory`.

    Rooms add it to the subject "design"; `ur_energy excite --optimizer` has the name of the
    extension as a choice.
    """

    def design(
        self,
        request: DesignRequest,
        given: Given,
        *,
        time_limit: float,
        progress: Progress | None = None,
    ) -> Design:
        """The best trajectory that the search finds.

        Args:
            request: arm, surroundings and form of the trajectory.
            given: the values of the extension's options.
            time_limit: time after which the search ends early [s].
            progress: called with a fraction and a text.

        Raises:
            MotionRefusedError: no trajectory passed the checks.
        """


_STAGES = ((3.0, 4.0, 150), (100.0, 8.0, 80), (3000.0, 16.0, 80))
"""Penalty weight, sharpness of the objective and iterations of each stage of a descent."""
_CLOSING = 2.5
"""Time reserved for the last checks [s]."""
_PATIENCE = 1.0
"""Extra time for the first descent, relative to the time limit."""
_HOP = 0.08
"""Standard deviation of starts around the best trajectory so far [rad]."""


def design_trajectory(
    request: DesignRequest,
    *,
    time_limit: float = 55.0,
    starts: int | None = None,
    workers: int | None = None,
    keep_best: bool = False,
    progress: Progress | None = None,
) -> Design:
    """The best trajectory of many gradient descents.

    Each descent follows the analytic gradient of objective and limits from a random
    motion or from one near the best so far; its result is kept if it passes every check.

    Args:
        request: arm, surroundings and form of the trajectory.
        time_limit: wall time of the search, start of the processes and checks included
            [s]; twice as long if no descent has ended by then.
        starts: descents per worker, for results that do not depend on the speed of the
            machine; None searches until the time limit.
        workers: number of processes; None for one per core.
        keep_best: return the best trajectory so far, if there is one, when the user ends
            the search by Ctrl-C.
        progress: called with a fraction and a text.

    Raises:
        MotionRefusedError: no trajectory passed the checks.
    """
    begin = time.monotonic()
    deadline = begin + max(time_limit - _CLOSING, 0.5 * time_limit)
    best: tuple[float, Array] | None = None
    tried = 0
    pool: dict[Connection, ChildProcess] = {}  # workers by the pipe of their results
    try:
        for index in range(workers or os.cpu_count() or 1):
            _start_worker(pool, request, index, deadline, starts)
        running = set(pool)
        while running:
            for ready in wait(list(running), timeout=0.2):
                assert isinstance(ready, Connection)
                try:
                    found: tuple[float, Array] | None = ready.recv()
                except EOFError:  # the worker has ended
                    running.discard(ready)
                    continue
                tried += 1
                if found is not None and (best is None or found[0] < best[0]):
                    best = found
            elapsed = time.monotonic() - begin
            if progress is not None:
                state = "nothing yet" if best is None else f"best {best[0]:.4g}"
                progress(min(elapsed / time_limit, 1.0), f"{tried} descents, {state}")
            if elapsed > time_limit and best is not None:
                break
    except KeyboardInterrupt as interrupt:
        by_user = exit_code(interrupt) == exit_code(KeyboardInterrupt())
        if best is None or not (keep_best and by_user):
            raise
    finally:
        for pipe, process in pool.items():
            process.kill()
            process.join()
            pipe.close()
    if best is None:
        raise MotionRefusedError(
            "no trajectory passed every check; give more time (--time-limit), a longer --period, "
            "a smaller --clearance or fewer walls"
        )
    return make_design(DesignProblem(request), best[1], begin, tried)


def _start_worker(
    pool: dict[Connection, ChildProcess],
    request: DesignRequest,
    index: int,
    deadline: float,
    starts: int | None,
) -> None:
    """Start a worker process, and add it to a pool; arguments as of `_work`."""
    with single_threaded_children():
        pipe, theirs = Pipe(duplex=False)
        arguments = (theirs, request, index, deadline, starts)
        process = ChildProcess(target=_work, args=arguments, daemon=True)
        process.start()
        theirs.close()  # so that the end of the worker ends the pipe
        pool[pipe] = process


def descend(
    problem: DesignProblem, x: Array, deadline: float = float("inf")
) -> tuple[float, Array] | None:
    """One descent. Results differ between processors: rounding can change hundreds of steps.

    Args:
        problem: objective and limits.
        x: free coefficients from which it starts [2 L - 1, n], rad.
        deadline: monotonic time at which it stops early [s].

    Returns:
        Objective and free coefficients of the result; None if it does not pass the checks.
    """
    end, verdict = problem.finish(minimised(problem, x, deadline))
    return (problem.value(problem.trajectory(end)), end) if verdict.passed else None


def minimised(problem: DesignProblem, x: Array, deadline: float = float("inf")) -> Array:
    """Free coefficients after a descent, without checks.

    The penalty of violated limits grows from stage to stage, and the smooth objective
    approaches the exact one.

    Args:
        problem: objective and limits.
        x: free coefficients from which it starts [2 L - 1, n], rad.
        deadline: monotonic time at which it stops early [s].
    """

    def stop_at_deadline(intermediate_result: Any) -> None:
        del intermediate_result
        if time.monotonic() > deadline:
            raise StopIteration

    from scipy.optimize import minimize  # slow to import

    def cost(flat: Array, weight: float, sharpness: float) -> tuple[float, Array]:
        value, gradient = problem.cost(flat.reshape(problem.shape), weight, sharpness)
        return value, gradient.ravel()

    flat = x.ravel()
    for *stage, iterations in _STAGES:
        flat = minimize(
            cost,
            flat,
            args=tuple(stage),
            jac=True,
            method="L-BFGS-B",
            callback=stop_at_deadline,
            options={"maxiter": iterations, "maxcor": 20},
        ).x
    return np.asarray(flat.reshape(problem.shape))


def _work(
    pipe: Connection,
    request: DesignRequest,
    index: int,
    deadline: float,
    starts: int | None,
) -> None:
    """Body of a worker process: descents until the deadline.

    Two of three descents start near the best result so far, the others anywhere.

    Args:
        pipe: pipe to which results are sent, as `descend` returns them.
        request: arm, surroundings and form of the trajectory.
        index: number of the worker, which seeds its random choices.
        deadline: monotonic time after which no descent starts [s].
        starts: largest number of descents; None for no limit.
    """
    begin = time.monotonic()
    problem = DesignProblem(request)
    random = np.random.default_rng([request.seed, index])
    best: tuple[float, Array] | None = None
    done = 0
    while time.monotonic() < deadline and (starts is None or done < starts):
        x = problem.random_start(random)
        if best is not None and done % 3:
            near = best[1] + _HOP * random.standard_normal(x.shape)
            x = problem.within_joint_limits(problem.centred(near))
        patience = _PATIENCE * (deadline - begin) if best is None else 0.0
        found = descend(problem, x, deadline + patience)
        if found is not None and (best is None or found[0] < best[0]):
            best = found
        done += 1
        try:
            pipe.send(found)
        except BrokenPipeError:  # the parent has ended
            return
