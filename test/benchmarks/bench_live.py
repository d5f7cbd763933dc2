# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Estimator node with learning, alone and with the logger, and `ur_energy live`, at 500 Hz.

Processor time of a node depends on the machine, and on what else it does. Each case is
therefore measured beside a process that reads the same stream of the same controller with
the same protocol code, and the ratio is shown. The process that learns is counted apart.

Latency is counted from the receipt of a sample, which stamps /energy, to the receipt of
that message by a subscriber. The friction law is one of the dearest that identification
may choose. The command serves a client of Foxglove that takes all topics, a broker if
mosquitto is installed, and a scrape of metrics a second.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from sensor_msgs.msg import JointState

from test.benchmarks.meters import SECONDS, UR_ENERGY, resident, spent_by, table
from test.energy.known_arm import known_model
from test.nodes.conftest import Observer, message_class
from test.running import Simulators, children_of, claim_domain, fresh_host
from test.sinks.foxglove.foxglove_client import FoxgloveClient
from test.sinks.mosquitto import Mosquitto
from test.sinks.peers import free_port, program
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.friction import LAWS, Friction
from ur_energy_model.model.model_file import save_model
from ur_energy_model.nodes.launch_files import node_command

# time before a measurement [s]: the process that learns has started by then
WARM_UP = SECONDS

MEASURED = 3 * SECONDS
"""Length of the measurement of a node [s]: the processor time of reading alone is counted in steps
of 10 ms."""


def model() -> EnergyModel:
    """The known arm with a rich friction law."""
    law = LAWS["stribeck_load"]
    friction = Friction(law, dict.fromkeys(law.parameters, 0.001), law.default_shape)
    plain = known_model()
    return replace(
        plain, joints=tuple(replace(joint, friction=friction) for joint in plain.joints)
    )


def learner(pid: int) -> str | None:
    """Number of the process that a node has started to learn; None before."""
    for child in children_of(pid):
        if b"learning.worker" in Path(f"/proc/{child}/cmdline").read_bytes():
            return child
    return None


@dataclass(frozen=True)
class Case:
    """What is measured: programs that run side by side, and what of them is subscribed."""

    what: str
    programs: tuple[str, ...] = ("estimator",)  # nodes, or the cell_node with both
    # whether all topics of the estimator are subscribed, or `energy` alone
    whole: bool = False
    publish_rate: float = 50.0  # of the estimator [Hz]


CASES = (
    Case("estimator, energy"),
    Case("estimator, all topics", whole=True),
    Case("estimator, energy at 500 Hz", publish_rate=500.0),
    Case("logger and estimator, two processes", ("logger", "estimator")),
    Case("logger and estimator, cell_node", ("cell",)),
)
READER = """
import sys
from ur_energy_model.nodes.estimator import fields_of
from ur_energy_model.nodes.parameters import EstimatorParameters
from ur_energy_model.telemetry.rtde.source import RtdeSource
fields = fields_of(EstimatorParameters())
with RtdeSource(sys.argv[1], robot="ur5e", fields=fields) as source:
    while True:
        source.read(1.0)
"""
"""A process that reads the estimator's fields in batches of 0.05 s, and does nothing else."""


def commands(host: str, folder: Path, case: Case) -> list[list[str]]:
    """Command lines of the programs of a case, for a controller; files are kept in the folder."""
    given: dict[str, dict[str, str | float]] = {
        "estimator": {
            "robot_ip": host,
            "publish_rate": case.publish_rate,
            "model_file": str(folder / "model.yaml"),
            "state_file": str(folder / "state.db"),
        },
        "logger": {"robot_ip": host, "bag_directory": str(folder / "bags")},
    }
    if case.programs != ("cell",):
        return [node_command(name, given[name]) for name in case.programs]
    cell = [str(Path(sys.executable).with_name("cell_node")), "--ros-args"]
    for name, parameters in given.items():
        for key, value in parameters.items():
            cell += ["-p", f"{name}:{key}:={value}"]
    return [cell]


