"""The estimator node with learning, and `ur_energy live` with all sinks, at 500 Hz.

A process sends packets of the known arm at 500 Hz over RTDE, each with the time of sending in one
of its fields. Latency of the node is counted from the sending of the newest packet in a published
total power to the receipt of that value by a subscriber: network, waking, arithmetic and DDS are in
it. The friction law is one of the dearest that identification may choose. The node's figures are
printed as the machine is and beside a process that keeps one core busy. The command serves a client
of Foxglove that takes all topics, a broker if mosquitto is installed, and a scrape of metrics a
second. Both print memory over a simulated day.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np

from test.benchmarks.meters import UR_ENERGY, fresh_host, resident, spent_by
from test.energy.known_arm import ROBOT, known_model, motion, packets
from test.sinks.foxglove_client import FoxgloveClient
from test.sinks.mosquitto import Mosquitto
from test.sinks.peers import free_port, program
from test.sinks.test_live_arm import Played
from ur_energy_model.energy.live import LiveEstimator, LiveOptions, Snapshot
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.friction import LAWS, Friction
from ur_energy_model.model.model_file import save_model
from ur_energy_model.sinks.live_arm import LiveArm, SinkGroup
from ur_energy_model.sinks.options import SinkOptions, open_sinks
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.typing import Array

SECONDS, WARM_UP = 20.0, 20.0
"""Of a measurement, and the time before it [s]: the process that learns has started by then."""
PERIOD = 0.002
SENT = "actual_robot_energy_consumed"
"""Field that carries the time of sending [s]."""
HOURS = 24
MOST_WAITING = 20
"""Readings that may wait in a sink before the simulated day pauses."""
SPAWN = multiprocessing.get_context("spawn")


def model() -> EnergyModel:
    """The known arm with a rich friction law."""
    law = LAWS["stribeck_load"]
    friction = Friction(law, dict.fromkeys(law.parameters, 0.001), law.default_shape)
    plain = known_model()
    return replace(plain, joints=tuple(replace(joint, friction=friction) for joint in plain.joints))


def send(ready: Connection, host: str) -> None:
    """A controller that sends the known arm's motion, over and over."""
    from test.telemetry.rtde_peer import PeerBehaviour, RtdePeer, value_of

    telemetry = motion(2.0)  # its period
    n = len(telemetry) - 1

    def value(name: str, tick: int) -> object:
        column = telemetry.columns.get(name)
        return value_of(name, tick) if column is None else column[tick]

    behaviour = PeerBehaviour(version=(5, 23, 0, 0))
    with RtdePeer(behaviour, host=host, port=30004, values=value) as peer:
        ready.send("ready")
        while not peer.started.wait(0.1):
            pass
        # Packed beforehand, so that a packet leaves as soon as its time of sending is in it.
        assert peer.recipe is not None
        packages = bytearray(b"".join(map(peer.package, range(n))))
        records, size = peer.recipe.unpack_many(packages), peer.recipe.frame_size
        start, tick = time.monotonic(), 0
        with contextlib.suppress(OSError, AssertionError):  # the estimator leaves first
            while not ready.poll() and peer.started.is_set():
                time.sleep(max(0.0, start + tick * PERIOD - time.monotonic()))
                place = tick % n
                records["timestamp"][place] = 1000.0 + tick * PERIOD
                records[SENT][place] = time.monotonic()
                peer.send(bytes(packages[place * size : (place + 1) * size]))
                tick += 1


@contextlib.contextmanager
def controller(host: str) -> Iterator[None]:
    """A process that sends packets."""
    pipe, other = SPAWN.Pipe()
    arm = SPAWN.Process(target=send, args=(other, host))
    arm.start()
    pipe.recv()
    yield
    with contextlib.suppress(OSError):
        pipe.send("stop")
    arm.join(20)


# The node.


