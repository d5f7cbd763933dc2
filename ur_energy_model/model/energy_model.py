# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""EnergyModel: the identified model of an arm, from motion to currents, powers and energy.

A motion becomes power in three steps (Clochiatti et al., Robotica 2024, eq. 10-23):

    load     = torque of links and payload (dynamics.py) + reflected inertia * qdd   [joint side]
    current  = (load / gear ratio + friction) / torque constant                      [motor side]
    power    = copper loss + back-EMF power + driver loss + standby (drives.py)

`predict` takes all three, `from_link_torque` the last two; from measured currents the
last one is taken by `energy.motor_powers`. Powers are positive where they flow into the
arm.

R and k_b are energy constants: R I^2 is the copper loss and k_b w I the power that the
motor converts, with I the current that RTDE reports, whatever the drive's phase
convention.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from ur_energy_model.model.cable import Cable
from ur_energy_model.model.controller_constants import ControllerConstants
from ur_energy_model.model.drives import (
    BusModel,
    CurrentErrors,
    DrivePowers,
    Drives,
    JointModel,
)
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.presliding import FrictionDirection
from ur_energy_model.model.robots import RobotDescription, load_robot
from ur_energy_model.model.sessions import Session, SessionSpread
from ur_energy_model.model.setup import Payload, Setup
from ur_energy_model.model.wall import WallModel, generic_wall
from ur_energy_model.typing import Array

# PayloadCalibration: corrections of links and drives from recordings with a known
# payload.

LINK_PARAMETERS = 4
"""Number of inertial parameters that determine the weight of a link: mass [kg], three first moments
[kg m]."""


class CalibrationLayout:
    """Places of the values of a `PayloadCalibration` of n joints in one vector [6 n].

    Attributes:
        size: length of the vector.
        links: places of the links, one by one [4 n].
        link_gain: places of the link gains [n].
        payload_gain: places of the payload gains [n].
    """

    def __init__(self, dof: int) -> None:
        first = LINK_PARAMETERS * dof
        second = (LINK_PARAMETERS + 1) * dof
        self.size = (LINK_PARAMETERS + 2) * dof
        self.links = slice(0, first)
        self.link_gain = slice(first, second)
        self.payload_gain = slice(second, self.size)


@dataclass(frozen=True)
class PayloadCalibration:
    """Deviations of an arm's links and drives from robot file and model: a normal distribution.

    The torque that links and payload cause in joint j, measured as current times the
    model's torque constant, is

        link_gain_j * (links as published + deviations + payload_gain_j * payload).

    With a link gain of one, the torque constant agrees with the published links; with a
    payload gain of one, payload and links agree.

    Attributes:
        links: deviation of the links' masses and first moments [n, 4], kg and kg m, link
            frames; the last one includes everything on the flange of the unloaded arm.
        link_gain: gain of each joint against the links [n].
        payload_gain: gain of each joint against the payload, over `link_gain` [n].
        covariance: covariance of `vector` [6 n, 6 n].
    """

    links: Array
    link_gain: Array
    payload_gain: Array
    covariance: Array

    @classmethod
    def from_vector(cls, values: Array, covariance: Array) -> PayloadCalibration:
        """The calibration from all values in one vector [6 n] and their covariance [6 n, 6 n]."""
        dof = len(values) // (LINK_PARAMETERS + 2)
        layout = CalibrationLayout(dof)
        links = values[layout.links].reshape(dof, LINK_PARAMETERS)
        return cls(
            links, values[layout.link_gain], values[layout.payload_gain], covariance
        )

    @property
    def vector(self) -> Array:
        """All values [6 n]: links row by row, link gains, payload gains."""
        return np.concatenate([self.links.ravel(), self.link_gain, self.payload_gain])

    @property
    def dof(self) -> int:
        """Number of joints n."""
        return len(self.link_gain)

    @property
    def torque_gain(self) -> Array:
        """The model's torque constants over the constants measured with the payload [n]."""
        return np.asarray(self.link_gain * self.payload_gain)

    @property
    def torque_gain_std(self) -> Array:
        """Standard deviations of `torque_gain` [n]."""
        layout = CalibrationLayout(self.dof)
        slopes = np.zeros((self.dof, layout.size))
        slopes[:, layout.link_gain] = np.diag(self.payload_gain)
        slopes[:, layout.payload_gain] = np.diag(self.link_gain)
        return np.asarray(np.sqrt(np.diag(slopes @ self.covariance @ slopes.T)))

    def with_calibrated_drives(self) -> PayloadCalibration:
        """The calibration for a model whose torque constants were divided by `torque_gain`."""
        scale = np.ones(len(self.vector))
        scale[CalibrationLayout(self.dof).link_gain] = 1.0 / self.torque_gain
        return PayloadCalibration.from_vector(
            scale * self.vector, scale[:, None] * self.covariance * scale
        )


