# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Forms of CSV files that programs write: encodings, delimiters, quotes, dates, lines of units."""

from __future__ import annotations

import csv
import warnings
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from test.properties import examples
from test.telemetry.csv.moving_arm import (
    NAMES,
    bus_energy,
    energy,
    moving_arm,
    write_table,
)
from ur_energy_model.errors import RecordingError
from ur_energy_model.telemetry.csv.reader import read_csv
from ur_energy_model.telemetry.csv.table import CsvOptions
from ur_energy_model.telemetry.samples import Telemetry

TIME = 100.0 + 0.02 * np.arange(300)
COLUMNS = moving_arm(TIME)
ENERGY = energy(TIME, COLUMNS)
START = datetime(2024, 3, 31, 23, 59, 57, tzinfo=timezone.utc)
DATES = [START + timedelta(seconds=float(time - TIME[0])) for time in TIME]
HEADER = ["timestamp", *NAMES]
ROWS = [[repr(float(value)) for value in row] for row in np.column_stack([TIME, COLUMNS])]
COMMAS = [[cell.replace(".", ",") for cell in row] for row in ROWS]


def read(path: Path, **options: Any) -> Telemetry:
    return read_csv([path], "ur5e", options=CsvOptions(**options))


def write(
    path: Path, *rows: list[str], before: str = "", encoding: str = "utf-8", **form: Any
):
    with path.open("w", encoding=encoding, newline="") as file:
        file.write(before)
        csv.writer(file, **{"lineterminator": "\r\n", **form}).writerows(rows)
    return path


def with_times(texts: list[str]) -> list[list[str]]:
    return [[text, *row[1:]] for text, row in zip(texts, ROWS, strict=True)]


