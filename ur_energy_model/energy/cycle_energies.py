# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""What work cycles took: their energies from the readings at marks, and the log of them."""

from __future__ import annotations

import csv
import io
import os
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from ur_energy_model.energy.cycles import Mark
from ur_energy_model.energy.meter import MeterReading
from ur_energy_model.energy.motion_marks import MOST_MARKS
from ur_energy_model.energy.powers import PARTS, ArmState, Channels, TotalSource
from ur_energy_model.errors import span
from ur_energy_model.files import cell_text, check_target, new_file, user_path

UNITS = ("_J", "_W", "_s")
"""Ends of the names of values with a unit; names of earlier versions are without them."""
MOST_SEEN = 2.05
"""Longest time with samples between two cycles that are apart by an outage, in cycles."""
UNACCOUNTED = "unaccounted_s"
TOTAL_SOURCE = "total_source"
MEASURED_SHARE = "total_measured_share"
ADDED = (
    UNACCOUNTED,
    "total_energy_std_J",
    "model_energy_J",
    "model_energy_std_J",
    "unexplained_energy_J",
    TOTAL_SOURCE,
    MEASURED_SHARE,
)
"""Values that logs of earlier versions may lack; they have no other names."""


@dataclass(frozen=True)
class Cycle:
    """Energy of one cycle, from the last sample before the cycle to the last sample in it.

    Attributes:
        number: 1 for the first one; numbers go on with the energy counters, over restarts
            of the program.
        start: time of the start, by the host's clock, which is the clock of ROS [ns since
            1970]; by the controller's clock where the samples have no host time.
        end: time of the end, by the clock of `start` [ns].
        reading: energies of all channels during the cycle.
        peak_power: largest total power [W].
        program: name of the loaded program; None if unknown.
    """

    number: int
    start: int
    end: int
    reading: MeterReading
    peak_power: float
    program: str | None = None

    @property
    def duration(self) -> float:
        """Time from start to end, gaps included [s]."""
        return self.reading.accounted + self.reading.unaccounted

    @property
    def unaccounted(self) -> float:
        """Time of the cycle without samples, whose energy is not in it [s]."""
        return self.reading.unaccounted

    @property
    def is_whole(self) -> bool:
        """Whether the whole cycle was seen, so that no part of its energy is missing."""
        return self.unaccounted == 0.0

    def words(self, energy: float) -> str:
        """The cycle in words, with its energy [J]."""
        words = f"cycle {self.number}: {energy:.1f} J in {span(self.duration)}"
        if self.is_whole:
            return words
        unseen = span(self.unaccounted)
        return f"{words}; {unseen} of it are without samples, and their energy is missing"

    def total_source(self, channels: Channels) -> TotalSource:
        """Where the total of the cycle comes from."""
        return channels.total_source(self.reading.net, self.reading.accounted)

    def summary(self, channels: Channels) -> dict[str, Any]:
        """Values in a fixed order, named with their units; `start` in s since 1970.

        All are numbers but `total_source`, a text. Joints, standby, driver, regeneration
        and unexplained sum to the total, and without unexplained to the model.
        """
        net = self.reading.net
        arm = channels.arm
        moving_time = net[channels.state_time + ArmState.MOVING]
        moving_energy = net[channels.state_energy + ArmState.MOVING]
        electrical = net[channels.per_joint["electrical_power"]]
        parts = (*PARTS, "unexplained", "model")
        source = self.total_source(channels)
        values = {
            "start": 1e-9 * self.start,
            "duration_s": self.duration,
            UNACCOUNTED: self.unaccounted,
            "total_energy_J": net[arm["total"]],
            "bus_energy_J": net[arm["bus"]],
            "peak_power_W": self.peak_power,
            "motion_time_s": moving_time,
            "motion_energy_J": moving_energy,
            "idle_time_s": net[channels.state_times].sum() - moving_time,
            "idle_energy_J": net[channels.state_energies].sum() - moving_energy,
            **{
                f"{joint}_energy_J": energy
                for joint, energy in zip(channels.joints, electrical, strict=True)
            },
            **{f"{name}_energy_J": net[arm[name]] for name in parts},
            "total_energy_std_J": channels.deviations_of_total(net),
            "model_energy_std_J": channels.deviations_of_model(net),
            MEASURED_SHARE: source.share,
        }
        numbers = {name: float(value) for name, value in values.items()}
        return {**numbers, TOTAL_SOURCE: source.name}


