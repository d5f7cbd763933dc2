# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Reads CSV recordings of RTDE data, plain or gzipped, in bounded memory.

Columns are named by a header line of RTDE field names, as ur_rtde's recorder and
Universal Robots' Python client write it, or by options; they are separated by commas,
semicolons, tabs, bars or blanks.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.errors import RecordingError
from ur_energy_model.telemetry.csv.columns import TIME
from ur_energy_model.telemetry.csv.table import BadRow, CsvOptions, CsvTable
from ur_energy_model.telemetry.csv.times import (
    DATE,
    ONLY_UNIT,
    UNITS,
    TimeColumn,
    TimeUnitEvidence,
    differs_from_rate,
    fastest_speed,
    first_day,
    first_of_equals,
    mean_step,
    over_midnight,
    possible_units,
    row_order,
    spread_equal_times,
    unit_by_motion,
    unit_by_name,
    unit_by_numbers,
)
from ur_energy_model.telemetry.fields import ENERGY_FIELDS, FIELDS, METER_FIELDS
from ur_energy_model.telemetry.gaps import Gap, GapRule, typical_step
from ur_energy_model.telemetry.plausibility import (
    IMPOSSIBLE_SHARE,
    impossible_rows,
)
from ur_energy_model.telemetry.repeated_samples import SeenSamples
from ur_energy_model.telemetry.samples import (
    RecordingInfo,
    Telemetry,
    concatenate,
    join_columns,
)
from ur_energy_model.telemetry.time_scale import PAIRS, TimeScaleFit
from ur_energy_model.typing import Array, Indices

NEXT_FILE = "next file"
_FACTOR = np.int64(0x1E3779B97F4A7C15)
"""Odd, with mixed bits."""


def _contents(values: Array) -> NDArray[np.int64]:
    """One number for all values of each row [n, k]; equal rows have equal numbers [n]."""
    bits = np.ascontiguousarray(values).view(np.int64)
    return np.asarray((bits * np.cumprod(np.full(bits.shape[1], _FACTOR))).sum(axis=1))


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
        note: called with each remark on missing fields, ignored columns and rows, one
            line each.

    Attributes:
        info: provenance.
        fields: that all files have.
        duration: time covered so far without gaps [s].
        repeated: rows left out because an earlier one has the same time and values.
        time: how the time of the first file was read; `spread` counts the rows of all
            files.
        time_scale: whether positions advance as speeds and times say, of the batches so
            far.

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
        self._files = [_CsvFile(Path(path), options, note) for path in paths]
        first = self._files[0]
        places = [file.header.places for file in self._files]
        common = [name for name in places[0] if all(name in each for each in places)]
        self.fields = (TIME, *common)
        for name in places[0]:
            if name not in self.fields:
                note(f"{name}: left out, because not all files have it")
        missing = [name for name in ENERGY_FIELDS if name not in self.fields]
        if missing:
            note(f"missing fields: {', '.join(missing)}")
        self.time = first.time._replace(
            spread=sum(file.time.spread for file in self._files)
        )
        zone = {} if first.time_zone is None else {"time_zone": first.time_zone}
        self.duration = 0.0
        self.repeated = 0
        self.time_scale = TimeScaleFit()
        self._note = note
        self.info = RecordingInfo(
            source=str(first.path),
            robot=robot,
            rate=None if first.period is None else _rounded_rate(first.period),
            payload_mass=first.payload,
            extra={"imported_from": first.path.name, "time": self.time.words, **zone},
        )

    def __iter__(self) -> Iterator[Telemetry]:
        """Samples in order; a gap at index 0 lies in front of the batch."""
        end: float | None = None
        self.duration = 0.0
        self.repeated = 0
        self.time_scale = TimeScaleFit()
        seen = SeenSamples()
        for file in self._files:
            last: float | None = None
            before = self.repeated
            for columns in file.batches(self.fields):
                # Time stands for the host's clock, a hash of all values for the
                # controller's.
                contents = _contents(np.column_stack([*columns.values()]))
                order = np.rint((columns[TIME] + 2.0) * 1e8).astype(np.int64)
                new = seen.are_new(contents.view(float), order)
                if not new.all():
                    self.repeated += int(np.count_nonzero(~new))
                    columns = {name: values[new] for name, values in columns.items()}
                time = columns[TIME]
                if not len(time):
                    continue
                gaps = file.gap_rule.find_behind(last, time)
                if end is not None and last is None:
                    gaps = (Gap(0, end, float(time[0]), 0, NEXT_FILE), *gaps)
                batch = Telemetry(time, columns, self.info, gaps)
                self.duration += batch.duration
                if end is not None and not any(gap.index == 0 for gap in gaps):
                    self.duration += float(time[0]) - end
                last = end = float(time[-1])
                self.time_scale.update(batch)
                yield batch
            if count := self.repeated - before:
                text = f"{count} rows repeat time and all values of earlier ones"
                self._note(f"{file.path}: {text}; each is kept once")


