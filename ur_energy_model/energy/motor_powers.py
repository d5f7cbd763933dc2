# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Powers of motors and drivers: from measured currents, else from the motion alone.

Clochiatti et al., Robotica 2024, eq. 19-23; Heredia et al., EcBot, eq. 13-21;
model/drives.py.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ur_energy_model.energy.meter import bridged_steps
from ur_energy_model.energy.operating_conditions import OperatingConditions
from ur_energy_model.energy.powers import QUANTITIES, Channels
from ur_energy_model.model.drives import DrivePowers, Drives
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.presliding import FrictionDirection
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.setup import Setup
from ur_energy_model.model.wall import WallModel
from ur_energy_model.telemetry.samples import Telemetry, changes
from ur_energy_model.typing import Array, Indices, Mask


def backward_difference(time: Array, values: Array) -> Array:
    """Rate of change [samples, ...], per second, since the last sample; zero across gaps."""
    return rate_of_change(bridged_steps(time), values, values[:1])


def rate_of_change(steps: Array, values: Array, before: Array) -> Array:
    """Change per step of values [samples, ...] after `before` [1, ...]; 0 where a step is 0."""
    change = np.diff(np.concatenate((before, values)), axis=0)
    safe = np.where(steps > 0.0, steps, np.inf).reshape(-1, *(1,) * (values.ndim - 1))
    return np.asarray(change / safe)


def channels_of(
    model: EnergyModel, *, motion: bool = False, wall: WallModel | None = None
) -> Channels:
    """Channels of an arm.

    The modelled power has one error more than the motors and drivers: the standby of the
    session.

    Args:
        model: model of the arm.
        motion: whether there are columns for the errors of powers from the motion, which
            are more than the errors of powers from measured currents.
        wall: model of the power at the mains; None for the usual one.
    """
    still = np.zeros((1, model.dof))
    drives = Drives(model.joints, model.bus, model.session)
    powers = drives.powers(still, still, still, std=True)
    if motion:
        powers = model.from_link_torque(still, still, still)
    per_joint = powers.sensitivity.shape[-1]
    whole_arm = powers.total_sensitivity.shape[-1] + 1
    names = [joint.name for joint in model.joints]
    return Channels(names, (per_joint, whole_arm), wall, model.bus.motion_variance)


class MotorPowers(NamedTuple):
    """Powers of the motors and drivers of an arm with n joints at consecutive samples.

    Attributes:
        joints: quantities of `QUANTITIES` of every joint, in this order [samples, 4 n], W.
        driver: power of all drivers, and drag [samples], W.
        demand: electrical power of all motors, and `driver` [samples], W.
    """

    joints: Array
    driver: Array
    demand: Array

    @classmethod
    def of(cls, found: DrivePowers) -> MotorPowers:
        """The powers of the motors and drivers without standby."""
        joints = np.concatenate([getattr(found, name) for name in QUANTITIES], axis=1)
        return cls(joints, found.driver_power, found.demand - found.standby_power)

    def at(self, rows: Mask) -> MotorPowers:
        """The powers of some of the samples."""
        return MotorPowers(self.joints[rows], self.driver[rows], self.demand[rows])


class MotorErrors(NamedTuple):
    """Changes of powers per error of a parameter, one standard deviation each.

    Attributes:
        joints: sensitivities of the electrical power of every joint [samples, n times
            errors], W.
        shared: sensitivities of the power demand, with the standby power of the model
            [samples, errors], W.
    """

    joints: Array
    shared: Array

    @classmethod
    def of(cls, found: DrivePowers, counts: tuple[int, int]) -> MotorErrors:
        """The changes of powers, filled up with zeros to given numbers of errors.

        Powers from measured currents have only the errors of the bus model. They are the last
        errors of the demand, behind the errors of predicted currents.

        Args:
            found: powers with their sensitivities.
            counts: numbers of errors of each joint and of the demand.
        """
        per_joint, whole_arm = counts
        count, n, own = found.sensitivity.shape
        joints = np.zeros((count, n, per_joint))
        joints[:, :, :own] = found.sensitivity
        shared = np.zeros((count, whole_arm))
        own_shared = found.total_sensitivity.shape[1]
        shared[:, whole_arm - own_shared :] = found.total_sensitivity
        return cls(joints.reshape(count, -1), shared)

    def at(self, rows: Mask | Indices | slice) -> MotorErrors:
        """The changes at some of the samples."""
        return MotorErrors(self.joints[rows], self.shared[rows])


