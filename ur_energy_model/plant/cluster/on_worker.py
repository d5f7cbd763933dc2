"""What a worker does with one bag."""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic

from ur_energy_model import __version__
from ur_energy_model.many_bags import BagResult, Result, result_of


@dataclass(frozen=True)
class BagTask(Generic[Result]):
    """The work on one bag, as it is sent to a worker.

    Attributes:
        work: called with `path` and `given`.
        bag: as given by the user.
        given: further arguments of the work.
        path: absolute path of the bag.
        exists: whether the bag is there where the task comes from.
        version: of this package where the task comes from.
    """

    work: Callable[..., Result]
    bag: Path
    given: tuple[Any, ...]
    path: Path
    exists: bool
    version: str


def bag_task(work: Callable[..., Result], bag: Path, given: tuple[Any, ...]) -> BagTask[Result]:
    """The task of a bag that is named relative to the directory of this process."""
    path = bag.absolute()
    return BagTask(work, bag, given, path, path.exists(), __version__)


def run_task(task: BagTask[Result]) -> BagResult[Result]:
    """Do the work on the bag of a task, in the process of a worker."""
    problem = _problem_here(task)
    if problem is not None:
        return BagResult(task.bag, None, f"{task.path}: {problem}")
    result = result_of(task.work, task.path, task.given)
    reason = result.reason
    if reason is not None:
        reason = reason.replace(str(task.path), str(task.bag))
    return BagResult(task.bag, result.value, reason)


def _problem_here(task: BagTask[Result]) -> str | None:
    """Why this worker cannot do the task, in one line; None if it can."""
    host = socket.gethostname()
    if task.version != __version__:
        return (
            f"the worker on {host} has version {__version__} of ur_energy_model, the command "
            f"{task.version}; install the same on all machines"
        )
    if task.exists and not task.path.exists():
        return (
            f"is not on {host}, where a worker runs; put the bags where all workers find them "
            "under the same path"
        )
    return None
