"""Adding bags to a history store: once each, on any number of processes and machines."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow

from ur_energy_model.energy.calculator import EnergyCalculator
from ur_energy_model.energy.cycles import TRIGGER_FIELD, CycleDetector, Trigger
from ur_energy_model.energy.powers import Channels, PowerTable
from ur_energy_model.energy.recording_energy import measured_powers
from ur_energy_model.energy.telemetry_checks import model_of_arm
from ur_energy_model.errors import RecordingError, UrEnergyError, optional_import
from ur_energy_model.many_bags import BagExecutor, BagResult, in_this_process
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.generic import generic_model
from ur_energy_model.model.robots import load_robot
from ur_energy_model.plant.energy_parts import (
    NOTHING,
    EnergyParts,
    PartTable,
    TimeRanges,
    has_host_time,
    host_times,
)
from ur_energy_model.plant.rows import MAKERS, CycleRows, RowMaker, second_rows
from ur_energy_model.plant.schema import SourceKeys, robot_key
from ur_energy_model.plant.source_record import DAY, SourceRecord, days_of
from ur_energy_model.plant.store import HistoryStore, OverlapError
from ur_energy_model.telemetry.bag.files import file_number
from ur_energy_model.telemetry.bag.metadata import FILE_NAME, bag_hash
from ur_energy_model.telemetry.bag.reader import iterate_bag, read_info
from ur_energy_model.telemetry.samples import arm_name, repetition
from ur_energy_model.typing import Progress

# BagFolder: a folder in which bags appear and grow, and what of them can be added to a history.

QUIET = 5.0
"""A bag that has not changed for this time is not being recorded or copied [s]."""
State = tuple[tuple[str, int, int], ...]
"""Names, sizes [bytes] and times of the last change [ns] of files."""


class BagFolder:
    """Finds finished bags in a folder.

    Of a bag that is being recorded, all storage files but the last are complete; they are
    recordings of their own, so that a bag of days is followed, and old files of it may be deleted
    meanwhile.

    Args:
        folder: of bags, or one bag.
        quiet: time without change after which a bag is complete [s].
    """

    def __init__(self, folder: Path, quiet: float = QUIET) -> None:
        self._folder, self._quiet = folder, quiet
        self._taken: dict[Path, State] = {}

    def take(self) -> list[Path]:
        """Recordings that are complete and were not taken as they are now, in order of names."""
        found = {path: _state(path) for path in self._recordings()}
        ready = sorted(path for path, state in found.items() if state != self._taken.get(path))
        self._taken = {path: state for path, state in self._taken.items() if path in found}
        self._taken |= {path: found[path] for path in ready}
        return ready

    def put_back(self, path: Path) -> None:
        """Let a recording be taken again."""
        self._taken.pop(path, None)

    def _recordings(self) -> list[Path]:
        found: list[Path] = []
        folders = [self._folder]
        with suppress(OSError):
            folders += [path for path in self._folder.iterdir() if path.is_dir()]
        for folder in folders:
            if folder.name.startswith("."):  # on its way to its name
                continue
            if (folder / FILE_NAME).is_file() and self._is_quiet(folder):
                found.append(folder)
            else:
                found += sorted(folder.glob("*.mcap"), key=file_number)[:-1]
        return found

    def _is_quiet(self, folder: Path) -> bool:
        newest = max((changed for _, _, changed in _state(folder)), default=0)
        return time.time() - newest / 1e9 >= self._quiet


def _state(path: Path) -> State:
    """State of a bag or file; files that vanish meanwhile are left out."""
    states = []
    with suppress(OSError):
        for file in sorted(path.iterdir()) if path.is_dir() else [path]:
            status = file.stat()
            states.append((file.name, status.st_size, status.st_mtime_ns))
    return tuple(states)


# BagHistory: the history of one bag, ready to be written to a store.

TAKEN_AT_ONCE = 4096
"""Parts of which rows are made together."""


@dataclass(frozen=True)
class HistoryOptions:
    """How the history of bags is made.

    Attributes:
        arm: name of the arm; None takes the serial number (or type) in the bag.
        cycle_trigger, cycle_output: what starts a cycle, see CycleDetector.
    """

    arm: str | None = None
    cycle_trigger: Trigger = "auto"
    cycle_output: int = 0


@dataclass(frozen=True)
class BagHistory:
    """The history of one bag.

    Attributes:
        record: of the bag.
        tables: rows by name of the table.
        ranges: host time that the rows cover; nothing where it is not known.
        warnings: for the user, one line each.
    """

    record: SourceRecord
    tables: dict[str, pyarrow.Table]
    ranges: TimeRanges
    warnings: tuple[str, ...] = ()

    @property
    def days(self) -> int:
        """Number of days on which the bag may have rows."""
        return (self.record.end - self.record.start) // DAY + 2


def bag_history(
    bag: Path,
    calculator: EnergyCalculator,
    names: tuple[str, str],
    options: HistoryOptions,
    covered: Callable[[str, int], TimeRanges],
    progress: Progress | None = None,
) -> BagHistory:
    """The history of a bag, in memory for a day of waiting seconds and its rows.

    Args:
        bag: recording.
        calculator: of the arm, new.
        names: SHA-256 of the bag, and name of the model (`model_key`).
        options: see HistoryOptions.
        covered: time that other sources of an arm cover from a host time [ns] on.
        progress: called with NaN and a text.

    Raises:
        UrEnergyError: input that cannot be used, with place and remedy.
        MissingPackageError: pyarrow is not installed.
    """
    with optional_import():
        import pyarrow as pa
    state: _State | None = None
    fields = tuple(TRIGGER_FIELD.values())
    for powers in measured_powers(calculator, bag, fields=fields, progress=progress):
        if state is None:
            state = _State.begin(powers, calculator, names, options, covered)
        state.update(powers)
    if state is None:
        raise RecordingError(bag, "contains no sample whose values are all finite", "record again")
    history = state.finish(bag, pa.concat_tables)
    return replace(history, warnings=repetition(calculator.repeated))


@dataclass
class _State:
    """What is known while a bag is read."""

    keys: SourceKeys
    arm: str
    host_time: bool
    channels: Channels
    others: TimeRanges
    """Time that other sources cover."""
    parts: EnergyParts
    detector: CycleDetector
    cycles: CycleRows
    makers: list[RowMaker]
    seconds: list[pyarrow.Table]
    ranges: TimeRanges = NOTHING
    accounted: float = 0.0
    left_out: float = 0.0
    start: int | None = None
    end: int = 0

    @classmethod
    def begin(
        cls,
        powers: PowerTable,
        calculator: EnergyCalculator,
        names: tuple[str, str],
        options: HistoryOptions,
        covered: Callable[[str, int], TimeRanges],
    ) -> _State:
        samples, channels = powers.samples, calculator.channels
        robot = robot_key(samples.info, calculator.robot.name)
        arm = arm_name(replace(samples.info, robot=robot)) if options.arm is None else options.arm
        known = has_host_time(samples)
        others = covered(arm, int(host_times(samples)[0])) if known else NOTHING
        return cls(
            keys=SourceKeys(names[0], robot, names[1]),
            arm=arm,
            host_time=known,
            channels=channels,
            others=others,
            parts=EnergyParts(channels, others),
            detector=CycleDetector(options.cycle_trigger, options.cycle_output),
            cycles=CycleRows(channels),
            makers=[make(calculator) for make in MAKERS],
            seconds=[],
        )

    def update(self, powers: PowerTable) -> None:
        self.parts.update(powers, self.detector.find(powers.samples))
        for maker in self.makers:
            maker.update(powers)
        if self.parts.waiting > TAKEN_AT_ONCE:
            self._take(self.parts.take())

    def finish(
        self, bag: Path, concat: Callable[[list[pyarrow.Table]], pyarrow.Table]
    ) -> BagHistory:
        self._take(self.parts.so_far())
        tables = {
            "seconds": concat(self.seconds),
            "cycles": self.cycles.take(self.keys),
            **{maker.table: maker.rows(self.keys) for maker in self.makers},
        }
        record = SourceRecord(
            source=self.keys.source,
            bag=str(bag.absolute()),
            arm=self.arm,
            robot=self.keys.robot,
            model=self.keys.model,
            start=self.start or 0,
            end=self.end,
            host_time=self.host_time,
            rows={name: rows.num_rows for name, rows in tables.items()},
            energy=float(np.sum(tables["seconds"].column("total_energy").to_numpy())),
            accounted=self.accounted,
            left_out=self.left_out,
        )
        # Stretches of others that are shorter than the pauses that joining bridges are cut out.
        return BagHistory(record, tables, self.ranges.without(self.others))

    def _take(self, parts: PartTable | None) -> None:
        if parts is None:
            return
        self.start = int(parts.begin[0]) if self.start is None else self.start
        self.end = int(parts.end[-1])
        self.accounted += float(parts.accounted[~parts.covered].sum())
        self.left_out += float(parts.accounted[parts.covered].sum())
        if self.host_time:
            self.ranges = self.ranges.joined(parts.ranges())
        self.cycles.update(parts)
        self.seconds.append(second_rows(parts, self.keys, self.channels))


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
    for_each: BagExecutor = in_this_process,
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
    for_each: BagExecutor,
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
        except OverlapError:
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
