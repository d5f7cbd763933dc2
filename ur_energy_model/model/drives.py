# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Drives: the motors of an arm and its supply, which turn currents and speeds into powers.

Per motor (Clochiatti et al., Robotica 2024, eq. 19-23), w the motor speed,

    electrical power = R I^2 + k_b w I,   mechanical power = w * torque,   torque = k_t I

and for the whole arm (Heredia et al., EcBot, eq. 13-21)

    P = max(floor, standby + sum over joints (electrical + driver * |I| + drag * |w| + L I
    dI/dt)).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ur_energy_model.model.friction import STILL_SPEED, Friction, FrictionBank
from ur_energy_model.model.sessions import (
    COMMON_FRICTION,
    Session,
    friction_directions,
    scaled_parameters,
)
from ur_energy_model.typing import Array

# JointModel: identified constants of one joint.

CONSTANTS = (
    "gear_ratio",
    "reflected_inertia",
    "torque_constant",
    "winding_resistance",
    "back_emf_constant",
)
"""Constants of a joint other than friction, by attribute name."""


@dataclass(frozen=True)
class JointModel:
    """Identified constants of one joint.

    Attributes:
        name: of the joint, as in the robot's URDF.
        gear_ratio: motor turns per joint turn.
        reflected_inertia: of motor and reducer, joint side [kg m^2]; in target_moment.
        torque_constant: motor torque per RTDE ampere [N m/A].
        winding_resistance: copper loss per RTDE ampere squared [ohm].
        back_emf_constant: converted power per RTDE ampere and motor speed [V s/rad].
        friction: law and parameters, motor side.
        std: standard deviations by quantity (the names above and the friction
            parameters).
        source: the stage each quantity comes from: "target_moment", "current",
            "bus_power", "prior" or "given".
        current_covariance: covariance [1 + p, 1 + p] of (load factor / k_t, friction
            parameters / k_t), the coefficients that give current from torque.
        current_residual: RMS of the measured minus the modelled current while moving [A].
        friction_reason: why this friction law was chosen.
        actual_inertia: what currents show of the arm's own reflected inertia where
            target_moment shows that of the controller [kg m^2]; None elsewhere.
        load_factor: torque of links, payload and rotor over that by their published
            masses, as currents show it where the torque constant is known apart from
            them; else 1.
    """

    name: str
    gear_ratio: float
    reflected_inertia: float
    torque_constant: float
    winding_resistance: float
    back_emf_constant: float
    friction: Friction
    std: Mapping[str, float] = field(default_factory=dict)
    source: Mapping[str, str] = field(default_factory=dict)
    current_covariance: Array = field(default_factory=lambda: np.zeros((0, 0)))
    current_residual: float = 0.0
    friction_reason: str = ""
    actual_inertia: float | None = None
    load_factor: float = 1.0

    @property
    def inertia(self) -> float:
        """Inertia of motor and reducer that currents accelerate, joint side [kg m^2]."""
        return (
            self.reflected_inertia if self.actual_inertia is None else self.actual_inertia
        )

    @property
    def constants(self) -> dict[str, float]:
        """The constants other than friction, by attribute name."""
        return {name: getattr(self, name) for name in CONSTANTS}

    @property
    def current_root(self) -> Array:
        """Square root [1 + p, 1 + p] of `current_covariance`; zeros if it is unknown."""
        size = 1 + len(self.friction.law.parameters)
        if self.current_covariance.size == 0:
            return np.zeros((size, size))
        return square_root(self.current_covariance)

    def with_friction_scaled(self, factor: float | Array) -> JointModel:
        """The joint with the session-dependent part of its friction times a factor, or one each."""
        names = self.friction.law.parameters
        factors = np.where(scaled_parameters(names), factor, 1.0)
        by_name = dict(zip(names, factors.tolist(), strict=True))
        covariance = self.current_covariance
        if covariance.size:
            each = np.append(1.0, factors)
            covariance = covariance * np.outer(each, each)
        parameters = {
            name: by_name[name] * value
            for name, value in self.friction.parameters.items()
        }
        return replace(
            self,
            friction=replace(self.friction, parameters=parameters),
            std={
                name: by_name.get(name, 1.0) * value for name, value in self.std.items()
            },
            current_covariance=covariance,
        )


