"""Friction scales of the current session from the first seconds of its motion.

Friction changes between days, the other parameters of an arm do not. Least squares of the measured
currents less links and inertia on the model's friction give one scale per joint, with the spread
between sessions of the arm as the prior.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ur_energy_model.energy.session.friction_split import FrictionSplit
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.sessions import Session
from ur_energy_model.typing import Array

ANCHOR_SECONDS = 3.0
"""Motion of a joint that determines its friction scale [s]."""
ANCHOR_SPEED = 0.05
"""Least joint speed that is used, away from stiction [rad/s]."""
CORRELATION_TIME = 0.3
"""Correlation time of the model error of a current [s]."""
WITHIN_SESSION = 0.03
"""Relative standard deviation of friction within a session: warming, different motions."""


@dataclass(frozen=True)
class MeasuredMotion:
    """Consecutive samples of an arm in motion, n joints.

    Attributes:
        time: [samples], s.
        q, qd, qdd: joint side [samples, n], rad, rad/s, rad/s^2.
        current: motor currents [samples, n], A.
        temperature: of the joints [samples, n], degC, NaN where unknown; or None.
    """

    time: Array
    q: Array
    qd: Array
    qdd: Array
    current: Array
    temperature: Array | None = None


class FrictionAnchor:
    """Friction scales of one session, estimated as samples arrive until `done`.

    Args:
        model: of the arm, n joints, in any session.
        seconds: motion of each joint to use [s].
    """

    def __init__(self, model: EnergyModel, seconds: float = ANCHOR_SECONDS) -> None:
        n = model.dof
        self.prior = Session.unanchored(model.bus.standby, model.sessions, n)
        self.model = model.in_session(self.prior)
        self.seconds = seconds
        self.moving_seconds = np.zeros(n)
        self._split = FrictionSplit(self.model)
        # Time integrals of friction^2, friction * remainder and remainder^2 (currents, A^2 s).
        self._friction, self._product, self._left = np.zeros((3, n))

    @property
    def done(self) -> bool:
        """Whether every joint has moved for long enough."""
        return bool((self.moving_seconds >= self.seconds).all())

    def observe(self, motion: MeasuredMotion, dynamics: ArmDynamics) -> None:
        """Use samples that follow the previous ones.

        Args:
            motion: of the arm.
            dynamics: of the arm in its current setup.
        """
        if len(motion.time) < 2 or self.done:
            return
        load = dynamics.inverse_dynamics(motion.q, motion.qd, motion.qdd)
        load = load + self._split.inertia * motion.qdd
        steps = np.diff(motion.time, append=2 * motion.time[-1] - motion.time[-2])
        weight = np.where(np.abs(motion.qd) >= ANCHOR_SPEED, np.maximum(steps, 0.0)[:, None], 0.0)
        before = self.moving_seconds + np.cumsum(weight, axis=0) - weight
        weight[before >= self.seconds] = 0.0
        friction, left = self._split(motion.qd, load, motion.current, motion.temperature)
        self.moving_seconds += weight.sum(axis=0)
        self._friction += (weight * friction**2).sum(axis=0)
        self._product += (weight * friction * left).sum(axis=0)
        self._left += (weight * left**2).sum(axis=0)

    def session(self) -> Session:
        """The session with friction scales from the samples so far and the model's standby.

        The scale is the mean of a normal posterior: samples within CORRELATION_TIME count as one,
        the prior is the spread between sessions. The deviation is at least WITHIN_SESSION.
        """
        spread = self.prior.friction_std
        known = (self._friction > 0) & (spread > 0)
        safe = np.where(known, self._friction, 1.0)
        scale = self._product / safe
        squares = np.maximum(self._left - self._product * scale, 1e-6 * safe)
        variance = squares / safe * CORRELATION_TIME / np.maximum(self.moving_seconds, 1e-9)
        precision = np.where(known, 1.0 / variance, 0.0)
        prior = 1.0 / np.square(np.where(spread > 0, spread, 1.0))
        posterior = 1.0 / (precision + prior)
        estimate = 1.0 + posterior * precision * (scale - 1.0)
        std = np.minimum(np.hypot(np.sqrt(posterior), WITHIN_SESSION), spread)
        return Session(
            standby=self.prior.standby,
            standby_std=self.prior.standby_std,
            friction_scale=np.where(known, estimate, 1.0),
            friction_std=np.where(known, std, spread),
            moving_seconds=float(np.max(self.moving_seconds)),
        )


def anchor_friction(
    model: EnergyModel,
    motions: Iterable[tuple[MeasuredMotion, ArmDynamics]],
    *,
    seconds: float = ANCHOR_SECONDS,
) -> Session:
    """Session with friction scales from the first seconds of motion of every joint.

    Args:
        model: of the arm.
        motions: consecutive samples and the dynamics of the arm in their setup; consumed only as
            far as needed.
        seconds: motion of each joint to use [s].
    """
    anchor = FrictionAnchor(model, seconds)
    for motion, dynamics in motions:
        anchor.observe(motion, dynamics)
        if anchor.done:
            break
    return anchor.session()
