"""Recordings and nodes under test: what they reported, and what they left behind."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from test.torture.harness import PATIENCE, Case, Surroundings, Verdict, Watched, command
from ur_energy_model.errors import UrEnergyError
from ur_energy_model.nodes.launch_arguments import node_command
from ur_energy_model.options import Value
from ur_energy_model.telemetry.bag.reader import read_bag
from ur_energy_model.telemetry.bag.recovery import recover_bag
from ur_energy_model.typing import Array

TOLERANCE = 1e-7
"""Of a controller timestamp [s]."""
SLACK = 1.0
"""Time that a recording may be shorter than asked without being called short [s]."""
SHORT = 3
"""Exit code of a recording that is shorter than asked."""


@dataclass(frozen=True)
class Recorded:
    """A recording, as reported and as read back.

    Attributes:
        times: readable controller timestamps [samples], s.
        samples, lost: as reported.
        lost_seconds: as reported, 0 where it is not.
        rate: samples per second.
    """

    times: Array
    samples: int
    lost: int
    lost_seconds: float = 0.0
    rate: float = 500.0

    @classmethod
    def of(cls, times: Array, summary: Mapping[str, Any], rate: float = 500.0) -> Recorded:
        """From the JSON of `ur_energy record`."""
        seconds = float(summary.get("lost_seconds") or 0.0)
        return cls(times, int(summary["samples"]), int(summary["lost"]), seconds, rate)

    @property
    def span(self) -> float:
        """Time from the first to the last sample [s]."""
        return float(self.times[-1] - self.times[0]) + 1.0 / self.rate if len(self.times) else 0.0


def check_counts(verdict: Verdict, recorded: Recorded, *, honest: bool = True) -> None:
    """Reported = readable, in order, and every missing cycle in between is reported as lost.

    Args:
        verdict: to note problems in.
        recorded: what was recorded.
        honest: whether the timestamps that were sent can be relied upon.
    """
    readable = len(recorded.times)
    verdict.expect(
        recorded.samples == readable, f"{recorded.samples} samples reported, {readable} readable"
    )
    if not readable or not honest:
        return
    verdict.expect(bool((np.diff(recorded.times) > 0.0).all()), "samples are out of order")
    missing = round(recorded.span * recorded.rate) - readable
    verdict.expect(
        missing <= recorded.lost, f"{missing} cycles are missing, {recorded.lost} reported as lost"
    )


def check_received(verdict: Verdict, recorded: Recorded, passed: Sequence[float]) -> None:
    """What is readable was received, and what was received is readable or reported as lost."""
    received = np.unique(np.asarray(passed, dtype=float))
    if not len(recorded.times):
        return
    if not verdict.expect(len(received) > 0, "samples are readable that were never sent"):
        return
    places = np.clip(np.searchsorted(received, recorded.times - TOLERANCE), 0, len(received) - 1)
    invented = int((np.abs(received[places] - recorded.times) > TOLERANCE).sum())
    verdict.expect(invented == 0, f"{invented} readable samples were never sent")
    first, last = recorded.times[0], recorded.times[-1]
    early = int((received < first - TOLERANCE).sum())
    within = int(((received >= first - TOLERANCE) & (received <= last + TOLERANCE)).sum())
    absent = within - (len(recorded.times) - invented)
    verdict.expect(
        early + absent <= recorded.lost,
        f"{early} packages before the first sample and {absent} later ones are not in the bag, "
        f"{recorded.lost} reported as lost",
    )


def check_duration(
    verdict: Verdict, recorded: Recorded, asked: float, code: int, passed: Sequence[float] = ()
) -> None:
    """A recording shorter than asked says so: exit code, and seconds lost.

    The exit code may be 0 where samples came again when the time was over: then what is missing is
    a gap like any other.
    """
    short = asked - recorded.span
    if short <= SLACK or not len(recorded.times):
        return
    back = max(passed, default=0.0) >= recorded.times[0] + asked
    verdict.expect(
        back or code == SHORT,
        f"{recorded.span:.1f} s of {asked:g} s recorded with exit code {code}",
    )
    said = max(recorded.lost_seconds, recorded.lost / recorded.rate)
    verdict.expect(
        said >= short - SLACK, f"{short:.1f} s are missing at the end, {said:.1f} s reported"
    )


FIELDS = "actual_q,actual_qd,actual_current,actual_robot_voltage,actual_robot_current,robot_mode"


def start_recording(around: Surroundings, host: str, folder: Path, *options: str) -> Watched:
    """Start `ur_energy record` into the folder's `bag`."""
    arguments = ["--host", host, "--robot", "ur5e", "--fields", FIELDS, "-o", "bag", "--json"]
    return Watched(command("record", *arguments, *options), folder, around.environment)


