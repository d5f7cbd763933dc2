"""Powers that the model predicts from the motion alone, batch by batch."""

from __future__ import annotations

from collections.abc import Iterator

from ur_energy_model.energy.operating_conditions import OperatingConditions
from ur_energy_model.energy.powers.differentiator import Differentiator
from ur_energy_model.model.drive_powers import DrivePowers
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.friction.presliding import FrictionDirection
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.setup import Setup
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.typing import Array, Mask

ACCELERATION_CUTOFF = 5.0
"""Low-pass of accelerations differentiated from velocities [Hz]."""


class MotionPowers:
    """Powers of an arm from its target motion, else from its measured one.

    The payload is the one set in the controller, sample by sample.

    Args:
        model: of the arm, n joints.
        robot: its description.
        conditions: current setup; updated with the payload.
    """

    def __init__(
        self, model: EnergyModel, robot: RobotDescription, conditions: OperatingConditions
    ) -> None:
        self.model, self.robot, self.conditions = model, robot, conditions
        self._slope = Differentiator(robot.dof, ACCELERATION_CUTOFF)
        self._dynamics: ArmDynamics | None = None
        self._friction_direction = FrictionDirection(model.presliding)

    def __call__(
        self, batch: Telemetry, temperature: Array | None, due: Mask
    ) -> Iterator[tuple[slice, DrivePowers, DrivePowers]]:
        """Powers of samples that follow those of the last call.

        Args:
            batch: those samples.
            temperature: of their joints [samples, n], degC; None if unknown.
            due: samples whose sensitivities are needed [samples].

        Yields:
            Parts with one payload each: rows, powers, and powers with sensitivities of the due
            samples among them.

        Raises:
            MissingFieldError: neither target nor measured motion is available.
        """
        q, qd, qdd = self._motion(batch)
        direction = self._friction_direction(q, qd)
        for rows, setup in self.conditions.parts(batch):
            dynamics = self.dynamics_in(setup)
            link = dynamics.inverse_dynamics(q[rows], qd[rows], qdd[rows])
            part_temperature, part_direction = (
                None if part is None else part[rows] for part in (temperature, direction)
            )
            powers = self.model.from_link_torque(
                link,
                qd[rows],
                qdd[rows],
                temperature=part_temperature,
                direction=part_direction,
                std=False,
            )
            chosen = due[rows]
            yield (
                rows,
                powers,
                self.model.from_link_torque(
                    link[chosen],
                    qd[rows][chosen],
                    qdd[rows][chosen],
                    temperature=None if part_temperature is None else part_temperature[chosen],
                    direction=None if part_direction is None else part_direction[chosen],
                ),
            )

    def _motion(self, batch: Telemetry) -> tuple[Array, Array, Array]:
        """Positions, velocities and accelerations [samples, n]."""
        if "target_qdd" in batch.columns:
            batch.require("target_q", "target_qd", purpose="the method motion")
            q, qd, qdd = (batch.columns[f"target_{name}"] for name in ("q", "qd", "qdd"))
            return q, qd, qdd
        batch.require("actual_q", purpose="the method motion")
        qd = batch.columns["actual_qd"]
        return batch.columns["actual_q"], qd, self._slope.update(batch.time, qd)

    def dynamics_in(self, setup: Setup) -> ArmDynamics:
        """Rigid-body dynamics of the arm in a setup; the last one is cached."""
        if self._dynamics is None or self._dynamics.setup is not setup:
            self._dynamics = self.model.dynamics(robot=self.robot, setup=setup)
        return self._dynamics
