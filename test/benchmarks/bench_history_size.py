# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""What a plant's history costs: bytes, processor time and memory, per arm and for many arms.

The figures of docs/plant/many_arms.md. An arm is simulated at 500 Hz, and ten minutes of it are
added to a store by the command `ur_energy`. Questions are asked to the history of a
made-up plant. From this follow the figures of a day of 8 hours with 1, 40 and 1000 arms.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import NamedTuple

import numpy as np

from test.benchmarks.meters import size
from test.plant.synthetic_plant import Arm, Work, write_plant
from ur_energy_model.model.robots import load_robot
from ur_energy_model.simulation.simulated_arm import SimulatedArm, record_arm
from ur_energy_model.telemetry.bag.writer import BagWriter
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.trajectory.named_motions import named_motion

MINUTES = 10
START = 1_770_000_000_000_000_000  # host time of the first sample [ns]
ARMS = 10
DAYS = 5
SHIFT = 8 * 3600  # work of a day [s]
GB = 1e9
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
    minute = record_arm(
        SimulatedArm(robot, motion=named_motion("trajectory_a", robot)), 60.0
    )
    info = replace(minute.info, serial="20265500001")
    with BagWriter(path, info, tuple(minute.columns)) as writer:
        for number in range(MINUTES):
            clock = minute.time + 60.0 * number
            stamp = START + np.round((clock - minute.time[0]) * 1e9).astype(np.int64)
            writer.write(Telemetry(clock, minute.columns, info, (), stamp))
    return MINUTES * len(minute)


def adding(folder: Path) -> tuple[float, float]:
    """Bytes and core-seconds of the history per second of an arm."""
    bag = folder / "bag"
    store = folder / "store"
    seconds = 60.0 * MINUTES
    samples = long_bag(bag)
    cost = run("add", str(store), str(bag), "--robot", "ur5e", "--workers", "1")
    content = size(store) / seconds
    print(
        f"recording of {seconds:.0f} s at {samples / seconds:.0f} Hz: bag "
        f"{size(bag) / seconds / 1e3:.1f} kB/s, history {content:.0f} B/s"
    )
    print(
        f"history add: {cost.core:.2f} core-s, {cost.memory:.0f} MB, start included: "
        f"{samples / cost.core:,.0f} samples per core-s"
    )
    return content, cost.core / seconds


def asking(folder: Path) -> None:
    """Print rows per second and memory of each question."""
    store = folder / "plant"
    arms = [Arm(f"arm{k:03d}", motion_power=80.0 + 5 * k) for k in range(ARMS)]
    write_plant(store, arms, Work(first=date(2026, 5, 4), days=DAYS, seconds=SHIFT))
    rows = ARMS * DAYS * SHIFT
    print(f"questions to {rows:,} rows")
    for name, question in {
        "summary": ("summary",),
        "summary --by joint": ("summary", "--by", "joint"),
        "report": ("report", "-o", str(folder / "page.html")),
        "export": ("export", "-o", str(folder / "rows.csv")),
    }.items():
        cost = run(question[0], str(store), *question[1:])
        print(
            f"  {name:22}{cost.wall:8.2f} s, {cost.core:5.2f} core-s, {cost.memory:5.0f} MB"
        )


def main() -> None:
    """Measure and print, and what a day of so many arms takes."""
    with tempfile.TemporaryDirectory() as name:
        content, core = adding(Path(name))
        asking(Path(name))
    print("a day of 8 hours       arms   history     a year   adding")
    for arms in (1, 40, 1000):
        day = content * SHIFT * arms
        work = core * SHIFT * arms
        print(
            f"{arms:27d}{day / GB:7.3f} GB{250 * day / GB:8.0f} GB{work / 3600:7.2f} core-h"
        )
