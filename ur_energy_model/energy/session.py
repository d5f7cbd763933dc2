# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The follower of a session: its standby power and the friction of its day, from telemetry.

Both are estimated recursively, forward only: what a sample shows is used from the next
one on. Measured currents show the friction of each joint, as a scale and a tilt; bus
power less motors and drivers shows the standby power, at standstill as in motion. Given
the currents the two do not depend on each other, so that each is a filter of its own:
blocks of the controller's clock, the spread between sessions of the model as prior, drift
within the session as process noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from ur_energy_model.energy.friction_follower import ANCHOR_SPEED, FrictionFollower
from ur_energy_model.model.drives import MOTION_OF_SESSION, MOTION_TIME
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.friction import FrictionBank
from ur_energy_model.model.sessions import SESSION_GAP, Session, SessionFriction
from ur_energy_model.telemetry.plausibility import PlausibleRanges, impossible_rows
from ur_energy_model.telemetry.samples import Telemetry, changes, equal_runs, time_blocks
from ur_energy_model.typing import Array, Mask

# Standby power is the bus power less the power of motors and drivers. It differs by several
# watts between days of one arm. Its measurements are means over blocks of the controller's
# clock, so that the result does not depend on how samples are batched. At standstill a
# measurement has the noise of the bus alone. In motion it also has the error of the
# modelled power of motion: one part of this error is new every MOTION_TIME, another part is
# common to all motions of the session.
#
# An error of the model's parameters changes the measurement by the sensitivity of motors
# and drivers, with the opposite sign. The estimate keeps this change per error (Schmidt
# 1966: a filter with parameters that are considered and not estimated). So the error of
# the whole arm's power is only that of the difference to the poses and motions in which
# the standby power was measured.

BLOCK = 0.05  # length of the blocks [s]
ANCHORING = 0.5  # standstill after which the session's standby counts as measured [s]
ANCHORING_MOTION = 10.0  # the same of motion, for a program that never stands still [s]
NOISE = 0.032
"""Variance of the mean over a time at standstill, times that time [W^2 s], before the scatter of
the blocks shows it: 3 W a sample at 125 Hz, 0.8 W a block."""
DRIFT = 2.0e-4
"""Variance by which standby power drifts per second [W^2/s]: 0.4 W in a quarter of an hour. With
NOISE the filter forgets with a time constant of 13 s of standstill."""
POSE_STD = 0.4
"""Standard deviation of the standby power of a motion to come, after long standstill [W]: holding
currents depend on the pose, and standby power drifts between standstills. This error
averages out in energies of the time in which the standby power was measured."""
JUMP_TIME = 1.0
"""Time over which differences to the estimate are averaged [s]; their mean shows a jump of the
standby power, as when a tool is switched on."""
_JUMP = 5.0
"""Size of that mean from which on it is a jump, in standard deviations. The variance of the
estimate then grows by the square of the jump, so that the next blocks count almost alone."""
_NOISE_MEMORY = 100  # blocks that the estimate of the noise goes back
_FIRST_BLOCKS = 4  # blocks that NOISE counts as
_SURPRISE = 4.0
"""Most standard deviations with which a measurement in motion counts: the model's error in a rare
motion must not move the standby power far."""


def _no_errors() -> Array:
    """Changes per error where no number of errors is known yet [0]."""
    return np.zeros(0)


@dataclass(frozen=True)
class StandbyState:
    """Estimate of the standby power of a session after the last complete block.

    Attributes:
        power: mean of the estimate [W].
        variance: of the estimate, by noise and drift [W^2].
        errors: change of the estimate per error of the power of motors and drivers
            [errors], W.
        motion: share of the estimate that was measured in motion, 0 to 1.
        still_seconds: standstill that was used [s].
        moving_seconds: motion that was used [s].
        known: whether an earlier pass over the session has shown the standby power.
        noise: variance of a mean at standstill times the time of the mean [W^2 s].
        blocks: number of blocks at standstill that were used.
        recent: mean difference to the estimate over JUMP_TIME [W].
        recent_variance: variance of `recent` by noise [W^2].
    """

    power: float
    variance: float
    errors: Array = field(default_factory=_no_errors)
    motion: float = 0.0
    still_seconds: float = 0.0
    moving_seconds: float = 0.0
    known: bool = False
    noise: float = NOISE
    blocks: int = 0
    recent: float = 0.0
    recent_variance: float = 0.0

    def for_another_pass(self) -> StandbyState:
        """The state at the begin of another pass over the same session."""
        return replace(self, known=self.measured, still_seconds=0.0, moving_seconds=0.0)

    @property
    def measured(self) -> bool:
        """Whether the session has shown its standby power."""
        still = self.still_seconds >= ANCHORING - 1e-9
        return self.known or still or self.moving_seconds >= ANCHORING_MOTION - 1e-9


