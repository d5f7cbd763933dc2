"""Speed profiles of moves from rest to rest along a line: trapezoid and cycloid."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ur_energy_model.typing import Array


@dataclass(frozen=True)
class Trapezoid:
    """Trapezoidal speed, triangular where the distance is too short for full speed.

    The profile of the controller's own moves.

    Attributes:
        distance: not negative (any unit u).
        speed: highest speed, u/s.
        acceleration: u/s^2, of both ramps.
    """

    distance: float
    speed: float
    acceleration: float

    @property
    def peak(self) -> float:
        """Highest speed reached, u/s."""
        return float(min(self.speed, np.sqrt(self.distance * self.acceleration)))

    @property
    def ramp(self) -> float:
        """Duration of one ramp [s]."""
        return self.peak / self.acceleration

    @property
    def duration(self) -> float:
        """From rest to rest [s]."""
        if self.distance == 0.0:
            return 0.0
        return self.distance / self.peak + self.ramp

    def sample(self, t: Array) -> tuple[Array, Array, Array]:
        """As `Profile.sample`; at rest outside."""
        end, ramp, peak = self.duration, self.ramp, self.peak
        t = np.clip(t, 0.0, end)
        rising, falling = t < ramp, t > end - ramp
        left = end - t
        way = np.where(
            rising,
            0.5 * self.acceleration * t**2,
            np.where(
                falling,
                self.distance - 0.5 * self.acceleration * left**2,
                peak * (t - 0.5 * ramp),
            ),
        )
        speed = np.where(
            rising, self.acceleration * t, np.where(falling, self.acceleration * left, peak)
        )
        inside = (t > 0.0) & (t < end)
        rate = np.where(rising, self.acceleration, np.where(falling, -self.acceleration, 0.0))
        return way, speed, np.where(inside, rate, 0.0)


class Profile(Protocol):
    """Position along a line over time, from 0 to `distance`, from rest to rest."""

    @property
    def distance(self) -> float:
        """Length of the line (any unit u)."""
        ...

    @property
    def duration(self) -> float:
        """From rest to rest [s]."""
        ...

    def sample(self, t: Array, /) -> tuple[Array, Array, Array]:
        """Position, speed and acceleration at times from the start [samples], u, u/s, u/s^2."""
        ...


@dataclass(frozen=True)
class Cycloid:
    """Cycloidal profile with continuous acceleration (Battistini et al.).

    Attributes:
        distance: any unit u.
        duration: s.
    """

    distance: float
    duration: float

    def sample(self, t: Array) -> tuple[Array, Array, Array]:
        """As `Profile.sample`; at rest outside."""
        share = np.clip(t / self.duration, 0.0, 1.0)
        angle = 2 * np.pi * share
        way = self.distance * (share - np.sin(angle) / (2 * np.pi))
        speed = self.distance / self.duration * (1.0 - np.cos(angle))
        rate = self.distance / self.duration**2 * 2 * np.pi * np.sin(angle)
        return way, speed, rate
