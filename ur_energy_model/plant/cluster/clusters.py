"""Dask clusters: worker processes of this machine, or one that runs already."""

from __future__ import annotations

import logging
import os
import signal
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from multiprocessing import resource_tracker
from typing import TYPE_CHECKING

from ur_energy_model.interrupts import postponed
from ur_energy_model.missing_packages import needed_here
from ur_energy_model.plant.cluster.dask_bags import DaskBags
from ur_energy_model.plant.cluster.errors import ClusterError

if TYPE_CHECKING:
    from distributed import Client, LocalCluster

CONNECT = 10.0
"""Longest time to reach a scheduler [s]."""
_SCHEMES = ("tcp", "tls")
_LOOPBACK = "127.0.0.1"
_ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
"""Environment of worker processes: each has one core."""
_SETTINGS = {
    "distributed.scheduler.worker-saturation": 1.0,  # a bag that waits is not blamed for a death
    "distributed.scheduler.allowed-failures": 1,
}


@contextmanager
def local_workers(count: int) -> Iterator[DaskBags]:
    """Worker processes of this machine, which end with the block.

    They and their scheduler listen on the loopback interface alone, encrypted with keys of
    these processes alone, and serve no dashboard.

    Args:
        count: number of processes, each with one thread.

    Raises:
        MissingPackageError: distributed is not installed.
    """
    with needed_here():
        import dask
        from distributed import Client
    with ExitStack() as opened:
        opened.enter_context(_quiet())
        folder = opened.enter_context(tempfile.TemporaryDirectory(prefix="ur_energy-workers-"))
        opened.enter_context(dask.config.set({**_SETTINGS, "temporary-directory": folder}))
        with postponed():  # an interrupt half-way would leave processes behind
            cluster = _scheduler(folder)
            opened.callback(_closed, cluster)
            opened.push(lambda kind, *_: _kill_workers(cluster) if kind else None)
            cluster.scale(count)
            client = Client(cluster, set_as_default=False)
            opened.callback(_closed, client)
        yield DaskBags(client, "the processes of this machine")


@contextmanager
def running_cluster(address: str) -> Iterator[DaskBags]:
    """A cluster that runs already.

    Args:
        address: of its scheduler, such as "tcp://10.0.0.5:8786"; TLS by Dask's configuration.

    Raises:
        ClusterError: no scheduler answers there.
        MissingPackageError: distributed is not installed.
    """
    with needed_here():
        from distributed import Client
    _check_address(address)
    with ExitStack() as opened:
        opened.enter_context(_quiet())
        try:
            client = Client(address, timeout=CONNECT, set_as_default=False)
        except (OSError, ValueError, RuntimeError, TypeError) as error:
            raise ClusterError(
                address,
                f"no scheduler answers ({error})",
                "start one with: dask scheduler --no-dashboard, and give its address",
            ) from None
        opened.callback(_closed, client)
        yield DaskBags(client, address)


def _check_address(address: str) -> None:
    """Refuse what cannot be the address of a scheduler, before Dask waits for it.

    Raises:
        ClusterError: it is malformed, or needs keys for TLS that are not configured.
    """
    from distributed import Security
    from distributed.comm.addressing import parse_address, parse_host_port

    try:
        scheme, place = parse_address(address)
        parse_host_port(place)
    except ValueError:
        scheme = ""
    if scheme not in _SCHEMES:
        raise ClusterError(
            address, "is not the address of a scheduler", "give one such as tcp://10.0.0.5:8786"
        )
    if scheme == "tls" and not Security().get_connection_args("client").get("ssl_context"):
        raise ClusterError(
            address,
            "needs certificates",
            "name them in Dask's configuration (distributed.comm.tls)",
        )


def _scheduler(folder: str) -> LocalCluster:
    """A scheduler without workers.

    Its threads, and the workers that they start, do not see Ctrl-C, which a terminal sends to all
    processes: the main process ends them.

    Args:
        folder: for files of the workers.
    """
    from distributed import LocalCluster, Security

    # The thread that starts the tracker of multiprocessing sees SIGINT afterwards: not a worker's.
    resource_tracker.ensure_running()
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        return LocalCluster(
            n_workers=0,
            threads_per_worker=1,
            processes=True,
            host=_LOOPBACK,
            dashboard_address=None,
            scheduler_kwargs={"dashboard": False, "dashboard_address": f"{_LOOPBACK}:0"},
            security=Security.temporary(),
            silence_logs=logging.CRITICAL,
            local_directory=folder,
            memory_limit=0,
            env=_ONE_THREAD,
        )
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


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


def _kill_workers(cluster: LocalCluster) -> None:
    """End worker processes at once: what they are still doing is of no use."""
    for nanny in cluster.workers.values():
        nanny.auto_restart = False
        if nanny.pid is not None:
            with suppress(ProcessLookupError):
                os.kill(nanny.pid, signal.SIGKILL)


def _closed(what: Client | LocalCluster) -> None:
    """Close a client or cluster, without an end half-way by another Ctrl-C."""
    with postponed():
        what.close()
