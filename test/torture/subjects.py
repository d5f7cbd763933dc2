# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Recordings and nodes under test: what they reported, and what they left behind."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from std_srvs.srv import Trigger

from test.nodes.conftest import Observer
from test.torture.harness import Case, Verdict, Watched, command
from ur_energy_model.errors import UrEnergyError
from ur_energy_model.nodes.launch_files import node_command
from ur_energy_model.options import Value
from ur_energy_model.telemetry.bag.reader import read_bag
from ur_energy_model.telemetry.bag.recovery import recover_bag
from ur_energy_model.typing import Array

TOLERANCE = 1e-7  # of a controller timestamp [s]
RATE = 500.0
# time that a recording may be shorter than asked without being called short [s]
SLACK = 1.0
SHORT = 3  # exit code of a recording that is shorter than asked
STOP_SECONDS = 20.0
"""Longest time for the end of a recording [s], on a busy machine and a sick disk."""
FIELDS = "actual_q,actual_qd,actual_current,actual_robot_voltage,actual_robot_current,robot_mode"
_RECORDED = re.compile(r"(\S+): (\d+) samples, (\d+) lost")


class Subject:
    """`record`, a node in a ROS domain of its own, or "cell": logger and estimator in one process.

    `record` writes the folder's `bag`, nodes write bags to its `bags`, and the energy
    state to `state.db`. `launch` takes the place of the Python interpreter or the
    node's program.
    """

    def __init__(
        self,
        case: Case,
        verdict: Verdict,
        name: str,
        host: str,
        *,
        launch: Sequence[str] = (),
        seconds: float = 5.0,
        output: Path | None = None,
        **parameters: Value,
    ) -> None:
        self._verdict = verdict
        self.name = name
        self._seconds = seconds
        self.bag = case.folder / "bag" if output is None else output
        if name == "record":
            self.environment = case.around.environment
            words = ["--host", host, "--robot", "ur5e", "--fields", FIELDS, "--json"]
            words += ["--duration", str(seconds), "-o", str(self.bag)]
            line = (
                [*launch, "ur_energy", "record", *words]
                if launch
                else command("record", *words)
            )
        else:
            self.environment = case.around.ros_environment()
            values: dict[str, Value] = {"robot_ip": host}
            if name == "joint_states estimator":
                values = {"source": "joint_states"}
            if name in ("logger", "cell"):
                values |= {"bag_directory": str(case.folder / "bags"), "record": True}
            if name != "logger":
                values["model_file"] = str(case.around.model)
                values["state_file"] = str(case.folder / "state.db")
            line = node_line(name.split()[-1], values | parameters)
            line = [*launch, *line[1:]] if launch else line
        self.process = Watched(line, case.folder, self.environment)
        self._bags = self.bag.parent if name == "record" else case.folder / "bags"

    @property
    def bags(self) -> list[Path]:
        """Bags that it has begun."""
        pattern = self.bag.name if self.name == "record" else "*"
        return sorted(bag for bag in self._bags.glob(pattern) if bag.is_dir())

    def conclude(
        self,
        *,
        passed: Sequence[float] | None = None,
        honest: bool = True,
        whole: bool = True,
        patience: float = 0.0,
        codes: Sequence[int] | None = None,
        before_reading: Callable[[], object] = bool,
    ) -> int | None:
        """Let it end, and compare what it reported with what can be read back.

        `passed` are the controller timestamps that it was sent [s], if known and the
        stream was `honest`. With `whole`, a recording shorter than asked must report it,
        by exit code and seconds lost; the code may be 0 where samples came again when the
        time was over. A logger may take `patience` [s] to begin. Returns the number of
        samples recorded or lost.
        """
        verdict = self._verdict
        process = self.process
        told: tuple[Path, int, int] | None = None
        code = 0
        seconds = 0.0
        if self.name == "record":
            code = process.finish()
            verdict.time_since(process.began)
            lines = [line for line in process.output.splitlines() if line.startswith("{")]
            # Without a summary it was refused before it began.
            process.judge(verdict, codes or ((0, 1, SHORT) if lines else (1, SHORT)))
            if lines:
                summary = json.loads(lines[-1])
                told = self.bag, int(summary["samples"]), int(summary["lost"])
                seconds = float(summary.get("lost_seconds") or 0.0)
        else:
            verdict.expect(process.running, "the node ended by itself")
            if "estimator" not in self.name:
                told = self._stop_recording(patience)
                begun = bool(self.bags) or not passed
                verdict.expect(begun, "samples arrive, but nothing is recorded")
        before_reading()
        if told is not None:
            bag, samples, lost = told
            times = readable_times(bag)
            if not len(times):  # it was renamed, and nothing else is in its place
                times = readable_times(bag.with_name("other"))
            verdict.expect(
                samples == len(times), f"{samples} samples told, {len(times)} readable"
            )
            if honest and len(times):
                compare(verdict, times, lost, passed)
            if honest and whole and self.name == "record" and len(times):
                span = float(times[-1] - times[0]) + 1.0 / RATE
                short = self._seconds - span - SLACK
                back = max(passed or (), default=0.0) >= times[0] + self._seconds
                problem = (
                    f"{span:.1f} s of {self._seconds:g} s recorded with exit code {code}"
                )
                verdict.expect(short <= 0 or back or code == SHORT, problem)
                said = max(seconds, lost / RATE)
                problem = (
                    f"{short + SLACK:.1f} s are missing at the end, {said:.1f} s reported"
                )
                verdict.expect(said >= short, problem)
        if self.name != "record":
            self.end(codes or (0,))
        return None if told is None else told[1] + told[2]

    def end(self, codes: Sequence[int] = (0,)) -> None:
        """Ctrl-C, and judge how it ended; the time that takes counts as the case's."""
        began = time.monotonic()
        self.process.end()
        self._verdict.time_since(began)
        self.process.judge(self._verdict, codes)

    def _stop_recording(self, patience: float) -> tuple[Path, int, int] | None:
        """Bag, samples and losses that a logger reports, None if it reports none."""
        end = time.monotonic() + patience
        with ros_client(self.environment) as client:
            while True:
                text = client.answer("/logger/stop_recording", STOP_SECONDS) or ""
                if match := _RECORDED.search(text):
                    return self._bags.parent / match[1], int(match[2]), int(match[3])
                if time.monotonic() > end:
                    return None
                client.spin(0.5)


