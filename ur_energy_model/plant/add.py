# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Adding bags to a history store: once each, on any number of processes and machines.

`BagWork` makes the history of a bag, perhaps in another process; `add_bags` commits the
histories one after the other; `BagFolder` finds the bags of a folder that are finished.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import chain
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from ur_energy_model.energy.calculator import EnergyCalculator
from ur_energy_model.energy.cycles import TRIGGER_FIELD, Trigger, detector_of_recording
from ur_energy_model.energy.matched_model import model_of_recording
from ur_energy_model.energy.powers import Channels
from ur_energy_model.energy.program import LINE, Script, read_script
from ur_energy_model.energy.recording_energy import measured_powers
from ur_energy_model.errors import RecordingError, UrEnergyError, printable
from ur_energy_model.many_bags import BagExecutor, BagResult, in_this_process
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.generic import generic_model
from ur_energy_model.model.robots import load_robot
from ur_energy_model.plant.energy_parts import (
    NOTHING,
    EnergyParts,
    PartTable,
    TimeRanges,
)
from ur_energy_model.plant.health_rows import HealthRows
from ur_energy_model.plant.program_rows import ProgramRows
from ur_energy_model.plant.rows import cycle_rows, second_rows
from ur_energy_model.plant.schema import ModelRow, SourceKeys, model_row
from ur_energy_model.plant.sources import SourceRecord
from ur_energy_model.plant.store import HistoryStore
from ur_energy_model.plant.store_changes import OverlapError
from ur_energy_model.telemetry.bag.files import file_number
from ur_energy_model.telemetry.bag.metadata import FILE_NAME, bag_hash
from ur_energy_model.telemetry.bag.reader import iterate_bag, read_info
from ur_energy_model.telemetry.samples import (
    arm_name,
    has_host_time,
    host_times,
    repetition,
)
from ur_energy_model.typing import Progress

QUIET = 5.0
"""Time without change after which a bag is neither recorded nor copied any more [s]."""
State = tuple[tuple[str, int, int], ...]
"""Names, sizes [bytes] and times of the last change [ns] of files."""


class BagFolder:
    """Finds finished bags in a folder.

    Of a bag that is being recorded, all storage files but the last are finished. Each
    counts as a recording of its own, so that a bag of several days is added file by file,
    and its old files may be deleted meanwhile.

    Args:
        folder: folder of bags, or one bag.
        quiet: time without change after which a bag is complete [s].
    """

    def __init__(self, folder: Path, quiet: float = QUIET) -> None:
        self._folder = folder
        self._quiet = quiet
        self._taken: dict[Path, State] = {}

    def take(self) -> list[Path]:
        """Recordings that are complete and new, or have changed since the last call, by name."""
        found = {path: _state(path) for path in self._recordings()}
        before = self._taken
        self._taken = found
        return sorted(path for path, state in found.items() if state != before.get(path))

    def put_back(self, path: Path) -> None:
        """Let `take` return a recording again, such as one that could not be added."""
        self._taken.pop(path, None)

    def _recordings(self) -> list[Path]:
        """Finished bags, and finished files of other bags."""
        found = list[Path]()
        folders = [self._folder]
        with suppress(OSError):
            folders += [path for path in self._folder.iterdir() if path.is_dir()]
        for folder in folders:
            if folder.name.startswith("."):  # not complete: it is renamed at the end
                continue
            changed = max((changed for _, _, changed in _state(folder)), default=0)
            is_quiet = time.time() - changed / 1e9 >= self._quiet
            if is_quiet and (folder / FILE_NAME).is_file():
                found.append(folder)
            else:
                found += sorted(folder.glob("*.mcap"), key=file_number)[:-1]
        return found


def _state(path: Path) -> State:
    """State of a bag or file; files that vanish meanwhile are left out."""
    states = []
    with suppress(OSError):
        files = sorted(path.iterdir()) if path.is_dir() else [path]
        for file in files:
            status = file.stat()
            states.append((file.name, status.st_size, status.st_mtime_ns))
    return tuple(states)


