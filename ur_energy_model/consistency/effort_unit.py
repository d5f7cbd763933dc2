# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Unit of efforts: motor currents in A or joint torques in N m, decided by the arm's motion.

Drivers publish either of them as the effort of sensor_msgs/JointState. A current times
gear ratio and torque constant is a torque, so that the two differ by a factor of 4 to 13
on UR arms, while the torque that a motion needs is known within some tenths: gravity of
the links, inertia and friction. Three more meanings are compared: torques from which
gravity was removed, as the documentation of ur_robot_driver describes
actual_current_as_torque; torques from which friction and inertia were removed as well;
and efforts that are none of these.

The efforts of a joint are, over blocks of samples, a linear function of two torques of
its motion,

    effort = gravity_gain * gravity torque + motion_gain * (friction + inertia torque) +
    error,

and each meaning states both gains: 1 / (gear ratio * torque constant) for currents, 1 for
torques, 0 and 1 for torques without gravity, 0 and 0 for what is left without friction
and inertia. The likelihood of a meaning is the evidence of Bayesian linear regression
(Bishop, Pattern Recognition and Machine Learning, 2006, sec. 3.5) with a prior of the
gains around what it states, as wide as payload, stiction, friction of the day and
differences between arms make it. The normal density of the gains' distance is replaced by
a t density, so that no single joint decides.

Where motor currents were recorded beside the efforts, the torque of the motors is their
current times gear ratio and torque constant. Payload, mounting, stiction and friction of
the day are in it, so that only the torque constant is uncertain, and an arm that stands
still in gravity decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from ur_energy_model.consistency.contradiction import Contradiction
from ur_energy_model.consistency.sample_windows import SampleWindows
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.generic import generic_model, generic_models
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.setup import MASS, Payload, Setup
from ur_energy_model.telemetry.samples import RecordingInfo, Telemetry
from ur_energy_model.typing import Array, Indices, Mask

EffortUnit = Literal["ampere", "newton_metre", "without_gravity"]
"""Meaning of efforts that determine the motor currents: currents in A, joint torques in N m,
or joint torques in N m from which gravity was removed."""
EffortMeaning = Literal["ampere", "newton_metre", "without_gravity", "external", "none"]
"""Meaning of efforts; "external" are torques without gravity, friction and inertia."""

PRIOR: Mapping[EffortMeaning, float] = {
    "ampere": 0.4,
    "newton_metre": 0.38,
    "without_gravity": 0.1,
    "external": 0.1,
    "none": 0.02,
}
"""Probability of each meaning before any effort was seen."""
DECIDED = 0.999
"""A meaning is decided if its probability exceeds this value, and excluded if its probability is
below 1 minus this value."""
LEAST_EVIDENCE = 1.0
"""Least time of efforts for a decision [s]."""

BLOCK = 0.1
"""Time over which samples are averaged [s]; the acceleration is the change of speed in this
time."""
CORRELATION_TIME = 0.5
"""Time for which the error of a joint's torque stays the same [s]."""
NOISE_SHARE = 0.1
"""Least error of a block over the joint's efforts, for torque that the model of a type does not
describe."""
MOVING_SPEED = 0.05
"""Joint speed above which friction is against the motion [rad/s]; below, its sign is
unknown."""
LEAST_TORQUE = 0.05
"""Least torque of a motion that is compared, over the friction torque."""
LEAST_EFFORT = 0.1
"""Least effort that is compared, over the effort that overcomes friction (as a current): with
brakes engaged or without power there is no effort, whatever the pose. Where currents were
recorded, they are what must not be less."""
LEAST_ERROR = 0.01
"""Least error of a block over the friction torque, where currents were recorded: efforts of
exactly zero are then compared, too."""

CONSTANT_ERROR = 0.15
"""Relative error of a torque constant of another arm of the type, one standard
deviation."""
FRICTION_ERROR = 0.4
"""Relative error of friction on another arm, day and temperature, one standard
deviation."""
PAYLOAD_SHARE = 0.15
"""Payload that the model does not state, over the arm's moving mass: mean, and standard deviation.
A payload only adds to the weight of the arm; half of the arms have none."""
OTHER_MOUNTING = 0.03
"""Probability that the arm is mounted in another way than the model states."""
DEGREES_OF_FREEDOM = 4.0
"""Degrees of freedom of the t densities, with which one gain in 130 is five deviations off."""
OTHER_SCALES: Array = 10.0 ** np.arange(-2.0, 5.0)
"""Sizes of the gains of efforts with the meaning "none", all equally likely."""