def square_root(covariance: Array) -> Array:
    """R [m, m] with R R' = covariance [m, m]."""
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray(vectors * np.sqrt(np.clip(values, 0.0, None)))


# The motor constant k_m, and the drive constants that Clochiatti et al. 2024 (S0) assume.

KT_OVER_KB = 0.89  # k_t/k_b that S0 takes from the catalogue
CATALOGUE_MOTOR_CONSTANT = {3: 0.27426, 1: 0.06632}
"""Motor constants k_m that S0 takes from the catalogue, by joint size [N m/sqrt(W)]."""


def motor_constant(torque_constant: float, winding_resistance: float) -> float:
    """k_m = k_t / sqrt(R): torque per square root of copper loss [N m/sqrt(W)]; NaN without R."""
    if not winding_resistance > 0:
        return float("nan")
    return float(torque_constant / np.sqrt(winding_resistance))


# BusModel: the power model of the whole arm, from its motors to the supply.


MOTION_STD = 0.6
"""Standard deviation of the mean power of a second of motion, less that of standstill,
beyond what errors of the parameters explain, where no recording shows it [W]: 0.4 to 1.0
on four arms."""
MOTION_TIME = 2.0
"""Time for which that error stays [s], after which another motion has another one. Of the
mean of 2, 4 and 8 s of motion recordings of four arms have 0.87, 0.60 and 0.48 of it,
simulated ones 0.75, 0.67 and 0.40; with MOTION_COMMON it is 1.04, 0.77 and 0.58."""
MOTION_COMMON = 0.3
"""Share of it that all motions of the model's own session have, because programs repeat
theirs: after 28 s of repeated motion a UR3e has 0.4 of it, and no recording shows more
motion."""
MOTION_OF_SESSION = 0.7
"""The same in another session, where windings and gears are as warm as they are then: the
error of 3 and 6 s of motion on another day, and of 3 to 8 s on other arms, over that of a
second of it."""


@dataclass(frozen=True)
class BusModel:
    """From the motors to the supply, for n joints.

    Attributes:
        kind: "physical", or the name of a power model of papers.
        standby: power at standstill, brakes released [W].
        driver: driver loss per ampere [n], W/A.
        inductance: of the windings [n], H (EcBot's L I dI/dt; zero in the physical
            model).
        capacitor_energy: largest regenerated energy that the bus capacitance stores [J].
        floor: lowest power that the supply delivers [W]; it cannot take power back.
        std: standard deviations of "standby", of "driver", one for all joints, and of the
            mean power of a "motion", see MOTION_STD.
        errors: changes of the parameters by k independent errors, one standard deviation
            each, of standby power, resistances, back-EMF constants, driver losses and
            drag [k, 3 n + 2], W, ohm, V s/rad, W/A, N m; empty if there are none.
        torque_errors: relative changes of the torque constants by the same errors [k, n];
            empty: those of the back-EMF constants where no bus power was recorded, else
            none.
        mode_power: mean recorded power in robot modes other than running, by mode name
            [W].
        residual: RMS of measured minus modelled power [W]; NaN without a recorded bus
            power.
        source: "bus_power" or "prior".
        reason: the terms of the model, and why they were chosen.
        drag: loss of a motor per speed, which its recorded current does not show [N m].
    """

    kind: str
    standby: float
    driver: Array
    inductance: Array
    capacitor_energy: float = 0.0
    floor: float = 0.0
    std: Mapping[str, float] = field(default_factory=dict)
    errors: Array = field(default_factory=lambda: np.zeros((0, 0)))
    torque_errors: Array = field(default_factory=lambda: np.zeros((0, 0)))
    mode_power: Mapping[str, float] = field(default_factory=dict)
    residual: float = float("nan")
    source: str = "prior"
    reason: str = ""
    drag: float = 0.0

    @property
    def motion_std(self) -> float:
        """Standard deviation of the power of a second of motion that no error explains [W]."""
        return self.std.get("motion", MOTION_STD)

    @property
    def motion_variance(self) -> float:
        """Variance of the energy per second of motion from that error, see MOTION_TIME [J^2/s]."""
        return self.motion_std**2 * MOTION_TIME

    def torque_constant_errors(self, back_emf_constant: Array) -> Array:
        """Relative changes of the torque constants by each error of `errors` [k, n].

        Unless they are known by themselves, back-EMF constants [n], V s/rad, follow from
        the torque constants in models without bus power, and both have the same errors.
        """
        n = len(back_emf_constant)
        if self.torque_errors.size:
            return self.torque_errors
        relative = np.zeros((len(self.errors), n))
        if self.source == "prior" and self.errors.size:
            of_back_emf = self.errors[:, 1 + n : 1 + 2 * n]
            np.divide(
                of_back_emf, back_emf_constant, out=relative, where=back_emf_constant > 0
            )
        return relative


