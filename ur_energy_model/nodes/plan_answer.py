"""The answer to a planned trajectory: its energy, the same motion for less, what was measured."""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace

from builtin_interfaces.msg import Time
from std_msgs.msg import Header
from trajectory_msgs.msg import JointTrajectory

from ur_energy_model.energy.channels import Channels
from ur_energy_model.energy.meter import MeterReading
from ur_energy_model.energy.prediction import PlanEnergy, predict_energy
from ur_energy_model.errors import InputError
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
        header: of the plan.
        refused: why it cannot be used; empty if it can.
        energy: predicted for the plan as it is; None if it is refused.
        optimized: the same path and duration for less energy; None if not (yet) found.
        optimized_energy: predicted for it.
        not_optimized: why there is none; empty if there is one, or not yet.
        measured: energy of its motion; None if not (yet) measured.
        channels: of the measurement.
        not_measured: why there is none; empty if there is one, or not yet.
    """

    header: Header
    refused: str = ""
    energy: PlanEnergy | None = None
    optimized: JointTrajectory | None = None
    optimized_energy: PlanEnergy | None = None
    not_optimized: str = ""
    measured: MeterReading | None = None
    channels: Channels | None = None
    not_measured: str = ""

    @property
    def stamp(self) -> str:
        """Stamp of the plan as `seconds.nanoseconds`."""
        return f"{self.header.stamp.sec}.{self.header.stamp.nanosec:09d}"


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

    def expected(self) -> Plan:
        """The plan with the times of its prediction: at the present speed scaling."""
        scale, plan = self.speed_scaling, self.plan
        return replace(
            plan,
            time=(plan.time - plan.time[0]) / scale,
            qd=None if plan.qd is None else plan.qd * scale,
            qdd=None if plan.qdd is None else plan.qdd * scale**2,
        )

    def optimized(self, energy: PlanEnergy) -> tuple[JointTrajectory, PlanEnergy]:
        """The same path and duration for less energy, and how much it takes.

        Args:
            energy: of the plan as it is.

        Raises:
            UrEnergyError: the plan is not from rest to rest, too long, or no timing takes less.
        """
        motion = optimize_moves(
            self.model, self.plan, dynamics=self.dynamics, temperature=self.temperature
        )
        points = trajectory_points(motion)
        better = self._energy_of(points)
        if better.total >= energy.total:
            problem = "no timing within the limits takes less energy in this time"
            raise InputError(self.plan.source, problem, "give it more time")
        return joint_trajectory(points, self.joints, self.trajectory), better

    def _energy_of(self, plan: Plan) -> PlanEnergy:
        return predict_energy(
            self.model,
            plan,
            dynamics=self.dynamics,
            temperature=self.temperature,
            speed_scaling=self.speed_scaling,
        )


def header_of(message: bytes) -> Header:
    """Header with the stamp of a serialized plan, which need not be readable; else with zeros."""
    try:  # behind four bytes of encapsulation, the second of which has the order of bytes
        order = "<" if message[1] & 1 else ">"
        seconds, nanoseconds = struct.unpack_from(f"{order}iI", message, 4)
        return Header(stamp=Time(sec=seconds, nanosec=min(nanoseconds, 999_999_999)))
    except (IndexError, struct.error):
        return Header()