class GravityRemoved(NamedTuple):
    """One way in which gravity may have been removed from torques.

    Attributes:
        probability: probability of this way, 0 to 1.
        friction: whether friction and inertia are left in the torques.
        gravity: gain of the gravity torque that is left.
        gravity_std: standard deviation of this gain.
    """

    probability: float
    friction: bool
    gravity: float
    gravity_std: float


WITHOUT_GRAVITY: Mapping[EffortMeaning, tuple[GravityRemoved, ...]] = {
    "without_gravity": (
        GravityRemoved(0.96, True, 0.0, 0.1),
        GravityRemoved(0.04, True, 0.1, 0.05),
    ),
    "external": (
        GravityRemoved(0.48, False, 0.0, 0.1),
        GravityRemoved(0.48, False, 0.0, 0.02),
        GravityRemoved(0.04, False, 0.1, 0.05),
    ),
}
"""Whether friction is removed as well is not documented. Where the constants of the
compensation are off, the same part of gravity is left in all joints, which looks like
currents."""
UNDECLARED: Mapping[float, float] = {
    0.0: 0.98, 0.25: 0.005, 0.5: 0.005, 0.75: 0.005, 1.0: 0.005
}  # fmt: skip
"""Payload whose gravity was not removed with the arm's, over the usual payload
(`PAYLOAD_SHARE`), and its probability. It is the same payload for all joints."""
PAYLOAD_ERROR = 0.2
"""Relative error of the gravity torque of a payload of known mass, for its centre of mass."""
MOTION_LEFT = 0.3
"""Gain of friction and inertia that is left where these are removed, one standard
deviation."""


class EffortVerdict(NamedTuple):
    """What efforts are, as far as the motion shows it.

    Attributes:
        probability: probability of each meaning, 0 to 1.
        seconds: time of the samples that it rests on [s].
    """

    probability: Mapping[EffortMeaning, float]
    seconds: float

    @property
    def meaning(self) -> EffortMeaning | None:
        """The decided meaning; None while none is."""
        best = max(self.probability, key=self.probability.__getitem__)
        decided = self.probability[best] >= DECIDED and self.seconds >= LEAST_EVIDENCE
        return best if decided else None

    @property
    def without_gravity(self) -> bool:
        """Whether gravity was removed for certain, with or without friction and inertia."""
        removed = sum(self.probability[meaning] for meaning in WITHOUT_GRAVITY)
        return removed >= DECIDED and self.seconds >= LEAST_EVIDENCE

    def excludes(self, meaning: EffortMeaning) -> bool:
        """Whether it is certain that efforts do not have this meaning."""
        enough = self.seconds >= LEAST_EVIDENCE
        return enough and self.probability[meaning] <= 1.0 - DECIDED


@dataclass(frozen=True)
class _Expected:
    """Gains per joint that one form of a meaning states [n], effort per N m.

    Attributes:
        probability: probability of this form, if the meaning holds.
        gravity: gain of the gravity torque.
        gravity_std: standard deviation of the gain of gravity.
        motion: gain of friction and inertia torque.
        motion_std: standard deviation of the gain of motion.
    """

    probability: float
    gravity: Array
    gravity_std: Array
    motion: Array
    motion_std: Array


_GRAVITY, _MOTION, _EFFORT, _PAYLOAD = range(4)
"""Places in the sums of products, the first two also among the gains of a joint."""


