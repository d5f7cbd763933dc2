"""Damaged bags and hostile files: read, refused in one line, or repaired, in bounded resources."""

from __future__ import annotations

import shutil
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
from test.torture.reading import ReadingWorker

SAMPLES = 1500
BAGS_PER_CASE = 10


def _worker(around: Surroundings) -> ReadingWorker:
    """The worker that all cases share."""
    if "reading worker" not in around.kept:
        around.kept["reading worker"] = ReadingWorker(around)
    return around.kept["reading worker"]


def healthy_bag(around: Surroundings) -> Path:
    """A small bag of several chunks."""
    path = around.folder / "healthy_bag"
    return path if path.exists() else write_bag(path, make_telemetry(SAMPLES), batch=100)


def run_bags(case: Case) -> Verdict:
    """Damage some bags, one file each; read, iterate and recover them."""
    verdict = Verdict(f"{BAGS_PER_CASE} damaged bags")
    for number in range(BAGS_PER_CASE):
        bag = case.folder / f"bag_{number}"
        shutil.copytree(healthy_bag(case.around), bag)
        file = case.random.choice(sorted(bag.iterdir()))
        file.write_bytes(damaged(file.read_bytes(), case.random))
        found = Verdict(verdict.name)
        for kind in ("bag", "iterate", "events", "recover", "bag"):
            _worker(case.around).judge(found, kind, bag)
        place = f" (bag {number}, {file.name} damaged)"
        verdict.problems += [problem + place for problem in found.problems]
        verdict.weigh(found.memory)
        verdict.seconds = max(verdict.seconds, found.seconds)
        shutil.rmtree(bag)
    return verdict


def run(case: Case) -> Verdict:
    """One hostile file; the kinds take turns."""
    makers = (yaml_file, csv_file, shifted_csv, mcap_file)
    turn = case.number % (len(makers) + 1)
    if turn < len(makers):
        kind, path = makers[turn](case.folder, case.random)
    else:
        kind, path = bag_of_bomb(case.folder, case.random, healthy_bag(case.around))
    size = path.stat().st_size if path.is_file() else 0
    verdict = Verdict(f"{path.name} of {size} bytes as {kind}")
    _worker(case.around).judge(verdict, kind, path)
    if path.is_file():
        path.unlink()
    return verdict


BAGS = Family("bags", 2.0, run_bags)
FAMILY = Family("files", 1.5, run)
