# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Damaged bags and hostile files: read, refused in one line, or repaired, in bounded resources."""

from __future__ import annotations

import shutil
from pathlib import Path

from test.telemetry.bag.bag_files import write_bag
from test.telemetry.conftest import make_telemetry
from test.torture.harness import Case, Family, Surroundings, Verdict
from test.torture.hostile_files import MAKERS, bag_of_bomb, damaged
from test.torture.reading import ReadingWorker

SAMPLES = 1500
BAGS_PER_CASE = 10


def _judge(case: Case, verdict: Verdict, kind: str, path: Path) -> None:
    """Read a file in the worker that all cases share."""
    kept = case.around.kept
    if "reading worker" not in kept:
        kept["reading worker"] = ReadingWorker(case.around)
    kept["reading worker"].judge(verdict, kind, path)


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
        before = len(verdict.problems)
        for kind in ("bag", "iterate", "events", "recover", "bag"):
            _judge(case, verdict, kind, bag)
        if len(verdict.problems) > before:
            verdict.problems.append(f"in bag {number}, {file.name} damaged")
        shutil.rmtree(bag)
    return verdict


def run(case: Case) -> Verdict:
    """One hostile file; the kinds take turns."""
    turn = case.number % (len(MAKERS) + 1)
    if turn < len(MAKERS):
        kind, path = MAKERS[turn](case.folder, case.random)
    else:
        kind, path = bag_of_bomb(case.folder, case.random, healthy_bag(case.around))
    size = path.stat().st_size if path.is_file() else 0
    verdict = Verdict(f"{path.name} of {size} bytes as {kind}")
    _judge(case, verdict, kind, path)
    if path.is_file():
        path.unlink()
    return verdict


BAGS = Family("bags", 2.0, run_bags)
FAMILY = Family("files", 1.5, run)