# DrivePowers: torques, currents and powers of an arm over samples, with their
# uncertainty.


@dataclass(frozen=True)
class DrivePowers:
    """Torques, currents and powers over samples; [samples, n] unless stated otherwise.

    Attributes:
        motor_torque: motor side [N m].
        current: [A].
        mechanical_power: motor speed times motor torque, friction included [W].
        copper_loss: [W].
        friction_loss: friction's part of the mechanical power [W].
        electrical_power: of the motors [W].
        driver_power, standby_power: whole arm, the first with drag [samples], W.
        demand: of the whole arm, negative while it regenerates [samples], W.
        total_power: at the supply, which takes no power back [samples], W; `BusCapacitor`
            models what the bus capacitance stores of it.
        sensitivity: change of each electrical power per standard deviation of each
            independent parameter error [samples, n, errors], W. The standard deviation of
            an energy is the norm over the errors of the time integral of this; that of a
            power the norm of this itself. No errors if they were not requested.
        total_sensitivity: the same for the total power [samples, all errors], W.
        current_std: standard deviation of predicted currents, scatter of single samples
            included [samples, n], A; empty for measured currents or if not requested.
    """

    motor_torque: Array
    current: Array
    mechanical_power: Array
    copper_loss: Array
    friction_loss: Array
    electrical_power: Array
    driver_power: Array
    standby_power: Array
    demand: Array
    total_power: Array
    sensitivity: Array
    total_sensitivity: Array
    current_std: Array

    @property
    def total_power_std(self) -> Array:
        """Standard deviation of the total power from the model's parameters [samples], W."""
        return np.asarray(np.linalg.norm(self.total_sensitivity, axis=-1))


# Uncertainty of the motor currents that a model predicts from motion.

PREDICTION_ERROR = 0.01
"""Error of the current of an unrecorded motion as a share of it, beyond the parameters'
standard deviations: nominal masses, the form of the friction law."""
STANDSTILL_ERROR = 0.5  # unknown share of a joint's Coulomb friction at standstill


class CurrentErrors(NamedTuple):
    """Change of predicted currents per independent error, one standard deviation each.

    Attributes:
        own: of each of n joints [samples, p + 5], A.
        shared: of all joints per error of the bus model [samples, n, k], A.
        std: standard deviation of single samples, their scatter included [samples, n], A.
    """

    own: list[Array]
    shared: Array
    std: Array


