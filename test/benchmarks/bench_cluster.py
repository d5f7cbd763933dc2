"""Many bags by one worker process and by two: wall time, processor time, and their ratios.

On a machine whose cores are busy with other work, the wall time says little. The last column is
what the processor times allow on two free cores: everything that workers do halves, what the main
process does remains.
"""

from __future__ import annotations

import resource
import shutil
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter

from test.benchmarks.bench_identification import long_bag
from ur_energy_model.energy.recording_energy import estimate_energy
from ur_energy_model.identification.evaluation import evaluate
from ur_energy_model.identification.pipeline import identify
from ur_energy_model.many_bags import BagExecutor
from ur_energy_model.model.generic import generic_model
from ur_energy_model.plant.cluster import local_workers

BAGS, MINUTES = 8, 2
MODEL = generic_model("ur5e")
JOBS: dict[str, Callable[[BagExecutor, list[Path]], object]] = {
    "identify": lambda each, bags: identify(bags, "ur5e", each=each),
    "evaluate": lambda each, bags: list(each(partial(evaluate, MODEL), bags)),
    "estimate": lambda each, bags: list(each(partial(estimate_energy, MODEL), bags)),
}
"""What the commands do with many bags."""


def timed(name: str, bags: list[Path], workers: int) -> tuple[float, float, float]:
    """Wall time of a job, and processor times of this process and of its workers [s].

    Workers are started, and have done a first bag, before the clock starts: a plant has hundreds.
    """

    def spent(whose: int) -> float:
        usage = resource.getrusage(whose)
        return usage.ru_utime + usage.ru_stime

    before = spent(resource.RUSAGE_CHILDREN)
    with local_workers(workers) as each:
        JOBS["estimate"](each, bags[:workers])
        wall, own = perf_counter(), spent(resource.RUSAGE_SELF)
        JOBS[name](each, bags)
        wall, own = perf_counter() - wall, spent(resource.RUSAGE_SELF) - own
    return wall, own, spent(resource.RUSAGE_CHILDREN) - before


def main() -> None:
    """Print the figures."""
    with tempfile.TemporaryDirectory() as name:
        first = long_bag(Path(name), MINUTES)
        bags = [Path(name) / str(number) for number in range(BAGS)]
        for bag in bags:
            shutil.copytree(first, bag)
        print(f"{BAGS} bags of {MINUTES} min at 500 Hz")
        for job in JOBS:
            (one, here, worker), (two, *_) = (timed(job, bags, workers) for workers in (1, 2))
            print(
                f"{job}: one worker {one:.1f} s, two {two:.1f} s, ratio {one / two:.2f}; "
                f"processor time {here:.1f} s here and {worker:.1f} s in the worker, which allow "
                f"{(here + worker) / (here + 0.5 * worker):.2f}"
            )
