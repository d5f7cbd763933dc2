# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The estimator node with learning, and `ur_energy live` with all sinks, at 500 Hz.

Latency is counted from the receipt of a sample, which stamps /energy, to the receipt of that
message by a subscriber. The friction law is one of the dearest that identification may choose. The
command serves a client of Foxglove that takes all topics, a broker if mosquitto is installed, and a
scrape of metrics a second.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
from sensor_msgs.msg import JointState

from test.benchmarks.meters import SECONDS, UR_ENERGY, resident, spent_by
from test.energy.known_arm import known_model
from test.nodes.conftest import Observer, message_class
from test.running import Simulators, children_of, claim_domain, fresh_host
from test.sinks.foxglove_client import FoxgloveClient
from test.sinks.mosquitto import Mosquitto
from test.sinks.peers import free_port, program
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.friction import LAWS, Friction
from ur_energy_model.model.model_file import save_model
from ur_energy_model.nodes.launch_files import node_command

WARM_UP = SECONDS  # time before a measurement [s]: the process that learns has started by then


def model() -> EnergyModel:
    """The known arm with a rich friction law."""
    law = LAWS["stribeck_load"]
    friction = Friction(law, dict.fromkeys(law.parameters, 0.001), law.default_shape)
    plain = known_model()
    return replace(plain, joints=tuple(replace(joint, friction=friction) for joint in plain.joints))


def learner(pid: int) -> str | None:
    """Number of the process that a node has started to learn; None before."""
    for child in children_of(pid):
        if b"learning.background" in Path(f"/proc/{child}/cmdline").read_bytes():
            return child
    return None


CASES = (("energy alone", False, 50.0), ("all topics", True, 50.0), ("energy alone", False, 500.0))
"""Topics that are subscribed, whether these are all of them, and publish_rate [Hz]."""


def node(host: str, folder: Path, what: str, whole: bool, rate: float) -> None:
    """The estimator at 500 Hz in, with these topics subscribed, at a publish_rate [Hz]."""
    held, delays = contextlib.ExitStack(), list[float]()
    domain = claim_domain(held)
    assert domain is not None
    os.environ |= {"ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST", "ROS_DOMAIN_ID": str(domain)}
    files = {"model_file": "model.yaml", "state_file": "state.json"}
    parameters = {"robot_ip": host, **{key: str(folder / name) for key, name in files.items()}}
    observer = Observer(domain)

    def note(message: JointState) -> None:
        stamp = message.header.stamp
        delays.append(time.time() - stamp.sec - 1e-9 * stamp.nanosec)

    command = node_command("estimator", {**parameters, "publish_rate": rate})
    with subprocess.Popen(command) as child, held:
        observer.node.create_subscription(JointState, "/energy", note, 10)
        held.callback(child.terminate)
        observer.wait(lambda: delays and learner(child.pid), "message and process that learns")
        found = observer.node.get_publisher_names_and_types_by_node("estimator", "/")
        for topic, (kind, *_) in found if whole else ():
            observer.node.create_subscription(
                message_class(kind), topic, lambda message: None, 10, raw=True
            )
        observer.spin(WARM_UP)
        delays.clear()
        processes = (str(child.pid), str(learner(child.pid)))
        spent = [spent_by(each) for each in processes]
        observer.spin(SECONDS)
        pairs = zip(processes, spent, strict=True)
        own, learning = (100 * (spent_by(each) - before) / SECONDS for each, before in pairs)
        memory = " and ".join(f"{resident(each):.0f}" for each in processes)
        observer.close()
    median, late, worst = 1e3 * np.percentile(delays, [50, 99, 100])
    print(
        f"estimator node, {what} (load {os.getloadavg()[0]:.1f}), {len(delays) / SECONDS:.0f} "
        f"values a second: {own:.1f} % of a core, learning {learning:.1f} %; latency: median "
        f"{median:.2f} ms, 99 % {late:.2f} ms, worst {worst:.1f} ms; resident {memory} MB, shared "
        "libraries in both",
        flush=True,
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
            start, spent = time.monotonic(), spent_by(child.pid)
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
    foxglove, metrics = free_port(), free_port()
    options = ["--foxglove", f"127.0.0.1:{foxglove}", "--prometheus", f"127.0.0.1:{metrics}"]
    options += ["--opcua", f"opc.tcp://127.0.0.1:{free_port()}"]
    followers: list[threading.Thread] = []

    def scrape() -> None:
        if not followers:
            client = FoxgloveClient(foxglove)
            followers.append(threading.Thread(target=follow, args=(client,), daemon=True))
            followers[0].start()
        with urllib.request.urlopen(f"http://127.0.0.1:{metrics}/metrics", timeout=20) as answer:
            assert b"ur_energy_samples_total" in answer.read()

    with contextlib.ExitStack() as held:
        broker = program("mosquitto") is not None
        if broker:
            mosquitto = held.enter_context(Mosquitto(folder, "allow_anonymous true"))
            options += ["--mqtt", f"mqtt://127.0.0.1:{mosquitto.port}"]
        os.environ |= {"XDG_STATE_HOME": str(folder), "HOME": str(folder)}  # OPC UA's certificate
        figures = live(host, folder, *options, also=scrape)
    print(f"with Foxglove, Prometheus, OPC UA, {'a' if broker else 'no'} broker: {figures}")


def main() -> None:
    """Print all figures."""
    host = fresh_host()
    with tempfile.TemporaryDirectory() as name, Simulators() as simulators:
        save_model(model(), Path(name) / "model.yaml")
        simulators.start(host, "--motion", "trajectory_a")
        for case in CASES:
            node(host, Path(name), *case)
        sinks(host, Path(name))
