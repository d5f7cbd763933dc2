# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Joint controller: target moment, target current and servo gains.

"feedforward" is the e-Series controller as Clochiatti et al. 2024 (sec. 3.2) describe it:
inverse dynamics fed forward plus feedback. "pd" is proportional-derivative control with
gravity compensation, tuned in the frequency domain on the linear drive (Battistini et
al., PD tuning).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import numpy as np
import pinocchio as pin

from ur_energy_model.errors import InputError
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.setup import Setup
from ur_energy_model.simulation.arm_constants import constants
from ur_energy_model.simulation.parameters import ArmParameters
from ur_energy_model.simulation.plant import ServoGains, solid_links
from ur_energy_model.typing import Array


@dataclass(frozen=True)
class LinearDrive:
    """Linear model of one drive: rotor and link, connected by the elastic gear; joint side.

    Battistini, Samori, Subini, "Modeling and simulation of an UR5 Robot Manipulator", PD
    tuning: small speeds and twists, no static friction, the links a constant inertia.

    Attributes:
        rotor_inertia: inertia of motor and wave generator [kg m^2].
        rotor_damping: viscous damping of the rotor [N m s/rad].
        link_inertia: inertia of flex spline and links [kg m^2].
        link_damping: viscous damping of flex spline and links [N m s/rad].
        stiffness: stiffness of the gear [N m/rad].
    """

    rotor_inertia: float
    rotor_damping: float
    link_inertia: float
    link_damping: float
    stiffness: float

    @property
    def state_space(self) -> tuple[Array, Array]:
        """A [4, 4] and b [4] of x' = A x + b torque.

        The state x is rotor angle and speed, link angle and speed [rad, rad/s].
        """
        k = self.stiffness
        rotor = self.rotor_inertia
        link = self.link_inertia
        matrix = np.array(
            [
                [0.0, 1.0, 0.0, 0.0],
                [-k / rotor, -self.rotor_damping / rotor, k / rotor, 0.0],
                [0.0, 0.0, 0.0, 1.0],
                [k / link, 0.0, -k / link, -self.link_damping / link],
            ]
        )
        return matrix, np.array([0.0, 1.0 / rotor, 0.0, 0.0])

    @property
    def denominator(self) -> Array:
        """Coefficients of s^4 ... s^0 [5]; the first one is 1."""
        return np.asarray(np.poly(self.state_space[0]).real)

    @property
    def to_link(self) -> Array:
        """Numerator from torque to link angle [1], over `denominator`."""
        return np.array([self.stiffness / (self.rotor_inertia * self.link_inertia)])

    def response(self, frequency: Array, numerator: Array) -> Array:
        """Complex frequency response at angular frequencies [m], rad/s.

        Args:
            frequency: angular frequencies [m], rad/s.
            numerator: polynomial of the transfer function, highest power first.
        """
        s = 1j * np.asarray(frequency, dtype=float)
        return np.asarray(np.polyval(numerator, s) / np.polyval(self.denominator, s))

    def published_form(self, gear_ratio: float) -> tuple[float, Array]:
        """Numerator and denominator [5] from motor torque to joint angle, as in the slides.

        Args:
            gear_ratio: motor turns per joint turn.
        """
        return float(self.to_link[0] * gear_ratio), self.denominator


_SLOWER = 0.9  # factor on the crossover frequency of a loop that is not stable


def pd_gains(
    drive: LinearDrive, crossover: float, phase_margin: float
) -> tuple[float, float]:
    """Gains of a position loop around the link.

    The open loop has magnitude one and the phase margin at the crossover frequency w: (kp
    + i w kd) G(i w) = exp(i (phase_margin - pi)). The derivative gain is not negative:
    where viscous friction alone gives a larger margin, it is zero. Where the resonance of
    the gear makes the closed loop unstable, w is reduced until it is stable.

    Args:
        drive: linear model of the joint.
        crossover: angular frequency at which the open loop has magnitude one [rad/s].
        phase_margin: phase margin of the open loop at this frequency [rad].

    Returns:
        Proportional gain [N m/rad] and derivative gain [N m s/rad].
    """
    while True:
        plant = drive.response(np.array([crossover]), drive.to_link)[0]
        gain = np.exp(1j * (phase_margin - np.pi)) / plant
        damping = gain.imag / crossover
        if damping < 0.0:  # friction alone gives a larger margin
            gain = 1.0 / np.abs(plant)
            damping = 0.0
        control = np.array([damping, gain.real]) * drive.to_link[0]
        if np.roots(np.polyadd(drive.denominator, control)).real.max() < 0.0:
            return float(gain.real), float(damping)
        crossover *= _SLOWER


ControllerKind = Literal["feedforward", "pd"]

_LINK_SHARE = 0.3
"""Link inertia assumed in the tuning of the servo, relative to the reflected inertia."""
_POSITIONS = 200
"""Number of random positions over which the link inertia of the PD tuning is averaged."""