def without_units(summary: Mapping[str, Any]) -> dict[str, Any]:
    """Values of a summary under names without units, which all but ADDED once had."""
    return {
        name[:-2] if name.endswith(UNITS) else name: value
        for name, value in summary.items()
        if name != UNACCOUNTED
    }


def earlier_names(summary: Mapping[str, Any]) -> dict[str, Any]:
    """Values of a summary under their names of earlier versions, which had no units."""
    return without_units(
        {name: each for name, each in summary.items() if name not in ADDED}
    )


class CycleCounter:
    """Forms cycles from the readings at marks.

    Args:
        number: number of the last cycle.
    """

    def __init__(self, number: int = 0) -> None:
        self.number = number
        # Host time [ns] of the last sample before each mark, and energies up to this sample.
        self._marks: deque[tuple[int, MeterReading]] = deque(maxlen=MOST_MARKS)
        # Largest total power from each mark to the next one [W].
        self._peaks: deque[float] = deque(maxlen=MOST_MARKS)
        # Marks since the end of the last cycle; None before the first cycle.
        self._since: int | None = None
        self._usual = 0.0  # duration of the last cycle without an outage [s]

    def change_channels(self, convert: Callable[[MeterReading], MeterReading]) -> None:
        """Convert the readings at all marks to other channels."""
        marks = [(time, convert(reading)) for time, reading in self._marks]
        self._marks = deque(marks, maxlen=MOST_MARKS)

    def observe(self, total_power: float) -> None:
        """Include the largest total power [W] of some samples."""
        if self._peaks:
            self._peaks[-1] = max(self._peaks[-1], total_power)

    def mark(self, time: int, reading: MeterReading, mark: Mark) -> list[Cycle]:
        """Take a mark.

        Args:
            time: host time of the last sample before the mark [ns].
            reading: energies up to this sample.
            mark: mark with the number of the last cycle that is complete, where that is
                known.

        Returns:
            The cycles that are complete with the mark, without those whose begin is not
            remembered any more.
        """
        self._marks.append((time, reading))
        self._peaks.append(0.0)
        pairs = mark.cycles(len(self._marks))
        if self._since is not None:
            self._since += 1
            first_begin = pairs[0][0] if pairs else 0
            if pairs and self._has_outage(self._since, first_begin):
                pairs.insert(0, (self._since, first_begin))
        if mark.number is not None:
            self.number = mark.number - len(pairs)
        done = []
        for begin, end in pairs:
            start, before = self._marks[-1 - begin]
            stop, until = self._marks[-1 - end]
            self.number += 1
            cycle = Cycle(
                number=self.number,
                start=start,
                end=stop,
                reading=until - before,
                peak_power=max(self._peaks[k] for k in range(-1 - begin, -1 - end)),
                program=mark.program,
            )
            if cycle.is_whole:
                self._usual = cycle.duration
            done.append(cycle)
        if done:
            self._since = 0
        return done

    def _has_outage(self, begin: int, end: int) -> bool:
        """Whether the stretch between two cycles counts as a cycle with an outage.

        Cycles that are found by repeated motion are complete motions. An outage hides a
        part of one, which is not found then, and perhaps of the next one: that stretch is
        reported as one cycle, unless the arm did something else meanwhile, for longer
        than two cycles.

        Args:
            begin: marks since the end of the cycle before.
            end: marks since the beginning of the cycle after.
        """
        if begin <= end or begin >= len(self._marks):
            return False
        _, before = self._marks[-1 - begin]
        _, until = self._marks[-1 - end]
        reading = until - before
        return reading.unaccounted > 0.0 and reading.accounted <= MOST_SEEN * self._usual


