"""CSV recordings with faults: rows that are no samples, rows out of order, files too large."""

import gzip

import numpy as np
import pytest

from test.telemetry.csv.test_reader import refusal, table, write
from ur_energy_model.energy.telemetry_checks import rated_limits
from ur_energy_model.model.robots import load_robot
from ur_energy_model.telemetry.csv.reader import read_csv

RANDOM = np.random.default_rng(1).permutation(400)


def changed(path, change):
    """A recording of 400 rows after `change` got its rows as lists of cells."""
    write(path, table(400))
    header, *rows = path.read_text().splitlines()
    cells = change([row.split(",") for row in rows])
    path.write_text("\n".join([header, *(",".join(row) for row in cells)]) + "\n")
    return path


def with_cell(numbers, column, text):
    def change(rows):
        for number in numbers:
            rows[number][column] = text
        return rows

    return change


def read(path):
    notes = []
    return read_csv([path], "ur5e", note=notes.append), "\n".join(notes)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return read_csv([write(tmp_path_factory.mktemp("csv") / "whole.csv", table(400))], "ur5e")


@pytest.mark.parametrize("text", ["-1e160", "nan", "", "x" * 99])
def test_few_impossible_values_are_left_out_and_named(tmp_path, text):
    telemetry, notes = read(changed(tmp_path / "x.csv", with_cell([100, 300], 3, text)))
    assert len(telemetry) == 398
    assert np.abs(telemetry["actual_q"]).max() < 30
    assert "left out 2 of 400 rows" in notes
    assert "line 102 actual_q_2" in notes
    assert text[:40] in notes or "e+160" in notes
    assert [(gap.index, gap.missing) for gap in telemetry.gaps] == [(100, 1), (299, 1)]
    said = refusal(changed(tmp_path / "x.csv", with_cell(range(0, 400, 2), 3, text)))
    assert "x.csv: actual_q_2: line 2 has" in said
    assert "200 bad rows among 400" in said
    assert len(said) < 300


def test_limits_are_those_of_the_arm(tmp_path):
    """A motor current of 60 A is beyond a UR3e's, not beyond a UR10e's."""
    said = refusal(changed(tmp_path / "x.csv", with_cell(range(400), 3, "-90.0")))
    assert "a column in deg needs [deg] after its name" in said
    header = "timestamp," + ",".join(f"actual_current_{i}" for i in range(6))
    rows = [f"{i * 0.002:.3f}" + ",60.0" * 6 for i in range(100)]
    (tmp_path / "x.csv").write_text("\n".join([header, *rows]) + "\n")
    assert "has 60" in refusal(tmp_path / "x.csv", limits=rated_limits(load_robot("ur3e")))
    assert rated_limits(load_robot("ur10e"))["actual_current"][1][0] > 60


SHIFTS = {
    "one more": lambda row: [*row[:3], "0.5", *row[3:]],
    "one less": lambda row: [*row[:3], *row[4:]],
    "decimal comma, the last empty": lambda row: [*row[:3], *row[3].split("."), *row[4:-1], ""],
}


@pytest.mark.parametrize("end", ["", ","])
@pytest.mark.parametrize("shift", SHIFTS)
def test_a_row_whose_columns_moved_is_refused_with_its_line(tmp_path, shift, end):
    def moved(rows):
        rows = [*rows[:50], SHIFTS[shift](rows[50]), *rows[51:]]
        return [[*row[:-1], row[-1] + end] for row in rows]

    said = refusal(changed(tmp_path / "x.csv", moved))
    assert "line 52" in said
    assert "has 10 columns instead of 9" in said or "ends after 8 columns instead of 9" in said


def test_a_last_line_that_is_cut_off_is_left_out(tmp_path):
    telemetry, notes = read(changed(tmp_path / "x.csv", lambda rows: [*rows[:-1], rows[-1][:4]]))
    assert len(telemetry) == 399
    assert "line 401 ends after 4 columns instead of 9" in notes


def test_a_field_without_values_is_left_out(tmp_path):
    telemetry, notes = read(changed(tmp_path / "x.csv", with_cell(range(400), 7, "")))
    assert "payload" not in telemetry
    assert len(telemetry) == 400
    assert "mostly without values: payload" in notes