class EffortEvidence:
    """Compares the efforts of one arm with n joints with the torque of its motion, in blocks.

    Args:
        model: model of the arm, identified or generic.
        robot: description of the arm; None for the arm that the model names.
        beside_currents: whether motor currents were recorded beside the efforts; all
            samples have them then.

    Attributes:
        seconds: time of the blocks so far [s].
    """

    def __init__(
        self,
        model: EnergyModel,
        robot: RobotDescription | None = None,
        *,
        beside_currents: bool = False,
    ) -> None:
        self._model = model
        self._robot = robot
        self._beside_currents = beside_currents
        self._dynamics = model.dynamics(robot=robot)
        self._names = tuple(joint.name for joint in model.joints)
        self._ratio = np.array([joint.gear_ratio for joint in model.joints])
        constant = np.array([joint.torque_constant for joint in model.joints])
        self._torque_per_ampere = self._ratio * constant
        still = np.zeros((1, model.dof))
        slow = np.full((1, model.dof), MOVING_SPEED)
        self._breakaway: Array = np.abs(self._torque(still, slow, still))[0]
        moving_mass = sum(body.mass for body in list(self._dynamics.bare.inertias)[1:])
        self._payload = PAYLOAD_SHARE * float(moving_mass)
        # Time integrals of products of the gravity torque, the rest of the torque, the
        # effort, and the gravity torque of 1 kg of payload.
        self._sums = np.zeros((model.dof, 4, 4))
        self._still = np.zeros(model.dof)  # time at standstill [n], s
        self.seconds = 0.0

    def observe(
        self,
        time: Array,
        q: Array,
        qd: Array,
        effort: Array,
        *,
        current: Array | None = None,
        payload: Payload | None = None,
    ) -> None:
        """Add consecutive samples, at least some tenths of a second: blocks end with them.

        Samples with hardly any effort, or current where there are currents, show nothing.

        Args:
            time: times [samples], s.
            q: joint positions [samples, n], rad.
            qd: joint speeds [samples, n], rad/s.
            effort: effort of unknown unit [samples, n], A or N m.
            current: motor currents [samples, n], A, where `beside_currents` is set.
            payload: payload that is set in the controller; None for the model's.
        """
        blocks = _blocks(time)
        if not len(blocks):
            return
        driving = effort if current is None else current
        rms = np.sqrt(np.square(driving).mean(axis=0))
        hardly_any = rms * self._torque_per_ampere < LEAST_EFFORT * self._breakaway
        if hardly_any.all():
            return
        first, last = blocks.T
        seconds = time[last] - time[first]
        mean_q = _block_means(q, blocks)
        mean_qd = _block_means(qd, blocks)
        mean_effort = _block_means(effort, blocks)
        moving = np.abs(mean_qd) >= MOVING_SPEED
        dynamics = self._dynamics_with(payload)
        gravity = dynamics.gravity_torque(mean_q)
        if current is None:
            acceleration = (qd[last] - qd[first]) / seconds[:, None]
            link = dynamics.inverse_dynamics(mean_q, mean_qd, acceleration)
            torque = self._torque(link, np.where(moving, mean_qd, 0.0), acceleration)
        else:
            torque = self._torque_per_ampere * _block_means(current, blocks)
        weight = dynamics.flange_weight_regressor(mean_q)[..., MASS]
        of_payload = weight @ dynamics.setup.gravity
        rows = np.stack([gravity, torque - gravity, mean_effort, of_payload], axis=2)
        self._sums += np.einsum("b,bnk,bnl->nkl", seconds, rows, rows)
        self._still += seconds @ ~moving
        self.seconds += float(seconds.sum())

    def _dynamics_with(self, payload: Payload | None) -> ArmDynamics:
        """Rigid-body dynamics with a payload; the last ones are kept."""
        present = self._dynamics.setup
        if payload is None:
            return self._dynamics
        same_center = np.array_equal(
            payload.center_of_mass, present.payload.center_of_mass
        )
        if payload.mass != present.payload.mass or not same_center:
            setup = Setup(present.gravity, payload)
            self._dynamics = self._model.dynamics(robot=self._robot, setup=setup)
        return self._dynamics

    def verdict(self) -> EffortVerdict:
        """The meaning of the efforts so far."""
        logarithms = {
            meaning: np.log(PRIOR[meaning]) + self._log_evidence(forms)
            for meaning, forms in self._meanings().items()
        }
        total = np.logaddexp.reduce(list(logarithms.values()))
        probability: dict[EffortMeaning, float] = {}
        for meaning, logarithm in logarithms.items():
            probability[meaning] = float(np.exp(logarithm - total))
        return EffortVerdict(probability, self.seconds)

    def words(self) -> str:
        """Effort of the most loaded joint, compared with the current or torque of its motion."""
        rms = np.sqrt(np.diagonal(self._sums, axis1=1, axis2=2) / max(self.seconds, 1e-9))
        whole = self._sums[:, _GRAVITY, _GRAVITY] + self._sums[:, _MOTION, _MOTION]
        whole = whole + 2.0 * self._sums[:, _GRAVITY, _MOTION]
        torque = np.sqrt(np.maximum(whole, 0.0) / max(self.seconds, 1e-9))
        joint = int(np.argmax(torque / np.maximum(self._breakaway, 1e-9)))
        current = torque[joint] / self._torque_per_ampere[joint]
        if self._beside_currents:
            return (
                f"{self._names[joint]} has {rms[joint, _EFFORT]:.3g} RMS, its current is "
                f"{current:.3g} A, which makes {torque[joint]:.3g} N m"
            )
        return (
            f"{self._names[joint]} has {rms[joint, _EFFORT]:.3g} RMS, its motion needs "
            f"{current:.3g} A or {torque[joint]:.3g} N m"
        )

    def _meanings(self) -> dict[EffortMeaning, list[_Expected]]:
        """Gains that each meaning states, with the probabilities of its forms."""
        one = np.ones(len(self._ratio))
        zero = np.zeros_like(one)
        payload = zero
        stiction = zero
        friction = 0.0
        other_mounting = 0.0
        if not self._beside_currents:
            payload = self._payload_gain()
            stiction = self._stiction_gain()
            friction = FRICTION_ERROR
            other_mounting = OTHER_MOUNTING
        gravity_std = np.sqrt(CONSTANT_ERROR**2 + payload**2 + stiction**2)
        motion_std = np.full_like(payload, np.hypot(CONSTANT_ERROR, friction))
        found: dict[EffortMeaning, list[_Expected]] = {}
        units: dict[EffortMeaning, Array] = {
            "ampere": 1.0 / self._torque_per_ampere,
            "newton_metre": one,
        }
        for meaning, gain in units.items():
            motion = (gain, motion_std * gain)
            bare = (gain, np.hypot(CONSTANT_ERROR, stiction) * gain)
            loaded = ((1.0 + payload) * gain, gravity_std * gain)
            share = 0.5 * (1.0 - other_mounting)
            found[meaning] = [
                _Expected(share, *bare, *motion),
                _Expected(share, *loaded, *motion),
            ]
            if other_mounting:
                found[meaning].append(_Expected(other_mounting, zero, gain, *motion))
        for meaning, forms in WITHOUT_GRAVITY.items():
            found[meaning] = []
            for form in forms:
                gravity_left = form.gravity * one
                if form.friction:
                    left_std = np.hypot(form.gravity_std, stiction)
                    motion = (one, motion_std)
                else:
                    left_std = form.gravity_std * one
                    motion = (zero, MOTION_LEFT * one)
                for mass, probability in UNDECLARED.items():
                    of_payload = mass * payload
                    expected = _Expected(
                        probability * form.probability,
                        gravity_left + of_payload,
                        np.hypot(left_std, PAYLOAD_ERROR * of_payload),
                        *motion,
                    )
                    found[meaning].append(expected)
        scales = OTHER_SCALES
        if self._beside_currents:
            # Efforts that stay near zero where there are currents lack gravity at least.
            scales = OTHER_SCALES[OTHER_SCALES >= 1.0]
        share = 1.0 / len(scales)
        found["none"] = [
            _Expected(share, zero, scale * one, zero, scale * one)
            for scale in scales.tolist()
        ]
        return found

    def _log_evidence(self, forms: list[_Expected]) -> float:
        """Log likelihood of the efforts, up to a part that all meanings share."""
        gains, information = self._regression()
        logarithms = []
        for form in forms:
            off = gains - np.stack([form.gravity, form.motion], axis=1)
            prior = np.zeros_like(information)
            prior[:, _GRAVITY, _GRAVITY] = form.gravity_std**2
            prior[:, _MOTION, _MOTION] = form.motion_std**2
            # With information P and prior covariance D, the gains found have the
            # covariance P^-1 + D, whose inverse is (1 + P D)^-1 P, which exists where P
            # is singular, too.
            widened = np.eye(2) + information @ prior
            precision = np.linalg.solve(widened, information)
            distance = np.maximum(np.einsum("nk,nkl,nl->n", off, precision, off), 0.0)
            tails = np.log1p(distance / DEGREES_OF_FREEDOM)
            width = np.linalg.slogdet(widened)[1]
            density = -0.5 * (width + (DEGREES_OF_FREEDOM + 2.0) * tails)
            logarithms.append(np.log(form.probability) + float(density.sum()))
        return float(np.logaddexp.reduce(logarithms))

    def _regression(self) -> tuple[Array, Array]:
        """Gains of gravity and motion [n, 2] by least squares, and their information [n, 2, 2]."""
        shown = self._shown()
        squares = self._sums[:, :_EFFORT, :_EFFORT] * (shown[:, :, None] & shown[:, None])
        products = self._sums[:, :_EFFORT, _EFFORT] * shown
        effort = self._sums[:, _EFFORT, _EFFORT]
        inverse = np.linalg.pinv(squares, 1e-6, hermitian=True)
        gains = np.einsum("nkl,nl->nk", inverse, products)
        unexplained = np.maximum(effort - (gains * products).sum(axis=1), 0.0)
        error = np.maximum(unexplained, NOISE_SHARE**2 * effort)
        variance = error / max(self.seconds, 1e-9)
        if self._beside_currents:
            variance = np.maximum(variance, (LEAST_ERROR * self._breakaway) ** 2)
        # Efforts of exactly zero show nothing.
        variance = np.where(variance > 0.0, variance, np.inf)
        return gains, squares / (variance * CORRELATION_TIME)[:, None, None]

    def _shown(self) -> Mask:
        """Whether gravity and motion load a joint enough to be compared [n, 2]."""
        squares = np.diagonal(self._sums, axis1=1, axis2=2)[:, :_EFFORT]
        least = (LEAST_TORQUE * self._breakaway) ** 2 * self.seconds
        return np.asarray(squares > least[:, None])

    def _payload_gain(self) -> Array:
        """Gravity torque of a usual payload over the arm's gravity torque [n].

        It is the mean of what a payload adds, and its standard deviation as well.
        """
        together = self._sums[:, _GRAVITY, _PAYLOAD]
        return np.asarray(self._payload * together / self._gravity_squares())

    def _stiction_gain(self) -> Array:
        """Deviation of the gain of gravity by the unknown friction at standstill [n]."""
        seconds = max(self.seconds, 1e-9)
        still_share = self._still / seconds
        gravity_rms = np.sqrt(self._gravity_squares() / seconds)
        return np.asarray(still_share * self._breakaway / gravity_rms)

    def _gravity_squares(self) -> Array:
        """Integral of the squared gravity torque [n], (N m)^2 s; infinite where it is not shown."""
        shown = self._shown()[:, _GRAVITY]
        return np.where(shown, self._sums[:, _GRAVITY, _GRAVITY], np.inf)

    def _torque(self, link: Array, qd: Array, qdd: Array) -> Array:
        """Torque of the motors for links, friction and rotors, joint side [samples, n], N m."""
        powers = self._model.from_link_torque(link, qd, qdd, std=False)
        return self._ratio * powers.motor_torque