UNITS = ["s", *["rad"] * 6, *["rad/s"] * 6, "V", "A"]
FORMS: dict[str, Callable[[Path], Path]] = {
    "Excel, Unicode text": lambda path: write(
        path, HEADER, *ROWS, encoding="utf-16", delimiter="\t"
    ),
    "UTF-16, big-endian": lambda path: write(
        path, HEADER, *ROWS, encoding="utf-16-be", before="\ufeff"
    ),
    "UTF-8 with a mark": lambda path: write(path, HEADER, *ROWS, encoding="utf-8-sig"),
    "Excel, German": lambda path: write(
        path, HEADER, *COMMAS, encoding="utf-8-sig", before="sep=;\r\n", delimiter=";"
    ),
    "decimal commas, all quoted": lambda path: write(
        path, HEADER, *COMMAS, delimiter=";", quoting=csv.QUOTE_ALL
    ),
    "decimal commas in quotes between commas": lambda path: write(
        path, HEADER, *COMMAS, quoting=csv.QUOTE_ALL
    ),
    "bars": lambda path: write(path, HEADER, *ROWS, delimiter="|"),
    "a delimiter at the end of each row": lambda path: write(
        path, HEADER, *[[*row, ""] for row in ROWS], delimiter=";"
    ),
    "index of pandas": lambda path: write(
        path, ["", *HEADER], *[[str(i), *row] for i, row in enumerate(ROWS)]
    ),
    "comments and blank lines": lambda path: write(
        path, HEADER, *ROWS, before="# a logger\n\n#\n", delimiter=" "
    ),
    "a line of units": lambda path: write(path, HEADER, UNITS, *ROWS),
    "a line of units in brackets": lambda path: write(
        path, HEADER, [f"[{unit}]" for unit in UNITS], *ROWS
    ),
    "a line of other units": lambda path: write(
        path,
        HEADER,
        ["ms", *UNITS[1:-1], "mA"],
        *[
            [repr(1e3 * float(row[0])), *row[1:-1], repr(1e3 * float(row[-1]))]
            for row in ROWS
        ],
    ),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_forms_of_files_are_read(tmp_path: Path, form: str) -> None:
    telemetry = read(FORMS[form](tmp_path / "x.csv"))
    assert telemetry.time == pytest.approx(TIME)
    assert telemetry["actual_q"] == pytest.approx(COLUMNS[:, :6])
    assert bus_energy(telemetry) == pytest.approx(ENERGY)


DATE_FORMS: dict[str, Callable[[datetime], str]] = {
    "ISO 8601": datetime.isoformat,
    "pandas": lambda date: date.replace(tzinfo=None).isoformat(" "),
    "with a zone": lambda date: date.astimezone(timezone(timedelta(hours=2))).isoformat(),
    "basic": lambda date: date.strftime("%Y%m%dT%H%M%S.%fZ"),
    "short zone": lambda date: date.strftime("%Y-%m-%d %H:%M:%S.%f+00"),
    "slashes": lambda date: date.strftime("%Y/%m/%d %H:%M:%S.%f"),
    "time of day": lambda date: date.strftime("%H:%M:%S.%f"),
}


@pytest.mark.parametrize("title", ["timestamp", "DateTime", ""])
@pytest.mark.parametrize("form", DATE_FORMS)
def test_dates_are_read(tmp_path: Path, form: str, title: str) -> None:
    rows = with_times([DATE_FORMS[form](date) for date in DATES])
    path = write(tmp_path / "x.csv", [title or "time", *NAMES], *rows)
    if title == "" and form != "time of day":
        # the index of a pandas table
        path = write(tmp_path / "x.csv", [title, *NAMES], *rows)
    telemetry = read(path)
    start = 86_397.0 if form == "time of day" else START.timestamp()
    assert telemetry.time - start == pytest.approx(TIME - TIME[0], abs=1e-5)
    assert telemetry.gaps == ()
    assert bus_energy(telemetry) == pytest.approx(ENERGY)


@pytest.mark.parametrize(
    "form", ["%d.%m.%Y %H:%M:%S.%f", "%m/%d/%Y %I:%M:%S %p", "%d-%b-%Y %H:%M"]
)
def test_other_dates_are_refused_with_the_form_to_use(tmp_path: Path, form: str) -> None:
    rows = with_times([date.strftime(form) for date in DATES])
    with pytest.raises(RecordingError, match="ISO 8601") as caught:
        read(write(tmp_path / "x.csv", HEADER, *rows))
    assert DATES[0].strftime(form) in str(caught.value)


def test_what_polars_writes_is_read(tmp_path: Path) -> None:
    table = polars.DataFrame(
        {"timestamp": DATES, **{name: COLUMNS[:, k] for k, name in enumerate(NAMES)}}
    )
    table.write_csv(tmp_path / "x.csv", separator=";", decimal_comma=True)
    telemetry = read(tmp_path / "x.csv")
    assert (
        telemetry["actual_q"].tobytes() == np.ascontiguousarray(COLUMNS[:, :6]).tobytes()
    )
    assert bus_energy(telemetry) == pytest.approx(ENERGY)


@pytest.mark.parametrize(
    "begin", [b"PK\x03\x04rest", b"PAR1rest", b"MATLAB 5.0 MAT-file", b"t\0i\0"]
)
def test_other_files_are_refused_by_their_kind(tmp_path: Path, begin: bytes) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(begin + b"\0" * 100)
    with pytest.raises(RecordingError, match=r"CSV"):
        read(path)


ODD_CELLS = ["", "1,5", '"', ";", "NaN", "1e999"]
CELLS = st.one_of(st.floats().map(repr), st.text(max_size=8), st.sampled_from(ODD_CELLS))


@examples(40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    times=st.lists(
        st.one_of(st.floats(), st.integers(0, 5).map(float)), min_size=1, max_size=30
    ),
    cells=st.lists(CELLS, min_size=1, max_size=30),
    delimiter=st.sampled_from(",;\t |"),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]),
    rate=st.sampled_from([None, 0.5, 100.0]),
    unit=st.sampled_from([None, "ms", "d"]),
)
def test_any_file_is_read_or_refused_in_one_line(
    tmp_path: Path,
    times: list[float],
    cells: list[str],
    delimiter: str,
    encoding: str,
    rate: float | None,
    unit: str | None,
) -> None:
    columns = moving_arm(np.arange(len(times)))
    rows = [repr(time) for time in times]
    path = write_table(
        tmp_path / "x.csv", rows, columns, delimiter=delimiter, encoding="utf-8"
    )
    lines = path.read_text(encoding="utf-8").splitlines()
    for number, cell in enumerate(cells[: len(lines) - 1], start=1):
        parts = lines[number].split(delimiter)
        parts[-1] = cell
        lines[number] = delimiter.join(parts)
    path.write_text("\n".join(lines), encoding=encoding, errors="replace")
    refusals = list[str]()
    telemetry = None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            telemetry = read(path, rate=rate, time_unit=unit)
    except RecordingError as error:
        refusals.append(str(error))
    if telemetry is None:
        assert "\n" not in refusals[0]
        return
    assert np.isfinite(telemetry.time).all()
    assert len(telemetry) <= len(times)
