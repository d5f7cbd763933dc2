"""What belongs to a recording session rather than to the arm: standby power and friction scales.

An arm's inertias, torque constants and resistances stay; its standby power and its friction do
not. Measured on real arms: standby differs by 2.5 W between days of one UR5e and by 11 to 12 W
between two of them; the friction of a UR10e's base scatters by 7 % from day to day and fell from
36 to 29 N m within five months. A model therefore states how far sessions spread, and every
interval carries that spread until the session at hand is anchored: standby power on standstill,
one friction scale per joint on the first seconds of motion.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ur_energy_model.model.friction.terms import LOAD, LOAD_ASYMMETRY
from ur_energy_model.typing import Array, Mask

STANDBY_SPREAD = 2.5
"""Standard deviation of standby power between sessions of one arm, where none were compared [W]."""
FRICTION_SPREAD = 0.08
"""Relative standard deviation of another session's friction, where none were compared: that of a
UR10e scatters by 5 % from day to day (per session, so by 7 % between two of them) at 0.5 rad/s."""


@dataclass(frozen=True)
class SessionSpread:
    """How far what belongs to a session varies between sessions of one arm.

    Both are deviations of another session from the model, so that those of a model made from one
    recording hold the deviation of that recording's own session, too.

    Attributes:
        standby: standard deviation of standby power [W].
        friction: relative standard deviation of a joint's friction [n]; empty takes
            FRICTION_SPREAD for every joint.
        count: number of sessions that were compared; 0 where the spreads are priors.
    """

    standby: float = STANDBY_SPREAD
    friction: Array = field(default_factory=lambda: np.zeros(0))
    count: int = 0

    def friction_of(self, n: int) -> Array:
        """Relative standard deviation of the friction scale of n joints [n]."""
        return self.friction if self.friction.size else np.full(n, FRICTION_SPREAD)


@dataclass(frozen=True)
class Session:
    """One session of an arm, as far as it is known; deviations are of what remains unknown.

    Attributes:
        standby: standby power [W].
        standby_std: its standard deviation [W].
        friction_scale: friction of this session over that of the model [n].
        friction_std: its standard deviation [n].
        still_seconds: standstill that standby was anchored on [s]; 0 where it was not.
        moving_seconds: motion that the friction scales were anchored on [s]; 0 where not.
    """

    standby: float
    standby_std: float
    friction_scale: Array
    friction_std: Array
    still_seconds: float = 0.0
    moving_seconds: float = 0.0

    @classmethod
    def unanchored(cls, standby: float, spread: SessionSpread, n: int) -> Session:
        """A session nothing is known of: the model's own standby [W], friction of n joints."""
        return cls(standby, spread.standby, np.ones(n), spread.friction_of(n))


def scaled_parameters(names: Sequence[str]) -> Mask:
    """Which friction parameters vary together from session to session [p].

    Coulomb friction and what grows with the speed do (they follow the lubricant and its
    temperature); the share of the load that gears take does not.
    """
    return np.array([name not in (LOAD, LOAD_ASYMMETRY) for name in names])


def with_standby_error(errors: Array, session: Session, n: int) -> Array:
    """Independent errors of the bus model [k + 1, 1 + 3 n], that of the session's standby added.

    Standby that was measured in the session no longer follows the errors of the identification.

    Args:
        errors: of the parameters, standby first [k, 1 + 3 n], or empty.
        session: whose standby power counts.
        n: number of joints.
    """
    own = np.zeros((1, 1 + 3 * n))
    own[0, 0] = session.standby_std
    errors = errors.copy() if errors.size else np.zeros((0, 1 + 3 * n))
    if session.still_seconds > 0:
        errors[:, 0] = 0.0
    return np.concatenate([errors, own])
