"""`--scheduler` and `--workers`: where a command works on many bags, and bags that fail there."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ur_energy_model.cli import arguments
from ur_energy_model.cli.output import note, progress
from ur_energy_model.errors import UrEnergyError
from ur_energy_model.many_bags import BagResult, ForEachBag, Result

if TYPE_CHECKING:
    from ur_energy_model.typing import Progress

_MOST_WORKERS = 1024


class FailedBagsError(UrEnergyError):
    """Some bags failed; the exit code shows whether there are results of others.

    Attributes:
        failed: the bags, with reasons.
    """

    def __init__(self, failed: Sequence[BagResult[Any]], bags: int) -> None:
        self.failed = tuple(failed)
        self.exit_code = 3 if len(failed) < bags else 1
        more = "" if len(failed) == 1 else f" (and {len(failed) - 1} more)"
        super().__init__(f"{len(failed)} of {bags} bags failed: {failed[0].reason}{more}")


def add_cluster(parser: argparse.ArgumentParser) -> None:
    """`--scheduler` and `--workers`."""
    parser.add_argument(
        "--scheduler",
        metavar="ADDRESS",
        help="work on the bags on a running Dask cluster, such as tcp://10.0.0.5:8786 "
        "(default: on the cores of this machine)",
    )
    parser.add_argument(
        "--workers",
        type=arguments.number(int, 1, _MOST_WORKERS),
        metavar="N",
        help="number of processes of this machine (default: as many as save time)",
    )


def is_distributed(options: argparse.Namespace) -> bool:
    """Whether the bags may be worked on elsewhere than in this process."""
    given = options.scheduler is not None or options.workers is not None
    return given or len(options.bags) > 1


def for_each_bag(
    options: argparse.Namespace, further: Sequence[Path] = ()
) -> AbstractContextManager[ForEachBag]:
    """What works on the bags of a command, for a `with` statement.

    Args:
        options: with `bags`, `scheduler` and `workers`.
        further: bags besides those.
    """
    from ur_energy_model.plant.cluster.bag_work import bag_work

    return bag_work([*options.bags, *further], options.scheduler, options.workers)


def results_of_bags(
    options: argparse.Namespace,
    text: str,
    here: Callable[[Path, Progress], Result],
    work: Callable[[Path], Result],
) -> list[BagResult[Result]]:
    """Results of the work on a command's bags.

    Args:
        options: with `bags`, `scheduler` and `workers`.
        text: what is done, for progress.
        here: the work on a single bag in this process, with progress within the bag.
        work: the same anywhere.

    Raises:
        UrEnergyError: the only bag fails, or the cluster cannot be used.
    """
    with progress(text) as report:
        if not is_distributed(options):
            (bag,) = options.bags
            return [BagResult(bag, here(bag, report))]
        with for_each_bag(options) as each:
            results = list(each(work, options.bags, report))
    if len(results) == 1 and results[0].value is None:
        raise UrEnergyError(results[0].reason)
    return results


def failed_of(results: Sequence[BagResult[Any]]) -> list[BagResult[Any]]:
    """The bags without a result."""
    return [result for result in results if result.value is None]


def failed_json(failed: Sequence[BagResult[Any]]) -> list[dict[str, Any]]:
    """Entry "failed" of JSON output."""
    return [{"bag": str(result.bag), "reason": result.reason} for result in failed]


def report_failed(failed: Sequence[BagResult[Any]], bags: int) -> None:
    """Name the bags that failed, and end the command accordingly.

    Raises:
        FailedBagsError: there are any.
    """
    for result in failed[1:]:
        note(f"failed: {result.reason}")
    if failed:
        raise FailedBagsError(failed, bags)