@pytest.mark.parametrize(
    "order",
    [
        lambda rows: rows[::-1],
        lambda rows: [rows[i] for i in RANDOM],
        lambda rows: rows[300:] + rows[100:300] + rows[:100],
    ],
    ids=["reversed", "random", "pieces"],
)
def test_rows_out_of_order_are_sorted(tmp_path, whole, order):
    telemetry, notes = read(changed(tmp_path / "x.csv", order))
    assert np.array_equal(telemetry["actual_q"], whole["actual_q"])
    assert telemetry.gaps == ()
    assert "sorted by time" in notes


def test_times_that_cannot_be_ordered_are_refused(tmp_path):
    def mixed(rows):
        return [[f"{float(rows[i][0]):.1f}", *rows[i][1:]] for i in RANDOM]

    said = refusal(changed(tmp_path / "x.csv", mixed))
    assert "out of order" in said
    assert "times repeat" in said
    still = changed(tmp_path / "x.csv", with_cell(range(400), 0, "5.0"))
    assert "does not advance in 400 rows" in refusal(still)


def test_a_restarted_controller_is_a_gap(tmp_path):
    def restarted(rows):
        return rows[:200] + [[repr(1 + i * 0.02), *row[1:]] for i, row in enumerate(rows[200:])]

    telemetry, notes = read(changed(tmp_path / "x.csv", restarted))
    assert len(telemetry) == 400
    assert [(gap.index, gap.cause) for gap in telemetry.gaps] == [(200, "controller restarted")]
    assert "time goes back 1 times" in notes


@pytest.mark.parametrize("text", ["1e160", "0.0"])
def test_a_single_time_far_off_is_left_out(tmp_path, text):
    telemetry, _ = read(changed(tmp_path / "x.csv", with_cell([100], 0, text)))
    assert len(telemetry) == 399
    assert np.diff(telemetry.time).max() == pytest.approx(0.04)


@pytest.mark.parametrize(
    ("change", "repeated"),
    [
        (lambda rows: [row for row in rows for _ in range(2)], 400),
        (lambda rows: rows[:201] + rows[200:], 1),
        (lambda rows: rows[:300] + rows[200:], 100),
        (lambda rows: rows + rows[100:250], 150),
        (lambda rows: rows + rows, 400),
    ],
    ids=["each", "one", "beside", "at the end", "all"],
)
def test_repeated_rows_count_once(tmp_path, whole, change, repeated):
    telemetry, notes = read(changed(tmp_path / "x.csv", change))
    assert telemetry.time.tolist() == whole.time.tolist()
    assert telemetry["actual_q"].tobytes() == whole["actual_q"].tobytes()
    assert telemetry.gaps == ()
    assert f": {repeated} rows repeat" in notes


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "timestamp: column is missing"),
        (b"a,b\n1,2\n", "timestamp: column is missing"),
        (b"timestamp,actual_q_0,actual_q_0\n", "actual_q_0: appears twice"),
        (b"time_ms,timestamp,timestamp\n", "timestamp: appears twice"),
        (b"timestamp\n", "holds no samples"),
        (b"0,1,2\n", "no header line: 0 columns"),
        (b"time [s],payload\n0,1\n9000,1\n", None),
        (b"\x00\xff\xfe" * 100, "not text"),
        (b"timestamp," + b"x" * (2 << 20), "line of a million"),
        (gzip.compress(b"timestamp\n1\n2\n", mtime=0)[:-12], "middle of its gzip data"),
        (b"timestamp," + b",".join([b"x"] * 6000) + b"\n", "6001 columns"),
        *(
            (b"timestamp,payload," + name + b"\n1,2,3\n2,2,3\n", "column name of")
            for name in (b"x" * 1000, b"a" + b" " * 100_000 + b"b", b"[" * 100_000)
        ),
    ],
    ids=range(14),
)
def test_what_is_no_recording_is_refused_in_one_line(tmp_path, content, said, recwarn):
    path = tmp_path / "x.csv"
    path.write_bytes(content)
    if said is None:  # samples hours apart have no rate
        assert read_csv([path], "ur5e").info.rate is None
    else:
        assert refusal(path).startswith(str(path))
        assert said in refusal(path)
    assert not recwarn.list


def test_a_clock_that_starts_again_repeats_no_rows(tmp_path):
    first = table(400)
    again = {name: values + (name != "timestamp") * 1e-6 for name, values in first.items()}
    both = {name: np.concatenate([first[name], again[name]]) for name in first}
    telemetry = read_csv([write(tmp_path / "x.csv", both)], "ur5e")
    assert len(telemetry) == 800
    assert [gap.index for gap in telemetry.gaps] == [400]
