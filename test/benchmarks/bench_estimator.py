"""The estimator node with learning: CPU, latency from packet to subscriber, memory.

A process sends packets of the known arm at 500 Hz over RTDE, each with the time of sending in one
of its fields. Latency is counted from the sending of the newest packet in a published total power
to the receipt of that value by a subscriber: network, waking, arithmetic and DDS are in it. The
friction law is one of the dearest that identification may choose. Figures are printed as the
machine is and beside a process that keeps one core busy.
"""

from __future__ import annotations

import contextlib
import itertools
import multiprocessing
import os
import random
import sys
import tempfile
import time
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np

from test.energy.known_arm import ROBOT, known_model, motion, packets
from ur_energy_model.energy.live import LiveEstimator, Snapshot
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.friction import LAWS, Friction
from ur_energy_model.model.model_file import save_model
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.typing import Array

SECONDS = 20.0
WARM_UP = 20.0
"""Time after which the figures begin [s]: the process that learns has started by then."""
PERIOD = 0.002
SENT = "actual_robot_energy_consumed"
"""Field that carries the time of sending [s]."""


MOST_CPU, MEDIAN_LATENCY, MOST_LATENCY, MOST_MEMORY = 15.0, 4.0, 20.0, 300.0
"""What is promised: percent of a core; ms, median and 99 % of values beside a busy core; MB."""
_RUNS = itertools.count()


def fresh_host() -> str:
    """A loopback address that nobody else uses."""
    process = os.getpid()
    return f"127.{32 + next(_RUNS)}.{process >> 8 & 255}.{process & 255}"


def model() -> EnergyModel:
    """The known arm with a rich friction law."""
    law = LAWS["stribeck_load"]
    friction = Friction(law, dict.fromkeys(law.parameters, 0.001), law.default_shape)
    plain = known_model()
    return replace(plain, joints=tuple(replace(joint, friction=friction) for joint in plain.joints))


def core() -> None:
    """Cost of the estimator's arithmetic alone, in batches as the node has them."""
    estimator = LiveEstimator(model(), ROBOT)
    whole = motion(20.0)
    start = time.process_time()
    for batch in packets(whole, 10):
        estimator.update(batch)
        estimator.snapshot()
    spent = (time.process_time() - start) / len(whole)
    print(f"estimator core: {1e6 * spent:.0f} us a packet, {100 * 500 * spent:.1f} % of a core")


def day() -> None:
    """Memory of the estimator's core over a day of samples, ten a second."""
    estimator = LiveEstimator(model(), ROBOT)
    whole = motion(60.0)
    columns = {name: values[::50] for name, values in whole.columns.items()}
    sizes = []
    for minute in range(24 * 60):
        time_ = whole.time[::50] + 60.1 * minute
        for batch in packets(Telemetry(time_, columns), 10):
            estimator.update(batch)
        estimator.snapshot()
        if minute % 60 == 59:
            sizes.append(resident("self"))
    print(
        f"memory over a simulated day: {sizes[0]:.1f} MB after an hour, {sizes[-1]:.1f} MB after 24"
    )


def resident(process: str) -> float:
    """Resident memory of a process [MB]."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE") / 1e6


def proportional(process: str) -> float:
    """Memory of a process with its part of what it shares with others (PSS) [MB]."""
    for line in Path(f"/proc/{process}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return float(line.split()[1]) * 1024 / 1e6
    return float("nan")


def spent_by(process: str) -> float:
    """Computing time of a process so far [s]."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def learner() -> str:
    """Number of the process that this one has started to learn."""
    tasks = Path("/proc/self/task").glob("*/children")
    found = [word for path in tasks for word in path.read_text().split()]
    return next(
        each for each in found if b"learning.worker" in Path(f"/proc/{each}/cmdline").read_bytes()
    )


def send(ready: Connection, host: str) -> None:
    """A controller that sends the known arm's motion, over and over."""
    from test.telemetry.rtde_peer import PeerBehaviour, RtdePeer, value_of

    telemetry = motion(2.0)  # its period
    n = len(telemetry) - 1

    def value(name: str, tick: int) -> object:
        if name in telemetry.columns:
            return telemetry.columns[name][tick]
        return value_of(name, tick)

    behaviour = PeerBehaviour(version=(5, 23, 0, 0))
    with RtdePeer(behaviour, host=host, port=30004, values=value) as peer:
        ready.send("ready")
        while not peer.started.wait(0.1):
            pass
        # Packed beforehand, so that a packet leaves as soon as its time of sending is in it.
        assert peer.recipe is not None
        packages = bytearray(b"".join(map(peer.package, range(n))))
        records = peer.recipe.unpack_many(packages)
        size = peer.recipe.frame_size
        start, tick = time.monotonic(), 0
        with contextlib.suppress(OSError, AssertionError):  # the estimator leaves first
            while not ready.poll() and peer.started.is_set():
                time.sleep(max(0.0, start + tick * PERIOD - time.monotonic()))
                place = tick % n
                records["timestamp"][place] = 1000.0 + tick * PERIOD
                records[SENT][place] = time.monotonic()
                peer.send(bytes(packages[place * size : (place + 1) * size]))
                tick += 1


