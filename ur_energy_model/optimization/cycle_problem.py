# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The optimization of one cycle: its moves on their paths, their limits, and its waiting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.setup import Payload
from ur_energy_model.optimization.cycle import (
    CycleEnergies,
    Move,
    OptimizationOptions,
    Stretch,
    StretchEnergy,
    WorkCycle,
    recorded_stretches,
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
from ur_energy_model.optimization.typed_values import TrapezoidEnergies
from ur_energy_model.trajectory.plan import Plan

FASTEST = 1e5
SLOWEST = 0.05
"""Highest shadow price of time [W], at which moves are as fast as the limits allow, and the lowest,
below which they would creep."""
MIDDLE = 16.0  # shadow price from which the search starts where no other is known [W]
USUAL_SLOPE = 0.3  # decrease of the logarithm of the duration with that of the price
_BEYOND = 0.1  # by which the search goes beyond the price of that slope
_TOLERANCE = 0.003
"""Relative error of the moves' total duration; the rest is made up by stretching them evenly."""
_MOST_TRIALS = 10


class Allocation(NamedTuple):
    """Time laws of all moves of a cycle.

    Attributes:
        laws: of the free moves, in order.
        waiting: time left over, to be waited [s].
        gap: how far the energy may be above the optimum [J].
    """

    laws: tuple[TimeLaw, ...]
    waiting: float
    gap: float = 0.0


class Allocator:
    """Distributes the time of a cycle over its moves and waiting.

    For a cycle time, the sum of the moves' energies is least where a second more saves
    the same in every move (the Lagrange condition). All moves are therefore solved for
    one shadow price of time [W], what a second more saves in a move beside waiting that
    second, and the price is searched for. Beyond the time at which it is zero, waiting
    where the arm is held most cheaply costs less than moving slower.

    Args:
        moves: the arm on each path, and its limits; a move that comes again has the same
            arm, and is solved once.
        holding: least power of waiting [W].
        fastest: the moves' time-optimal laws.
        step: called after each move that was solved.
    """

    def __init__(
        self,
        moves: Sequence[tuple[PathDynamics, PathLimits]],
        holding: float,
        fastest: Sequence[TimeLaw],
        step: Callable[[], None] = lambda: None,
    ) -> None:
        self._arms = [arm for arm, _ in moves]
        self._laws = {id(arm): EnergyLaws(arm, limits) for arm, limits in moves}
        self._holding = holding
        self._fastest = tuple(fastest)
        self._step = step
        self._jerk = max((limits.jerk for _, limits in moves), default=np.inf)
        self._known: dict[float, tuple[TimeLaw, ...]] = {}

    def at(self, shadow_price: float) -> tuple[TimeLaw, ...]:
        """The moves' laws for a shadow price of time [W]."""
        known = self._known
        if shadow_price not in known:
            near = min(
                known, key=lambda price: abs(np.log(price / shadow_price)), default=None
            )
            starts = [] if near is None else known[near]
            start = dict(zip(map(id, self._arms), starts, strict=False))
            found: dict[int, TimeLaw] = {}
            for arm, move in self._laws.items():
                law = move.cheapest(self._holding - shadow_price, start.get(arm))
                found[arm] = with_jerk_limit(law, self._jerk)
                self._step()
            known[shadow_price] = tuple(found[id(arm)] for arm in self._arms)
        return known[shadow_price]

    def allocate(self, duration: float, near: float | None = None) -> Allocation:
        """The laws of least energy for a total duration of moves and waiting.

        Args:
            duration: of moves and waiting [s].
            near: shadow price [W] from which the search starts, as a coarser calculation gives;
                None for none.
        """
        shadow_price = self._search(duration, near or MIDDLE)
        found = self.at(shadow_price)
        if shadow_price == SLOWEST and _total(found) <= duration:
            return Allocation(found, duration - _total(found))
        laws = self._fitted(found, duration)
        price = self._holding - shadow_price
        energies = [
            (move.energy(new.b), move.energy(old.b), old.duration)
            for move, new, old in zip(self._each(), laws, found, strict=True)
        ]
        bound = sum(old - price * time for _, old, time in energies) + price * duration
        return Allocation(laws, 0.0, max(sum(new for new, _, _ in energies) - bound, 0.0))

    def _each(self) -> list[EnergyLaws]:
        return [self._laws[id(arm)] for arm in self._arms]

    def _search(self, duration: float, near: float) -> float:
        """The shadow price at which the moves take a duration [s].

        In logarithms, duration is nearly a straight line over price: from the two prices
        that are nearest on both sides, or a usual slope where there is one side only.
        """
        target = np.log(duration)
        trial = float(np.clip(near, SLOWEST, FASTEST))
        slower = {
            np.log(price): np.log(_total(laws)) - target
            for price, laws in self._known.items()
        }
        for _ in range(_MOST_TRIALS):
            late = np.log(_total(self.at(trial))) - target
            slower[np.log(trial)] = late
            if abs(late) < _TOLERANCE:
                return trial
            low = max((price for price, by in slower.items() if by > 0.0), default=None)
            high = min((price for price, by in slower.items() if by <= 0.0), default=None)
            if low is None:
                assert high is not None
                if high == np.log(SLOWEST):
                    return SLOWEST
                price = high + slower[high] / USUAL_SLOPE - _BEYOND
            elif high is None:
                if low == np.log(FASTEST):
                    return FASTEST
                price = low + slower[low] / USUAL_SLOPE + _BEYOND
            else:
                share = slower[low] / max(slower[low] - slower[high], 1e-12)
                price = low + float(np.clip(share, 0.05, 0.95)) * (high - low)
            trial = float(np.clip(np.exp(price), SLOWEST, FASTEST))
        return trial

    def _fitted(self, found: tuple[TimeLaw, ...], duration: float) -> tuple[TimeLaw, ...]:
        """Laws that take exactly a duration [s], from those found, stretched evenly.

        Where energy over duration is not convex, no price gives the durations in between:
        there they are mixed with laws of a price on the other side, by their slowness, so
        that durations mix evenly.
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
        return tuple(
            law.stretched(law.duration * duration / _total(found)) for law in found
        )


def _total(laws: Sequence[TimeLaw]) -> float:
    return sum(law.duration for law in laws)


# difference of the ends of two moves up to which they are the same [rad]
SAME_PATH = 1e-4
SAME_PACE = 0.01  # relative difference of their durations up to which they are the same


def same_moves(cycle: WorkCycle) -> tuple[int, ...]:
    """For each move of a cycle, the number of the first one that is the same motion."""
    found: list[int] = []
    for k, move in enumerate(cycle.moves):
        first = k
        for other in dict.fromkeys(found):
            if _same_motion(move, cycle.moves[other]):
                first = other
                break
        found.append(first)
    return tuple(found)


def _same_motion(one: Move, other: Move) -> bool:
    """Whether two moves are the same trapezoid on the same path with the same payload."""
    first = one.programmed
    second = other.programmed
    if first is None or second is None or first.kind != second.kind:
        return False
    ends = np.abs([first.start - second.start, first.end - second.end]).max()
    pace = abs(one.duration / other.duration - 1.0)
    return bool(ends < SAME_PATH and pace < SAME_PACE) and _same_payload(
        one.payload, other.payload
    )


def _same_payload(one: Payload | None, other: Payload | None) -> bool:
    if one is None or other is None:
        return one is other
    return one is other or (
        one.mass == other.mass
        and bool((one.center_of_mass == other.center_of_mass).all())
        and bool((one.inertia == other.inertia).all())
    )


SAMPLE_PERIOD = 0.002  # period of the new time laws [s]: that of an e-Series controller
PATH_RESOLUTION = 1e-4
"""Deviation from a path that is stated at least [rad]; noise of measured positions is larger."""


class CycleProblem:
    """One recorded cycle to be optimized.

    The model is best in the session of the recording; `arms` of a problem of the same
    cycle can be used again; `step` is called after each move that was solved. Moves that
    come again in a cycle have the same arm.

    Attributes:
        energies: of cycles of this arm.
        recorded: the cycle as it was run.
        limits: that the new moves keep: the usual ones, where the recording goes beyond
            them its own, except for the tool speed.
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
        step: Callable[[], None] = lambda: None,
    ) -> None:
        self.model = model
        self.cycle = cycle
        self.options = options
        self.robot = robot
        self._step = step
        self._same = same_moves(cycle)
        self._trapezoids: dict[int, TrapezoidEnergies] = {}
        self.energies = CycleEnergies(model, cycle.temperature)
        self.recorded = self.energies.of(recorded_stretches(cycle))
        self.shown = [self.reached(part) for part in self.recorded if part.stretch.moving]
        self.arms = arms or self._arms()
        self.kept = sum(rest.kept for rest in cycle.rests) + sum(
            move.duration for move in cycle.moves if move.kept
        )
        usual = PathLimits.of_robot(robot)
        if options.tool_speed is not None:
            usual = replace(usual, tool_speed=TOOL_SPEED_SHARE * options.tool_speed)
        if options.jerk is not None:
            usual = replace(usual, jerk=options.jerk)
        largest = self.shown[0].at_least(*self.shown)
        self.tool_speed = largest.tool_speed
        self.beyond = ""
        names = ("speed", "acceleration", "torque")
        if options.recorded_limits:
            still = replace(
                usual, **{name: STILL * getattr(usual, name) for name in names}
            )
            self.limits = replace(still.at_least(largest), recorded=True)
        else:
            self.beyond = ", ".join(
                name
                for name in names
                if (getattr(largest, name) > getattr(usual, name)).any()
            )
            self.limits = usual.at_least(replace(largest, tool_speed=0.0))

    def _arms(self) -> list[PathDynamics]:
        """The arm on the path of each move."""
        found: dict[int, PathDynamics] = {}
        for k in dict.fromkeys(self._same):
            move = self.cycle.moves[k]
            dynamics = self.energies.dynamics(move.payload)
            motion = (move.time, move.q, move.qd)
            found[k] = PathDynamics(self.model, dynamics, motion, self.cycle.temperature)
        return [found[k] for k in self._same]

    def limits_of(self, index: int) -> PathLimits:
        """Limits of a move."""
        factor = self.options.max_speedup
        if factor is None:
            return self.limits
        return self.limits.with_speedup(self.shown[self._same[index]], factor)

    def reached(self, part: StretchEnergy) -> PathLimits:
        """The largest values of a stretch."""
        _, q, qd, qdd = part.stretch.plan.sampled()
        return reached(
            q, qd, qdd, part.torque, self.energies.dynamics(part.stretch.payload)
        )

    @property
    def _free(self) -> list[int]:
        """Numbers of the moves that need not stay as recorded."""
        return [k for k, move in enumerate(self.cycle.moves) if not move.kept]

    def trapezoids(self, index: int) -> TrapezoidEnergies:
        """A moveJ or moveL with any speed and acceleration."""
        same = self._same[index]
        if same not in self._trapezoids:
            programmed = self.cycle.moves[same].programmed
            assert programmed is not None
            table = TrapezoidEnergies(programmed, self.arms[same], self.limits_of(same))
            self._trapezoids[same] = table
        return self._trapezoids[same]

    @cached_property
    def fastest_laws(self) -> tuple[TimeLaw, ...]:
        """Of all free moves."""
        source = self.cycle.source
        found = dict[int, TimeLaw]()
        for k in self._free:
            if self._same[k] not in found:
                found[self._same[k]] = fastest_law(
                    self.arms[k], self.limits_of(k), source
                )
                self._step()
        return tuple(found[self._same[k]] for k in self._free)

    @property
    def shortest(self) -> float:
        """Duration of the time-optimal cycle [s]."""
        return _total(self.fastest_laws) + self.kept

    @cached_property
    def holding(self) -> list[float]:
        """Power of waiting after each move [W]."""
        temperature = self.cycle.temperature
        out = []
        for move in self.cycle.moves:
            dynamics = self.energies.dynamics(move.rest.payload)
            out.append(
                float(holding_power(self.model, dynamics, move.q[-1:], temperature)[0])
            )
        return out

    @property
    def waiting_after(self) -> int:
        """Number of the move after which time is waited that is left over.

        Where it costs least among the places at which the program waits already, as the
        part comes there; at the end of the cycle if there are none.
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
        return Allocator(moves, waiting, self.fastest_laws, self._step)

    def allocate(self, duration: float, near: float | None = None) -> Allocation:
        """The moves' laws of least energy for a cycle time [s]; `near` as for `Allocator`."""
        return self.allocator.allocate(duration - self.kept, near)

    def run(
        self,
        laws: Sequence[TimeLaw],
        waiting: float = 0.0,
        *,
        kept: bool = True,
        std: bool = True,
        period: float = SAMPLE_PERIOD,
    ) -> list[StretchEnergy]:
        """A cycle as it would be run, from the laws of its free moves.

        Args:
            laws: of the free moves, in order.
            waiting: time that is waited beyond the standstill that must stay [s].
            kept: whether the standstill that must stay is included.
            std: whether sensitivities are computed.
            period: of the samples from which the energies are computed [s].
        """
        out: list[Stretch] = []
        left = iter(laws)
        waits = [rest.kept if kept else 0.0 for rest in self.cycle.rests]
        waits[self.waiting_after] += waiting
        recorded = (part.stretch for part in self.recorded if part.stretch.moving)
        for move, stretch, wait in zip(self.cycle.moves, recorded, waits, strict=True):
            if not move.kept:
                plan = Plan(*next(left).sample(period), self.cycle.source)
                stretch = Stretch(plan, move.payload)
            out += with_rest(stretch, wait, move.rest.payload)
        return self.energies.of(out, std=std)

    def scaled(self, duration: float) -> list[StretchEnergy]:
        """The recorded cycle slowed (or sped up) by speed scaling to a cycle time [s]."""
        moving = sum(move.duration for move in self.cycle.moves)
        kept = sum(rest.kept for rest in self.cycle.rests)
        return self.energies.of(
            recorded_stretches(self.cycle, stretch=(duration - kept) / moving)
        )

    def permits(self, parts: Sequence[StretchEnergy]) -> bool:
        """Whether a scaled cycle keeps limits and kept moves."""
        moving = [part for part in parts if part.stretch.moving]
        return len(self._free) == len(moving) and all(
            self.reached(part).within(self.limits_of(k)) for k, part in enumerate(moving)
        )

    def notes(self) -> list[str]:
        """What the result rests on, one sentence each."""
        cycle = self.cycle
        out = []
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
        out.append(
            f"The new moves keep the recorded path within {1e3 * deviation:.2g} mrad."
        )
        return out


