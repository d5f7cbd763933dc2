"""EnergyModel: what identification found out about an arm, and what follows from it.

Sign and side: torques, friction and constants of the drives are motor side unless said; powers
are positive where they flow into the arm. Per motor (Clochiatti et al., Robotica 2024, eq. 10-23)

    torque = k_t I = (link dynamics + reflected inertia * qdd) / N + friction,   w = N qd
    electrical power = R I^2 + k_b w I,   mechanical power = w * torque

and for the whole arm (Heredia et al., EcBot, eq. 13-21)

    P = max(floor, standby + sum over joints (electrical + driver * |I| + L I dI/dt)).

R and k_b are energy constants: whatever the drive's phase convention, R I^2 is the copper loss and
k_b w I what the motor turns into mechanical power, with I the current that RTDE reports.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.friction import SMOOTHING, Friction, FrictionBank, presliding
from ur_energy_model.model.robots import RobotDescription, load_robot
from ur_energy_model.model.setup import Setup

Array = NDArray[np.float64]


@dataclass(frozen=True)
class JointModel:
    """Identified constants of one joint.

    Attributes:
        name: joint name.
        gear_ratio: motor turns per joint turn.
        reflected_inertia: of motor and reducer, joint side [kg m^2].
        torque_constant: motor torque per RTDE ampere [N m/A].
        winding_resistance: copper loss per RTDE ampere squared [ohm].
        back_emf_constant: converted power per RTDE ampere and motor speed [V s/rad].
        friction: law and parameters, motor side.
        std: standard deviations by quantity (the names above and the friction parameters).
        source: the stage each quantity comes from: "target_moment", "current", "bus_power",
            "prior" or "given".
        current_covariance: covariance [1 + p, 1 + p] of (1/k_t, friction parameters / k_t), the
            coefficients that give current from torque.
        current_residual: RMS of the measured minus the modelled current while moving [A].
        friction_reason: why this friction law.
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


@dataclass(frozen=True)
class BusModel:
    """From motors to the supply.

    Attributes:
        kind: "physical" or "ecbot".
        standby: power at standstill, brakes released [W].
        driver: driver loss per ampere [n], W/A.
        inductance: of the windings [n], H (EcBot's L I dI/dt; zero in the physical model).
        floor: lowest power the supply can show [W]; it cannot take power back.
        std: standard deviations of "standby" and, in common, "driver".
        errors: independent parameter errors of one standard deviation each [k, 1 + 3 n]: changes
            of standby, winding resistances, back-EMF constants and driver losses that go together.
        mode_power: mean power in robot modes other than running, where recorded, by mode name [W].
        residual: RMS of measured minus modelled power [W], NaN where no bus power was recorded.
        source: "bus_power" or "prior".
        reason: which terms entered, and why.
    """

    kind: str
    standby: float
    driver: Array
    inductance: Array
    floor: float = 0.0
    std: Mapping[str, float] = field(default_factory=dict)
    errors: Array = field(default_factory=lambda: np.zeros((0, 0)))
    mode_power: Mapping[str, float] = field(default_factory=dict)
    residual: float = float("nan")
    source: str = "prior"
    reason: str = ""


@dataclass(frozen=True)
class Prediction:
    """Torques, currents and powers over samples; [samples, n] unless said.

    Attributes:
        motor_torque: motor side [N m].
        current: [A].
        mechanical_power: motor speed times motor torque, friction included [W].
        copper_loss: [W].
        friction_loss: the part of mechanical power that friction takes [W].
        electrical_power: of the motors [W].
        driver_power, standby_power, total_power: whole arm [samples], W.
        sensitivity: change of each electrical power per standard deviation of each independent
            parameter error [samples, n, errors], W. The deviation of an energy is the norm over
            the errors of the time integral of this; that of a power the norm of this itself.
            No errors where it was not asked for.
        total_sensitivity: the same for the total power [samples, all errors], W.
    """

    motor_torque: Array
    current: Array
    mechanical_power: Array
    copper_loss: Array
    friction_loss: Array
    electrical_power: Array
    driver_power: Array
    standby_power: Array
    total_power: Array
    sensitivity: Array
    total_sensitivity: Array

    @property
    def electrical_power_std(self) -> Array:
        """Standard deviation of the electrical powers [samples, n], W."""
        return np.asarray(np.linalg.norm(self.sensitivity, axis=-1))

    @property
    def total_power_std(self) -> Array:
        """Standard deviation of the total power from the model's parameters [samples], W."""
        return np.asarray(np.linalg.norm(self.total_sensitivity, axis=-1))


