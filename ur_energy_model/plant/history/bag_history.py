"""BagHistory: the history of one bag, ready to be written to a store."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ur_energy_model.energy.calculator import EnergyCalculator
from ur_energy_model.energy.channels import Channels
from ur_energy_model.energy.live.cycles import TRIGGER_FIELD, CycleDetector, Trigger
from ur_energy_model.energy.power_table import PowerTable
from ur_energy_model.energy.recording_energy import measured_powers
from ur_energy_model.errors import RecordingError
from ur_energy_model.missing_packages import needed_here
from ur_energy_model.plant.history.cycle_rows import CycleRows
from ur_energy_model.plant.history.energy_parts import EnergyParts
from ur_energy_model.plant.history.parquet_files import DAY
from ur_energy_model.plant.history.part_table import PartTable, has_host_time, host_times
from ur_energy_model.plant.history.row_makers import MAKERS, RowMaker
from ur_energy_model.plant.history.second_rows import second_rows
from ur_energy_model.plant.history.source_keys import SourceKeys, robot_key
from ur_energy_model.plant.history.source_record import SourceRecord
from ur_energy_model.plant.history.time_ranges import NOTHING, TimeRanges
from ur_energy_model.telemetry.arm_identity import arm_name
from ur_energy_model.telemetry.samples import repetition
from ur_energy_model.typing import Progress

if TYPE_CHECKING:
    import pyarrow

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
    with needed_here():
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