def node_line(name: str, parameters: Mapping[str, Value]) -> list[str]:
    """Command line of a node; in the cell, parameters apply to both nodes."""
    if name != "cell":
        return node_command(name, dict(parameters))
    texts = (
        f"{k}:='{v}'" if isinstance(v, str) else f"{k}:={v}"
        for k, v in parameters.items()
    )
    program = Path(node_command("logger", {})[0]).parent / "cell_node"
    words = [part for text in texts for part in ("-p", text.replace(":=True", ":=true"))]
    return [str(program), "--ros-args", *words]


def readable_times(bag: Path, *, recover: bool = False) -> Array:
    """Controller timestamps of a bag [samples], s, perhaps repaired; empty if it is unreadable."""
    try:
        if recover:
            recover_bag(bag)
        return read_bag(bag).time
    except UrEnergyError:
        return np.zeros(0)


def compare(
    verdict: Verdict, times: Array, lost: int, passed: Sequence[float] | None
) -> None:
    """Samples are in order, and every missing cycle in between is reported as lost.

    What is readable was received, and what was received is readable or reported as lost.
    """
    readable = len(times)
    verdict.expect(bool((np.diff(times) > 0.0).all()), "samples are out of order")
    missing = round((times[-1] - times[0]) * RATE) + 1 - readable
    verdict.expect(
        missing <= lost, f"{missing} cycles are missing, {lost} reported as lost"
    )
    if passed is None:
        return
    received = np.unique(np.asarray(passed, dtype=float))
    if not verdict.expect(len(received) > 0, "samples are readable that were never sent"):
        return
    places = np.clip(np.searchsorted(received, times - TOLERANCE), 0, len(received) - 1)
    invented = int((np.abs(received[places] - times) > TOLERANCE).sum())
    verdict.expect(invented == 0, f"{invented} readable samples were never sent")
    absent = int((received <= times[-1] + TOLERANCE).sum()) - (readable - invented)
    problem = f"{absent} packages that were received are not in the bag, {lost} reported as lost"
    verdict.expect(absent <= lost, problem)


class RosClient(Observer):
    """A node in a ROS domain."""

    def __init__(self, domain: int) -> None:
        super().__init__(domain)
        self._publishers: dict[str, Any] = {}

    def spin_until(self, condition: Callable[[], object], seconds: float) -> None:
        """Let the node work until something is true, at most for this time."""
        end = time.monotonic() + seconds
        while not condition() and (left := end - time.monotonic()) > 0:
            self.executor.spin_once(timeout_sec=min(left, 0.1))

    def answer(self, service: str, seconds: float = 5.0) -> str | None:
        """Message of a Trigger service's response, None if it does not answer in time."""
        client = self.node.create_client(Trigger, service)
        end = time.monotonic() + seconds
        self.spin_until(client.service_is_ready, seconds)
        found = None
        if client.service_is_ready():
            future = client.call_async(Trigger.Request())
            self.spin_until(future.done, end - time.monotonic())
            found = future.result().message if future.done() else None
        self.node.destroy_client(client)
        return found

    def subscribed(self, node: str) -> list[tuple[str, str]]:
        """Topics and types that a node of the root namespace subscribes to; [] if it is gone."""
        with suppress(Exception):  # rclpy raises its own kinds for unknown nodes
            found = self.node.get_subscriber_names_and_types_by_node(node, "/")
            return sorted((topic, kinds[0]) for topic, kinds in found if kinds)
        return []

    def publish(self, topic: str, message: Any) -> None:
        """Publish one message, reliable and once the subscriber is known."""
        if topic not in self._publishers:
            self._publishers[topic] = self.node.create_publisher(type(message), topic, 10)
        publisher = self._publishers[topic]
        self.spin_until(publisher.get_subscription_count, 5.0)
        publisher.publish(message)
        self.spin(0.05)


@contextmanager
def ros_client(environment: Mapping[str, str]) -> Iterator[RosClient]:
    """A node in the domain of these variables."""
    os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = environment[
        "ROS_AUTOMATIC_DISCOVERY_RANGE"
    ]
    client = RosClient(int(environment["ROS_DOMAIN_ID"]))
    try:
        yield client
    finally:
        client.close()