def summary(output: str) -> dict[str, Any] | None:
    """The JSON object that a command printed, None without one."""
    for line in reversed(output.splitlines()):
        if line.startswith("{"):
            return dict(json.loads(line))
    return None


def readable_times(bag: Path, *, recover: bool = False) -> Array:
    """Controller timestamps of a bag [samples], s; empty if nothing can be read.

    Args:
        bag: rosbag2 directory.
        recover: whether to repair it first, as a user does after a kill.
    """
    try:
        if recover:
            recover_bag(bag)
        return read_bag(bag).time
    except UrEnergyError:
        return np.zeros(0)


FLOATS = (float("nan"), float("inf"), -float("inf"), 1e300, -1e300, 1e-300, 0.0, -1.0, 1e9)
TEXTS = ("", "x", "\x1b[2J\x07", "x" * 100_000, "shoulder_pan_joint", "\N{SNOWMAN}" * 50, "a\nb")
LENGTHS = (0, 1, 5, 6, 7, 1000)
HUGE = 200_000
_BITS = re.compile(r"(u?)int(\d+)")
_SEQUENCE = re.compile(r"sequence<([\w/]+)(?:, \d+)?>|([\w/]+)\[\d*\]")


def no_ros() -> str:
    """Why nodes cannot be tested here; empty if they can."""
    return "" if importlib.util.find_spec("rclpy") else "ROS 2 is not installed: nodes"


class RosClient:
    """A node in a ROS domain."""

    def __init__(self, domain: int) -> None:
        import rclpy
        from rclpy.context import Context
        from rclpy.executors import SingleThreadedExecutor

        self._context = Context()
        rclpy.init(context=self._context, domain_id=domain)
        name = f"torture_{domain}"
        self._node = rclpy.create_node(name, context=self._context)
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self._node)
        self._publishers: dict[tuple[str, str], Any] = {}

    def spin(self, seconds: float) -> None:
        """Wait, and let the node work."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self._executor.spin_once(timeout_sec=left)

    def call(self, service: str, seconds: float = 5.0) -> str | None:
        """Message of a Trigger service's response, None if it does not answer in time."""
        from std_srvs.srv import Trigger

        client = self._node.create_client(Trigger, service)
        end = time.monotonic() + seconds
        while not client.service_is_ready() and time.monotonic() < end:
            self.spin(0.1)
        future = client.call_async(Trigger.Request()) if client.service_is_ready() else None
        while future is not None and not future.done() and time.monotonic() < end:
            self._executor.spin_once(timeout_sec=0.1)
        answer = future.result().message if future is not None and future.done() else None
        self._node.destroy_client(client)
        return answer

    def subscribed(self, node: str) -> list[tuple[str, str]]:
        """Topics and types that a node of the root namespace subscribes to; [] if it is gone."""
        with suppress(Exception):  # rclpy raises its own kinds for unknown nodes
            found = self._node.get_subscriber_names_and_types_by_node(node, "/")
            return sorted((topic, kinds[0]) for topic, kinds in found if kinds)
        return []

    def publish(self, topic: str, kind: str, message: Any) -> None:
        """Publish one message, reliable and once the subscriber is known."""
        publisher = self._publishers.get((topic, kind))
        if publisher is None:
            publisher = self._node.create_publisher(message_class(kind), topic, 10)
            self._publishers[topic, kind] = publisher
            end = time.monotonic() + 5.0
            while not publisher.get_subscription_count() and time.monotonic() < end:
                self.spin(0.05)
        publisher.publish(message)
        self.spin(0.05)

    def close(self) -> None:
        """Destroy the node and its context."""
        import rclpy

        self._executor.shutdown()
        self._node.destroy_node()
        rclpy.try_shutdown(context=self._context)


@contextmanager
def ros_client(environment: Mapping[str, str]) -> Iterator[RosClient]:
    """A node in the domain of these variables."""
    os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = environment["ROS_AUTOMATIC_DISCOVERY_RANGE"]
    client = RosClient(int(environment["ROS_DOMAIN_ID"]))
    try:
        yield client
    finally:
        client.close()


def message_class(kind: str) -> Any:
    """Message class of "package/msg/Type"."""
    package, *_, name = kind.split("/")
    return getattr(importlib.import_module(f"{package}.msg"), name)


def hostile_message(kind: str, random: Random, *, depth: int = 0) -> Any:
    """A message of this type whose values are extreme, with lists of any length."""
    message = message_class(kind)()
    for name, field in message.get_fields_and_field_types().items():
        if random.random() < 0.8:
            setattr(message, name, _value(field, random, depth, getattr(message, name)))
    return message


