# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""One CSV recording: its clock, read first, and then its samples in batches.

The clock of a file shows its unit, the order of the rows and the sample period. The three
are known only once every row was read, so that a file is read twice.
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
from ur_energy_model.telemetry.csv.coarse_times import (
    differs_from_rate,
    first_of_equals,
    spread_equal_times,
)
from ur_energy_model.telemetry.csv.columns import TIME
from ur_energy_model.telemetry.csv.table import BadRow, CsvOptions, CsvTable
from ur_energy_model.telemetry.csv.times import (
    DATE,
    ONLY_UNIT,
    UNITS,
    TimeColumn,
    TimeUnitEvidence,
    fastest_speed,
    first_day,
    mean_step,
    over_midnight,
    possible_units,
    row_order,
    unit_by_motion,
    unit_by_name,
    unit_by_numbers,
)
from ur_energy_model.telemetry.fields import FIELDS, METER_FIELDS
from ur_energy_model.telemetry.gaps import GapRule, typical_step
from ur_energy_model.telemetry.plausibility import (
    IMPOSSIBLE_SHARE,
    impossible_rows,
)
from ur_energy_model.telemetry.samples import (
    Telemetry,
    join_columns,
)
from ur_energy_model.telemetry.time_scale import PAIRS, TimeScaleFit
from ur_energy_model.typing import Array, Indices, Mask

_FACTOR = np.int64(0x1E3779B97F4A7C15)
"""An odd number with mixed bits, whose powers weight the values of a row in a checksum."""
_LONGEST_PERIOD = 1800.0  # longest step that is a sample period, and not a pause [s]
_LARGEST_TIME = 1e20  # number of a time column that no unit makes possible
_BLOCK_ROWS = 4096  # rows of a batch of a file that was sorted
_MAX_SORTED = 10_000_000
"""Largest number of values of a file whose rows must be sorted, which is done in memory."""
_MOTION_STEPS = 500
_MOTION_ROWS = 200_000
"""Steps with motion that decide the unit of time, and the rows in which they are looked for."""
_CUT_OFF = "a last line that is cut off"
_NOT_FINITE = "values that are not finite numbers"
_FAR_TIMES = "impossible times"
_IMPOSSIBLE = "impossible values"
"""Reasons for which rows are left out, as the report states them."""
_OTHER_UNITS = {"rad": "deg", "rad/s": "deg/s", "A": "mA", "V": "mV"}
"""Units in which a column of impossible values may be, by the SI unit of its field."""


