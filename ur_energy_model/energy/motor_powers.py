# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Powers of motors and drivers: from measured currents, else from the motion alone.

Clochiatti et al., Robotica 2024, eq. 19-23; Heredia et al., EcBot, eq. 13-21; model/drives.py.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ur_energy_model.energy.meter import bridged_steps
from ur_energy_model.energy.powers import QUANTITIES, Channels
from ur_energy_model.energy.telemetry_checks import OperatingConditions
from ur_energy_model.model.drives import Drives
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.friction import FrictionBank, FrictionDirection
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.setup import Setup
from ur_energy_model.model.wall import WallModel
from ur_energy_model.telemetry.samples import Telemetry, changes
from ur_energy_model.typing import Array, Mask


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
    """Channels of an arm, with room for the errors of powers from measured currents or motion.

    The modelled power has one error more than the motors and drivers: the standby of the session.
    """
    still = np.zeros((1, model.dof))
    each = whole = MeasuredPowers.number_of_errors(model)
    if motion:
        powers = model.from_link_torque(still, still, still)
        each = powers.sensitivity.shape[-1]
        whole = powers.total_sensitivity.shape[-1]
    names = [joint.name for joint in model.joints]
    return Channels(names, (each, whole + 1), wall, model.bus.motion_variance)


class MotorPowers(NamedTuple):
    """Powers of the motors and drivers of an arm with n joints at consecutive samples, W."""

    joints: Array  # the quantities of `QUANTITIES` of every joint, in order [samples, 4 n]
    driver: Array  # of all drivers, and drag [samples]
    demand: Array  # electrical power of all motors, and driver [samples]


class MotorErrors(NamedTuple):
    """Changes of powers per error of a parameter, one standard deviation each, W."""

    joints: Array  # of the electrical power of every joint [samples, n errors]
    shared: Array  # of the demand, with the standby power of the model [samples, errors]


