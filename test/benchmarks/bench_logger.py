# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The logger beside ur_rtde's recorder: CPU, lost and duplicated samples at 500 Hz.

Both record the same fields of the same simulated controller, one after the other, in
processes of their own.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from test.benchmarks.meters import SECONDS, UR_ENERGY, spent_by
from test.running import Simulators, fresh_host
from ur_energy_model.telemetry.bag.reader import read_bag
from ur_energy_model.telemetry.csv.reader import read_csv
from ur_energy_model.typing import Array

RATE = 500.0
UR_RTDE = """
import sys, time, rtde_receive
robot = rtde_receive.RTDEReceiveInterface(sys.argv[1], 500.0, sys.argv[4].split(","))
robot.startFileRecording(sys.argv[2], sys.argv[4].split(","))
time.sleep(float(sys.argv[3]))
robot.stopFileRecording()
"""


def record(name: str, command: list[str], read: Callable[[], Array]) -> str:
    """Samples that a recorder got between its first and last tick, and what it cost, as text."""
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, stdout=quiet, stderr=quiet) as process:
        time.sleep(min(4.0, 0.25 * SECONDS))  # its start-up is left out
        begun = spent_by(process.pid)
        start = time.monotonic()
        time.sleep(0.5 * SECONDS)
        cpu = 100.0 * (spent_by(process.pid) - begun) / (time.monotonic() - start)
        if process.wait(2.0 * SECONDS + 60.0):
            raise RuntimeError(f"{command[:4]} failed")
    ticks = np.rint(read() * RATE).astype(int)
    expected = np.ptp(ticks) + 1
    distinct = len(np.unique(ticks))
    lost = expected - distinct
    twice = len(ticks) - distinct
    return (
        f"{name:32} {len(ticks):8d} {lost:7d} ({100 * lost / expected:5.2f} %)"
        f" {twice:7d} ({100 * twice / expected:5.2f} %) {cpu:7.1f} %"
    )


def main() -> None:
    """Record a simulated controller with each, and print a line for each."""
    with tempfile.TemporaryDirectory() as folder, Simulators() as simulators:
        host = fresh_host()
        bag = Path(folder) / "bag"
        csv = Path(folder) / "ur_rtde.csv"
        simulators.start(host)
        options = ["--host", host, "--robot", "ur5e", "--duration", str(SECONDS)]
        ours = [*UR_ENERGY, "record", *options, "-o", str(bag)]
        lines = [
            record("ur_energy record", ours, lambda: read_bag(bag, ["timestamp"]).time)
        ]
        unknown = {"script_control_line"}  # to ur_rtde
        fields = [name for name in read_bag(bag).columns if name not in unknown]
        theirs = [
            sys.executable,
            "-c",
            UR_RTDE,
            host,
            str(csv),
            str(SECONDS),
            ",".join(fields),
        ]
        name = "ur_rtde startFileRecording"
        lines.append(record(name, theirs, lambda: read_csv([csv], None).time))
    print(
        f"{SECONDS:.0f} s at 500 Hz, {len(fields)} fields, load {os.getloadavg()[0]:.1f} on "
        f"{os.cpu_count()} cores"
    )
    print(
        f"{'':32} {'samples':>8} {'lost':>17} {'duplicated':>17} {'CPU':>9}",
        *lines,
        sep="\n",
    )