CURRENT_FIELDS: tuple[str, ...] = ("actual_q", "actual_qd", "actual_current")
"""Fields that show the unit of recorded currents."""


class CurrentCheck:
    """Checks from consecutive parts of a recording that its currents are motor currents.

    Files made from a driver's JointState may have torques under the name of currents.
    """

    def __init__(self) -> None:
        self._windows = SampleWindows(CURRENT_FIELDS)
        self._info = RecordingInfo()

    def observe(self, part: Telemetry) -> None:
        """Add the next part."""
        if len(part) and all(name in part for name in CURRENT_FIELDS):
            self._info = part.info
            self._windows.add(part)

    def contradictions(self, robot: RobotDescription) -> tuple[Contradiction, ...]:
        """Evidence that actual_current is not in A; none for arms without a generic model."""
        if robot.source not in generic_models():
            return ()
        evidence = EffortEvidence(generic_model(robot), robot)
        for window in self._windows.windows():
            if any(name not in window for name in CURRENT_FIELDS):
                continue
            q, qd, current = (window[name] for name in CURRENT_FIELDS)
            if q.shape[1] == robot.dof:
                good = np.isfinite(np.hstack([q, qd, current])).all(axis=1)
                evidence.observe(window.time[good], q[good], qd[good], current[good])
        if evidence.verdict().meaning != "newton_metre":
            return ()
        verb = "import" if "imported_from" in self._info.extra else "record"
        return (
            Contradiction(
                subject="effort_unit",
                stated="actual_current is in A",
                shown="its values are joint torques in N m",
                evidence=evidence.words(),
                remedy=f"{verb} it again with motor currents, or name the columns "
                "actual_current_as_torque",
                refused=True,
            ),
        )


def _blocks(time: Array) -> Indices:
    """First and last sample of blocks of BLOCK or more [blocks, 2], without gaps inside."""
    if len(time) < 2:
        return np.zeros((0, 2), dtype=np.intp)
    period = float(np.median(np.diff(time)))
    each = max(int(np.ceil(BLOCK / period)), 1) if period > 0.0 else 1
    first = np.arange(0, len(time) - 1, each)
    last = np.minimum(first + each, len(time) - 1)
    seconds = time[last] - time[first]
    whole = (seconds > 0.0) & (seconds < 2.5 * each * period)
    return np.stack([first, last], axis=1)[whole]


def _block_means(values: Array, blocks: Indices) -> Array:
    """Means of values [samples, n] over blocks [blocks, 2], both ends included [blocks, n]."""
    sums = np.concatenate([np.zeros((1, values.shape[1])), np.cumsum(values, axis=0)])
    first, last = blocks.T
    return np.asarray((sums[last + 1] - sums[first]) / (last + 1 - first)[:, None])
