"""What a plant's history costs: bytes, processor time and memory, per arm and for many arms.

The figures of docs/many_arms.md. An arm is simulated at 500 Hz, and ten minutes of it are added to
a store: here, beside the parts of that work (least processor times, the bag in the memory of the
file system), and by the command `ur_energy` as a user starts it. Questions are asked to the history
of a made-up plant. From this follow the figures of a day of 8 hours with 1, 40 and 1000 arms.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from itertools import count
from pathlib import Path
from typing import NamedTuple

import numpy as np

from test.benchmarks.meters import least_cpu, peak, size
from test.plant.synthetic_plant import Arm, Work, write_plant
from ur_energy_model.energy.powers import FIELDS
from ur_energy_model.energy.recording_energy import estimate_energy
from ur_energy_model.model.generic import generic_model
from ur_energy_model.model.robots import load_robot
from ur_energy_model.plant.add import BagWork, add_bags
from ur_energy_model.simulation.simulated_arm import SimulatedArm, record_arm
from ur_energy_model.telemetry.bag.metadata import bag_hash
from ur_energy_model.telemetry.bag.reader import iterate_bag
from ur_energy_model.telemetry.bag.writer import BagWriter
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.trajectory.named_motions import named_motion

MINUTES = 10
PROMISED = 150_000.0
"""Samples per second of processor time."""
START = 1_770_000_000_000_000_000
"""Host time of the first sample [ns]."""
ARMS, DAYS = 10, 5
SHIFT = 8 * 3600
"""Work of a day [s]."""
GB = 1e9
STORAGE, CORE_HOUR = 0.023, 0.05
"""Prices that the page assumes: USD per GB and month of an object store, per core and hour."""
PROGRAM = """
import os, pathlib, re, sys
from ur_energy_model.cli.main import main
code = main(sys.argv[1:])
status = pathlib.Path("/proc/self/status").read_text()
print(re.search(r"VmHWM:\\s+(\\d+) kB", status)[1], sum(os.times()[:4]), file=sys.stderr)
sys.exit(code)
"""
"""The command, and what it took: memory [kB] (of this process) and processor time [s]."""


class Cost(NamedTuple):
    """What a command took: processor time [s], time [s], largest memory of a process [MB]."""

    core: float
    wall: float
    memory: float


def run(*arguments: str) -> Cost:
    """Run `ur_energy history`."""
    begin = time.perf_counter()
    program = [sys.executable, "-c", PROGRAM, "history", *arguments]
    done = subprocess.run(program, capture_output=True, text=True, check=True)
    memory, core = done.stderr.splitlines()[-1].split()
    return Cost(float(core), time.perf_counter() - begin, int(memory) / 1024)


def long_bag(path: Path) -> int:
    """A bag of the same minute of a simulated arm over and over; returns its number of samples."""
    robot = load_robot("ur5e")
    minute = record_arm(SimulatedArm(robot, motion=named_motion("trajectory_a", robot)), 60.0)
    info = replace(minute.info, serial="20265500001")
    with BagWriter(path, info, tuple(minute.columns)) as writer:
        for number in range(MINUTES):
            clock = minute.time + 60.0 * number
            stamp = START + np.round((clock - minute.time[0]) * 1e9).astype(np.int64)
            writer.write(Telemetry(clock, minute.columns, info, (), stamp))
    return MINUTES * len(minute)


def adding(folder: Path) -> tuple[float, float]:
    """Bytes and core-seconds of the history per second of an arm."""
    bag, store, number = folder / "bag", folder / "store", count()
    samples, model = long_bag(bag), generic_model("ur5e")
    seconds, truth = 60.0 * MINUTES, estimate_energy(model, bag).supply

    def read() -> None:
        assert sum(map(len, iterate_bag(bag, FIELDS))) == samples

    def add() -> None:
        work = BagWork(str(folder / f"store_{next(number)}"), model, "generic")
        (record,) = add_bags(work, [bag]).records
        assert abs(record.energy / truth - 1.0) < 1e-6

    parts: dict[str, Callable[[], object]] = {
        "hash": lambda: bag_hash(bag),
        "reading": read,
        "estimate": lambda: estimate_energy(model, bag),
        "history add": add,
    }
    for what, action in parts.items():
        least = least_cpu(action)
        print(f"{what:12} {least:5.2f} s of processor time, {samples / least:9.0f} samples/s")
    print(f"history add: {samples / least / PROMISED:.2f} of the {PROMISED:.0f} samples/s promised")
    print(f"peak memory {peak():.0f} MB")
    cost = run("add", str(store), str(bag), "--robot", "ur5e", "--workers", "1")
    content = size(store) / seconds
    print(f"recording of {seconds:.0f} s at {samples / seconds:.0f} Hz")
    print(f"  bag                 {size(bag) / seconds / 1e3:8.1f} kB/s")
    print(
        f"  history             {content:8.0f} B/s, of which seconds "
        f"{size(store / 'seconds') / seconds:.0f} B/s: {content * 0.0864:.1f} MB per day and arm "
        "without pause"
    )
    print(
        f"  history add         {cost.core:8.2f} core-s, {cost.memory:.0f} MB, start included: "
        f"{samples / cost.core:,.0f} samples per core-s"
    )
    return content, cost.core / seconds


def asking(folder: Path) -> None:
    """Print rows per second and memory of each question."""
    store = folder / "plant"
    arms = [Arm(f"arm{k:03d}", motion_power=80.0 + 5 * k) for k in range(ARMS)]
    write_plant(store, arms, Work(first=date(2026, 5, 4), days=DAYS, seconds=SHIFT))
    rows = ARMS * DAYS * SHIFT
    files = len(list((store / "seconds").rglob("*.parquet")))
    print(f"questions to {rows:,} rows in {files} files")
    empty = run("summary", str(store), "--from", "2030-01-01")
    print(f"  of a day without rows   {empty.wall:6.2f} s, {empty.memory:.0f} MB")
    for name, question in {
        "summary": ("summary",),
        "summary --by day": ("summary", "--by", "day"),
        "summary --by hour": ("summary", "--by", "hour"),
        "summary --by joint": ("summary", "--by", "joint"),
        "summary of one day": ("summary", "--from", "2026-05-06", "--to", "2026-05-06"),
        "report": ("report", "-o", str(folder / "page.html")),
        "export": ("export", "-o", str(folder / "rows.csv")),
    }.items():
        cost = run(question[0], str(store), *question[1:])
        print(
            f"  {name:22}{cost.wall:8.2f} s, {cost.core:5.2f} core-s, {cost.memory:5.0f} MB, "
            f"{rows / max(cost.core - empty.core, 1e-3):12,.0f} rows per core-s"
        )


def main() -> None:
    """Measure and print, and what a day of so many arms takes."""
    with tempfile.TemporaryDirectory() as name:
        content, core = adding(Path(name))
        asking(Path(name))
    print("a day of 8 hours       arms   history     a year   adding    storage of a year  adding")
    for arms in (1, 40, 1000):
        day, work = content * SHIFT * arms, core * SHIFT * arms
        print(
            f"{arms:27d}{day / GB:7.3f} GB{250 * day / GB:8.0f} GB{work / 3600:7.2f} core-h"
            f"{250 * day / GB * STORAGE:8.2f} USD/month{work / 3600 * CORE_HOUR:8.2f} USD/day"
        )
