"""Commanded joint states: motions, streamed set points, speeds and stops."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from ur_energy_model.trajectory.motions import Motion, repeats
from ur_energy_model.typing import Array

State = tuple[Array, Array, Array]
"""Position, velocity, acceleration [n]."""

_BUFFER = 256
SERVO_ACCELERATION = 40.0
"""Acceleration limit while following a stream [rad/s^2]."""
SPEED_AVERAGING = 0.01
"""Averaging time of the speed of a stream [s]."""
LOOKAHEAD, GAIN = (0.03, 2.0), (1.0, 1e4)
"""Ranges to which look-ahead time [s] and gain of a stream are clipped."""


class Reference(Protocol):
    """Source of commanded joint states."""

    @property
    def done(self) -> bool:
        """Whether the reference has ended, at rest."""
        ...

    def step(self, dt: float, scale: float, change: float) -> State:
        """Commanded state after `dt` more seconds.

        Args:
            dt: length of a controller cycle [s].
            scale: speed scaling in this cycle, 0 to 1.
            change: its rate of change [1/s].
        """
        ...


class Rest:
    """Keep the commanded position."""

    done = True

    def __init__(self, q: Array) -> None:
        self._state = (q, np.zeros_like(q), np.zeros_like(q))

    def step(self, dt: float, scale: float, change: float) -> State:
        """As `Reference.step`."""
        return self._state


class MotionReference:
    """Follow a motion.

    Args:
        motion: n joints.
        loop: whether to repeat a motion that ends where it begins.

    Attributes:
        elapsed: time along the motion [s].
        runs: number of completed repetitions.
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
        """As `Reference.step`; `scale` applies to the time along the motion."""
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
        """Compute the next states at equal steps of `rate` s along the motion."""
        self._buffer = list(self.motion.sample(self.elapsed + rate * np.arange(float(count))))
        self._next, self._rate = 0, rate


class SpeedReference:
    """Accelerate to joint speeds; `acceleration` is that of the leading joint.

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
        """Whether the goal is rest and it has been reached."""
        return not self._goal.any() and not self._qd.any()

    def step(self, dt: float, scale: float, change: float) -> State:
        """As `Reference.step`; stops must not depend on the speed scaling, so it is ignored."""
        missing = self._goal - self._qd
        largest = float(np.abs(missing).max())
        most = self._acceleration * dt
        step = missing if largest <= most else missing * (most / largest)
        qd = self._goal.copy() if largest <= most else self._qd + step
        self._q = self._q + 0.5 * dt * (self._qd + qd)
        self._qd = qd
        return self._q, qd, step / dt


class ServoReference:
    """Follow streamed positions through a critically damped second-order low-pass filter.

    Without a new position in a cycle, the last velocity of the stream is extrapolated for up to the
    look-ahead time, as real controllers do, because network streams are not synchronous.

    Args:
        q, qd: commanded state at the start [n].
    """

    done = False

    def __init__(self, q: Array, qd: Array) -> None:
        self._q, self._qd = q, qd
        self._goal, self._goal_speed = q, np.zeros_like(q)
        self._age = np.inf
        self._lookahead = 0.03
        self._omega = 1.0

    def update(self, goal: Array, lookahead: float, gain: float) -> None:
        """Set the streamed position [n], rad; an unchanged position is ignored."""
        self._lookahead = float(np.clip(np.nan_to_num(lookahead), *LOOKAHEAD))
        self._omega = 2.0 / self._lookahead * np.sqrt(np.clip(np.nan_to_num(gain), *GAIN) / 300.0)
        if np.array_equal(goal, self._goal):
            return
        if 0.0 < self._age <= self._lookahead:
            speed = (goal - self._goal) / self._age
            share = min(1.0, self._age / SPEED_AVERAGING)
            self._goal_speed = self._goal_speed + share * (speed - self._goal_speed)
        else:
            self._goal_speed = np.zeros_like(goal)
        self._goal, self._age = goal, 0.0

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
