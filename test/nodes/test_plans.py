# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Plans: conversions of trajectories, hostile ones, and the answer with less energy."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest
from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from test.energy.known_arm import ROBOT, known_model, motion
from test.energy.work_cycles import arm_model
from test.nodes.conftest import LEARNING_OFF, Cell, seconds_of
from test.optimization.hand_made import HOME, sampled
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.model_file import save_model
from ur_energy_model.nodes import ros as convert
from ur_energy_model.nodes.estimator import EstimatorNode
from ur_energy_model.nodes.plan_messages import (
    LARGEST_MESSAGE,
    MOST_JOINTS,
    duration_message,
    plan_of,
    read_plan,
)
from ur_energy_model.telemetry.bag.writer import BagWriter
from ur_energy_model.trajectory.motions import move


def test_messages_are_what_they_are_made_of() -> None:
    names = ("shoulder_pan_joint", "wrist", "total")
    stamp = convert.time_message(1_700_000_000_123_456_789)
    assert (stamp.sec, stamp.nanosec) == (1_700_000_000, 123_456_789)
    write = convert.SerializedJointStates(names)
    for turn in range(3):
        stamp = Time(sec=turn, nanosec=7)
        values = np.random.default_rng(turn).random((3, 3))
        read = deserialize_message(write(turn * 10**9 + 7, values), JointState)
        assert read == convert.joint_state(names, stamp, *values)
    assert deserialize_message(convert.serialized_number(-2.5), Float64) == Float64(
        data=-2.5
    )


JOINTS = ROBOT.joint_names


def plan(
    *times: tuple[int, int], first: float = 0.0, place: float = 0.1
) -> JointTrajectory:
    """Points at (seconds, nanoseconds), the first at `first` and the others at `place`."""
    made = JointTrajectory(joint_names=list(JOINTS))
    for k, (seconds, nanoseconds) in enumerate(times):
        point = JointTrajectoryPoint(
            positions=[place if k else first] * 6, velocities=[0.0] * 6
        )
        point.time_from_start.sec = seconds
        point.time_from_start.nanosec = nanoseconds
        made.points.append(point)
    return made


def stamped(message: JointTrajectory, seconds: int) -> JointTrajectory:
    message.header.stamp.sec = seconds
    message.header.stamp.nanosec = 25
    return message


def twice() -> JointTrajectory:
    made = plan((0, 0), (1, 0))
    made.joint_names = [JOINTS[0], *JOINTS[:5]]
    return made


