"""Durations of all moves of a cycle together: the same marginal energy of time for all.

For a cycle time, the sum of the moves' energies is least where an additional second is worth the
same in every move (the Lagrange condition). All moves are therefore solved for one price of time,
and the price is searched for. A price above the power of simply waiting is never worth paying: the
rest of the time is spent waiting where the arm is held most cheaply.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ur_energy_model.optimization.jerk import with_jerk_limit
from ur_energy_model.optimization.least_energy import EnergyLaws
from ur_energy_model.optimization.time_law import TimeLaw

FASTEST = 1e5
"""Most that a second is taken to be worth [W]: moves are then as fast as the limits allow."""
SLOWEST = 0.05
"""Least by which time in a move is worth more than waiting [W]; with less, moves would creep."""
_TOLERANCE = 0.003
"""Relative error of the moves' total duration; the rest is made up by stretching them evenly."""
_MOST_TRIALS = 8


@dataclass(frozen=True)
class Allocation:
    """Time laws of all moves of a cycle.

    Attributes:
        laws: of the moves.
        waiting: time left over, to be waited [s].
        price: marginal energy of time [W].
        gap: how far the energy may be above the optimum [J].
    """

    laws: tuple[TimeLaw, ...]
    waiting: float
    price: float
    gap: float


class Allocator:
    """Distributes time over moves.

    Args:
        moves: to be solved.
        holding: least power of waiting [W].
        fastest: the moves' time-optimal laws.
        jerk: limit of all moves [rad/s^3]; infinite for none.
    """

    def __init__(
        self,
        moves: Sequence[EnergyLaws],
        holding: float,
        fastest: Sequence[TimeLaw],
        jerk: float = np.inf,
    ) -> None:
        self._moves, self.holding, self._fastest = moves, holding, tuple(fastest)
        self._jerk = jerk
        self._known: dict[float, tuple[TimeLaw, ...]] = {}

    def at(self, worth: float) -> tuple[TimeLaw, ...]:
        """The moves' laws where a second is worth that much more than waiting [W]."""
        if worth not in self._known:
            near = min(self._known, key=lambda known: abs(np.log(known / worth)), default=None)
            starts = (None,) * len(self._moves) if near is None else self._known[near]
            self._known[worth] = tuple(
                with_jerk_limit(move.cheapest(self.holding - worth, start), self._jerk)
                for move, start in zip(self._moves, starts, strict=True)
            )
        return self._known[worth]

    def allocate(self, duration: float) -> Allocation:
        """The laws of least energy for a total duration of moves and waiting [s]."""
        slow = self.at(SLOWEST)
        if _total(slow) <= duration:
            return Allocation(slow, duration - _total(slow), self.holding, 0.0)
        worth = self._search(duration)
        found = self.at(worth)
        laws = self._fitted(found, duration)
        price = self.holding - worth
        energies = [
            (move.energy(new.b), move.energy(old.b), old.duration)
            for move, new, old in zip(self._moves, laws, found, strict=True)
        ]
        bound = sum(old - price * time for _, old, time in energies) + price * duration
        return Allocation(laws, 0.0, price, max(sum(new for new, _, _ in energies) - bound, 0.0))

    def _fitted(self, found: tuple[TimeLaw, ...], duration: float) -> tuple[TimeLaw, ...]:
        """Laws that take exactly a duration [s], from laws that nearly do.

        They are stretched evenly where they nearly do; else mixed with those of the next price on
        the other side, as where energy over duration is not convex and no price gives a duration
        in between.
        """
        ratio = duration / _total(found)
        if abs(ratio - 1.0) > 2 * _TOLERANCE:
            longer = ratio > 1.0
            known = (*self._known.values(), self._fastest)
            beyond = [laws for laws in known if (_total(laws) > duration) == longer]
            if beyond:
                near = min(beyond, key=lambda laws: abs(_total(laws) - duration))
                found = self._between(*((near, found) if longer else (found, near)), duration)
        return tuple(law.stretched(law.duration * duration / _total(found)) for law in found)

    def _between(
        self, slow: Sequence[TimeLaw], fast: Sequence[TimeLaw], duration: float
    ) -> tuple[TimeLaw, ...]:
        """Laws between slow and fast ones: their slowness is mixed, so durations mix evenly."""
        share = (_total(slow) - duration) / (_total(slow) - _total(fast))
        out = []
        for law, other in zip(slow, fast, strict=True):
            b = law.b.copy()
            b[1:-1] = ((1 - share) / np.sqrt(b[1:-1]) + share / np.sqrt(other.b[1:-1])) ** -2.0
            out.append(TimeLaw(law.arm, b, max(law.window, other.window)))
        return tuple(out)

    def _search(self, duration: float) -> float:
        """The worth of time at which the moves take a duration [s]."""
        low, high = np.log(SLOWEST), np.log(FASTEST)
        target, ends = np.log(duration), [np.log(_total(self.at(SLOWEST)))] * 2
        for trial in (16.0, 256.0, FASTEST):
            reached = np.log(_total(self.at(trial)))
            if reached <= target:
                high, ends[1] = np.log(trial), reached
                break
            low, ends[0] = np.log(trial), reached
        else:
            return FASTEST
        for _ in range(_MOST_TRIALS):
            share = np.clip((ends[0] - target) / max(ends[0] - ends[1], 1e-12), 0.05, 0.95)
            middle = low + share * (high - low)
            reached = np.log(_total(self.at(float(np.exp(middle)))))
            if abs(reached - target) < _TOLERANCE:
                break
            if reached > target:
                low, ends[0] = middle, reached
            else:
                high, ends[1] = middle, reached
        return float(np.exp(middle))


def _total(laws: Sequence[TimeLaw]) -> float:
    return sum(law.duration for law in laws)
