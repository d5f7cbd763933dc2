"""Reads CSV recordings of RTDE data, plain or gzipped, in bounded memory.

Columns are named by a header line of RTDE field names, as ur_rtde's recorder and Universal Robots'
Python client write it, or by options; they are separated by commas, semicolons, tabs or blanks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.errors import RecordingError
from ur_energy_model.telemetry.bag.message_decoder import SeenSamples
from ur_energy_model.telemetry.csv.header import TIME
from ur_energy_model.telemetry.csv.open_csv import HEAD, CsvOptions, open_csv
from ur_energy_model.telemetry.csv.rows import (
    RejectedRows,
    RowBlock,
    RowOrder,
    guessed_unit,
    row_order,
)
from ur_energy_model.telemetry.fields import ENERGY_FIELDS, FIELDS
from ur_energy_model.telemetry.plausibility import impossible_rows
from ur_energy_model.telemetry.samples import (
    Gap,
    RecordingInfo,
    Telemetry,
    concatenate,
    find_gaps,
    join_columns,
    typical_step,
)
from ur_energy_model.typing import Array, Mask

# CsvFile: columns, clock and samples of one CSV recording.

_EMPTY_SHARE = 0.5
_SHOWN = 50
"""Most columns that a remark lists."""
_SORTED_ROWS = 4096
MAX_SORTED = 10_000_000
"""Largest number of values of a file whose rows must be sorted, which is done in memory."""


class CsvFile:
    """A CSV recording, read twice: first its clock, then its samples.

    Args:
        path: of the file.
        options: how to read it.
        note: called with each remark on interpreted and left out data, one line each.

    Attributes:
        header: its columns.
        time_zone: of its dates, None if they have none.
        period: nominal sample period [s], None if steps are irregular.
        typical_step: of its clock [s], see `samples.typical_step`.
        payload: configured payload mass [kg], None if it is missing or changes.

    Raises:
        RecordingError: not a usable recording, with place and remedy.
    """

    def __init__(self, path: Path, options: CsvOptions, note: Callable[[str], None]) -> None:
        self.path, self.options = path, options
        self._note = note
        self.header, self._reader, self.time_zone = open_csv(path, options)
        for remark in self.header.remarks:
            note(f"{path}: {remark}")
        if self._reader.dialect.decimal_comma:
            note(f"{path}: numbers are read with decimal commas")
        if self.header.unknown:
            names = [name or "(empty)" for name in self.header.unknown]
            more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
            note(f"{path}: ignored columns: {', '.join(names[:_SHOWN])}{more}")
        if self.header.incomplete:
            fields = ", ".join(self.header.incomplete)
            note(f"{path}: ignored fields that lack elements: {fields}")
        self._drop_empty()
        self._factor = 1.0
        self.payload: float | None = None
        self._order = self._clock()

    def _drop_empty(self) -> None:
        """Leave out fields that are empty in most of the first rows."""
        fields = [name for name in self.header.places if name != TIME]
        for block in self._reader.blocks(self._chosen(fields), RejectedRows()):
            at, dropped = 0, []
            for name in fields:
                width = len(self.header.places[name])
                empty = ~np.isfinite(block.values[:HEAD, at : at + width]).all(axis=1)
                at += width
                if empty.mean() > _EMPTY_SHARE:
                    dropped.append(name)
            if dropped and len(dropped) < len(fields):
                self._note(f"{self.path}: left out, mostly without values: {', '.join(dropped)}")
                self.header = self.header.without(dropped)
            break

    def _chosen(self, fields: list[str]) -> list[int]:
        return [column for name in fields for column in self.header.places[name]]

    def _clock(self) -> RowOrder:
        """Read the time of all rows."""
        times, rejected = [], RejectedRows()
        payload = [self.header.places["payload"][0]] if "payload" in self.header.places else []
        column = self.header.time_column
        lowest, highest = np.inf, -np.inf
        for block in self._reader.blocks([column, *payload], rejected):
            times.append(block.values[:, 0])
            if payload:
                lowest = min(lowest, float(block.values[:, 1].min()))
                highest = max(highest, float(block.values[:, 1].max()))
            if not np.isfinite(block.values[:, 0]).all():
                self._no_number(block, ~np.isfinite(block.values[:, :1]), [column], rejected)
        if not rejected.rows:
            raise RecordingError(self.path, "holds no samples", "record again")
        rejected.check(self.path, self._remedy(rejected))
        time = np.concatenate(times)
        self.payload = lowest if payload and lowest == highest else None
        if column not in self._reader.dates:
            factor, unit = guessed_unit(time)
            stated = self.header.time_factor
            self._factor = factor if stated is None else stated
            if stated is None and unit != "s":
                self._note(f"{self.path}: time counts in {unit} by its steps; converted to s")
            elif self._factor != 1.0:
                self._note(f"{self.path}: time converted to s from its stated unit")
        time *= self._factor
        low, high = (float(edge[0]) for edge in self.options.limits[TIME])
        order = row_order(self.path, np.where((time >= low) & (time <= high), time, np.nan))
        self._report_order(order)
        steps = np.diff(time[order.keep] if order.order is None else time[order.order])
        if steps.size and not (steps > 0).any():
            raise RecordingError(
                self.path,
                f"does not advance in {len(steps) + 1} rows",
                "export the time of each sample",
                field=self.header.names[column],
            )
        self.period, self.typical_step = nominal_period(steps), typical_step(steps)
        return order

    def _report_order(self, order: RowOrder) -> None:
        if order.restarts:
            self._note(
                f"{self.path}: time goes back {order.restarts} times, as when a controller restarts"
            )
        if order.order is not None:
            values = len(order.order) * len(self._chosen(list(self.header.places)))
            if values > MAX_SORTED:
                raise RecordingError(
                    self.path,
                    "has its rows out of order, and is too long to be sorted here",
                    "sort it by time",
                    field=TIME,
                )
            self._note(f"{self.path}: rows were out of order; sorted by time")

    def _no_number(
        self, block: RowBlock, wrong: Mask, columns: list[int], rejected: RejectedRows
    ) -> None:
        """Reject rows with cells that are not finite numbers, wrong [rows, columns]."""
        rows = wrong.any(axis=1)
        row = int(np.argmax(rows))
        column = columns[int(np.argmax(wrong[row]))]
        cell = self._reader.cell(block.texts[row], column)
        rejected.reject(
            "values that are not finite numbers",
            int(rows.sum()),
            int(block.lines[row]),
            self.header.names[column],
            f"has {cell!r}, which is not a finite number",
        )

    def _remedy(self, rejected: RejectedRows) -> str:
        """Remedy for a file with too many bad rows."""
        remedy = "correct or delete such lines"
        if rejected.first is None:
            return remedy
        _, name, _ = rejected.first
        if name is None:
            return remedy
        column = self.header.names.index(name)
        field = next(each for each, place in self.header.places.items() if column in place)
        other = {"rad": "deg", "rad/s": "deg/s", "A": "mA", "V": "mV"}.get(FIELDS[field].unit)
        if "impossible values" in rejected.counts and other is not None:
            return (
                f"{remedy}, or name its robot; a column in {other} needs [{other}] after its name"
            )
        return remedy

    def batches(self, fields: list[str]) -> Iterator[Mapping[str, Array]]:
        """Samples of these fields, which include the time, in order, a few thousand at once.

        Raises:
            RecordingError: too many malformed rows (at the end of the file).
        """
        rejected = RejectedRows()
        parts = self._parts(fields, rejected)
        if self._order.order is not None:
            parts = _sorted(parts)
        for part in parts:
            if len(part[TIME]):
                yield part
        rejected.check(self.path, self._remedy(rejected))
        summary = rejected.describe()
        if summary is not None:
            self._note(f"{self.path}: {summary}")

    def _parts(self, fields: list[str], rejected: RejectedRows) -> Iterator[dict[str, Array]]:
        chosen = self._chosen(fields)
        scale = np.array([self.header.factors.get(column, 1.0) for column in chosen])
        scale[fields.index(TIME)] = self._factor  # fields before the time have one column each
        for block in self._reader.blocks(chosen, rejected):
            values = block.values * scale
            keep = self._order.keep[block.first : block.first + len(values)]
            wrong = ~np.isfinite(values)
            good = ~wrong.any(axis=1)
            if not good.all():
                self._no_number(block, wrong, chosen, rejected)
            far = good & ~keep
            if far.any():
                rejected.reject(
                    "impossible times",
                    int(np.count_nonzero(far)),
                    int(block.lines[int(np.argmax(far))]),
                    self.header.names[self.header.time_column],
                    "is far from the times around it",
                )
                good &= keep
            columns = self._split(values[good], fields)
            bad, first = impossible_rows(columns, self.options.limits)
            if first is None:
                yield columns
                continue
            column = self.header.places[first.field][first.index]
            rejected.reject(
                "impossible values",
                int(np.count_nonzero(bad)),
                int(block.lines[good][first.row]),
                self.header.names[column],
                f"has {first.value:.6g}, outside this arm's range",
            )
            yield {name: part[~bad] for name, part in columns.items()}

    def _split(self, values: Array, fields: list[str]) -> dict[str, Array]:
        out, at = {}, 0
        for name in fields:
            width = len(self.header.places[name])
            out[name] = values[:, at] if width == 1 else values[:, at : at + width]
            at += width
        return out


def _sorted(parts: Iterator[dict[str, Array]]) -> Iterator[dict[str, Array]]:
    """All rows in the order of time."""
    whole = list(parts)
    columns = join_columns(whole)
    turn = np.argsort(columns[TIME], kind="stable")
    for start in range(0, len(turn), _SORTED_ROWS):
        rows = turn[start : start + _SORTED_ROWS]
        yield {name: values[rows] for name, values in columns.items()}


def nominal_period(steps: Array) -> float | None:
    """Sample period [s] from a clock's steps; None if they are irregular.

    Nine steps in ten agree with it, or half do and nearly all are multiples of it (samples are
    missing).
    """
    forward = steps[steps > 0]
    if not forward.size:
        return None
    step = float(np.median(forward))
    agree = np.mean(np.abs(forward - step) < 0.02 * step)
    multiple = np.mean(np.abs(forward / step - np.round(forward / step)) < 0.05)
    if agree < 0.9 and not (agree >= 0.5 and multiple > 0.95):
        return None
    return 1.0 / round(1.0 / step, 3)


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
        note = note if note is not None else (lambda text: None)
        self._files = [CsvFile(Path(path), options, note) for path in paths]
        first = self._files[0]
        places = [file.header.places for file in self._files]
        self.fields = tuple(name for name in places[0] if all(name in each for each in places))
        for field in places[0]:
            if field not in self.fields:
                note(f"{field}: left out, because not all files have it")
        missing = [name for name in ENERGY_FIELDS if name not in self.fields]
        if missing:
            note(f"missing fields: {', '.join(missing)}")
        extra = {"imported_from": first.path.name}
        if first.time_zone is not None:
            extra["time_zone"] = first.time_zone
        self.duration, self.repeated = 0.0, 0
        self._note = note
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
                last: float | None = None
                before = self.repeated
                for columns in file.batches(list(self.fields)):
                    new = seen.are_new(_contents(columns), _order(columns[TIME]))
                    if not new.all():
                        self.repeated += int(np.count_nonzero(~new))
                        columns = {name: values[new] for name, values in columns.items()}
                    time = columns[TIME]
                    if not len(time):
                        continue
                    edges = np.array([*([] if last is None else [last]), *time])
                    found = find_gaps(edges, file.period, typical=file.typical_step)
                    shift = len(edges) - len(time)
                    gaps = tuple(replace(gap, index=gap.index - shift) for gap in found)
                    if end is not None and last is None:
                        gaps = (Gap(0, end, float(time[0]), 0, NEXT_FILE), *gaps)
                    batch = Telemetry(time, columns, self.info, gaps)
                    self.duration += batch.duration
                    if end is not None and not any(gap.index == 0 for gap in gaps):
                        self.duration += float(time[0]) - end
                    last = end = float(time[-1])
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
