# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Selects what moves the arm, its built-in motion or commands, and enforces the safety limits."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

import numpy as np

from ur_energy_model.errors import MotionRefusedError
from ur_energy_model.simulation import arm_commands as cmd
from ur_energy_model.simulation.arm_commands import ProgramState, SafetyMode
from ur_energy_model.simulation.arm_constants import constants
from ur_energy_model.trajectory.motions import Hold, Motion, repeats
from ur_energy_model.trajectory.named_motions import Planner
from ur_energy_model.typing import Array, Mask

State = tuple[Array, Array, Array]  # commanded position, velocity and acceleration [n]

_BUFFER = 256  # states of a motion that are computed together
_USUAL_GAIN = 300.0  # gain at which the arm lags behind a stream by the look-ahead time
SERVO_ACCELERATION = 40.0  # acceleration limit while following a stream [rad/s^2]
SPEED_AVERAGING = 0.01  # averaging time of the speed of a stream [s]
LOOKAHEAD = (0.03, 2.0)  # range to which the look-ahead time of a stream is clipped [s]
GAIN = (1.0, 1e4)  # range to which the gain of a stream is clipped


class Reference(Protocol):
    """Source of commanded joint states."""

    @property
    def done(self) -> bool:
        """Whether the reference has ended, at rest."""
        ...

    def step(self, dt: float, scale: float, change: float) -> State:
        """Commanded state after `dt` more seconds at a speed scaling and its rate of change.

        Args:
            dt: time since the last step [s].
            scale: speed scaling, 0 to 1.
            change: rate of change of the speed scaling [1/s].

        Returns:
            Position [n], rad, velocity, rad/s, and acceleration, rad/s^2.
        """
        ...


class HoldPosition:
    """Keep the commanded position.

    Args:
        q: joint positions [n], rad.
    """

    done = True

    def __init__(self, q: Array) -> None:
        self._state = (q, np.zeros_like(q), np.zeros_like(q))

    def step(self, dt: float, scale: float, change: float) -> State:
        """As `Reference.step`."""
        return self._state


class MotionReference:
    """Follow a motion.

    Args:
        motion: motion to follow.
        loop: whether it is repeated, if it ends where it begins.
    """

    def __init__(self, motion: Motion, *, loop: bool) -> None:
        self._motion = motion
        self._loop = loop and repeats(motion)
        self._elapsed = 0.0
        self._buffer: list[Array] = []
        self._next = 0
        self._rate = 0.0

    @property
    def done(self) -> bool:
        """As `Reference.done`."""
        return not self._loop and self._elapsed >= self._motion.duration

    def step(self, dt: float, scale: float, change: float) -> State:
        """As `Reference.step`; `scale` applies to the time along the motion."""
        rate = scale * dt
        self._elapsed += rate
        if self._loop and self._elapsed >= self._motion.duration:
            self._elapsed -= self._motion.duration
            self._buffer = []
        is_used_up = not self._buffer or self._next >= len(self._buffer[0])
        if change != 0.0 or rate != self._rate or is_used_up:
            # At a steady scaling, the next states are computed together at equal steps.
            count = 1 if change != 0.0 else _BUFFER
            time = self._elapsed + rate * np.arange(float(count))
            self._buffer = list(self._motion.sample(time))
            self._next = 0
            self._rate = rate
        positions, velocities, accelerations = self._buffer
        q = positions[self._next]
        qd = velocities[self._next]
        qdd = accelerations[self._next]
        self._next += 1
        return q, scale * qd, scale**2 * qdd + change * qd


class SpeedReference:
    """Accelerate from a state to joint speeds, and keep them.

    Args:
        q: position at the start [n], rad.
        qd: velocity at the start [n], rad/s.
        goal: velocity to reach [n], rad/s.
        acceleration: acceleration of the leading joint [rad/s^2].
    """

    def __init__(self, q: Array, qd: Array, goal: Array, acceleration: float) -> None:
        self._q = q
        self._qd = qd
        self._goal = goal
        self._acceleration = acceleration

    @property
    def done(self) -> bool:
        """Whether the goal is rest and it has been reached."""
        return not self._goal.any() and not self._qd.any()

    def step(self, dt: float, scale: float, change: float) -> State:
        """As `Reference.step`; stops must not depend on the speed scaling, so it is ignored."""
        missing = self._goal - self._qd
        largest = float(np.abs(missing).max())
        most = self._acceleration * dt
        if largest <= most:
            step = missing
            qd = self._goal.copy()
        else:
            step = missing * (most / largest)
            qd = self._qd + step
        self._q = self._q + 0.5 * dt * (self._qd + qd)
        self._qd = qd
        return self._q, qd, step / dt