def nominal_period(steps: Array) -> float | None:
    """Sample period [s] from a clock's steps; None if they are irregular, or half an hour long.

    Nine steps in ten agree with it, or half do and nearly all are multiples (samples are
    missing).
    """
    forward = steps[steps > 0]
    if not forward.size:
        return None
    step = float(np.median(forward))
    near = np.abs(forward - step) < 0.02 * step
    agree = np.mean(near)
    if agree < 0.9:
        multiple = np.mean(np.abs(forward / step - np.round(forward / step)) < 0.05)
        if agree < 0.5 or multiple <= 0.95:
            return None
    # The mean is finer than the resolution of dates as numbers, 0.24 us.
    rate = _rounded_rate(float(np.mean(forward[near])))
    return 1.0 / rate if step < _LONGEST_PERIOD else None


def _rounded_rate(period: float) -> float:
    """Samples per second at a period [s], as users state it: 500.0, 94.33, 0.3333."""
    return round(1.0 / period, 3 if period <= 1.0 else 6)


_LONGEST_PERIOD = 1800.0  # longest step that is a sample period, and not a pause [s]
_LARGEST_TIME = 1e20  # number of a time column that no unit makes possible
_BLOCK_ROWS = 4096  # rows of a batch of a file that was sorted
_MAX_SORTED = 10_000_000
"""Largest number of values of a file whose rows must be sorted, which is done in memory."""
_MOTION_STEPS = 500
_MOTION_ROWS = 200_000
"""Steps with motion that decide the unit of time, and the rows in which they are looked for."""
_CUT_OFF = "a last line that is cut off"
_OTHER_UNITS = {"rad": "deg", "rad/s": "deg/s", "A": "mA", "V": "mV"}