# CycleLog: a CSV file with one row per cycle.

MOST_WAITING = 10_000
"""Rows that wait in memory while the disk cannot be written; older ones are dropped."""
LONGEST_HEADER = 10_000  # most bytes of the first line of a log


class CycleLog:
    """Appends a row when a cycle ends; rows that cannot be written wait.

    A log of an earlier version keeps its columns, and gets the columns of ADDED that it
    lacks; its earlier totals are modelled ones.

    Args:
        path: path of the CSV file; its folder is created if missing.

    Attributes:
        problem: why rows wait or are lost; None if all are written.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = user_path(path)
        self.problem: str | None = None
        self._waiting: deque[dict[str, object]] = deque()
        self._columns: list[str] = []  # columns of a new log
        self._dropped = 0  # number of rows that were lost

    def append(self, cycle: Cycle, channels: Channels) -> None:
        """Append a cycle."""
        summary = cycle.summary(channels)
        ended = datetime.fromtimestamp(1e-9 * cycle.end, timezone.utc)
        row: dict[str, object] = {
            "cycle": cycle.number,
            "ended": ended.isoformat(timespec="milliseconds"),
            **{cell_text(name): value for name, value in summary.items()},
        }
        self._columns = list(row)
        row |= {cell_text(name): value for name, value in earlier_names(summary).items()}
        self._waiting.append(row)
        if len(self._waiting) > MOST_WAITING:
            self._waiting.popleft()
            self._dropped += 1
        self.write()

    def write(self) -> None:
        """Write the rows that wait; a disk that cannot be written is a `problem`."""
        if not self._waiting:
            return
        try:
            check_target(self.path)
            self.path.parent.mkdir(parents=True, exist_ok=True)
            columns = self._known_columns()
            if columns and not set(columns) <= self._waiting[-1].keys():
                what = "has other columns than a log of this arm"
                self.problem = f"{self.path}: {what}; move it away"
                return
            missing = [name for name in ADDED if name not in columns]
            if columns and missing:
                columns = self._with_columns(columns, missing)
            self._write(columns)
            self._waiting.clear()
            self.problem = None
        except OSError as error:
            self.problem = f"{self.path}: cannot be written ({error.strerror or error})"
            if self._dropped:
                self.problem += f", {self._dropped} cycles are lost"

    def _known_columns(self) -> list[str]:
        """Columns of the log; none where it is missing or empty."""
        try:
            with self.path.open("rb") as file:
                header = file.readline(LONGEST_HEADER).decode(errors="replace")
        except FileNotFoundError:
            return []
        return [name.strip() for name in header.split(",")] if header else []

    def _with_columns(self, columns: list[str], added: list[str]) -> list[str]:
        """Add columns, whose values are unknown in the rows so far; returns all of them."""
        with self.path.open("rb") as old, new_file(self.path, "wb") as file:
            for number, line in enumerate(old):
                end = b"\r\n" if line.endswith(b"\r\n") else b"\n"
                cells = [""] * len(added) if number else added
                file.write(line.rstrip(b"\r\n") + b"," + ",".join(cells).encode() + end)
        return [*columns, *added]

    def _write(self, columns: list[str]) -> None:
        """Append the rows that wait to a log with these columns; a new log has none yet."""
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, columns or self._columns, extrasaction="ignore")
        if not columns:
            writer.writeheader()
        writer.writerows(self._waiting)
        with self.path.open("ab", buffering=0) as file:
            size = file.seek(0, os.SEEK_END)
            data = memoryview(text.getvalue().encode("utf-8"))
            try:
                while data:  # the write after a short one raises the error of the disk
                    written = file.write(data) or 0
                    data = data[written:]
            except OSError:
                with suppress(OSError):
                    file.truncate(size)  # no half row
                raise