def _value(field: str, random: Random, depth: int, known: Any) -> Any:
    repeated = _SEQUENCE.fullmatch(field)
    if repeated:
        item = repeated[1] or repeated[2]
        length = len(known) if repeated[2] else _length(item, random, depth)
        if "float" in item or "double" in item:
            same = random.random() < 0.5
            value = random.choice(FLOATS)
            return [value if same else random.choice(FLOATS) for _ in range(length)]
        return [_value(item, random, depth + 1, None) for _ in range(length)]
    integer = _BITS.fullmatch(field)
    if integer:
        bits = int(integer[2])
        low, high = (0, 2**bits - 1) if integer[1] else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        return random.choice((low, high, 0, 1))
    if field in ("float", "double", "float32", "float64"):
        return random.choice(FLOATS) if "64" in field or field == "double" else 1e38
    if field == "boolean":
        return random.random() < 0.5
    if field.startswith("string"):
        return random.choice(TEXTS if depth < 2 else TEXTS[:3])
    if field == "octet":
        return bytes([random.randrange(256)])
    return hostile_message(field, random, depth=depth + 1)


def _length(item: str, random: Random, depth: int) -> int:
    plain = "/" not in item and not item.startswith("string")
    if depth == 0 and random.random() < 0.1:
        return HUGE if plain else 5000
    return random.choice(LENGTHS if depth == 0 else LENGTHS[:4])


STOP_SECONDS = 20.0
"""Longest time for the end of a recording [s], on a busy machine and a sick disk."""
_RECORDED = re.compile(r"(\S+): (\d+) samples, (\d+) lost")


def start_node(
    case: Case,
    name: str,
    environment: dict[str, str] | None = None,
    launch: Sequence[str] = (),
    **parameters: Value,
) -> Watched:
    """Start a node of the package; "cell" is logger and estimator in one process.

    Bags go to the case's folder `bags`, and the energy state to `state.json`.

    Args:
        case: its folder is the working directory.
        name: of the node, or "cell".
        environment: variables; those of a ROS domain of its own by default.
        launch: command that takes the place of the node's program.
        parameters: those that differ from their default.
    """
    folder = case.folder
    logger: dict[str, Value] = {"bag_directory": str(folder / "bags"), "record": True}
    estimator: dict[str, Value] = {"model_file": str(case.around.model)}
    estimator["state_file"] = str(folder / "state.json")
    defaults = {"logger": logger, "estimator": estimator, "cell": logger | estimator}
    values = defaults.get(name, {}) | parameters
    command = _cell(values) if name == "cell" else node_command(name, values)
    command = [*launch, *command[1:]] if launch else command
    return Watched(command, folder, environment or case.around.ros_environment())


def _cell(parameters: dict[str, Value]) -> list[str]:
    """Command of the cell; parameters without a node's name apply to both nodes."""
    program = Path(node_command("logger", {})[0]).parent / "cell_node"
    words = (f"{name}:={_yaml(value)}" for name, value in parameters.items())
    return [str(program), "--ros-args", *(part for word in words for part in ("-p", word))]


def _yaml(value: Value) -> str:
    return f"'{value}'" if isinstance(value, str) else str(value).lower()


def end_node(case: Case, node: Watched, verdict: Verdict, codes: tuple[int, ...] = (0,)) -> None:
    """Ctrl-C, and judge how it ended; the time that takes counts as the case's."""
    began = time.monotonic()
    node.end(PATIENCE)
    verdict.seconds = max(verdict.seconds, time.monotonic() - began)
    node.judge(verdict, codes)


def stop_recording(
    environment: Mapping[str, str], patience: float = 0.0
) -> tuple[str, int, int] | None:
    """Let a logger end its recording; returns bag, samples and losses, None if it says none.

    Args:
        environment: of the logger.
        patience: time for which it may take to begin one [s].
    """
    end = time.monotonic() + patience
    with ros_client(environment) as client:
        while True:
            told = reported(client.call("/logger/stop_recording", STOP_SECONDS) or "")
            if told is not None or time.monotonic() > end:
                return told
            client.spin(0.5)


def reported(text: str) -> tuple[str, int, int] | None:
    """Bag, samples and losses that a logger told, None if it did not."""
    match = _RECORDED.search(text)
    return (match[1], int(match[2]), int(match[3])) if match else None


def check_recording(
    case: Case, verdict: Verdict, told: tuple[str, int, int] | None, *, honest: bool = True
) -> Recorded | None:
    """Compare what a logger told about a recording with what its bag holds."""
    if told is None:
        return None
    bag, samples, lost = told
    recorded = Recorded(readable_times(case.folder / bag), samples, lost)
    check_counts(verdict, recorded, honest=honest)
    return recorded