class MeasuredMotion(NamedTuple):
    """Speeds, currents and friction of an arm with n joints at the same instants.

    Attributes:
        qd: joint speeds at the instants of the currents [samples, n], rad/s.
        current: motor currents [samples, n], A.
        friction: friction torque, motor side [samples, n], N m.
        current_rate: rate of change of the currents [samples, n], A/s; None without
            inductance.
    """

    qd: Array
    current: Array
    friction: Array
    current_rate: Array | None

    def at(self, rows: Mask) -> MeasuredMotion:
        """Some of the samples."""
        rate = None if self.current_rate is None else self.current_rate[rows]
        return MeasuredMotion(
            self.qd[rows], self.current[rows], self.friction[rows], rate
        )


class MeasuredPowers:
    """Powers of an arm with n joints from its measured speeds and currents, batch by batch.

    Current and speed of a packet belong to different instants: drives hold a current over
    a controller cycle, and sensors and buses add delays. Because current and acceleration
    are correlated, a power k i w with the later speed is systematically too high by k i
    (dw/dt) delay. The change of speed during the model's delay is therefore subtracted
    from the speeds.

    Args:
        model: model of the arm.

    Attributes:
        friction: friction of the joints, which splits the mechanical power; it may be
            replaced by the friction of the session at any time.
    """

    def __init__(self, model: EnergyModel) -> None:
        self._drives = Drives(model.joints, model.bus, model.session)
        self.friction = self._drives.friction
        self._delay = model.current_delay
        self._inductive = bool(model.bus.inductance.any())
        # Speeds [1, n], rad/s, and currents [1, n], A, of the last sample.
        self._last: tuple[Array, Array] | None = None

    def motion(
        self, steps: Array, qd: Array, current: Array, temperature: Array | None = None
    ) -> MeasuredMotion:
        """Speeds, currents and friction of samples that follow those of the last call.

        Args:
            steps: bridged steps to the samples [samples], s.
            qd: joint speeds as recorded [samples, n], rad/s.
            current: motor currents as recorded [samples, n], A.
            temperature: temperatures of the joints [n] or [samples, n], degC; None where
                unknown.
        """
        qd_before, current_before = self._last or (qd[:1], current[:1])
        self._last = qd[-1:], current[-1:]
        if self._delay:
            qd = qd - self._delay * rate_of_change(steps, qd, qd_before)
        rate = rate_of_change(steps, current, current_before) if self._inductive else None
        torque = self._drives.torque_constant * current
        friction = self.friction.torque_within(qd, torque, temperature)
        return MeasuredMotion(qd, current, friction, rate)

    def powers(self, motion: MeasuredMotion) -> MotorPowers:
        """Powers of a motion."""
        return MotorPowers.of(self._found(motion, std=False))

    def errors(self, motion: MeasuredMotion, counts: tuple[int, int]) -> MotorErrors:
        """Changes of these powers per error of a parameter, see `MotorErrors.of`."""
        return MotorErrors.of(self._found(motion, std=True), counts)

    def _found(self, motion: MeasuredMotion, *, std: bool) -> DrivePowers:
        """Powers of a motion; `std` is whether their sensitivities are computed."""
        return self._drives.powers(
            motion.current,
            motion.qd,
            motion.friction,
            std=std,
            current_rate=motion.current_rate,
        )


# Powers that the model predicts for a motion, for sources without motor currents.

ACCELERATION_CUTOFF = 5.0
"""Cut-off frequency of the low-pass filter of accelerations that are differentiated from velocities
[Hz]."""


