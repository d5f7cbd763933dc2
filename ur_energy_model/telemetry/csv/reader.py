# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Reads CSV recordings of RTDE data, plain or gzipped, in bounded memory.

Columns are named by a header line of RTDE field names, as ur_rtde's recorder and
Universal Robots' Python client write it, or by options; they are separated by commas,
semicolons, tabs, bars or blanks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from ur_energy_model.telemetry.csv.columns import TIME
from ur_energy_model.telemetry.csv.file import CsvFile, contents_of_rows, rounded_rate
from ur_energy_model.telemetry.csv.table import CsvOptions
from ur_energy_model.telemetry.fields import ENERGY_FIELDS
from ur_energy_model.telemetry.gaps import Gap
from ur_energy_model.telemetry.repeated_samples import SeenSamples
from ur_energy_model.telemetry.samples import (
    RecordingInfo,
    Telemetry,
    concatenate,
)
from ur_energy_model.telemetry.time_scale import TimeScaleFit
from ur_energy_model.typing import Array

NEXT_FILE = "next file"
"""Cause of the gap between two files."""
_AHEAD_OF_ZERO = 2.0  # added to times, so that all are positive [s]
_STEPS_PER_SECOND = 1e8
"""Times that differ by less than 10 ns are equal; the largest possible time still fits 64 bits."""


def read_csv(
    paths: Sequence[Path | str],
    robot: str | None,
    *,
    options: CsvOptions = CsvOptions(),  # noqa: B008  immutable
    note: Callable[[str], None] = lambda text: None,
) -> Telemetry:
    """Read recordings of one robot completely, with a gap between files.

    Args:
        paths: paths of the files, at least one file.
        robot: description name for the recording's info, such as "ur5e"; None if unknown.
        options: how to read the files.
        note: called with each remark on fields, columns and rows, one line each.

    Raises:
        RecordingError: an unusable file, with place and remedy.
    """
    return concatenate(list(CsvReader(paths, robot, options, note)))


class CsvReader:
    """CSV recordings of one robot, one after the other, in batches.

    Args:
        paths: paths of the files, at least one file.
        robot: description name for the recording's info.
        options: how to read the files.
        note: called with each remark on missing fields, ignored columns and rows, one
            line each.

    Attributes:
        info: provenance.
        fields: RTDE names of the fields that all files have.
        duration: time covered so far without gaps [s].
        repeated: rows left out because an earlier one has the same time and values.
        time: how the time of the first file was read; `spread` counts the rows of all
            files.
        time_scale: whether positions advance as speeds and times require, by the batches
            so far.

    Raises:
        RecordingError: an unusable file, with place and remedy; some faults show only
            while iterating.
    """

    def __init__(
        self,
        paths: Sequence[Path | str],
        robot: str | None,
        options: CsvOptions,
        note: Callable[[str], None],
    ) -> None:
        self._files = [CsvFile(Path(path), options, note) for path in paths]
        first = self._files[0]
        common = [TIME]
        for name in first.header.places:
            if all(name in file.header.places for file in self._files):
                common.append(name)
            else:
                note(f"{name}: left out, because not all files have it")
        self.fields = tuple(common)
        missing = [name for name in ENERGY_FIELDS if name not in self.fields]
        if missing:
            note(f"missing fields: {', '.join(missing)}")
        spread = sum(file.time.spread for file in self._files)
        self.time = first.time._replace(spread=spread)
        self.duration = 0.0
        self.repeated = 0
        self.time_scale = TimeScaleFit()
        self._note = note
        extra = {"imported_from": first.path.name, "time": self.time.words}
        if first.time_zone is not None:
            extra["time_zone"] = first.time_zone
        self.info = RecordingInfo(
            source=str(first.path),
            robot=robot,
            rate=None if first.period is None else rounded_rate(first.period),
            payload_mass=first.payload,
            extra=extra,
        )

    def __iter__(self) -> Iterator[Telemetry]:
        """Samples in order; a gap at index 0 lies in front of the batch."""
        end: float | None = None  # time of the last sample of all files so far [s]
        self.duration = 0.0
        self.repeated = 0
        self.time_scale = TimeScaleFit()
        seen = SeenSamples()
        for file in self._files:
            end_in_file: float | None = None
            before = self.repeated
            for columns in file.batches(self.fields):
                columns = self._without_repeated(columns, seen)
                time = columns[TIME]
                if not len(time):
                    continue
                gaps = file.gap_rule.find_behind(end_in_file, time)
                if end is not None and end_in_file is None:
                    gaps = (Gap(0, end, float(time[0]), 0, NEXT_FILE), *gaps)
                batch = Telemetry(time, columns, self.info, gaps)
                self.duration += batch.duration
                if end is not None and not any(gap.index == 0 for gap in gaps):
                    self.duration += float(time[0]) - end
                end = float(time[-1])
                end_in_file = end
                self.time_scale.update(batch)
                yield batch
            count = self.repeated - before
            if count:
                text = f"{count} rows repeat time and all values of earlier ones"
                self._note(f"{file.path}: {text}; each is kept once")

    def _without_repeated(
        self, columns: Mapping[str, Array], seen: SeenSamples
    ) -> Mapping[str, Array]:
        """The rows that do not repeat time and all values of an earlier one."""
        # `SeenSamples` gets the time as host time, and a hash of all values as controller
        # time. Possible times, from -1 s on, become positive here:
        # samples without host time would be new.
        contents = contents_of_rows(np.column_stack([*columns.values()]))
        stamp = np.rint((columns[TIME] + _AHEAD_OF_ZERO) * _STEPS_PER_SECOND)
        new = seen.are_new(contents.view(float), stamp.astype(np.int64))
        if new.all():
            return columns
        self.repeated += int(np.count_nonzero(~new))
        return {name: values[new] for name, values in columns.items()}
