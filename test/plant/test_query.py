# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""SQL of users: bounded in memory and time, ended at once, and without processes that stay."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from test.running import children_of
from test.truth import first_fast
from ur_energy_model.cli.main import main
from ur_energy_model.plant.database import Period, SqlError, TooLargeError
from ur_energy_model.plant.query import MEMORY, MOST_BYTES, Query
from ur_energy_model.plant.store_files import StoreError

ENDLESS = (
    "WITH RECURSIVE t(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM t) SELECT max(x) FROM t"
)


def peak(pid: int) -> float:
    """Peak memory of a process [bytes]."""
    status = Path(f"/proc/{pid}/status").read_text()
    return 1024.0 * int(status.partition("VmHWM:")[2].split()[0])


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT repeat('x', 2000000000)",
        pytest.param("SELECT list_sort(range(200000000))", marks=pytest.mark.truth),
        pytest.param("SELECT format('{:>2000000000}', 'x')", marks=pytest.mark.truth),
        pytest.param(
            "SELECT array_agg(range) FROM range(1000000000)", marks=pytest.mark.truth
        ),
        pytest.param(
            "SELECT string_agg(range::text, ',') FROM range(1000000000)",
            marks=pytest.mark.truth,
        ),
    ],
)
def test_memory_is_that_of_the_process(plant: Path, sql: str) -> None:
    with pytest.raises(TooLargeError, match=r"needs more than 2 GB"):
        Query(str(plant), sql, timeout=300.0)


def test_time_is_that_of_the_computation(plant: Path) -> None:
    began = time.monotonic()
    with pytest.raises(SqlError, match=r"takes longer than 0\.5 s.*--timeout"):
        Query(str(plant), ENDLESS, timeout=0.5)
    assert time.monotonic() - began < 60.0
    endless = "SELECT range AS x FROM range(1000000000000)"
    with Query(str(plant), endless, timeout=3.0) as result:
        assert next(result.batches)["x"][0].as_py() == 0
        with result.paused():  # a reader that waits uses none of it
            time.sleep(3.2)
        assert next(result.batches)["x"][0].as_py() > 0
        assert peak(result.pid) < 0.5 * MEMORY
    with pytest.raises(SqlError, match="takes longer"):  # noqa: PT012, SIM117
        with Query(
            str(plant), "SELECT range AS x FROM range(1000000000000)", timeout=0.3
        ) as result:
            for _ in result.batches:  # rows without an end
                pass


def test_rows_come_in_messages_of_bounded_size(plant: Path) -> None:
    sql = "SELECT range AS x, repeat('x', 100000) AS t FROM range(600)"
    with Query(str(plant), sql) as result:
        sizes = [(len(batch), batch.nbytes) for batch in result.batches]
    assert sum(rows for rows, _ in sizes) == 600
    assert max(size for _, size in sizes) <= MOST_BYTES
    with pytest.raises(SqlError, match="a row of more than 16 MB"):  # noqa: SIM117
        with Query(str(plant), "SELECT repeat('x', 20000000)") as result:
            list(result.batches)


def test_it_sees_the_period_and_the_arms_and_refuses_in_one_line(plant: Path) -> None:
    period = Period.from_text("2026-05-05T23:00", "2026-05-05T23:01", "Europe/Berlin")
    with Query(
        str(plant), "SELECT count(*) FROM seconds", period, arms=("A3",)
    ) as result:
        assert next(result.batches).to_pylist() == [{"count_star()": 60}]
    for sql in ("SELECT * FROM '/etc/passwd'", "SELECT '\ud800'"):
        with pytest.raises(SqlError) as refusal:
            Query(str(plant), sql)
        assert "\n" not in str(refusal.value)
    with pytest.raises(StoreError, match="is no history store"):
        Query(str(plant.parent), "SELECT 1")


def test_what_is_counted_is_printed(
    plant: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sql = (
        "SELECT sum(range) AS a, sum(range) * 1e0 AS b, 0.12345 AS c FROM range(1000001)"
    )
    assert main(["history", "sql", str(plant), sql, "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert row == {"a": 500000500000, "b": 500000500000.0, "c": 0.12345}
    assert isinstance(row["a"], int)
    assert main(["history", "sql", str(plant), sql]) == 0
    assert capsys.readouterr().out.split()[-3:] == [
        "500000500000",
        "500000500000",
        "0.1235",
    ]


@pytest.mark.parametrize(
    "number", first_fast([signal.SIGINT, signal.SIGKILL, signal.SIGTERM])
)
def test_signals_end_it_at_once(plant: Path, number: int) -> None:
    command = [
        sys.executable,
        "-m",
        "ur_energy_model.cli.main",
        "history",
        "sql",
        str(plant),
    ]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [*command, ENDLESS], stdout=pipe, stderr=pipe, text=True
    ) as process:
        children: list[str] = []
        while process.poll() is None and not children:
            children = [pid for pid in children_of(process.pid) if _computes(pid)]
            time.sleep(0.02)
        process.send_signal(number)
        began = time.monotonic()
        _, err = process.communicate(timeout=240)
        while any(Path(f"/proc/{pid}").exists() for pid in children):
            assert time.monotonic() - began < 30.0
            time.sleep(0.02)
    assert children
    assert process.returncode == (-number if number == signal.SIGKILL else 128 + number)
    assert "Traceback" not in err


def _computes(pid: str) -> bool:
    """Whether a process has imported DuckDB, and works."""
    try:
        return "duckdb" in Path(f"/proc/{pid}/maps").read_text()
    except OSError:
        return False
