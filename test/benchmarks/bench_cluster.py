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

BAGS = 8
MINUTES = 2

Job = Callable[[BagExecutor, list[Path]], object]


def jobs() -> dict[str, Job]:
    """What the commands do with many bags."""
    model = generic_model("ur5e")
    return {
        "identify": lambda each, bags: identify(bags, "ur5e", each=each),
        "evaluate": lambda each, bags: list(each(partial(evaluate, model), bags)),
        "estimate": lambda each, bags: list(each(partial(estimate_energy, model), bags)),
    }


def timed(job: Job, bags: list[Path], workers: int) -> tuple[float, float, float]:
    """Wall time of a job, and processor times of this process and of its workers [s].

    Workers are started, and have done a first bag, before the clock starts: a plant has hundreds.
    """
    spent = processor_time(resource.RUSAGE_CHILDREN)
    with local_workers(workers) as each:
        list(each(partial(estimate_energy, generic_model("ur5e")), bags[:workers]))
        wall, own = perf_counter(), processor_time(resource.RUSAGE_SELF)
        job(each, bags)
        wall, own = perf_counter() - wall, processor_time(resource.RUSAGE_SELF) - own
    return wall, own, processor_time(resource.RUSAGE_CHILDREN) - spent


def processor_time(whose: int) -> float:
    """Processor time of this process or of its ended children so far [s]."""
    usage = resource.getrusage(whose)
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    """Print the figures."""
    with tempfile.TemporaryDirectory() as name:
        first = long_bag(Path(name), MINUTES)
        bags = [Path(name) / str(number) for number in range(BAGS)]
        for bag in bags:
            shutil.copytree(first, bag)
        print(f"{BAGS} bags of {MINUTES} min at 500 Hz")
        for title, job in jobs().items():
            one, two = (timed(job, bags, workers) for workers in (1, 2))
            possible = (one[1] + one[2]) / (one[1] + 0.5 * one[2])
            print(
                f"{title}: one worker {one[0]:.1f} s, two {two[0]:.1f} s, ratio "
                f"{one[0] / two[0]:.2f}; processor time {one[1]:.1f} s here and {one[2]:.1f} s in "
                f"the worker, which allow {possible:.2f}"
            )


if __name__ == "__main__":
    main()
