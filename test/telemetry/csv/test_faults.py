# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""CSV recordings with faults: rows that are no samples, rows out of order, files too large."""

import gzip

import numpy as np
import pytest

from test.telemetry.csv.test_reader import refusal, table, write
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
    return read_csv(
        [write(tmp_path_factory.mktemp("csv") / "whole.csv", table(400))], "ur5e"
    )


@pytest.mark.parametrize("text", ["-1e160", "", "x" * 99])
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


def test_a_row_whose_columns_moved_is_refused_and_a_last_line_cut_off_is_left_out(
    tmp_path,
):
    for moved, problem in (
        (lambda row: [*row[:3], "0.5", *row[3:]], "has 10 columns instead of 9"),
        (lambda row: [*row[:3], *row[4:]], "ends after 8 columns instead of 9"),
    ):

        def change(rows, moved=moved):
            return [*rows[:50], moved(rows[50]), *rows[51:]]

        said = refusal(changed(tmp_path / "x.csv", change))
        assert "line 52" in said
        assert problem in said
    telemetry, notes = read(
        changed(tmp_path / "x.csv", lambda rows: [*rows[:-1], rows[-1][:4]])
    )
    assert len(telemetry) == 399
    assert "line 401 ends after 4 columns instead of 9" in notes


def test_rows_out_of_order_are_sorted_or_refused(tmp_path, whole):
    telemetry, notes = read(
        changed(tmp_path / "x.csv", lambda rows: [rows[i] for i in RANDOM])
    )
    assert np.array_equal(telemetry["actual_q"], whole["actual_q"])
    assert telemetry.gaps == ()
    assert "sorted by time" in notes

    def mixed(rows):
        return [[f"{float(rows[i][0]):.1f}", *rows[i][1:]] for i in RANDOM]

    assert "times repeat" in refusal(changed(tmp_path / "x.csv", mixed))


def test_a_restarted_controller_is_a_gap(tmp_path):
    def restarted(rows):
        return rows[:200] + [
            [repr(1 + i * 0.02), *row[1:]] for i, row in enumerate(rows[200:])
        ]

    telemetry, notes = read(changed(tmp_path / "x.csv", restarted))
    assert len(telemetry) == 400
    assert [(gap.index, gap.cause) for gap in telemetry.gaps] == [
        (200, "controller restarted")
    ]
    assert "time goes back 1 times" in notes


def test_repeated_rows_count_once(tmp_path, whole):
    def change(rows):
        return [row for row in rows[:300] for _ in range(2)] + rows[200:]

    telemetry, notes = read(changed(tmp_path / "x.csv", change))
    assert telemetry.time.tolist() == whole.time.tolist()
    assert telemetry["actual_q"].tobytes() == whole["actual_q"].tobytes()
    assert telemetry.gaps == ()
    assert ": 400 rows repeat" in notes


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "timestamp: column is missing"),
        (
            b"timestamp,actual_q_0,actual_q_0\n1,2,3\n",
            "no column with an RTDE field name",
        ),
        (b"timestamp\n", "holds no samples"),
        (b"time [s],payload\n0,1\n9000,1\n", None),
        (b"\x00\xff\xfe" * 100, "not text"),
        (b"timestamp," + b"x" * (2 << 20), "line of a million"),
        (gzip.compress(b"timestamp\n1\n2\n", mtime=0)[:-12], "middle of its gzip data"),
        (b"timestamp,payload," + b"[" * 100_000 + b"\n1,2,3\n2,2,3\n", "column name of"),
    ],
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
