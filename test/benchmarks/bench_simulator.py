"""The simulated controller with clients: rate, lateness of its ticks, and what it costs.

Every case runs in a process of its own for SECONDS; clients read the fields that the logger
records. On a busy machine the figures say as much about the machine as about the server.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence

import numpy as np

from ur_energy_model.telemetry.fields import ENERGY_FIELDS
from ur_energy_model.telemetry.rtde.source import RtdeSource

SECONDS = float(os.environ.get("BENCH_SECONDS", "20"))
HOST = "127.0.11.60"
CASES = (
    ("no client", "ur5e", 0),
    ("one client", "ur5e", 1),
    ("four clients", "ur5e", 4),
    ("CB3, one client", "ur5", 1),
)


def cpu_seconds(pid: int) -> float:
    """User and system time of a process so far."""
    with open(f"/proc/{pid}/stat") as stat:  # noqa: PTH123
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def read(robot: str, steps: list[np.ndarray], stop: threading.Event) -> None:
    """Read samples until told to stop, and keep their times."""
    with RtdeSource(HOST, robot=robot, fields=ENERGY_FIELDS) as source:
        while not stop.is_set():
            batch = source.read(0.5)
            if batch is not None:
                steps.append(batch.time)


def measure(robot: str, clients: int) -> tuple[str, float, int, int]:
    """Server's own figures, share of a core [%], samples read and samples missing."""
    command = [sys.executable, "-m", "ur_energy_model.cli.main", "simulate", "--robot", robot]
    server = subprocess.Popen(
        [*command, "--host", HOST], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert server.stdout is not None
    server.stdout.readline()
    stop = threading.Event()
    times: list[list[np.ndarray]] = [[] for _ in range(clients)]
    readers = [threading.Thread(target=read, args=(robot, steps, stop)) for steps in times]
    before = cpu_seconds(server.pid)
    for reader in readers:
        reader.start()
    stop.wait(SECONDS)
    load = 100.0 * (cpu_seconds(server.pid) - before) / SECONDS
    stop.set()
    for reader in readers:
        reader.join()
    server.send_signal(signal.SIGINT)
    _, figures = server.communicate(timeout=10)
    count, missing = _count([np.concatenate(steps) for steps in times if steps])
    return figures.strip().splitlines()[-1], load, count, missing


def _count(times: Sequence[np.ndarray]) -> tuple[int, int]:
    """Samples read, and those missing between them."""
    missing = 0
    for series in times:
        steps = np.diff(series)
        missing += int(np.round(steps / steps.min() - 1.0).sum())
    return sum(map(len, times)), missing


def main() -> None:
    """Print the figures of all cases."""
    for title, robot, clients in CASES:
        figures, load, count, missing = measure(robot, clients)
        print(f"{title:16s} {load:5.1f} % of a core, {count} samples read, {missing} missing")
        print(f"{'':16s} {figures}")


if __name__ == "__main__":
    main()
