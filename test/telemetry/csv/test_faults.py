"""CSV recordings with faults: rows that are no samples, rows out of order, files too large."""

import numpy as np
import pytest

from test.telemetry.csv.test_reader import table, write
from ur_energy_model.energy.telemetry_checks import rated_limits
from ur_energy_model.errors import RecordingError
from ur_energy_model.model.robots import load_robot
from ur_energy_model.telemetry.csv import rows as csv_rows
from ur_energy_model.telemetry.csv.reader import CsvOptions, CsvReader, read_csv


def changed(path, change):
    """A recording of 400 rows after `change` got its rows as lists of cells."""
    write(path, table(400))
    header, *rows = path.read_text().splitlines()
    cells = change([row.split(",") for row in rows])
    path.write_text("\n".join([header, *(",".join(row) for row in cells)]) + "\n")
    return path


def with_cell(rows, numbers, column, text):
    for number in numbers:
        rows[number][column] = text
    return rows


@pytest.mark.parametrize("text", ["1e160", "-1e160", "nan", "inf", "", "abc"])
def test_few_impossible_values_are_left_out_and_named(tmp_path, text):
    path = changed(tmp_path / "x.csv", lambda rows: with_cell(rows, [100, 300], 3, text))
    said = []
    telemetry = read_csv([path], "ur5e", note=said.append)
    assert len(telemetry) == 398
    assert np.abs(telemetry["actual_q"]).max() < 30
    (line,) = [line for line in said if "left out 2 of 400 rows" in line]
    assert "line 102 actual_q_2" in line
    assert [(gap.index, gap.missing) for gap in telemetry.gaps] == [(100, 1), (299, 1)]


def test_many_impossible_values_are_refused(tmp_path):
    path = changed(tmp_path / "x.csv", lambda rows: with_cell(rows, range(0, 400, 2), 3, "1e160"))
    with pytest.raises(RecordingError, match=r"line 2 has 1e.160.*200 bad rows among 400"):
        read_csv([path], "ur5e")


def test_positions_in_degrees_are_refused_with_the_remedy(tmp_path):
    path = changed(tmp_path / "x.csv", lambda rows: with_cell(rows, range(400), 3, "-90.0"))
    with pytest.raises(RecordingError, match=r"needs \[deg\] after its name"):
        read_csv([path], "ur5e")


def test_limits_are_those_of_the_arm(tmp_path):
    """A motor current of 60 A is beyond a UR3e's, not beyond a UR10e's."""
    path = tmp_path / "x.csv"
    rows = [f"{i * 0.002:.3f}" + ",60.0" * 6 for i in range(100)]
    header = "timestamp," + ",".join(f"actual_current_{i}" for i in range(6))
    path.write_text("\n".join([header, *rows]) + "\n")
    limits = {name: rated_limits(load_robot(name)) for name in ("ur3e", "ur10e")}
    assert limits["ur10e"]["actual_current"][1][0] > 60 > limits["ur3e"]["actual_current"][1][0]
    with pytest.raises(RecordingError, match="has 60"):
        read_csv([path], "ur3e", options=CsvOptions(limits=limits["ur3e"]))


SHIFTS = {
    "one more": lambda row: [*row[:3], "0.5", *row[3:]],
    "one less": lambda row: [*row[:3], *row[4:]],
    "one more, the last empty": lambda row: [*row[:3], "0.5", *row[3:-1], ""],
    "decimal comma": lambda row: [*row[:3], *row[3].split("."), *row[4:]],
    "decimal comma, the last empty": lambda row: [*row[:3], *row[3].split("."), *row[4:-1], ""],
}


@pytest.mark.parametrize("end", ["", ","])
@pytest.mark.parametrize("shift", SHIFTS)
def test_a_row_whose_columns_moved_is_refused_with_its_line(tmp_path, shift, end):
    def moved(rows):
        rows = [*rows[:50], SHIFTS[shift](rows[50]), *rows[51:]]
        return [[*row[:-1], row[-1] + end] for row in rows]

    with pytest.raises(RecordingError, match=r"line 52 (has 10|ends after 8) columns instead of 9"):
        read_csv([changed(tmp_path / "x.csv", moved)], "ur5e")


def test_a_last_line_that_is_cut_off_is_left_out(tmp_path):
    said = []
    path = changed(tmp_path / "x.csv", lambda rows: [*rows[:-1], rows[-1][:4]])
    assert len(read_csv([path], "ur5e", note=said.append)) == 399
    assert any("line 401 ends after 4 columns instead of 9" in line for line in said)


def test_pieces_in_another_order_are_no_restarts(tmp_path):
    said = []
    whole = read_csv([write(tmp_path / "whole.csv", table(400))], "ur5e")
    path = changed(tmp_path / "x.csv", lambda rows: rows[300:] + rows[100:300] + rows[:100])
    telemetry = read_csv([path], "ur5e", note=said.append)
    assert np.array_equal(telemetry["actual_q"], whole["actual_q"])
    assert any("sorted by time" in line for line in said)


def test_a_time_that_stands_still_is_refused(tmp_path):
    path = changed(tmp_path / "x.csv", lambda rows: with_cell(rows, range(400), 0, "5.0"))
    with pytest.raises(RecordingError, match="does not advance in 400 rows"):
        read_csv([path], "ur5e")