def switched_off(
    problem: CycleProblem, parts: Sequence[StretchEnergy]
) -> tuple[list[StretchEnergy], list[str]]:
    """Energies of a cycle whose long waits are spent switched off.

    Args:
        problem: the recorded cycle.
        parts: energies of the stretches of the cycle.

    Returns:
        Energies of the stretches with switching, and a note on it; no note without a wait
        that is long enough.
    """
    after = problem.options.power_off_after
    switching = problem.cycle.switching
    if after is None:
        return [*parts], []
    if switching is None:
        return [*parts], [
            "Switching off is left out: the recording does not show what it takes on this arm "
            "(record robot_mode and the bus while it is switched off and on once)."
        ]
    out = []
    count = 0
    for part in parts:
        wait = part.stretch.plan.duration
        off = switching.energy + switching.power * (wait - switching.time)
        long = not part.stretch.moving and wait > max(after, switching.time)
        if long and off < part.energy:
            count += 1
            part = part._replace(
                energy=off, motion=0.0, sensitivity=0.0 * part.sensitivity
            )
        out.append(part)
    return out, [
        f"{count} of the waits are spent switched off; switching takes {switching.time:.1f} s and "
        f"{switching.energy:.0f} J as recorded."
        if count
        else "No wait is long enough for switching off to save energy."
    ]
