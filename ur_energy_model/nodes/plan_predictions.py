"""Energy predictions of planned trajectories, and the measured energy of their motions."""

from __future__ import annotations

import threading

from trajectory_msgs.msg import JointTrajectory

from ur_energy_model.energy.live.estimator import LiveEstimator
from ur_energy_model.energy.live.plan_follower import PlanFollower
from ur_energy_model.energy.live.snapshot import Snapshot
from ur_energy_model.energy.meter import MeterReading
from ur_energy_model.energy.prediction import PlanEnergy, predict_energy
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.nodes.conversions import plan_of


class PlanPredictions:
    """Predicts the energy of a plan, and measures the energy of its motion.

    Args:
        robot: description of the arm.
        joints: joint names of the arm, prefix included.
        lock: guards the estimator against the thread that reads the samples.
    """

    def __init__(
        self, robot: RobotDescription, joints: tuple[str, ...], lock: threading.Lock
    ) -> None:
        self._robot, self._joints, self._lock = robot, joints, lock
        self._follower = PlanFollower()

    def predict(self, message: JointTrajectory, estimator: LiveEstimator) -> PlanEnergy:
        """Energy of a plan that begins where the arm is now; its motion is awaited from now on.

        Raises:
            UrEnergyError: the plan cannot be used.
        """
        with self._lock:
            snapshot = estimator.snapshot("plan")
            calculator = estimator.calculator
            now, model = calculator.conditions, calculator.model_in_session()
            dynamics = model.dynamics(robot=self._robot, setup=now.setup)
        start = None if snapshot is None else snapshot.q
        plan = predict_energy(
            model,
            plan_of(message, self._joints, start),
            dynamics=dynamics,
            temperature=now.temperature,
            speed_scaling=now.speed_scaling,
        )
        with self._lock:
            self._follower.expect(plan)
        return plan

    def finished(self, snapshot: Snapshot) -> tuple[PlanEnergy, MeterReading] | None:
        """The plan and its measured energy when its motion has ended, else None."""
        with self._lock:
            return self._follower.update(snapshot)