class ServoReference:
    """Follow streamed positions through a critically damped second-order low-pass filter.

    Without a new position in a cycle, the last velocity of the stream is extrapolated for
    up to the look-ahead time, as real controllers do, because network streams are not
    synchronous.

    Args:
        q: position at the start [n], rad.
        qd: velocity at the start [n], rad/s.
    """

    done = False

    def __init__(self, q: Array, qd: Array) -> None:
        self._q = q
        self._qd = qd
        self._goal = q
        self._goal_speed = np.zeros_like(q)
        self._age = np.inf
        self._lookahead = LOOKAHEAD[0]
        self._omega = 1.0

    def update(self, goal: Array, lookahead: float, gain: float) -> None:
        """Set the streamed position; an unchanged position is ignored.

        Args:
            goal: streamed position [n], rad.
            lookahead: time over which it is smoothed [s].
            gain: gain of the position loop: a larger gain follows faster.
        """
        self._lookahead = float(np.clip(np.nan_to_num(lookahead), *LOOKAHEAD))
        relative_gain = np.clip(np.nan_to_num(gain), *GAIN) / _USUAL_GAIN
        self._omega = 2.0 / self._lookahead * np.sqrt(relative_gain)
        if np.array_equal(goal, self._goal):
            return
        if 0.0 < self._age <= self._lookahead:
            speed = (goal - self._goal) / self._age
            share = min(1.0, self._age / SPEED_AVERAGING)
            self._goal_speed = self._goal_speed + share * (speed - self._goal_speed)
        else:
            self._goal_speed = np.zeros_like(goal)
        self._goal = goal
        self._age = 0.0

    def step(self, dt: float, scale: float, change: float) -> State:
        """As `Reference.step`."""
        w = self._omega
        goal = self._goal + min(self._age, self._lookahead) * self._goal_speed
        self._age += dt
        # Implicit Euler of qdd = w^2 (goal - q) - 2 w qd: stable at any gain.
        pull = w**2 * (goal - self._q - dt * self._qd) - 2 * w * self._qd
        qdd = pull / (1.0 + 2 * w * dt + (w * dt) ** 2)
        qdd = np.clip(qdd, -SERVO_ACCELERATION, SERVO_ACCELERATION)
        qd = self._qd + dt * qdd
        self._q = self._q + dt * qd
        self._qd = qd
        return self._q, qd, qdd


MotionCommand = cmd.Move | cmd.SpeedSlider | cmd.ProgramCommand | cmd.SafetyCommand

SCALING_RATE = 3.0  # rate at which the speed scaling follows slider and pause [1/s]
STOP_ACCELERATION = 10.0
"""Deceleration of a protective stop, and before a new move [rad/s^2]."""
SLOWEST = 1e-3  # lower bound of speed and acceleration of a command [rad/s, rad/s^2]
FASTEST = 200.0
"""Upper bound of speed and acceleration of a command [rad/s, rad/s^2], which no drive reaches."""
APPROACH = {"v": 0.9, "a": 1.8}
"""Speed [rad/s] and acceleration [rad/s^2] of the move to the start of the built-in motion."""
OVERLOAD_SECONDS = 0.02  # tolerated duration of a torque beyond the limits [s]
MARGIN = 1.02  # factor on all limits


