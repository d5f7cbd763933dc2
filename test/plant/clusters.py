# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Dask schedulers and workers as processes, and works on bags that they can import."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from ur_energy_model.errors import UrEnergyError

PATIENCE = 240.0  # longest time to wait for a process [s]; a bound, not an expectation
ROOT = Path(__file__).parents[2]


class Cluster(NamedTuple):
    """Processes of a scheduler and its workers."""

    address: str
    scheduler: subprocess.Popen[bytes]
    workers: list[subprocess.Popen[bytes]]


@contextmanager
def cluster(folder: Path, workers: int = 2) -> Iterator[Cluster]:
    """A cluster on the loopback interface, started by Dask's own commands."""
    place = folder / "scheduler.json"
    children: list[subprocess.Popen[bytes]] = []

    def start(*words: str) -> subprocess.Popen[bytes]:
        child = subprocess.Popen(
            [sys.executable, "-m", "dask", *words, "--no-dashboard"],
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(folder)},
        )
        children.append(child)
        return child

    loopback = ("--host", "127.0.0.1", "--dashboard-address", "127.0.0.1:0")
    try:
        scheduler = start(
            "scheduler", *loopback, "--port", "0", "--scheduler-file", str(place)
        )
        wait_for(place)
        address = json.loads(place.read_text())["address"]
        each = ("worker", address, *loopback, "--no-nanny", "--nthreads", "1")
        started = [start(*each, "--local-directory", str(folder)) for _ in range(workers)]
        yield Cluster(address, scheduler, started)
    finally:
        for child in children:
            child.kill()
        for child in children:
            child.wait(PATIENCE)


def wait_for(path: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while not (path.exists() and path.stat().st_size):
        assert time.monotonic() < deadline, f"{path} did not appear"
        time.sleep(0.01)


def size(bag: Path) -> int:
    """Length of a bag's name; bags named "bad" fail."""
    if bag.name == "bad":
        raise UrEnergyError(f"{bag}: is damaged")
    return len(bag.name)


def process(bag: Path) -> tuple[int, str | None]:
    """Process that works on the bag, and the threads that its linear algebra may use."""
    return os.getpid(), os.environ.get("OPENBLAS_NUM_THREADS")


def added(bag: Path, number: int) -> int:
    return number + len(bag.name)


def deadly(bag: Path) -> str:
    """End the worker of the bag named "bad"."""
    if bag.name == "bad":
        os.kill(os.getpid(), signal.SIGKILL)
    return bag.name


def first_try_waits(bag: Path) -> str:
    if bag.name == "slow":
        try:
            with (bag / "pid").open("x") as file:
                file.write(str(os.getpid()))
        except FileExistsError:
            return bag.name
        wait_for(bag / "never")
    return bag.name


def meets_the_others(bag: Path) -> int:
    (bag / "pid").write_text(str(os.getpid()))
    for other in bag.parent.iterdir():
        wait_for(other / "pid")
    return os.getpid()
