# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Powers of motors and drivers from the motion alone, for sources without motor currents."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ur_energy_model.energy.measured_powers import MotorErrors, MotorPowers, rate_of_change
from ur_energy_model.energy.powers import QUANTITIES
from ur_energy_model.energy.telemetry_checks import OperatingConditions
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.friction import FrictionDirection
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.setup import Setup
from ur_energy_model.telemetry.samples import Telemetry, changes
from ur_energy_model.typing import Array, Mask

ACCELERATION_CUTOFF = 5.0  # low-pass of accelerations differentiated from velocities [Hz]


class LinkMotion(NamedTuple):
    """Motion of an arm with n joints, and what its links need; joint side [samples, n]."""

    torque: Array  # of links and payload [N m]
    qd: Array  # [rad/s]
    qdd: Array  # [rad/s^2]
    direction: Array | None  # of Coulomb friction, see `OperatingPoint`
    temperature: Array | None  # of the joints [degC]; None where unknown

    def at(self, rows: Mask) -> LinkMotion:
        """Some of the samples."""
        return LinkMotion(*(None if each is None else each[rows] for each in self))  # type: ignore[arg-type]


class PredictedPowers:
    """Powers of an arm that a model predicts for its motion, batch by batch.

    The motion is the controller's target, else what was measured, whose speeds are differentiated.
    """

    def __init__(self, model: EnergyModel, robot: RobotDescription) -> None:
        self._model = model
        self._robot = robot
        self._direction = FrictionDirection(model.presliding)
        self._dynamics: ArmDynamics | None = None
        self._slope: tuple[float, Array, Array] | None = None
        """Last time [s], velocities and filtered accelerations, where those are not measured."""

    def dynamics(self, setup: Setup) -> ArmDynamics:
        """Rigid-body dynamics of the arm in a setup; the last one is kept."""
        if self._dynamics is None or self._dynamics.setup is not setup:
            self._dynamics = self._model.dynamics(robot=self._robot, setup=setup)
        return self._dynamics

    def motion(self, batch: Telemetry, conditions: OperatingConditions) -> LinkMotion:
        """Motion of samples that follow those of the last call, with the payloads of the samples.

        Raises:
            MissingFieldError: a field that the motion needs is missing.
        """
        q, qd, qdd = self._positions(batch)
        torque = np.empty_like(qd)
        for rows, setup in conditions.parts(batch):
            torque[rows] = self.dynamics(setup).inverse_dynamics(q[rows], qd[rows], qdd[rows])
        warmth = batch.columns.get("joint_temperatures")
        return LinkMotion(torque, qd, qdd, self._direction(q, qd), warmth)

    @staticmethod
    def powers(model: EnergyModel, motion: LinkMotion) -> MotorPowers:
        """Powers of a motion, by the model in its session."""
        found = model.from_link_torque(
            motion.torque,
            motion.qd,
            motion.qdd,
            temperature=motion.temperature,
            direction=motion.direction,
            std=False,
        )
        joints = np.concatenate([getattr(found, name) for name in QUANTITIES], axis=1)
        return MotorPowers(joints, found.driver_power, found.demand - found.standby_power)

    @staticmethod
    def errors(model: EnergyModel, motion: LinkMotion) -> MotorErrors:
        """Changes of these powers per error of a parameter."""
        found = model.from_link_torque(
            motion.torque,
            motion.qd,
            motion.qdd,
            temperature=motion.temperature,
            direction=motion.direction,
        )
        joints = found.sensitivity.reshape(len(found.demand), -1)
        return MotorErrors(joints, found.total_sensitivity)

    def _positions(self, batch: Telemetry) -> tuple[Array, Array, Array]:
        """Target positions, velocities and accelerations [samples, n], else the measured ones."""
        columns = batch.columns
        if "target_qdd" in columns:
            batch.require("target_q", "target_qd", purpose="the method motion")
            return columns["target_q"], columns["target_qd"], columns["target_qdd"]
        batch.require("actual_q", purpose="the method motion")
        qd = columns["actual_qd"]
        last, before, value = self._slope or (np.inf, qd[0], np.zeros(self._robot.dof))
        steps = np.maximum(changes(batch.time, last), 0.0)
        weights = -np.expm1(-2 * np.pi * ACCELERATION_CUTOFF * steps)
        slopes = rate_of_change(steps, qd, before[None])
        accelerations = []
        for weight, slope in zip(weights, slopes, strict=True):
            # A first-order low-pass with uneven steps.
            value = value + weight * (slope - value)
            accelerations.append(value)
        self._slope = float(batch.time[-1]), qd[-1], value
        return columns["actual_q"], qd, np.stack(accelerations)
