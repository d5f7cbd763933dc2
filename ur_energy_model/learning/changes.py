"""Friction over a day and over weeks, and unannounced changes of the arm.

A `FrictionClock` predicts the friction of each joint at its temperature, now and in a session that
has not begun. A `ChangeMonitor` follows friction, standby power, payload and mounting, and reports
each change once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from datetime import datetime

import numpy as np

from ur_energy_model.energy.meter import CONFIDENCE
from ur_energy_model.energy.session import WITHIN_SESSION
from ur_energy_model.identification.filtered_motion import FilteredMotion
from ur_energy_model.learning.drift_filter import (
    DriftNoise,
    LevelChange,
    LevelDetector,
    part_of,
    with_prefix,
)
from ur_energy_model.learning.history import Change
from ur_energy_model.learning.minute import SETUP, Minute, MinuteMeter, StandbyMinutes
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.friction import FrictionBank
from ur_energy_model.model.sessions import SESSION_GAP, SessionFriction
from ur_energy_model.telemetry.samples import Telemetry
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


_UNKNOWN_DAYS = 0.5
"""Time between sessions if the controller restarted and no host time states it [days]."""
_STANDBY = DriftNoise(usual=2.5, wear=0.1, session=2.5, wander=0.4, wander_time=1800.0, least=0.2)
_LEAST_STANDBY = 2.0
_SETUP = DriftNoise(
    usual=np.array([0.5, 0.05, 0.05]),
    wear=np.array([0.02, 0.002, 0.002]),
    session=np.array([0.08, 0.005, 0.005]),
    wander=np.array([0.05, 0.004, 0.004]),
    least=np.array([0.03, 0.003, 0.003]),
)
_LEAST_SETUP = np.array([0.4, 0.035, 0.035])
"""0.4 kg, 2 degrees."""
_SETUP_SESSION_RATIO = 14.0
_REBASED_SETUP = np.array([0.02, 0.002, 0.002])
"""Standard deviation of payload [kg] and tilt [rad] between two models of one arm, after the
difference seen in a minute of work was taken into account."""
_REBASED_STANDBY = 0.1
"""The same of standby power [W]."""
_MASS = 0


class ChangeMonitor:
    """Finds changes in the stream of work, in constant memory.

    Args:
        model: of the arm, n joints.

    Attributes:
        friction: what to expect of each joint's friction.
        changes: found and not yet taken.
    """

    def __init__(self, model: EnergyModel) -> None:
        self.model = model
        self.friction = FrictionClock(model)
        self.changes: list[Change] = []
        self._meter = MinuteMeter(model)
        self._next: NextModel | None = None
        self._still = StandbyMinutes(model)
        self._standby = LevelDetector(_STANDBY, _LEAST_STANDBY, 1)
        self._setup = LevelDetector(_SETUP, _LEAST_SETUP, 3, session_ratio=_SETUP_SESSION_RATIO)
        self._temperature: Array | None = None
        """Of the last samples [n], degC; None before the first, also after a restart."""
        self._time: float | None = None
        self._epoch: float | None = None
        """Host time minus controller time [s]; None where unknown."""

    def observe(
        self, window: Telemetry, motions: Iterable[tuple[FilteredMotion, ArmDynamics]]
    ) -> None:
        """Use samples that follow those of the last call.

        Args:
            window: usable samples.
            motions: of these samples, with the arm in the setup configured in the controller.
        """
        if not len(window):
            return
        self._follow_clock(window)
        unknown = np.full((1, self.model.dof), np.nan)
        self._temperature = np.array(window.columns.get("joint_temperatures", unknown)[-1])
        for motion, dynamics in motions:
            minutes = self._meter.observe(motion, dynamics)
            for minute in minutes:
                self.observe_minute(minute)
            if self._next is not None and self._next.observe(motion, dynamics, minutes):
                self.friction.use_model(self._next.model, self._next.level)
                self._setup.rebase(self._next.setup, _REBASED_SETUP)
                self._meter, self._next = self._next.meter, None
        for time, power, std in self._still.observe(window):
            self.observe_standby(time, power, std)

    def observe_minute(self, minute: Minute) -> None:
        """Use the statistics of a minute."""
        self.changes += map(self._of_friction, self.friction.observe(minute))
        unknown = np.full(3, np.nan)
        found = self._setup.observe(minute.time, minute.setup, minute.setup_covariance, unknown)
        self.changes += [self._of_payload(each) for each in found if each.channel == _MASS]
        tilts = [each for each in found if each.channel != _MASS]
        if tilts:
            self.changes.append(self._of_mounting(max(tilts, key=lambda each: abs(each.size))))

    def observe_standby(self, time: float, power: float, std: float) -> None:
        """Use the mean standby power of a minute and its standard deviation [W]."""
        level = np.array([power - self.model.bus.standby])
        found = self._standby.observe(time, level, np.array([[std**2]]), np.array([np.nan]))
        self.changes += map(self._of_standby, found)

    def friction_now(self) -> SessionFriction:
        """Friction of the joints at present, over that of the model in use."""
        following = None if self._next is None else self._next.model
        return self.friction.session_friction(self._temperature, following)

    def start_session(self, time: float, days: float) -> None:
        """A session starts at this time [s], some days after the last one."""
        for each in (self.friction, self._standby, self._setup):
            each.start_session(time, days)

    def take(self) -> tuple[Change, ...]:
        """Changes since the last call, each once."""
        out, self.changes = tuple(self.changes), []
        return out

    def use_model(self, model: EnergyModel) -> None:
        """State all levels relative to another model of the same arm from now on.

        A minute of work is measured with both models, so that the difference between them is not
        taken for a change of the arm.
        """
        shift = np.array([self.model.bus.standby - model.bus.standby])
        self._standby.rebase(shift, np.full(1, _REBASED_STANDBY))
        self.model, self._still = model, StandbyMinutes(model)
        self._next = NextModel(model)

    def saved(self) -> dict[str, Array]:
        """Everything needed to continue with the same model, except the minute in progress."""
        shift = np.zeros(self.model.dof)
        if self._next is not None:  # a restart does not wait for a minute with both models
            shift = self.friction.difference(self._next.model)
        clock = [np.nan if value is None else value for value in (self._time, self._epoch)]
        return {
            **with_prefix("friction_", self.friction.detector.saved()),
            **with_prefix("standby_", self._standby.saved()),
            **with_prefix("setup_", self._setup.saved()),
            "clock": np.array(clock),
            "shift": shift,
        }

    def restore(self, saved: Mapping[str, Array]) -> None:
        """Continue from what `saved` gave."""
        self.friction.detector.restore(part_of(saved, "friction_"))
        self._standby.restore(part_of(saved, "standby_"))
        self._setup.restore(part_of(saved, "setup_"))
        self.friction.rebase(np.array(saved["shift"]))
        time, epoch = np.asarray(saved["clock"], dtype=float).tolist()
        self._time = None if math.isnan(time) else time
        self._epoch = None if math.isnan(epoch) else epoch

    def _follow_clock(self, window: Telemetry) -> None:
        """Start a session after a long pause or a restart of the controller."""
        first, last = float(window.time[0]), float(window.time[-1])
        before, old_epoch = self._time, self._epoch
        self._time = last
        if window.stamp is not None:
            self._epoch = 1e-9 * float(window.stamp[-1]) - last
        if before is None:
            self.start_session(first, 0.0)
            return
        passed = first - before
        restarted = passed < -1.0
        if restarted and self._epoch is not None and old_epoch is not None:
            passed = (first + self._epoch) - (before + old_epoch)
        if restarted or passed > SESSION_GAP:
            for minute in self._meter.finish():
                self.observe_minute(minute)
            if self._next is not None:
                self._next = NextModel(self._next.model)
            self.start_session(first, passed / 86400.0 if passed > 0 else _UNKNOWN_DAYS)

    def _of_friction(self, change: LevelChange) -> Change:
        ratio = math.exp(change.size) - 1.0
        joint = self.model.joints[change.channel].name
        warm = "" if math.isnan(change.temperature) else f" at {change.temperature:.0f} degC"
        usual = float(self.friction.typical_torque()[change.channel]) * math.exp(change.usual)
        words = (
            f"{joint} friction {100.0 * abs(ratio):.0f} % {_side(ratio)} its usual{warm} since "
            f"{self._clock(change.time)} ({usual * (1.0 + ratio):.2g} N m instead of "
            f"{usual:.2g} N m at {TYPICAL_SPEED:g} rad/s)"
        )
        low, high = (math.exp(value) - 1.0 for value in _interval(change))
        return Change(change.time, joint, "friction", ratio, (low, high), words)

    def _of_standby(self, change: LevelChange) -> Change:
        usual = self.model.bus.standby + change.usual
        words = (
            f"standby power {abs(change.size):.1f} W {_side(change.size)} its usual since "
            f"{self._clock(change.time)} ({usual + change.size:.1f} W instead of {usual:.1f} W)"
        )
        return Change(change.time, None, "standby", change.size, _interval(change), words)

    def _of_payload(self, change: LevelChange) -> Change:
        words = (
            f"undeclared payload: {abs(change.size):.2f} kg (+-{CONFIDENCE * change.std:.2f} kg) "
            f"{_side(change.size)} the usual since {self._clock(change.time)}; set the payload in "
            "the controller"
        )
        return Change(change.time, None, "payload", change.size, _interval(change), words)

    def _of_mounting(self, change: LevelChange) -> Change:
        words = (
            f"undeclared mounting: tilted by {math.degrees(abs(change.size)):.1f} degrees (+-"
            f"{math.degrees(CONFIDENCE * change.std):.1f}) against the usual since "
            f"{self._clock(change.time)}; set the mounting in the controller"
        )
        return Change(change.time, None, "mounting", change.size, _interval(change), words)

    def _clock(self, time: float) -> str:
        """Time of day by the host's clock, or the controller's time."""
        if self._epoch is None:
            return f"{time:.0f} s of the controller's clock"
        return datetime.fromtimestamp(time + self._epoch).strftime("%H:%M")


def _interval(change: LevelChange) -> tuple[float, float]:
    half = CONFIDENCE * change.std
    return change.size - half, change.size + half


def _side(size: float) -> str:
    return "above" if size > 0 else "below"


class NextModel:
    """Measures minutes with the next model beside the present one, until one is complete.

    Args:
        model: the next one, n joints.

    Attributes:
        meter: that goes on with it.
        level: levels of friction by the next model minus those by the present one [n]; NaN where
            not known yet.
        setup: the same of the deviations from the stated setup [3].
    """

    def __init__(self, model: EnergyModel) -> None:
        self.model = model
        self.meter = MinuteMeter(model)
        self.level = np.full(model.dof, np.nan)
        self.setup = np.zeros(len(SETUP))
        self._whole = False
        """Whether the minute in progress began with this meter."""

    def observe(self, motion: FilteredMotion, dynamics: ArmDynamics, present: list[Minute]) -> bool:
        """Use a motion, and the minutes that the present model's meter completed with it.

        Returns whether the difference between the models is known.
        """
        for own in self.meter.observe(motion, dynamics):
            before = [minute for minute in present if minute.time == own.time]
            if self._whole and before:
                self.level = own.level - before[0].level
                self.setup = own.setup - before[0].setup
                return True
            self._whole = True
        return False
