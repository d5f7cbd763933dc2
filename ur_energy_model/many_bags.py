"""Work on many bags: what runs it, here or on a cluster, and what it returns for each bag.

The rooms that work on bags take a `BagExecutor`; plant/cluster has one that uses Dask.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from ur_energy_model.errors import UrEnergyError, one_line
from ur_energy_model.typing import Progress

Result = TypeVar("Result")


@dataclass(frozen=True)
class BagResult(Generic[Result]):
    """What the work on one bag, as given by the user, gave; or in one line why it failed."""

    bag: Path
    value: Result | None
    reason: str | None = None


class BagExecutor(Protocol):
    """Runs the same work on every bag; one that fails does not end the others.

    Results come in the order of the bags, so that what is made of them does not depend on workers.
    """

    def __call__(
        self,
        work: Callable[..., Result],
        bags: Sequence[Path],
        progress: Progress | None = None,
        given: Sequence[Any] | None = None,
    ) -> Iterator[BagResult[Result]]:
        """Results of `work`, which is called with each bag and its element of `given`, if any.

        This may be in another process or on another machine: work, what it is given and its result
        can be pickled, and paths are absolute there.
        """
        ...


def in_this_process(
    work: Callable[..., Result],
    bags: Sequence[Path],
    progress: Progress | None = None,
    given: Sequence[Any] | None = None,
) -> Iterator[BagResult[Result]]:
    """One bag after the other, in this process: the BagExecutor that needs nothing else."""
    for number, bag in enumerate(bags):
        if progress is not None:
            progress(number / len(bags), f"{bag.name}: {number + 1} of {len(bags)} bags")
        yield result_of(work, bag, () if given is None else (given[number],))


def result_of(work: Callable[..., Result], bag: Path, given: tuple[Any, ...]) -> BagResult[Result]:
    """The result of the work on one bag, or why it failed."""
    try:
        return BagResult(bag, work(bag, *given))
    except UrEnergyError as error:
        reason = str(error)
    except OSError as error:
        reason = f"{error.filename or bag}: {error.strerror or error}"
    except MemoryError:
        reason = f"{bag}: not enough memory"
    except Exception as error:  # the other bags of a long run are still of use
        reason = f"{bag}: unexpected {type(error).__name__}: {error}; please report it"
    return BagResult(bag, None, one_line(reason))
