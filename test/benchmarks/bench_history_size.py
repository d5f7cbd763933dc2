"""What a plant's history costs: bytes, processor time and memory, per arm and for many arms.

The figures of docs/plant_sizing.md. An arm is simulated at 500 Hz for ten minutes, recorded into a
bag and added to a store; questions are asked to the history of a made-up plant. What they take is
that of the command `ur_energy`, as a user starts it. From this follow the figures of a day of 8
hours with 1, 40 and 1000 arms.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from test.identification.exact_arm import write_bag
from test.plant.synthetic_plant import Arm, Work, write_plant
from ur_energy_model.model.robots import load_robot
from ur_energy_model.simulation.simulated_arm import SimulatedArm, record_arm
from ur_energy_model.trajectory.named_motions import named_motion

RECORDED = 600.0
"""Of the simulated arm [s]."""
ARMS, DAYS = 10, 5
SHIFT = 8 * 3600
"""Work of a day [s]."""
GB = 1e9
STORAGE, CORE_HOUR = 0.023, 0.05
"""Prices that the page assumes: USD per GB and month of an object store, per core and hour."""


@dataclass(frozen=True)
class Cost:
    """What a command took: processor time [s], time [s], largest memory of a process [MB]."""

    core: float
    wall: float
    memory: float


PROGRAM = """
import os, pathlib, re, sys
from ur_energy_model.cli.main import main
code = main(sys.argv[1:])
status = pathlib.Path("/proc/self/status").read_text()
print(re.search(r"VmHWM:\\s+(\\d+) kB", status)[1], sum(os.times()[:4]), file=sys.stderr)
sys.exit(code)
"""
"""The command, and what it took: memory [kB] (of this process) and processor time [s]."""


def run(*arguments: str) -> Cost:
    """Run `ur_energy history`."""
    begin = time.perf_counter()
    program = [sys.executable, "-c", PROGRAM, "history", *arguments]
    done = subprocess.run(program, capture_output=True, text=True, check=True)
    memory, core = done.stderr.splitlines()[-1].split()
    return Cost(float(core), time.perf_counter() - begin, int(memory) / 1024)


def size(folder: Path, pattern: str = "*") -> int:
    """Bytes of the files below a folder."""
    return sum(path.stat().st_size for path in folder.rglob(pattern) if path.is_file())


def adding(folder: Path) -> tuple[float, float]:
    """Bytes and core-seconds of the history per second of an arm."""
    robot = load_robot("ur5e")
    arm = SimulatedArm(robot, motion=named_motion("trajectory_a", robot))
    bag = write_bag(folder / "bag", record_arm(arm, RECORDED))
    store = folder / "store"
    cost = run("add", str(store), str(bag), "--robot", "ur5e", "--workers", "1")
    content = size(store) / RECORDED
    print(f"recording of {RECORDED:.0f} s at {robot.rate:.0f} Hz, fields of the energy model only")
    print(f"  bag                 {size(bag) / RECORDED / 1e3:8.1f} kB/s")
    print(
        f"  history             {content:8.0f} B/s, of which seconds "
        f"{size(store / 'seconds') / RECORDED:.0f} B/s"
    )
    print(
        f"  history add         {cost.core:8.2f} core-s, {cost.memory:.0f} MB, start included: "
        f"{RECORDED * robot.rate / cost.core:,.0f} samples per core-s"
    )
    return content, cost.core / RECORDED


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
    for name, arguments in {
        "summary": (),
        "summary --by day": ("--by", "day"),
        "summary --by hour": ("--by", "hour"),
        "summary --by joint": ("--by", "joint"),
        "summary of one day": ("--from", "2026-05-06", "--to", "2026-05-06"),
    }.items():
        _print(name, run("summary", str(store), *arguments), empty, rows)
    _print("report", run("report", str(store), "-o", str(folder / "page.html")), empty, rows)
    _print("export", run("export", str(store), "-o", str(folder / "rows.csv")), empty, rows)


def _print(name: str, cost: Cost, empty: Cost, rows: int) -> None:
    core = max(cost.core - empty.core, 1e-3)
    print(
        f"  {name:22}{cost.wall:8.2f} s, {cost.core:5.2f} core-s, {cost.memory:5.0f} MB, "
        f"{rows / core:12,.0f} rows per core-s"
    )


def many(content: float, core: float) -> None:
    """Print what a day of so many arms takes."""
    print("a day of 8 hours       arms   history     a year   adding    storage of a year  adding")
    for count in (1, 40, 1000):
        day = content * SHIFT * count
        work = core * SHIFT * count
        print(
            f"{count:27d}{day / GB:7.3f} GB{250 * day / GB:8.0f} GB{work / 3600:7.2f} core-h"
            f"{250 * day / GB * STORAGE:8.2f} USD/month{work / 3600 * CORE_HOUR:8.2f} USD/day"
        )


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        recorded = adding(folder)
        asking(folder)
        many(*recorded)


if __name__ == "__main__":
    main()
