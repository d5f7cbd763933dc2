# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Friction over a day and over weeks, and unannounced changes of the arm.

A `ChangeMonitor` follows friction, standby power, payload and mounting. It predicts the
friction of each joint at its temperature, now and in a session that has not begun, and
reports each change once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from datetime import datetime

import numpy as np

from ur_energy_model.energy.friction_follower import WITHIN_SESSION
from ur_energy_model.energy.meter import CONFIDENCE
from ur_energy_model.identification.filtered_motion import FilteredMotion
from ur_energy_model.identification.minute import (
    LEVEL_SPREAD,
    TYPICAL_SPEED,
    Minute,
    MinuteMeter,
    StandbyMinutes,
    friction_torque,
)
from ur_energy_model.learning.drift_filter import DAY, DriftNoise
from ur_energy_model.learning.history import Change
from ur_energy_model.learning.level_detector import LevelChange, LevelDetector
from ur_energy_model.learning.stated_constants import ExchangedJoint
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.sessions import SESSION_GAP, SessionFriction
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.typing import Array

NOISE = DriftNoise(
    usual=0.1,
    wear=0.006,
    running_in=0.03,
    session=LEVEL_SPREAD.session,
    common=LEVEL_SPREAD.common,
    wander=LEVEL_SPREAD.wander,
    slope=LEVEL_SPREAD.slope,
    least=0.005,
)
"""Spreads of the logarithm of friction. Wear: 3 % in a month, so that the loss of 22 % in five
months that the base joint of a UR10e showed is followed within two weeks."""
_STANDBY = DriftNoise(
    usual=2.5, wear=0.1, session=2.5, wander=0.4, wander_time=1800.0, least=0.2
)
"""Spreads of the standby power [W]."""
_SETUP = DriftNoise(
    usual=np.array([0.5, 0.05, 0.05]),
    wear=np.array([0.02, 0.002, 0.002]),
    session=np.array([0.08, 0.005, 0.005]),
    wander=np.array([0.05, 0.004, 0.004]),
    least=np.array([0.03, 0.003, 0.003]),
)
"""Spreads of the payload [kg] and of two angles of the mounting [rad]."""
_LEAST = 0.095  # least step of the logarithm of friction that is reported: 10 %
_LEAST_STANDBY = 2.0  # least step of the standby power that is reported [W]
_LEAST_SETUP = np.array([0.4, 0.035, 0.035])
"""Least steps that are reported of the payload [kg] and of two angles of the mounting [rad]."""
_SETUP_SESSION_RATIO = 14.0
"""`session_ratio` of the detector of the setup, see `LevelDetector`."""
_RANGE = np.array([0.1, 0.3, 0.6, 1.0, 2.0])
"""Speeds over which two models are compared without knowledge of the work [rad/s]."""
_GUESSED = 0.25
"""Uncertainty of the difference between two models over these speeds, as a share of the
difference."""
_REBASED = 0.005
_REBASED_STANDBY = 0.1
_REBASED_SETUP = np.array([0.02, 0.002, 0.002])
"""Standard deviations between two models of one arm after a minute of work that both were compared
on: logarithm of friction, standby power [W], payload [kg] and tilt [rad]."""
_UNKNOWN_DAYS = 0.5
"""Time between sessions if the controller restarted and no host time states it [days]."""
_DETECTORS = ("friction", "standby", "setup")
"""Attributes of a ChangeMonitor that follow levels."""


