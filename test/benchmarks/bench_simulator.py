"""The simulated arm: cost of a controller cycle, how exactly it keeps energy; its server's clients.

Servers run in processes of their own for SECONDS; clients read the fields that the logger records.
On a busy machine the figures of the server say as much about the machine.
"""

from __future__ import annotations

import signal
import subprocess
import threading
from time import perf_counter

import numpy as np

from test.benchmarks.meters import SECONDS, UR_ENERGY, fresh_host, spent_by
from ur_energy_model.model.robots import load_robot
from ur_energy_model.simulation.simulated_arm import SimulatedArm
from ur_energy_model.telemetry.fields import ENERGY_FIELDS
from ur_energy_model.telemetry.rtde.source import RtdeSource
from ur_energy_model.trajectory.named_motions import named_motion

CYCLED = 20.0
"""Time of the arm that is simulated without a server [s]."""
CASES = (("no client", "ur5e", 0), ("one client", "ur5e", 1), ("four clients", "ur5e", 4),
         ("CB3, one client", "ur5", 1))  # fmt: skip


def cycles(name: str) -> str:
    """Seconds to the first cycle, median and 99th percentile of a cycle, and energy balance."""
    robot, begin = load_robot(name), perf_counter()
    arm = SimulatedArm(robot, motion=named_motion("trajectory_a", robot))
    arm.tick()
    start = perf_counter() - begin
    before, stored = arm.energies(), arm.stored_energy()
    times = np.empty(round(CYCLED * arm.rate))
    for k in range(len(times)):
        begin = perf_counter()
        arm.tick()
        times[k] = perf_counter() - begin
    joints = arm.energies().joints().sum(axis=1) - before.joints().sum(axis=1)
    imbalance = (joints[4] - (arm.stored_energy() - stored)) / joints[1]
    median, late = 1e3 * np.median(times), 1e3 * np.quantile(times, 0.99)
    return (
        f"  {name:6} at {robot.rate:3.0f} Hz              {start:5.2f} s  {median:.3f}  "
        f"{late:.3f} ms   {median * robot.rate / 10:4.1f} %      {100 * imbalance:+.3f} %"
    )


def serve(robot: str, clients: int) -> tuple[str, str]:
    """What a server took and its clients read, and the server's own figures."""
    host = fresh_host()
    command = [*UR_ENERGY, "simulate", "--robot", robot, "--host", host]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert server.stdout is not None
    server.stdout.readline()
    stop, times = threading.Event(), [list[np.ndarray]() for _ in range(clients)]

    def read(steps: list[np.ndarray]) -> None:
        with RtdeSource(host, robot=robot, fields=ENERGY_FIELDS) as source:
            while not stop.is_set():
                batch = source.read(0.5)
                if batch is not None:
                    steps.append(batch.time)

    readers = [threading.Thread(target=read, args=(steps,)) for steps in times]
    before = spent_by(server.pid)
    for reader in readers:
        reader.start()
    stop.wait(SECONDS)
    load = 100.0 * (spent_by(server.pid) - before) / SECONDS
    stop.set()
    for reader in readers:
        reader.join()
    server.send_signal(signal.SIGINT)
    _, figures = server.communicate(timeout=10)
    series = [np.concatenate(steps) for steps in times if steps]
    steps = [np.diff(each) for each in series]
    missing = sum(int(np.round(each / each.min() - 1.0).sum()) for each in steps)
    count = sum(map(len, series))
    own = figures.strip().splitlines()[-1]
    return f"{load:5.1f} % of a core, {count} samples read, {missing} missing", own


def main() -> None:
    """Print the figures of three arms, and of all cases of the server."""
    print("simulated arm, trajectory A        start    cycle   99 %   of a core   energy balance")
    for name in ("ur5e", "ur10e", "ur3"):
        print(cycles(name))
    for title, robot, clients in CASES:
        for words, line in zip((title, ""), serve(robot, clients), strict=True):
            print(f"{words:16s} {line}")