class Drives:
    """The motors of an arm with n joints and its supply, in one session.

    Constants are arrays [n]; units and sides as in `JointModel`. Independent errors of
    the bus model (BusModel.errors) are followed by two of the session: of its standby
    power, and of the friction that all joints have in common, which changes the currents
    only. Standby power measured in the session no longer depends on the identification's
    errors. `standby_errors` [k], `resistance_errors`, `back_emf_errors` and
    `driver_errors` [k, n] and `drag_errors` [k, 1] are these by parameter,
    `torque_constant_errors` [k, n] those of the torque constants, relative.
    """

    def __init__(
        self, joints: Sequence[JointModel], bus: BusModel, session: Session
    ) -> None:
        self.bus = bus
        self._joints = joints
        self._session = session
        constants = [
            np.array([getattr(joint, name) for joint in joints]) for name in CONSTANTS
        ]
        self.gear_ratio, _, self.torque_constant = constants[:3]
        self.inertia = np.array([joint.inertia for joint in joints])
        self.load_factor = np.array([joint.load_factor for joint in joints])
        self.winding_resistance, self.back_emf_constant = constants[3:]
        frictions = [joint.friction for joint in joints]
        self.presliding = np.array([friction.presliding for friction in frictions])
        self.friction = FrictionBank(frictions, self.gear_ratio)
        width = 2 + 3 * len(joints)
        errors = np.zeros((len(bus.errors) + 2, width))
        errors[:-2] = bus.errors.reshape(-1, width)
        if session.still_seconds > 0:
            errors[:, 0] = 0.0
        errors[-2, 0] = session.standby_std
        self.standby_errors = errors[:, 0]
        n = len(joints)
        (
            self.resistance_errors,
            self.back_emf_errors,
            self.driver_errors,
            self.drag_errors,
        ) = np.split(errors[:, 1:], [n, 2 * n, 3 * n], axis=1)
        self.torque_constant_errors = np.zeros((len(errors), n))
        self.torque_constant_errors[:-2] = bus.torque_constant_errors(
            self.back_emf_constant
        )

    @cached_property
    def _current_coefficients(self) -> list[tuple[Array, Array, Array]]:
        """Changes of the coefficients of each joint's current.

        These are (load factor / k_t, friction parameters / k_t).

        Per error of the parameters [1 + p, 1 + p], per error shared by all joints [1 + p,
        k], and by the friction of the session, apart from what all joints have in common
        [p, 2].

        Torque and back-EMF constants share errors where bus power does not show the
        latter: a motor with a larger torque constant takes less current for the same
        torque, and the converted power, speed times torque, hardly changes.
        """
        session = self._session
        found = []
        anchored = session.moving_seconds > 0
        roots = session.friction_root
        common = 0.0 if anchored else COMMON_FRICTION
        constant_errors = self.torque_constant_errors.T
        for j, (joint, errors) in enumerate(
            zip(self._joints, constant_errors, strict=True)
        ):
            covariance = joint.current_covariance
            root = joint.current_root
            scaled = scaled_parameters(joint.friction.law.parameters)
            # Change of the coefficients per relative change of k_t; none of the friction
            # whose currents were measured in the session.
            response = np.zeros(1 + len(scaled))
            if covariance.size and covariance[0, 0] > 0:
                of_load = joint.load_factor / joint.torque_constant
                response = -covariance[:, 0] / covariance[0, 0] * of_load
                if anchored:
                    response[1:][scaled] = 0.0
            variance = float(errors @ errors)
            if response.any() and variance:  # without what a shared error of k_t explains
                # what any error explains
                whole = covariance[:, 0] / np.sqrt(covariance[0, 0])
                known = min(variance * response[0] ** 2 / covariance[0, 0], 1.0)
                root = square_root(covariance - known * np.outer(whole, whole))
            names = joint.friction.law.parameters
            usual = joint.friction.values / session.friction_factors(j, names)
            error = (
                (usual * friction_directions(names)).T / joint.torque_constant @ roots[j]
            )
            shared = np.outer(response, errors)
            shared[1:, -1] = np.sqrt(common) * error[:, 0]
            found.append((root, shared, error * [np.sqrt(1.0 - common), 1.0]))
        return found

    def current_errors(
        self,
        qd: Array,
        qdd: Array,
        load: Array,
        current: Array,
        temperature: Array | None,
        direction: Array | None,
    ) -> CurrentErrors:
        """Errors of the currents that a motion is predicted to need [samples, n].

        They come from the parameters and the reflected inertia, the model's form, the
        session's friction, and the friction that remains in a joint at rest. Their number
        does not depend on the session. Load, temperature and direction are as for
        `FrictionBank.torque`.
        """
        terms = self.friction.regressors(qd, load, temperature, direction)
        breakaway = self.friction.torque(np.full_like(qd, STILL_SPEED), load, temperature)
        standing = np.exp(-np.square(qd / STILL_SPEED))
        rest = STANDSTILL_ERROR * standing * breakaway / self.torque_constant
        motor = load / self.gear_ratio
        named = ("actual_inertia", "reflected_inertia")
        inertia_std = np.array(
            [
                joint.std.get(named[joint.actual_inertia is None], 0.0)
                for joint in self._joints
            ]
        )
        inertia = inertia_std / (self.gear_ratio * self.torque_constant) * qdd
        own = []
        every = []
        for j, (root, shared, session) in enumerate(self._current_coefficients):
            columns = np.column_stack([motor[:, j], terms[j]])
            form = PREDICTION_ERROR * current[:, j]
            parts = [columns @ root, inertia[:, j], form, terms[j] @ session, rest[:, j]]
            own.append(np.column_stack(parts))
            every.append(columns @ shared)
        of_all = np.stack(every, axis=1)
        scatter = np.array([joint.current_residual for joint in self._joints])
        squares = np.stack([np.square(part).sum(axis=1) for part in own], axis=1)
        squares += np.square(of_all).sum(axis=2) + np.square(scatter)
        return CurrentErrors(own, of_all, np.sqrt(squares))

    def powers(
        self,
        current: Array,
        qd: Array,
        friction: Array,
        *,
        std: bool,
        errors: CurrentErrors | None = None,
        current_rate: Array | None = None,
    ) -> DrivePowers:
        """Powers of the motors and of the whole arm.

        From motor currents, A, joint velocities, rad/s, and motor-side friction torques,
        N m, [samples, n] each; `std` computes the sensitivities. Measured currents have
        no errors. `current_rate` [samples, n], A/s, adds EcBot's inductive term.
        """
        bus = self.bus
        motor_speed = self.gear_ratio * qd
        torque = self.torque_constant * current
        copper = self.winding_resistance * current**2
        electrical = copper + self.back_emf_constant * motor_speed * current
        driver = np.abs(current) @ bus.driver + bus.drag * np.abs(motor_speed).sum(axis=1)
        if current_rate is not None:
            driver = driver + (current * current_rate) @ bus.inductance
        idle = np.full(len(qd), bus.standby)
        demand = idle + electrical.sum(axis=1) + driver
        sensitivity = np.zeros((*qd.shape, 0))
        of_total = np.zeros((len(qd), 0))
        if std:
            sensitivity, of_total = self._sensitivities(current, motor_speed, errors)
        return DrivePowers(
            motor_torque=torque,
            current=current,
            mechanical_power=motor_speed * torque,
            copper_loss=copper,
            friction_loss=motor_speed * friction,
            electrical_power=electrical,
            driver_power=driver,
            standby_power=idle,
            demand=demand,
            total_power=np.maximum(demand, bus.floor),
            sensitivity=sensitivity,
            total_sensitivity=of_total,
            current_std=np.zeros((0, 0)) if errors is None else errors.std,
        )

    def _sensitivities(
        self, current: Array, motor_speed: Array, errors: CurrentErrors | None
    ) -> tuple[Array, Array]:
        """Sensitivities of the electrical powers [samples, n, k] and of the total [samples, K]."""
        square = current**2
        product = motor_speed * current
        shared = square[..., None] * self.resistance_errors.T
        shared += product[..., None] * self.back_emf_errors.T
        own: list[Array] = []
        if errors is not None:
            slope = (
                2 * self.winding_resistance * current
                + self.back_emf_constant * motor_speed
            )
            own = [slope[:, [j]] * part for j, part in enumerate(errors.own)]
            shared += slope[..., None] * errors.shared
        most_own = max((part.shape[1] for part in own), default=0)
        each = np.zeros((*current.shape, most_own + shared.shape[2]))
        for j, part in enumerate(own):
            each[:, j, : part.shape[1]] = part
        each[:, :, most_own:] = shared
        total = (
            shared.sum(axis=1)
            + np.abs(current) @ self.driver_errors.T
            + self.standby_errors
        )
        total += np.abs(motor_speed).sum(axis=1, keepdims=True) @ self.drag_errors.T
        return each, np.concatenate([*own, total], axis=1)
