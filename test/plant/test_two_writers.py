"""Processes that add to one store: killed at any moment, or two at once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from test.plant.made_up_bags import (
    HOUR,
    MODEL,
    NOON,
    Session,
    estimated,
    file_count,
    rows,
    total,
)
from ur_energy_model.model.model_file import save_model
from ur_energy_model.plant.store import HistoryStore

BAGS = 6


@pytest.fixture(scope="module")
def bags(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Bags of two arms, one of them across midnight; two overlap."""
    folder = tmp_path_factory.mktemp("bags")
    at = (0, HOUR, HOUR + 4 * 10**9, 12 * HOUR - 3 * 10**9, 0, HOUR)
    return [
        Session(at=NOON + begin, serial=f"arm-{k // 4}", shift=k, cycle=1.0).bag(
            folder / f"bag_{k}"
        )
        for k, begin in enumerate(at)
    ]


@pytest.fixture(scope="module")
def model(bags: list[Path]) -> Path:
    path = bags[0].parent / "model.yaml"
    save_model(MODEL, path)
    return path


def adder(store: Path, bags: list[Path], model: Path) -> subprocess.Popen[str]:
    """`ur_energy history add` in a process of its own."""
    command = [sys.executable, "-m", "ur_energy_model.cli.main", "history", "add", str(store)]
    command += [*map(str, bags), "--model", str(model), "--workers", "1", "--json"]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )


def finish(process: subprocess.Popen[str]) -> dict[str, object]:
    out, err = process.communicate(timeout=100)
    assert process.returncode == 0, err
    return dict(json.loads(out))


def wait_for(condition: object, process: subprocess.Popen[str]) -> None:
    while process.poll() is None and not condition():  # type: ignore[operator]
        time.sleep(0.001)


def test_killed_at_any_moment_it_reads_and_adding_again_completes_it(
    tmp_path: Path, bags: list[Path], model: Path
) -> None:
    whole = tmp_path / "whole"
    finish(adder(whole, bags, model))
    most, random = file_count(whole), np.random.default_rng(7)
    store = tmp_path / "store"
    for most_files in (1, 5, int(random.integers(2, most)), int(random.integers(2, most))):
        process = adder(store, bags, model)
        wait_for(lambda: file_count(store) >= most_files, process)  # noqa: B023
        time.sleep(float(random.uniform(0.0, 0.01)))
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=100)
        read = rows(store) if (store / "seconds").exists() else []
        complete = {record.source for record in HistoryStore(store).sources()}
        for source in complete:
            there = [row for row in read if row["source"] == source]
            assert there == [row for row in rows(whole) if row["source"] == source]
        others = [path for path in (store / "seconds").rglob("*.*") if path.suffix != ".parquet"]
        assert not others  # some readers take every file of a folder
    finish(adder(store, bags, model))
    assert rows(store) == rows(whole)
    assert rows(store, "cycles") == rows(whole, "cycles")
    assert not list((store / "begun").iterdir())


def test_two_at_once_add_each_bag_once(tmp_path: Path, bags: list[Path], model: Path) -> None:
    store, whole = tmp_path / "store", tmp_path / "whole"
    both = [adder(store, bags, model), adder(store, bags[::-1], model)]
    results = [finish(process) for process in both]
    assert sum(int(str(result["added"])) for result in results) == BAGS
    assert sum(int(str(result["skipped"])) for result in results) == BAGS
    finish(adder(whole, bags, model))
    assert total(store, "accounted") == pytest.approx(total(whole, "accounted"), abs=0.01)
    assert total(store) == pytest.approx(sum(float(str(r["energy"])) for r in results))
    overlap = sum(estimated(bag).duration for bag in bags) - total(store, "accounted")
    assert overlap == pytest.approx(3.0, abs=0.02)


def test_what_the_command_prints(tmp_path: Path, bags: list[Path], model: Path) -> None:
    result = finish(adder(tmp_path / "store", bags[:2], model))
    assert result["failed"] == []
    assert (result["added"], result["skipped"]) == (2, 0)
    assert result["seconds"] == len(rows(tmp_path / "store"))
    assert result["energy"] == pytest.approx(sum(estimated(bag).supply for bag in bags[:2]))
    again = finish(adder(tmp_path / "store", bags[:2], model))
    assert (again["added"], again["skipped"], again["seconds"]) == (0, 2, 0)
