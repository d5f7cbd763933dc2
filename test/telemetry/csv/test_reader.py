# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""CSV recordings as ur_rtde, UR's Python client and others write them, with or without a header."""

import csv
import gzip
import itertools

import numpy as np
import pytest

from ur_energy_model.energy.telemetry_checks import rated_limits
from ur_energy_model.errors import RecordingError
from ur_energy_model.model.robots import load_robot
from ur_energy_model.telemetry.csv.reader import NEXT_FILE, read_csv
from ur_energy_model.telemetry.csv.table import CsvOptions
from ur_energy_model.telemetry.fields import FIELDS, column_names

NAMES = ("timestamp", "actual_q", "payload", "robot_mode")
RATE = 50.0
TIME = 100.0 + np.arange(200) / RATE
Q = np.sin(np.outer(TIME, np.linspace(0.5, 2.0, 6)))
QD = np.cos(np.outer(TIME, np.linspace(0.5, 2.0, 6))) * np.linspace(0.5, 2.0, 6)


def table(count=50, start=10.0, step=0.02):
    rng = np.random.default_rng(3)
    columns = {name: rng.normal(size=(count, FIELDS[name].width)) for name in NAMES}
    columns["timestamp"][:, 0] = start + np.arange(count) * step
    columns["payload"] = np.abs(columns["payload"])
    columns["robot_mode"][:] = 7.0
    return columns


def write(
    path, columns, *, delimiter=",", extra=(), opener=open, quoting=csv.QUOTE_MINIMAL
):
    header = [column for name in columns for column in column_names(FIELDS[name])]
    rows = np.hstack(list(columns.values()))
    with opener(path, "wt", newline="") as file:
        writer = csv.writer(file, delimiter=delimiter, quoting=quoting)
        writer.writerow([*header, *extra])
        for row in rows:
            writer.writerow([*map(repr, row.tolist()), *("2021:10:05" for _ in extra)])
    return path


def plain(path, *columns, delimiter=",", header=None, comma=False):
    rows = [
        delimiter.join(f"{value:.9f}" for value in row)
        for row in np.column_stack(columns)
    ]
    if comma:
        rows = [row.replace(".", ",") for row in rows]
    path.write_text("\n".join([*([header] if header else []), *rows]) + "\n")
    return path


def refusal(path, **options):
    with pytest.raises(RecordingError) as caught:
        read_csv([path], "ur5e", options=CsvOptions(**options))
    assert "\n" not in str(caught.value)
    return str(caught.value)


def read(path, **options):
    return read_csv([path], "ur5e", options=CsvOptions(**options))


@pytest.mark.parametrize(
    "options", [{}, {"delimiter": ";", "opener": gzip.open, "quoting": csv.QUOTE_ALL}]
)
def test_values_are_those_of_the_file(tmp_path, options):
    columns = table()
    telemetry = read(write(tmp_path / "x.csv", columns, **options))
    assert set(telemetry.columns) == set(NAMES)
    for name in NAMES:
        assert telemetry[name].tobytes() == columns[name].tobytes()
    assert (telemetry.info.robot, telemetry.info.rate) == ("ur5e", 50.0)
    assert telemetry.gaps == ()
    assert telemetry.stamp is None


def test_silences_of_a_power_meter_are_gaps_of_its_column_only(tmp_path):
    columns = table() | {
        "wall_power": np.where(np.arange(50) < 20, np.nan, 95.0)[:, None]
    }
    telemetry = read(write(tmp_path / "x.csv", columns))
    np.testing.assert_array_equal(telemetry["wall_power"], columns["wall_power"][:, 0])
    assert telemetry["actual_q"].tobytes() == columns["actual_q"].tobytes()


def test_a_field_that_most_rows_leave_empty_is_left_out(tmp_path):
    rows = [
        f"{10 + 0.02 * k:.2f},{','.join(['0.5'] * 6)},{7 if k < 9 else ''},"
        for k in range(50)
    ]
    title = ",".join(
        ["timestamp", *column_names(FIELDS["actual_q"]), "robot_mode", "payload"]
    )
    (path := tmp_path / "sparse.csv").write_text("\n".join([title, *rows]) + "\n")
    found = read(path)
    assert set(found.columns) == {"timestamp", "actual_q"}
    assert len(found) == 50


def test_several_files_are_one_recording_with_a_gap_between(tmp_path):
    first = write(tmp_path / "a.csv", table(start=500.0))
    later = {
        name: values for name, values in table(start=100.0).items() if name != "payload"
    }
    notes = []
    paths = [first, write(tmp_path / "b.csv", later)]
    telemetry = read_csv(paths, "ur5e", note=notes.append)
    assert len(telemetry) == 100
    assert "payload" not in telemetry
    assert any(line.startswith("payload: left out") for line in notes)
    assert [(gap.index, gap.cause) for gap in telemetry.gaps] == [(50, NEXT_FILE)]


# Files without header, and names of columns.