def estimate(pipe: Connection, folder: Path, domain: int, host: str) -> None:
    """The node, with a watch on each packet; sends its figures when told to stop."""
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

    def telling(topics: EnergyPublishers, snapshot: Snapshot) -> None:
        power = float(snapshot.power[snapshot.channels.arm["total"]])
        published.append((power, newest[0]))
        total(topics, snapshot)

    EstimatorNode._consume = noting  # type: ignore[assignment, method-assign]
    EnergyPublishers.publish_total = telling  # type: ignore[assignment, method-assign]
    parameters = {
        "robot_ip": host,
        "model_file": str(folder / "model.yaml"),
        "state_file": str(folder / "state.json"),
        "cycle_trigger": "none",
    }
    sys.argv = node_command("estimator", parameters)

    def make() -> list[EstimatorNode]:
        node = EstimatorNode()
        state = {"start": (0.0, 0.0, 0.0, 0.0)}

        def look() -> None:
            if not pipe.poll():
                return
            if pipe.recv() == "begin":
                published.clear()
                learned = spent_by(learner())
                state["start"] = time.monotonic(), time.process_time(), resident("self"), learned
                return
            began, used, size, learned = state["start"]
            passed = time.monotonic() - began
            share = (time.process_time() - used) / passed
            learning = (spent_by(learner()) - learned) / passed
            memory = [(resident(each), proportional(each)) for each in ("self", learner())]
            pipe.send((share, learning, resident("self") - size, memory, published))
            node.finish(0)

        node.create_timer(1.0, look)  # seldom, for it costs what it measures
        return [node]

    run_nodes(make)


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
        earlier = [each for each in sent.get(value, []) if each <= when]
        if earlier:
            found.append(when - earlier[-1])
    return np.array(found)


def node(observed: bool, busy: bool) -> None:
    """500 Hz in and 50 Hz out."""
    from std_msgs.msg import Float64

    from test.nodes.conftest import Observer

    context = multiprocessing.get_context("spawn")
    domain = random.randrange(1, 101)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        save_model(model(), folder / "model.yaml")
        host = fresh_host()
        sender, told = context.Pipe()
        arm = context.Process(target=send, args=(told, host))
        arm.start()
        sender.recv()
        pipe, other = context.Pipe()
        child = context.Process(target=estimate, args=(other, folder, domain, host))
        child.start()
        os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
        observer = Observer(domain)
        observer.subscribe("/energy/total/power", "std_msgs/Float64")
        others = context.Process(target=subscribe_all, args=(domain,), daemon=True)
        if observed:
            others.start()
        observer.next_message("/energy/total/power")
        received: list[tuple[float, float]] = []
        observer.node.create_subscription(
            Float64,
            "/energy/total/power",
            lambda message: received.append((message.data, time.monotonic())),  # type: ignore[attr-defined]
            10,
        )
        other_work = context.Process(target=keep_busy, daemon=True)
        if busy:
            other_work.start()
        observer.spin(WARM_UP)
        pipe.send("begin")
        observer.spin(SECONDS)
        pipe.send("end")
        share, learning, growth, memory, published = pipe.recv()
        observer.close()
        for process, running in ((others, observed), (other_work, busy)):
            if running:
                process.terminate()
        latency = latencies(published, received)
        child.join(20)
        sender.send("stop")
        arm.join(20)
    p50, p95, p99, worst = np.percentile(1e3 * latency, [50, 95, 99, 100])
    load = os.getloadavg()[0]
    print(
        f"estimator node, {len(latency) / SECONDS:.0f} values a second, "
        f"{'all topics' if observed else 'one topic'} subscribed"
        f"{', a core busy' if busy else ''} (load average {load:.1f}):"
    )
    print(
        f"  CPU: {100 * share:.1f} % of a core, learning {100 * learning:.1f} % "
        f"(promised: at most {MOST_CPU:.0f} % together)"
    )
    print(
        f"  packet to subscriber: median {p50:.2f} ms (promised: {MEDIAN_LATENCY:.0f}), "
        f"95 % {p95:.2f}, 99 % {p99:.2f} ms (promised: {MOST_LATENCY:.0f}), worst {worst:.1f}"
    )
    (own, own_part), (other, other_part) = memory
    print(
        f"  memory: {own_part + other_part:.0f} MB together (promised: at most "
        f"{MOST_MEMORY:.0f}); resident {own:.0f} and {other:.0f} MB, shared libraries in both; "
        f"{growth:+.1f} MB in {SECONDS:.0f} s"
    )


def main() -> None:
    """Print all figures."""
    core()
    for busy in (False, True):
        node(observed=False, busy=busy)
        node(observed=True, busy=busy)
    day()


if __name__ == "__main__":
    main()