def nodes(host: str, folder: Path, case: Case) -> list[str]:
    """Row of a case: processor time beside that of a process that only reads the same stream."""
    held = contextlib.ExitStack()
    delays = list[float]()
    domain = claim_domain(held)
    assert domain is not None
    os.environ |= {
        "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST",
        "ROS_DOMAIN_ID": str(domain),
    }
    observer = Observer(domain)

    def note(message: JointState) -> None:
        stamp = message.header.stamp
        delays.append(time.time() - stamp.sec - 1e-9 * stamp.nanosec)

    def run(command: list[str]) -> str:
        """Number of a process that runs until the end of the case."""
        child = held.enter_context(subprocess.Popen(command))
        held.callback(child.terminate)
        return str(child.pid)

    with held:
        reader = run([sys.executable, "-c", READER, host])
        programs = [run(command) for command in commands(host, folder, case)]
        estimator = programs[-1]
        observer.node.create_subscription(JointState, "/energy", note, 10)
        observer.wait(
            lambda: delays and learner(int(estimator)), "message and process that learns"
        )
        found = observer.node.get_publisher_names_and_types_by_node("estimator", "/")
        for topic, (kind, *_) in found if case.whole else ():
            observer.node.create_subscription(
                message_class(kind), topic, lambda message: None, 10, raw=True
            )
        observer.spin(WARM_UP)
        delays.clear()
        processes = (reader, str(learner(int(estimator))), *programs)
        before = [spent_by(each) for each in processes]
        began = time.monotonic()
        observer.spin(MEASURED)
        passed = time.monotonic() - began
        spent = [
            spent_by(each) - start for each, start in zip(processes, before, strict=True)
        ]
        reading, learning, *own = (100.0 * each / passed for each in spent)
        memory = sum(resident(each) for each in programs)
        observer.close()
    median, late = 1e3 * np.percentile(delays, [50, 99])
    return [
        case.what,
        f"{sum(own):.1f} %",
        f"{reading:.2f} %",
        f"{sum(own) / reading:.1f}",
        f"{learning:.1f} %",
        f"{len(delays) / passed:.0f}",
        f"{median:.0f} / {late:.0f} ms",
        f"{memory:.0f} MB",
        f"{os.getloadavg()[0]:.1f}",
    ]


COLUMNS = (
    *("case", "of a core", "reading alone", "ratio", "learning", "values/s"),
    *("latency, median / 99 %", "resident", "load"),
)


def live(host: str, folder: Path, *options: str, also: Callable[[], object]) -> str:
    """CPU and memory of the command, as text; `also` is called once a second."""
    command = [*UR_ENERGY, "live", "--json", "--host", host]
    command += ["--model", str(folder / "model.yaml"), *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        threading.Thread(target=child.stdout.read, daemon=True).start()
        for seconds in (WARM_UP, SECONDS):
            start = time.monotonic()
            spent = spent_by(child.pid)
            while time.monotonic() < start + seconds:
                time.sleep(1.0)
                also()
            share = (spent_by(child.pid) - spent) / (time.monotonic() - start)
        memory = resident(child.pid)
        child.terminate()
    return f"{100 * share:.1f} % of a core, {memory:.0f} MB"


def follow(client: FoxgloveClient) -> None:
    """Take everything that a Foxglove server sends."""
    client.subscribe("/energy")
    client.subscribe(*client.channels.keys() - {"/energy"})
    with contextlib.suppress(Exception):  # the server ends first
        while True:
            client._take()


def sinks(host: str, folder: Path) -> None:
    """The command without sinks, and with all of them."""
    print(f"live without sinks: {live(host, folder, also=bool)}")
    foxglove = free_port()
    metrics = free_port()
    options = [
        "--foxglove",
        f"127.0.0.1:{foxglove}",
        "--prometheus",
        f"127.0.0.1:{metrics}",
    ]
    options += ["--opcua", f"opc.tcp://127.0.0.1:{free_port()}"]
    followers: list[threading.Thread] = []

    def scrape() -> None:
        if not followers:
            client = FoxgloveClient(foxglove)
            followers.append(threading.Thread(target=follow, args=(client,), daemon=True))
            followers[0].start()
        with urllib.request.urlopen(
            f"http://127.0.0.1:{metrics}/metrics", timeout=20
        ) as answer:
            assert b"ur_energy_samples_total" in answer.read()

    with contextlib.ExitStack() as held:
        broker = program("mosquitto") is not None
        if broker:
            mosquitto = held.enter_context(Mosquitto(folder, "allow_anonymous true"))
            options += ["--mqtt", f"mqtt://127.0.0.1:{mosquitto.port}"]
        # OPC UA's certificate
        os.environ |= {"XDG_STATE_HOME": str(folder), "HOME": str(folder)}
        figures = live(host, folder, *options, also=scrape)
    print(
        f"with Foxglove, Prometheus, OPC UA, {'a' if broker else 'no'} broker: {figures}"
    )


def main() -> None:
    """Print all figures."""
    host = fresh_host()
    with tempfile.TemporaryDirectory() as name, Simulators() as simulators:
        save_model(model(), Path(name) / "model.yaml")
        simulators.start(host, "--motion", "trajectory_a")
        rows = [nodes(host, Path(name), case) for case in CASES]
        print(table(COLUMNS, rows), flush=True)
        sinks(host, Path(name))
