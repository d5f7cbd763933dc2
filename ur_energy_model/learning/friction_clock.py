"""Friction over a day and over weeks: what to expect of each joint at its temperature."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ur_energy_model.energy.session.friction_anchor import WITHIN_SESSION
from ur_energy_model.learning.drift_filter import DriftNoise
from ur_energy_model.learning.level_watch import LevelChange, LevelWatch, WatchLimits
from ur_energy_model.learning.minute import Minute
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.friction.bank import FrictionBank
from ur_energy_model.model.sessions import SessionFriction
from ur_energy_model.typing import Array

NOISE = DriftNoise(
    usual=0.1,
    wear=0.006,
    running_in=0.03,
    session=0.05,
    common=0.05,
    wander=0.015,
    wander_time=900.0,
    slope=0.01,
    least=0.005,
)
"""Spreads of the logarithm of friction. Sessions: 7 % together, the scatter of a UR10e's friction
from day to day, half of it common to all joints (config/simulation/arm.yaml). Wear: 3 % in
a month, so that the loss of 22 % in five months that its base joint showed is followed within two
weeks. Slope: 1 % per kelvin, half of the e-Series controllers' own
temperature model, beyond the model's friction law."""
LIMITS = WatchLimits(least=0.095)
"""Steps from 10 % are reported."""
TYPICAL_SPEED = 0.5
"""Speed at which friction is stated in words [rad/s]."""
_RANGE = np.array([0.1, 0.3, 0.6, 1.0, 2.0])
"""Speeds over which two models are compared without knowledge of the work [rad/s]."""
_GUESSED = 0.25
"""Uncertainty of such a difference between two models, as a share of it."""
_REBASED = 0.005
"""The same after a minute of work that both were compared on, logarithm of friction."""


class FrictionClock:
    """Friction of n joints relative to a model: now, at another temperature, in a new session.

    Args:
        model: that scales are relative to.
    """

    def __init__(self, model: EnergyModel) -> None:
        self.model = model
        self._watch = LevelWatch(NOISE, LIMITS, model.dof)
        self._moving_seconds = 0.0

    def start_session(self, time: float, days: float) -> None:
        """A session starts at this time [s], some days after the last one."""
        self._moving_seconds = 0.0
        self._watch.start_session(time, days)

    def observe(self, minute: Minute) -> list[LevelChange]:
        """Use a minute of work; returns the changes of friction that it completes."""
        if np.isfinite(minute.level).any():
            self._moving_seconds += float(np.max(minute.moving_seconds))
        return self._watch.observe(minute.time, minute.level, minute.covariance, minute.temperature)

    def scale(self, temperature: Array) -> tuple[Array, Array]:
        """Friction of this session over the model's, and its standard deviation [n] each.

        Args:
            temperature: of the joints [n], degC; NaN where unknown.
        """
        return _scales(*self._watch.filter.level(temperature))

    def usual_scale(self, temperature: Array) -> tuple[Array, Array]:
        """The same for a session that has not begun: a cold start at this temperature, say."""
        return _scales(*self._watch.filter.usual_level(temperature))

    def session_friction(
        self, temperature: Array | None, model: EnergyModel | None = None
    ) -> SessionFriction:
        """Friction to be expected of motions from now on, other motions than those so far included.

        Args:
            temperature: of the joints [n], degC; None before the first samples, where it is that
                of a session that has not begun.
            model: that scales are relative to, if it is to be another one of the same arm.
        """
        unknown = np.full(self.model.dof, np.nan)
        at = unknown if temperature is None else temperature
        scale, std = self.usual_scale(at) if temperature is None else self.scale(at)
        share = np.hypot(std / scale, WITHIN_SESSION)
        if model is not None:
            shift = self.difference(model)
            scale, share = scale * np.exp(shift), np.hypot(share, _GUESSED * shift)
        known = self._watch.known
        scale, std = np.where(known, scale, np.nan), np.where(known, scale * share, np.nan)
        moving = 0.0 if temperature is None else self._moving_seconds
        return SessionFriction(scale, std, at, moving)

    def typical_torque(self) -> Array:
        """Friction of the model at TYPICAL_SPEED without load, joint side [n], N m."""
        return np.array(friction_torque(self.model, np.array([TYPICAL_SPEED]))[0])

    def difference(self, model: EnergyModel) -> Array:
        """Levels by another model minus those by the present one, from their laws [n]."""
        before, after = (friction_torque(each, _RANGE) for each in (self.model, model))
        weighted = (before * after).sum(axis=0) / np.maximum((after**2).sum(axis=0), 1e-12)
        return np.asarray(np.log(np.clip(weighted, 0.1, 10.0)))

    def use_model(self, model: EnergyModel, level: Array) -> None:
        """State scales relative to another model of the same arm from now on.

        Args:
            model: the next one.
            level: logarithm of friction over the next model's minus that over the present one's,
                seen in the same work [n]; NaN takes the difference of the laws.
        """
        known = np.isfinite(level)
        shift = np.where(known, level, self.difference(model))
        self._watch.rebase(shift, np.where(known, _REBASED, _GUESSED * np.abs(shift)))
        self.model = model

    def rebase(self, level: Array) -> None:
        """Levels were relative to another model, from which they differ by this much [n]."""
        self._watch.rebase(level, _GUESSED * np.abs(level))

    def state(self) -> dict[str, Array]:
        """Everything needed to continue with the same model."""
        return self._watch.state()

    def restore(self, state: Mapping[str, Array]) -> None:
        """Continue from `state`.

        Raises:
            ValueError: it is of another number of joints, or damaged.
            KeyError: a part is missing.
        """
        self._watch.restore(state)


def friction_torque(model: EnergyModel, speed: Array) -> Array:
    """Friction torque without load, joint side [speeds, n], N m.

    Args:
        model: of the arm, n joints.
        speed: joint speeds [speeds], rad/s.
    """
    ratio = np.array([joint.gear_ratio for joint in model.joints])
    bank = FrictionBank([joint.friction for joint in model.joints], ratio)
    speeds = np.repeat(speed[:, None], model.dof, axis=1)
    return np.asarray(ratio * bank.torque(speeds, np.zeros_like(speeds)))


def _scales(level: Array, std: Array) -> tuple[Array, Array]:
    scale = np.exp(level)
    return scale, scale * std