# LinkTensors: identified inertia tensors of the links.

_ROUNDING = 1e-6
"""Second moment of mass that counts as zero, relative to the largest of the body."""


@dataclass(frozen=True)
class LinkTensors:
    """Inertia tensors of the n moving links, which replace the tensors of the robot file.

    Only some combinations of their entries affect an arm's torques. The others keep the
    values of the robot file, with a correspondingly large standard deviation.

    Attributes:
        values: tensors about each link's centre of mass, axes of its frame [n, 3, 3],
            kg m^2.
        std: standard deviation of every entry [n, 3, 3], kg m^2.
        source: the identification stage, such as "target_moment".
    """

    values: Array
    std: Array
    source: str = "target_moment"

    def applied_to(self, robot: RobotDescription) -> RobotDescription:
        """The robot description with these tensors."""
        inertia = robot.inertia.copy()
        inertia[~robot.fixed] = self.values
        return replace(robot, inertia=inertia)


def is_possible(tensor: Array) -> bool:
    """Whether a mass distribution can have this tensor [3, 3] about its centre of mass.

    It can if the second moments of mass, trace/2 - tensor, are not negative.
    """
    moments = np.linalg.eigvalsh(0.5 * np.trace(tensor) * np.eye(3) - tensor)
    return bool(moments[0] >= -_ROUNDING * max(moments[-1], 0.0))


