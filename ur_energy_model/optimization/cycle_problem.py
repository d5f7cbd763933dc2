"""The optimization of one cycle: its moves on their paths, their limits, and its waiting."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.optimization.cycle import (
    CycleEnergies,
    OptimizationOptions,
    Stretch,
    StretchEnergy,
    WorkCycle,
    recorded_stretches,
    sampled_stretch,
    total_energy,
    with_rest,
)
from ur_energy_model.optimization.least_energy import EnergyLaws, fastest_law
from ur_energy_model.optimization.path import (
    STILL,
    TOOL_SPEED_SHARE,
    PathDynamics,
    PathLimits,
    TimeLaw,
    holding_power,
    reached,
    with_jerk_limit,
)
from ur_energy_model.trajectory.motions import Motion
from ur_energy_model.trajectory.plan import Plan

FASTEST, SLOWEST = 1e5, 0.05
"""Highest shadow price of time [W], at which moves are as fast as the limits allow, and the lowest,
below which they would creep."""
_TOLERANCE = 0.003
"""Relative error of the moves' total duration; the rest is made up by stretching them evenly."""
_MOST_TRIALS = 8


class Allocation(NamedTuple):
    """Time laws of all moves of a cycle."""

    laws: tuple[TimeLaw, ...]
    waiting: float  # time left over, to be waited [s]
    gap: float = 0.0  # how far the energy may be above the optimum [J]


class Allocator:
    """Distributes the time of a cycle over its moves and waiting.

    For a cycle time, the sum of the moves' energies is least where a second more saves the same in
    every move (the Lagrange condition). All moves are therefore solved for one shadow price of time
    [W], what a second more saves in a move beside waiting that second, and the price is searched
    for. Beyond the time at which it is zero, waiting where the arm is held most cheaply costs less
    than moving slower.

    The moves are given by the arm on their path and their limits, holding is the least power of
    waiting [W], and fastest are the moves' time-optimal laws.
    """

    def __init__(
        self,
        moves: Sequence[tuple[PathDynamics, PathLimits]],
        holding: float,
        fastest: Sequence[TimeLaw],
    ) -> None:
        self._moves = [EnergyLaws(*move) for move in moves]
        self._holding, self._fastest = holding, tuple(fastest)
        self._jerk = max((limits.jerk for _, limits in moves), default=np.inf)
        self._known: dict[float, tuple[TimeLaw, ...]] = {}

    def at(self, shadow_price: float) -> tuple[TimeLaw, ...]:
        """The moves' laws for a shadow price of time [W]."""
        known = self._known
        if shadow_price not in known:
            near = min(known, key=lambda price: abs(np.log(price / shadow_price)), default=None)
            starts = (None,) * len(self._moves) if near is None else known[near]
            known[shadow_price] = tuple(
                with_jerk_limit(move.cheapest(self._holding - shadow_price, start), self._jerk)
                for move, start in zip(self._moves, starts, strict=True)
            )
        return known[shadow_price]

    def allocate(self, duration: float) -> Allocation:
        """The laws of least energy for a total duration of moves and waiting [s]."""
        slow = self.at(SLOWEST)
        if _total(slow) <= duration:
            return Allocation(slow, duration - _total(slow))
        shadow_price = self._search(duration)
        found = self.at(shadow_price)
        laws = self._fitted(found, duration)
        price = self._holding - shadow_price
        energies = [
            (move.energy(new.b), move.energy(old.b), old.duration)
            for move, new, old in zip(self._moves, laws, found, strict=True)
        ]
        bound = sum(old - price * time for _, old, time in energies) + price * duration
        return Allocation(laws, 0.0, max(sum(new for new, _, _ in energies) - bound, 0.0))

    def _search(self, duration: float) -> float:
        """The shadow price at which the moves take a duration [s]."""
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

    def _fitted(self, found: tuple[TimeLaw, ...], duration: float) -> tuple[TimeLaw, ...]:
        """Laws that take exactly a duration [s], from those found, stretched evenly.

        Where energy over duration is not convex, no price gives the durations in between: there
        they are mixed with laws of a price on the other side, by their slowness, so that durations
        mix evenly.
        """
        ratio = duration / _total(found)
        if abs(ratio - 1.0) > 2 * _TOLERANCE:
            longer = ratio > 1.0
            known = (*self._known.values(), self._fastest)
            beyond = [laws for laws in known if (_total(laws) > duration) == longer]
            if beyond:
                near = min(beyond, key=lambda laws: abs(_total(laws) - duration))
                slow, fast = (near, found) if longer else (found, near)
                share = (_total(slow) - duration) / (_total(slow) - _total(fast))
                mixed = []
                for law, other in zip(slow, fast, strict=True):
                    b = law.b.copy()
                    own = (1 - share) / np.sqrt(b[1:-1])
                    b[1:-1] = (own + share / np.sqrt(other.b[1:-1])) ** -2.0
                    mixed.append(TimeLaw(law.arm, b, max(law.window, other.window)))
                found = tuple(mixed)
        return tuple(law.stretched(law.duration * duration / _total(found)) for law in found)