def standby_step(
    state: StandbyState,
    seconds: float,
    watts: float,
    sensitivity: Array,
    *,
    moving: bool,
    motion_variance: float,
) -> StandbyState:
    """The estimate after another block.

    Args:
        state: estimate before it, drift included.
        seconds: time of the block [s].
        watts: mean of bus power less motors and drivers over it [W].
        sensitivity: mean change of the power of motors and drivers per error [errors], W.
        moving: whether the arm moved.
        motion_variance: of the energy of motion per second, see `BusModel` [J^2/s].
    """
    own = state.noise / seconds
    lasting = 0.0
    if moving:
        # Motion that the parameters leave open shows little of the standby power.
        open_power = state.errors + sensitivity
        systematic = float(open_power @ open_power)
        own += motion_variance / seconds + systematic
        # The variance of errors that the mean over JUMP_TIME does not reduce.
        lasting = motion_variance / MOTION_TIME + systematic
    innovation = watts - state.power
    share = min(seconds / JUMP_TIME, 1.0)
    recent = state.recent + share * (innovation - state.recent)
    recent_variance = (1.0 - share) ** 2 * state.recent_variance + share**2 * own
    usual_variance = state.variance + recent_variance + lasting
    if state.measured and abs(recent) > _JUMP * math.sqrt(usual_variance):
        state = replace(state, variance=state.variance + recent**2)
        recent = 0.0
    spread = state.variance + own
    if moving:
        spread = max(spread, (innovation / _SURPRISE) ** 2)
    gain = state.variance / spread
    noise = state.noise
    if not moving:
        weight = 1.0 / min(_FIRST_BLOCKS + state.blocks, _NOISE_MEMORY)
        usual = min(innovation**2, _SURPRISE**2 * spread)
        shown = max(usual - state.variance, 0.0) * seconds
        noise += weight * (shown - noise)
    return replace(
        state,
        power=state.power + gain * innovation,
        variance=(1.0 - gain) * state.variance,
        errors=(1.0 - gain) * state.errors - gain * sensitivity,
        motion=(1.0 - gain) * state.motion + gain * moving,
        still_seconds=state.still_seconds + (0.0 if moving else seconds),
        moving_seconds=state.moving_seconds + (seconds if moving else 0.0),
        noise=max(noise, 1e-9),
        blocks=state.blocks + (not moving),
        recent=recent,
        recent_variance=recent_variance,
    )


@dataclass(frozen=True)
class _Block:
    """The block in progress.

    Attributes:
        number: of the block on the controller's clock.
        seconds: time so far [s].
        energy: bus energy less motors and drivers [J]; NaN where unknown.
        changes: change of the energy of motors and drivers per error [errors], J.
        still: whether all samples are of standstill.
        released: whether the brakes were released in all samples.
    """

    number: float = math.nan
    seconds: float = 0.0
    energy: float = 0.0
    changes: Array = field(default_factory=_no_errors)
    still: bool = True
    released: bool = True


class StandbySeries(NamedTuple):
    """Standby power in use at consecutive samples.

    Attributes:
        power: [samples], W.
        std: its standard deviation [samples], W.
        errors: its change per error of the power of motors and drivers [samples,
            errors], W.
    """

    power: Array
    std: Array
    errors: Array

    @classmethod
    def joined(cls, parts: Sequence[StandbySeries]) -> StandbySeries:
        """The standby power at samples that follow one another, from at least one part."""
        return cls(
            power=np.concatenate([part.power for part in parts]),
            std=np.concatenate([part.std for part in parts]),
            errors=np.concatenate([part.errors for part in parts]),
        )