def core() -> None:
    """Cost of the estimator's arithmetic alone, in batches as the node has them."""
    estimator, whole = LiveEstimator(model(), ROBOT), motion(20.0)
    start = time.process_time()
    for batch in packets(whole, 10):
        estimator.update(batch)
        estimator.snapshot()
    spent = (time.process_time() - start) / len(whole)
    print(f"estimator core: {1e6 * spent:.0f} us a packet, {100 * 500 * spent:.1f} % of a core")


def estimate(pipe: Connection, folder: Path, domain: int, host: str) -> None:
    """The node, with a watch on each packet; sends its figures at the end."""
    os.environ |= {
        "ROS_DOMAIN_ID": str(domain),
        "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST",
        "ROS_LOG_DIR": str(folder / "log"),
    }
    from ur_energy_model.nodes.energy_publishers import EnergyPublishers
    from ur_energy_model.nodes.estimator import EstimatorNode
    from ur_energy_model.nodes.launch_arguments import node_command
    from ur_energy_model.nodes.node_process import run_nodes

    published: list[tuple[float, float]] = []
    newest = [0.0]
    consume, total = EstimatorNode._consume, EnergyPublishers.publish_total

    def noting(node: EstimatorNode, batch: Telemetry) -> None:
        newest[0] = float(batch.columns[SENT][-1])
        consume(node, batch)

    def publishing(topics: EnergyPublishers, snapshot: Snapshot) -> None:
        power = float(snapshot.power[snapshot.channels.arm["total"]])
        published.append((power, newest[0]))
        total(topics, snapshot)

    EstimatorNode._consume = noting  # type: ignore[assignment, method-assign]
    EnergyPublishers.publish_total = publishing  # type: ignore[assignment, method-assign]
    parameters = {
        "robot_ip": host,
        "model_file": str(folder / "model.yaml"),
        "state_file": str(folder / "state.json"),
        "cycle_trigger": "none",
    }
    sys.argv = node_command("estimator", parameters)

    def learner() -> str:
        """Number of the process that this one has started to learn."""
        tasks = Path("/proc/self/task").glob("*/children")
        found = [word for path in tasks for word in path.read_text().split()]
        return next(
            each
            for each in found
            if b"learning.background" in Path(f"/proc/{each}/cmdline").read_bytes()
        )

    def make() -> list[EstimatorNode]:
        node = EstimatorNode()
        start = (0.0, 0.0, 0.0, 0.0)

        def poll() -> None:
            nonlocal start
            if not pipe.poll():
                return
            used, learned, size = time.process_time(), spent_by(learner()), resident()
            if pipe.recv() == "begin":
                published.clear()
                start = time.monotonic(), used, learned, size
                return
            passed = time.monotonic() - start[0]
            shares = (used - start[1]) / passed, (learned - start[2]) / passed
            memory = [(resident(each), proportional(each)) for each in ("self", learner())]
            pipe.send((*shares, size - start[3], memory, published))
            node.finish(0)

        node.create_timer(1.0, poll)  # seldom, for it costs what it measures
        return [node]

    run_nodes(make)


def proportional(process: str) -> float:
    """Memory of a process with its part of what it shares with others (PSS) [MB]."""
    rollup = Path(f"/proc/{process}/smaps_rollup").read_text()
    found = re.search(r"^Pss:\s+(\d+)", rollup, re.M)
    return float(found[1]) * 1024 / 1e6 if found else float("nan")


def keep_busy() -> None:
    """Take a core."""
    while True:
        pass


def subscribe_all(domain: int) -> None:
    """Subscribe to every topic, in a process of its own.

    One executor of rclpy takes about 0.8 ms a message: beside 1,200 of them a second, the values
    whose latency is measured would wait for 20 ms in the process that measures.
    """
    from test.nodes.conftest import Observer
    from ur_energy_model.topics_and_services import live_topics

    os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
    observer = Observer(domain)
    for topic, kind in live_topics(ROBOT.joint_names).items():
        observer.subscribe(topic, kind)
    observer.spin(3600.0)


