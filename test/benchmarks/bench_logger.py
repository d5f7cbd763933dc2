"""The logger beside others: CPU, lost and duplicated samples at 500 Hz, and its highest rate.

All of them record the same fields of the same simulated controller, one after the other, in
processes of their own. Universal Robots' record example takes part where the environment variable
UR_RTDE_CLIENT names a checkout of its sources.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from test.benchmarks.meters import SECONDS, UR_ENERGY, fresh_host, spent_by
from ur_energy_model.telemetry.bag.reader import iterate_bag, read_bag
from ur_energy_model.telemetry.bag.writer import BagWriter
from ur_energy_model.telemetry.csv.reader import read_csv
from ur_energy_model.telemetry.fields import ENERGY_FIELDS, FIELDS
from ur_energy_model.telemetry.recording.recorder import Recorder
from ur_energy_model.telemetry.recording.writing_thread import SampleQueue
from ur_energy_model.telemetry.samples import Event, RecordingInfo, Telemetry
from ur_energy_model.telemetry.source import LinkStatus
from ur_energy_model.typing import Array, Self

RATE = 500.0
UR_RTDE = """
import sys, time, rtde_receive
robot = rtde_receive.RTDEReceiveInterface(sys.argv[1], 500.0, sys.argv[4].split(","))
robot.startFileRecording(sys.argv[2], sys.argv[4].split(","))
time.sleep(float(sys.argv[3]))
robot.stopFileRecording()
"""


def record(
    name: str, command: list[str], read: Callable[[], Array], cwd: Path | None = None
) -> str:
    """Samples that a recorder got between its first and last tick, and what it cost, as text."""
    with subprocess.Popen(
        command, cwd=cwd, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        time.sleep(min(4.0, 0.25 * SECONDS))  # its start-up is left out
        begun, start = spent_by(process.pid), time.monotonic()
        time.sleep(0.5 * SECONDS)
        cpu = 100.0 * (spent_by(process.pid) - begun) / (time.monotonic() - start)
        try:
            failed = process.wait(2.0 * SECONDS + 60.0)
        except subprocess.TimeoutExpired:
            process.kill()
            return f"{name:32} did not finish"
        if failed:
            raise RuntimeError(f"{command[:4]} failed")
    ticks = np.rint(read() * RATE).astype(int)
    expected, distinct = np.ptp(ticks) + 1, len(np.unique(ticks))
    lost, twice = expected - distinct, len(ticks) - distinct
    return (
        f"{name:32} {len(ticks):8d} {lost:7d} ({100 * lost / expected:5.2f} %)"
        f" {twice:7d} ({100 * twice / expected:5.2f} %) {cpu:7.1f} %"
    )


def beside_others(folder: Path) -> None:
    """Record a simulated controller with each, and print a line for each."""
    host, bag = fresh_host(), folder / "bag"
    command = [*UR_ENERGY, "simulate", "--robot", "ur5e", "--host", host]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        next(line for line in server.stdout if "ready" in line)
        try:
            options = ["--host", host, "--robot", "ur5e", "--duration", str(SECONDS)]
            ours = [*UR_ENERGY, "record", *options, "-o", str(bag)]
            lines = [record("ur_energy record", ours, lambda: read_bag(bag, ["timestamp"]).time)]
            unknown = {"script_control_line"}  # to ur_rtde
            fields = [name for name in read_bag(bag).columns if name not in unknown]
            csv = folder / "ur_rtde.csv"
            program = [sys.executable, "-c", UR_RTDE, host, str(csv), str(SECONDS)]
            lines.append(
                record(
                    "ur_rtde startFileRecording",
                    [*program, ",".join(fields)],
                    lambda: read_csv([csv], None).time,
                )
            )
            if sources := os.environ.get("UR_RTDE_CLIENT"):
                lines.append(ur_example(folder, Path(sources), fields, host))
            else:
                lines.append("UR's record example: UR_RTDE_CLIENT names no checkout of it")
        finally:
            server.terminate()
    print(
        f"{SECONDS:.0f} s at 500 Hz, {len(fields)} fields, load {os.getloadavg()[0]:.1f} on "
        f"{os.cpu_count()} cores"
    )
    print(f"{'':32} {'samples':>8} {'lost':>17} {'duplicated':>17} {'CPU':>9}", *lines, sep="\n")


def ur_example(folder: Path, sources: Path, fields: list[str], host: str) -> str:
    """examples/record.py of Universal Robots' Python client."""
    csv, recipe = folder / "example.csv", folder / "recipe.xml"
    entries = "".join(f'<field name="{name}" type="{FIELDS[name].kind}"/>' for name in fields)
    recipe.write_text(
        f'<?xml version="1.0"?><rtde_config><recipe key="out">{entries}</recipe></rtde_config>'
    )
    command = [sys.executable, "record.py", "--host", host, "--frequency", "500"]
    command += ["--samples", str(round(SECONDS * RATE)), "--config", str(recipe)]
    return record(
        "UR's record example",
        [*command, "--output", str(csv)],
        lambda: read_csv([csv], None).time,
        cwd=sources / "examples",
    )


