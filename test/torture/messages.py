# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""One hostile message at a time on every subscribed topic of each node."""

from __future__ import annotations

import importlib
import re
import time
from contextlib import ExitStack
from random import Random
from typing import Any

from test.torture.harness import PATIENCE, Case, Family, Surroundings, Verdict
from test.torture.subjects import Subject, ros_client
from ur_energy_model.model.robots import load_robot

FLOATS = (
    float("nan"),
    float("inf"),
    -float("inf"),
    1e300,
    -1e300,
    1e-300,
    0.0,
    -1.0,
    1e9,
)
TEXTS = (
    "",
    "x",
    "\x1b[2J\x07",
    "x" * 100_000,
    "shoulder_pan_joint",
    "\N{SNOWMAN}" * 50,
    "a\nb",
)
LENGTHS = (0, 1, 5, 6, 7, 1000)
HUGE = 0.1  # share of messages that are huge
HUGE_TEXT = "x" * 30_000_000
HUGE_COUNT = 4_000_000  # of numbers
_BITS = re.compile(r"(u?)int(\d+)")
_SEQUENCE = re.compile(r"sequence<([\w/]+)(?:, \d+)?>|([\w/]+)\[\d*\]")
OWN = ("/parameter_events", "/rosout", "/clock")  # topics of ROS itself
MESSAGES_PER_CASE = 6
ANSWER_SECONDS = 20.0
PLAN = "trajectory_msgs/msg/JointTrajectory"
NODES = ("estimator", "logger", "cell", "joint_states estimator")


def hostile_message(kind: str, random: Random, depth: int = 0) -> Any:
    """A message of this type whose values are extreme, with lists of any length.

    Half of the plans are right but for their times: they take very long, or have points
    without end.
    """
    if kind == PLAN and random.random() < 0.5:
        from builtin_interfaces.msg import Duration
        from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

        seconds = random.choice((3600, 2_147_483_647))
        count = random.choice((2, 3, 20_000))
        points = [
            JointTrajectoryPoint(
                positions=[0.1 * random.random()] * 6,
                time_from_start=Duration(sec=i * seconds // (count - 1)),
            )
            for i in range(count)
        ]
        return JointTrajectory(
            joint_names=list(load_robot("ur5e").joint_names), points=points
        )
    if depth == 0 and random.random() < HUGE:
        return huge_message(kind, random)
    package, *_, name = kind.split("/")
    message = getattr(importlib.import_module(f"{package}.msg"), name)()
    for name, field in message.get_fields_and_field_types().items():
        if random.random() < 0.8:
            setattr(message, name, _value(field, random, depth, getattr(message, name)))
    return message


def huge_message(kind: str, random: Random) -> Any:
    """A message of this type with 20 to 60 MB in one of its fields, also of what it contains."""
    package, *_, name = kind.split("/")
    message = getattr(importlib.import_module(f"{package}.msg"), name)()
    fields = sorted(message.get_fields_and_field_types().items())
    for name, field in random.sample(fields, len(fields)):
        repeated = _SEQUENCE.fullmatch(field)
        item = field if repeated is None else repeated[1] or repeated[2]
        if item.startswith("string"):
            setattr(message, name, HUGE_TEXT if repeated is None else [HUGE_TEXT])
        elif item == "double" and repeated is not None:
            setattr(message, name, [0.0] * HUGE_COUNT)
        elif "/" in item and item != "builtin_interfaces/Time":
            inner = huge_message(item, random)
            setattr(message, name, inner if repeated is None else [inner])
        else:
            continue
        break
    return message


def _value(field: str, random: Random, depth: int, known: Any) -> Any:
    if repeated := _SEQUENCE.fullmatch(field):
        item = repeated[1] or repeated[2]
        huge = 5000 if "/" in item or item.startswith("string") else 200_000
        length = random.choice((*LENGTHS, huge) if depth == 0 else LENGTHS[:4])
        length = len(known) if repeated[2] else length
        if "float" in item or "double" in item:
            same = random.random() < 0.5
            value = random.choice(FLOATS)
            return [value if same else random.choice(FLOATS) for _ in range(length)]
        return [_value(item, random, depth + 1, None) for _ in range(length)]
    if integer := _BITS.fullmatch(field):
        bits = int(integer[2])
        low, high = (
            (0, 2**bits - 1) if integer[1] else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        )
        return random.choice((low, high, 0, 1))
    if field.startswith("string"):
        return random.choice(TEXTS if depth < 2 else TEXTS[:3])
    if "/" in field:
        return hostile_message(field, random, depth + 1)
    simple = {"boolean": (False, True), "float": (1e38,), "octet": (b"\0", b"\xff")}
    return random.choice(simple.get(field, FLOATS))


class Listener:
    """A node under test, which lives on from case to case, and a client in its domain."""

    def __init__(self, case: Case, name: str) -> None:
        self.name = name
        self.verdict = Verdict(f"the end of {name}")
        self.subject = Subject(case, self.verdict, name, case.around.host)
        self._held = ExitStack()
        self.client = self._held.enter_context(ros_client(self.subject.environment))
        self.topics: list[tuple[str, str]] = []
        end = time.monotonic() + PATIENCE
        names = {"cell": ("logger", "estimator")}.get(name, (name.split()[-1],))
        while not self.topics and time.monotonic() < end and self.subject.process.running:
            self.client.spin(0.5)
            found = [topic for each in names for topic in self.client.subscribed(each)]
            self.topics = [topic for topic in found if topic[0] not in OWN]

    def answers(self) -> bool:
        """Whether the node still answers a service call: it is neither dead nor blocked."""
        service = "/logger/mark" if self.name == "logger" else "/estimator/reset_energy"
        end = time.monotonic() + ANSWER_SECONDS
        while time.monotonic() < end and self.subject.process.running:
            if self.client.answer(service) is not None:
                return True
        return False

    def retire(self, verdict: Verdict) -> None:
        """End the node and the client; problems go to a verdict."""
        self.subject.end()
        self._held.close()
        verdict.weigh(self.verdict.memory)
        verdict.problems += [
            f"{self.name}: {problem}" for problem in self.verdict.problems
        ]


def run(case: Case) -> Verdict:
    """A few messages to one node; topics take turns."""
    name = NODES[case.number % len(NODES)]
    verdict = Verdict(f"hostile messages to {name}")
    key = f"messages: {name}"
    listener = case.around.kept.get(key) or Listener(case, name)
    case.around.kept[key] = listener
    if not verdict.expect(bool(listener.topics), "the node subscribes to no topic"):
        return verdict
    turn = case.number // len(NODES)
    for number in range(MESSAGES_PER_CASE):
        place = turn * MESSAGES_PER_CASE + number
        topic, kind = listener.topics[place % len(listener.topics)]
        message = hostile_message(kind, case.random)
        listener.client.publish(topic, message)
        began = time.monotonic()
        alive = listener.answers()
        verdict.time_since(began)
        verdict.weigh(listener.subject.process.memory)
        if not verdict.expect(alive, f"no answer after {topic}: {str(message)[:200]!r}"):
            case.around.kept.pop(key)  # the next case starts another
            listener.retire(verdict)
            break
    return verdict


def finish(around: Surroundings) -> Verdict:
    """Every node ends as it should."""
    verdict = Verdict("the end of the nodes")
    for name in NODES:
        if listener := around.kept.pop(f"messages: {name}", None):
            listener.retire(verdict)
    return verdict


FAMILY = Family("messages", 2.0, run, finish=finish)
