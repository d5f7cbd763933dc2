"""Work on many bags by the workers of a Dask cluster."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ur_energy_model.interrupts import postponed
from ur_energy_model.many_bags import BagResult, Result
from ur_energy_model.plant.cluster.errors import ClusterError
from ur_energy_model.plant.cluster.on_worker import bag_task, run_task
from ur_energy_model.typing import Progress

if TYPE_CHECKING:
    from distributed import Client, Future

PATIENCE = 300.0
"""Time after which a cluster without any worker counts as one that will have none [s]."""
_GLANCE = 0.2
"""Time between two reports of the progress [s]."""
_STEP = 0.01
"""Time between two checks of a task [s]."""
_AHEAD = 2
"""Bags at the cluster per thread of its workers."""
_LEAST_AHEAD = 16
"""Bags at the cluster at least, so that one which grows with its tasks does grow."""


class DaskBags:
    """A `ForEachBag`: each bag is a task of a Dask cluster.

    Only so many bags are at the cluster as keep its workers busy: memory does not grow with the
    number of bags. The scheduler gives the bags of a worker that dies to other workers, and gives
    up a bag with which several died.
    """

    def __init__(self, client: Client, address: str, patience: float = PATIENCE) -> None:
        self._client, self._address, self._patience = client, address, patience
        self._last_seen = time.monotonic()

    def __call__(
        self,
        work: Callable[..., Result],
        bags: Sequence[Path],
        progress: Progress | None = None,
        given: Sequence[Any] | None = None,
    ) -> Iterator[BagResult[Result]]:
        """See `ForEachBag`.

        Raises:
            ClusterError: the scheduler does not answer any more, no worker comes, or the workers
                lack this package.
        """
        sent: deque[Future[Any]] = deque()
        result: BagResult[Result] | None
        self._last_seen = time.monotonic()
        try:
            for number, bag in enumerate(bags):
                ahead = max(_LEAST_AHEAD, _AHEAD * self._threads())
                for k in range(number + len(sent), min(number + ahead, len(bags))):
                    task = bag_task(work, bags[k], () if given is None else (given[k],))
                    sent.append(self._client.submit(run_task, task, pure=False))
                while (result := self._result_soon(bag, sent[0])) is None:
                    if progress is not None:
                        done = number + sum(future.done() for future in sent)
                        progress(done / len(bags), self._text(done, len(bags)))
                sent.popleft()
                yield result
        finally:
            with postponed(), suppress(Exception):  # the cluster may be gone
                self._client.cancel(list(sent), force=True)

    def _threads(self) -> int:
        """Bags on which the cluster can work at the same time."""
        try:
            return sum(self._client.nthreads().values())
        except OSError:
            raise self._lost() from None

    def _result_soon(self, bag: Path, future: Future[Any]) -> BagResult[Result] | None:
        """Wait a moment for the result of a task; None if it is not there yet.

        Raises:
            ClusterError: the scheduler is lost, or no task will have a result.
        """
        from distributed.scheduler import KilledWorker

        # Not future.result(timeout=...): on a busy machine it fails in many ways besides a timeout.
        glance = time.monotonic() + _GLANCE
        while not future.done():
            if time.monotonic() > glance:
                self._check_cluster()
                return None
            time.sleep(_STEP)
        try:
            result: BagResult[Result] = future.result()
            return result
        except KilledWorker:
            problem = "every worker that tried it died, perhaps for lack of memory"
            return BagResult(bag, None, f"{bag}: {problem}")
        except (CancelledError, OSError):
            raise self._lost() from None
        except ModuleNotFoundError as error:
            raise ClusterError(
                self._address,
                f"its workers lack the Python package {error.name!r}",
                "install ur_energy_model, of the version of this machine, where the workers run",
            ) from None

    def _check_cluster(self) -> None:
        """Raise ClusterError if the scheduler is gone, or no worker comes."""
        if self._client.status != "running":
            raise self._lost()
        now = time.monotonic()
        if self._threads():
            self._last_seen = now
        elif now - self._last_seen > self._patience:
            raise ClusterError(
                self._address,
                f"has had no worker for {self._patience:.0f} s",
                f"start workers with: dask worker {self._address}",
            )

    def _text(self, done: int, total: int) -> str:
        """The current step, for progress."""
        threads = self._threads()
        if not threads:
            return f"{self._address}: waiting for a worker"
        workers = "1 worker" if threads == 1 else f"{threads} workers"
        return f"{done} of {total} bags, {workers}"

    def _lost(self) -> ClusterError:
        return ClusterError(
            self._address, "the scheduler does not answer any more", "start it and repeat"
        )
