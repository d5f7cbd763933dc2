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
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ur_energy_model.telemetry.bag.reader import iterate_bag, read_bag
from ur_energy_model.telemetry.bag.writer import BagWriter
from ur_energy_model.telemetry.csv.reader import read_csv
from ur_energy_model.telemetry.fields import ENERGY_FIELDS, FIELDS
from ur_energy_model.telemetry.recording.reception import SampleQueue
from ur_energy_model.telemetry.recording.recorder import Recorder
from ur_energy_model.telemetry.samples import Event, RecordingInfo, Telemetry
from ur_energy_model.telemetry.source import LinkStatus
from ur_energy_model.typing import Array, Self

HOST = "127.0.10.41"
SECONDS = float(os.environ.get("BENCH_SECONDS", "20"))
RATE = 500.0
UR_ENERGY = (sys.executable, "-m", "ur_energy_model.cli.main")
UR_RTDE = """
import sys, time, rtde_receive
robot = rtde_receive.RTDEReceiveInterface(sys.argv[1], 500.0, sys.argv[4].split(","))
robot.startFileRecording(sys.argv[2], sys.argv[4].split(","))
time.sleep(float(sys.argv[3]))
robot.stopFileRecording()
"""


@dataclass
class Result:
    """What a recorder got, and what it cost [percent of one core]."""

    name: str
    time: Array
    cpu: float

    def line(self) -> str:
        """For the table; ticks between the first and the last sample count."""
        if len(self.time) == 0:
            return f"{self.name:32} did not finish"
        ticks = np.rint(self.time * RATE).astype(int)
        expected = ticks.max() - ticks.min() + 1
        distinct = len(np.unique(ticks))
        lost, twice = expected - distinct, len(ticks) - distinct
        return (
            f"{self.name:32} {len(ticks):8d} {lost:7d} ({100 * lost / expected:5.2f} %)"
            f" {twice:7d} ({100 * twice / expected:5.2f} %) {self.cpu:7.1f} %"
        )


@contextmanager
def simulated_controller() -> Iterator[None]:
    """`ur_energy simulate` in a process of its own."""
    command = [*UR_ENERGY, "simulate", "--robot", "ur5e", "--host", HOST]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if "ready" in line:
                break
        try:
            yield
        finally:
            process.terminate()


def run(command: list[str], cwd: Path | None = None) -> float:
    """CPU of a process while it records [percent], its start-up left out."""
    with subprocess.Popen(
        command, cwd=cwd, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        time.sleep(min(4.0, 0.25 * SECONDS))
        begun, start = _cpu_seconds(process.pid), time.monotonic()
        time.sleep(0.5 * SECONDS)
        used, elapsed = _cpu_seconds(process.pid) - begun, time.monotonic() - start
        try:
            failed = process.wait(2.0 * SECONDS + 60.0)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        if failed:
            raise RuntimeError(f"{command[:4]} failed")
    return 100.0 * used / elapsed


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def ours(folder: Path) -> Result:
    """`ur_energy record` with all energy fields."""
    bag = folder / "bag"
    options = ["--host", HOST, "--robot", "ur5e", "--duration", str(SECONDS), "-o", str(bag)]
    cpu = run([*UR_ENERGY, "record", *options])
    return Result("ur_energy record", read_bag(bag, ["timestamp"]).time, cpu)


def ur_rtde(folder: Path, fields: str) -> Result:
    """ur_rtde's own recorder."""
    csv = folder / "ur_rtde.csv"
    cpu = run([sys.executable, "-c", UR_RTDE, HOST, str(csv), str(SECONDS), fields])
    return Result("ur_rtde startFileRecording", read_csv([csv], None).time, cpu)


def ur_example(folder: Path, sources: Path, fields: str) -> Result:
    """examples/record.py of Universal Robots' Python client."""
    csv, recipe = folder / "example.csv", folder / "recipe.xml"
    entries = "".join(
        f'<field name="{name}" type="{FIELDS[name].kind}"/>' for name in fields.split(",")
    )
    recipe.write_text(
        f'<?xml version="1.0"?><rtde_config><recipe key="out">{entries}</recipe></rtde_config>'
    )
    options = {
        "--host": HOST,
        "--frequency": "500",
        "--samples": str(round(SECONDS * RATE)),
        "--config": str(recipe),
        "--output": str(csv),
    }
    command = [sys.executable, "record.py", *(text for pair in options.items() for text in pair)]
    try:
        cpu = run(command, cwd=sources / "examples")
    except subprocess.TimeoutExpired:
        return Result("UR's record example", np.empty(0), 0.0)
    return Result("UR's record example", read_csv([csv], None).time, cpu)


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
        for name in ("robot_mode", "safety_mode"):
            self._values[name] = np.ones(batch)
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


def highest_rate(folder: Path, count: int = 100_000) -> float:
    """Samples a second from the reading thread to the disk."""
    source = FastSource(count)
    with Recorder(source, folder, queue=source.queue) as recorder:
        recorder.start(folder / "fast")
        start = time.monotonic()
        source.go.set()
        recorder.wait()
        elapsed = time.monotonic() - start
    if len(read_bag(folder / "fast", ["timestamp"])) != count:
        raise RuntimeError("samples are missing")
    return count / elapsed


def reading(folder: Path, count: int = 300_000) -> tuple[float, float]:
    """CPU seconds to read ten minutes of all fields: at once, and in batches."""
    source = FastSource(count)
    source.go.set()
    with BagWriter(folder / "long", source.info, ENERGY_FIELDS) as bag:
        for _ in range(count // 25):
            bag.write(source.read(0.0))  # type: ignore[arg-type]
    start = time.process_time()
    whole = len(read_bag(folder / "long"))
    middle = time.process_time()
    parts = sum(len(batch) for batch in iterate_bag(folder / "long"))
    if not whole == parts == count:
        raise RuntimeError("samples are missing")
    return middle - start, time.process_time() - middle


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with simulated_controller():
            results = [ours(folder)]
            unknown = {"script_control_line"}  # to ur_rtde
            fields = ",".join(
                each for each in read_bag(folder / "bag").columns if each not in unknown
            )
            results.append(ur_rtde(folder, fields))
            sources = os.environ.get("UR_RTDE_CLIENT")
            if sources is not None:
                results.append(ur_example(folder, Path(sources), fields))
        print(
            f"{SECONDS:.0f} s at 500 Hz, {len(fields.split(','))} fields, "
            f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
        )
        print(f"{'':32} {'samples':>8} {'lost':>17} {'duplicated':>17} {'CPU':>9}")
        for result in results:
            print(result.line())
        if sources is None:
            print("UR's record example is left out: UR_RTDE_CLIENT names no checkout of it")
        print(f"highest rate sustained: {highest_rate(folder):.0f} samples/s")
        whole, parts = reading(folder)
        print(f"reading 300000 samples: {whole:.1f} s at once, {parts:.1f} s in batches (CPU)")


if __name__ == "__main__":
    main()
