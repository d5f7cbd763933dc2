# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The follower of a session: its standby power and the friction of its day, from telemetry.

Both are estimated recursively, forward only: what a sample shows is used from the next one on.
Measured currents show the friction of each joint, as a scale and a tilt; bus power less motors and
drivers shows the standby power, at standstill as in motion. Given the currents the two do not
depend on each other, so that each is a filter of its own: blocks of the controller's clock, the
spread between sessions of the model as prior, drift within the session as process noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ur_energy_model.energy.friction_follower import ANCHOR_SPEED, FrictionFollower
from ur_energy_model.energy.standby_follower import StandbyFollower, StandbyState
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.friction import FrictionBank
from ur_energy_model.model.sessions import SESSION_GAP, Session, SessionFriction
from ur_energy_model.telemetry.plausibility import PlausibleRanges, impossible_rows
from ur_energy_model.telemetry.samples import Telemetry, changes, time_blocks
from ur_energy_model.typing import Array

_TOGETHER = 4.0
"""Time of the controller's clock whose samples are used together for friction [s]: their dynamics
take longest."""
_PERIOD = 0.04  # of the samples that are used [s]; errors of the currents correlate for longer
_FIELDS = ("target_q", "target_qd", "target_qdd", "actual_current")
_WARMTH = "joint_temperatures"


class SessionState(NamedTuple):
    """What is known of a session."""

    standby: StandbyState
    friction: Mapping[str, Array] | None  # see `FrictionFollower.saved`; None where not followed


