# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Sessions: standby power and friction scales, which change from recording to recording.

Inertias, torque constants and resistances of an arm stay the same; standby power and
friction do not. Measured on real arms: standby power differs by 2.5 W between days of one
UR5e and by 11 to 12 W between two UR5e; the friction of a UR10e's base scatters by 7 %
from day to day and fell from 36 to 29 N m within five months. A model therefore contains
the spread between sessions. Every interval includes this spread until the session is
anchored: standby power at standstill, two friction scales per joint on its motion. Warm
and cold days differ in both: cold lubricant has more viscous friction and less Coulomb
friction, which the tilt of a session describes.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from ur_energy_model.model.controller_constants import CONTROLLER
from ur_energy_model.model.friction import FrictionBank, FrictionLaw

if TYPE_CHECKING:
    from ur_energy_model.model.drives import JointModel
    from ur_energy_model.typing import Array, Mask

STANDBY_SPREAD = 2.5
"""Standard deviation of standby power between sessions of one arm if none were compared
[W]."""
FRICTION_SPREAD = 0.08
"""Relative standard deviation of friction between sessions if none were compared. The
friction of a UR10e scatters by 5 % from day to day (per session, hence by 7 % between two
sessions) at 0.5 rad/s."""

SPEED_TILT = 2.0
COULOMB_TILT = -1.0
"""Relative change of friction that depends on the speed, and of Coulomb friction, per
unit of the tilt: on cold days of a UR10e, friction that depends on the speed was 1.45
times and Coulomb friction 0.77 times as large as usual."""
LEAST_FACTOR = 0.1
"""Least friction of a session over the friction of the model: friction never drives a joint."""

SESSION_GAP = 1800.0
"""Time without samples after which another session begins [s], for standby power,
friction and changes alike. Within half an hour the joints of an arm that is off cool by
several kelvin, and it may have been switched on again."""

COMMON_FRICTION = 0.5
"""Share of the variance of friction between sessions that all joints of an arm have in
common: their lubricant and its temperature. Between six arms the share is a third, with
friction 0.86 to 1.42 times the friction of the factory calibrations on average over the
joints."""


@dataclass(frozen=True)
class SessionSpread:
    """Spread of standby power and friction between sessions of one arm.

    Both are deviations of another session from the model. For a model made from one
    recording they thus include the deviation of that recording's own session.

    Attributes:
        standby: standard deviation of standby power [W].
        friction: relative standard deviation of a joint's friction [n]; empty stands for
            FRICTION_SPREAD on every joint.
        count: number of compared sessions; 0 if the spreads are priors.
    """

    standby: float = STANDBY_SPREAD
    friction: Array = field(default_factory=lambda: np.zeros(0))
    count: int = 0

    def friction_of(self, n: int) -> Array:
        """Relative standard deviation of the friction scale of n joints [n]."""
        return self.friction if self.friction.size else np.full(n, FRICTION_SPREAD)


@dataclass(frozen=True)
class Session:
    """Estimate of one session of an arm.

    Attributes:
        standby: standby power [W].
        standby_std: standard deviation of the standby power [W].
        friction_scale: friction of this session over the friction of the model [n].
        friction_std: standard deviation of the friction scale [n].
        still_seconds: standstill that standby was anchored on [s]; 0 if it was not.
        moving_seconds: motion that the friction scales were anchored on [s]; 0 if they
            were not.
        friction_tilt: increase of the dependence of friction on the speed [n], see
            `friction_factors`; None for 0, one scale for all friction.
        tilt_std: standard deviation of the tilt [n]; None for 0.
        tilt_correlation: correlation of the tilt with the scale [n]; None for 0.
    """

    standby: float
    standby_std: float
    friction_scale: Array
    friction_std: Array
    still_seconds: float = 0.0
    moving_seconds: float = 0.0
    friction_tilt: Array | None = None
    tilt_std: Array | None = None
    tilt_correlation: Array | None = None

    @property
    def friction_root(self) -> Array:
        """Lower triangular R [n, 2, 2]; R R' is the covariance of scale and tilt."""
        zero = np.zeros_like(self.friction_std)
        tilt = zero if self.tilt_std is None else self.tilt_std
        shared = zero if self.tilt_correlation is None else self.tilt_correlation
        root = np.zeros((len(zero), 2, 2))
        root[:, 0, 0] = self.friction_std
        root[:, 1, 0] = shared * tilt
        root[:, 1, 1] = np.sqrt(1.0 - shared**2) * tilt
        return root

    def friction_factors(self, j: int, law: FrictionLaw) -> Array:
        """Friction parameters [p] of joint j in this session over the model's parameters."""
        level, tilt = friction_directions(law)
        size = 0.0 if self.friction_tilt is None else float(self.friction_tilt[j])
        factors = np.maximum(self.friction_scale[j] + size * tilt, LEAST_FACTOR)
        return np.where(level > 0, factors, 1.0)

    @classmethod
    def unanchored(cls, standby: float, spread: SessionSpread, n: int) -> Session:
        """An unknown session: the model's own standby power [W] and friction of n joints."""
        return cls(standby, spread.standby, np.ones(n), spread.friction_of(n))


