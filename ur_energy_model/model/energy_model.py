"""EnergyModel: what identification found out about an arm, and what follows from it.

Sign and side: torques, friction and constants of the drives are motor side unless said; powers
are positive where they flow into the arm. Per motor (Clochiatti et al., Robotica 2024, eq. 10-18)

    k_t I = (link dynamics + reflected inertia * qdd) / N + friction;

powers follow from current and speed (drive.py). R and k_b are energy constants: whatever the
drive's phase convention, R I^2 is the copper loss and k_b w I what the motor turns into mechanical
power, with I the current that RTDE reports.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from ur_energy_model.model.bus_model import BusModel
from ur_energy_model.model.current_errors import CurrentErrors
from ur_energy_model.model.drive_powers import DrivePowers
from ur_energy_model.model.drives import Drives
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.friction.bank import FrictionBank
from ur_energy_model.model.friction.presliding import presliding
from ur_energy_model.model.friction.terms import SMOOTHING
from ur_energy_model.model.joint_model import JointModel
from ur_energy_model.model.link_tensors import LinkTensors
from ur_energy_model.model.payload_calibration import PayloadCalibration
from ur_energy_model.model.robots import RobotDescription, load_robot
from ur_energy_model.model.sessions import Session, SessionSpread, with_standby_error
from ur_energy_model.model.setup import Payload, Setup
from ur_energy_model.typing import Array


@dataclass(frozen=True)
class EnergyModel:
    """The identified model of one arm.

    Attributes:
        robot: name of the robot description, or path of the user's robot file.
        setup: mounting and payload of the identification recordings.
        setup_source: "given", "rtde" or "estimated".
        joints: n joint models.
        bus: whole-arm power model.
        fit, validation: metrics of the recordings fitted and held out, as METRICS mappings.
        provenance: what made the model.
        current_delay: of recorded currents behind recorded speeds [s] (alignment.py).
        link_tensors: identified with the rest; None where the robot file's are used.
        sessions: how far standby power and friction vary from session to session.
        anchored: the session that the model was anchored in; None for any session.
        payload_calibration: from recordings with a known payload; None without.
    """

    robot: str
    setup: Setup
    setup_source: str
    joints: tuple[JointModel, ...]
    bus: BusModel
    fit: tuple[Mapping[str, Any], ...] = ()
    validation: tuple[Mapping[str, Any], ...] = ()
    provenance: Mapping[str, Any] = field(default_factory=dict)
    current_delay: float = 0.0
    link_tensors: LinkTensors | None = None
    sessions: SessionSpread = field(default_factory=SessionSpread)
    anchored: Session | None = None
    payload_calibration: PayloadCalibration | None = None

    def with_payload(self, payload: Payload) -> EnergyModel:
        """The same arm with another payload on its flange."""
        return replace(self, setup=replace(self.setup, payload=payload), setup_source="given")

    @property
    def dof(self) -> int:
        """Number of joints n."""
        return len(self.joints)

    @property
    def robot_name(self) -> str:
        """Name of the robot description, also where `robot` is a path.

        Raises:
            RobotFileError: the robot file is gone or damaged.
        """
        return load_robot(self.robot).name

    @property
    def session(self) -> Session:
        """The session the model is anchored in, or what is believed of any session."""
        if self.anchored is not None:
            return self.anchored
        return Session.unanchored(self.bus.standby, self.sessions, self.dof)

    def in_session(self, session: Session) -> EnergyModel:
        """The model as it holds in one session: its standby power, its friction, their deviations.

        Friction scales are over the identified friction, whatever session the model is in. The
        number of errors in a `DrivePowers` stays.

        Args:
            session: standby power, and friction scales of the n joints.
        """
        factors = session.friction_scale / self.session.friction_scale
        joints = tuple(
            joint.with_friction_scaled(float(factor))
            for joint, factor in zip(self.joints, factors, strict=True)
        )
        bus = replace(self.bus, standby=session.standby)
        return replace(self, joints=joints, bus=bus, anchored=session)

    def predict(
        self,
        q: Array,
        qd: Array,
        qdd: Array,
        *,
        dynamics: ArmDynamics | None = None,
        temperature: Array | None = None,
        std: bool = True,
    ) -> DrivePowers:
        """Currents and powers of a motion.

        Args:
            q: joint positions [samples, n], rad.
            qd: joint velocities [samples, n], rad/s.
            qdd: joint accelerations [samples, n], rad/s^2.
            dynamics: of the arm in its setup; None takes the model's own (keep it over calls:
                making it costs a millisecond).
            temperature: joint temperatures [n] or [samples, n], degC; None if unknown.
            std: whether to work out the sensitivities that standard deviations need.
        """
        if dynamics is None:
            dynamics = self.dynamics()
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
        return ArmDynamics(self.description(robot), self.setup if setup is None else setup)

    def description(self, robot: RobotDescription | None = None) -> RobotDescription:
        """The arm by its robot file (the one named in the model by default), with the link tensors
        that were identified.
        """  # noqa: D205
        robot = load_robot(self.robot) if robot is None else robot
        return robot if self.link_tensors is None else self.link_tensors.applied_to(robot)

    def from_link_torque(
        self,
        link_torque: Array,
        qd: Array,
        qdd: Array,
        *,
        temperature: Array | None = None,
        direction: Array | None = None,
        std: bool = True,
    ) -> DrivePowers:
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
        if not std:
            return self._drives.powers(current, qd, friction)
        errors = self._current_errors(qd, qdd, load, current, temperature, direction)
        powers = self._drives.powers(current, qd, friction, spread=errors)
        return replace(powers, current_std=self._current_errors.deviation(errors))

    def joint_power(
        self,
        qd: Array,
        current: Array,
        *,
        temperature: Array | None = None,
        standby: float | None = None,
        current_rate: Array | None = None,
        std: bool = True,
    ) -> DrivePowers:
        """Powers from MEASURED currents (no rigid-body dynamics).

        Args:
            qd: joint velocities [samples, n], rad/s, at the instants of the currents
                (`SpeedAlignment` with the model's current_delay).
            current: measured motor currents [samples, n], A.
            temperature: joint temperatures [n] or [samples, n], degC.
            standby: standby power in place of the model's [W].
            current_rate: dI/dt [samples, n], A/s; only EcBot's inductive term needs it.
            std: whether to work out the sensitivities that standard deviations need.
        """
        c = self._constants
        friction = c.friction.torque_within(qd, current * c.torque_constant, temperature)
        spread = [np.zeros((len(qd), 0))] * self.dof if std else None
        return self._drives.powers(
            current, qd, friction, spread=spread, standby=standby, current_rate=current_rate
        )

    def _each(self, name: str) -> Array:
        return np.array([getattr(joint, name) for joint in self.joints])

    @cached_property
    def _constants(self) -> _Constants:
        ratio = self._each("gear_ratio")
        return _Constants(
            gear_ratio=ratio,
            reflected_inertia=self._each("reflected_inertia"),
            torque_constant=self._each("torque_constant"),
            presliding=np.array([joint.friction.presliding for joint in self.joints]),
            friction=FrictionBank([joint.friction for joint in self.joints], ratio),
        )

    @cached_property
    def _drives(self) -> Drives:
        return Drives(
            self._each("gear_ratio"),
            self._each("torque_constant"),
            self._each("winding_resistance"),
            self._each("back_emf_constant"),
            replace(self.bus, errors=with_standby_error(self.bus.errors, self.session, self.dof)),
        )

    @cached_property
    def _current_errors(self) -> CurrentErrors:
        return CurrentErrors(self.joints, self._constants.friction, self.session)


@dataclass(frozen=True)
class _Constants:
    """The joints' constants as arrays [n], made once."""

    gear_ratio: Array
    reflected_inertia: Array
    torque_constant: Array
    presliding: Array
    friction: FrictionBank