class SessionFollower:
    """Follows the sessions of an arm.

    Friction is what the motion of the session shows, with what learning follows as prior until it
    has followed a joint in this session, too, and owns it.

    Args:
        model: of the arm, in its session or in any; one that is anchored keeps its friction.
        limits: of the arm; blocks of samples with a value beyond them show nothing of friction.
        dynamics: of the arm in its current setup.
        limit: largest deviation of the standby power from the model's [W].
        enabled: False keeps the model's standby power.

    Attributes:
        standby: follower of the standby power.
    """

    def __init__(
        self,
        model: EnergyModel,
        limits: PlausibleRanges,
        dynamics: Callable[[], ArmDynamics],
        *,
        limit: float = 15.0,
        enabled: bool = True,
    ) -> None:
        self._model = model
        self._limits = limits
        self._dynamics = dynamics
        self._session = model.session
        self._learned: SessionFriction | None = None
        self._tracked: EnergyModel | None = None
        self._expected: list[SessionState] = []  # of the sessions that follow, in order
        self._ended: list[SessionState] = []
        self._time: float | None = None
        self._friction: FrictionFollower | None = None
        self._waiting: list[Telemetry] = []  # samples of the present _TOGETHER
        self._number = math.nan  # number of that time
        self.standby = StandbyFollower(
            model.bus.standby,
            model.session.standby_std,
            limit=limit,
            enabled=enabled,
            motion_std=model.bus.motion_std,
            motion_variance=model.bus.motion_variance,
        )
        self._begin()

    def expect(self, states: Sequence[SessionState]) -> None:
        """Begin the sessions that follow with these states, as of an earlier pass over them."""
        self._expected = [
            SessionState(each.standby.for_another_pass(), each.friction) for each in states
        ]
        self._begin()

    def states(self) -> list[SessionState]:
        """What is known of the sessions so far, in order."""
        self._use_waiting()
        return [*self._ended, self._state()]

    def session_starts(self, time: Array) -> list[int]:
        """Samples with which a session begins, other than the first one of all.

        `time`: controller times of samples that follow those before [samples], s.
        """
        before = float(time[0]) if self._time is None else self._time
        steps = changes(time, before)
        self._time = float(time[-1])
        if steps.min() >= 0.0 and steps.max() <= SESSION_GAP:  # the usual case
            return []
        found: list[int] = np.flatnonzero((steps < 0.0) | (steps > SESSION_GAP)).tolist()
        return found

    def next_session(self) -> None:
        """End the session, and begin the next one."""
        self._use_waiting()
        self._ended.append(self._state())
        self._begin()

    def observe_motion(self, samples: Telemetry) -> bool:
        """Use motion and currents of samples of this session; whether friction was estimated anew.

        Accelerations are the controller's targets: those differentiated from measured speeds come
        too late, and inertia would count as friction.
        """
        if self._friction is None or any(name not in samples.columns for name in _FIELDS):
            return False
        found = False
        if self._waiting and samples.columns.keys() != self._waiting[0].columns.keys():
            found = self._use_waiting()
        for rows in time_blocks(samples.time, _TOGETHER):
            number = float(samples.time[rows.start] // _TOGETHER)
            if number != self._number:
                found |= self._use_waiting()
                self._number = number
            self._waiting.append(samples.cut(rows))
        return found

    def use_friction(self, friction: SessionFriction | None) -> None:
        """Take this friction from now on; None for that of the model."""
        self._learned = friction
        session = self._model.session
        self._session = session if friction is None else friction.applied_to(session)
        self._tracked = None

    def tracked(self) -> EnergyModel:
        """The model for samples, whose error of standby power `standby` states."""
        if self._tracked is None:
            self._tracked = self._model.in_session(replace(self._session, standby_std=0.0))
        return self._tracked

    def model(self) -> EnergyModel:
        """The model in this session: with its standby power, and its friction as far as known."""
        self._use_waiting()
        return self._model.in_session(self._known())

    def friction(self) -> FrictionBank:
        """The friction of the joints in this session."""
        model = self._model.in_session(self._known())
        ratio = np.array([joint.gear_ratio for joint in model.joints])
        return FrictionBank([joint.friction for joint in model.joints], ratio)

    def _known(self) -> Session:
        session = self._session
        learned = self._learned
        if self._friction is not None:
            # What learning has followed in this session is the motion that is followed here, too.
            owned = learned is not None and learned.moving_seconds > 0
            prior = self._model.session if owned else session
            session = self._friction.session(prior, self._time)
            if learned is not None and owned:
                session = learned.applied_to(session)
        standby = self.standby
        session = replace(session, standby=standby.power, standby_std=standby.std)
        if standby.anchored:
            session = replace(session, still_seconds=standby.still_seconds)
        return session

    def _state(self) -> SessionState:
        friction = None if self._friction is None else self._friction.saved()
        return SessionState(self.standby.state, friction)

    def _begin(self) -> None:
        expected = self._expected.pop(0) if self._expected else None
        self.standby.begin(None if expected is None else expected.standby)
        self._waiting = []
        self._number = math.nan
        self._friction = None
        if not self._model.session.moving_seconds > 0:
            self._friction = FrictionFollower(self._model)
            if expected is not None and expected.friction is not None:
                self._friction.restore(expected.friction)

    def _use_waiting(self) -> bool:
        """Use the samples that wait; whether friction was estimated anew."""
        waiting = self._waiting
        self._waiting = []
        if self._friction is None or not waiting:
            return False
        time = np.concatenate([each.time for each in waiting])
        if len(time) < 2 or not np.ptp(time) > 0.0:
            return False
        rows = slice(None, None, max(1, round(_PERIOD * len(time) / float(np.ptp(time)))))
        names = [name for name in (*_FIELDS, _WARMTH) if name in waiting[0].columns]
        used = {n: np.concatenate([each.columns[n] for each in waiting])[rows] for n in names}
        warmth = used.pop(_WARMTH, None)
        if np.abs(used["target_qd"]).max() < ANCHOR_SPEED:
            return False
        if impossible_rows(used, self._limits)[0].any():
            return False
        q, qd, qdd, current = used.values()
        self._friction.observe(self._dynamics(), time[rows], q, qd, qdd, current, warmth)
        return True
