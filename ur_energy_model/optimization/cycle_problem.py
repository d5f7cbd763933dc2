"""The optimization of one cycle: its moves on their paths, their limits, and its waiting."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ur_energy_model.errors import InputError
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.optimization.cycle import (
    CycleEnergies,
    OptimizationOptions,
    Stretch,
    WorkCycle,
    recorded_stretches,
    sampled_stretch,
    with_rest,
)
from ur_energy_model.optimization.least_energy import EnergyLaws, fastest_law
from ur_energy_model.optimization.path import (
    STILL,
    TOOL_SPEED_SHARE,
    JointPath,
    PathDynamics,
    PathLimits,
    TimeLaw,
    reached,
    with_jerk_limit,
)
from ur_energy_model.trajectory.motions import Motion
from ur_energy_model.trajectory.plan import Plan
from ur_energy_model.typing import Array

FASTEST = 1e5
"""Highest shadow price of time [W]: moves are then as fast as the limits allow."""
SLOWEST = 0.05
"""Lowest shadow price of time [W]; with less, moves would creep."""
_TOLERANCE = 0.003
"""Relative error of the moves' total duration; the rest is made up by stretching them evenly."""
_MOST_TRIALS = 8


@dataclass(frozen=True)
class Allocation:
    """Time laws of all moves of a cycle, and the time left over, to be waited [s].

    `gap` is how far the energy may be above the optimum [J].
    """

    laws: tuple[TimeLaw, ...]
    waiting: float
    gap: float = 0.0


class Allocator:
    """Distributes the time of a cycle over its moves and waiting.

    For a cycle time, the sum of the moves' energies is least where a second more saves the same in
    every move (the Lagrange condition). All moves are therefore solved for one shadow price of time
    [W], what a second more saves in a move beside waiting that second, and the price is searched
    for. Beyond the time at which it is zero, waiting where the arm is held most cheaply costs less
    than moving slower.

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

    def at(self, shadow_price: float) -> tuple[TimeLaw, ...]:
        """The moves' laws for a shadow price of time [W]."""
        if shadow_price not in self._known:
            near = min(
                self._known, key=lambda known: abs(np.log(known / shadow_price)), default=None
            )
            starts = (None,) * len(self._moves) if near is None else self._known[near]
            self._known[shadow_price] = tuple(
                with_jerk_limit(move.cheapest(self.holding - shadow_price, start), self._jerk)
                for move, start in zip(self._moves, starts, strict=True)
            )
        return self._known[shadow_price]

    def allocate(self, duration: float) -> Allocation:
        """The laws of least energy for a total duration of moves and waiting [s]."""
        slow = self.at(SLOWEST)
        if _total(slow) <= duration:
            return Allocation(slow, duration - _total(slow))
        shadow_price = self._search(duration)
        found = self.at(shadow_price)
        laws = self._fitted(found, duration)
        price = self.holding - shadow_price
        energies = [
            (move.energy(new.b), move.energy(old.b), old.duration)
            for move, new, old in zip(self._moves, laws, found, strict=True)
        ]
        bound = sum(old - price * time for _, old, time in energies) + price * duration
        return Allocation(laws, 0.0, max(sum(new for new, _, _ in energies) - bound, 0.0))

    def _fitted(self, found: tuple[TimeLaw, ...], duration: float) -> tuple[TimeLaw, ...]:
        """Laws that take exactly a duration [s], from those found, stretched evenly.

        Where energy over duration is not convex, no price gives the durations in between: there
        they are mixed with laws of a price on the other side.
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


def _total(laws: Sequence[TimeLaw]) -> float:
    return sum(law.duration for law in laws)


SAMPLE_PERIOD = 0.002
"""Period of the new time laws [s]: that of an e-Series controller."""
PATH_RESOLUTION = 1e-4
"""Deviation from a path that is stated at least [rad]; noise of measured positions is larger."""
TYPED_TOLERANCE = 1.001
"""Factor by which typed values may exceed a limit: the recording's own are among the limits."""


