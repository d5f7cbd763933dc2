# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Work on many bags by the workers of a Dask cluster, in place of processes of this machine.

Each bag is a task. The package and the bags have to be on all machines, under the same
paths and in the same version; a worker that lacks one of them reports it as the result of
its task.
"""

from __future__ import annotations

import logging
import socket
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ur_energy_model import __version__
from ur_energy_model.errors import InputError
from ur_energy_model.interrupts import postponed
from ur_energy_model.many_bags import (
    KILLED,
    BagExecutor,
    BagResult,
    Result,
    result_of,
)
from ur_energy_model.plant.room import ClusterOptions
from ur_energy_model.rooms import Given
from ur_energy_model.typing import Progress

if TYPE_CHECKING:
    from distributed import Client, Future


class ClusterError(InputError):
    """A Dask cluster that cannot be used; `source` is the address of its scheduler."""


def cluster_given(given: Given) -> AbstractContextManager[BagExecutor] | None:
    """The cluster of --scheduler, for commands that work on many bags.

    Args:
        given: options of the command, the `ClusterOptions` among them.

    Returns:
        Executor of the cluster for a `with` statement, which raises ClusterError where no
        scheduler answers; None without --scheduler.
    """
    scheduler = given.of(ClusterOptions).scheduler
    return None if scheduler is None else running_cluster(scheduler)


def run_task(
    work: Callable[..., Result],
    bag: Path,
    given: tuple[Any, ...],
    origin: tuple[Path, bool, str],
) -> BagResult[Result]:
    """Do the work on a bag, in the process of a worker.

    Args:
        work: function of the path of the bag and of what is given.
        bag: path as the user named it, for the result.
        given: further arguments of the work.
        origin: absolute path of the bag, whether the bag is there on the machine of the
            command, and the version of the package there.

    Returns:
        The result; with a reason where worker and command differ, or the work failed.
    """
    path, exists, version = origin
    host = socket.gethostname()
    problem = None
    if version != __version__:
        problem = f"the worker on {host} has version {__version__} of ur_energy_model, the command "
        problem += f"{version}; install the same on all machines"
    elif exists and not path.exists():
        problem = (
            f"is not on {host}, where a worker runs; put the bags where all workers find "
        )
        problem += "them under the same path"
    if problem is not None:
        return BagResult(bag, None, f"{path}: {problem}")
    result = result_of(work, path, given)
    reason = None if result.reason is None else result.reason.replace(str(path), str(bag))
    return BagResult(bag, result.value, reason)


# Work on many bags by the workers of a Dask cluster.

PATIENCE = 300.0
"""Time after which a cluster without any worker counts as one that will have none [s]."""
_GLANCE = 0.2  # time between two reports of the progress [s]
_STEP = 0.01  # time between two checks of a task [s]
_AHEAD = 2  # bags at the cluster per thread of its workers
_LEAST_AHEAD = 16
"""Bags at the cluster at least, so that one which grows with its tasks does grow."""


class DaskBags:
    """A `BagExecutor`: each bag is a task of a Dask cluster.

    Only so many bags are at the cluster as keep its workers busy: memory does not grow
    with the number of bags. The scheduler gives the bags of a worker that dies to other
    workers, and gives up a bag with which several workers died.

    Args:
        client: client of the cluster.
        address: address of the scheduler.

    Raises:
        ClusterError: (when results are read) the scheduler does not answer any more, no
            worker comes within PATIENCE, or the workers lack this package.
    """

    def __init__(self, client: Client, address: str) -> None:
        self._client = client
        self._address = address
        problem = "the scheduler does not answer any more"
        self._lost = ClusterError(address, problem, "start it and repeat")

    def __call__(
        self,
        work: Callable[..., Result],
        bags: Sequence[Path],
        progress: Progress | None = None,
        given: Sequence[Any] | None = None,
    ) -> Iterator[BagResult[Result]]:
        """Results of the work in the order of the bags; see `BagExecutor`."""
        sent: deque[Future[Any]] = deque()

        def report(threads: int) -> None:
            """Report how many bags are done."""
            if progress is not None:
                done = number + sum(future.done() for future in sent)
                text = f"{self._address}: waiting for a worker"
                if threads:
                    workers = "worker" if threads == 1 else "workers"
                    text = f"{done} of {len(bags)} bags, {threads} {workers}"
                progress(done / len(bags), text)

        try:
            for number, bag in enumerate(bags):
                ahead = max(_LEAST_AHEAD, _AHEAD * self._threads())
                for later in range(number + len(sent), min(number + ahead, len(bags))):
                    path = bags[later]
                    origin = (path.absolute(), path.exists(), __version__)
                    own = () if given is None else (given[later],)
                    task = (work, path, own, origin)
                    sent.append(self._client.submit(run_task, *task, pure=False))
                self._wait_for(sent[0], report)
                yield self._result(bag, sent.popleft())
        finally:
            with postponed(), suppress(Exception):  # the cluster may be gone
                self._client.cancel(list(sent), force=True)

    def _wait_for(self, future: Future[Any], report: Callable[[int], None]) -> None:
        """Wait until a task is done.

        Args:
            future: the task. Not future.result(timeout=...): on a busy machine it also
                fails in other ways.
            report: called every _GLANCE with the number of bags that are worked on.

        Raises:
            ClusterError: the cluster has no worker for PATIENCE.
        """
        last_seen = time.monotonic()
        glance = last_seen + _GLANCE
        while not future.done():
            time.sleep(_STEP)
            now = time.monotonic()
            if now < glance:
                continue
            threads = self._threads()
            glance = time.monotonic() + _GLANCE
            if threads:
                last_seen = now
            if now - last_seen > PATIENCE:
                problem = f"has had no worker for {PATIENCE:.0f} s"
                remedy = f"start workers with: dask worker {self._address}"
                raise ClusterError(self._address, problem, remedy)
            report(threads)

    def _threads(self) -> int:
        """Bags on which the cluster can work at the same time."""
        if self._client.status == "running":
            with suppress(OSError):
                return sum(self._client.nthreads().values())
        raise self._lost

    def _result(self, bag: Path, future: Future[Any]) -> BagResult[Any]:
        """The result of a task that is done.

        Raises:
            ClusterError: the cluster cannot be used.
        """
        from distributed.scheduler import KilledWorker

        try:
            return future.result()  # type: ignore[no-any-return]
        except KilledWorker:
            return BagResult(bag, None, f"{bag}: {KILLED}")
        except (CancelledError, OSError):
            raise self._lost from None
        except ModuleNotFoundError as error:
            problem = f"its workers lack the Python package {error.name!r}"
            remedy = (
                "install ur_energy_model, of the version of this machine, where they run"
            )
            raise ClusterError(self._address, problem, remedy) from None


# Connections to a Dask cluster.

CONNECT = 10.0  # longest time to reach a scheduler [s]
_SCHEMES = ("tcp", "tls")


@contextmanager
def running_cluster(address: str) -> Iterator[DaskBags]:
    """The executor of a cluster that runs already, for a `with` statement.

    Certificates and keys for TLS come from Dask's configuration.

    Args:
        address: address of the scheduler, such as tcp://10.0.0.5:8786.

    Raises:
        ClusterError: the address is malformed, needs keys for TLS that are not
            configured, or no scheduler answers there.
    """
    from distributed import Client, Security
    from distributed.comm.addressing import parse_address, parse_host_port

    try:  # before Dask waits for what cannot be an address
        scheme, place = parse_address(address)
        parse_host_port(place)
    except ValueError:
        scheme = ""
    if scheme not in _SCHEMES:
        remedy = "give one such as tcp://10.0.0.5:8786"
        raise ClusterError(address, "is not the address of a scheduler", remedy)
    if scheme == "tls" and not Security().get_connection_args("client").get(
        "ssl_context"
    ):
        remedy = "name them in Dask's configuration (distributed.comm.tls)"
        raise ClusterError(address, "needs certificates", remedy)
    with ExitStack() as opened:
        opened.enter_context(_quiet())
        try:
            client = Client(address, timeout=CONNECT, set_as_default=False)
        except (OSError, ValueError, RuntimeError, TypeError) as error:
            remedy = "start one with: dask scheduler --no-dashboard, and give its address"
            raise ClusterError(
                address, f"no scheduler answers ({error})", remedy
            ) from None
        opened.callback(_close, client)
        yield DaskBags(client, address)


@contextmanager
def _quiet() -> Iterator[None]:
    """Within the block distributed does not log or warn: errors reach the user as results."""
    import dask

    logger = logging.getLogger("distributed")
    level = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
            yield
    finally:
        logger.setLevel(level)


def _close(what: Client) -> None:
    """Close a client, without an end half-way by another request to end."""
    with postponed():
        what.close()