class Targets(NamedTuple):
    """Targets of one cycle.

    Attributes:
        q: joint positions [n], rad.
        qd: joint velocities [n], rad/s.
        qdd: joint accelerations [n], rad/s^2.
        moment: inverse dynamics with rotors, without friction, joint side [n], N m.
        current: currents of the motors [n], A.
    """

    q: Array
    qd: Array
    qdd: Array
    moment: Array
    current: Array


class JointController:
    """Feed-forward and servo of all joints of an arm.

    The controller uses the torque constants of its calibration, the nominal reflected
    inertia and its own friction estimate of the parameters, and mounting and payload as
    configured.

    Args:
        robot: the arm's type.
        parameters: constants of the arm and of its controller.
        setup: mounting and payload as configured.
        kind: feed-forward, or PD with gravity compensation.

    Attributes:
        gains: gains of the servo loops.
        trim: correction of the rotor reference for the gear twist [n], rad.

    Raises:
        InputError: unknown kind.
    """

    def __init__(
        self,
        robot: RobotDescription,
        parameters: ArmParameters,
        setup: Setup,
        kind: ControllerKind,
    ) -> None:
        if kind not in get_args(ControllerKind):
            remedy = f"use {' or '.join(get_args(ControllerKind))}"
            raise InputError(kind, "is not a controller", remedy)
        servo = constants()["servo"]
        pd = kind == "pd"
        self.kind = kind
        self._robot = robot
        self._parameters = parameters
        self.set_setup(setup)
        if pd:
            self.gains = tuned_pd(robot, parameters)
        else:  # beside the feed-forward
            omega = 2 * np.pi * float(servo["bandwidth"])
            inertia = (1.0 + _LINK_SHARE) * parameters.reflected_inertia
            self.gains = ServoGains(
                omega**2 * inertia, 2 * servo["damping"] * omega * inertia, False
            )
        self._integral = 0.0 if pd else float(servo["integral"])
        self._deadband = float(servo["deadband"])
        self.trim = np.zeros(robot.dof)

    def set_setup(self, setup: Setup) -> None:
        """Use another mounting or payload."""
        self._dynamics = ArmDynamics(self._robot, setup)

    def targets(self, q: Array, qd: Array, qdd: Array) -> Targets:
        """Target moment and current for a commanded state [n].

        Args:
            q: joint positions [n], rad.
            qd: joint velocities [n], rad/s.
            qdd: joint accelerations [n], rad/s^2.

        Returns:
            The commanded state, target_moment, joint side [n], N m, and target_current
            [n], A.
        """
        p = self._parameters
        model = self._dynamics.model
        data = self._dynamics.data
        moment = pin.rnea(model, data, q, qd, qdd) + p.reflected_inertia * qdd
        if self.kind == "pd":
            gravity = pin.computeGeneralizedGravity(model, data, q)
            current = gravity / p.stated_current_to_torque
        else:
            torque = moment + p.compensation.torque(qd, moment)
            current = torque / p.stated_current_to_torque + p.controller_current_offset
        return Targets(q, qd, qdd, moment, current)

    def correct(self, dt: float, error: Array) -> None:
        """Integrate the position error outside the dead band.

        Args:
            dt: time since the last correction [s].
            error: control errors of the positions, joint side [n], rad.
        """
        if self._integral:
            beyond = np.where(np.abs(error) > self._deadband, error, 0.0)
            self.trim = self.trim + self._integral * dt * beyond


def linear_drives(
    robot: RobotDescription, parameters: ArmParameters
) -> tuple[LinearDrive, ...]:
    """Linear model of every drive of an arm, with viscous friction of rotor and flex spline only.

    The link inertia is the mean diagonal of the mass matrix over random positions, a
    constant as in Battistini et al.

    Args:
        robot: the arm's type.
        parameters: true constants of the arm.
    """
    dynamics = ArmDynamics(solid_links(robot), Setup())
    model = dynamics.model
    data = dynamics.data
    positions = np.random.default_rng(0).uniform(-np.pi, np.pi, (_POSITIONS, robot.dof))
    links = np.mean([np.diag(pin.crba(model, data, q)) for q in positions], axis=0)
    rotor_damping = parameters.friction.viscous.mean(axis=0)
    return tuple(
        LinearDrive(
            rotor_inertia=float(parameters.reflected_inertia[j]),
            rotor_damping=float(rotor_damping[j]),
            link_inertia=float(links[j]),
            link_damping=float(parameters.flex_spline_viscous[j]),
            stiffness=float(parameters.stiffness[j, 0]),
        )
        for j in range(robot.dof)
    )


def tuned_pd(robot: RobotDescription, parameters: ArmParameters) -> ServoGains:
    """Gains of the PD controller of an arm with n joints.

    Args:
        robot: the arm's type.
        parameters: true constants of the arm.
    """
    servo = constants()["servo"]
    crossover = 2 * np.pi * float(servo["pd_bandwidth"])
    margin = np.radians(float(servo["pd_phase_margin"]))
    gains = [
        pd_gains(drive, crossover, margin) for drive in linear_drives(robot, parameters)
    ]
    stiffness, damping = np.array(gains).T
    return ServoGains(stiffness, damping, of_link=True)
