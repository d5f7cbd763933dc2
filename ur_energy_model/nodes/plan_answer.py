"""A planned trajectory and its answer: the energy, and the same motion for less."""

from __future__ import annotations

from dataclasses import dataclass

from trajectory_msgs.msg import JointTrajectory

from ur_energy_model.energy.prediction import PlanEnergy, predict_energy
from ur_energy_model.errors import UrEnergyError
from ur_energy_model.experiment.energy_cycle.joint_trajectory import trajectory_points
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.nodes.conversions import joint_trajectory
from ur_energy_model.optimization.plan_optimization import optimize_moves
from ur_energy_model.trajectory.plan import Plan
from ur_energy_model.typing import Array


@dataclass(frozen=True)
class PlanAnswer:
    """What is known of a plan.

    Attributes:
        energy: predicted for the plan as it is.
        optimized: the same path and duration for less energy; None if not (yet) found.
        optimized_energy: predicted for it.
    """

    energy: PlanEnergy
    optimized: JointTrajectory | None = None
    optimized_energy: PlanEnergy | None = None


@dataclass(frozen=True)
class PlanRequest:
    """A plan, and the arm when it came.

    Attributes:
        plan: in the order of `joints`.
        joints: joint names of the arm, prefix included.
        trajectory: the message.
        model: in its session.
        dynamics: of the arm in its setup.
        temperature: of the joints [n], degC; None if unknown.
        speed_scaling: of the controller.
    """

    plan: Plan
    joints: tuple[str, ...]
    trajectory: JointTrajectory
    model: EnergyModel
    dynamics: ArmDynamics
    temperature: Array | None
    speed_scaling: float

    def energy(self) -> PlanEnergy:
        """Energy of the plan as it is.

        Raises:
            UrEnergyError: the plan cannot be used.
        """
        return self._energy_of(self.plan)

    def optimized(self, energy: PlanEnergy) -> PlanAnswer | None:
        """The same path and duration for less energy.

        Args:
            energy: of the plan as it is.

        Returns:
            None if the plan is not from rest to rest, too long, or no timing takes less energy.
        """
        try:
            motion = optimize_moves(
                self.model, self.plan, dynamics=self.dynamics, temperature=self.temperature
            )
            points = trajectory_points(motion)
            better = self._energy_of(points)
        except UrEnergyError:
            return None  # its energy was predicted; there is just nothing to offer
        if better.total >= energy.total:
            return None
        return PlanAnswer(energy, joint_trajectory(points, self.joints, self.trajectory), better)

    def _energy_of(self, plan: Plan) -> PlanEnergy:
        return predict_energy(
            self.model,
            plan,
            dynamics=self.dynamics,
            temperature=self.temperature,
            speed_scaling=self.speed_scaling,
        )
