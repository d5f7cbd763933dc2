"""Where the controller wants the joints in every cycle: motions, moves, streams, stops."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from ur_energy_model.trajectory.motions import Motion, repeats
from ur_energy_model.typing import Array

State = tuple[Array, Array, Array]
"""Position, velocity, acceleration [n]."""

_BUFFER = 256
SERVO_ACCELERATION = 40.0
"""Highest acceleration of a followed stream [rad/s^2]."""
SPEED_MEMORY = 0.01
"""Time over which the speed of a stream is averaged [s]."""


class Reference(Protocol):
    """A source of commanded joint states."""

    @property
    def done(self) -> bool:
        """Whether the reference has come to its end, at rest."""
        ...

    def step(self, dt: float, scale: float, change: float) -> State:
        """Commanded state after another `dt` s.

        Args:
            dt: length of a controller cycle [s].
            scale: speed scaling in this cycle, 0 to 1.
            change: its rate of change [1/s].
        """
        ...


class Rest:
    """Stay where the arm is commanded to be."""

    done = True

    def __init__(self, q: Array) -> None:
        self._state = (q, np.zeros_like(q), np.zeros_like(q))

    def step(self, dt: float, scale: float, change: float) -> State:
        """As `Reference.step`."""
        return self._state


class MotionReference:
    """Follow a motion, again and again where it ends where it begins.

    Args:
        motion: n joints.
        loop: whether to repeat it.

    Attributes:
        elapsed: time along the motion [s].
        runs: how often its end was passed.
    """

    def __init__(self, motion: Motion, *, loop: bool) -> None:
        self.motion = motion
        self._loop = loop and repeats(motion)
        self.elapsed = 0.0
        self.runs = 0
        self._buffer: list[Array] = []
        self._next = 0
        self._rate = 0.0

    @property
    def done(self) -> bool:
        """As `Reference.done`."""
        return not self._loop and self.elapsed >= self.motion.duration

    def step(self, dt: float, scale: float, change: float) -> State:
        """As `Reference.step`: time along the motion passes at `scale`."""
        self.elapsed += scale * dt
        if self._loop and self.elapsed >= self.motion.duration:
            self.elapsed -= self.motion.duration
            self.runs += 1
            self._buffer = []
        if change != 0.0 or scale * dt != self._rate or self._next >= self._length:
            self._fill(scale * dt, 1 if change != 0.0 else _BUFFER)
        q, qd, qdd = (values[self._next] for values in self._buffer)
        self._next += 1
        return q, scale * qd, scale**2 * qdd + change * qd

    @property
    def _length(self) -> int:
        return len(self._buffer[0]) if self._buffer else 0

    def _fill(self, rate: float, count: int) -> None:
        """The next states at equal steps of `rate` s along the motion."""
        self._buffer = list(self.motion.sample(self.elapsed + rate * np.arange(float(count))))
        self._next, self._rate = 0, rate


class SpeedReference:
    """Speed up or down to joint speeds with the acceleration of the leading axis.

    Args:
        q, qd: commanded state at the start [n].
        goal: joint speeds [n], rad/s.
        acceleration: rad/s^2.
    """

    def __init__(self, q: Array, qd: Array, goal: Array, acceleration: float) -> None:
        self._q, self._qd, self._goal = q, qd, goal
        self._acceleration = acceleration

    @property
    def done(self) -> bool:
        """Whether it stands, as it was asked to."""
        return not self._goal.any() and not self._qd.any()

    def step(self, dt: float, scale: float, change: float) -> State:
        """As `Reference.step`; independent of the speed scaling, as stops must be."""
        missing = self._goal - self._qd
        largest = float(np.abs(missing).max())
        most = self._acceleration * dt
        step = missing if largest <= most else missing * (most / largest)
        qd = self._goal.copy() if largest <= most else self._qd + step
        self._q = self._q + 0.5 * dt * (self._qd + qd)
        self._qd = qd
        return self._q, qd, step / dt


class ServoReference:
    """Follow streamed positions through a critically damped second-order lag.

    Where a cycle brings no new position the stream's last velocity carries on for as long as the
    look-ahead time, as the controller's own does: a stream over a network is never in step.

    Args:
        q, qd: commanded state at the start [n].
    """

    done = False

    def __init__(self, q: Array, qd: Array) -> None:
        self._q, self._qd = q, qd
        self._goal, self._goal_speed = q, np.zeros_like(q)
        self._age = np.inf
        self._lookahead = 0.03
        self._pace = 1.0

    def update(self, goal: Array, lookahead: float, gain: float) -> None:
        """Take the streamed position [n], rad; the same one again is no new one."""
        self._lookahead = max(lookahead, 0.03)
        self._pace = 2.0 / self._lookahead * np.sqrt(gain / 300.0)
        if np.array_equal(goal, self._goal):
            return
        if 0.0 < self._age <= self._lookahead:
            speed = (goal - self._goal) / self._age
            share = min(1.0, self._age / SPEED_MEMORY)
            self._goal_speed = self._goal_speed + share * (speed - self._goal_speed)
        else:
            self._goal_speed = np.zeros_like(goal)
        self._goal, self._age = goal, 0.0

    def step(self, dt: float, scale: float, change: float) -> State:
        """As `Reference.step`."""
        w = self._pace
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