# The history of one bag

TAKEN_AT_ONCE = 4096  # number of waiting parts from which on rows are made of the parts
_SETTINGS = ("cycle_trigger", "cycle_output", "same_arm")
"""Attributes of `BagWork` that rows depend on, besides arm, model and scripts."""
MOST_OVERLAPS = 5
"""How often the history of a bag is made because others have added the same time
meanwhile."""


class BagHistory(NamedTuple):
    """The history of one bag, as `HistoryStore.add` takes it.

    Attributes:
        record: record of the bag.
        tables: rows by name of the table, without `joint_seconds`.
        ranges: host time that the rows cover [ns since 1970 UTC].
        model: row of the model with which the energies were computed.
        warnings: warnings for the user, one line each.
    """

    record: SourceRecord
    tables: dict[str, pa.Table]
    ranges: TimeRanges
    model: ModelRow
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class BagWork:
    """Makes the history of a bag for a store, perhaps in another process.

    A bag that was added before, and whose rows are lost, is added with the model, arm and
    settings of the first time.

    Attributes:
        address: address of the store.
        model: model of the arm; None for the generic model of the type that each bag
            names.
        model_name: key of the model, see `model_key`.
        arm: name of the arm; None for the serial number (or type) in each bag.
        cycle_trigger: what starts a cycle, see `CycleDetector`.
        cycle_output: digital output that starts a cycle, where the trigger is one.
        same_arm: whether the model is of this very arm, see `model_of_arm`.
        path: path of the model file; None for a generic model.
        scripts: scripts that name the nodes of programs, see `ProgramRows`.
        script_files: paths of these scripts.
        row: row of the model in the store; None for a model that is not from the store.
    """

    address: str
    model: EnergyModel | None
    model_name: str
    arm: str | None = None
    cycle_trigger: Trigger = "auto"
    cycle_output: int = 0
    same_arm: bool = False
    path: Path | None = None
    scripts: tuple[Script, ...] = ()
    script_files: Sequence[Path] = ()
    row: ModelRow | None = None

    @cached_property
    def _store(self) -> HistoryStore:
        """The store, opened once in each process."""
        return HistoryStore(self.address)

    def __call__(self, bag: Path) -> BagHistory | str:
        """Make the history of a bag; it is in memory as a whole.

        Args:
            bag: path of the bag.

        Returns:
            The history; only the SHA-256 of the bag if the store has it already.

        Raises:
            UrEnergyError: a bag that cannot be used, with place and remedy.
        """
        if not bag.exists():
            raise RecordingError(bag, "no such bag", "check the path")
        source = bag_hash(bag)
        store = self._store
        if store.has(source):
            return source
        earlier = store.record(source)
        if earlier is not None and earlier.robot:
            return self._as_before(earlier)._history(bag, source)
        return self._history(bag, source)

    def _as_before(self, earlier: SourceRecord) -> BagWork:
        """The work by which a bag was added before, so that the same rows are made again.

        Scripts that are not there any more are replaced by the scripts that are given
        now.

        Args:
            earlier: record of the bag.

        Raises:
            StoreError: the model of the first time is not there any more.
        """
        model, row = self._store.model(earlier, (self.model_name, self.model))
        settings = json.loads(earlier.settings or "{}")
        known = {name: settings[name] for name in _SETTINGS if name in settings}
        again = replace(
            self,
            model=model,
            model_name=earlier.model,
            arm=earlier.arm,
            row=row,
            **known,
        )
        files = tuple(map(Path, settings.get("scripts", ())))
        if all(file.is_file() for file in files):
            scripts = tuple(map(read_script, files))
            again = replace(again, scripts=scripts, script_files=files)
        return again

    def _history(self, bag: Path, source: str) -> BagHistory:
        """History of a bag that the store does not have as it was written.

        Args:
            bag: path of the bag.
            source: SHA-256 of the bag.
        """
        matched = model_of_recording(self._model_of(bag), bag, same_arm=self.same_arm)
        calculator = EnergyCalculator(matched.model, load_robot(matched.model.robot))
        channels = calculator.channels
        tables = measured_powers(calculator, bag, fields=(*TRIGGER_FIELD.values(), LINE))
        first = next(tables, None)
        if first is None:
            problem = "contains no sample whose values are all finite"
            raise RecordingError(bag, problem, "record again")
        robot = first.samples.info.robot or calculator.robot.name
        keys = SourceKeys(source, robot, self.model_name)
        arm = self.arm or arm_name(replace(first.samples.info, robot=robot))
        host_time = has_host_time(first.samples)
        others = NOTHING
        if host_time:
            start = int(host_times(first.samples)[0])
            others = self._store.covered(arm, start, besides=source)
        parts = EnergyParts(channels, others)
        health = HealthRows(calculator)
        nodes = ProgramRows(channels, self.scripts, others)
        sums = _PartSums(keys, channels)
        detector = detector_of_recording(bag, self.cycle_trigger, self.cycle_output)
        for powers in chain([first], tables):
            parts.update(powers, detector.find(powers.samples))
            health.update(powers)
            nodes.update(powers)
            if parts.waiting > TAKEN_AT_ONCE:
                sums.add(parts.take())
        sums.add(parts.so_far())
        cycles = [
            each for each in parts.cycles if not others.overlaps(each.start, each.end)
        ]
        rows = {
            "seconds": pa.concat_tables(sums.seconds),
            "cycles": cycle_rows(cycles, keys, channels),
            "health": health.rows(keys, last=True),
            "program_nodes": nodes.rows(keys),
        }
        record = SourceRecord(
            **vars(keys),
            bag=printable(str(bag.absolute())),
            arm=arm,
            start=min(sums.times),
            end=max(sums.times),
            host_time=host_time,
            rows={name: len(table) for name, table in rows.items()},
            energy=float(np.sum(rows["seconds"]["total_energy"].to_numpy())),
            accounted=sums.accounted,
            left_out=sums.left_out,
            settings=self._settings(),
        )
        # `joined` bridges pauses; shorter stretches of others in them are cut out again.
        ranges = sums.ranges.without(others) if host_time else NOTHING
        named = self.row or model_row(keys, self.model, self.path)
        warnings = list(repetition(calculator.repeated))
        if matched.warning:
            warnings.insert(0, matched.warning)
        return BagHistory(record, rows, ranges, named, tuple(warnings))

    def _model_of(self, bag: Path) -> EnergyModel:
        """The model that is given, or the generic model of the type that a bag names.

        Raises:
            RecordingError: no model is given, and the bag names no type.
        """
        if self.model is not None:
            return self.model
        robot = read_info(bag).robot
        if robot is None:
            remedy = "give --robot NAME, such as --robot ur5e, or a model file"
            raise RecordingError(bag, "does not name the robot", remedy)
        return generic_model(robot)

    def _settings(self) -> str:
        """What rows depend on besides bag, arm and model, as JSON."""
        settings = {name: getattr(self, name) for name in _SETTINGS}
        scripts = [printable(str(path.absolute())) for path in self.script_files]
        return json.dumps({**settings, "scripts": scripts})


