"""Friction over a day and over weeks: what to expect of each joint at its temperature.

A `LevelDetector` follows a few slow levels minute by minute and reports a step that matters once; a
`FrictionClock` follows the friction of the joints with one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ur_energy_model.codec import built
from ur_energy_model.energy.session import WITHIN_SESSION
from ur_energy_model.learning.drift_filter import DriftFilter, DriftNoise, Step, StepDetector
from ur_energy_model.learning.minute import Minute
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.friction import FrictionBank
from ur_energy_model.model.sessions import SessionFriction
from ur_energy_model.typing import Array, Mask

FORGETTING_DAYS = 30.0
"""Time constant after which a changed level counts as usual."""
_BACK = 0.5
"""A level is usual again closer to it than this share of the smallest reported step."""


_RATIO = 30.0
"""Twice the logarithm of the likelihood ratio from which a step within a session is certain."""
_MINUTES, _SESSION_MINUTES = 3.0, 10.0
"""Measured minutes that a step within a session, and one at its start, must last."""
_EXPLAINED = 0.6
"""Share of the innovations since the onset that a step within a session must explain."""
_SETTLING = 20.0
"""Measured minutes of a channel before anything is reported: before, its usual level is unknown."""


@dataclass(frozen=True)
class LevelChange:
    """A step that is reported.

    Attributes:
        channel: its number.
        time: of the onset [s].
        size: level minus the usual one.
        std: its standard deviation.
        usual: the usual level at the present temperature.
        temperature: of the channel [degC]; NaN where unknown.
    """

    channel: int
    time: float
    size: float
    std: float
    usual: float
    temperature: float


class LevelDetector:
    """Follows c levels and reports their changes.

    Args:
        noise: spreads of the levels.
        least: smallest step that is reported, in the unit of the levels; one or one per channel.
        channels: c.
        session_ratio: twice the logarithm of the likelihood ratio from which a step at the start of
            a session is certain, over the spread of sessions.

    Attributes:
        filter: the estimates.
    """

    def __init__(
        self, noise: DriftNoise, least: float | Array, channels: int, session_ratio: float = 11.0
    ) -> None:
        self._least = np.broadcast_to(np.asarray(least, dtype=float), (channels,))
        self._session_ratio = session_ratio
        self.filter = DriftFilter(noise, channels)
        self._steps = StepDetector.of(channels, len(self.filter.mean))
        self._time: float | None = None
        self._usual = np.zeros(channels)
        """Usual level before the reported changes, at the reference temperature."""
        self._changed = np.zeros(channels, dtype=bool)
        self._measured = np.zeros(channels)
        """Measured minutes."""

    @property
    def changed(self) -> Mask:
        """Whether each level differs from its usual one after a reported change [c]."""
        return np.array(self._changed)

    @property
    def known(self) -> Mask:
        """Whether each level was ever measured [c]."""
        return np.asarray(self._measured > 0.0)

    def start_session(self, time: float, days: float) -> None:
        """A session starts at this time [s], some days after the last one."""
        self._steps.forget(self.filter.start_session(days))
        self._steps.open(time, session_start=True)
        self._forget_usual(days)
        self._time = time

    def observe(
        self, time: float, value: Array, covariance: Array, temperature: Array
    ) -> list[LevelChange]:
        """Use the levels of a minute.

        Args:
            time: at its end, later than that of the last one [s].
            value: [c], NaN where not measured.
            covariance: of the measured ones [c, c].
            temperature: of the channels [c], degC, NaN where unknown.
        """
        if self._time is None:
            self.start_session(time, 0.0)
        assert self._time is not None
        passed = max(time - self._time, 0.0)
        self._steps.forget(self.filter.advance(passed))
        self._steps.open(self._time, session_start=False)
        self._forget_usual(passed / 86400.0)
        self._time = time
        found = self.filter.update(value, covariance, temperature)
        if found is None:
            return []
        self._steps.observe(found)
        self._measured[found.channels] += 1.0
        out = [self._taken_over(step, temperature) for step in self._certain()]
        self._usual = np.where(self._changed, self._usual, self.filter.usual)
        return [change for change in out if change is not None]

    def rebase(self, shift: Array, std: Array) -> None:
        """Levels are stated relative to another model from now on.

        Args:
            shift: to be added to the levels [c].
            std: of the shift [c].
        """
        own = np.eye(len(self.filter.mean))
        for channel in range(len(shift)):
            self.filter.shift(own[channel], float(shift[channel]), float(std[channel]) ** 2)
        self._usual = self._usual + shift

    def saved(self) -> dict[str, Array]:
        """Everything needed to continue."""
        return {
            **with_prefix("filter_", self.filter.saved()),
            **with_prefix("test_", vars(self._steps)),
            "usual": self._usual,
            "changed": self._changed,
            "measured": self._measured,
            "time": np.array(np.nan if self._time is None else self._time),
        }

    def restore(self, saved: Mapping[str, Array]) -> None:
        """Continue from what `saved` gave of a detector of the same kind."""
        self.filter.restore(part_of(saved, "filter_"))
        self._steps = built(StepDetector, part_of(saved, "test_"))
        self._usual, self._measured = np.array(saved["usual"]), np.array(saved["measured"])
        self._changed = np.array(saved["changed"], dtype=bool)
        time = float(saved["time"])
        self._time = None if np.isnan(time) else time

    def _certain(self) -> list[Step]:
        """The likeliest step of each channel that is large and certain enough."""
        best: dict[int, Step] = {}
        waiting: set[int] = set()
        for step in self._steps.steps():  # those within a session first
            channel, start = step.channel, step.at_session_start
            certain = step.ratio >= (self._session_ratio if start else _RATIO)
            large = abs(step.size) >= self._least[channel]
            if not (certain and large) or self._measured[channel] < _SETTLING:
                continue
            if step.minutes < (_SESSION_MINUTES if start else _MINUTES):
                waiting.add(channel)  # may be a single bad minute, or begin later
            elif channel not in waiting and (start or step.explained >= _EXPLAINED):
                best.setdefault(channel, step)
        within = [step for step in best.values() if not step.at_session_start]
        at_start = [step for step in best.values() if step.at_session_start]
        return within + sorted(at_start, key=lambda step: -step.ratio)[:1]

    def _taken_over(self, step: Step, temperature: Array) -> LevelChange | None:
        """Let the filter expect a step; the change, unless the level is back at its usual."""
        self.filter.shift(step.direction, step.size, step.variance)
        self._steps.clear(step)
        channel = step.channel
        if not self._changed[channel]:  # the last minutes had moved it towards the step
            self._usual[channel] = self.filter.usual[channel] - step.size
        size = float(self.filter.usual[channel] - self._usual[channel])
        self._changed[channel] = abs(size) >= _BACK * self._least[channel]
        if not self._changed[channel]:
            return None
        usual = self.filter.usual_level(temperature)[0]
        return LevelChange(
            channel=channel,
            time=step.time,
            size=size,
            std=float(np.sqrt(step.variance)),
            usual=float(usual[channel]) - size,
            temperature=float(temperature[channel]),
        )

    def _forget_usual(self, days: float) -> None:
        """A changed level becomes usual within weeks."""
        share = -np.expm1(-max(days, 0.0) / FORGETTING_DAYS)
        self._usual = self._usual + share * (self.filter.usual - self._usual)
        near = np.abs(self.filter.usual - self._usual) < _BACK * self._least
        self._changed = self._changed & ~near


def with_prefix(prefix: str, saved: Mapping[str, Array]) -> dict[str, Array]:
    """Entries of a part of a saved state, named after it."""
    return {prefix + name: values for name, values in saved.items()}


def part_of(state: Mapping[str, Array], prefix: str) -> dict[str, Array]:
    """The entries whose names start with a prefix, without it."""
    return {name[len(prefix) :]: value for name, value in state.items() if name.startswith(prefix)}


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
_LEAST = 0.095
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
        self.detector = LevelDetector(NOISE, _LEAST, model.dof)
        self._moving_seconds = 0.0

    def start_session(self, time: float, days: float) -> None:
        """A session starts at this time [s], some days after the last one."""
        self._moving_seconds = 0.0
        self.detector.start_session(time, days)

    def observe(self, minute: Minute) -> list[LevelChange]:
        """Use a minute of work; returns the changes of friction that it completes."""
        if np.isfinite(minute.level).any():
            self._moving_seconds += float(np.max(minute.moving_seconds))
        return self.detector.observe(
            minute.time, minute.level, minute.covariance, minute.temperature
        )

    def scale(self, temperature: Array) -> tuple[Array, Array]:
        """Friction of this session over the model's, and its standard deviation [n] each.

        Args:
            temperature: of the joints [n], degC; NaN where unknown.
        """
        return _scales(*self.detector.filter.level(temperature))

    def usual_scale(self, temperature: Array) -> tuple[Array, Array]:
        """The same for a session that has not begun, such as a cold start at this temperature."""
        return _scales(*self.detector.filter.usual_level(temperature))

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
        known = self.detector.known
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
        self.detector.rebase(shift, np.where(known, _REBASED, _GUESSED * np.abs(shift)))
        self.model = model

    def rebase(self, level: Array) -> None:
        """Levels were relative to another model, from which they differ by this much [n]."""
        self.detector.rebase(level, _GUESSED * np.abs(level))


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