@dataclass(frozen=True)
class EnergyModel:
    """The identified model of one arm; `load_model` reads it from a model file.

    Attributes:
        robot: name of the robot description, or path of the user's robot file.
        setup: mounting and payload of the identification recordings.
        setup_source: "given", "rtde" or "estimated".
        joints: n joint models.
        bus: power model of the whole arm.
        fit: metrics of the fitted recordings.
        validation: metrics of the recordings held out.
        provenance: recordings, package version and date that the model was made with.
        current_delay: delay of recorded currents behind recorded speeds [s]
            (`MeasuredPowers`).
        link_tensors: identified inertia tensors; None for the tensors of the robot file.
        sessions: spread of standby power and friction between sessions.
        anchored: the session that the model is anchored in; None for any session.
        payload_calibration: payload calibration from recordings with a known payload;
            None without.
        wall: power at the mains from a power meter; None without.
        controller_constants: torque constants of the arm, as its controller states them;
            None where no recording had them.
        cable: cable that supplies the joints; None without joint voltages.
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
    wall: WallModel | None = None
    controller_constants: ControllerConstants | None = None
    cable: Cable | None = None

    @property
    def dof(self) -> int:
        """Number of joints n."""
        return len(self.joints)

    @property
    def robot_name(self) -> str:
        """Name of the robot description, also if `robot` is a path.

        Raises:
            RobotFileError: the robot file is missing or damaged.
        """
        return load_robot(self.robot).name

    def wall_of(self, robot: RobotDescription | None = None) -> WallModel:
        """The wall model as measured, else the generic one of the robot's controller generation.

        Args:
            robot: description of the robot; None for the robot that the model names.
        """
        robot = load_robot(self.robot) if robot is None else robot
        return self.wall or generic_wall(robot.generation)

    @property
    def torque_constant_errors(self) -> Array:
        """Relative changes of the torque constants by the errors of the bus model [k, n]."""
        back_emf = np.array([joint.back_emf_constant for joint in self.joints])
        return self.bus.torque_constant_errors(back_emf)

    def description(self, robot: RobotDescription | None = None) -> RobotDescription:
        """The robot description with the identified tensors.

        Args:
            robot: description without these tensors; None for the robot that the model
                names.
        """
        robot = load_robot(self.robot) if robot is None else robot
        return robot if self.link_tensors is None else self.link_tensors.applied_to(robot)

    def dynamics(
        self, *, robot: RobotDescription | None = None, setup: Setup | None = None
    ) -> ArmDynamics:
        """Rigid-body dynamics of the arm; robot and setup are the model's by default."""
        return ArmDynamics(
            self.description(robot), self.setup if setup is None else setup
        )

    def with_payload(self, payload: Payload) -> EnergyModel:
        """The same arm with another payload on its flange."""
        return replace(
            self, setup=replace(self.setup, payload=payload), setup_source="given"
        )

    @property
    def session(self) -> Session:
        """The session that the model is anchored in, or the distribution of any session."""
        if self.anchored is not None:
            return self.anchored
        return Session.unanchored(self.bus.standby, self.sessions, self.dof)

    def in_session(self, session: Session) -> EnergyModel:
        """The model with the standby power and the friction of one session.

        Friction scales are relative to the identified friction, also if the model is
        anchored in another session already. The number of errors in `DrivePowers` does
        not change.

        Args:
            session: standby power, and friction scales of the n joints.
        """
        now = self.session
        joints = list[JointModel]()
        for j, joint in enumerate(self.joints):
            law = joint.friction.law
            factors = session.friction_factors(j, law) / now.friction_factors(j, law)
            joints.append(joint.with_friction_scaled(factors))
        bus = replace(self.bus, standby=session.standby)
        return replace(self, joints=tuple(joints), bus=bus, anchored=session)

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
            dynamics: dynamics of the arm in its setup; None builds the dynamics of the
                model, which takes a millisecond.
            temperature: temperatures of the joints [n] or [samples, n], degC; None if
                unknown.
            std: whether the sensitivities are computed, which standard deviations need.
        """
        dynamics = self.dynamics() if dynamics is None else dynamics
        direction = None
        if len(q) > 1:
            direction = FrictionDirection(self.presliding)(q, qd)
        return self.from_link_torque(
            dynamics.inverse_dynamics(q, qd, qdd),
            qd,
            qdd,
            temperature=temperature,
            direction=direction,
            std=std,
        )

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
        """Currents and powers from the torque of links and payload.

        Args:
            link_torque: torque of links and payload, joint side [samples, n], N m.
            qd: see `predict`.
            qdd: see `predict`.
            temperature: see `predict`.
            direction: direction of Coulomb friction [samples, n], between -1 and 1; None
                derives it from the speed.
            std: see `predict`.
        """
        friction, current, errors = self._currents(
            link_torque, qd, qdd, temperature, direction, std=std
        )
        return self._drives.powers(current, qd, friction, std=std, errors=errors)

    def currents_from_link_torque(
        self,
        link_torque: Array,
        qd: Array,
        qdd: Array,
        *,
        temperature: Array | None = None,
        direction: Array | None = None,
    ) -> tuple[Array, Array]:
        """Currents and their standard deviations [samples, n], A, of `from_link_torque` alone."""
        _, current, errors = self._currents(
            link_torque, qd, qdd, temperature, direction, std=True
        )
        assert errors is not None
        return current, errors.std

    def _currents(
        self,
        link_torque: Array,
        qd: Array,
        qdd: Array,
        temperature: Array | None,
        direction: Array | None,
        *,
        std: bool,
    ) -> tuple[Array, Array, CurrentErrors | None]:
        """Friction, motor side, N m, and currents, A [samples, n] each; errors of the currents.

        The errors are None without `std`. For the arguments see `from_link_torque`.
        """
        drives = self._drives
        load = link_torque + drives.inertia * qdd
        friction = drives.friction.torque(qd, load, temperature, direction)
        needed = drives.load_factor * load / drives.gear_ratio + friction
        current = needed / drives.torque_constant
        if not std:
            return friction, current, None
        errors = drives.current_errors(qd, qdd, load, current, temperature, direction)
        return friction, current, errors

    @property
    def presliding(self) -> Array:
        """Travel constant of each joint's friction [n], rad; 0 without presliding."""
        return self._drives.presliding

    @cached_property
    def _drives(self) -> Drives:
        return Drives(self.joints, self.bus, self.session)