class MeasuredPowers:
    """Powers of an arm with n joints from its measured speeds and currents, batch by batch.

    With currents I, motor speeds w and friction torques f, the powers of model/drives.py and their
    changes per error of a parameter are linear in I^2, w I, |I|, w f, |w|, I dI/dt (EcBot's
    inductive term) and I dw of all joints: one matrix gives every power from these products.

    Within a packet current and speed belong to different instants: drives hold a current over a
    controller cycle, sensors and buses add delays. Because current and acceleration are correlated,
    a power k i w with the later speed is systematically too high by k i (dw/dt) delay. The speeds
    are therefore shifted by dw, the change during the model's delay; the sensitivities are not.

    Attributes:
        friction: friction of the joints, which splits the mechanical power; that of the session
            may take its place at any time.
        demand: power of motors and drivers per product [products].
        demand_errors: change of the demand per product and error [products, errors].
    """

    def __init__(self, model: EnergyModel, channels: Channels) -> None:
        drives = Drives(model.joints, model.bus, model.session)
        self.friction: FrictionBank = drives.friction
        self._drives = drives
        self._delay = model.current_delay
        self._inductive = bool(model.bus.inductance.any())
        self._last: tuple[Array, Array] | None = None  # speeds and currents of the last sample

        n = model.dof
        zero = np.zeros(n)
        one = np.ones(n)
        resistance = drives.winding_resistance
        back_emf = drives.back_emf_constant
        torque = drives.torque_constant
        drag = np.full(n, model.bus.drag)
        # Watts per product: electrical, mechanical, copper and friction loss of its own joint, and
        # of the drivers.
        watts = {
            "current squared": (resistance, zero, resistance, zero, zero),
            "speed times current": (back_emf, torque, zero, zero, zero),
            "size of the current": (zero, zero, zero, zero, model.bus.driver),
            "speed times friction": (zero, zero, zero, one, zero),
            "size of the speed": (zero, zero, zero, zero, drag),
            "current times its rate": (zero, zero, zero, zero, model.bus.inductance),
            "current times shift": (back_emf, torque, zero, zero, zero),
        }
        # Changes per product and error: of the joint's electrical power, and of the demand.
        none = np.zeros((n, len(drives.standby_errors)))
        by_resistance = drives.resistance_errors.T
        by_back_emf = drives.back_emf_errors.T
        by_drag = np.repeat(drives.drag_errors.T, n, axis=0)
        changes = {
            "current squared": (by_resistance, by_resistance),
            "speed times current": (by_back_emf, by_back_emf),
            "size of the current": (none, drives.driver_errors.T),
            "size of the speed": (none, by_drag),
        }
        powers = []
        joint_errors = []
        demand_errors = []
        for product, (*of_joint, of_driver) in watts.items():
            if product == "current times its rate" and not self._inductive:
                continue
            if product == "current times shift" and not self._delay:
                continue
            powers.append(np.column_stack([*map(np.diag, of_joint), of_driver]))
            own, whole = changes.get(product, (none, none))
            joint_errors.append(_on_the_diagonal(own, channels.errors[0]))
            # The places of shared errors are the last ones before the error of standby.
            empty = np.zeros((n, channels.errors[1] - 1 - whole.shape[1]))
            demand_errors.append(np.column_stack([empty, whole]))
        self._powers = np.concatenate(powers)
        self._joint_errors = np.concatenate(joint_errors)
        self.demand = self._powers[:, :n].sum(axis=1) + self._powers[:, -1]
        self.demand_errors = np.concatenate(demand_errors)
        self._standby_errors = np.zeros(self.demand_errors.shape[1])
        self._standby_errors[-len(drives.standby_errors) :] = drives.standby_errors

    @staticmethod
    def number_of_errors(model: EnergyModel) -> int:
        """Number of independent errors of the powers from measured currents."""
        return len(model.bus.errors) + 2

    def products(
        self, steps: Array, qd: Array, current: Array, temperature: Array | None = None
    ) -> Array:
        """Products of samples that follow those of the last call [samples, products].

        Bridged steps [samples], s; speeds and motor currents as recorded [samples, n], rad/s, A;
        temperatures [n] or [samples, n], degC.
        """
        drives = self._drives
        motor = drives.gear_ratio * qd
        motor_before, current_before = self._last or (motor[:1], current[:1])
        self._last = motor[-1:], current[-1:]
        shift = np.zeros_like(motor)
        if self._delay:
            shift = -self._delay * rate_of_change(steps, motor, motor_before)
        speed = qd + shift / drives.gear_ratio
        torque = drives.torque_constant * current
        friction = self.friction.torque_within(speed, torque, temperature)
        products = [
            current * current,
            motor * current,
            np.abs(current),
            drives.gear_ratio * speed * friction,
            np.abs(motor),
        ]
        if self._inductive:
            products.append(current * rate_of_change(steps, current, current_before))
        if self._delay:
            products.append(shift * current)
        return np.concatenate(products, axis=1)

    def powers(self, products: Array) -> MotorPowers:
        """Powers from products [samples, products]."""
        watts = products @ self._powers
        joints = watts[:, :-1]
        driver = watts[:, -1]
        electrical = joints[:, : len(self._drives.gear_ratio)]
        return MotorPowers(joints, driver, electrical.sum(axis=1) + driver)

    def errors(self, products: Array) -> MotorErrors:
        """Changes of these powers per error of a parameter, from products [samples, products]."""
        return MotorErrors(
            joints=products @ self._joint_errors,
            shared=products @ self.demand_errors + self._standby_errors,
        )


def _on_the_diagonal(rows: Array, places: int) -> Array:
    """Rows [n, k], each in the first of its own `places` of n times as many columns."""
    n, k = rows.shape
    out = np.zeros((n, n, places))
    out[np.arange(n), np.arange(n), :k] = rows
    return out.reshape(n, n * places)


# Powers that the model predicts for a motion, for sources without motor currents.

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
