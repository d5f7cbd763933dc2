# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The follower of a session: its standby power and the friction of its day, from telemetry.

Standby power and friction are estimated recursively, forward only: what a sample shows is
used from the next sample on. Measured currents show the friction of each joint, as a scale
and a tilt (`energy.friction_follower`). Bus power less the power of motors and drivers shows
the standby power (`energy.standby`). Given the currents, standby power and friction do not
depend on each other, so that each has a separate filter.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ur_energy_model.energy.friction_follower import ANCHOR_SPEED, FrictionFollower
from ur_energy_model.energy.standby import StandbyFollower, StandbyState
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.friction import FrictionBank
from ur_energy_model.model.sessions import SESSION_GAP, Session, SessionFriction
from ur_energy_model.telemetry.plausibility import PlausibleRanges, impossible_rows
from ur_energy_model.telemetry.samples import Telemetry, changes, time_blocks
from ur_energy_model.typing import Array

_TOGETHER = 4.0
"""Length of the blocks of the controller's clock whose samples are used together for friction [s]:
the dynamics of many samples at once take less time per sample."""
SAME_CONSTANT = 0.002
"""Relative change of a torque constant up to which the friction of the joint, which its currents
have shown, is kept."""
_PERIOD = 0.04
"""Period of the samples that are used [s]; errors of the currents correlate for longer."""
_FIELDS = ("target_q", "target_qd", "target_qdd", "actual_current")
_WARMTH = "joint_temperatures"


class SessionState(NamedTuple):
    """Estimates of standby power and friction of one session.

    Attributes:
        standby: estimate of the standby power.
        friction: state of the friction follower, see `FrictionFollower.saved`; None where
            friction is not followed.
    """

    standby: StandbyState
    friction: Mapping[str, Array] | None