@pytest.mark.parametrize("name", ["x" * 1000, "a" + " " * 100_000 + "b", "[" * 100_000])
def test_long_names_of_columns_are_refused_at_once(tmp_path, name):
    path = tmp_path / "x.csv"
    path.write_text(f"timestamp,payload,{name}\n1,2,3\n2,2,3\n")
    with pytest.raises(RecordingError, match=r"column name of \d+ characters"):
        read_csv([path], "ur5e")


def test_decimal_commas_between_commas_are_refused(tmp_path):
    path = write(tmp_path / "x.csv", table())
    header, *rows = path.read_text().splitlines()
    path.write_text("\n".join([header, *(row.replace(".", ",") for row in rows)]))
    with pytest.raises(RecordingError, match="decimal commas need another delimiter"):
        read_csv([path], "ur5e")


@pytest.mark.parametrize("order", ["reversed", "random"])
def test_rows_out_of_order_are_sorted(tmp_path, order):
    def mixed(rows):
        if order == "reversed":
            return rows[::-1]
        return [rows[i] for i in np.random.default_rng(1).permutation(len(rows))]

    said = []
    telemetry = read_csv([changed(tmp_path / "x.csv", mixed)], "ur5e", note=said.append)
    whole = read_csv([write(tmp_path / "whole.csv", table(400))], "ur5e")
    assert np.array_equal(telemetry["actual_q"], whole["actual_q"])
    assert telemetry.gaps == ()
    assert any("sorted by time" in line for line in said)


def test_rows_out_of_order_with_repeated_times_are_refused(tmp_path):
    def mixed(rows):
        for row in rows:
            row[0] = f"{float(row[0]):.1f}"
        return [rows[i] for i in np.random.default_rng(1).permutation(len(rows))]

    with pytest.raises(RecordingError, match=r"out of order.*times repeat"):
        read_csv([changed(tmp_path / "x.csv", mixed)], "ur5e")


def test_a_restarted_controller_is_a_gap(tmp_path):
    def restarted(rows):
        for i, row in enumerate(rows[200:]):
            row[0] = repr(1.0 + i * 0.02)
        return rows

    said = []
    telemetry = read_csv([changed(tmp_path / "x.csv", restarted)], "ur5e", note=said.append)
    assert len(telemetry) == 400
    assert [(gap.index, gap.cause) for gap in telemetry.gaps] == [(200, "controller restarted")]
    assert any("time goes back 1 times" in line for line in said)


@pytest.mark.parametrize("text", ["1e160", "9999.0", "0.0"])
def test_a_single_time_far_off_is_left_out(tmp_path, text):
    path = changed(tmp_path / "x.csv", lambda rows: with_cell(rows, [100], 0, text))
    telemetry = read_csv([path], "ur5e")
    assert len(telemetry) == 399
    assert np.diff(telemetry.time).max() == pytest.approx(0.04)


def test_a_field_without_values_is_left_out(tmp_path):
    path = changed(tmp_path / "x.csv", lambda rows: with_cell(rows, range(400), 7, ""))
    said = []
    telemetry = read_csv([path], "ur5e", note=said.append)
    assert "payload" not in telemetry
    assert len(telemetry) == 400
    assert any("mostly without values: payload" in line for line in said)


@pytest.mark.parametrize(("limit", "value"), [("MAX_LINES", 100), ("MAX_TEXT", 5000)])
def test_files_have_a_largest_size(tmp_path, monkeypatch, limit, value):
    path = write(tmp_path / "x.csv", table(400))
    monkeypatch.setattr(csv_rows, limit, value)
    with pytest.raises(RecordingError, match="more than is read of one file"):
        read_csv([path], "ur5e")


def test_wide_files_are_refused(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("timestamp," + ",".join(f"x{i}" for i in range(6000)) + "\n")
    with pytest.raises(RecordingError, match="6001 columns"):
        read_csv([path], "ur5e")


def test_batches_are_small_and_make_the_whole(tmp_path):
    path = write(tmp_path / "x.csv", table(10_000))
    another = write(tmp_path / "y.csv", table(10_000, start=11.0))
    reading = CsvReader([path, another], "ur5e", CsvOptions())
    parts = list(reading)
    assert max(map(len, parts)) <= 4096
    assert sum(map(len, parts)) == 20_000
    assert reading.duration == pytest.approx(2 * 9999 * 0.02)
    assert [gap.cause for part in parts for gap in part.gaps] == ["next file"]


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
def test_repeated_rows_count_once(tmp_path, change, repeated):
    once = read_csv([changed(tmp_path / "x.csv", list)], "ur5e")
    said = []
    telemetry = read_csv([changed(tmp_path / "x.csv", change)], "ur5e", note=said.append)
    assert telemetry.time.tolist() == once.time.tolist()
    assert telemetry["actual_q"].tobytes() == once["actual_q"].tobytes()
    assert telemetry.gaps == ()
    assert [line for line in said if f": {repeated} rows repeat" in line]


def test_a_clock_that_starts_again_repeats_no_rows(tmp_path):
    first = table(400)
    rng = np.random.default_rng(5)
    again = {name: values + 1e-6 * rng.normal(size=values.shape) for name, values in first.items()}
    again["timestamp"] = first["timestamp"]
    both = {name: np.concatenate([first[name], again[name]]) for name in first}
    telemetry = read_csv([write(tmp_path / "x.csv", both)], "ur5e")
    assert len(telemetry) == 800
    assert [gap.index for gap in telemetry.gaps] == [400]
