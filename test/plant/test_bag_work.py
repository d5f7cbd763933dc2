"""Where many bags are worked on."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ur_energy_model.errors import InputError
from ur_energy_model.many_bags import in_this_process
from ur_energy_model.plant import cluster as module
from ur_energy_model.plant.cluster import bag_work


def bags_of(folder: Path, count: int, size: int) -> list[Path]:
    """Bags of files that hold nothing but their size."""
    bags = [folder / str(number) for number in range(count)]
    for bag in bags:
        bag.mkdir()
        with (bag / "data.mcap").open("wb") as file:
            file.truncate(size)
    return bags


def test_scheduler_and_workers_exclude_each_other(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="leave one out"):
        bag_work([tmp_path], "tcp://127.0.0.1:8786", 2).__enter__()


def test_small_bags_need_no_processes(tmp_path: Path) -> None:
    with bag_work(bags_of(tmp_path, 5, 1000)) as each:
        assert each is in_this_process


def test_one_worker_is_this_process(tmp_path: Path) -> None:
    with bag_work(bags_of(tmp_path, 2, 1000), workers=1) as each:
        assert each is in_this_process


def test_a_bag_needs_one_worker(tmp_path: Path) -> None:
    with bag_work(bags_of(tmp_path, 1, 10**9), workers=4) as each:
        assert each is in_this_process


def test_large_bags_take_the_cores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    bags = [*bags_of(tmp_path, 4, 10**9), tmp_path / "missing"]
    assert module._suggested(bags) == 8
    assert module._suggested(bags[:1]) == 1


def test_without_distributed_this_process_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "find_spec", lambda _: None)
    assert module._suggested(bags_of(tmp_path, 4, 10**9)) == 1
