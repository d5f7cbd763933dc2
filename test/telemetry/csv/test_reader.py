"""CSV recordings: as ur_rtde and UR's Python client write them, and refused with file and line."""

import csv
import gzip

import numpy as np
import pytest

from ur_energy_model.errors import RecordingError
from ur_energy_model.telemetry.csv.reader import NEXT_FILE, nominal_period, read_csv
from ur_energy_model.telemetry.fields import FIELDS, column_names

NAMES = ("timestamp", "actual_q", "payload", "robot_mode")


def table(count=50, start=10.0, step=0.02):
    rng = np.random.default_rng(3)
    columns = {name: rng.normal(size=(count, FIELDS[name].width)) for name in NAMES}
    columns["timestamp"][:, 0] = start + np.arange(count) * step
    columns["payload"] = np.abs(columns["payload"])
    columns["robot_mode"][:] = 7.0
    return columns


def write(path, columns, *, delimiter=",", extra=(), opener=open):
    header = [column for name in columns for column in column_names(FIELDS[name])]
    rows = np.hstack(list(columns.values()))
    with opener(path, "wt", newline="") as file:
        writer = csv.writer(file, delimiter=delimiter)
        writer.writerow([*header, *extra])
        for row in rows:
            writer.writerow([*map(repr, row.tolist()), *("2021:10:05" for _ in extra)])
    return path


@pytest.mark.parametrize("delimiter", [",", " ", ";", "\t"])
@pytest.mark.parametrize("opener", [open, gzip.open])
def test_values_are_those_of_the_file(tmp_path, delimiter, opener):
    columns = table()
    path = write(tmp_path / "x.csv", columns, delimiter=delimiter, opener=opener)
    telemetry = read_csv([path], "ur5e")
    assert set(telemetry.columns) == set(NAMES)
    for name in NAMES:
        assert telemetry[name].tobytes() == columns[name].tobytes()
    assert telemetry.info.robot == "ur5e"
    assert telemetry.info.rate == 50.0
    assert telemetry.gaps == ()
    assert telemetry.stamp is None


def test_what_is_missing_or_unknown_is_named(tmp_path):
    columns = table()
    path = write(tmp_path / "x.csv", columns, extra=("_id", "actual_qd_0"))
    said = []
    telemetry = read_csv([path], "ur5e", note=said.append)
    assert "actual_qd" not in telemetry
    assert any("_id" in line for line in said)
    assert any("lack elements: actual_qd" in line for line in said)
    (missing,) = [line for line in said if line.startswith("missing fields:")]
    assert "target_moment" in missing
    assert "actual_q," not in missing


def test_several_files_are_one_recording_with_a_gap_between(tmp_path):
    first = write(tmp_path / "a.csv", table(start=500.0))
    second = write(
        tmp_path / "b.csv", {k: v for k, v in table(start=100.0).items() if k != "payload"}
    )
    said = []
    telemetry = read_csv([first, second], "ur5e", note=said.append)
    assert len(telemetry) == 100
    assert "payload" not in telemetry
    assert any(line.startswith("payload: left out") for line in said)
    assert [(gap.index, gap.cause) for gap in telemetry.gaps] == [(50, NEXT_FILE)]


def test_uneven_time_is_kept_as_it_is(tmp_path):
    columns = table()
    time = np.cumsum(np.random.default_rng(1).choice([0.002, 0.01, 0.012], 50))
    time[20:] = time[19:-1]
    columns["timestamp"][:, 0] = time
    telemetry = read_csv([write(tmp_path / "x.csv", columns)], "ur5e")
    assert np.array_equal(telemetry.time, time)
    assert telemetry.info.rate is None
    assert len(telemetry.distinct()) == 49


def test_nominal_periods():
    even = np.arange(200) * 0.008
    assert nominal_period(np.diff(even)) == 0.008
    assert nominal_period(np.diff(np.delete(even, [20, 40]))) == 0.008
    assert nominal_period(np.array([0.01, 0.012] * 50)) is None
    assert nominal_period(np.zeros(0)) is None


@pytest.mark.parametrize(
    ("bad", "said"),
    [("nan", "'nan'"), ("inf", "'inf'"), ("", "''"), ("1.2.3", "'1.2.3'"), ("x" * 99, "xxx")],
)
def test_a_bad_value_is_refused_with_file_column_and_line(tmp_path, bad, said):
    path = write(tmp_path / "x.csv", table())
    lines = path.read_text().splitlines()
    cells = lines[30].split(",")
    cells[3] = bad
    lines[30] = ",".join(cells)
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(RecordingError) as caught:
        read_csv([path], "ur5e")
    text = str(caught.value)
    assert f"{path}: actual_q_2: line 31 has" in text
    assert said in text
    assert len(text) < 300


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "timestamp: column is missing"),
        (b"a,b\n1,2\n", "timestamp: column is missing"),
        (b"timestamp,actual_q_0,actual_q_0\n", "actual_q_0: appears twice"),
        (b"timestamp\n", "holds no samples"),
        (b"timestamp\n\n\n", "holds no samples"),
        (b"\x00\xff\xfe" * 100, "not text"),
        (b"timestamp," + b"x" * (2 << 20), "line of a million"),
        (gzip.compress(b"timestamp\n1\n2\n", mtime=0)[:-12], "middle of its gzip data"),
        (b"\x1f\x8bnonsense", "cannot be read"),
    ],
)
def test_what_is_no_recording_is_refused_in_one_line(tmp_path, content, said, recwarn):
    path = tmp_path / "x.csv"
    path.write_bytes(content)
    with pytest.raises(RecordingError, match=said) as caught:
        read_csv([path], "ur5e")
    assert str(caught.value).startswith(str(path))
    assert not recwarn.list


@pytest.mark.parametrize(
    ("name", "samples", "rate"),
    [
        ("ur10e_excitation_50s", 5457, None),
        ("ur10e_excitation_loaded_2.805kg_56s", 5307, None),
        ("ur10e_excitation_unloaded_56s", 5375, None),
        ("ur10e_point_to_point_57s", 5347, None),
        ("ur3e_moves_payload_1.07kg_25hz_36s", 888, 25.0),
        ("ur5e_pick_place_50hz_24s", 1196, 50.0),
        ("ur5e_streamed_move_500hz_6s", 3027, 500.0),
    ],
)
def test_recordings_of_real_arms_are_read(recordings, name, samples, rate):
    path = recordings / f"{name}.csv.gz"
    telemetry = read_csv([path], None)
    assert len(telemetry) == samples
    assert telemetry.info.rate == rate
    with gzip.open(path, "rt") as file:
        header, first = file.readline(), file.readline()
    delimiter = "," if "," in header else " "
    row = dict(zip(header.split(delimiter), first.split(delimiter), strict=True))
    assert telemetry.time[0] == float(row["timestamp"])
    assert telemetry["actual_current"][0].tolist() == [
        float(row[f"actual_current_{i}"]) for i in range(6)
    ]
