"""Plans that no arm can follow: each is refused by a message, and measuring continues."""

from __future__ import annotations

import math
from pathlib import Path

from diagnostic_msgs.msg import DiagnosticStatus
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from test.energy.known_arm import ROBOT, known_model, motion
from test.nodes.conftest import Cell
from ur_energy_model.model.model_file import save_model
from ur_energy_model.nodes.estimator import EstimatorNode
from ur_energy_model.nodes.plan_predictions import LARGEST_MESSAGE
from ur_energy_model.telemetry.bag.writer import BagWriter

JOINTS = ROBOT.joint_names


def plan(*times: tuple[int, int], place: float = 0.1) -> JointTrajectory:
    """Points at (seconds, nanoseconds), the first at zero and the others at `place`."""
    made = JointTrajectory(joint_names=list(JOINTS))
    for k, (seconds, nanoseconds) in enumerate(times):
        point = JointTrajectoryPoint(positions=[place if k else 0.0] * 6, velocities=[0.0] * 6)
        point.time_from_start.sec, point.time_from_start.nanosec = seconds, nanoseconds
        made.points.append(point)
    return made


def stamped(message: JointTrajectory, seconds: int) -> JointTrajectory:
    message.header.stamp.sec, message.header.stamp.nanosec = seconds, 25
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
    "does not increase": plan((0, 0), (-2147483648, 0)),
    "does not increase at point 2": plan((0, 0), (1, 0), (1, 0)),
    "not finite": plan((0, 0), (1, 0), place=math.nan),
    "impossible": plan((0, 0), (1, 0), place=1e300),
    "lacks": JointTrajectory(),
    "lacks wrist_3_joint": twice(),
    "beyond the joint's limit": plan((0, 0), (60, 0), place=7.0),
    "above the joint's limit": plan((0, 0), (1, 0), place=5.0),
    "has no points": JointTrajectory(joint_names=list(JOINTS)),
    "fewer than two": plan((0, 0)),
    "larger than 8 MB": too_large(),
}


def test_every_plan_is_answered(cell: Cell, tmp_path: Path) -> None:
    model = tmp_path / "model.yaml"
    save_model(known_model(), model)
    telemetry = motion(20.0)
    with BagWriter(tmp_path / "bag", telemetry.info, tuple(telemetry.columns)) as bag:
        bag.write(telemetry)
    observer = cell.observer
    observer.subscribe("/energy/prediction", "diagnostic_msgs/DiagnosticArray", latched=True)
    observer.subscribe("/energy/total/energy", "std_msgs/Float64")
    cell.start_node(
        EstimatorNode, source="bag", bag=str(tmp_path / "bag"), loop=True, model_file=str(model)
    )
    publisher = observer.node.create_publisher(JointTrajectory, "/energy/planned_trajectory", 10)
    observer.wait(lambda: publisher.get_subscription_count() > 0, "the subscriber")
    for number, (problem, message) in enumerate(HOSTILE.items()):
        publisher.publish(stamped(message, number))
        observer.next_message("/energy/prediction")
        (status,) = observer.latest["/energy/prediction"].status
        values = {each.key: each.value for each in status.values}
        assert (status.name, status.level) == ("prediction: total", DiagnosticStatus.ERROR)
        assert values["plan_stamp"] == f"{number}.000000025"
        assert problem in values["refused"]
        observer.next_message("/energy/total/energy")
    count = 8  # of the 10 that the topic keeps
    for number in range(100, 100 + count):
        publisher.publish(stamped(plan((0, 0), (2, 0)), number))
    stamps: dict[str, dict[str, str]] = {}

    def answered() -> bool:
        for each in observer.history["/energy/prediction"]:
            values = {value.key: value.value for value in each.status[-1].values}
            stamps.setdefault(values["plan_stamp"], {}).update(values)
        last = [stamps.get(f"{number}.000000025", {}) for number in range(100, 100 + count)]
        return all({"refused", "optimized_energy_J", "not_optimized"} & set(each) for each in last)

    observer.wait(answered, "an answer to every plan")
    assert sum("duration_s" in each for each in stamps.values()) == count
