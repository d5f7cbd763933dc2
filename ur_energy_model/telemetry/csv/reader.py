"""Reads CSV recordings of RTDE data, plain or gzipped, in bounded memory.

Columns are named by a header line of RTDE field names, as ur_rtde's recorder and Universal Robots'
Python client write it, or by options; they are separated by commas, semicolons, tabs or blanks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
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
from ur_energy_model.telemetry.fields import ENERGY_FIELDS, FIELDS
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
from ur_energy_model.typing import Array, Mask

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


@dataclass
class _RejectedRows:
    """Rows left out, by reason; line, column and problem of the first; last rows cut off."""

    rows: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    first: tuple[int, int | None, str] | None = None
    cut: int = 0

    def reject(self, kind: str, lines: Sequence[int], column: int | None, problem: str) -> None:
        """Count rows by their lines [n]; column and problem are those of the first one."""
        self.counts[kind] += len(lines)
        if self.first is None or lines[0] < self.first[0]:
            self.first = int(lines[0]), column, problem


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
_OTHER_UNITS = {"rad": "deg", "rad/s": "deg/s", "A": "mA", "V": "mV"}


class _CsvFile:
    """A CSV recording, read twice: first its clock, then its samples."""

    def __init__(self, path: Path, options: CsvOptions, note: Callable[[str], None]) -> None:
        self.path, self._limits, self._remark = path, options.limits, note
        self.header = self._open(options)
        for remark in self.header.remarks:
            self._note(remark)
        if self._dialect.decimal_comma:
            self._note("numbers are read with decimal commas")
        self._read_clock()

    def _note(self, text: str) -> None:
        self._remark(f"{self.path}: {text}")

    def batches(self, fields: Sequence[str]) -> Iterator[Mapping[str, Array]]:
        """Samples of these fields, which include the time, in order, a few thousand at once.

        RecordingError, at the end of the file: too many malformed rows.
        """
        rejected = _RejectedRows()
        parts = self._parts(fields, rejected)
        if self._unordered:
            columns = join_columns(list(parts))
            order = np.argsort(columns[TIME], kind="stable")
            rows = (order[i : i + _BLOCK_ROWS] for i in range(0, len(order), _BLOCK_ROWS))
            parts = ({name: each[part] for name, each in columns.items()} for part in rows)
        for part in parts:
            if len(part[TIME]):
                yield part
        self._check(rejected)
        if rejected.first is not None:
            line, column, problem = rejected.first
            kinds = ", ".join(f"{count} with {kind}" for kind, count in rejected.counts.items())
            place = f"{line}" if column is None else f"{line} {self.header.names[column]}"
            total = f"{sum(rejected.counts.values())} of {rejected.rows} rows"
            self._note(f"left out {total} ({kinds}); first: line {place} {problem}")

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
        return header

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
        column, rejected = self.header.names[self.header.places[TIME][0]], _RejectedRows()
        times, payloads = [], np.zeros(0)
        for rows, values in self._blocks(fields, rejected):
            times.append(values[:, 0])
            others = values[:, 1:]
            payloads = np.union1d(payloads, others[np.isfinite(others)])[:2]
            self._reject_cells(rows, ~np.isfinite(values[:, :1]), [TIME], rejected)
        if not rejected.rows:
            raise RecordingError(self.path, "holds no samples", "record again")
        self._check(rejected)
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
            remedy = "export the time of each sample"
            raise RecordingError(self.path, problem, remedy, field=column)
        self.period, self.typical_step = nominal_period(steps), typical_step(steps)

    def _parts(self, fields: Sequence[str], rejected: _RejectedRows) -> Iterator[dict[str, Array]]:
        """Samples in the order of the file, without bad rows."""
        time = self.header.places[TIME][0]
        factors = {time: self._factor, **self.header.factors}
        scale = np.array([factors.get(column, 1.0) for column in self._chosen(fields)])
        done = 0
        for rows, values in self._blocks(fields, rejected):
            values *= scale
            lines = np.array([number for number, _ in rows])
            keep = self._keep[done : done + len(rows)]
            done += len(rows)
            wrong = ~np.isfinite(values)
            good = ~wrong.any(axis=1)
            self._reject_cells(rows, wrong, fields, rejected)
            if (good & ~keep).any():
                far = lines[good & ~keep].tolist()
                rejected.reject("impossible times", far, time, "is far from the times around it")
                good &= keep
            columns, at = dict[str, Array](), 0
            for name in fields:
                width = len(self.header.places[name])
                columns[name] = values[good, at] if width == 1 else values[good, at : at + width]
                at += width
            bad, first = impossible_rows(columns, self._limits)
            if first is not None:
                column = self.header.places[first.field][first.index]
                problem = f"has {first.value:.6g}, outside this arm's range"
                rejected.reject("impossible values", lines[good][bad].tolist(), column, problem)
                columns = {name: part[~bad] for name, part in columns.items()}
            yield columns

    def _blocks(
        self, fields: Sequence[str], rejected: _RejectedRows
    ) -> Iterator[tuple[list[tuple[int, str]], Array]]:
        """Some thousand rows at once: numbers and texts of lines, and the columns of these fields.

        The columns [rows, k] are NaN where a cell is no number.
        """
        rows: list[tuple[int, str]] = []
        size, chosen = 0, self._chosen(fields)
        for number, line in chain(self._rows(rejected), [(0, "")]):  # which ends the last block
            if rows and (not line or len(rows) == _BLOCK_ROWS or size > _BLOCK_CHARACTERS):
                yield rows, self._numbers([text for _, text in rows], chosen)
                rows, size = [], 0
            rows.append((number, line))
            size += len(line)

    def _rows(self, rejected: _RejectedRows) -> Iterator[tuple[int, str]]:
        """Numbers and texts of the lines of rows; a last one that is cut off is rejected.

        A row with another number of columns is refused, because its values may belong to others.
        """
        dialect, width = self._dialect, self._width
        other: tuple[int, int] | None = None
        for number, line in lines_of(self.path):
            if number < self._start or line.startswith(_COMMENTS):
                continue
            if other is not None:
                break
            rejected.rows += 1
            count = dialect.count(line)
            if self._open_ended:
                count -= line.rstrip("\r\n ").endswith(dialect.delimiter or "")
            if count == width:
                yield number, line
            else:
                other = number, count
        else:
            if other is not None and other[1] < width and rejected.rows > 1:
                problem = f"ends after {other[1]} columns instead of {width}"
                rejected.reject("a last line that is cut off", other[:1], None, problem)
                rejected.cut, other = 1, None
        if other is not None:
            more = other[1] > width
            problem = f"line {other[0]} {'has' if more else 'ends after'} {other[1]} columns"
            hint = "; decimal commas need another delimiter, such as ;"
            remedy = f"correct that line{hint if more and dialect.delimiter == ',' else ''}"
            raise RecordingError(self.path, f"{problem} instead of {width}", remedy)

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

    def _reject_cells(
        self,
        rows: Sequence[tuple[int, str]],
        wrong: Mask,
        fields: Sequence[str],
        rejected: _RejectedRows,
    ) -> None:
        """Reject rows with cells that are not finite numbers, wrong [rows, chosen]."""
        places = np.flatnonzero(wrong.any(axis=1)).tolist()
        if places:
            column = self._chosen(fields)[int(np.argmax(wrong[places[0]]))]
            cell = self._dialect.cells(rows[places[0]][1])[column][:40]
            problem = f"has {cell!r}, which is not a finite number"
            lines = [rows[place][0] for place in places]
            rejected.reject("values that are not finite numbers", lines, column, problem)

    def _check(self, rejected: _RejectedRows) -> None:
        """Refuse a file with too many malformed rows."""
        total = sum(rejected.counts.values())
        if rejected.first is None or total - rejected.cut <= IMPOSSIBLE_SHARE * rejected.rows:
            return
        line, column, problem = rejected.first
        remedy = "correct or delete such lines"
        if column is not None and "impossible values" in rejected.counts:
            places = self.header.places.items()
            unit = next(FIELDS[name].unit for name, place in places if column in place)
            if unit in _OTHER_UNITS:
                other = f"[{_OTHER_UNITS[unit]}] after its name"
                remedy += f", or name its robot; a column in {_OTHER_UNITS[unit]} needs {other}"
        raise RecordingError(
            self.path,
            f"line {line} {problem}, the first of {total} bad rows among {rejected.rows} "
            f"(more than {100 * IMPOSSIBLE_SHARE:g} %)",
            remedy,
            field=None if column is None else self.header.names[column],
        )
