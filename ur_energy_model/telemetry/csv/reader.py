"""Reads CSV recordings of RTDE data, plain or gzipped, in bounded memory.

Columns are named by a header line of RTDE field names, as ur_rtde's recorder and Universal Robots'
Python client write it, or by options; they are separated by commas, semicolons, tabs or blanks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ur_energy_model.errors import RecordingError
from ur_energy_model.telemetry.bag.reader import SeenSamples
from ur_energy_model.telemetry.csv.columns import (
    LAYOUTS,
    TIME,
    CsvHeader,
    headerless,
    parse_columns,
    parse_header,
)
from ur_energy_model.telemetry.csv.rows import (
    date_match,
    date_seconds,
    find_dialect,
    guessed_unit,
    is_numbering,
    lines_of,
    row_order,
)
from ur_energy_model.telemetry.fields import ENERGY_FIELDS, FIELDS, METER_FIELDS
from ur_energy_model.telemetry.plausibility import (
    ANY_ARM,
    IMPOSSIBLE_SHARE,
    PlausibleRanges,
    impossible_rows,
)
from ur_energy_model.telemetry.samples import (
    Gap,
    RecordingInfo,
    Telemetry,
    concatenate,
    find_gaps,
    join_columns,
    typical_step,
)
from ur_energy_model.typing import Array, Indices

NEXT_FILE = "next file"
_FACTOR = np.int64(0x1E3779B97F4A7C15)
"""Odd, with mixed bits."""


class CsvOptions(NamedTuple):
    """How to read CSV recordings of arms with so many joints.

    `columns` names the columns in order, instead of a header line; `layout` is a known one;
    `limits` are the lowest and highest possible values by field.
    """

    joints: int = 6
    columns: str | None = None
    layout: str | None = None
    limits: PlausibleRanges = ANY_ARM


def read_csv(
    paths: Sequence[Path | str],
    robot: str | None,
    *,
    options: CsvOptions = CsvOptions(),  # noqa: B008  immutable
    note: Callable[[str], None] = lambda text: None,
) -> Telemetry:
    """Read recordings of one robot completely, see `CsvReader`, with a gap between files."""
    return concatenate(list(CsvReader(paths, robot, options, note)))


class CsvReader:
    """CSV recordings of one robot, one after the other, in batches.

    Args:
        paths: at least one file.
        robot: description name for the recording's info.
        options: how to read the files.
        note: called with each remark on missing fields, ignored columns and rows, one line each.

    Attributes:
        info: provenance.
        fields: that all files have.
        duration: time covered so far without gaps [s].
        repeated: rows left out because an earlier one has the same time and values.

    Raises:
        RecordingError: an unusable file, with place and remedy; some faults show only while
            iterating.
    """

    def __init__(
        self,
        paths: Sequence[Path | str],
        robot: str | None,
        options: CsvOptions,
        note: Callable[[str], None],
    ) -> None:
        self._files = [_CsvFile(Path(path), options, note) for path in paths]
        first = self._files[0]
        places = [file.header.places for file in self._files]
        self.fields = tuple(name for name in places[0] if all(name in each for each in places))
        for name in places[0]:
            if name not in self.fields:
                note(f"{name}: left out, because not all files have it")
        missing = [name for name in ENERGY_FIELDS if name not in self.fields]
        if missing:
            note(f"missing fields: {', '.join(missing)}")
        zone = {} if first.time_zone is None else {"time_zone": first.time_zone}
        self.duration, self.repeated = 0.0, 0
        self._note = note
        self.info = RecordingInfo(
            source=str(first.path),
            robot=robot,
            rate=None if first.period is None else round(1.0 / first.period, 3),
            payload_mass=first.payload,
            extra={"imported_from": first.path.name, **zone},
        )

    def __iter__(self) -> Iterator[Telemetry]:
        """Samples in order; a gap at index 0 lies in front of the batch."""
        end: float | None = None
        self.duration, self.repeated = 0.0, 0
        seen = SeenSamples()
        for file in self._files:
            last: float | None = None
            before = self.repeated
            for columns in file.batches(self.fields):
                # Time stands for the host's clock, a hash of all values for the controller's.
                bits = np.column_stack([*columns.values()]).view(np.int64)
                contents = (bits * np.cumprod(np.full(bits.shape[1], _FACTOR))).sum(axis=1)
                order = np.rint((columns[TIME] + 2.0) * 1e8).astype(np.int64)
                new = seen.are_new(contents.view(float), order)
                if not new.all():
                    self.repeated += int(np.count_nonzero(~new))
                    columns = {name: values[new] for name, values in columns.items()}
                time = columns[TIME]
                if not len(time):
                    continue
                before_it = [] if last is None else [last]
                edges = np.concatenate([before_it, time])
                found = find_gaps(edges, file.period, typical=file.typical_step)
                gaps = tuple(replace(gap, index=gap.index - len(before_it)) for gap in found)
                if end is not None and last is None:
                    gaps = (Gap(0, end, float(time[0]), 0, NEXT_FILE), *gaps)
                batch = Telemetry(time, columns, self.info, gaps)
                self.duration += batch.duration
                if end is not None and not any(gap.index == 0 for gap in gaps):
                    self.duration += float(time[0]) - end
                last = end = float(time[-1])
                yield batch
            if count := self.repeated - before:
                text = f"{count} rows repeat time and all values of earlier ones"
                self._note(f"{file.path}: {text}; each is kept once")


def nominal_period(steps: Array) -> float | None:
    """Sample period [s] from a clock's steps; None if they are irregular, or half an hour long.

    Nine steps in ten agree with it, or half do and nearly all are multiples (samples are missing).
    """
    forward = steps[steps > 0]
    if not forward.size:
        return None
    step = float(np.median(forward))
    agree = np.mean(np.abs(forward - step) < 0.02 * step)
    multiple = np.mean(np.abs(forward / step - np.round(forward / step)) < 0.05)
    if agree < 0.9 and not (agree >= 0.5 and multiple > 0.95):
        return None
    rate = round(1.0 / step, 3)
    return 1.0 / rate if rate else None


_FILLED = 0.25
"""Least share of the first rows that have a field."""
_HEAD, _HEAD_CHARACTERS = 200, 4 << 20
"""Lines and characters at the beginning of a file for the detection of its structure."""
_MAX_COLUMNS = 5000
"""Largest number of columns of a file; all that arms send is fewer than 600."""
_MAX_NAME = 200
"""Longest name of a column in characters."""
_BLOCK_ROWS = 4096
_BLOCK_CHARACTERS = 4 << 20
_PARSED_AT_ONCE = 8
"""Rows that are parsed cell by cell where one of them has a cell that is no number."""
_MAX_SORTED = 10_000_000
"""Largest number of values of a file whose rows must be sorted, which is done in memory."""
_COMMENTS = ("#", "%")
_CUT_OFF = "a last line that is cut off"
_OTHER_UNITS = {"rad": "deg", "rad/s": "deg/s", "A": "mA", "V": "mV"}


class _CsvFile:
    """A CSV recording, read twice: first its clock, then its samples."""

    def __init__(self, path: Path, options: CsvOptions, note: Callable[[str], None]) -> None:
        self.path, self._limits = path, options.limits
        self._note: Callable[[str], None] = lambda text: note(f"{path}: {text}")
        self._rows_read, self._rejected = 0, Counter[str]()
        self._first: tuple[int, int | None, str] | None = None
        """Of the present pass: rows, those left out by reason, and the first of them."""
        self.header = self._open(options)
        for remark in self.header.remarks:
            self._note(remark)
        if self._dialect.decimal_comma:
            self._note("numbers are read with decimal commas")
        self._read_clock()

    def batches(self, fields: Sequence[str]) -> Iterator[Mapping[str, Array]]:
        """Samples of these fields, with the time, in order, a few thousand at once."""
        parts = self._parts(fields)
        if self._unordered:
            columns = join_columns(list(parts))
            order = np.argsort(columns[TIME], kind="stable")
            rows = (order[i : i + _BLOCK_ROWS] for i in range(0, len(order), _BLOCK_ROWS))
            parts = ({name: each[part] for name, each in columns.items()} for part in rows)
        for part in parts:
            if len(part[TIME]):
                yield part
        if self._first is None:
            return
        (line, column, problem), total = self._first, sum(self._rejected.values())
        if total - self._rejected[_CUT_OFF] > IMPOSSIBLE_SHARE * self._rows_read:
            remedy = "correct or delete such lines"
            if column is not None and "impossible values" in self._rejected:
                places = self.header.places.items()
                unit = next(FIELDS[name].unit for name, place in places if column in place)
                if other := _OTHER_UNITS.get(unit):
                    remedy += (
                        f", or name its robot; a column in {other} needs [{other}] after its name"
                    )
            share = f"more than {100 * IMPOSSIBLE_SHARE:g} %"
            first = f"line {line} {problem}, the first of {total} bad rows among {self._rows_read}"
            named = None if column is None else self.header.names[column]
            raise RecordingError(self.path, f"{first} ({share})", remedy, field=named)
        kinds = ", ".join(f"{count} with {kind}" for kind, count in self._rejected.items())
        place = f"{line}" if column is None else f"{line} {self.header.names[column]}"
        left_out = f"{total} of {self._rows_read} rows ({kinds})"
        self._note(f"left out {left_out}; first: line {place} {problem}")

    def _open(self, options: CsvOptions) -> CsvHeader:
        """Detect the structure of the file from its first lines; returns its columns."""
        head: list[tuple[int, str]] = []
        size = 0
        for number, line in islice(lines_of(self.path), _HEAD):
            head.append((number, line))
            size += len(line)
            if size > _HEAD_CHARACTERS:
                break
        rows = [(number, line) for number, line in head if not line.startswith(_COMMENTS)]
        self._dialect = dialect = find_dialect([line for _, line in rows[:20]])
        first = rows[0][1] if rows else ""
        title: str | None = first
        if first and dialect.names_columns(first):
            rows = rows[1:]
        elif first:  # a comment above the rows may name the columns
            width = len(dialect.columns(first))
            comments = [line.lstrip("#% ") for _, line in head if line.startswith(_COMMENTS)]
            fitting = [line for line in comments if len(dialect.columns(line)) == width > 1]
            title = fitting[-1] if fitting and dialect.names_columns(fitting[-1]) else None
            rows = rows[is_numbering(dialect.cells(first)) :]
        texts = [line for _, line in rows]
        header = self._columns(options, title, texts)
        self._start = rows[0][0] if rows else len(head) + 1
        cells, time = dialect.cells(texts[0]) if rows else [], header.places[TIME][0]
        date = date_match(cells[time]) if time < len(cells) else None
        self.time_zone = None if date is None else date["zone"]
        self._dates = () if date is None else (time,)
        self._width = len(header.names)
        # Some writers leave a delimiter at the end of each row.
        ended = [x for x in texts[:20] if dialect.count(x) == self._width + 1]
        ended = [line for line in ended if not dialect.cells(line)[-1]]
        self._open_ended = dialect.delimiter is not None and 2 * len(ended) > len(texts[:20])
        return self._without_empty(header, texts)

    def _without_empty(self, header: CsvHeader, rows: Sequence[str]) -> CsvHeader:
        """The columns without those fields that most of the first rows leave empty."""
        fields = [name for name in header.places if name != TIME]
        if not fields or not rows:
            return header
        places = [header.places[name] for name in fields]
        known = np.isfinite(self._numbers(rows, list(chain(*places))))
        starts = np.cumsum([0, *map(len, places[:-1])])
        shares = np.logical_and.reduceat(known, starts, axis=1).mean(axis=0)
        empty = [name for name, share in zip(fields, shares, strict=True) if share < _FILLED]
        if not empty or len(empty) == len(fields):
            return header
        self._note(f"left out, mostly without values: {', '.join(empty)}")
        left = {name: place for name, place in header.places.items() if name not in empty}
        return header._replace(places=left)

    def _columns(self, options: CsvOptions, title: str | None, rows: Sequence[str]) -> CsvHeader:
        """The columns by the options, or else by the line that names them."""
        path, names, dialect = self.path, options.columns, self._dialect
        if options.layout is not None:
            if names is not None:
                raise RecordingError(path, "--columns and --layout exclude each other", "give one")
            if options.layout not in LAYOUTS:
                remedy = f"use one of {', '.join(LAYOUTS)}"
                raise RecordingError(path, f"there is no layout {options.layout}", remedy)
            names = ",".join(LAYOUTS[options.layout].fields)
        titles = dialect.cells(title or "")
        width = max(len(titles), len(dialect.cells(rows[0])) if rows else 0)
        longest = max(map(len, titles), default=0)
        problem = f"has {width} columns, more than any recording" if width > _MAX_COLUMNS else ""
        if longest > _MAX_NAME:
            problem = problem or f"has a column name of {longest} characters"
        if problem:
            raise RecordingError(path, problem, "name a CSV recording")
        if names is not None:
            count = len(dialect.columns(rows[0] if rows else title or ""))
            header = parse_columns(path, names, count, options.joints)
        elif title is None:
            raise headerless(path, width, options.joints)
        else:
            header = parse_header(path, dialect.columns(title), options.joints)
        if len(header.places) == 1 and len(header.names) > 1:
            shown = ", ".join(header.names[:6])
            problem = f"has no column with an RTDE field name (it has {shown} ...)"
            remedy = "name the columns with --columns"
            raise RecordingError(path, problem, remedy, field="actual_q_0")
        return header

    def _read_clock(self) -> None:
        """Read the time of all rows: its unit, the order of the rows, and the sample period."""
        fields = [TIME, *(name for name in ("payload",) if name in self.header.places)]
        times, payloads = [np.zeros(0)], np.zeros(0)
        for _, values in self._blocks(fields):
            times.append(values[:, 0])
            others = values[:, 1:]
            payloads = np.union1d(payloads, others[np.isfinite(others)])[:2]
        if not self._rows_read:
            raise RecordingError(self.path, "holds no samples", "record again")
        self.payload = float(payloads[0]) if len(payloads) == 1 else None
        time, self._factor = np.concatenate(times), 1.0
        if not self._dates:
            self._factor, unit = guessed_unit(time)
            if self.header.time_factor is not None:
                self._factor = self.header.time_factor
                if self._factor != 1.0:
                    self._note("time converted to s from its stated unit")
            elif unit != "s":
                self._note(f"time counts in {unit} by its steps; converted to s")
        time *= self._factor
        low, high = (float(edge[0]) for edge in self._limits[TIME])
        time[~((time >= low) & (time <= high))] = np.nan
        self._keep, self._unordered, restarts = row_order(self.path, time)
        time = time[self._keep]
        if restarts:
            self._note(f"time goes back {restarts} times, as when a controller restarts")
        if self._unordered:
            if len(time) * sum(map(len, self.header.places.values())) > _MAX_SORTED:
                problem = "has its rows out of order, and is too long to be sorted here"
                raise RecordingError(self.path, problem, "sort it by time", field=TIME)
            self._note("rows were out of order; sorted by time")
            time.sort()
        steps = np.diff(time)
        if steps.size and not (steps > 0).any():
            problem = f"does not advance in {len(time)} rows"
            column = self.header.names[self.header.places[TIME][0]]
            raise RecordingError(self.path, problem, "export the time of each sample", field=column)
        self.period, self.typical_step = nominal_period(steps), typical_step(steps)

    def _parts(self, fields: Sequence[str]) -> Iterator[dict[str, Array]]:
        """Samples in the order of the file, without bad rows."""
        chosen, time = self._chosen(fields), self.header.places[TIME][0]
        factors = {time: self._factor, **self.header.factors}
        scale = np.array([factors.get(column, 1.0) for column in chosen])
        silent = [name for name in fields if name in METER_FIELDS]  # NaN while the meter is
        done = 0
        for rows, values in self._blocks(fields):
            values *= scale
            lines = np.array([number for number, _ in rows])
            keep = self._keep[done : done + len(rows)]
            done += len(rows)
            wrong = ~np.isfinite(values)
            wrong[:, [chosen.index(k) for k in self._chosen(silent)]] = False
            good = ~wrong.any(axis=1)
            if not good.all():
                row = int(np.argmin(good))
                column = chosen[int(np.argmax(wrong[row]))]
                cell = self._dialect.cells(rows[row][1])[column][:40]
                problem = f"has {cell!r}, which is not a finite number"
                self._reject("values that are not finite numbers", lines[~good], column, problem)
            if (far := good & ~keep).any():
                problem = "is far from the times around it"
                self._reject("impossible times", lines[far], time, problem)
                good &= keep
            columns, at = dict[str, Array](), 0
            for name in fields:
                width = len(self.header.places[name])
                columns[name] = values[good, at] if width == 1 else values[good, at : at + width]
                at += width
            checked = {name: part for name, part in columns.items() if name not in silent}
            bad, first = impossible_rows(checked, self._limits)
            if first is not None:
                column = self.header.places[first.field][first.index]
                problem = f"has {first.value:.6g}, outside this arm's range"
                self._reject("impossible values", lines[good][bad], column, problem)
                columns = {name: part[~bad] for name, part in columns.items()}
            yield columns

    def _reject(self, kind: str, lines: Indices, column: int | None, problem: str) -> None:
        """Count rows left out, by their lines [n]; column and problem are those of the first."""
        self._rejected[kind] += len(lines)
        if self._first is None or lines[0] < self._first[0]:
            self._first = int(lines[0]), column, problem

    def _blocks(self, fields: Sequence[str]) -> Iterator[tuple[list[tuple[int, str]], Array]]:
        """Some thousand rows: numbers and texts of lines, columns [rows, k], NaN for no number."""
        rows: list[tuple[int, str]] = []
        size, chosen = 0, self._chosen(fields)
        for number, line in chain(self._rows(), [(0, "")]):  # which ends the last block
            if rows and (not line or len(rows) == _BLOCK_ROWS or size > _BLOCK_CHARACTERS):
                yield rows, self._numbers([text for _, text in rows], chosen)
                rows, size = [], 0
            rows.append((number, line))
            size += len(line)

    def _rows(self) -> Iterator[tuple[int, str]]:
        """Numbers and texts of the lines of rows; a last one that is cut off is rejected.

        A row with another number of columns is refused, because its values may belong to others.
        """
        dialect, width = self._dialect, self._width
        self._rows_read, self._rejected, self._first = 0, Counter[str](), None
        other: tuple[int, str] | None = None
        for number, line in lines_of(self.path):
            if number < self._start or line.startswith(_COMMENTS):
                continue
            if other is not None:
                raise self._other_width(*other)
            self._rows_read += 1
            count = dialect.count(line)
            if self._open_ended:
                count -= line.rstrip("\r\n ").endswith(dialect.delimiter or "")
            if count == width:
                yield number, line
            else:
                verb = "has" if count > width else "ends after"
                other = number, f"{verb} {count} columns instead of {width}"
        if other is not None:
            if other[1].startswith("has") or self._rows_read == 1:
                raise self._other_width(*other)
            self._reject(_CUT_OFF, np.array(other[:1]), None, other[1])

    def _other_width(self, number: int, problem: str) -> RecordingError:
        comma = problem.startswith("has") and self._dialect.delimiter == ","
        hint = "; decimal commas need another delimiter, such as ;" if comma else ""
        return RecordingError(self.path, f"line {number} {problem}", f"correct that line{hint}")

    def _numbers(self, texts: Sequence[str], chosen: Sequence[int]) -> Array:
        """Chosen columns of rows [rows, chosen], NaN where a cell is no number."""
        dialect = self._dialect
        if not self._dates and not any('"' in text for text in texts):
            rows = texts
            if dialect.decimal_comma:
                rows = [text.replace(",", ".") for text in texts]
            try:
                return np.loadtxt(
                    rows, delimiter=dialect.delimiter, usecols=chosen, comments=None, ndmin=2
                )
            except (ValueError, IndexError):  # some cell is no number: only its row is slow
                half = len(texts) // 2
                if half >= _PARSED_AT_ONCE:
                    halves = (texts[:half], texts[half:])
                    return np.concatenate([self._numbers(each, chosen) for each in halves])
        out = np.full((len(texts), len(chosen)), np.nan)
        for row, cells in enumerate(map(dialect.cells, texts)):
            for place, column in enumerate(chosen):
                with suppress(ValueError, OverflowError, IndexError, TypeError):
                    number = date_seconds if column in self._dates else dialect.number
                    out[row, place] = number(cells[column])
        return out

    def _chosen(self, fields: Sequence[str]) -> list[int]:
        return [column for name in fields for column in self.header.places[name]]
