"""Unannounced changes of the arm: friction, standby power, payload, mounting; reported once."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import numpy as np

from ur_energy_model.energy.meter import CONFIDENCE
from ur_energy_model.identification.filtered_motion import FilteredMotion
from ur_energy_model.learning.drift_filter import DriftNoise
from ur_energy_model.learning.friction_clock import (
    TYPICAL_SPEED,
    FrictionClock,
    LevelChange,
    LevelDetector,
    WatchLimits,
    part_of,
)
from ur_energy_model.learning.history import NEEDS, Change, Need, change_from_json
from ur_energy_model.learning.information import ArmMotion
from ur_energy_model.learning.minute import SETUP, Minute, MinuteMeter, StandbyMinutes
from ur_energy_model.learning.needs import Coverage, ReferenceWork, needs, reference_work
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.sessions import SESSION_GAP, SessionFriction
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.typing import Array

# Change-over of a monitor to another model: the difference between both over the same work.


class NextModel:
    """Measures minutes with the next model beside the present one, until one is complete.

    Args:
        model: the next one, n joints.

    Attributes:
        model: the next one.
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

    def observe(
        self, motion: FilteredMotion, dynamics: ArmDynamics, present: Sequence[Minute]
    ) -> bool:
        """Use a motion that the present model's meter has seen.

        Args:
            motion: of the arm.
            dynamics: of the arm in the setup that the controller was told.
            present: minutes that the present model's meter completed with this motion.

        Returns:
            whether the difference between the models is known.
        """
        for own in self.meter.observe(motion, dynamics):
            before = [minute for minute in present if minute.time == own.time]
            if self._whole and before:
                self.level = own.level - before[0].level
                self.setup = own.setup - before[0].setup
                return True
            self._whole = True
        return False