class ChangeMonitor:
    """Follows friction, standby power and setup of an arm with n joints, in constant memory.

    A level that steps by more than its noise allows is a change; slow drift is followed
    without one.

    Args:
        model: model that the levels refer to.

    Attributes:
        model: the model in use.
        friction: logarithm of each joint's friction over the model's [n].
        standby: standby power minus the model's [1], W.
        setup: deviations from the setup that the controller states [3]: mass [kg] and two
            angles of the mounting [rad].
        changes: changes that were found and not yet taken.
    """

    def __init__(self, model: EnergyModel) -> None:
        self.model = model
        self.friction = LevelDetector(NOISE, _LEAST, model.dof)
        self.standby = LevelDetector(_STANDBY, _LEAST_STANDBY, 1)
        self.setup = LevelDetector(_SETUP, _LEAST_SETUP, 3, _SETUP_SESSION_RATIO)
        self.changes: list[Change] = []
        self._meter = MinuteMeter(model)
        self._still = StandbyMinutes(model)
        self._base = model
        """Model that levels of friction are relative to, until a minute was measured with
        `model` as well."""
        self._next: MinuteMeter | None = None
        """Meter with `model`, beside the meter with the base; None where both are one."""
        self._whole = False  # whether the minute in progress began with the next meter
        self._moving_seconds = 0.0
        self._payload_reported = False  # whether in this session
        self._temperature: Array | None = None
        """Joint temperatures of the last sample [n], degC; None before the first sample,
        also after a restart."""
        self._time = math.nan  # controller time of the last sample [s]; NaN if unknown
        self._epoch = math.nan  # host time minus controller time [s]; NaN if unknown

    def observe(
        self, window: Telemetry, motions: Iterable[tuple[FilteredMotion, ArmDynamics]]
    ) -> None:
        """Use samples that follow the samples of the last call.

        Args:
            window: usable samples.
            motions: motions of the window, each with the dynamics of the arm in the setup
                that the controller states.
        """
        if not len(window):
            return
        self._follow_clock(window)
        unknown = np.full((1, self.model.dof), np.nan)
        self._temperature = np.array(
            window.columns.get("joint_temperatures", unknown)[-1]
        )
        for motion, dynamics in motions:
            minutes = self._meter.observe(motion, dynamics)
            for minute in minutes:
                self.observe_minute(minute)
            if self._next is not None:
                self._compare(minutes, self._next.observe(motion, dynamics))
        for time, power, std in self._still.observe(window):
            self.observe_standby(time, power, std)

    def observe_minute(self, minute: Minute) -> None:
        """Use the statistics of a minute, and report changes of friction and setup."""
        if np.isfinite(minute.level).any():
            self._moving_seconds += float(np.max(minute.moving_seconds))
        of_friction = self.friction.observe(
            minute.time, minute.level, minute.covariance, minute.temperature
        )
        self._report("friction", of_friction)
        unknown = np.full(3, np.nan)
        of_setup = self.setup.observe(
            minute.time, minute.setup, minute.setup_covariance, unknown
        )
        # Channel 0 is the mass, the others are two angles of one mounting.
        self._report("payload", [each for each in of_setup if each.channel == 0])
        tilts = [each for each in of_setup if each.channel > 0]
        tilts.sort(key=lambda each: -abs(each.size))
        self._report("mounting", tilts[:1])

    def observe_standby(self, time: float, power: float, std: float) -> None:
        """Use the mean standby power of a minute and its standard deviation [W]."""
        level = np.array([power - self.model.bus.standby])
        variance = np.array([[std**2]])
        unknown = np.array([np.nan])
        self._report("standby", self.standby.observe(time, level, variance, unknown))

    def friction_now(self) -> SessionFriction:
        """Friction to be expected of any motions from now on, relative to the model in use.

        Returns:
            Factors of the joints [n] with their uncertainty; before the first samples
            levels of a session that has not begun.
        """
        at = self._temperature
        moving = self._moving_seconds
        before = at is None
        if at is None:
            at = np.full(self.model.dof, np.nan)
            moving = 0.0
        level, std = self.friction.filter.level(at, another_session=before)
        shift = self._difference()
        known = np.where(self.friction.known, 1.0, np.nan)
        scale = known * np.exp(level + shift)
        share = np.sqrt(std**2 + WITHIN_SESSION**2 + (_GUESSED * shift) ** 2)
        return SessionFriction(scale, scale * share, moving)

    def start_session(self, time: float, days: float) -> None:
        """Begin another session, in which the levels may be others.

        Args:
            time: controller time of its first sample [s].
            days: time since the last session [days]; wear and noise grow with it.
        """
        self._moving_seconds = 0.0
        self._payload_reported = False
        for each in (self.friction, self.standby, self.setup):
            each.start_session(time, days)

    def take(self) -> tuple[Change, ...]:
        """Changes since the last call, each once."""
        taken = tuple(self.changes)
        self.changes = []
        return taken

    def use_model(self, model: EnergyModel) -> None:
        """State all levels relative to another model of the same arm from now on.

        A minute is measured with both models, so that their difference is not taken for
        a change of the arm.

        Args:
            model: model in use from now on.
        """
        shift = np.array([self.model.bus.standby - model.bus.standby])
        self.standby.rebase(shift, np.full(1, _REBASED_STANDBY))
        self.model = model
        self._still = StandbyMinutes(model)
        self._next = MinuteMeter(model)
        self._whole = False

    def report_exchange(self, found: ExchangedJoint) -> None:
        """Report an exchanged joint, whose friction is another one from now on.

        Args:
            found: the joint, and its torque constants before and now.
        """
        name = self.model.joints[found.joint].name
        words = (
            f"{name} has another torque constant since {self._clock(self._time)} "
            f"({found.now:.4g} N m/A instead of {found.before:.4g} N m/A by the controller): the "
            "joint was exchanged or calibrated anew, and is learned anew"
        )
        half = CONFIDENCE * found.std
        interval = (found.change - half, found.change + half)
        change = Change(
            self._time, name, "torque_constant", found.change, interval, words
        )
        self.changes.append(change)
        self.friction.forget([found.joint])

    def saved(self) -> dict[str, Array]:
        """Everything needed to continue with the same model, except the minute in progress.

        Returns:
            Arrays and numbers by name, for `restore`.
        """
        levels = {}
        for part in _DETECTORS:
            for name, values in getattr(self, part).saved().items():
                levels[f"{part}_{name}"] = values
        # After a restart no minute is measured with both models: their difference by law.
        clock = np.array([self._time, self._epoch])
        return {**levels, "clock": clock, "shift": self._difference()}

    def restore(self, saved: Mapping[str, Array]) -> None:
        """Continue from what `saved` gave."""
        for part in _DETECTORS:
            prefix = f"{part}_"
            own = {}
            for name, values in saved.items():
                if name.startswith(prefix):
                    own[name.removeprefix(prefix)] = values
            getattr(self, part).restore(own)
        shift = np.array(saved["shift"])
        self.friction.rebase(shift, _GUESSED * np.abs(shift))
        self._time, self._epoch = np.array(saved["clock"]).tolist()

    def _difference(self) -> Array:
        """Level of friction by the model in use minus the level by the base [n].

        It follows from the friction laws of both models, over the speeds _RANGE.
        """
        if self._next is None:
            return np.zeros(self.model.dof)
        before = friction_torque(self._base, _RANGE)
        after = friction_torque(self.model, _RANGE)
        # Factor on the friction of `after` that is closest to `before` in least squares.
        squares = np.maximum((after**2).sum(axis=0), 1e-12)
        factor = (before * after).sum(axis=0) / squares
        return np.asarray(np.log(np.clip(factor, 0.1, 10.0)))

    def _compare(self, present: list[Minute], following: list[Minute]) -> None:
        """Continue with the meter of the next model after a whole minute with both.

        Args:
            present: minutes of the present meter.
            following: minutes of the next model's meter from the same samples.
        """
        for own in following:
            both = [minute for minute in present if minute.time == own.time]
            if not (self._whole and both):
                self._whole = True
                continue
            measured = own.level - both[0].level
            known = np.isfinite(measured)
            shift = np.where(known, measured, self._difference())
            std = np.where(known, _REBASED, _GUESSED * np.abs(shift))
            self.friction.rebase(shift, std)
            self.setup.rebase(own.setup - both[0].setup, _REBASED_SETUP)
            assert self._next is not None
            self._base = self.model
            self._meter = self._next
            self._next = None
            return

    def _follow_clock(self, window: Telemetry) -> None:
        """Start a session after a long pause or a restart of the controller."""
        first = float(window.time[0])
        last = float(window.time[-1])
        before = self._time
        old_epoch = self._epoch
        self._time = last
        if window.stamp is not None:
            self._epoch = 1e-9 * float(window.stamp[-1]) - last
        if math.isnan(before):
            self.start_session(first, 0.0)
            return
        passed = first - before
        restarted = passed < -1.0
        if restarted and not math.isnan(self._epoch + old_epoch):
            passed = (first + self._epoch) - (before + old_epoch)
        if restarted or passed > SESSION_GAP:
            for minute in self._meter.finish():
                self.observe_minute(minute)
            if self._next is not None:
                self._next = MinuteMeter(self.model)
                self._whole = False
            self.start_session(first, passed / DAY if passed > 0 else _UNKNOWN_DAYS)

    def _report(self, what: str, found: Iterable[LevelChange]) -> None:
        """Report changes of friction, standby, payload or mounting."""
        for change in found:
            half = CONFIDENCE * change.std
            interval = (change.size - half, change.size + half)
            if what == "friction":
                self._report_friction(change, interval)
            elif what == "payload":
                self.report_payload(change.time, change.size, change.std)
            else:
                words = self._standby_words(change)
                if what == "mounting":
                    words = self._mounting_words(change, half)
                new = Change(change.time, None, what, change.size, interval, words)
                self.changes.append(new)

    def _report_friction(
        self, change: LevelChange, interval: tuple[float, float]
    ) -> None:
        """Report a step of the logarithm of a joint's friction, and its 95 % interval."""
        joint = self.model.joints[change.channel].name
        size = math.exp(change.size) - 1.0
        low, high = interval
        relative = (math.exp(low) - 1.0, math.exp(high) - 1.0)
        side = "above" if size > 0 else "below"
        warm = ""
        if not math.isnan(change.temperature):
            warm = f" at {change.temperature:.0f} degC"
        typical = friction_torque(self._base, np.array([TYPICAL_SPEED]))
        usual = float(typical[0, change.channel]) * math.exp(change.usual)
        words = (
            f"{joint} friction {100.0 * abs(size):.0f} % {side} its usual{warm} since "
            f"{self._clock(change.time)} ({usual * (1.0 + size):.2g} N m instead of "
            f"{usual:.2g} N m at {TYPICAL_SPEED:g} rad/s)"
        )
        new = Change(change.time, joint, "friction", size, relative, words)
        self.changes.append(new)

    def _standby_words(self, change: LevelChange) -> str:
        """A step of the standby power [W] in words."""
        usual = self.model.bus.standby + change.usual
        side = "above" if change.size > 0 else "below"
        return (
            f"standby power {abs(change.size):.1f} W {side} its usual since "
            f"{self._clock(change.time)} ({usual + change.size:.1f} W instead of {usual:.1f} W)"
        )

    def _mounting_words(self, change: LevelChange, half: float) -> str:
        """A tilt [rad] in words; `half` is half of its 95 % interval."""
        tilt = math.degrees(abs(change.size))
        return (
            f"undeclared mounting: tilted by {tilt:.1f} degrees (+-{math.degrees(half):.1f}) "
            f"against the usual since {self._clock(change.time)}; set the mounting in the "
            "controller"
        )

    def report_payload(
        self, time: float, size: float, std: float, declared: float | None = None
    ) -> None:
        """Report an undeclared payload, once in a session.

        Args:
            time: begin of the time in which the payload is carried [s].
            size: mass above the usual or the declared one [kg].
            std: standard deviation of the size [kg].
            declared: mass that is set in the controller [kg]; None where the size is above
                the usual mass.
        """
        if self._payload_reported:
            return
        self._payload_reported = True
        half = CONFIDENCE * std
        side = "above" if size > 0 else "below"
        than = "the usual"
        if declared is not None:
            than = f"the {declared:.2f} kg set in the controller"
        words = (
            f"undeclared payload: {abs(size):.2f} kg (+-{half:.2f} kg) {side} {than} since "
            f"{self._clock(time)}; set the payload in the controller"
        )
        interval = (size - half, size + half)
        self.changes.append(Change(time, None, "payload", size, interval, words))

    def _clock(self, time: float) -> str:
        """Time of day by the host's clock, or the controller's time."""
        if math.isnan(self._epoch):
            return f"{time:.0f} s of the controller's clock"
        return datetime.fromtimestamp(time + self._epoch).strftime("%H:%M")