class CsvFile:
    """A CSV recording, read twice: first its clock, then its samples.

    Args:
        path: path of the file.
        options: how to read it.
        note: called with each remark, one line each that begins with the path.

    Attributes:
        path: path of the file.
        header: columns of the file.
        payload: mass that is the same in all rows [kg]; None if it has none or several.
        time: how the time column was read.
        time_zone: time zone of the first date; None without dates or zone.
        period: period of the samples of the file [s], see `nominal_period`.
        gap_rule: rule by which steps of the times are gaps.

    Raises:
        RecordingError: an unusable file, with place and remedy; faults of values show
            only in `batches`.
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
        """Number of rows that the present pass has left out, by reason."""
        self._first: BadRow | None = None
        """The first row that the present pass has left out."""
        self._read_clock(options)

    def batches(self, fields: Sequence[str]) -> Iterator[Mapping[str, Array]]:
        """Samples of these fields, with the time, in order, a few thousand at once.

        Raises:
            RecordingError: too many rows cannot be used, or two columns for the same value
                differ.
        """
        parts = self._parts([name for name in fields if name != TIME])
        if self._unordered:
            parts = _sorted_by_time(join_columns(list(parts)))
        for part in parts:
            if len(part[TIME]):
                yield part
        cut_off = self._table.cut_off
        if cut_off is not None:
            self._reject(_CUT_OFF, np.array([cut_off.line]), None, cut_off.problem)
        if self._first is not None:
            self._report_rejected(self._first)

    def _report_rejected(self, first: BadRow) -> None:
        """Report the rows that were left out.

        Args:
            first: the first of these rows.

        Raises:
            RecordingError: too many rows were left out.
        """
        total = sum(self._rejected.values())
        rows = self._table.rows_read
        named = None if first.column is None else self.header.names[first.column]
        if total - self._rejected[_CUT_OFF] > IMPOSSIBLE_SHARE * rows:
            remedy = "correct or delete such lines"
            other = self._other_unit(first.column)
            if other is not None and _IMPOSSIBLE in self._rejected:
                needed = f"a column in {other} needs [{other}] after its name"
                remedy += f", or name its robot; {needed}"
            problem = (
                f"line {first.line} {first.problem}, the first of {total} bad rows among {rows} "
                f"(more than {100 * IMPOSSIBLE_SHARE:g} %)"
            )
            raise RecordingError(self.path, problem, remedy, field=named)
        kinds = [f"{count} with {kind}" for kind, count in self._rejected.items()]
        left_out = f"{total} of {rows} rows ({', '.join(kinds)})"
        place = f"{first.line}" if named is None else f"{first.line} {named}"
        self._note(f"left out {left_out}; first: line {place} {first.problem}")

    def _other_unit(self, column: int | None) -> str | None:
        """The unit that a column of impossible values may be in, None if none is likely."""
        for name, places in self.header.places.items():
            if column in places:
                return _OTHER_UNITS.get(FIELDS[name].unit)
        return None

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
            # Two distinct payloads are enough: the file has no common one then.
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
        if self._unordered:
            known = np.sort(known)
        steps = np.diff(known)
        self.period = nominal_period(steps)
        if self.period is None:
            self.gap_rule = GapRule.of_typical_step(typical_step(steps))
        else:
            self.gap_rule = GapRule.of_period(self.period)

    def _set_times(self, time: Array, options: CsvOptions) -> None:
        """Find the time of each row [s].

        Args:
            time: numbers or dates of the time column [rows]. The times are written into
                this array, which may have millions of rows.
            options: how to read the file.

        Raises:
            RecordingError: the unit, the order or the rate cannot be determined.
        """
        name = self._table.time_name
        self._has_time = np.isfinite(time)
        time[~(np.abs(time) < _LARGEST_TIME)] = np.nan
        if self._table.is_dated:
            if self._table.times_of_day:
                time = over_midnight(time)
            self.time = TimeColumn(name, DATE, "ISO 8601")
        else:
            unit, reason = self._unit(name, time, options)
            if unit == "d":
                time -= first_day(time) or 0.0
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
        """Rows [n] in the order of their times.

        Raises:
            RecordingError: they have too many values to be sorted in memory.
        """
        values_of_row = sum(len(places) for places in self.header.places.values())
        if len(rows) * values_of_row > _MAX_SORTED:
            problem = "has its rows out of order, and is too long to be sorted here"
            raise RecordingError(self.path, problem, "sort it by time", field=TIME)
        self._note("rows were out of order; sorted by time")
        time = self._time[rows]
        is_backward = not (np.diff(time) > 0.0).any()
        return rows[::-1] if is_backward else rows[np.argsort(time, kind="stable")]

    def _unit(self, name: str, raw: Array, options: CsvOptions) -> tuple[str, str]:
        """Unit of the numbers of the time column, and how it was found.

        Args:
            name: name of the time column.
            raw: numbers of the time column [rows], NaN where a cell is no number.
            options: options of the import, with the unit that the user states, if any.

        Raises:
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

        Args:
            raw: numbers of the time column [rows]; even times stand for the times of a
                coarse clock.
        """
        if (np.diff(raw) == 0.0).any():
            raw = mean_step(raw) * np.arange(len(raw), dtype=np.float64)
        names = [name for name in chain(*PAIRS) if name in self.header.places]
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
            for positions, _ in PAIRS:
                if positions in part:
                    fastest.append(fastest_speed(time, part.columns[positions]))
            rows += len(time)
            scale = fit.result
            has_enough_motion = scale is not None and scale.steps >= _MOTION_STEPS
            if has_enough_motion or rows >= _MOTION_ROWS:
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
            name: name of the time column.
            rows: numbers of the rows in order [n]; None if all rows are in order.
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
        """Numbers [n] that stand for all values of these rows [n], in the same order."""
        count = self._table.rows_read
        is_wanted = np.zeros(count, dtype=bool)
        is_wanted[rows] = True
        number = np.zeros(count, dtype=np.intp)  # place of each wanted row
        number[is_wanted] = np.arange(len(rows))
        chosen = self._table.places_of(list(self.header.places))
        found = [np.zeros(0, dtype=np.int64)]
        for _, values in self._table.blocks(chosen, is_wanted):
            found.append(contents_of_rows(values))
        return np.concatenate(found)[number[rows]]

    # The samples: the second pass.

    def _parts(self, fields: Sequence[str]) -> Iterator[dict[str, Array]]:
        """Samples in the order of the file, without bad rows.

        Args:
            fields: RTDE names of the fields to read, without the time.

        Yields:
            Times and values of the fields of some thousand rows, in SI units.
        """
        chosen = self._table.places_of(fields)
        scale = np.array([self.header.factors.get(column, 1.0) for column in chosen])
        used = (*chosen, self.header.time)
        twins = [pair for pair in self.header.twins if pair[0] in used]
        read = list(dict.fromkeys([*chosen, *chain(*twins)]))
        silent = [name for name in fields if name in METER_FIELDS]
        may_be_nan = np.isin(chosen, self._table.places_of(silent))
        self._rejected = Counter()
        self._first = None
        done = 0
        for rows, values in self._table.blocks(read):
            self._compare(twins, read, rows, values)
            values = values[:, : len(chosen)]
            # in place: a copy of each block would cost a tenth of the import
            values *= scale
            lines = np.array([number for number, _ in rows])
            is_wrong = ~np.isfinite(values) & ~may_be_nan
            good = self._usable_rows(rows, lines, chosen, is_wrong, done)
            time = self._time[done : done + len(rows)]
            done += len(rows)
            columns = {TIME: time[good], **self._columns(fields, values[good])}
            checked = {name: part for name, part in columns.items() if name not in silent}
            bad, first = impossible_rows(checked, self._limits)
            if first is not None:
                column = self.header.places[first.field][first.index]
                problem = f"has {first.value:.6g}, outside this arm's range"
                self._reject(_IMPOSSIBLE, lines[good][bad], column, problem)
                columns = {name: part[~bad] for name, part in columns.items()}
            yield columns

    def _usable_rows(
        self,
        rows: Sequence[tuple[int, str]],
        lines: Indices,
        chosen: Sequence[int],
        is_wrong: Mask,
        first: int,
    ) -> Mask:
        """Which rows have a time and finite values [rows]; other rows are counted.

        Args:
            rows: line number and text of each row.
            lines: number of the line of each row [rows].
            chosen: columns that are read [k].
            is_wrong: mask of the values that are not finite, though they must be [rows,
                k].
            first: number of the first of these rows in the file, from 0.
        """
        time = self._time[first : first + len(rows)]
        has_time = self._has_time[first : first + len(rows)]
        good = has_time & ~is_wrong.any(axis=1)
        if not good.all():
            row = int(np.argmin(good))
            column = self.header.time
            if has_time[row] or column is None:
                column = chosen[int(np.argmax(is_wrong[row]))]
            cell = self._table.cell(rows[row][1], column)
            problem = f"has {cell!r}, which is not a finite number"
            self._reject(_NOT_FINITE, lines[~good], column, problem)
        is_possible_time = np.isfinite(time)
        far = good & ~is_possible_time
        if far.any():
            problem = "is far from the times around it"
            self._reject(_FAR_TIMES, lines[far], self.header.time, problem)
        return np.asarray(good & is_possible_time)

    def _columns(self, fields: Sequence[str], values: Array) -> dict[str, Array]:
        """Values by field, [rows] or [rows, width], of all values side by side [rows, k]."""
        columns: dict[str, Array] = {}
        start = 0
        for name in fields:
            width = len(self.header.places[name])
            if width == 1:
                columns[name] = values[:, start]
            else:
                columns[name] = values[:, start : start + width]
            start += width
        return columns

    def _compare(
        self,
        twins: Sequence[tuple[int, int]],
        read: Sequence[int],
        rows: Sequence[tuple[int, str]],
        values: Array,
    ) -> None:
        """Refuse pairs of columns that stand for the same value and differ.

        Args:
            twins: pairs of columns.
            read: columns of the values [k].
            rows: line numbers and texts of the rows [n].
            values: values of the rows [n, k].

        Raises:
            RecordingError: the values of a pair differ; the error names the line of the
                first such pair.
        """
        for first, second in twins:
            one = values[:, read.index(first)]
            other = values[:, read.index(second)]
            differs = (one != other) & ~(np.isnan(one) & np.isnan(other))
            if not differs.any():
                continue
            row = int(np.argmax(differs))
            names = [f"{self.header.names[k]} (column {k + 1})" for k in (first, second)]
            line = rows[row][0]
            problem = (
                f"{' and '.join(names)} stand for the same value, and have {one[row]:.6g} and "
                f"{other[row]:.6g} in line {line}"
            )
            remedy = "delete or rename one of them, or skip it with --columns"
            raise RecordingError(self.path, problem, remedy)

    def _reject(
        self, kind: str, lines: Indices, column: int | None, problem: str
    ) -> None:
        """Count rows that are left out for one reason.

        Args:
            kind: kind of the reason, for the report.
            lines: line numbers of the rows [n >= 1], ascending.
            column: column at fault in the first of these rows; None if the whole row is.
            problem: problem of the first of these rows.
        """
        self._rejected[kind] += len(lines)
        if self._first is None or lines[0] < self._first.line:
            self._first = BadRow(int(lines[0]), column, problem)


def _sorted_by_time(columns: Mapping[str, Array]) -> Iterator[dict[str, Array]]:
    """Rows in the order of their times, some thousands at once."""
    order = np.argsort(columns[TIME], kind="stable")
    for start in range(0, len(order), _BLOCK_ROWS):
        rows = order[start : start + _BLOCK_ROWS]
        yield {name: values[rows] for name, values in columns.items()}


def nominal_period(steps: Array) -> float | None:
    """Sample period by the steps of a clock.

    Nine steps in ten agree with the period; or half of them do, and nearly all are
    multiples of it (samples are missing).

    Args:
        steps: steps of the clock [n], s; steps back and zeros do not count.

    Returns:
        The period [s]; None if the steps are irregular, or half an hour long.
    """
    forward = steps[steps > 0]
    if not forward.size:
        return None
    step = float(np.median(forward))
    is_near = np.abs(forward - step) < 0.02 * step
    share_near = np.mean(is_near)
    if share_near < 0.9:
        ratios = forward / step
        share_of_multiples = np.mean(np.abs(ratios - np.round(ratios)) < 0.05)
        if share_near < 0.5 or share_of_multiples <= 0.95:
            return None
    if step >= _LONGEST_PERIOD:
        return None
    # The mean is finer than the resolution of dates as numbers, 0.24 us.
    rate = rounded_rate(float(np.mean(forward[is_near])))
    return 1.0 / rate


def rounded_rate(period: float) -> float:
    """Samples per second at a period [s], as users state it: 500.0, 94.33, 0.3333."""
    return round(1.0 / period, 3 if period <= 1.0 else 6)


def contents_of_rows(values: Array) -> NDArray[np.int64]:
    """One number for all values of each row [n, k]; equal rows have equal numbers [n]."""
    bits = np.ascontiguousarray(values).view(np.int64)
    powers = np.cumprod(np.full(bits.shape[1], _FACTOR))
    return np.asarray((bits * powers).sum(axis=1))
