# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The time of CSV recordings: unit, coarse times, stated rates; energies by an own trapezoid."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from test.properties import examples
from test.telemetry.csv.moving_arm import (
    NAMES,
    Q,
    bus_energy,
    energy,
    moving_arm,
    write_table,
)
from ur_energy_model.errors import RecordingError
from ur_energy_model.telemetry.csv.coarse_times import first_of_equals, spread_equal_times
from ur_energy_model.telemetry.csv.reader import CsvReader
from ur_energy_model.telemetry.csv.table import CsvOptions
from ur_energy_model.telemetry.csv.times import UNITS
from ur_energy_model.telemetry.samples import Telemetry, concatenate

UNIX = 1_711_886_400.0
"""2024-03-31, seconds since 1970."""


def read(path: Path, **options: object) -> tuple[Telemetry, CsvReader]:
    reader = CsvReader([path], "ur5e", CsvOptions(**options), lambda text: None)  # type: ignore[arg-type]
    return concatenate(list(reader)), reader


def refused(path: Path, **options: object) -> str:
    with pytest.raises(RecordingError) as caught:
        read(path, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def texts(times: NDArray[Any]) -> list[str]:
    return [repr(float(time)) for time in times]


# The unit.


@pytest.mark.parametrize("start", [0.0, 14_830.4, UNIX])
@pytest.mark.parametrize("step", [0.002, 0.02, 0.5, 2.0, 5.0])
@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_the_unit_of_time_is_found_for_moving_arms(
    tmp_path: Path, unit: str, step: float, start: float
) -> None:
    time = step * np.arange(max(20, min(400, round(30.0 / step))))
    columns = moving_arm(time)
    path = write_table(tmp_path / "x.csv", texts((start + time) / UNITS[unit]), columns)
    telemetry, reader = read(path)
    assert reader.time.unit == unit
    assert len(telemetry) == len(time)
    assert bus_energy(telemetry) == pytest.approx(energy(time, columns), rel=1e-3)
    assert telemetry.gaps == ()


@pytest.mark.parametrize("unit", ["min", "h", "d"])
def test_minutes_hours_and_days_are_found_for_moving_arms(
    tmp_path: Path, unit: str
) -> None:
    time = 0.02 * np.arange(1000)
    columns = moving_arm(time)
    path = write_table(tmp_path / "x.csv", texts((100.0 + time) / UNITS[unit]), columns)
    telemetry, reader = read(path)
    assert reader.time.unit == unit
    assert bus_energy(telemetry) == pytest.approx(energy(time, columns), rel=1e-3)


@pytest.mark.parametrize("epoch", [25_569.0, 719_529.0])
def test_days_of_excel_and_matlab_become_unix_times(tmp_path: Path, epoch: float) -> None:
    time = 0.02 * np.arange(500)
    columns = moving_arm(time)
    path = write_table(
        tmp_path / "x.csv", texts(epoch + (UNIX + time) / 86_400.0), columns
    )
    telemetry, _ = read(path)
    assert telemetry.time == pytest.approx(UNIX + time, abs=2e-5)
    assert bus_energy(telemetry) == pytest.approx(energy(time, columns), rel=1e-3)


@pytest.mark.parametrize(
    ("title", "step", "unit"),
    [
        ("timestamp", 2.0, "s"),  # RTDE's own
        ("timestamp", 30.0, "s"),
        ("timestamp", 200.0, None),
        ("time", 2.0, None),
        ("time", 2000.0, None),
        ("t", 0.04, "s"),
        ("t [ms]", 2.0, "ms"),
        ("time_us", 2000.0, "us"),
        ("milliseconds", 20.0, "ms"),
        ("seconds", 20.0, "s"),
    ],
)
def test_what_neither_numbers_nor_names_decide_is_asked(
    tmp_path: Path, title: str, step: float, unit: str | None
) -> None:
    """An arm at rest: nothing but the column itself shows the unit."""
    columns = np.tile(moving_arm(np.zeros(1)), (50, 1))
    columns[:, 6:12] = 0.0
    path = write_table(
        tmp_path / "x.csv", texts(step * np.arange(50)), columns, title=title
    )
    if unit is not None:
        assert read(path)[1].time.unit == unit
        return
    assert "--time-unit" in refused(path)
    for stated in ("s", "ms"):
        telemetry, reader = read(path, time_unit=stated)
        assert telemetry.duration == pytest.approx(49 * step * UNITS[stated])
        assert reader.time.reason == "as stated"


@pytest.mark.parametrize("step", [1.0, 2.0, 10.0])
def test_positions_alone_refute_units_in_which_no_arm_could_follow(
    tmp_path: Path, step: float
) -> None:
    time = step * np.arange(60)
    columns = np.delete(moving_arm(time), range(6, 12), axis=1)
    names = [name for name in NAMES if "qd" not in name]
    path = write_table(tmp_path / "x.csv", texts(time), columns, names, title="time")
    telemetry, reader = read(path)
    assert reader.time.unit == "s"
    assert bus_energy(telemetry) == pytest.approx(energy(time, columns))


# Coarse and equal times.


@pytest.mark.parametrize("start", [0.0, 1331.4, UNIX])
@pytest.mark.parametrize("rounding", [np.floor, np.round])
@pytest.mark.parametrize(
    ("rate", "resolution"),
    [(50.0, 1.0), (50.0, 0.1), (125.0, 0.01), (500.0, 1.0), (23.7, 0.1)],
)
def test_rows_of_a_coarse_clock_get_even_times(
    tmp_path: Path, rate: float, resolution: float, rounding: np.ufunc, start: float
) -> None:
    time = start + np.arange(round(8 * rate)) / rate
    columns = moving_arm(time)
    coarse = resolution * rounding(time / resolution)
    telemetry, reader = read(write_table(tmp_path / "x.csv", texts(coarse), columns))
    assert len(telemetry) == len(time)
    assert (
        telemetry["actual_q"].tobytes() == np.ascontiguousarray(columns[:, :6]).tobytes()
    )
    assert reader.repeated == 0
    assert telemetry.gaps == ()
    shift = telemetry.time - time
    assert np.abs(shift - shift.mean()).max() < 1.0 / rate
    one_row = 240.0 / rate  # the highest power, for a period
    assert bus_energy(telemetry) == pytest.approx(energy(time, columns), abs=one_row)
    assert reader.time.resolution == pytest.approx(resolution, rel=1e-4)
    assert reader.time_scale.result is not None
    assert reader.time_scale.result.allows(1.0)


def test_a_pause_of_a_coarse_clock_is_a_gap(tmp_path: Path) -> None:
    time = 14.0 + 0.02 * np.arange(1500)
    kept = np.r_[0:480, 730:1500]
    columns = moving_arm(time[kept])
    path = write_table(tmp_path / "x.csv", texts(np.floor(time[kept])), columns)
    telemetry, _ = read(path)
    (gap,) = telemetry.gaps
    assert gap.index == 480
    assert gap.seconds == pytest.approx(250 * 0.02, abs=0.05)
    assert telemetry.time - time[kept] == pytest.approx(0.0, abs=0.05)


def test_a_coarse_clock_of_uneven_rows_keeps_its_steps(tmp_path: Path) -> None:
    time = np.sort(np.random.default_rng(5).uniform(0.0, 20.0, 700))
    columns = moving_arm(time)
    telemetry, _ = read(write_table(tmp_path / "x.csv", texts(np.floor(time)), columns))
    assert np.abs(telemetry.time - time).max() < 1.0
    assert (np.diff(telemetry.time) > 0.0).all()
    assert bus_energy(telemetry) == pytest.approx(energy(time, columns), rel=0.02)


def test_rows_are_repeated_only_if_all_their_values_are(tmp_path: Path) -> None:
    """A polled recording: some packets twice, some with another value under the same time."""
    time = 0.02 * np.arange(500)
    columns = moving_arm(time)
    twice = np.sort(np.concatenate([np.arange(500), np.arange(0, 500, 5)]))
    telemetry, reader = read(
        write_table(tmp_path / "x.csv", texts(time[twice]), columns[twice])
    )
    assert (len(telemetry), reader.repeated) == (500, 100)
    assert telemetry.time == pytest.approx(time)
    late = time.copy()
    late[101::50] = late[100::50]
    telemetry, reader = read(write_table(tmp_path / "x.csv", texts(late), columns))
    assert (len(telemetry), reader.repeated, reader.time.spread) == (500, 0, 8)
    assert telemetry.time == pytest.approx(time)
    assert bus_energy(telemetry) == pytest.approx(energy(time, columns))


def test_an_arm_at_rest_on_a_coarse_clock_loses_no_rows(tmp_path: Path) -> None:
    """Without noise its rows are equal for seconds; they are samples all the same."""
    time = 0.02 * np.arange(1500)
    columns = moving_arm(np.minimum(time, 15.0))
    telemetry, _ = read(write_table(tmp_path / "x.csv", texts(np.floor(time)), columns))
    assert telemetry.gaps == ()
    assert bus_energy(telemetry) == pytest.approx(energy(time, columns), rel=1e-3)


def test_times_in_reverse_are_turned_around(tmp_path: Path) -> None:
    time = 0.02 * np.arange(500)
    columns = moving_arm(time)
    coarse = np.floor(10.0 * time) / 10.0
    path = write_table(tmp_path / "x.csv", texts(coarse[::-1]), columns[::-1])
    telemetry, _ = read(path)
    assert telemetry["actual_q"] == pytest.approx(columns[:, :6])
    assert telemetry.time - time == pytest.approx(0.0, abs=0.1)


def test_a_rate_stands_for_times(tmp_path: Path) -> None:
    time = 0.008 * np.arange(1000)
    columns = moving_arm(time)
    path = write_table(tmp_path / "x.csv", None, columns)
    assert "--rate" in refused(path)
    telemetry, reader = read(path, rate=125.0)
    assert telemetry.time == pytest.approx(time)
    assert bus_energy(telemetry) == pytest.approx(energy(time, columns))
    single = np.float32(UNIX + time).astype(float)  # 128 s apart
    path = write_table(tmp_path / "y.csv", texts(single), columns)
    assert "--rate" in refused(path)
    assert bus_energy(read(path, rate=125.0)[0]) == pytest.approx(energy(time, columns))
    path = write_table(tmp_path / "z.csv", texts(time), columns)
    assert "125 rows per second, not 500" in refused(path, rate=500.0)
    path = write_table(tmp_path / "z.csv", texts(np.floor(time)), columns)
    assert "125 rows per second, not 500" in refused(path, rate=500.0)
    coarse, _ = read(path, rate=125.0)
    assert coarse.time == pytest.approx(time, abs=0.008)
    assert reader.time.column is None


def test_a_group_of_more_rows_than_its_step_has_room_for_is_refused() -> None:
    """One row in the only full step shows 0.5 Hz, which the nine of the last step contradict."""
    time = np.repeat([0.0, 1.0, 3.0], [3, 1, 9])
    first = first_of_equals(time, np.arange(len(time)))
    with pytest.raises(ValueError, match="9 rows"):
        spread_equal_times(time, first, None)


@examples(30)
@given(
    st.lists(st.tuples(st.integers(0, 6), st.integers(1, 9)), min_size=1, max_size=40),
    st.sampled_from([None, 3.0, 100.0]),
)
def test_spread_times_never_go_back(
    groups: list[tuple[int, int]], rate: float | None
) -> None:
    """Any groups of equal times: those of distinct rows differ, and stay between their groups."""
    steps = np.concatenate([[step, *[0] * (count - 1)] for step, count in groups])
    time = np.cumsum(steps).astype(float)
    distinct = np.arange(len(time))
    try:
        spread = spread_equal_times(time, first_of_equals(time, distinct), rate)
    except ValueError:
        return
    assert (np.diff(spread.time) > 0.0).all()
    assert np.abs(spread.time - time).max() <= 10.0 * max(1.0, float(steps.max()))


# Columns that stand for the same values.


@pytest.mark.parametrize(
    "title", ["actual_q_0", "Actual_Q[0]", "actual_q_0.1", "timestamp"]
)
def test_equal_columns_are_taken_once_and_distinct_ones_refused(
    tmp_path: Path, title: str
) -> None:
    time = 0.02 * np.arange(100)
    columns = moving_arm(time)
    again = time if title == "timestamp" else columns[:, 0]
    wide = np.column_stack([columns, again])
    names = [*NAMES, title]
    telemetry, _ = read(write_table(tmp_path / "x.csv", texts(time), wide, names))
    assert telemetry["actual_q"] == pytest.approx(columns[:, :6])
    wide[70, -1] += 1.0
    said = refused(write_table(tmp_path / "x.csv", texts(time), wide, names))
    assert title in said
    assert "line 72" in said
    assert ("actual_q_0" if title != "timestamp" else "timestamp") in said


def test_the_column_in_si_units_is_taken_beside_another_one(tmp_path: Path) -> None:
    time = 0.02 * np.arange(100)
    columns = moving_arm(time)
    wide = np.column_stack([np.degrees(columns[:, :6]), columns])
    names = [*(f"{name} [deg]" for name in Q), *NAMES]
    telemetry, _ = read(write_table(tmp_path / "x.csv", texts(time), wide, names))
    assert (
        telemetry["actual_q"].tobytes() == np.ascontiguousarray(columns[:, :6]).tobytes()
    )
