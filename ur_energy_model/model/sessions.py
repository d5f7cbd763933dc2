"""Sessions: standby power and friction scales, which change from recording to recording.

Inertias, torque constants and resistances of an arm stay the same; standby power and friction do
not. Measured on real arms: standby power differs by 2.5 W between days of one UR5e and by 11 to
12 W between two UR5e; the friction of a UR10e's base scatters by 7 % from day to day and fell from
36 to 29 N m within five months. A model therefore contains the spread between sessions. Every
interval includes this spread until the session is anchored: standby power at standstill, one
friction scale per joint on the first seconds of motion.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from ur_energy_model.model.friction import LOAD, LOAD_ASYMMETRY, FrictionBank

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ur_energy_model.model.drives import JointModel
    from ur_energy_model.typing import Array, Mask

STANDBY_SPREAD = 2.5
"""Standard deviation of standby power between sessions of one arm if none were compared [W]."""
FRICTION_SPREAD = 0.08
"""Relative standard deviation of friction between sessions if none were compared. That of a UR10e
scatters by 5 % from day to day (per session, hence by 7 % between two sessions) at 0.5 rad/s."""

SESSION_GAP = 1800.0
"""Time without samples after which another session begins [s], for standby power, friction and
changes alike. Within half an hour the joints of an arm that is off cool by several kelvin, and it
may have been switched on again."""

COMMON_FRICTION = 0.5
"""Share of the variance of friction between sessions that all joints of an arm have in common:
their lubricant and its temperature. Between six arms it is a third, with friction 0.86 to 1.42
times that of the factory calibrations on average over the joints."""


@dataclass(frozen=True)
class SessionSpread:
    """Spread of standby power and friction between sessions of one arm.

    Both are deviations of another session from the model. For a model made from one recording they
    thus include the deviation of that recording's own session.

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
        standby_std: its standard deviation [W].
        friction_scale: friction of this session over that of the model [n].
        friction_std: its standard deviation [n].
        still_seconds: standstill that standby was anchored on [s]; 0 if it was not.
        moving_seconds: motion that the friction scales were anchored on [s]; 0 if they were not.
    """

    standby: float
    standby_std: float
    friction_scale: Array
    friction_std: Array
    still_seconds: float = 0.0
    moving_seconds: float = 0.0

    @classmethod
    def unanchored(cls, standby: float, spread: SessionSpread, n: int) -> Session:
        """An unknown session: the model's own standby power [W] and friction of n joints."""
        return cls(standby, spread.standby, np.ones(n), spread.friction_of(n))


@dataclass(frozen=True)
class SessionFriction:
    """Friction of n joints at present, followed while they work.

    Attributes:
        scale: friction over that of the model at these temperatures [n]; NaN where unknown.
        std: its standard deviation [n].
        temperature: of the joints [n], degC; NaN where unknown.
        moving_seconds: motion of this session that it was measured in [s]; 0 for an expectation
            from earlier sessions.
    """

    scale: Array
    std: Array
    temperature: Array
    moving_seconds: float = 0.0

    def applied_to(self, session: Session) -> Session:
        """The session with this friction, where it is known."""
        known = np.isfinite(self.scale)
        return replace(
            session,
            friction_scale=np.where(known, self.scale, session.friction_scale),
            friction_std=np.where(known, self.std, session.friction_std),
            moving_seconds=self.moving_seconds if known.any() else session.moving_seconds,
        )


def begins_session(before: float, time: float) -> bool:
    """Whether a sample begins another session: after SESSION_GAP, or where the clock goes back.

    Controller times of the sample and of the one before [s].
    """
    return not 0.0 <= time - before <= SESSION_GAP


def scaled_parameters(names: Sequence[str]) -> Mask:
    """Which friction parameters vary together from session to session [p].

    Coulomb and speed-dependent friction do (they depend on the lubricant and its temperature);
    the gears' share of the load does not.
    """
    return np.array([name not in (LOAD, LOAD_ASYMMETRY) for name in names])


def with_session_errors(errors: Array, session: Session, n: int) -> Array:
    """Independent errors of the bus model [k + 2, 1 + 3 n] with those of the session.

    The last two are its standby power, and the friction that all joints have in common, which
    changes the currents only (`CurrentErrors`). Standby power measured in the session no longer
    depends on the identification's errors [k, 1 + 3 n], standby first, or empty.
    """
    own = np.zeros((2, 1 + 3 * n))
    own[0, 0] = session.standby_std
    errors = errors.copy() if errors.size else np.zeros((0, 1 + 3 * n))
    if session.still_seconds > 0:
        errors[:, 0] = 0.0
    return np.concatenate([errors, own])


# FrictionCurve: friction over speed with its standard deviation.


@dataclass(frozen=True)
class FrictionCurve:
    """Friction of one unloaded joint, joint side: speed [k], rad/s, and torque [k], N m.

    Standard deviations are those in the fitted sessions and in another session [k], N m.
    """

    speed: Array
    torque: Array
    std_this_session: Array
    std: Array


def friction_curve(joint: JointModel, spread: float, speed: Array) -> FrictionCurve:
    """Friction of a joint over joint-side speed [k], rad/s, without load.

    Its current_covariance gives the deviation in the fitted sessions, `spread` the relative
    standard deviation of friction in another session.
    """
    ratio = np.array([joint.gear_ratio])
    bank = FrictionBank([joint.friction], ratio)
    terms = bank.regressors(speed[:, None], np.zeros((len(speed), 1)))[0]
    values = joint.friction.values
    torque = terms @ values
    # Torque is terms @ (c[1:] / c[0]) with the coefficients c of current_covariance.
    slopes = joint.torque_constant * np.column_stack([-torque, terms])
    own = np.linalg.norm(slopes @ joint.current_root, axis=1)
    varying = terms @ np.where(scaled_parameters(joint.friction.law.parameters), values, 0.0)
    return FrictionCurve(
        speed=speed,
        torque=joint.gear_ratio * torque,
        std_this_session=joint.gear_ratio * own,
        std=joint.gear_ratio * np.hypot(own, spread * varying),
    )