_UNKNOWN_DAYS = 0.5
"""Time between sessions if the controller restarted and no host time states it [days]."""
_STANDBY = DriftNoise(usual=2.5, wear=0.1, session=2.5, wander=0.4, wander_time=1800.0, least=0.2)
_STANDBY_LIMITS = WatchLimits(least=2.0)
_SETUP = DriftNoise(
    usual=np.array([0.5, 0.05, 0.05]),
    wear=np.array([0.02, 0.002, 0.002]),
    session=np.array([0.08, 0.005, 0.005]),
    wander=np.array([0.05, 0.004, 0.004]),
    least=np.array([0.03, 0.003, 0.003]),
)
_SETUP_LIMITS = WatchLimits(least=(0.4, 0.035, 0.035), session_ratio=14.0)
"""0.4 kg, 2 degrees."""
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
        self._names = tuple(joint.name for joint in model.joints)
        self._meter = MinuteMeter(model)
        self._next: NextModel | None = None
        self._still = StandbyMinutes(model)
        self._standby = LevelDetector(_STANDBY, _STANDBY_LIMITS, 1)
        self._setup = LevelDetector(_SETUP, _SETUP_LIMITS, 3)
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
            motions: of these samples, with the arm in the setup that the controller was told.
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
                self._change_over(self._next)
        for time, power, std in self._still.observe(window):
            self.observe_standby(time, power, std)

    def observe_minute(self, minute: Minute) -> None:
        """Use the statistics of a minute."""
        for change in self.friction.observe(minute):
            self._say_friction(change)
        unknown = np.full(3, np.nan)
        found = self._setup.observe(minute.time, minute.setup, minute.setup_covariance, unknown)
        for change in found:
            if change.channel == _MASS:
                self._say_payload(change)
        tilts = [change for change in found if change.channel != _MASS]
        if tilts:
            self._say_mounting(max(tilts, key=lambda change: abs(change.size)))

    def observe_standby(self, time: float, power: float, std: float) -> None:
        """Use the mean standby power of a minute and its standard deviation [W]."""
        level = np.array([power - self.model.bus.standby])
        unknown = np.array([np.nan])
        for change in self._standby.observe(time, level, np.array([[std**2]]), unknown):
            self._say_standby(change)

    def friction_now(self) -> SessionFriction:
        """Friction of the joints at present, over that of the model in use."""
        following = None if self._next is None else self._next.model
        return self.friction.session_friction(self._temperature, following)

    def start_session(self, time: float, days: float) -> None:
        """A session starts at this time [s], some days after the last one."""
        for watch in (self.friction, self._standby, self._setup):
            watch.start_session(time, days)

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

    def _change_over(self, following: NextModel) -> None:
        self.friction.use_model(following.model, following.level)
        self._setup.rebase(following.setup, _REBASED_SETUP)
        self._meter, self._next = following.meter, None

    def state(self) -> dict[str, Array]:
        """Everything needed to continue with the same model, except the minute in progress."""
        parts: dict[str, FrictionClock | LevelDetector]
        parts = {"friction": self.friction, "standby": self._standby, "setup": self._setup}
        following = self._next
        shift = np.zeros(self.model.dof)
        if following is not None:  # a restart does not wait for a minute with both models
            shift = self.friction.difference(following.model)
        clock = [np.nan if value is None else value for value in (self._time, self._epoch)]
        return {
            f"{part}_{name}": values
            for part, watch in parts.items()
            for name, values in watch.state().items()
        } | {"clock": np.array(clock), "shift": shift}

    def restore(self, state: Mapping[str, Array]) -> None:
        """Continue from `state`; without effect if it raises.

        Raises:
            ValueError: it is of another number of joints, or damaged.
            KeyError: a part is missing.
        """
        fresh = ChangeMonitor(self.model)
        for part, watch in (
            ("friction_", fresh.friction),
            ("standby_", fresh._standby),
            ("setup_", fresh._setup),
        ):
            watch.restore(part_of(state, part))
        shift = np.asarray(state["shift"], dtype=float)
        if shift.shape != (self.model.dof,) or not np.isfinite(shift).all():
            raise ValueError("state of another arm")
        fresh.friction.rebase(shift)
        time, epoch = np.asarray(state["clock"], dtype=float).tolist()
        self.friction, self._standby, self._setup = fresh.friction, fresh._standby, fresh._setup
        self._time = None if math.isnan(time) else time
        self._epoch = None if math.isnan(epoch) else epoch

    def _follow_clock(self, window: Telemetry) -> None:
        """Start a session after a long pause or a restart of the controller."""
        first, last = float(window.time[0]), float(window.time[-1])
        epoch = self._epoch
        if window.stamp is not None:
            epoch = 1e-9 * float(window.stamp[-1]) - last
        before, known = self._time, self._epoch
        self._time, self._epoch = last, epoch
        if before is None:
            self.start_session(first, 0.0)
            return
        passed = first - before
        restarted = passed < -1.0
        if restarted and epoch is not None and known is not None:
            passed = (first + epoch) - (before + known)
        if restarted or passed > SESSION_GAP:
            for minute in self._meter.finish():
                self.observe_minute(minute)
            if self._next is not None:
                self._next = NextModel(self._next.model)
            days = passed / 86400.0 if passed > 0 else _UNKNOWN_DAYS
            self.start_session(first, days)

    def _say_friction(self, change: LevelChange) -> None:
        ratio = math.exp(change.size) - 1.0
        joint = self._names[change.channel]
        warm = "" if math.isnan(change.temperature) else f" at {change.temperature:.0f} degC"
        usual = float(self.friction.typical_torque()[change.channel]) * math.exp(change.usual)
        words = (
            f"{joint} friction {_percent(ratio)} its usual{warm} since "
            f"{self._clock(change.time)} ({usual * (1.0 + ratio):.2g} N m instead of "
            f"{usual:.2g} N m at {TYPICAL_SPEED:g} rad/s)"
        )
        low, high = (math.exp(value) - 1.0 for value in _interval(change))
        self.changes.append(Change(change.time, joint, "friction", ratio, (low, high), words))

    def _say_standby(self, change: LevelChange) -> None:
        usual = self.model.bus.standby + change.usual
        words = (
            f"standby power {abs(change.size):.1f} W {_side(change.size)} its usual since "
            f"{self._clock(change.time)} ({usual + change.size:.1f} W instead of {usual:.1f} W)"
        )
        self._say(change, "standby", words)

    def _say_payload(self, change: LevelChange) -> None:
        half = CONFIDENCE * change.std
        words = (
            f"payload {abs(change.size):.2f} kg (+-{half:.2f} kg) {_side(change.size)} its usual "
            f"since {self._clock(change.time)}, and the controller was not told; set the payload "
            "in the controller"
        )
        self._say(change, "payload", words)

    def _say_mounting(self, change: LevelChange) -> None:
        words = (
            f"mounting tilted by {math.degrees(abs(change.size)):.1f} degrees (+-"
            f"{math.degrees(CONFIDENCE * change.std):.1f}) against its usual since "
            f"{self._clock(change.time)}, and the controller was not told; set the mounting in "
            "the controller"
        )
        self._say(change, "mounting", words)

    def _say(self, change: LevelChange, what: str, words: str) -> None:
        low, high = _interval(change)
        self.changes.append(Change(change.time, None, what, change.size, (low, high), words))

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