class FastSource:
    """Samples as fast as the queue to the writer takes them, once `go` is set."""

    def __init__(self, count: int, batch: int = 25) -> None:
        self.go, self.queue = threading.Event(), SampleQueue()
        rng = np.random.default_rng(1)
        self.info = RecordingInfo(source="memory", robot="ur5e", rate=RATE)
        self.fields = ENERGY_FIELDS
        self._values = {
            name: rng.normal(size=(batch, FIELDS[name].width) if FIELDS[name].width > 1 else batch)
            for name in ENERGY_FIELDS
        }
        self._values |= dict.fromkeys(("robot_mode", "safety_mode"), np.ones(batch))
        self._count, self._batch, self._made = count, batch, 0
        self._stamp = time.time_ns()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def status(self) -> LinkStatus:
        """Always connected."""
        return LinkStatus()

    def take_events(self) -> list[Event]:
        """None."""
        return []

    def close(self) -> None:
        """Nothing to release."""

    def read(self, timeout: float) -> Telemetry | None:
        """Next batch."""
        if not self.go.wait(timeout):
            return None
        if self._made >= self._count:
            raise EOFError
        while self.queue.samples > 20_000:
            time.sleep(0.001)
        tick = self._made + np.arange(self._batch)
        self._made += self._batch
        seconds = 1000.0 + tick / RATE
        columns = {**self._values, "timestamp": seconds}
        return Telemetry(seconds, columns, self.info, stamp=self._stamp + tick * 2_000_000)


def highest_rate(folder: Path, count: int = 100_000) -> None:
    """Print the samples a second from the reading thread to the disk."""
    source = FastSource(count)
    with Recorder(source, folder, queue=source.queue) as recorder:
        recorder.start(folder / "fast")
        start = time.monotonic()
        source.go.set()
        recorder.wait()
        elapsed = time.monotonic() - start
    assert len(read_bag(folder / "fast", ["timestamp"])) == count
    print(f"highest rate sustained: {count / elapsed:.0f} samples/s")


def reading(folder: Path, count: int = 300_000) -> None:
    """Print the CPU seconds to read ten minutes of all fields: at once, and in batches."""
    source = FastSource(count)
    source.go.set()
    with BagWriter(folder / "long", source.info, ENERGY_FIELDS) as bag:
        for _ in range(count // 25):
            bag.write(source.read(0.0))  # type: ignore[arg-type]
    start = time.process_time()
    assert len(read_bag(folder / "long")) == count
    middle = time.process_time()
    assert sum(len(batch) for batch in iterate_bag(folder / "long")) == count
    whole, parts = middle - start, time.process_time() - middle
    print(f"reading {count} samples: {whole:.1f} s at once, {parts:.1f} s in batches (CPU)")


def main() -> None:
    """Print the table, and the rates."""
    with tempfile.TemporaryDirectory() as name:
        beside_others(Path(name))
        highest_rate(Path(name))
        reading(Path(name))