class StandbyFollower:
    """Follows the standby power of one session after the other.

    Args:
        nominal: the model's standby power [W].
        spread: standard deviation of standby power between sessions [W].
        limit: largest deviation of the power in use from the nominal one [W].
        enabled: False keeps the nominal power.
        motion_std: of the power of a second of motion, see `BusModel` [W].
        motion_variance: of the energy of motion per second, see `BusModel` [J^2/s].

    Attributes:
        state: the estimate.
        common: standard deviation of the error that all motions of the session have [W].
    """

    def __init__(
        self,
        nominal: float,
        spread: float,
        *,
        limit: float = 15.0,
        enabled: bool = True,
        motion_std: float = 0.0,
        motion_variance: float = 0.0,
    ) -> None:
        self.nominal = nominal
        self.spread = spread
        self.limit = limit
        self.enabled = enabled
        self.common = MOTION_OF_SESSION * motion_std
        self._motion_variance = motion_variance
        self.state = StandbyState(nominal, spread**2)
        self._block = _Block()

    def begin(self, known: StandbyState | None = None) -> None:
        """Begin a session, with what is known of it already."""
        self.state = known or StandbyState(self.nominal, self.spread**2)
        self._block = _Block()

    def continue_from(self, earlier: StandbyFollower) -> None:
        """Go on with the session of a follower whose model has other errors of its motors.

        What these changed in the estimate counts as noise from now on.
        """
        state = earlier.state
        variance = state.variance + float(state.errors @ state.errors)
        # Without errors, for as many as the next samples have.
        self.state = replace(
            state, variance=min(variance, self.spread**2), errors=np.zeros(0)
        )

    def update(
        self,
        time: Array,
        steps: Array,
        still: Mask,
        released: Mask,
        unexplained: Array,
        sensitivities: Array,
    ) -> StandbySeries:
        """Standby power at samples of one session that follow those of the last call.

        Args:
            time: controller timestamps [samples], s.
            steps: bridged steps to the samples [samples], s.
            still: whether the arm is held at standstill [samples].
            released: whether its brakes are released [samples].
            unexplained: bus power less motors and drivers [samples], W; NaN where
                unknown.
            sensitivities: change of the power of motors and drivers per error [samples,
                k], W.
        """
        count = sensitivities.shape[1]
        if len(self.state.errors) != count:
            self.state = replace(self.state, errors=np.zeros(count))
        if len(self._block.changes) != count:
            self._block = replace(self._block, changes=np.zeros(count))
        found = []
        number = np.floor(time / BLOCK)
        for rows in equal_runs(number):
            if self._block.number != number[rows.start]:
                self._close_block(float(number[rows.start]))
            seconds = steps[rows]
            self._block = replace(
                self._block,
                seconds=self._block.seconds + float(seconds.sum()),
                energy=self._block.energy + float(seconds @ unexplained[rows]),
                changes=self._block.changes + seconds @ sensitivities[rows],
                still=self._block.still and bool(still[rows].all()),
                released=self._block.released and bool(released[rows].all()),
            )
            length = rows.stop - rows.start
            at_rest, in_motion = self._deviations()
            found.append(
                StandbySeries(
                    power=np.full(length, self.power),
                    std=np.where(still[rows], at_rest, in_motion),
                    errors=np.broadcast_to(self._errors, (length, count)),
                )
            )
        return StandbySeries.joined(found)

    def _close_block(self, number: float) -> None:
        """Use the complete block, and begin the next one."""
        block = self._block
        passed = (number - block.number) * BLOCK
        if math.isfinite(passed):
            drifted = self.state.variance + DRIFT * max(passed, 0.0)
            # Between sessions it differs by no more than this.
            self.state = replace(self.state, variance=min(drifted, self.spread**2))
        usable = block.seconds > 0.0 and block.released and math.isfinite(block.energy)
        if usable:
            self.state = standby_step(
                self.state,
                block.seconds,
                block.energy / block.seconds,
                block.changes / block.seconds,
                moving=not block.still,
                motion_variance=self._motion_variance,
            )
        self._block = _Block(number, changes=np.zeros_like(block.changes))

    @property
    def _errors(self) -> Array:
        return self.state.errors if self.enabled else np.zeros_like(self.state.errors)

    @property
    def anchored(self) -> bool:
        """Whether the session has shown its standby power."""
        return self.enabled and self.state.measured

    @property
    def measured(self) -> float | None:
        """Standby power that the session has shown, without limit [W]; None before it has."""
        return self.state.power if self.state.measured else None

    @property
    def still_seconds(self) -> float:
        """Standstill that was used [s]."""
        return self.state.still_seconds

    @property
    def power(self) -> float:
        """Standby power in use [W]."""
        if not self.enabled:
            return self.nominal
        lowest = self.nominal - self.limit
        return min(max(self.state.power, lowest), self.nominal + self.limit)

    @property
    def std(self) -> float:
        """Standard deviation of `power` for motions to come [W]."""
        at_rest, _ = self._deviations()
        return math.hypot(at_rest, POSE_STD) if self.anchored else at_rest

    def _deviations(self) -> tuple[float, float]:
        """Standard deviations of the power at standstill and in motion [W]."""
        if not self.enabled:
            return self.spread, self.spread
        own = self.state.variance
        if not self.state.measured:
            return math.sqrt(own), math.sqrt(own)
        at_rest = own + (self.state.motion * self.common) ** 2
        in_motion = own + ((1.0 - self.state.motion) * self.common) ** 2
        return math.sqrt(at_rest), math.sqrt(in_motion)

    @property
    def at_limit(self) -> bool:
        """Whether the measured standby exceeds the limit."""
        measured = self.measured
        return measured is not None and abs(measured - self.nominal) > self.limit