@dataclass(frozen=True)
class SessionFriction:
    """Friction of n joints at present, followed while they work.

    Attributes:
        scale: friction over the friction of the model at these temperatures [n]; NaN where
            unknown.
        std: standard deviation of the scale [n].
        moving_seconds: motion of this session that it was measured in [s]; 0 for an
            expectation from earlier sessions.
    """

    scale: Array
    std: Array
    moving_seconds: float = 0.0

    def applied_to(self, session: Session) -> Session:
        """The session with this friction, where it is known."""
        known = np.isfinite(self.scale)
        if not known.any():
            return session

        def without_known(values: Array | None) -> Array | None:
            return None if values is None else np.where(known, 0.0, values)

        return replace(
            session,
            friction_scale=np.where(known, self.scale, session.friction_scale),
            friction_std=np.where(known, self.std, session.friction_std),
            moving_seconds=self.moving_seconds,
            friction_tilt=without_known(session.friction_tilt),
            tilt_std=without_known(session.tilt_std),
            tilt_correlation=without_known(session.tilt_correlation),
        )


def begins_session(before: float, time: float) -> bool:
    """Whether a sample begins another session: after SESSION_GAP, or where the clock goes back.

    Controller times of the sample and of the one before [s].
    """
    return not 0.0 <= time - before <= SESSION_GAP


def friction_directions(law: FrictionLaw) -> Array:
    """Relative change of a law's parameters per unit of a session's scale and tilt [2, p]."""
    scaled = scaled_parameters(law)
    coulomb = np.array([term.kind == "coulomb" for term in law.terms.values()])
    return np.stack([scaled, np.where(coulomb, COULOMB_TILT, SPEED_TILT) * scaled])


def scaled_parameters(law: FrictionLaw) -> Mask:
    """Which parameters of a law vary together from session to session [p].

    Coulomb and speed-dependent friction do (they depend on the lubricant and its
    temperature); the gears' share of the load does not.
    """
    return np.array([term.kind != "load" for term in law.terms.values()])


def friction_slopes(joint: JointModel, terms: Array) -> Array:
    """Derivatives of the friction torque by the coefficients of the current [points, 1 + p].

    Friction is terms @ (c_friction / c_load) with the coefficients c of
    `JointModel.current_coefficients`. Where the controller states the torque constant it is
    terms @ c_friction times this constant, which does not depend on c_load.

    Args:
        joint: joint with its friction.
        terms: terms of its friction law at some points [points, p], motor side.
    """
    torque = terms @ joint.friction.values
    stated = joint.source.get("torque_constant") == CONTROLLER
    of_load = np.zeros_like(torque) if stated else -torque
    return np.asarray(joint.torque_constant * np.column_stack([of_load, terms]))


def friction_curve(joint: JointModel, spread: float, speed: Array) -> dict[str, Array]:
    """Friction of an unloaded joint over speed, joint side.

    Args:
        joint: joint with its friction.
        spread: relative standard deviation of friction between sessions.
        speed: joint speeds [k], rad/s.

    Returns:
        Curves by name [k]: "speed", the speeds [rad/s]; "torque", the friction torque [N m];
        "std_this_session", its standard deviation in the fitted sessions, by
        `JointModel.current_covariance`; "std", its standard deviation in another session.
    """
    bank = FrictionBank([joint.friction], np.array([joint.gear_ratio]))
    terms = bank.regressors(speed[:, None], np.zeros((len(speed), 1)))[0]
    values = joint.friction.values
    torque = terms @ values
    own = np.linalg.norm(friction_slopes(joint, terms) @ joint.current_root, axis=1)
    if joint.source.get("torque_constant") == CONTROLLER:
        own = np.hypot(own, torque * joint.std["torque_constant"] / joint.torque_constant)
    scaled = scaled_parameters(joint.friction.law)
    varying = terms @ np.where(scaled, values, 0.0)
    return {
        "speed": speed,
        "torque": joint.gear_ratio * torque,
        "std_this_session": joint.gear_ratio * own,
        "std": joint.gear_ratio * np.hypot(own, spread * varying),
    }
