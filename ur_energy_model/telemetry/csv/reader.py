"""Reads CSV recordings of RTDE data, plain or gzipped, in bounded memory.

Columns are named by a header line of RTDE field names, as ur_rtde's recorder and Universal Robots'
Python client write it, or by options; they are separated by commas, semicolons, tabs or blanks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.telemetry.bag.message_decoder import SeenSamples
from ur_energy_model.telemetry.csv.csv_file import CsvFile
from ur_energy_model.telemetry.csv.header import TIME
from ur_energy_model.telemetry.csv.open_csv import CsvOptions
from ur_energy_model.telemetry.fields import ENERGY_FIELDS
from ur_energy_model.telemetry.samples import (
    Gap,
    RecordingInfo,
    Telemetry,
    concatenate,
    find_gaps,
)
from ur_energy_model.typing import Array

NEXT_FILE = "next file"
_FACTOR = np.int64(0x1E3779B97F4A7C15)
"""Odd, with mixed bits."""


def read_csv(
    paths: Sequence[Path | str],
    robot: str | None,
    *,
    options: CsvOptions | None = None,
    note: Callable[[str], None] | None = None,
) -> Telemetry:
    """Read recordings of one robot completely, one after the other.

    Args:
        paths: at least one file.
        robot: description name for the recording's info.
        options: how to read the files; None for the defaults.
        note: called with each remark on missing fields, ignored columns and rows, one line each.

    Returns:
        Their samples with the fields that all files have, and a gap between files.

    Raises:
        RecordingError: an unusable file, with place and remedy.
    """
    options = CsvOptions() if options is None else options
    return concatenate(list(CsvReader(paths, robot, options, note)))


@dataclass
class _Clock:
    """Finds gaps in the consecutive batches of one file."""

    period: float | None
    typical: float
    last: float | None = None

    def gaps(self, time: Array) -> tuple[Gap, ...]:
        """Gaps in and in front of the next samples [n], s."""
        before = [] if self.last is None else [self.last]
        found = find_gaps(np.array([*before, *time]), self.period, typical=self.typical)
        self.last = float(time[-1])
        return tuple(replace(gap, index=gap.index - len(before)) for gap in found)


class CsvReader:
    """CSV recordings of one robot, one after the other, in batches.

    Args:
        paths: at least one file.
        robot: description name for the recording's info.
        options: how to read the files.
        note: called with each remark on missing fields, ignored columns and rows, one line each.

    Attributes:
        info: provenance of the recording.
        fields: names of the columns: those that all files have.
        duration: time covered by the samples so far, without gaps [s].
        repeated: rows left out so far because an earlier one has the same time and values.

    Raises:
        RecordingError: an unusable file, with place and remedy; some faults show only while
            iterating.
    """

    def __init__(
        self,
        paths: Sequence[Path | str],
        robot: str | None,
        options: CsvOptions,
        note: Callable[[str], None] | None = None,
    ) -> None:
        tell = note if note is not None else (lambda text: None)
        self._files = [CsvFile(Path(path), options, tell) for path in paths]
        first = self._files[0]
        places = [file.header.places for file in self._files]
        self.fields = tuple(name for name in places[0] if all(name in each for each in places))
        for field in places[0]:
            if field not in self.fields:
                tell(f"{field}: left out, because not all files have it")
        missing = [name for name in ENERGY_FIELDS if name not in self.fields]
        if missing:
            tell(f"missing fields: {', '.join(missing)}")
        extra = {"imported_from": first.path.name}
        if first.time_zone is not None:
            extra["time_zone"] = first.time_zone
        self.duration, self.repeated = 0.0, 0
        self._note = tell
        self.info = RecordingInfo(
            source=str(first.path),
            robot=robot,
            rate=None if first.period is None else round(1.0 / first.period, 3),
            payload_mass=first.payload,
            extra=extra,
        )

    def __iter__(self) -> Iterator[Telemetry]:
        """Samples in order; a gap at index 0 lies in front of the batch."""
        end: float | None = None
        self.duration, self.repeated = 0.0, 0
        with closing(SeenSamples()) as seen:
            for file in self._files:
                clock = _Clock(file.period, file.typical_step)
                last, before = end, self.repeated
                for columns in file.batches(list(self.fields)):
                    new = seen.are_new(_contents(columns), _order(columns[TIME]))
                    if not new.all():
                        self.repeated += int(np.count_nonzero(~new))
                        columns = {name: values[new] for name, values in columns.items()}
                    time = columns[TIME]
                    if not len(time):
                        continue
                    gaps = clock.gaps(time)
                    if last is not None:
                        gaps = (Gap(0, last, float(time[0]), 0, NEXT_FILE), *gaps)
                        last = None
                    batch = Telemetry(time, columns, self.info, gaps)
                    self.duration += batch.duration
                    if end is not None and not any(gap.index == 0 for gap in gaps):
                        self.duration += float(time[0]) - end
                    end = float(time[-1])
                    yield batch
                if self.repeated > before:
                    self._note(
                        f"{file.path}: {self.repeated - before} rows repeat time and all values "
                        "of earlier ones; each is kept once"
                    )


def _contents(columns: Mapping[str, Array]) -> Array:
    """A number [n] for all values of each row; its bits are a hash."""
    total = np.zeros(len(columns[TIME]), np.int64)
    for values in columns.values():
        for column in values.reshape(len(values), -1).T:
            total = total * _FACTOR + np.ascontiguousarray(column).view(np.int64)
    return total.view(float)


def _order(time: Array) -> NDArray[np.int64]:
    """Times [n], s, as positive numbers in the same order."""
    return np.rint((time + 2.0) * 1e8).astype(np.int64)