def test_a_known_layout_is_suggested_and_read(tmp_path):
    path = plain(tmp_path / "x.csv", TIME, Q, QD, 2 * Q, 3 * Q, 4 * Q)
    assert "--layout dynamic_calibration" in refusal(path)
    assert "no header line: 13 columns" in refusal(plain(tmp_path / "y.csv", TIME, Q, QD))
    telemetry = read(path, layout="dynamic_calibration")
    assert telemetry["target_moment"] == pytest.approx(4 * Q, abs=1e-8)
    assert "use one of dynamic_calibration" in refusal(path, layout="mine")
    assert "exclude each other" in refusal(path, layout="ur_rtde", columns="timestamp")


def test_names_are_given_in_several_ways_or_refused(tmp_path):
    path = plain(tmp_path / "x.csv", TIME, Q, QD)
    single = ",".join(f"actual_q_{i}" for i in range(6))
    for columns in (
        "timestamp,actual_q,actual_qd",
        "time,actual_q[6],actual_qd_0..5",
        f"timestamp,{single},Actual_QD",
    ):
        assert read(path, columns=columns)["actual_qd"] == pytest.approx(QD, abs=1e-8)
    for columns, said in {
        "timestamp,actual_q": "has 13 columns, and --columns names 7",
        "timestamp,actual_qq,-[6]": "did you mean actual_q?",
        "timestamp,actual_q[7],-[5]": "has 6 values, not 7",
        "actual_q,actual_qd,-": "timestamp: column is missing",
        "timestamp,actual_q,actual_q": "stand for the same value",
    }.items():
        assert said in refusal(path, columns=columns)


def test_decimal_commas(tmp_path):
    delimiter = ";"
    names = delimiter.join(["timestamp", *(f"actual_q_{i}" for i in range(6))])
    path = plain(
        tmp_path / "x.csv", TIME, Q, delimiter=delimiter, header=names, comma=True
    )
    notes = []
    telemetry = read_csv([path], "ur5e", note=notes.append)
    assert telemetry["actual_q"] == pytest.approx(Q, abs=1e-8)
    assert any("decimal commas" in line for line in notes)
    between = plain(
        tmp_path / "y.csv", TIME, Q, header=names.replace(delimiter, ","), comma=True
    )
    assert "decimal commas need another delimiter" in refusal(between)


FORMS = "{} [%s]", "{} (%s)", "[%s] {}", "{}_%s", "{} in %s"
UNITS = ("actual_q", "deg", 180 / np.pi), ("actual_qd", "rpm", 30 / np.pi)


def test_a_unit_counts_for_all_joints_or_is_refused(tmp_path):
    for form, (field, unit, per_si) in itertools.product(FORMS, UNITS):
        names = [form.format(f"{field}_{i}") % unit for i in range(6)]
        path = plain(tmp_path / "x.csv", TIME, Q * per_si, header="t," + ",".join(names))
        assert read(path)[field] == pytest.approx(Q, abs=1e-8)
    names[0] = f"{field}_0"
    path = plain(tmp_path / "x.csv", TIME, Q, header="t," + ",".join(names))
    assert "state the unit of each" in refusal(path)


# The clock.


def test_dates_become_seconds(tmp_path):
    path = tmp_path / "x.csv"
    start = "2024-03-31T01:59:58"
    zone = "+02:00"
    seconds = 1711843198
    rows = [f"{start}.{20 * i:03d}{zone},1.5" for i in range(50)]
    path.write_text("\n".join(["datetime,payload", *rows]) + "\n")
    telemetry = read(path)
    assert telemetry.time == pytest.approx(seconds + 0.02 * np.arange(50), abs=1e-5)
    assert (telemetry.info.rate, telemetry.gaps) == (RATE, ())
    assert telemetry.info.extra.get("time_zone") == zone


def test_rounded_times_make_no_gaps_and_lost_samples_do(tmp_path):
    path = tmp_path / "x.csv"
    for rate in (8, 94, 125):
        time = np.float32(np.arange(300) / rate)
        path.write_text("timestamp,payload\n" + "".join(f"{t:.9g},1.5\n" for t in time))
        telemetry = read(path)
        assert telemetry.gaps == ()
        assert telemetry.info.rate == pytest.approx(rate, rel=1e-3)
    rows = "".join(f"{i * 0.1:.1f},1.5\n" for i in range(300) if i % 5)
    path.write_text(f"timestamp,payload\n{rows}")
    assert (read(path).info.rate, read(path).lost) == (10.0, 59)


@pytest.mark.parametrize(
    ("name", "samples", "rate"),
    [
        ("ur10e_excitation_50s", 5457, None),
        ("ur3e_moves_payload_1.07kg_25hz_36s", 888, 25.0),
        ("ur5e_streamed_move_500hz_6s", 3027, 500.0),
    ],
)
def test_recordings_of_real_arms_are_read_and_hold_nothing_impossible(
    recordings, name, samples, rate
):
    path = recordings / f"{name}.csv.gz"
    notes = []
    options = CsvOptions(limits=rated_limits(load_robot(name.partition("_")[0])))
    telemetry = read_csv([path], None, options=options, note=notes.append)
    assert (len(telemetry), telemetry.info.rate) == (samples, rate)
    assert not any("left out" in line or "out of order" in line for line in notes)