def latencies(published: list[tuple[float, float]], received: list[tuple[float, float]]) -> Array:
    """From the sending of the newest packet in a value to the value's receipt [s].

    Args:
        published: values, and the time of sending of the newest packet in each.
        received: values, and the time of receipt of each.
    """
    sent: dict[float, list[float]] = {}
    for value, when in published:
        sent.setdefault(value, []).append(when)
    found = []
    for value, when in received:
        if earlier := [each for each in sent.get(value, []) if each <= when]:
            found.append(when - earlier[-1])
    return np.array(found)


def node(*, observed: bool, busy: bool) -> None:
    """500 Hz in and 50 Hz out."""
    from std_msgs.msg import Float64

    from test.nodes.conftest import Observer

    domain, host, topic = random.randrange(1, 101), fresh_host(), "/energy/total/power"
    received: list[tuple[float, float]] = []
    with tempfile.TemporaryDirectory() as name, controller(host):
        save_model(model(), Path(name) / "model.yaml")
        pipe, other = SPAWN.Pipe()
        child = SPAWN.Process(target=estimate, args=(other, Path(name), domain, host))
        child.start()
        os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
        observer = Observer(domain)
        observer.subscribe(topic, "std_msgs/Float64")
        others = [SPAWN.Process(target=subscribe_all, args=(domain,), daemon=True)] * observed
        others += [SPAWN.Process(target=keep_busy, daemon=True)] * busy
        for process in others[:observed]:
            process.start()
        observer.next_message(topic)
        observer.node.create_subscription(
            Float64,
            topic,
            lambda message: received.append((message.data, time.monotonic())),  # type: ignore[attr-defined]
            10,
        )
        for process in others[observed:]:
            process.start()
        observer.spin(WARM_UP)
        pipe.send("begin")
        observer.spin(SECONDS)
        pipe.send("end")
        share, learning, growth, memory, published = pipe.recv()
        observer.close()
        for process in others:
            process.terminate()
        child.join(20)
    latency = latencies(published, received)
    p50, p95, p99, worst = np.percentile(1e3 * latency, [50, 95, 99, 100])
    (own, own_part), (learned, learned_part) = memory
    print(
        f"estimator node, {len(latency) / SECONDS:.0f} values a second, "
        f"{'all topics' if observed else 'one topic'} subscribed"
        f"{', a core busy' if busy else ''} (load average {os.getloadavg()[0]:.1f}):\n"
        f"  CPU: {100 * share:.1f} % of a core, learning {100 * learning:.1f} %\n"
        f"  packet to subscriber: median {p50:.2f} ms, 95 % {p95:.2f}, 99 % {p99:.2f} ms, worst "
        f"{worst:.1f}\n"
        f"  memory: {own_part + learned_part:.0f} MB together; resident {own:.0f} and "
        f"{learned:.0f} MB, shared libraries in both; {growth:+.1f} MB in {SECONDS:.0f} s"
    )


# The command.


def live(host: str, folder: Path, *options: str, also: Callable[[], None]) -> tuple[float, float]:
    """Share of a core [%] and memory [MB] of the command; `also` is called once a second.

    It prints JSON into a pipe that is read.
    """
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
    return 100 * share, memory


def follow(client: FoxgloveClient) -> None:
    """Take everything that a Foxglove server sends, in a thread of its own."""
    client.advertised("/energy")
    client.subscribe(*client.channels)

    def take() -> None:
        with contextlib.suppress(Exception):  # the server ends first
            while True:
                client._take()

    threading.Thread(target=take, daemon=True).start()