class CycleProblem:
    """One cycle to be optimized.

    Args:
        model: of the arm, in the session of the recording where it is known.
        cycle: as recorded.
        options: what it may become.
        robot: the arm.
        locked: which moves stay as recorded; () for none.
        arms: of a problem of the same cycle, to be used again.

    Attributes:
        energies: of cycles of this arm.
        recorded: the cycle as it was run.
        recorded_energies: of its stretches.
        limits: that the new moves keep: the usual ones, where the recording goes beyond them its
            own, except for the tool speed.
        recorded_tool_speed: highest of flange and elbow in the recording [m/s].
        locked: whether each move stays as recorded.
    """

    def __init__(
        self,
        model: EnergyModel,
        cycle: WorkCycle,
        options: OptimizationOptions,
        robot: RobotDescription,
        locked: Sequence[bool] = (),
        arms: list[PathDynamics] | None = None,
    ) -> None:
        self.model, self.cycle, self.options, self.robot = model, cycle, options, robot
        self.locked = tuple(locked) or (False,) * len(cycle.moves)
        self.energies = CycleEnergies(model, cycle.temperature)
        self.recorded = recorded_stretches(cycle)
        self.recorded_energies = self.energies.of(self.recorded)
        self.limits, self.beyond = self._limits()
        self.arms = arms or [
            PathDynamics(
                model,
                self.energies.dynamics(move.payload),
                JointPath(move.time, move.q, move.qd),
                cycle.temperature,
            )
            for move in cycle.moves
        ]

    @cached_property
    def kept(self) -> float:
        """Time that must stay: standstill, and locked moves [s]."""
        moves = zip(self.cycle.moves, self.locked, strict=True)
        return sum(rest.kept for rest in self.cycle.rests) + sum(
            move.duration for move, locked in moves if locked
        )

    def limits_of(self, index: int) -> PathLimits:
        """Limits of a move."""
        factor = self.options.max_speedup
        return (
            self.limits if factor is None else self.limits.with_speedup(self._shown[index], factor)
        )

    @property
    def _free(self) -> list[int]:
        """Numbers of the moves that are not locked."""
        return [k for k, locked in enumerate(self.locked) if not locked]

    @cached_property
    def fastest_laws(self) -> tuple[TimeLaw, ...]:
        """Of all moves that are not locked; none is slower than recorded, unless for its jerk."""
        out = []
        for k in self._free:
            arm, limits, move = self.arms[k], self.limits_of(k), self.cycle.moves[k]
            law = fastest_law(arm, limits, self.cycle.source)
            if limits.recorded and law.duration > move.duration:
                b = arm.path.recorded_squared_speed(arm.s)
                b[1:-1], b[[0, -1]] = np.maximum(b[1:-1], 1e-9), 0.0
                law = TimeLaw(arm, b).stretched(move.duration)
            out.append(with_jerk_limit(law, limits.jerk))
        return tuple(out)

    @property
    def shortest(self) -> float:
        """Duration of the time-optimal cycle [s]."""
        return sum(law.duration for law in self.fastest_laws) + self.kept

    def require(self, duration: float) -> None:
        """Refuse a cycle time [s] below the time-optimal one."""
        if duration < self.shortest:
            raise InputError(
                self.cycle.source,
                f"a cycle time of {duration:.2f} s is below the time-optimal one of "
                f"{self.shortest:.2f} s within the limits",
                f"give at least {np.ceil(100 * self.shortest) / 100:.2f} s",
                field="--cycle-time",
            )

    @cached_property
    def allocator(self) -> Allocator:
        """Of the time over the moves."""
        return self._allocator(self._holding[self.waiting_after])

    def allocate(self, duration: float, waiting: float | None = None) -> Allocation:
        """The moves' laws of least energy for a cycle time [s].

        `waiting` is the power of waiting [W]; None takes that of holding the arm.
        """
        allocator = self.allocator if waiting is None else self._allocator(waiting)
        return allocator.allocate(duration - self.kept)

    def _allocator(self, waiting: float) -> Allocator:
        laws = [EnergyLaws(self.arms[k], self.limits_of(k)) for k in self._free]
        return Allocator(laws, waiting, self.fastest_laws, self.limits.jerk)

    def stretches(
        self, laws: Sequence[TimeLaw], waiting: float = 0.0, *, kept: bool = True
    ) -> list[Stretch]:
        """A cycle as it would be run, from the laws of the moves that are not locked.

        `waiting` is waited beyond the standstill that must stay [s], which `kept` includes.
        """
        out, left = [], iter(laws)
        waits = [rest.kept if kept else 0.0 for rest in self.cycle.rests]
        waits[self.waiting_after] += waiting
        recorded = (stretch for stretch in self.recorded if stretch.moving)
        for move, stretch, locked, wait in zip(
            self.cycle.moves, recorded, self.locked, waits, strict=True
        ):
            if not locked:
                plan = Plan(*next(left).sample(SAMPLE_PERIOD), self.cycle.source)
                stretch = Stretch(plan, move.payload)
            out += with_rest(stretch, wait, move.rest.payload)
        return out

    def fastest(self) -> list[Stretch]:
        """The time-optimal cycle as it would be run."""
        return self.stretches(self.fastest_laws)

    def scaled(self, duration: float) -> list[Stretch]:
        """The recorded cycle slowed (or sped up) by speed scaling to a cycle time [s]."""
        moving = sum(move.duration for move in self.cycle.moves)
        kept = sum(rest.kept for rest in self.cycle.rests)
        return recorded_stretches(self.cycle, stretch=(duration - kept) / moving)

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
        deviation = max(PATH_RESOLUTION, *(arm.path.deviation for arm in self.arms))
        out.append(f"The new moves keep the recorded path within {1e3 * deviation:.2g} mrad.")
        return out

    def permits(self, stretches: Sequence[Stretch]) -> bool:
        """Whether a cycle as it was recorded, or scaled, keeps limits and locks."""
        if stretches is self.recorded:
            return bool(np.isinf(self.limits.jerk))
        powers = self.energies.of(stretches, std=False)
        moving = [pair for pair in zip(stretches, powers, strict=True) if pair[0].moving]
        return (
            bool(np.isinf(self.limits.jerk))
            and not any(self.locked)
            and all(
                self._reached(stretch, energy.torque).within(self.limits_of(k))
                for k, (stretch, energy) in enumerate(moving)
            )
        )

    def typed_cost(self, index: int, slot: float, motion: Motion) -> float:
        """Energy of a motion that takes the slot [s] of a move at most, rest included [J].

        Infinite if the motion exceeds a limit.
        """
        payload = self.cycle.moves[index].payload
        stretches = with_rest(sampled_stretch(motion, payload), slot - motion.duration, payload)
        parts = self.energies.of(stretches, std=False)
        shown = self._reached(stretches[0], parts[0].torque)
        if not shown.within(self.limits_of(index), TYPED_TOLERANCE):
            return math.inf
        return sum(part.energy for part in parts)

    def _limits(self) -> tuple[PathLimits, str]:
        """Limits of the new moves, and where the recording goes beyond the usual ones."""
        usual = PathLimits.of_robot(self.robot)
        if self.options.tool_speed is not None:
            usual = replace(usual, tool_speed=TOOL_SPEED_SHARE * self.options.tool_speed)
        if self.options.jerk is not None:
            usual = replace(usual, jerk=self.options.jerk)
        self._shown = shown = [
            self._reached(stretch, energy.torque)
            for stretch, energy in zip(self.recorded, self.recorded_energies, strict=True)
            if stretch.moving
        ]
        largest = shown[0].at_least(*shown)
        self.recorded_tool_speed = largest.tool_speed
        if self.options.recorded_limits:
            still = replace(
                usual, **{n: STILL * getattr(usual, n) for n in ("speed", "acceleration", "torque")}
            )
            return replace(still.at_least(largest), recorded=True), ""
        largest = replace(largest, tool_speed=0.0)
        beyond = [
            name
            for name in ("speed", "acceleration", "torque")
            if (getattr(largest, name) > getattr(usual, name)).any()
        ]
        return usual.at_least(largest), ", ".join(beyond)

    def _reached(self, stretch: Stretch, torque: Array) -> PathLimits:
        _, q, qd, qdd = stretch.plan.sampled()
        return reached(q, qd, qdd, torque, self.energies.dynamics(stretch.payload))

    @cached_property
    def holding(self) -> float:
        """Least power of waiting [W]."""
        return min(self._holding)

    @cached_property
    def _holding(self) -> list[float]:
        """Power of waiting after each move [W]."""
        out = []
        for move in self.cycle.moves:
            q = move.q[-1:]
            zero = np.zeros_like(q)
            link = self.energies.dynamics(move.rest.payload).gravity_torque(q)
            powers = self.model.from_link_torque(
                link, zero, zero, temperature=self.cycle.temperature, std=False
            )
            out.append(float(powers.total_power[0]))
        return out

    @property
    def waiting_after(self) -> int:
        """Number of the move after which time is waited that is left over.

        Where it costs least among the places at which the program waits already, as the part comes
        there; at the end of the cycle if there are none.
        """
        slack = [k for k, rest in enumerate(self.cycle.rests) if rest.slack > 0.0]
        last = len(self._holding) - 1
        return min(slack, key=lambda k: self._holding[k], default=last)