@dataclass(frozen=True)
class EnergyModel:
    """The identified model of one arm.

    Attributes:
        robot: name of the robot description.
        setup: mounting and payload of the identification recordings.
        setup_source: "given", "rtde" or "estimated".
        joints: n joint models.
        bus: whole-arm power model.
        fit, validation: metrics of the recordings fitted and held out, as METRICS mappings.
        provenance: what made the model.
    """

    robot: str
    setup: Setup
    setup_source: str
    joints: tuple[JointModel, ...]
    bus: BusModel
    fit: tuple[Mapping[str, Any], ...] = ()
    validation: tuple[Mapping[str, Any], ...] = ()
    provenance: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def load(cls, path: str | Path) -> EnergyModel:
        """Read a model file.

        Raises:
            ModelFileError: names the line and key to mend.
        """
        from ur_energy_model.model.model_file import load_model

        return load_model(path)

    def save(self, path: str | Path) -> None:
        """Write a model file atomically."""
        from ur_energy_model.model.model_file import save_model

        save_model(self, path)

    @property
    def dof(self) -> int:
        """Number of joints n."""
        return len(self.joints)

    def with_setup(self, setup: Setup, source: str = "given") -> EnergyModel:
        """The same arm, mounted or loaded otherwise."""
        return replace(self, setup=setup, setup_source=source)

    def predict(
        self,
        q: Array,
        qd: Array,
        qdd: Array,
        *,
        dynamics: ArmDynamics | None = None,
        robot: RobotDescription | None = None,
        setup: Setup | None = None,
        temperature: Array | None = None,
        std: bool = True,
    ) -> Prediction:
        """Currents and powers of a motion.

        Args:
            q: joint positions [samples, n], rad.
            qd: joint velocities [samples, n], rad/s.
            qdd: joint accelerations [samples, n], rad/s^2.
            dynamics: of the arm in its setup; made from robot and setup where it is None
                (keep it over calls: making it costs a millisecond).
            robot: description of the arm, by default the one named in the model.
            setup: mounting and payload, by default those of the model.
            temperature: joint temperatures [n] or [samples, n], degC; None if unknown.
            std: whether to work out the sensitivities that standard deviations need.
        """
        if dynamics is None:
            dynamics = self.dynamics(robot=robot, setup=setup)
        link = dynamics.inverse_dynamics(q, qd, qdd)
        return self.from_link_torque(
            link, qd, qdd, temperature=temperature, direction=self.direction(q, qd), std=std
        )

    def direction(self, q: Array, qd: Array, start: Array | None = None) -> Array | None:
        """Direction of Coulomb friction with the memory of joints at rest [samples, n].

        None where no joint has a presliding travel, or for a single sample without a start.

        Args:
            q: joint positions [samples, n], rad, without gaps.
            qd: joint velocities [samples, n], rad/s.
            start: direction before the first sample [n]; from the speed where None.
        """
        c = self._constants
        if not c.presliding.any() or (start is None and len(q) < 2):
            return None
        if start is None:
            start = np.tanh(qd[0] / SMOOTHING)
        return presliding(q, qd, c.presliding, start)[0]

    def dynamics(
        self, *, robot: RobotDescription | None = None, setup: Setup | None = None
    ) -> ArmDynamics:
        """Rigid-body dynamics of the arm in a setup (the model's own by default)."""
        description = load_robot(self.robot) if robot is None else robot
        return ArmDynamics(description, self.setup if setup is None else setup)

    def from_link_torque(
        self,
        link_torque: Array,
        qd: Array,
        qdd: Array,
        *,
        temperature: Array | None = None,
        direction: Array | None = None,
        std: bool = True,
    ) -> Prediction:
        """Currents and powers where the links' torque is known.

        Args:
            link_torque: of links and payload, joint side [samples, n], N m.
            qd: joint velocities [samples, n], rad/s.
            qdd: joint accelerations [samples, n], rad/s^2.
            temperature: joint temperatures [n] or [samples, n], degC; None if unknown.
            direction: of Coulomb friction, as `direction` gives it; from the speed where None.
            std: whether to work out the sensitivities that standard deviations need.
        """
        c = self._constants
        load = link_torque + c.reflected_inertia * qdd
        friction = c.friction.torque(qd, load, temperature, direction)
        current = (load / c.gear_ratio + friction) / c.torque_constant
        spread: list[Array] | None = None
        if std:
            terms = c.friction.regressors(qd, load, temperature, direction)
            spread = [
                np.column_stack([load[:, j] / c.gear_ratio[j], terms[j]]) @ c.current_roots[j]
                for j in range(self.dof)
            ]
        return self._powers(current, qd, friction, spread, None, None)

    def joint_power(
        self,
        qd: Array,
        current: Array,
        *,
        load: Array | None = None,
        temperature: Array | None = None,
        standby: float | None = None,
        current_rate: Array | None = None,
        std: bool = True,
    ) -> Prediction:
        """Powers from MEASURED currents (no rigid-body dynamics: a few microseconds a call).

        Args:
            qd: joint velocities [samples, n], rad/s.
            current: measured motor currents [samples, n], A.
            load: torque without friction, joint side [samples, n], N m; where it is None,
                friction that depends on load takes the torque of the current.
            temperature: joint temperatures [n] or [samples, n], degC.
            standby: standby power in place of the model's [W].
            current_rate: dI/dt [samples, n], A/s; only EcBot's inductive term needs it.
            std: whether to work out the sensitivities that standard deviations need.
        """
        c = self._constants
        if load is None:
            load = current * (c.torque_constant * c.gear_ratio)
        friction = c.friction.torque(qd, load, temperature)
        spread = [np.zeros((len(qd), 0))] * self.dof if std else None
        return self._powers(current, qd, friction, spread, standby, current_rate)

    @cached_property
    def _constants(self) -> _Constants:
        return _Constants.of(self)

    def _powers(
        self,
        current: Array,
        qd: Array,
        friction: Array,
        spread: list[Array] | None,
        standby: float | None,
        current_rate: Array | None,
    ) -> Prediction:
        """The split of powers; `spread` is the change of current per unit error [samples, k]."""
        c = self._constants
        motor_speed = c.gear_ratio * qd
        torque = c.torque_constant * current
        copper = c.winding_resistance * current**2
        electrical = copper + c.back_emf_constant * motor_speed * current
        driver = np.abs(current) @ self.bus.driver
        idle = np.full(len(qd), self.bus.standby if standby is None else standby)
        total = idle + electrical.sum(axis=1) + driver
        if current_rate is not None:
            total = total + (current * current_rate) @ self.bus.inductance
        each, whole = (
            (np.zeros((*qd.shape, 0)), np.zeros((len(qd), 0)))
            if spread is None
            else self._sensitivities(current, motor_speed, spread)
        )
        return Prediction(
            motor_torque=torque,
            current=current,
            mechanical_power=motor_speed * torque,
            copper_loss=copper,
            friction_loss=motor_speed * friction,
            electrical_power=electrical,
            driver_power=driver,
            standby_power=idle,
            total_power=np.maximum(total, self.bus.floor),
            sensitivity=each,
            total_sensitivity=whole,
        )

    def _sensitivities(
        self, current: Array, motor_speed: Array, spread: list[Array]
    ) -> tuple[Array, Array]:
        """Sensitivities of the electrical powers [samples, n, k] and of the total [samples, K]."""
        c = self._constants
        slope = 2 * c.winding_resistance * current + c.back_emf_constant * motor_speed
        own = [slope[:, [j]] * spread[j] for j in range(self.dof)]
        square, product = current**2, motor_speed * current
        shared = square[..., None] * c.resistance_errors + product[..., None] * c.back_emf_errors
        each = np.zeros((*current.shape, max(part.shape[1] for part in own) + shared.shape[2]))
        for j, part in enumerate(own):
            each[:, j, : part.shape[1]] = part
        each[:, :, each.shape[2] - shared.shape[2] :] = shared
        bus = shared.sum(axis=1) + np.abs(current) @ c.driver_errors + c.standby_errors
        return each, np.concatenate([*own, bus], axis=1)


