"""Periodic joint motions, which a robot can run and repeat."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ur_energy_model.trajectory.motions import Motion
from ur_energy_model.typing import Array


class PeriodicMotion(Protocol):
    """A joint motion from and to the same position, at rest, such as `FourierTrajectory`."""

    @property
    def robot(self) -> str:
        """Name of the robot model."""
        ...

    @property
    def period(self) -> float:
        """Duration of one repetition [s]."""
        ...

    @property
    def duration(self) -> float:
        """Duration of all repetitions [s]."""
        ...

    @property
    def start(self) -> Array:
        """Position at both ends [n], rad."""
        ...

    @property
    def starts_smoothly(self) -> bool:
        """Whether the acceleration is also zero at both ends."""
        ...

    def sample(self, time: Array | float) -> tuple[Array, Array, Array]:
        """Position, velocity, acceleration [samples, n]; at rest outside 0 to `duration`."""
        ...

    def repeated(self, repetitions: int) -> PeriodicMotion:
        """The same motion with another number of repetitions."""
        ...


@dataclass(frozen=True)
class RepeatedMotion:
    """A `Motion` (through points, sinusoids, ...) as a periodic motion.

    Attributes:
        robot: name of the robot model.
        motion: starts and ends at the same position, at rest.
        repetitions: number of repetitions.
    """

    robot: str
    motion: Motion
    repetitions: int = 1

    @property
    def period(self) -> float:
        """Duration of one repetition [s]."""
        return self.motion.duration

    @property
    def duration(self) -> float:
        """Duration of all repetitions [s]."""
        return self.period * self.repetitions

    @property
    def start(self) -> Array:
        """Position at both ends [n], rad."""
        return np.asarray(self.motion.sample(np.zeros(1))[0][0])

    @property
    def starts_smoothly(self) -> bool:
        """False: trapezoidal speed profiles start with a step of the acceleration."""
        return False

    def sample(self, time: Array | float) -> tuple[Array, Array, Array]:
        """Position, velocity, acceleration [samples, n] in rad, rad/s, rad/s^2."""
        instants = np.atleast_1d(np.asarray(time, dtype=float))
        inside = np.clip(instants, 0.0, self.duration)
        phase = np.where(inside < self.duration, np.mod(inside, self.period), self.period)
        q, qd, qdd = self.motion.sample(phase)
        moving = (inside == instants)[:, None]
        return q, moving * qd, moving * qdd

    def repeated(self, repetitions: int) -> RepeatedMotion:
        """The same motion with another number of repetitions."""
        return RepeatedMotion(self.robot, self.motion, repetitions)


def sample_period(motion: PeriodicMotion, rate: float) -> tuple[Array, Array, Array, Array]:
    """Time [samples], position, velocity, acceleration [samples, n] over one repetition.

    Args:
        motion: what to sample.
        rate: samples per second [Hz]; both ends are included.
    """
    time = np.linspace(0.0, motion.period, max(2, round(motion.period * rate) + 1))
    return time, *motion.sample(time)
