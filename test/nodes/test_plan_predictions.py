"""Plans that no arm can follow: each is refused with a line, and measuring continues."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from test.energy.known_arm import ROBOT, known_model, motion
from test.nodes.conftest import Cell
from ur_energy_model.model.file.model_file import save_model
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
    "has no points": JointTrajectory(joint_names=list(JOINTS)),
    "fewer than two": plan((0, 0)),
    "larger than 8 MB": too_large(),
}


def test_every_hostile_plan_is_refused_and_the_next_good_one_predicted(
    cell: Cell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tmp_path / "model.yaml"
    save_model(known_model(), model)
    telemetry = motion(20.0)
    with BagWriter(tmp_path / "bag", telemetry.info, tuple(telemetry.columns)) as bag:
        bag.write(telemetry)
    observer = cell.observer
    observer.subscribe("/energy/prediction", "diagnostic_msgs/DiagnosticArray", latched=True)
    observer.subscribe("/energy/total/energy", "std_msgs/Float64")
    node = cell.start_node(
        EstimatorNode, source="bag", bag=str(tmp_path / "bag"), loop=True, model_file=str(model)
    )
    assert isinstance(node, EstimatorNode)
    said: list[str] = []
    monkeypatch.setattr(node._plans, "_on_problem", lambda error: said.append(str(error)))
    publisher = observer.node.create_publisher(JointTrajectory, "/energy/planned_trajectory", 10)
    observer.wait(lambda: publisher.get_subscription_count() > 0, "the subscriber")
    for problem, message in HOSTILE.items():
        said.clear()
        publisher.publish(message)
        observer.wait(lambda: bool(said), f"the refusal: {problem}")
        assert problem in said[0]
        observer.next_message("/energy/total/energy")
    publisher.publish(plan((0, 0), (2, 0)))
    observer.wait(lambda: "/energy/prediction" in observer.latest, "the prediction")
    assert float(observer.status("/energy/prediction", "total")["duration_s"]) == 2.0