class Supervisor:
    """Selects the reference of every cycle and stops the arm when a limit is exceeded.

    Args:
        planner: planner of moves, with the limits of the joints.
        motion: motion that the arm repeats without commands.
        q: position at the start [n], rad.

    Attributes:
        planner: planner of the moves of n joints; replaced after a change of payload.
        fraction: speed slider, 0 to 1.
        scale: effective speed scaling, 0 to 1.
        safety_mode: whether there is a protective stop.
        stop_reason: reason of the protective stop; None without one.
        program_state: state of the built-in motion.
    """

    _state: State
    _reference: Reference
    _next: list[Reference | cmd.MoveJ]
    _program: MotionReference | None

    def __init__(self, planner: Planner, motion: Motion, q: Array) -> None:
        self.planner = planner
        self._robot = planner.robot
        self._motion = motion
        self.fraction = 1.0
        self.scale = 1.0
        self.safety_mode = SafetyMode.NORMAL
        self.program_state = ProgramState.STOPPED
        self.stop_reason: str | None = None
        self._overloaded = np.zeros(len(q), dtype=np.intp)
        self._fastest = MARGIN * planner.robot.max_velocity
        self._most_torque = MARGIN * planner.robot.max_torque
        self._largest_error = float(constants()["servo"]["following_error"])
        self.rest_at(q)
        if not isinstance(motion, Hold):
            self._play()

    @property
    def busy(self) -> bool:
        """Whether a commanded move or stop is still running."""
        in_program = self._program is not None and self._reference is self._program
        return not in_program and (bool(self._next) or not self._reference.done)

    @property
    def speed_scaling(self) -> float:
        """RTDE's speed_scaling: `scale` over `fraction`."""
        return self.scale / self.fraction if self.fraction > 0.0 else 1.0

    def command(self, command: MotionCommand) -> None:
        """Accept a command.

        Args:
            command: a motion, a stop, or a change of the speed slider.

        Raises:
            MotionRefusedError: a motion during a protective stop.
        """
        stopped = self.safety_mode is not SafetyMode.NORMAL
        match command:
            case cmd.SpeedSlider():
                if np.isfinite(command.fraction):
                    self.fraction = float(np.clip(command.fraction, 0.0, 1.0))
            case cmd.SafetyCommand.UNLOCK:
                self.safety_mode = SafetyMode.NORMAL
                self.stop_reason = None
            case cmd.SafetyCommand.PROTECTIVE_STOP:
                self._stop("requested by a client")
            case cmd.ProgramCommand.PAUSE | cmd.ProgramCommand.STOP:
                if self.program_state is ProgramState.STOPPED:
                    return
                paused = command is cmd.ProgramCommand.PAUSE
                self.program_state = (
                    ProgramState.PAUSED if paused else ProgramState.STOPPED
                )
                if not paused and self._program is not None:
                    self._program = None
                    self._brake()
            case cmd.StopJ() if stopped:
                pass  # the arm stops already
            case _ if stopped:
                raise MotionRefusedError(
                    f"the arm is in a protective stop ({self.stop_reason}); unlock it first"
                )
            case cmd.ProgramCommand.PLAY:
                self._play()
            case _:
                self._program = None
                self.program_state = ProgramState.STOPPED
                self._start(command)

    def _start(self, command: cmd.Move) -> None:
        """Start a motion that a client commands."""
        q, qd, _ = self._state
        match command:
            case cmd.StopJ():
                self._brake(_positive(command.a))
            case cmd.SpeedJ():
                goal = np.asarray(command.qd, dtype=float)
                if np.isfinite(goal).all():
                    self._reference = SpeedReference(q, qd, goal, _positive(command.a))
                    self._next = []
                else:
                    self._stop("commanded speed is not a number")
            case cmd.Follow():
                self._brake(then=[MotionReference(command.motion, loop=False)])
            case cmd.MoveJ() | cmd.ServoJ() if self._outside(
                np.asarray(command.q, dtype=float)
            ):
                self._stop("commanded position is out of range")
            case cmd.MoveJ():
                self._brake(then=[command])
            case cmd.ServoJ():
                if not isinstance(self._reference, ServoReference):
                    self._reference = ServoReference(q, qd)
                    self._next = []
                goal = np.asarray(command.q, dtype=float)
                self._reference.update(goal, command.lookahead, command.gain)

    def step(self, dt: float) -> State:
        """Commanded state of the next cycle.

        Args:
            dt: time since the last cycle [s].

        Returns:
            Position [n], rad, velocity, rad/s, and acceleration, rad/s^2.
        """
        paused = self.program_state is ProgramState.PAUSED and self._program is not None
        goal = 0.0 if paused else self.fraction
        missing = goal - self.scale
        step = min(max(missing, -SCALING_RATE * dt), SCALING_RATE * dt)
        self.scale += step
        while self._reference.done and not isinstance(self._reference, HoldPosition):
            self._start_next()
        self._state = self._reference.step(dt, self.scale, step / dt)
        q, qd, _ = self._state
        fast = np.abs(qd) > self._fastest
        if fast.any():
            self._stop(f"speed limit of {self._name(fast)}")
        elif self._outside(q):
            outside = self._robot.position_shares(q) > 1.0
            self._stop(f"position limit of {self._name(outside)}")
        return self._state

    def rest_at(self, q: Array) -> None:
        """Command the arm to stay at a position.

        Args:
            q: joint positions [n], rad.
        """
        self._state = (q, np.zeros_like(q), np.zeros_like(q))
        self._reference = HoldPosition(q)
        self._next = []
        self._program = None

    def halt(self) -> None:
        """End all motion immediately, as when the brakes close."""
        self.rest_at(self._state[0])
        self.program_state = ProgramState.STOPPED

    def check_torque(self, moment: Array) -> None:
        """Stop if a target moment stays beyond the limits.

        Short peaks are tolerated: a stream that skips a few cycles does not overload a
        drive.

        Args:
            moment: target_moment, joint side [n], N m.
        """
        over = np.abs(moment) > self._most_torque
        if not over.any():
            self._overloaded.fill(0)
            return
        self._overloaded = np.where(over, self._overloaded + 1, 0)
        lasting = self._overloaded > OVERLOAD_SECONDS * self._robot.rate
        if lasting.any():
            self._stop(f"torque limit of {self._name(lasting)}")

    def check_following(self, error: Array) -> None:
        """Stop if a position error is too large.

        Args:
            error: commanded less actual position [n], rad.
        """
        over = np.abs(error) > self._largest_error
        if over.any():
            self._stop(f"{self._name(over)} does not follow its target")

    def _outside(self, q: Array) -> bool:
        """Whether joint positions [n], rad, are not within the limits of the joints."""
        return not bool((self._robot.position_shares(q) <= 1.0).all())

    def _name(self, joints: Mask) -> str:
        """Name of the first of some joints.

        Args:
            joints: whether each joint is one of them [n].
        """
        return self._robot.joint_names[int(np.argmax(joints))]

    def _stop(self, reason: str) -> None:
        """Protective stop: brake, and keep power.

        Args:
            reason: reason of the stop, for clients.
        """
        if self.safety_mode is SafetyMode.PROTECTIVE_STOP:
            return
        self.safety_mode = SafetyMode.PROTECTIVE_STOP
        self.stop_reason = reason
        if self.program_state is ProgramState.PLAYING:
            self.program_state = ProgramState.PAUSED
        self._program = None
        self._brake()

    def _brake(
        self,
        acceleration: float = STOP_ACCELERATION,
        then: list[Reference | cmd.MoveJ] | None = None,
    ) -> None:
        """Bring the arm to rest.

        Args:
            acceleration: acceleration of the leading joint [rad/s^2].
            then: references that follow, in order.
        """
        q, qd, _ = self._state
        self._reference = SpeedReference(q, qd, np.zeros_like(qd), acceleration)
        self._next = then or []

    def _start_next(self) -> None:
        """Replace a finished reference by the next one, or by rest."""
        q = self._state[0]
        if not self._next:
            if self._reference is self._program:
                self._program = None
                self.program_state = ProgramState.STOPPED
            self._reference = HoldPosition(q)
            return
        following = self._next.pop(0)
        if isinstance(following, cmd.MoveJ):
            limits = replace(
                self.planner.limits,
                speed=np.minimum(_positive(following.v), self._robot.max_velocity),
                acceleration=np.full(len(q), _positive(following.a)),
            )
            goal = np.asarray(following.q, dtype=float)
            path = self.planner.move(q, goal, limits=limits)
            following = MotionReference(path, loop=False)
        self._reference = following

    def _play(self) -> None:
        """Start or resume the built-in motion."""
        self.program_state = ProgramState.PLAYING
        if self._program is None:
            self._program = MotionReference(self._motion, loop=True)
            positions, _, _ = self._motion.sample(np.zeros(1))
            self._brake(then=[cmd.MoveJ(positions[0], **APPROACH), self._program])


def _positive(value: float) -> float:
    """A client's speed or acceleration within the bounds; `SLOWEST` if it is not finite."""
    if not np.isfinite(value):
        return SLOWEST
    return min(max(float(value), SLOWEST), FASTEST)