class SessionFollower:
    """Follows the sessions of an arm: their standby power and friction.

    The motion of the session shows the friction. Its prior is the friction that background
    learning has found, if there is any. Once learning has used motion of this session, the
    friction from learning replaces the friction of the follower: the same motion must not
    count twice.

    Args:
        model: model of the arm, in any session. The friction of a model that was fitted to
            motion of the present session is kept and not followed.
        limits: plausible values of the arm; blocks with a sample beyond them are not used
            for friction.
        dynamics: returns the dynamics of the arm in its present setup.
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
        self._session = model.session  # session with the friction from learning
        self._learned: SessionFriction | None = None  # friction from learning
        self._tracked: EnergyModel | None = None  # cache of `tracked`
        self._expected: list[SessionState] = []  # states of sessions to come, in order
        self._ended: list[SessionState] = []  # states of the sessions before, in order
        self._time: float | None = None  # time of the last sample, controller's clock [s]
        self._friction: FrictionFollower | None = None
        self._waiting: list[Telemetry] = []  # samples of the present block of _TOGETHER
        self._number = math.nan  # number of this block on the controller's clock
        self.standby = StandbyFollower(
            model.bus.standby,
            model.session.standby_std,
            limit=limit,
            enabled=enabled,
            motion_std=model.bus.motion_std,
            motion_variance=model.bus.motion_variance,
        )
        self._begin()

    def continue_from(self, earlier: SessionFollower) -> None:
        """Continue the session of a follower whose model has other torque constants of the arm.

        Friction that currents have shown is kept for joints with the same torque constant;
        the friction of the others begins anew.
        """
        self._time = earlier._time
        self.standby.continue_from(earlier.standby)
        self.use_friction(earlier._learned)
        if self._friction is None or earlier._friction is None:
            return
        now = np.array([joint.torque_constant for joint in self._model.joints])
        before = np.array([joint.torque_constant for joint in earlier._model.joints])
        same = np.abs(now / before - 1.0) < SAME_CONSTANT
        earlier._use_waiting()
        known = earlier._friction.saved()
        kept = {
            "sums": known["sums"] * same[:, None, None],
            "seconds": known["seconds"] * same,
        }
        self._friction.restore({**known, **kept})

    def expect(self, states: Sequence[SessionState]) -> None:
        """Begin the sessions to come with the estimates of an earlier pass over them.

        Args:
            states: final states of the same sessions in that pass, see `states`.
        """
        self._expected = [
            SessionState(each.standby.for_another_pass(), each.friction)
            for each in states
        ]
        self._begin()

    def states(self) -> list[SessionState]:
        """Final states of the sessions before, and the state of the present one, in order."""
        self._use_waiting()
        return [*self._ended, self._state()]

    def session_starts(self, time: Array) -> list[int]:
        """Numbers of the samples with which a new session begins.

        A session begins where the controller's clock goes backwards (a restart) or skips
        more than SESSION_GAP. The very first sample begins no new session.

        Args:
            time: controller times of the next samples [samples], s.
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
        """Estimate friction from motion and currents of samples of this session.

        Accelerations are the controller's targets: accelerations that are differentiated
        from measured speeds are delayed, so that part of the inertia would count as
        friction. Samples are collected until their block of the clock is complete.

        Returns:
            Whether a block was completed and friction estimated anew.
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
        """Use friction from learning from now on; None for the friction of the model."""
        self._learned = friction
        session = self._model.session
        self._session = session if friction is None else friction.applied_to(session)
        self._tracked = None

    def tracked(self) -> EnergyModel:
        """The model in this session without its uncertainty of the standby power.

        The uncertainty at each sample is in the output of `standby`.
        """
        if self._tracked is None:
            self._tracked = self._model.in_session(
                replace(self._session, standby_std=0.0)
            )
        return self._tracked

    def model(self) -> EnergyModel:
        """The model with standby power and friction of this session, as far as they are known."""
        self._use_waiting()
        return self._model.in_session(self._known())

    def friction(self) -> FrictionBank:
        """The friction of the joints in this session."""
        model = self._model.in_session(self._known())
        ratio = np.array([joint.gear_ratio for joint in model.joints])
        return FrictionBank([joint.friction for joint in model.joints], ratio)

    def _known(self) -> Session:
        """The session as far as its samples have shown it."""
        session = self._session
        learned = self._learned
        if self._friction is not None:
            if learned is not None and learned.moving_seconds > 0:
                # Learning has used the same motion, which must not count twice.
                followed = self._friction.session(self._model.session, self._time)
                session = learned.applied_to(followed)
            else:
                session = self._friction.session(session, self._time)
        standby = self.standby
        session = replace(session, standby=standby.power, standby_std=standby.std)
        if standby.anchored:
            session = replace(session, still_seconds=standby.still_seconds)
        return session

    def _state(self) -> SessionState:
        """State of the present session."""
        friction = None if self._friction is None else self._friction.saved()
        return SessionState(self.standby.state, friction)

    def _begin(self) -> None:
        """Begin a session, with its expected state if there is one."""
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
        """Estimate friction from the collected samples; return whether they could be used."""
        waiting = self._waiting
        self._waiting = []
        if self._friction is None or not waiting:
            return False
        time = np.concatenate([each.time for each in waiting])
        if len(time) < 2 or not np.ptp(time) > 0.0:
            return False
        # One sample per _PERIOD: samples in between have almost the same errors.
        every = max(1, round(_PERIOD * len(time) / float(np.ptp(time))))
        used = {}
        for name in (*_FIELDS, _WARMTH):
            if name in waiting[0].columns:
                values = np.concatenate([each.columns[name] for each in waiting])
                used[name] = values[::every]
        warmth = used.pop(_WARMTH, None)
        if np.abs(used["target_qd"]).max() < ANCHOR_SPEED:
            return False
        if impossible_rows(used, self._limits)[0].any():
            return False
        self._friction.observe(
            self._dynamics(),
            time=time[::every],
            q=used["target_q"],
            qd=used["target_qd"],
            qdd=used["target_qdd"],
            current=used["actual_current"],
            temperature=warmth,
        )
        return True