class LinkMotion(NamedTuple):
    """Motion of an arm with n joints, and the torque that its links need; joint side.

    Attributes:
        torque: torque of links and payload [samples, n], N m.
        qd: joint velocities [samples, n], rad/s.
        qdd: joint accelerations [samples, n], rad/s^2.
        direction: direction of Coulomb friction [samples, n], see `OperatingPoint`.
        temperature: temperatures of the joints [samples, n], degC; None where unknown.
    """

    torque: Array
    qd: Array
    qdd: Array
    direction: Array | None
    temperature: Array | None

    def at(self, rows: Mask) -> LinkMotion:
        """Some of the samples."""
        direction = self.direction
        temperature = self.temperature
        return LinkMotion(
            self.torque[rows],
            self.qd[rows],
            self.qdd[rows],
            None if direction is None else direction[rows],
            None if temperature is None else temperature[rows],
        )


class PredictedPowers:
    """Powers of an arm that a model predicts for its motion, batch by batch.

    The motion is the controller's target motion. Where it was not recorded, the measured
    motion is used, and its speeds are differentiated.

    Args:
        model: model of the arm.
        robot: description of the arm.
    """

    def __init__(self, model: EnergyModel, robot: RobotDescription) -> None:
        self._model = model
        self._robot = robot
        self._direction = FrictionDirection(model.presliding)
        self._dynamics: ArmDynamics | None = None
        self._slope: tuple[float, Array, Array] | None = None
        """Last time [s], velocities [n], rad/s, and filtered accelerations [n], rad/s^2, where
        accelerations are differentiated."""

    def dynamics(self, setup: Setup) -> ArmDynamics:
        """Rigid-body dynamics of the arm in a setup; the last one is kept."""
        if self._dynamics is None or self._dynamics.setup is not setup:
            self._dynamics = self._model.dynamics(robot=self._robot, setup=setup)
        return self._dynamics

    def motion(self, batch: Telemetry, conditions: OperatingConditions) -> LinkMotion:
        """Motion of samples that follow those of the last call, with the payloads of the samples.

        Args:
            batch: samples.
            conditions: operating conditions, which are updated with the payloads.

        Raises:
            MissingFieldError: a field that the motion needs is missing.
        """
        q, qd, qdd = self._positions(batch)
        torque = np.empty_like(qd)
        for rows, setup in conditions.parts(batch):
            torque[rows] = self.dynamics(setup).inverse_dynamics(
                q[rows], qd[rows], qdd[rows]
            )
        warmth = batch.columns.get("joint_temperatures")
        return LinkMotion(torque, qd, qdd, self._direction(q, qd), warmth)

    def powers(self, model: EnergyModel, motion: LinkMotion) -> MotorPowers:
        """Powers of a motion, by the model in its session."""
        return MotorPowers.of(self._found(model, motion, std=False))

    def errors(
        self, model: EnergyModel, motion: LinkMotion, counts: tuple[int, int]
    ) -> MotorErrors:
        """Changes of these powers per error of a parameter, see `MotorErrors.of`."""
        return MotorErrors.of(self._found(model, motion, std=True), counts)

    @staticmethod
    def _found(model: EnergyModel, motion: LinkMotion, *, std: bool) -> DrivePowers:
        """Powers of a motion; `std` is whether their sensitivities are computed."""
        return model.from_link_torque(
            motion.torque,
            motion.qd,
            motion.qdd,
            temperature=motion.temperature,
            direction=motion.direction,
            std=std,
        )

    def _positions(self, batch: Telemetry) -> tuple[Array, Array, Array]:
        """Target positions, velocities and accelerations [samples, n], else the measured ones."""
        columns = batch.columns
        if "target_qdd" in columns:
            batch.require("target_q", "target_qd", purpose="the method motion")
            return columns["target_q"], columns["target_qd"], columns["target_qdd"]
        batch.require("actual_q", purpose="the method motion")
        qd = columns["actual_qd"]
        last_time, last_qd, qdd = self._slope or (
            np.inf,
            qd[0],
            np.zeros(self._robot.dof),
        )
        steps = np.maximum(changes(batch.time, last_time), 0.0)
        weights = -np.expm1(-2 * np.pi * ACCELERATION_CUTOFF * steps)
        slopes = rate_of_change(steps, qd, last_qd[None])
        accelerations = []
        for weight, slope in zip(weights, slopes, strict=True):
            # A first-order low-pass with uneven steps.
            qdd = qdd + weight * (slope - qdd)
            accelerations.append(qdd)
        self._slope = float(batch.time[-1]), qd[-1], qdd
        return columns["actual_q"], qd, np.stack(accelerations)