def _percent(ratio: float) -> str:
    return f"{100.0 * abs(ratio):.0f} % {_side(ratio)}"


# What a learner notices besides the model: changes of the arm, and what work has not shown.


class ChangeDetector:
    """Follows an arm beside the learning of its model, in constant memory.

    Args:
        robot: the arm, n joints.
        model: in use.

    Attributes:
        coverage: what work has shown so far.
        monitor: of changes; its `friction` predicts the friction of today and of a cold start.
    """

    def __init__(self, robot: RobotDescription, model: EnergyModel) -> None:
        self._robot, self._model = robot, model
        self._work: ReferenceWork | None = None
        """By that model; None before it is needed."""
        self.coverage = Coverage(robot.dof)
        self.monitor = ChangeMonitor(model)

    def observe(self, window: Telemetry, motions: Sequence[ArmMotion]) -> None:
        """Use a window of possible samples and its motions."""
        self.coverage.observe(window)
        self.monitor.observe(window, [(part.motion, part.dynamics) for part in motions])

    def use_model(self, model: EnergyModel) -> EnergyModel:
        """Go on with another model of the arm; returns it with the needs in its provenance."""
        self._model, self._work = model, None
        self.monitor.use_model(model)
        provenance = {**model.provenance, NEEDS: [need.as_json() for need in self.needs()]}
        self._model = replace(model, provenance=provenance)
        return self._model

    def needs(self) -> tuple[Need, ...]:
        """What ordinary work has not shown yet, the most important first."""
        if self._work is None:
            self._work = reference_work(self._model, self._robot)
        return needs(self._model, self.coverage, self._work)

    def take_changes(self) -> tuple[Change, ...]:
        """Changes of the arm since the last call."""
        return self.monitor.take()

    def saved(self) -> dict[str, Any]:
        """Everything needed to continue with the same model."""
        return {
            "coverage": self.coverage.state(),
            "monitor": self.monitor.state(),
            "changes": [change.as_json() for change in self.monitor.changes],
        }

    @classmethod
    def restored(
        cls, saved: Mapping[str, Any], robot: RobotDescription, model: EnergyModel
    ) -> ChangeDetector:
        """The watch that `saved` describes.

        Raises:
            ValueError: it is of another arm, or damaged.
            KeyError: a part is missing.
        """
        out = cls(robot, model)
        out.coverage.restore(saved["coverage"])
        out.monitor.restore(saved["monitor"])
        out.monitor.changes = [change_from_json(values) for values in saved["changes"]]
        return out
