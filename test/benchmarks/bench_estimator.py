"""The estimator node beside a simulated controller: CPU, latency and memory.

Latency is counted from the arrival of a packet (its host stamp, the lower envelope of arrivals on
the controller's clock) to its power being known, and taken from the node's own diagnostics.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from test.estimation.known_arm import ROBOT, known_model, motion, packets
from test.nodes.conftest import Observer
from ur_energy_model.estimation.live import LiveEstimator
from ur_energy_model.launching import node_command
from ur_energy_model.nodes.surface import live_topics

HOST = "127.0.14.40"
SECONDS = 20.0
TICKS = os.sysconf("SC_CLK_TCK")


def core() -> None:
    """Cost of the estimator's arithmetic alone, a packet at a time."""
    estimator = LiveEstimator(known_model(), ROBOT)
    batches = list(packets(motion(20.0)))
    start = time.perf_counter()
    for i, batch in enumerate(batches):
        estimator.update(batch)
        if i % 10 == 0:
            estimator.snapshot()
    spent = (time.perf_counter() - start) / len(batches)
    print(f"estimator core: {1e6 * spent:.0f} us a packet, {100 * 500 * spent:.1f} % of a core")


def cpu_seconds(pid: int) -> float:
    """CPU time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def memory(pid: int) -> float:
    """Resident memory of a process [MB]."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE") / 1e6


def node(observed: bool) -> None:
    """The node at 500 Hz in and 50 Hz out."""
    domain = random.randrange(1, 101)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        known_model().save(folder / "model.yaml")
        environment = os.environ | {
            "ROS_DOMAIN_ID": str(domain), "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST",
            "ROS_LOG_DIR": str(folder / "log"),
        }  # fmt: skip
        os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
        simulate = [sys.executable, "-m", "ur_energy_model.cli.main", "simulate"]
        arm = subprocess.Popen(
            [*simulate, "--robot", "ur5e", "--host", HOST, "--motion", "trajectory_b"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        assert arm.stdout is not None
        arm.stdout.readline()
        estimator = subprocess.Popen(
            node_command(
                "estimator",
                {
                    "robot_ip": HOST, "model_file": str(folder / "model.yaml"),
                    "state_file": str(folder / "state.json"),
                },
            ),
            env=environment,
        )  # fmt: skip
        observer = Observer(domain)
        try:
            topics = live_topics(ROBOT.joint_names)
            for topic, kind in topics.items() if observed else ():
                observer.listen(topic, kind)
            if not observed:
                observer.listen("/diagnostics", topics["/diagnostics"])
            observer.wait(
                lambda: observer.status("/diagnostics", "estimator: source")["level"] == "0",
                "samples",
            )
            observer.spin(5.0)
            before, size, start = (
                cpu_seconds(estimator.pid),
                memory(estimator.pid),
                time.monotonic(),
            )
            p99 = []
            while time.monotonic() - start < SECONDS:
                observer.hear("/diagnostics")
                status = observer.status("/diagnostics", "estimator: source")
                p99.append(float(status["latency_p99_ms"]))
            share = (cpu_seconds(estimator.pid) - before) / (time.monotonic() - start)
            print(
                f"estimator node, {'all topics' if observed else 'diagnostics'} subscribed: "
                f"{100 * share:.1f} % of a core, {float(status['rate_Hz']):.0f} Hz in; packet "
                f"to power p99 {np.median(p99):.2f} ms (median second), {max(p99):.2f} ms (worst); "
                f"memory {memory(estimator.pid):.0f} MB ({memory(estimator.pid) - size:+.1f})"
            )
        finally:
            observer.close()
            for child in (estimator, arm):
                child.send_signal(signal.SIGINT)
                child.wait(20)


def main() -> None:
    """Print all figures."""
    core()
    node(observed=False)
    node(observed=True)


if __name__ == "__main__":
    main()
