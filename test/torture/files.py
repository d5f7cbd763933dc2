"""Damaged bags and hostile files: read, refused in one line, or repaired, in bounded resources."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from test.telemetry.bag.bag_files import write_bag
from test.telemetry.conftest import make_telemetry
from test.torture.harness import Case, Family, Surroundings, Verdict
from test.torture.hostile_files import (
    bag_of_bomb,
    csv_file,
    damaged,
    mcap_file,
    shifted_csv,
    yaml_file,
)
from test.torture.reading import worker_of

SAMPLES = 1500
BAGS_PER_CASE = 10


def healthy_bag(around: Surroundings) -> Path:
    """A small bag of several chunks."""
    path = around.folder / "healthy_bag"
    if not path.exists():
        write_bag(path, make_telemetry(SAMPLES), batch=100)
    return path


def run_bags(case: Case) -> Verdict:
    """Damage some bags, one file each; read, iterate and recover them."""
    verdict = Verdict(f"{BAGS_PER_CASE} damaged bags")
    worker = worker_of(case.around)
    for number in range(BAGS_PER_CASE):
        bag = case.folder / f"bag_{number}"
        shutil.copytree(healthy_bag(case.around), bag)
        file = case.random.choice(sorted(bag.iterdir()))
        file.write_bytes(damaged(file.read_bytes(), case.random))
        known = len(verdict.problems)
        for kind in ("bag", "iterate", "events", "recover", "bag"):
            worker.judge(verdict, kind, bag)
        for place in range(known, len(verdict.problems)):
            verdict.problems[place] += f" (bag {number}, {file.name} damaged)"
        shutil.rmtree(bag)
    return verdict


BAGS = Family("bags", 2.0, run_bags)


def run(case: Case) -> Verdict:
    """One hostile file; the kinds take turns."""
    makers: list[Callable[[], tuple[str, Path]]] = [
        lambda: yaml_file(case.folder, case.random),
        lambda: csv_file(case.folder, case.random),
        lambda: shifted_csv(case.folder, case.random),
        lambda: mcap_file(case.folder, case.random),
        lambda: bag_of_bomb(case.folder, case.random, healthy_bag(case.around)),
    ]
    kind, path = makers[case.number % len(makers)]()
    size = path.stat().st_size if path.is_file() else 0
    verdict = Verdict(f"{path.name} of {size} bytes as {kind}")
    worker_of(case.around).judge(verdict, kind, path)
    if path.is_file():
        path.unlink()
    return verdict


FAMILY = Family("files", 1.5, run)