def too_large() -> JointTrajectory:
    made = plan((0, 0), (1, 0))
    made.points[0].effort = [0.0] * (LARGEST_MESSAGE // 8)
    return made


HOSTILE = {
    "longer than 3600 s": plan((0, 0), (2147483647, 0)),
    "does not increase at point 2": plan((0, 0), (1, 0), (1, 0)),
    "not finite": plan((0, 0), (1, 0), place=math.nan),
    "impossible": plan((0, 0), (1, 0), place=1e300),
    "lacks wrist_3_joint": twice(),
    "beyond the joint's limit": plan((0, 0), (60, 0), place=7.0),
    "above the joint's limit": plan((0, 0), (1, 0), place=5.0),
    "is empty": JointTrajectory(joint_names=list(JOINTS)),
    "empty: it has no points": JointTrajectory(),
    "one point only": plan((0, 0)),
    "its first point is": plan((0, 2_000_000), (1, 0), first=5.0, place=5.0),
    "larger than 8 MB": too_large(),
    f"names {MOST_JOINTS + 1} joints": JointTrajectory(
        joint_names=["joint"] * (MOST_JOINTS + 1)
    ),
    "a joint has a name of": JointTrajectory(joint_names=["x" * 2000]),
    "without a value for each joint": JointTrajectory(
        joint_names=list(JOINTS), points=[JointTrajectoryPoint()] * 1000
    ),
}


def planner(cell: Cell, model: EnergyModel) -> Any:
    """A publisher of plans, for an estimator that plays a bag."""
    save_model(model, cell.folder / "model.yaml")
    telemetry = motion(20.0)
    bag = cell.folder / "bag"
    with BagWriter(bag, telemetry.info, tuple(telemetry.columns)) as writer:
        writer.write(telemetry)
    observer = cell.observer
    observer.subscribe(
        "/energy/prediction", "diagnostic_msgs/DiagnosticArray", latched=True
    )
    parameters = {
        "bag": str(bag),
        "loop": True,
        "model_file": str(cell.folder / "model.yaml"),
    }
    cell.start_node(EstimatorNode, source="bag", **LEARNING_OFF, **parameters)
    publisher = observer.node.create_publisher(
        JointTrajectory, "/energy/planned_trajectory", 10
    )
    observer.wait(lambda: publisher.get_subscription_count() > 0, "the subscriber")
    return publisher


def test_every_plan_is_answered(cell: Cell) -> None:
    observer = cell.observer
    observer.subscribe("/energy/total/energy", "std_msgs/Float64")
    publisher = planner(cell, known_model())
    for number, (problem, message) in enumerate(HOSTILE.items()):
        publisher.publish(stamped(message, number))
        observer.next_message("/energy/prediction")
        (status,) = observer.latest["/energy/prediction"].status
        values = {each.key: each.value for each in status.values}
        assert (status.name, status.level) == (
            "prediction: total",
            DiagnosticStatus.ERROR,
        )
        assert values["plan_stamp"] == f"{number}.000000025"
        assert problem in values["refused"]
        observer.next_message("/energy/total/energy")

    even, jittered = (stamped(request(last_speed=0.3), number) for number in (50, 51))
    for k, point in enumerate(jittered.points[1:]):
        seconds = seconds_of(point.time_from_start) + (0.03 if k % 3 else 0.0)
        point.time_from_start = duration_message(seconds)

    def answer(message: JointTrajectory) -> dict[str, str]:
        publisher.publish(message)
        seconds = message.header.stamp.sec
        topic = "/energy/prediction"
        return observer.status_that(
            "total",
            lambda s: s["plan_stamp"] == f"{seconds}.000000025",
            "its answer",
            topic,
        )

    answers = [answer(even), answer(jittered)]
    assert "changed" not in answers[0]
    assert "jitter" in answers[1]["changed"]
    assert float(answers[1]["energy_J"]) == pytest.approx(
        float(answers[0]["energy_J"]), rel=0.02
    )
    # Wherever the moving arm is, it is away from the beginning of the plan.
    ways = np.abs(motion(20.0)["actual_q"] - HOME).max(axis=1)
    (distance,) = re.findall(
        r"begins ([\d.]+) rad from where the arm is", answers[0]["begins_away"]
    )
    assert ways.min() - 0.01 <= float(distance) <= ways.max() + 0.01
    assert answers[0]["level"] == "1"
    there = answer(stamped(plan((1, 0), (3, 0)), 52))
    assert "begins_away" not in there  # it begins with the way to its first point


ORDER = [3, 4, 5, 0, 1, 2]  # of the joints in the request
AWAY = HOME + np.array([0.9, -0.2, 0.3, 0.1, 0.0, 0.8])


def request(last_speed: float = 0.0) -> JointTrajectory:
    """A move with triangular speed, joints in another order than the arm's."""
    time, q, qd, _ = sampled(move(HOME, AWAY, 3.0, 2.5))
    made = JointTrajectory(joint_names=[ROBOT.joint_names[i] for i in ORDER])
    made.header.frame_id = "base"
    chosen = np.unique(np.append(np.arange(0, len(time), 20), len(time) - 1))
    for k in chosen:
        point = JointTrajectoryPoint(
            positions=q[k, ORDER].tolist(), velocities=qd[k, ORDER].tolist()
        )
        point.time_from_start = duration_message(float(time[k]))
        made.points.append(point)
    made.points[-1].velocities = [last_speed] * 6
    return made


def test_the_answer_has_the_same_joints_path_and_duration_and_less_energy(
    cell: Cell,
) -> None:
    observer = cell.observer
    observer.subscribe(
        "/energy/optimized_trajectory", "trajectory_msgs/JointTrajectory", latched=True
    )
    publisher = planner(cell, arm_model())

    # not at rest: predicted, but not optimized
    publisher.publish(request(last_speed=0.3))
    observer.wait(lambda: "/energy/prediction" in observer.latest, "the prediction")
    topic = "/energy/prediction"
    status = observer.status_that(
        "total", lambda s: "not_optimized" in s, "the reason", topic
    )
    assert "at rest" in status["not_optimized"]
    wanted = request()
    publisher.publish(wanted)
    found = "optimized_energy_J"
    figures = observer.status_that("total", lambda s: found in s, "both energies", topic)
    observer.wait(
        lambda: "/energy/optimized_trajectory" in observer.latest, "the trajectory"
    )
    answer = observer.latest["/energy/optimized_trajectory"]
    assert list(answer.joint_names) == list(wanted.joint_names)
    assert answer.header.frame_id == "base"
    ends = [seconds_of(each.points[-1].time_from_start) for each in (answer, wanted)]
    assert abs(ends[0] - ends[1]) < 1e-6
    plan = plan_of(read_plan(serialize_message(answer)), ROBOT.joint_names, None)
    np.testing.assert_allclose(plan.q[[0, -1]], [HOME, AWAY], atol=1e-6)
    assert float(figures["optimized_energy_J"]) < float(figures["energy_J"])
    assert 0.0 < float(figures["optimized_saving_percent"]) < 50.0
    for key in ("peak_power_W", "optimized_peak_power_W"):
        assert 20.0 < float(figures[key]) < 1000.0

    # The trajectory does not stand for a plan that is refused.
    bad = request()
    bad.header.stamp.sec = 77
    bad.points[3].positions[0] = math.nan
    publisher.publish(bad)
    observer.wait(
        lambda: not observer.latest["/energy/optimized_trajectory"].points,
        "the empty trajectory",
    )
    assert observer.latest["/energy/optimized_trajectory"].header.stamp.sec == 77
    status = observer.status_that("total", lambda s: "refused" in s, "the refusal", topic)
    assert status["plan_stamp"] == "77.000000000"