def _total(laws: Sequence[TimeLaw]) -> float:
    return sum(law.duration for law in laws)


SAMPLE_PERIOD = 0.002  # period of the new time laws [s]: that of an e-Series controller
PATH_RESOLUTION = 1e-4
"""Deviation from a path that is stated at least [rad]; noise of measured positions is larger."""
TYPED_TOLERANCE = 1.001
"""Factor by which typed values may exceed a limit: the recording's own are among the limits."""


class CycleProblem:
    """One recorded cycle to be optimized.

    The model is best in the session of the recording; `arms` of a problem of the same cycle can be
    used again.

    Attributes:
        energies: of cycles of this arm.
        recorded: the cycle as it was run.
        limits: that the new moves keep: the usual ones, where the recording goes beyond them its
            own, except for the tool speed.
        beyond: where it does, in words.
        shown: largest values of each recorded move.
        tool_speed: highest of flange and elbow in the recording [m/s].
    """

    def __init__(
        self,
        model: EnergyModel,
        cycle: WorkCycle,
        options: OptimizationOptions,
        robot: RobotDescription,
        arms: Sequence[PathDynamics] = (),
    ) -> None:
        self.model, self.cycle, self.options, self.robot = model, cycle, options, robot
        self.energies = CycleEnergies(model, cycle.temperature)
        self.recorded = self.energies.of(recorded_stretches(cycle))
        self.shown = [self._reached(part) for part in self.recorded if part.stretch.moving]
        self.arms = arms or [
            PathDynamics(
                model,
                self.energies.dynamics(move.payload),
                (move.time, move.q, move.qd),
                cycle.temperature,
            )
            for move in cycle.moves
        ]
        self.kept = sum(rest.kept for rest in cycle.rests) + sum(
            move.duration for move in cycle.moves if move.kept
        )
        usual = PathLimits.of_robot(robot)
        if options.tool_speed is not None:
            usual = replace(usual, tool_speed=TOOL_SPEED_SHARE * options.tool_speed)
        if options.jerk is not None:
            usual = replace(usual, jerk=options.jerk)
        largest = self.shown[0].at_least(*self.shown)
        self.tool_speed, self.beyond = largest.tool_speed, ""
        names = ("speed", "acceleration", "torque")
        if options.recorded_limits:
            still = replace(usual, **{name: STILL * getattr(usual, name) for name in names})
            self.limits = replace(still.at_least(largest), recorded=True)
        else:
            self.beyond = ", ".join(
                name for name in names if (getattr(largest, name) > getattr(usual, name)).any()
            )
            self.limits = usual.at_least(replace(largest, tool_speed=0.0))

    def limits_of(self, index: int) -> PathLimits:
        """Limits of a move."""
        factor = self.options.max_speedup
        if factor is None:
            return self.limits
        return self.limits.with_speedup(self.shown[index], factor)

    def _reached(self, part: StretchEnergy) -> PathLimits:
        """The largest values of a stretch."""
        _, q, qd, qdd = part.stretch.plan.sampled()
        return reached(q, qd, qdd, part.torque, self.energies.dynamics(part.stretch.payload))

    @property
    def _free(self) -> list[int]:
        """Numbers of the moves that need not stay as recorded."""
        return [k for k, move in enumerate(self.cycle.moves) if not move.kept]

    @cached_property
    def fastest_laws(self) -> tuple[TimeLaw, ...]:
        """Of all free moves."""
        source = self.cycle.source
        return tuple(fastest_law(self.arms[k], self.limits_of(k), source) for k in self._free)

    @property
    def shortest(self) -> float:
        """Duration of the time-optimal cycle [s]."""
        return _total(self.fastest_laws) + self.kept

    @cached_property
    def holding(self) -> list[float]:
        """Power of waiting after each move [W]."""
        temperature, out = self.cycle.temperature, []
        for move in self.cycle.moves:
            dynamics = self.energies.dynamics(move.rest.payload)
            out.append(float(holding_power(self.model, dynamics, move.q[-1:], temperature)[0]))
        return out

    @property
    def waiting_after(self) -> int:
        """Number of the move after which time is waited that is left over.

        Where it costs least among the places at which the program waits already, as the part comes
        there; at the end of the cycle if there are none.
        """
        slack = [k for k, rest in enumerate(self.cycle.rests) if rest.slack > 0.0]
        return min(slack, key=lambda k: self.holding[k], default=len(self.holding) - 1)

    @cached_property
    def allocator(self) -> Allocator:
        """Of the time over the moves, where waiting takes the power of holding the arm."""
        return self.allocator_with(self.holding[self.waiting_after])

    def allocator_with(self, waiting: float) -> Allocator:
        """Of the time over the moves, where waiting takes a power [W]."""
        moves = [(self.arms[k], self.limits_of(k)) for k in self._free]
        return Allocator(moves, waiting, self.fastest_laws)

    def allocate(self, duration: float) -> Allocation:
        """The moves' laws of least energy for a cycle time [s]."""
        return self.allocator.allocate(duration - self.kept)

    def run(
        self, laws: Sequence[TimeLaw], waiting: float = 0.0, *, kept: bool = True, std: bool = True
    ) -> list[StretchEnergy]:
        """A cycle as it would be run, from the laws of its free moves.

        `waiting` is waited beyond the standstill that must stay [s], which `kept` includes; `std`
        computes sensitivities.
        """
        out: list[Stretch] = []
        left = iter(laws)
        waits = [rest.kept if kept else 0.0 for rest in self.cycle.rests]
        waits[self.waiting_after] += waiting
        recorded = (part.stretch for part in self.recorded if part.stretch.moving)
        for move, stretch, wait in zip(self.cycle.moves, recorded, waits, strict=True):
            if not move.kept:
                plan = Plan(*next(left).sample(SAMPLE_PERIOD), self.cycle.source)
                stretch = Stretch(plan, move.payload)
            out += with_rest(stretch, wait, move.rest.payload)
        return self.energies.of(out, std=std)

    def scaled(self, duration: float) -> list[StretchEnergy]:
        """The recorded cycle slowed (or sped up) by speed scaling to a cycle time [s]."""
        moving = sum(move.duration for move in self.cycle.moves)
        kept = sum(rest.kept for rest in self.cycle.rests)
        return self.energies.of(recorded_stretches(self.cycle, stretch=(duration - kept) / moving))

    def permits(self, parts: Sequence[StretchEnergy]) -> bool:
        """Whether a scaled cycle keeps limits and kept moves."""
        moving = [part for part in parts if part.stretch.moving]
        return len(self._free) == len(moving) and all(
            self._reached(part).within(self.limits_of(k)) for k, part in enumerate(moving)
        )

    def typed_cost(self, index: int, slot: float, motion: Motion) -> float:
        """Energy of a motion that takes the slot [s] of a move at most, rest included [J].

        Infinite if the motion exceeds a limit.
        """
        payload = self.cycle.moves[index].payload
        stretches = with_rest(sampled_stretch(motion, payload), slot - motion.duration, payload)
        parts = self.energies.of(stretches, std=False)
        if not self._reached(parts[0]).within(self.limits_of(index), TYPED_TOLERANCE):
            return math.inf
        return total_energy(parts)

    def notes(self) -> list[str]:
        """What the result rests on, one sentence each."""
        cycle, out = self.cycle, []
        if cycle.slack > 0.0:
            out.append(
                f"{cycle.slack:.2f} s of waiting count as slack, because they are longer than "
                f"{self.options.keep_dwell:g} s; where the arm waits for something, the saving "
                "holds only as far as it may arrive later."
            )
        if self.beyond:
            out.append(
                f"The recording goes beyond the usual limits ({self.beyond}); up to there the new "
                "moves may go too."
            )
        deviation = max(PATH_RESOLUTION, *(arm.deviation for arm in self.arms))
        out.append(f"The new moves keep the recorded path within {1e3 * deviation:.2g} mrad.")
        return out