class _CsvFile:
    """A CSV recording, read twice: first its clock, then its samples.

    Attributes:
        path: the file.
        header: its columns.
        payload: mass that is the same in all rows [kg]; None if it has none or several.
        time: how its time was read.
        time_zone: of the first date; None without dates or zone.
        period: of its samples [s], see `nominal_period`.
        gap_rule: which steps of its times are gaps.
    """

    def __init__(
        self, path: Path, options: CsvOptions, note: Callable[[str], None]
    ) -> None:
        self.path = path
        self._limits = options.limits
        self._note: Callable[[str], None] = lambda text: note(f"{path}: {text}")
        self._table = CsvTable(path, options, self._note)
        self.header = self._table.header
        self.time_zone = self._table.time_zone
        self._rejected = Counter[str]()
        """Of the present pass: rows left out, by reason."""
        self._first: BadRow | None = None
        """The first of these rows."""
        self._read_clock(options)

    def batches(self, fields: Sequence[str]) -> Iterator[Mapping[str, Array]]:
        """Samples of these fields, with the time, in order, a few thousand at once."""
        parts = self._parts([name for name in fields if name != TIME])
        if self._unordered:
            columns = join_columns(list(parts))
            order = np.argsort(columns[TIME], kind="stable")
            rows = (order[i : i + _BLOCK_ROWS] for i in range(0, len(order), _BLOCK_ROWS))
            parts = (
                {name: each[part] for name, each in columns.items()} for part in rows
            )
        for part in parts:
            if len(part[TIME]):
                yield part
        cut_off = self._table.cut_off
        if cut_off is not None:
            self._reject(_CUT_OFF, np.array([cut_off.line]), None, cut_off.problem)
        if self._first is not None:
            self._report_rejected(self._first)

    def _report_rejected(self, first: BadRow) -> None:
        """Report the rows that were left out; RecordingError if there are too many of them."""
        total = sum(self._rejected.values())
        rows = self._table.rows_read
        named = None if first.column is None else self.header.names[first.column]
        if total - self._rejected[_CUT_OFF] > IMPOSSIBLE_SHARE * rows:
            remedy = "correct or delete such lines"
            if first.column is not None and "impossible values" in self._rejected:
                places = self.header.places.items()
                units = [
                    FIELDS[name].unit for name, place in places if first.column in place
                ]
                other = _OTHER_UNITS.get(units[0]) if units else None
                if other is not None:
                    needed = f"a column in {other} needs [{other}] after its name"
                    remedy += f", or name its robot; {needed}"
            share = f"more than {100 * IMPOSSIBLE_SHARE:g} %"
            problem = (
                f"line {first.line} {first.problem}, the first of {total} bad rows among {rows} "
                f"({share})"
            )
            raise RecordingError(self.path, problem, remedy, field=named)
        kinds = ", ".join(
            f"{count} with {kind}" for kind, count in self._rejected.items()
        )
        place = f"{first.line}" if named is None else f"{first.line} {named}"
        left_out = f"{total} of {rows} rows ({kinds})"
        self._note(f"left out {left_out}; first: line {place} {first.problem}")

    # The clock: the first pass.

    def _read_clock(self, options: CsvOptions) -> None:
        """Read the time of all rows: its unit, the order of the rows, and the sample period."""
        time_columns = [] if self.header.time is None else [self.header.time]
        payload = list(self.header.places.get("payload", ()))
        times = [np.zeros(0)]
        payloads = np.zeros(0)
        for _, values in self._table.blocks(time_columns + payload):
            times.append(values[:, : len(time_columns)].reshape(-1))
            others = values[:, len(time_columns) :]
            payloads = np.union1d(payloads, others[np.isfinite(others)])[:2]
        if not self._table.rows_read:
            raise RecordingError(self.path, "holds no samples", "record again")
        self.payload = float(payloads[0]) if len(payloads) == 1 else None
        if options.rate is not None and self.header.time is None:
            self._time = np.arange(self._table.rows_read) / options.rate
            self._has_time = np.ones(self._table.rows_read, dtype=bool)
            self._unordered = False
            self.time = TimeColumn(None, "s", f"{options.rate:g} Hz as stated")
        else:
            self._set_times(np.concatenate(times), options)
        finite = np.isfinite(self._time)
        known = self._time if finite.all() else self._time[finite]
        steps = np.diff(np.sort(known) if self._unordered else known)
        self.period = nominal_period(steps)
        self.gap_rule = (
            GapRule.of_typical_step(typical_step(steps))
            if self.period is None
            else GapRule.of_period(self.period)
        )

    def _set_times(self, time: Array, options: CsvOptions) -> None:
        """Find the time of each row [s] from the numbers or dates of the time column [rows].

        The array is used for the times themselves: it may have millions of rows.
        """
        name = self._table.time_name
        self._has_time = np.isfinite(time)
        time[~(np.abs(time) < _LARGEST_TIME)] = np.nan
        if self._table.is_dated:
            time = over_midnight(time) if self._table.times_of_day else time
            self.time = TimeColumn(name, DATE, "ISO 8601")
        else:
            unit, reason = self._unit(name, time, options)
            time -= (first_day(time) or 0.0) if unit == "d" else 0.0
            time *= UNITS[unit]
            self.time = TimeColumn(name, unit, reason)
            if reason != ONLY_UNIT:
                converted = "" if unit == "s" else "; converted to s"
                self._note(f"time counts in {unit} ({reason}){converted}")
        low, high = (float(edge[0]) for edge in self._limits[TIME])
        time[~((time >= low) & (time <= high))] = np.nan
        keep, self._unordered, restarts = row_order(self.path, time)
        time[~keep] = np.nan
        self._time = time
        if restarts:
            self._note(f"time goes back {restarts} times, as when a controller restarts")
        rows: Indices | None = None
        if self._unordered:
            rows = self._sorted_rows(np.flatnonzero(keep))
        elif not keep.all():
            rows = np.flatnonzero(keep)
        self._spread_equal_times(name, rows, options.rate)

    def _sorted_rows(self, rows: Indices) -> Indices:
        """Rows [n] in the order of their times. RecordingError: there are too many of them."""
        if len(rows) * sum(map(len, self.header.places.values())) > _MAX_SORTED:
            problem = "has its rows out of order, and is too long to be sorted here"
            raise RecordingError(self.path, problem, "sort it by time", field=TIME)
        self._note("rows were out of order; sorted by time")
        time = self._time[rows]
        is_backward = not (np.diff(time) > 0.0).any()
        return rows[::-1] if is_backward else rows[np.argsort(time, kind="stable")]

    def _unit(self, name: str, raw: Array, options: CsvOptions) -> tuple[str, str]:
        """Unit of the numbers of the time column, and how it was found.

        RecordingError: several units are possible.
        """
        if options.time_unit is not None:
            return options.time_unit, "as stated"
        if self.header.time_factor is not None:
            units = {seconds: unit for unit, seconds in UNITS.items()}
            return units[self.header.time_factor], "as its name states"
        found = unit_by_numbers(raw)
        if found is not None:
            return found
        motion = self._motion(raw)
        found = unit_by_motion(motion) or unit_by_name(name, raw)
        if found is not None and motion.allows(UNITS[found[0]]):
            return found
        possible = possible_units(raw, motion)
        if len(possible) == 1:
            return possible[0], ONLY_UNIT
        each = " or ".join(f"--time-unit {unit}" for unit in possible)
        step = f"{mean_step(raw):.4g}"
        problem = f"steps of {step} may be {' or '.join(possible)}, and nothing in the file decides"
        raise RecordingError(self.path, problem, f"state it with {each}", field=name)

    def _motion(self, raw: Array) -> TimeUnitEvidence:
        """What positions and speeds of the first moving rows show about the unit of time.

        `raw` are the numbers of the time column [rows]; of a coarse clock, even ones
        stand for them.
        """
        if (np.diff(raw) == 0.0).any():
            raw = mean_step(raw) * np.arange(len(raw), dtype=np.float64)
        names = [name for pair in PAIRS for name in pair if name in self.header.places]
        chosen = self._table.places_of(names)
        factors = np.array([self.header.factors.get(column, 1.0) for column in chosen])
        ends = np.cumsum([len(self.header.places[name]) for name in names])[:-1]
        fit = TimeScaleFit()
        fastest = [math.nan]
        rows = 0
        for _, values in self._table.blocks(chosen) if names else ():
            time = raw[rows : rows + len(values)]
            columns = np.split(values * factors, ends, axis=1)
            part = Telemetry(time, dict(zip(names, columns, strict=True)))
            fit.update(part)
            of_positions = [part.columns[name] for name, _ in PAIRS if name in part]
            fastest += [fastest_speed(time, positions) for positions in of_positions]
            rows += len(time)
            scale = fit.result
            if rows >= _MOTION_ROWS or (
                scale is not None and scale.steps >= _MOTION_STEPS
            ):
                break
        speeds = np.array(fastest)
        known = speeds[np.isfinite(speeds)]
        limit = float(np.max(self._limits["actual_qd"][1]))
        return TimeUnitEvidence(
            fit.result, float(known.max()) if known.size else math.nan, limit
        )

    def _spread_equal_times(
        self, name: str, rows: Indices | None, rate: float | None
    ) -> None:
        """Spread the times of distinct rows with equal times over the time between.

        Args:
            name: of the time column.
            rows: in order [n]; None if all rows are in order.
            rate: stated samples per second; None if unknown.

        Raises:
            RecordingError: the time does not advance, or shows no rate.
        """
        time = self._time if rows is None else self._time[rows]
        equal = time[1:] == time[:-1]
        if equal.size and equal.all() and rate is None:
            problem = f"does not advance in {len(time)} rows"
            remedy = "export the time of each sample, or state samples per second with --rate HZ"
            raise RecordingError(self.path, problem, remedy, field=name)
        if not equal.any():
            differs = None if rate is None else differs_from_rate(mean_step(time), rate)
            if differs is not None:
                remedy = "leave out --rate, or skip the column with --columns"
                raise RecordingError(self.path, differs, remedy, field=name)
            return
        rows = np.arange(len(time)) if rows is None else rows
        shared = np.append(equal, False) | np.append(False, equal)
        contents = np.arange(len(time), dtype=np.int64)
        contents[shared] = self._contents_of(rows[shared])
        try:
            spread = spread_equal_times(time, first_of_equals(time, contents), rate)
        except ValueError as error:
            remedy = "export more digits of the time, or state samples per second with --rate HZ"
            raise RecordingError(self.path, str(error), remedy, field=name) from None
        self._time[rows] = spread.time
        if spread.changed:
            text = f"{spread.changed} rows have the time of another one"
            if spread.resolution is not None:
                text = f"times have a resolution of {spread.resolution:.3g} s"
            self._note(f"{text}; distinct rows are spread over the time between")
        self.time = self.time._replace(
            resolution=spread.resolution, spread=spread.changed
        )
        if rate is not None:
            self.time = self.time._replace(
                reason=f"{self.time.reason}; {rate:g} Hz as stated"
            )

    def _contents_of(self, rows: Indices) -> NDArray[np.int64]:
        """Numbers that stand for all values of these rows [n], in their order."""
        wanted = np.zeros(self._table.rows_read, dtype=bool)
        wanted[rows] = True
        places = np.zeros(self._table.rows_read, dtype=np.intp)
        places[np.flatnonzero(wanted)] = np.arange(len(rows))
        chosen = self._table.places_of([*self.header.places])
        found = [np.zeros(0, dtype=np.int64)]
        for lines, _ in self._table.blocks([], wanted):
            found.append(
                _contents(self._table.numbers([text for _, text in lines], chosen))
            )
        return np.concatenate(found)[places[rows]]

    # The samples: the second pass.

    def _parts(self, fields: Sequence[str]) -> Iterator[dict[str, Array]]:
        """Samples in the order of the file, without bad rows."""
        chosen = self._table.places_of(fields)
        scale = np.array([self.header.factors.get(column, 1.0) for column in chosen])
        twins = [
            pair for pair in self.header.twins if pair[0] in (*chosen, self.header.time)
        ]
        read = list(dict.fromkeys([*chosen, *chain(*twins)]))
        # NaN while the meter is
        silent = [name for name in fields if name in METER_FIELDS]
        self._rejected = Counter()
        self._first = None
        done = 0
        for rows, values in self._table.blocks(read):
            self._compare(twins, read, rows, values)
            values = values[:, : len(chosen)]
            # in place: a copy of each block would cost a tenth of the import
            values *= scale
            lines = np.array([number for number, _ in rows])
            time = self._time[done : done + len(rows)]
            has_time = self._has_time[done : done + len(rows)]
            done += len(rows)
            wrong = ~np.isfinite(values)
            wrong[:, [chosen.index(k) for k in self._table.places_of(silent)]] = False
            good = has_time & ~wrong.any(axis=1)
            if not good.all():
                row = int(np.argmin(good))
                column = self.header.time
                if has_time[row] or column is None:
                    column = chosen[int(np.argmax(wrong[row]))]
                cell = self._table.cell(rows[row][1], column)
                problem = f"has {cell!r}, which is not a finite number"
                self._reject(
                    "values that are not finite numbers", lines[~good], column, problem
                )
            keep = np.isfinite(time)
            if (far := good & ~keep).any():
                problem = "is far from the times around it"
                self._reject("impossible times", lines[far], self.header.time, problem)
            good &= keep
            columns = {TIME: time[good]}
            at = 0
            for name in fields:
                width = len(self.header.places[name])
                columns[name] = (
                    values[good, at] if width == 1 else values[good, at : at + width]
                )
                at += width
            checked = {name: part for name, part in columns.items() if name not in silent}
            bad, first = impossible_rows(checked, self._limits)
            if first is not None:
                column = self.header.places[first.field][first.index]
                problem = f"has {first.value:.6g}, outside this arm's range"
                self._reject("impossible values", lines[good][bad], column, problem)
                columns = {name: part[~bad] for name, part in columns.items()}
            yield columns

    def _compare(
        self,
        twins: Sequence[tuple[int, int]],
        read: Sequence[int],
        rows: Sequence[tuple[int, str]],
        values: Array,
    ) -> None:
        """Refuse pairs of columns that stand for the same values and have others.

        Args:
            twins: pairs of columns.
            read: columns of the values [k].
            rows: line numbers and texts of the rows [n].
            values: of the rows [n, k].
        """
        for first, second in twins:
            one = values[:, read.index(first)]
            other = values[:, read.index(second)]
            differ = (one != other) & ~(np.isnan(one) & np.isnan(other))
            if not differ.any():
                continue
            row = int(np.argmax(differ))
            names = [f"{self.header.names[k]} (column {k + 1})" for k in (first, second)]
            problem = (
                f"{' and '.join(names)} stand for the same value, and have {one[row]:.6g} and "
                f"{other[row]:.6g} in line {rows[row][0]}"
            )
            remedy = "delete or rename one of them, or skip it with --columns"
            raise RecordingError(self.path, problem, remedy)

    def _reject(
        self, kind: str, lines: Indices, column: int | None, problem: str
    ) -> None:
        """Count rows left out, by their lines [n]; column and problem are those of the first."""
        self._rejected[kind] += len(lines)
        if self._first is None or lines[0] < self._first.line:
            self._first = BadRow(int(lines[0]), column, problem)
