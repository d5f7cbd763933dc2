"""One hostile message at a time on every subscribed topic of each node."""

from __future__ import annotations

import time
from contextlib import ExitStack
from random import Random
from typing import Any

from test.torture.harness import PATIENCE, Case, Family, Surroundings, Verdict, Watched
from test.torture.subjects import (
    RosClient,
    hostile_message,
    message_class,
    no_ros,
    ros_client,
    start_node,
)

OWN = ("/parameter_events", "/rosout", "/clock")
"""Topics of ROS itself."""
MESSAGES_PER_CASE = 6
ANSWER_SECONDS = 20.0
PLAN = "trajectory_msgs/msg/JointTrajectory"
NODES = ("estimator", "logger", "cell", "joint_states estimator")


class Subject:
    """A node under test, which lives on from case to case, and a client in its domain."""

    def __init__(self, case: Case, name: str) -> None:
        environment = case.around.ros_environment()
        self.name = name
        self.node = self._start(case, environment)
        self._held = ExitStack()
        self.client: RosClient = self._held.enter_context(ros_client(environment))
        self.topics: list[tuple[str, str]] = []
        end = time.monotonic() + PATIENCE
        names = {"cell": ("logger", "estimator")}.get(name, (name.split()[-1],))
        while not self.topics and time.monotonic() < end and self.node.running:
            self.client.spin(0.5)
            found = [topic for each in names for topic in self.client.subscribed(each)]
            self.topics = [topic for topic in found if topic[0] not in OWN]

    def _start(self, case: Case, environment: dict[str, str]) -> Watched:
        if self.name == "joint_states estimator":
            return start_node(case, "estimator", environment, source="joint_states")
        return start_node(case, self.name, environment, robot_ip=case.around.host)

    def answers(self) -> bool:
        """Whether the node still answers a service call: it is neither dead nor blocked."""
        service = "/logger/mark" if self.name == "logger" else "/estimator/reset_energy"
        end = time.monotonic() + ANSWER_SECONDS
        while time.monotonic() < end and self.node.running:
            if self.client.call(service) is not None:
                return True
        return False

    def close(self) -> None:
        """Close the client; the node must have been ended."""
        self._held.close()


def run(case: Case) -> Verdict:
    """A few messages to one node; topics take turns."""
    if no_ros():
        return Verdict("messages", skipped=no_ros())
    name = NODES[case.number % len(NODES)]
    subject = _subject(case, name)
    verdict = Verdict(f"hostile messages to {name}")
    if not verdict.expect(bool(subject.topics), "the node subscribes to no topic"):
        return verdict
    turn = case.number // len(NODES)
    for number in range(MESSAGES_PER_CASE):
        place = turn * MESSAGES_PER_CASE + number
        topic, kind = subject.topics[place % len(subject.topics)]
        message = _message(kind, case.random)
        subject.client.publish(topic, kind, message)
        began = time.monotonic()
        alive = subject.answers()
        verdict.seconds = max(verdict.seconds, time.monotonic() - began)
        verdict.weigh(subject.node.memory)
        what = f"{topic}: {str(message)[:200]!r}"
        if not verdict.expect(alive, f"no answer after {what}"):
            _retire(case.around, name, subject, verdict)
            return verdict
    return verdict


def _message(kind: str, random: Random) -> Any:
    """A hostile message; half of the plans are right but for their times."""
    if kind == PLAN and random.random() < 0.5:
        return _endless_plan(random)
    return hostile_message(kind, random)


def _endless_plan(random: Random) -> Any:
    """A plan of six joints that takes very long, or has points without end."""
    from builtin_interfaces.msg import Duration

    from ur_energy_model.model.robots import load_robot

    point = message_class("trajectory_msgs/msg/JointTrajectoryPoint")
    plan = message_class(PLAN)(joint_names=list(load_robot("ur5e").joint_names))
    seconds = random.choice((3600, 86_400, 2_147_483_647))
    count = random.choice((2, 3, 20_000))
    plan.points = [
        point(
            positions=[0.1 * random.random()] * 6,
            time_from_start=Duration(sec=i * seconds // (count - 1)),
        )
        for i in range(count)
    ]
    return plan


def _subject(case: Case, name: str) -> Subject:
    key = f"messages: {name}"
    found = case.around.kept.get(key)
    if not isinstance(found, Subject):
        found = case.around.kept[key] = Subject(case, name)
    return found


def _retire(around: Surroundings, name: str, subject: Subject, verdict: Verdict) -> None:
    """End a node; the next case that needs it starts another."""
    around.kept.pop(f"messages: {name}", None)
    subject.node.end(PATIENCE)
    subject.node.judge(verdict, (0,))
    subject.close()


def finish(around: Surroundings) -> Verdict:
    """Every node ends as it should."""
    verdict = Verdict("the end of the nodes")
    for name in NODES:
        subject = around.kept.get(f"messages: {name}")
        if isinstance(subject, Subject):
            known = len(verdict.problems)
            _retire(around, name, subject, verdict)
            for place in range(known, len(verdict.problems)):
                verdict.problems[place] = f"{name}: {verdict.problems[place]}"
    return verdict


FAMILY = Family("messages", 2.0, run, finish=finish)