def sinks() -> None:
    """The command without sinks, and with all of them."""
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as held:
        folder, host = Path(name), fresh_host()
        save_model(model(), folder / "model.yaml")
        with controller(host):
            share, memory = live(host, folder, "--duration", "90", also=lambda: None)
        print(f"without sinks: {share:.1f} % of a core, {memory:.0f} MB")
        foxglove, metrics, opcua = free_port(), free_port(), free_port()
        options = ["--foxglove", f"127.0.0.1:{foxglove}", "--prometheus", f"127.0.0.1:{metrics}"]
        options += ["--opcua", f"opc.tcp://127.0.0.1:{opcua}"]
        options += ["--state-file", str(folder / "state.json")]
        broker = "no broker (mosquitto is not installed)"
        if program("mosquitto") is not None:
            mosquitto = held.enter_context(Mosquitto(folder, "allow_anonymous true"))
            options += ["--mqtt", f"mqtt://127.0.0.1:{mosquitto.port}"]
            broker = "a broker"
        os.environ |= {"XDG_STATE_HOME": name, "HOME": name}  # OPC UA's certificate is there
        counts: list[tuple[float, float]] = []
        client: list[FoxgloveClient] = []

        def scrape() -> None:
            if not client:
                client.append(FoxgloveClient(foxglove))
                follow(client[0])
            url = f"http://127.0.0.1:{metrics}/metrics"
            with urllib.request.urlopen(url, timeout=20) as answer:
                page = answer.read().decode()
            found = re.search(r"^ur_energy_samples_total\{.*\} (\S+)$", page, re.M)
            assert found is not None
            counts.append((time.monotonic(), float(found[1])))

        with controller(host):
            share, memory = live(host, folder, *options, also=scrape)
    (start, first), (end, last) = counts[0], counts[-1]
    print(
        f"{(last - first) / (end - start):.0f} samples a second, Foxglove (a client of all "
        f"topics), Prometheus (a scrape a second), OPC UA, {broker}: {share:.1f} % of a core, "
        f"{memory:.0f} MB"
    )


# A simulated day.


def day(pause: Callable[[], None], sizes: list[float]) -> Iterator[Telemetry]:
    """A day of samples, ten a second; `sizes` gets the memory after each hour [MB]."""
    whole = motion(60.0)
    columns = {name: values[::50] for name, values in whole.columns.items()}
    for minute in range(60 * HOURS):
        for batch in packets(Telemetry(whole.time[::50] + 60.1 * minute, columns), 10):
            yield batch
            pause()
        if minute % 60 == 59:
            sizes.append(resident())


def day_of_sinks() -> None:
    """Memory with a reading a second to each sink that needs no other server."""
    with tempfile.TemporaryDirectory() as name:
        os.environ |= {"XDG_STATE_HOME": name, "HOME": name}
        options = SinkOptions(
            foxglove=("127.0.0.1:0",),
            prometheus=("127.0.0.1:0",),
            opcua=(f"opc.tcp://127.0.0.1:{free_port()}",),
            sink_rate=1.0,
        )
        sizes: list[float] = []
        group = SinkGroup(open_sinks(options), options.sink_rate)

        def pause() -> None:  # until the sinks have taken their readings
            while any(status.waiting > MOST_WAITING for status in group.statuses):
                time.sleep(0.001)

        arm = LiveArm(
            "a day",
            lambda: Played(day(pause, sizes)),
            lambda _: (model(), "known"),
            LiveOptions(state_file=Path(name) / "state.json"),
        )
        arm.start(group)
        while not (arm.reader.ended or arm.reader.failure):
            arm.state("view")
            time.sleep(0.25)
        statuses = group.statuses
        arm.close()
        group.close()
        if arm.reader.failure is not None:
            raise arm.reader.failure
    delivered = ", ".join(f"{each.name.split()[0]} {each.delivered}" for each in statuses)
    print(
        f"with sinks {sizes[0]:.1f} MB after an hour, {sizes[-1]:.1f} MB after {HOURS}; readings "
        f"delivered: {delivered}"
    )


def main() -> None:
    """Print all figures."""
    core()
    for busy in (False, True):
        for observed in (False, True):
            node(observed=observed, busy=busy)
    sinks()
    day_of_sinks()


if __name__ == "__main__":  # processes are spawned, which import this module
    main()