@dataclass(frozen=True)
class _Constants:
    """The joints' constants as arrays [n], for array arithmetic."""

    gear_ratio: Array
    reflected_inertia: Array
    torque_constant: Array
    winding_resistance: Array
    back_emf_constant: Array
    standby_errors: Array
    resistance_errors: Array
    back_emf_errors: Array
    driver_errors: Array
    presliding: Array
    friction: FrictionBank
    current_roots: tuple[Array, ...]

    @classmethod
    def of(cls, model: EnergyModel) -> _Constants:
        def each(name: str) -> Array:
            return np.array([getattr(joint, name) for joint in model.joints])

        n = model.dof
        errors = model.bus.errors.reshape(-1, 1 + 3 * n) if model.bus.errors.size else None
        if errors is None:
            errors = np.zeros((0, 1 + 3 * n))
        by_joint = errors[:, 1:].reshape(-1, 3, n).transpose(1, 2, 0)
        return cls(
            gear_ratio=each("gear_ratio"),
            reflected_inertia=each("reflected_inertia"),
            torque_constant=each("torque_constant"),
            winding_resistance=each("winding_resistance"),
            back_emf_constant=each("back_emf_constant"),
            standby_errors=errors[:, 0],
            resistance_errors=by_joint[0],
            back_emf_errors=by_joint[1],
            driver_errors=by_joint[2],
            presliding=np.array([joint.friction.presliding for joint in model.joints]),
            friction=FrictionBank([joint.friction for joint in model.joints], each("gear_ratio")),
            current_roots=tuple(_root(joint) for joint in model.joints),
        )


def _root(joint: JointModel) -> Array:
    """Square root [1 + p, 1 + p] of the covariance of the coefficients that give current."""
    size = 1 + len(joint.friction.law.parameters)
    if joint.current_covariance.size == 0:
        return np.zeros((size, size))
    values, vectors = np.linalg.eigh(joint.current_covariance)
    return np.asarray(vectors * np.sqrt(np.clip(values, 0.0, None)))
