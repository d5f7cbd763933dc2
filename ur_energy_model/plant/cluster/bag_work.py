"""Where many bags are worked on: in this process, in others of this machine, or on a cluster."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from ur_energy_model.errors import InputError
from ur_energy_model.many_bags import ForEachBag, in_this_process

_WORTH_A_PROCESS = 400e6
"""Bytes of bags per process from which starting one saves time: a start takes some seconds."""


@contextmanager
def bag_work(
    bags: Sequence[Path], scheduler: str | None = None, workers: int | None = None
) -> Iterator[ForEachBag]:
    """What works on these bags; its processes and connections end with the block.

    Args:
        bags: to work on.
        scheduler: address of the scheduler of a running Dask cluster.
        workers: number of processes of this machine; as many as its cores and the size of the bags
            suggest if None.

    Raises:
        InputError: scheduler and workers are both given.
        ClusterError: no scheduler answers at the address.
        MissingPackageError: distributed is needed and not installed.
    """
    if scheduler is not None and workers is not None:
        raise InputError(
            "--workers", "is for this machine, --scheduler for a cluster", "leave one out"
        )
    count = min(_suggested(bags) if workers is None else workers, len(bags))
    if scheduler is None and count <= 1:
        yield in_this_process
        return
    from ur_energy_model.plant.cluster.clusters import local_workers, running_cluster

    cluster = local_workers(count) if scheduler is None else running_cluster(scheduler)
    with cluster as each:
        yield each


def _suggested(bags: Sequence[Path]) -> int:
    """Processes that are worth starting on this machine."""
    if len(bags) < 2 or find_spec("distributed") is None:
        return 1
    size = sum(file.stat().st_size for bag in bags for file in _files(bag))
    return min(len(os.sched_getaffinity(0)), int(size / _WORTH_A_PROCESS))


def _files(bag: Path) -> list[Path]:
    found = [bag, *bag.iterdir()] if bag.is_dir() else [bag]
    return [path for path in found if path.is_file()]