class _PartSums:
    """Rows and sums over all parts of a bag.

    Args:
        keys: columns that all rows have in common.
        channels: channels of the powers.

    Attributes:
        seconds: rows of `seconds`.
        times: begins and ends of the parts [ns since 1970 UTC].
        ranges: time that the parts cover, and no other source.
        accounted: time integrated over that no other source covers [s].
        left_out: time integrated over that other sources cover [s].
    """

    def __init__(self, keys: SourceKeys, channels: Channels) -> None:
        self._keys = keys
        self._channels = channels
        self.seconds: list[pa.Table] = []
        self.times: list[int] = []
        self.ranges = NOTHING
        self.accounted = 0.0
        self.left_out = 0.0

    def add(self, parts: PartTable | None) -> None:
        """Add parts that follow the parts of the last call; None for no parts."""
        if parts is None:
            return
        self.seconds.append(second_rows(parts, self._keys, self._channels))
        self.times += [int(parts.begin.min()), int(parts.end.max())]
        self.ranges = self.ranges.joined(parts.ranges())
        self.accounted += float(parts.accounted[~parts.covered].sum())
        self.left_out += float(parts.accounted[parts.covered].sum())


# Adding


@dataclass
class Added:
    """The result of adding bags to a store.

    Attributes:
        records: records of the bags that were added.
        skipped: bags that the store had already.
        failed: bags whose history could not be made, with the reason.
        warnings: warnings for the user, one line each; also about rows that were lost and
            made again.
    """

    records: list[SourceRecord] = field(default_factory=list)
    skipped: list[Path] = field(default_factory=list)
    failed: list[BagResult[Any]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def sum(self, name: str) -> float:
        """Sum of an attribute of the records, such as "energy" [J]."""
        return float(sum(getattr(record, name) for record in self.records))


def add_bags(
    work: BagWork,
    bags: Sequence[Path],
    for_each: BagExecutor = in_this_process,
    progress: Progress | None = None,
) -> Added:
    """Add the history of bags to a store; bags that the store has already are skipped.

    Bags are added in the order of their begins, whatever the order in which they are
    given: where two bags of one arm overlap, that time of the later one is left out.

    Args:
        work: the store, the model and the settings.
        bags: paths of the bags.
        for_each: runs the work on each bag.
        progress: called with the share that is done, and a text.

    Raises:
        StoreError: the store cannot be read or written; bags added before stay.
    """
    store = HistoryStore(work.address)
    added = Added()
    store.mend()
    work = replace(work, address=store.address)
    for made in for_each(work, sorted(dict.fromkeys(bags), key=_begin), progress):
        bag = made.bag
        result, record = _stored(store, made, partial(for_each, work, [bag]))
        if result.value is None:
            added.failed.append(result)
        elif record is None or isinstance(result.value, str):
            added.skipped.append(bag)
        else:
            added.records.append(record)
            added.warnings += [f"{bag}: {warning}" for warning in result.value.warnings]
    if added.records:
        store.compact_if_many()
    added.warnings += store.notes
    return added


def _stored(
    store: HistoryStore,
    result: BagResult[BagHistory | str],
    make_again: Callable[[], Iterable[BagResult[BagHistory | str]]],
) -> tuple[BagResult[BagHistory | str], SourceRecord | None]:
    """Write the history of a bag, which is made again if others write the same time meanwhile.

    Args:
        store: the store.
        result: history of the bag, or the reason why there is none.
        make_again: makes the history of this bag once more.

    Returns:
        The result, with a reason if the history cannot be written; and the record of the
        bag, None if nothing was written.
    """
    bag = result.bag
    for _ in range(MOST_OVERLAPS):
        history = result.value
        if not isinstance(history, BagHistory):
            return result, None
        try:
            record = store.add(
                history.record, history.tables, history.ranges, history.model
            )
            return result, record
        except OverlapError:  # others have written the same time since it was made
            (result,) = make_again()
        except RecordingError as error:
            return BagResult(bag, None, str(error)), None
    reason = f"{bag}: others add the same time again and again; add it later"
    return BagResult(bag, None, reason), None


def _begin(bag: Path) -> tuple[float, str]:
    """Sort key of a bag: host time of its first sample [ns], and path.

    Unreadable bags are last.
    """
    try:
        return float(host_times(next(iterate_bag(bag, (), 1)))[0]), str(bag)
    except (UrEnergyError, OSError, StopIteration):
        return inf, str(bag)
