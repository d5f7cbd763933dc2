"""Adding bags to a history store: once each, on any number of processes and machines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from typing import Any

from ur_energy_model.energy.calculator import EnergyCalculator
from ur_energy_model.energy.recording_checks import model_of_arm
from ur_energy_model.errors import RecordingError, UrEnergyError
from ur_energy_model.many_bags import BagResult, ForEachBag, in_this_process
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.generic import generic_model
from ur_energy_model.model.robots import load_robot
from ur_energy_model.plant.history.bag_history import BagHistory, HistoryOptions, bag_history
from ur_energy_model.plant.history.parquet_files import DAY, days_of
from ur_energy_model.plant.history.part_table import host_times
from ur_energy_model.plant.history.source_record import SourceRecord
from ur_energy_model.plant.history.store import HistoryStore, TimeTakenError
from ur_energy_model.plant.history.time_ranges import TimeRanges
from ur_energy_model.telemetry.bag.bag_hash import bag_hash
from ur_energy_model.telemetry.bag.reader import iterate_bag, read_info
from ur_energy_model.typing import Progress

MOST_TRIES = 5
"""Of a bag whose time other processes claim meanwhile."""
FIRST_DAYS = 2
"""Length of a bag for which other sources are looked up at first [days]."""


@dataclass(frozen=True)
class BagWork:
    """Makes the history of a bag, perhaps in another process.

    Attributes:
        address: of the store.
        model: of the arm; None takes the generic one of the type that each bag names.
        model_name: see `model_key`.
        options: how history is made.
        days: from the begin of a bag on, for which other sources are looked up.
        same_arm: see `model_of_arm`.
        path: of the model file; None for a generic model.
    """

    address: str
    model: EnergyModel | None
    model_name: str
    options: HistoryOptions
    days: int = FIRST_DAYS
    same_arm: bool = False
    path: Path | None = None

    def __call__(self, bag: Path) -> BagHistory | str:
        """History of the bag; only its SHA-256 if the store has it already.

        Raises:
            UrEnergyError: a bag that cannot be used, with place and remedy.
        """
        if not bag.exists():
            raise RecordingError(bag, "no such bag", "check the path")
        source = bag_hash(bag)
        store = HistoryStore(self.address)
        if store.has(source):
            return source

        def covered(arm: str, start: int) -> TimeRanges:
            days = days_of(TimeRanges.of([(start, start + self.days * DAY)]))
            return store.covered(arm, days, besides=source)

        model = _generic(bag) if self.model is None else self.model
        model, warning = model_of_arm(model, read_info(bag), same_arm=self.same_arm)
        calculator = EnergyCalculator(model, load_robot(model.robot))
        names = (source, self.model_name)
        history = bag_history(bag, calculator, names, self.options, covered)
        warnings = () if warning is None else (warning,)
        return replace(history, warnings=(*warnings, *history.warnings))


@dataclass
class Added:
    """Result of adding bags.

    Attributes:
        records: of the bags that were added.
        skipped: bags that the store has already.
        failed: bags that cannot be used, with reasons.
        warnings: about the added bags, what is foreign in the store and what was mended.
    """

    records: list[SourceRecord] = field(default_factory=list)
    skipped: list[Path] = field(default_factory=list)
    failed: list[BagResult[Any]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @property
    def seconds(self) -> int:
        """Number of rows in `seconds` of the added bags."""
        return sum(record.rows["seconds"] for record in self.records)

    @property
    def accounted(self) -> float:
        """Time of the added bags that has energy [s]."""
        return sum(record.accounted for record in self.records)

    @property
    def energy(self) -> float:
        """Total energy of the added bags [J]."""
        return sum(record.energy for record in self.records)


def add_bags(
    work: BagWork,
    bags: Sequence[Path],
    for_each: ForEachBag = in_this_process,
    progress: Progress | None = None,
) -> Added:
    """Add the history of bags to a store; those that it has already are skipped.

    Bags are added in the order of their begins, whatever the order in which they are given: where
    two of one arm overlap, the later one is left out for that time.

    Args:
        work: what is done with each bag.
        bags: recordings.
        for_each: runs the work.
        progress: called with the finished fraction and text.

    Raises:
        StoreError: the store cannot be read or written; bags added before stay.
        MissingPackageError: pyarrow is not installed.
    """
    store, added = HistoryStore(work.address), Added()
    work = replace(work, address=store.address)
    ordered = sorted(dict.fromkeys(bags), key=_begin)
    for result in for_each(work, ordered, progress):
        _commit(store, work, result, for_each, added)
    if added.skipped:  # a process that was killed after its last bag was written
        store.tidy()
    added.warnings += store.notes
    return added


def _commit(
    store: HistoryStore,
    work: BagWork,
    result: BagResult[BagHistory | str],
    for_each: ForEachBag,
    added: Added,
) -> None:
    """Write the history of a bag.

    Other processes may have written the same time since it was made: then it is made again without
    that time.
    """
    bag = result.bag
    for _ in range(MOST_TRIES):
        history = result.value
        if history is None:
            added.failed.append(result)
            return
        if isinstance(history, str):
            added.skipped.append(bag)
            return
        try:
            record = store.add(
                history.record, history.tables, history.ranges, (work.model, work.path)
            )
        except TimeTakenError:
            (result,) = for_each(replace(work, days=history.days), [bag])
            continue
        except RecordingError as error:
            added.failed.append(BagResult(bag, None, str(error)))
            return
        if record is None:
            added.skipped.append(bag)
        else:
            added.records.append(record)
            added.warnings += [f"{bag}: {warning}" for warning in history.warnings]
        return
    reason = f"{bag}: others add the same time again and again; add it later"
    added.failed.append(BagResult(bag, None, reason))


def _generic(bag: Path) -> EnergyModel:
    """The generic model of the arm in a bag.

    Raises:
        UrEnergyError: the bag cannot be read, does not name its robot, or that has none.
    """
    robot = read_info(bag).robot
    if robot is None:
        remedy = "give --robot NAME, such as --robot ur5e, or a model file"
        raise RecordingError(bag, "does not name the robot", remedy)
    return generic_model(robot)


def _begin(bag: Path) -> tuple[float, str]:
    """Sort key of bags: begin, then path; bags that cannot be read come last."""
    try:
        first = next(iterate_bag(bag, (), 1))
    except (UrEnergyError, OSError, StopIteration):
        return inf, str(bag)
    return float(host_times(first)[0]), str(bag)
