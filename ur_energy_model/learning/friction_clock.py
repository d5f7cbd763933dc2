"""Friction over a day and over weeks: what to expect of each joint at its temperature."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ur_energy_model.energy.session import WITHIN_SESSION
from ur_energy_model.learning.drift_filter import DriftFilter, DriftNoise, Step, StepTest
from ur_energy_model.learning.minute import Minute
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.friction import FrictionBank
from ur_energy_model.model.sessions import SessionFriction
from ur_energy_model.typing import Array, Mask

# A few slow levels, followed minute by minute; a step that matters is reported once.

FORGETTING_DAYS = 30.0
"""Time constant after which a changed level counts as usual."""
_BACK = 0.5
"""A level is usual again closer to it than this share of the smallest reported step."""


@dataclass(frozen=True)
class WatchLimits:
    """When a step is reported.

    Attributes:
        least: smallest step, in the unit of the levels; a number or one per channel.
        ratio: twice the logarithm of the likelihood ratio of a step within a session.
        session_ratio: the same for a step at the start of a session, over the spread of sessions.
        minutes: measured minutes that a step must last.
        session_minutes: the same for a step at the start of a session.
        explained: share of the innovations since the onset that a step within a session explains.
        settling: measured minutes of a channel before anything is reported: what is usual is
            not known before.
    """

    least: float | tuple[float, ...]
    ratio: float = 30.0
    session_ratio: float = 11.0
    minutes: float = 3.0
    session_minutes: float = 10.0
    explained: float = 0.6
    settling: float = 20.0


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
        limits: of the reported steps.
        channels: c.

    Attributes:
        filter: the estimates.
    """

    def __init__(self, noise: DriftNoise, limits: WatchLimits, channels: int) -> None:
        self.limits = limits
        self.filter = DriftFilter(noise, channels)
        self._test = StepTest(channels, len(self.filter.mean))
        self._least = np.broadcast_to(np.asarray(limits.least, dtype=float), (channels,))
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
        self._test.forget(self.filter.start_session(days))
        self._test.open(time, session_start=True)
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
        self._test.forget(self.filter.advance(passed))
        self._test.open(self._time, session_start=False)
        self._forget_usual(passed / 86400.0)
        self._time = time
        found = self.filter.update(value, covariance, temperature)
        if found is None:
            return []
        self._test.observe(found)
        self._measured[found.channels] += 1.0
        out = [self._taken_over(step, temperature) for step in self._steps()]
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

    def state(self) -> dict[str, Array]:
        """Everything needed to continue."""
        return {
            **{f"filter_{name}": values for name, values in self.filter.state().items()},
            **{f"test_{name}": values for name, values in self._test.state().items()},
            "usual": self._usual,
            "changed": self._changed.astype(float),
            "measured": self._measured,
            "time": np.array(np.nan if self._time is None else self._time),
        }

    def restore(self, state: Mapping[str, Array]) -> None:
        """Continue from `state` of a watch of the same kind.

        Raises:
            ValueError: it is of another kind, or damaged.
            KeyError: a part is missing.
        """
        for part, name in ((self.filter, "filter_"), (self._test, "test_")):
            part.restore(part_of(state, name))
        self._usual, self._changed = np.array(state["usual"]), np.array(state["changed"]) > 0.5
        self._measured = np.array(state["measured"])
        time = float(state["time"])
        self._time = None if np.isnan(time) else time

    def _steps(self) -> list[Step]:
        """The likeliest step of each channel that is large and certain enough."""
        limits = self.limits
        best: dict[int, Step] = {}
        waiting: set[int] = set()
        for step in self._test.steps():  # those within a session first
            channel, start = step.channel, step.at_session_start
            certain = step.ratio >= (limits.session_ratio if start else limits.ratio)
            large = abs(step.size) >= self._least[channel]
            if not (certain and large) or self._measured[channel] < limits.settling:
                continue
            if step.minutes < (limits.session_minutes if start else limits.minutes):
                waiting.add(channel)  # may be a single bad minute, or begin later
            elif channel not in waiting and (start or step.explained >= limits.explained):
                best.setdefault(channel, step)
        within = [step for step in best.values() if not step.at_session_start]
        at_start = [step for step in best.values() if step.at_session_start]
        return within + sorted(at_start, key=lambda step: -step.ratio)[:1]

    def _taken_over(self, step: Step, temperature: Array) -> LevelChange | None:
        """Let the filter expect a step; the change, unless the level is back at its usual."""
        self.filter.shift(step.direction, step.size, step.variance)
        self._test.clear(step)
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
        self._watch = LevelDetector(NOISE, LIMITS, model.dof)
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
