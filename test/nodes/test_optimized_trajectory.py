"""A planned trajectory is answered with the same motion for less energy."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from test.energy.known_arm import ROBOT, motion
from test.nodes.conftest import Cell
from test.optimization.hand_made import HOME, sampled
from test.optimization.simulated_cycle import arm_model
from ur_energy_model.model.model_file import save_model
from ur_energy_model.nodes.estimator import EstimatorNode
from ur_energy_model.nodes.ros import duration_message, plan_of, seconds_of
from ur_energy_model.telemetry.bag.writer import BagWriter
from ur_energy_model.trajectory.motions import move

ORDER = [3, 4, 5, 0, 1, 2]
"""Of the joints in the request."""
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
    cell: Cell, tmp_path: Path
) -> None:
    model = tmp_path / "model.yaml"
    save_model(arm_model(), model)
    telemetry = motion(20.0)
    with BagWriter(tmp_path / "bag", telemetry.info, tuple(telemetry.columns)) as bag:
        bag.write(telemetry)
    observer = cell.observer
    observer.subscribe("/energy/prediction", "diagnostic_msgs/DiagnosticArray", latched=True)
    observer.subscribe(
        "/energy/optimized_trajectory", "trajectory_msgs/JointTrajectory", latched=True
    )
    cell.start_node(
        EstimatorNode, source="bag", bag=str(tmp_path / "bag"), loop=True, model_file=str(model)
    )
    publisher = observer.node.create_publisher(JointTrajectory, "/energy/planned_trajectory", 10)
    observer.wait(lambda: publisher.get_subscription_count() > 0, "the subscriber")

    publisher.publish(request(last_speed=0.3))  # not at rest: predicted, but not optimized
    observer.wait(lambda: "/energy/prediction" in observer.latest, "the prediction")
    observer.wait(
        lambda: "not_optimized" in observer.status("/energy/prediction", "total"), "the reason"
    )
    assert "at rest" in observer.status("/energy/prediction", "total")["not_optimized"]
    wanted = request()
    publisher.publish(wanted)
    observer.wait(
        lambda: "optimized_energy_J" in observer.status("/energy/prediction", "total"),
        "the energies of both",
    )
    observer.wait(lambda: "/energy/optimized_trajectory" in observer.latest, "the trajectory")
    answer = observer.latest["/energy/optimized_trajectory"]
    assert list(answer.joint_names) == list(wanted.joint_names)
    assert answer.header.frame_id == "base"
    ends = [seconds_of(each.points[-1].time_from_start) for each in (answer, wanted)]
    assert abs(ends[0] - ends[1]) < 1e-6
    plan = plan_of(answer, ROBOT.joint_names, None)
    np.testing.assert_allclose(plan.q[[0, -1]], [HOME, AWAY], atol=1e-6)
    figures = observer.status("/energy/prediction", "total")
    assert float(figures["optimized_energy_J"]) < float(figures["energy_J"])
    assert 0.0 < float(figures["optimized_saving_percent"]) < 50.0
    for key in ("peak_power_W", "optimized_peak_power_W"):
        assert 20.0 < float(figures[key]) < 1000.0

    # The trajectory does not stand for a plan that is refused.
    bad = request()
    bad.header.stamp.sec, bad.points[3].positions[0] = 77, math.nan
    publisher.publish(bad)
    observer.wait(
        lambda: not observer.latest["/energy/optimized_trajectory"].points, "the empty trajectory"
    )
    assert observer.latest["/energy/optimized_trajectory"].header.stamp.sec == 77
    observer.wait(
        lambda: "refused" in observer.status("/energy/prediction", "total"), "the refusal"
    )
    assert observer.status("/energy/prediction", "total")["plan_stamp"] == "77.000000000"