# The follower of both, for the calculator.

_TOGETHER = 4.0
"""Length of the blocks of the controller's clock whose samples are used together for friction [s];
computing the dynamics of fewer samples at once would take longer."""
SAME_CONSTANT = 0.002
"""Relative change of a torque constant up to which friction is kept that currents have shown."""
_PERIOD = 0.04
"""Period of the samples that are used [s]; errors of the currents correlate for longer."""
_FIELDS = ("target_q", "target_qd", "target_qdd", "actual_current")
_WARMTH = "joint_temperatures"


class SessionState(NamedTuple):
    """What is known of a session.

    Attributes:
        standby: estimate of the standby power.
        friction: state of the friction, see `FrictionFollower.saved`; None where it is not
            followed.
    """

    standby: StandbyState
    friction: Mapping[str, Array] | None


class SessionFollower:
    """Follows the sessions of an arm: their standby power and friction.

    The motion of the session shows the friction. Its prior is the friction that learning
    has followed, if there is one; once learning has followed a joint in this session, too,
    its friction replaces the follower's.

    Args:
        model: of the arm, in its session or in any; one that is anchored keeps its
            friction.
        limits: of the arm; blocks of samples with a value beyond them show nothing of
            friction.
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

    def continue_from(self, earlier: SessionFollower) -> None:
        """Go on with the session of a follower whose model has other torque constants of the arm.

        What currents have shown of friction is kept for joints with the same constant.
        """
        self._time = earlier._time
        self.standby.continue_from(earlier.standby)
        self.use_friction(earlier._learned)
        if self._friction is None or earlier._friction is None:
            return
        own = np.array([joint.torque_constant for joint in self._model.joints])
        before = np.array([joint.torque_constant for joint in earlier._model.joints])
        same = np.abs(own / before - 1.0) < SAME_CONSTANT
        earlier._use_waiting()
        known = earlier._friction.saved()
        kept = {
            "sums": known["sums"] * same[:, None, None],
            "seconds": known["seconds"] * same,
        }
        self._friction.restore({**known, **kept})

    def expect(self, states: Sequence[SessionState]) -> None:
        """Begin the sessions that follow with these states, as of an earlier pass over them."""
        self._expected = [
            SessionState(each.standby.for_another_pass(), each.friction)
            for each in states
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
        """Use motion and currents of samples of this session.

        Accelerations are the controller's targets: accelerations differentiated from
        measured speeds come too late, and inertia would count as friction.

        Returns:
            Whether friction was estimated anew.
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
        """Use this friction from now on; None for that of the model."""
        self._learned = friction
        session = self._model.session
        self._session = session if friction is None else friction.applied_to(session)
        self._tracked = None

    def tracked(self) -> EnergyModel:
        """The model for samples, whose error of standby power `standby` states."""
        if self._tracked is None:
            self._tracked = self._model.in_session(
                replace(self._session, standby_std=0.0)
            )
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
        """The session as far as its samples have shown it."""
        session = self._session
        learned = self._learned
        if self._friction is not None:
            if learned is not None and learned.moving_seconds > 0:
                # Learning has followed the same motion, which must not count twice.
                own = self._friction.session(self._model.session, self._time)
                session = learned.applied_to(own)
            else:
                session = self._friction.session(session, self._time)
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
