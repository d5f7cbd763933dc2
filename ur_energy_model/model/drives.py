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

from ur_energy_model.model.drive_errors import (
    FRICTION_COEFFICIENTS,
    LOAD_COEFFICIENT,
    BusErrorLayout,
    LoadShare,
)
from ur_energy_model.model.friction import Friction, FrictionBank
from ur_energy_model.model.presliding import STILL_SPEED
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
        name: name of the joint, as in the robot's URDF.
        gear_ratio: motor turns per joint turn.
        reflected_inertia: reflected inertia of motor and reducer, joint side [kg m^2]; in
            target_moment.
        torque_constant: motor torque per RTDE ampere [N m/A].
        winding_resistance: copper loss per RTDE ampere squared [ohm].
        back_emf_constant: converted power per RTDE ampere and motor speed [V s/rad].
        friction: law and parameters, motor side.
        std: standard deviations by quantity (the names above and the friction
            parameters).
        source: the stage each quantity comes from: "target_moment", "current",
            "bus_power", "prior" or "given".
        current_covariance: covariance [1 + p, 1 + p] of (load factor / k_t, friction
            parameters / k_t), the coefficients that give current from torque, at the places
            LOAD_COEFFICIENT and FRICTION_COEFFICIENTS; empty if it is unknown.
        current_residual: RMS of the measured minus the modelled current while moving [A].
        friction_reason: why this friction law was chosen.
        actual_inertia: what currents show of the arm's own reflected inertia where
            target_moment shows the inertia in the controller [kg m^2]; None elsewhere.
        load_factor: torque of links, payload and rotor over the torque by their published
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
        if self.actual_inertia is None:
            return self.reflected_inertia
        return self.actual_inertia

    @property
    def inertia_std(self) -> float:
        """Standard deviation of `inertia` [kg m^2]."""
        is_actual = self.actual_inertia is not None
        return self.std.get("actual_inertia" if is_actual else "reflected_inertia", 0.0)

    @property
    def constants(self) -> dict[str, float]:
        """The constants other than friction, by attribute name."""
        return {name: getattr(self, name) for name in CONSTANTS}

    @property
    def current_coefficients(self) -> Array:
        """Coefficients [1 + p] that give current from torque, A/(N m), see `current_covariance`."""
        return np.append(self.load_factor, self.friction.values) / self.torque_constant

    @property
    def load_variance(self) -> float:
        """Variance of load factor / k_t [(A/(N m))^2]; 0 if it is unknown."""
        if self.current_covariance.size == 0:
            return 0.0
        return float(self.current_covariance[LOAD_COEFFICIENT, LOAD_COEFFICIENT])

    @property
    def current_root(self) -> Array:
        """Square root [1 + p, 1 + p] of `current_covariance`; zeros if it is unknown."""
        size = 1 + len(self.friction.law.parameters)
        if self.current_covariance.size == 0:
            return np.zeros((size, size))
        return square_root(self.current_covariance)

    def with_friction_scaled(self, factor: float | Array) -> JointModel:
        """The joint with the part of its friction that depends on the session multiplied.

        Args:
            factor: factor for all parameters of this part, or for each parameter of the law [p].
        """
        names = self.friction.law.parameters
        factors = np.where(scaled_parameters(self.friction.law), factor, 1.0)
        covariance = self.current_covariance
        if covariance.size:
            of_coefficients = np.append(1.0, factors)
            covariance = covariance * np.outer(of_coefficients, of_coefficients)
        parameters = dict(self.friction.parameters)
        std = dict(self.std)
        for name, of_parameter in zip(names, factors.tolist(), strict=True):
            parameters[name] *= of_parameter
            if name in std:
                std[name] *= of_parameter
        return replace(
            self,
            friction=replace(self.friction, parameters=parameters),
            std=std,
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
"""Error of motion: standard deviation of the mean power of a second of motion, less the
power of standstill, that errors of the parameters do not explain [W]; for arms without a
recording that shows it. Four arms have 0.4 to 1.0 W."""
MOTION_TIME = 2.0
"""Time for which the error of motion stays the same [s]; motions apart by more have
independent errors. In means over 2, 4 and 8 s of motion, recordings of four arms have
0.87, 0.60 and 0.48 of the error of a second, simulated ones 0.75, 0.67 and 0.40; the
model, with MOTION_COMMON, has 1.04, 0.77 and 0.58."""
MOTION_COMMON = 0.3
"""Share of the error of motion that all motions of the model's own session have in common,
because programs repeat their motions. After 28 s of repeated motion, a UR3e has 0.4 of
the error of a second; no recording has more motion."""
MOTION_OF_SESSION = 0.7
"""The same in another session, in which windings and gears have other temperatures. It is the
error of 3 and 6 s of motion on another day, and of 3 to 8 s on other arms, over the error of
a second."""


@dataclass(frozen=True)
class BusModel:
    """The power from the motors to the supply, for n joints.

    Attributes:
        kind: "physical", or the name of a power model of papers.
        standby: power at standstill, brakes released [W].
        driver: driver loss per ampere [n], W/A.
        inductance: inductance of the windings [n], H (EcBot's L I dI/dt; zero in the
            physical model).
        capacitor_energy: largest regenerated energy that the bus capacitance stores [J].
        floor: lowest power that the supply delivers [W]; it cannot take power back.
        std: standard deviations of "standby", of "driver", one for all joints, and of the
            mean power of a "motion", see MOTION_STD.
        errors: changes of the parameters by k independent errors, one standard deviation
            each [k, 3 n + 2], with the columns of `BusErrorLayout`: of the standby power
            [W], n resistances [ohm], n back-EMF constants [V s/rad], n driver losses [W/A]
            and the drag [N m]; empty if there are none.
        torque_errors: relative changes of the torque constants by the same errors [k, n].
            If empty, they equal the relative changes of the back-EMF constants where no
            bus power was recorded, and are zero elsewhere.
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
        """Variance of the energy per second of motion from this error, see MOTION_TIME [J^2/s]."""
        return self.motion_std**2 * MOTION_TIME

    def torque_constant_errors(self, back_emf_constant: Array) -> Array:
        """Relative changes of the torque constants by each error of `errors` [k, n].

        In models without bus power, back-EMF constants follow from the torque constants,
        and both have the same relative errors.

        Args:
            back_emf_constant: back-EMF constants, motor side [n], V s/rad.
        """
        n = len(back_emf_constant)
        if self.torque_errors.size:
            return self.torque_errors
        relative = np.zeros((len(self.errors), n))
        if self.source == "prior" and self.errors.size:
            of_back_emf = self.errors[:, BusErrorLayout(n).back_emf]
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
        motor_torque: torque of the motors, motor side [N m].
        current: currents of the motors [A].
        mechanical_power: motor speed times motor torque, friction included [W].
        copper_loss: loss in the windings [W].
        friction_loss: friction's part of the mechanical power [W].
        electrical_power: electrical power of the motors [W].
        driver_power: power of all drivers, and drag [samples], W.
        standby_power: standby power of the whole arm [samples], W.
        demand: power demand of the whole arm, negative while it regenerates [samples], W.
        total_power: power at the supply, which takes no power back [samples], W;
            `BusCapacitor` models what the bus capacitance stores of the power fed back.
        sensitivity: change of each electrical power per standard deviation of each
            independent parameter error [samples, n, errors], W. The standard deviation of
            a power is the norm of its sensitivity over the errors; the standard deviation
            of an energy is the norm of the time integral of the sensitivity. No errors if
            they were not requested.
        total_sensitivity: sensitivity of the total power [samples, all errors], W.
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


# Uncertainty of the motor currents that a model predicts from motion.

PREDICTION_ERROR = 0.01
"""Relative error of the predicted current of a motion, beyond the standard deviations of the
parameters: nominal masses, and the form of the friction law."""
STANDSTILL_ERROR = 0.5  # unknown share of a joint's Coulomb friction at standstill


_OF_SESSION = 2
"""Number of errors of the session, behind the errors of the bus model: see `Drives`."""
_STANDBY_OF_SESSION = -2
_COMMON_FRICTION_OF_SESSION = -1
"""Places of the errors of the session among the independent errors of `Drives`."""


class CurrentErrors(NamedTuple):
    """Change of predicted currents per independent error, one standard deviation each.

    Attributes:
        own: sensitivities of each of n joints to its own errors [samples, p + 5], A.
        shared: sensitivities of all joints per error of the bus model [samples, n, k], A.
        std: standard deviation of single samples, their scatter included [samples, n], A.
    """

    own: list[Array]
    shared: Array
    std: Array


class Drives:
    """The motors of an arm with n joints and its supply, in one session.

    There are k independent errors, one standard deviation each: the errors of the bus model
    (`BusModel.errors`), and behind them two errors of the session. The first one changes its
    standby power; the second one is the friction that all joints have in common, and changes
    the currents only. Standby power that was measured in the session does not depend on the
    errors of the identification.

    Constants of the joints are attributes with the names of `JointModel`, arrays [n] with
    its units and sides.

    Args:
        joints: models of the joints.
        bus: power model of the arm.
        session: standby power and friction.

    Attributes:
        friction: friction of all joints.
        standby_errors: changes of the standby power by the errors [k], W.
        resistance_errors: changes of the winding resistances [k, n], ohm.
        back_emf_errors: changes of the back-EMF constants [k, n], V s/rad.
        driver_errors: changes of the driver losses [k, n], W/A.
        drag_errors: changes of the drag [k, 1], N m.
        torque_constant_errors: relative changes of the torque constants [k, n].
    """

    def __init__(
        self, joints: Sequence[JointModel], bus: BusModel, session: Session
    ) -> None:
        self.bus = bus
        self._joints = joints
        self._session = session
        self.gear_ratio = np.array([joint.gear_ratio for joint in joints])
        self.torque_constant = np.array([joint.torque_constant for joint in joints])
        self.winding_resistance = np.array([joint.winding_resistance for joint in joints])
        self.back_emf_constant = np.array([joint.back_emf_constant for joint in joints])
        self.inertia = np.array([joint.inertia for joint in joints])
        self.load_factor = np.array([joint.load_factor for joint in joints])
        frictions = [joint.friction for joint in joints]
        self.presliding = np.array([friction.presliding for friction in frictions])
        self.friction = FrictionBank(frictions, self.gear_ratio)
        n = len(joints)
        layout = BusErrorLayout(n)
        errors = np.zeros((len(bus.errors) + _OF_SESSION, layout.size))
        errors[:-_OF_SESSION] = bus.errors.reshape(-1, layout.size)
        if session.still_seconds > 0:
            errors[:, layout.standby] = 0.0
        errors[_STANDBY_OF_SESSION, layout.standby] = session.standby_std
        self.standby_errors = errors[:, layout.standby]
        self.resistance_errors = errors[:, layout.resistance]
        self.back_emf_errors = errors[:, layout.back_emf]
        self.driver_errors = errors[:, layout.driver]
        self.drag_errors = errors[:, [layout.drag]]
        self.torque_constant_errors = np.zeros((len(errors), n))
        self.torque_constant_errors[:-_OF_SESSION] = bus.torque_constant_errors(
            self.back_emf_constant
        )

    @cached_property
    def _current_coefficients(self) -> list[tuple[Array, Array, Array]]:
        """Changes of the coefficients of each joint's current.

        The coefficients are `JointModel.current_coefficients`. For each joint there
        are three matrices of changes: per error of the parameters [1 + p, 1 + p]; per error
        shared by all joints [1 + p, k]; and per error of the part of the session's friction
        that the joints do not have in common [p, 2], for the coefficients of friction alone.

        Torque and back-EMF constants share errors where bus power does not show the
        back-EMF constants: a motor with a larger torque constant takes less current for the
        same torque, and the converted power, speed times torque, hardly changes.
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
            law = joint.friction.law
            root = joint.current_root
            # Change of the coefficients per relative change of k_t.
            response = np.zeros(len(root))
            if joint.load_variance > 0:
                load = LoadShare.of(joint.current_covariance)
                of_load = joint.load_factor / joint.torque_constant
                response = -load.gain * of_load
                # The errors that all joints share explain a part of the load's variance.
                shared_variance = float(errors @ errors) * of_load**2
                if shared_variance:
                    left = max(load.variance - shared_variance, 0.0)
                    root = square_root(load.with_deviation(np.sqrt(left)))
                if anchored:
                    # Friction currents measured in the session do not change with k_t.
                    response[FRICTION_COEFFICIENTS][scaled_parameters(law)] = 0.0
            usual = joint.friction.values / session.friction_factors(j, law)
            directions = (usual * friction_directions(law)).T / joint.torque_constant
            of_session = directions @ roots[j]
            shared = np.outer(response, errors)
            # The joints have a part of the scale of their friction in common, no tilt.
            scale = of_session[:, 0]
            shared[FRICTION_COEFFICIENTS, _COMMON_FRICTION_OF_SESSION] = (
                np.sqrt(common) * scale
            )
            own_of_session = of_session * [np.sqrt(1.0 - common), 1.0]
            found.append((root, shared, own_of_session))
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
        """Errors of the currents that a motion is predicted to need.

        Sources of the errors are the parameters, the reflected inertia, the form of the
        model, the friction of the session, and the friction that remains in a joint at rest.
        The number of errors does not depend on the session.

        Args:
            qd: joint velocities [samples, n], rad/s.
            qdd: joint accelerations [samples, n], rad/s^2.
            load: torque without friction, joint side [samples, n], N m.
            current: predicted currents [samples, n], A.
            temperature: temperatures of the joints, see `FrictionBank`.
            direction: direction of Coulomb friction, see `FrictionBank`.
        """
        terms = self.friction.regressors(qd, load, temperature, direction)
        breakaway = self.friction.torque(np.full_like(qd, STILL_SPEED), load, temperature)
        standing = np.exp(-np.square(qd / STILL_SPEED))
        rest = STANDSTILL_ERROR * standing * breakaway / self.torque_constant
        motor = load / self.gear_ratio
        inertia_std = np.array([joint.inertia_std for joint in self._joints])
        inertia = inertia_std / (self.gear_ratio * self.torque_constant) * qdd
        own = []
        of_all = []
        for j, (root, shared, session) in enumerate(self._current_coefficients):
            columns = np.column_stack([motor[:, j], terms[j]])
            own_errors = [
                columns @ root,
                inertia[:, j],
                PREDICTION_ERROR * current[:, j],
                terms[j] @ session,
                rest[:, j],
            ]
            own.append(np.column_stack(own_errors))
            of_all.append(columns @ shared)
        shared_errors = np.stack(of_all, axis=1)
        scatter = np.array([joint.current_residual for joint in self._joints])
        variance = np.stack([np.square(errors).sum(axis=1) for errors in own], axis=1)
        variance += np.square(shared_errors).sum(axis=2) + np.square(scatter)
        return CurrentErrors(own, shared_errors, np.sqrt(variance))

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

        Args:
            current: currents of the motors [samples, n], A.
            qd: joint velocities [samples, n], rad/s.
            friction: friction torque, motor side [samples, n], N m.
            std: whether the sensitivities are computed.
            errors: errors of the currents; None for measured ones.
            current_rate: rate of change of the currents [samples, n], A/s, for EcBot's
                inductive term; None without it.
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
            # Change of the electrical power per change of the current.
            of_copper = 2 * self.winding_resistance * current
            slope = of_copper + self.back_emf_constant * motor_speed
            own = [slope[:, [j]] * of_joint for j, of_joint in enumerate(errors.own)]
            shared += slope[..., None] * errors.shared
        most_own = max((of_joint.shape[1] for of_joint in own), default=0)
        of_joints = np.zeros((*current.shape, most_own + shared.shape[2]))
        for j, of_joint in enumerate(own):
            of_joints[:, j, : of_joint.shape[1]] = of_joint
        of_joints[:, :, most_own:] = shared
        of_drivers = np.abs(current) @ self.driver_errors.T
        total = shared.sum(axis=1) + of_drivers + self.standby_errors
        total += np.abs(motor_speed).sum(axis=1, keepdims=True) @ self.drag_errors.T
        return of_joints, np.concatenate([*own, total], axis=1)
