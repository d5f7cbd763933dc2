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
    holding_power,
    reached,
)
from ur_energy_model.optimization.time_law import TimeLaw, with_jerk_limit
from ur_energy_model.optimization.typed_values import TrapezoidEnergies
from ur_energy_model.trajectory.plan import Plan

FASTEST = 1e5
"""Highest shadow price of time [W], at which moves are as fast as the limits allow."""
SLOWEST = 0.05  # lowest shadow price of time [W], below which moves would creep
MIDDLE = 16.0  # shadow price from which the search starts where no other is known [W]
USUAL_SLOPE = 0.3  # decrease of log(duration) with log(price)
_BEYOND = 0.1  # steps in log(price) go this far beyond the price by the usual slope
_TOLERANCE = 0.003
"""Relative error of the total duration of moves; stretching all moves evenly removes the error."""
_MOST_TRIALS = 10  # prices that are tried for a duration


class Allocation(NamedTuple):
    """Time laws of all moves of a cycle.

    Attributes:
        laws: time laws of the free moves, in order.
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
    one shadow price of time [W]: the energy that a second more of a move saves, compared
    with waiting for this second. The price that gives the cycle time is searched for.
    Beyond the time at which the price is zero, waiting in the cheapest pose costs less
    than moving slower.

    Args:
        moves: the arm on each path, and its limits; a move that is repeated has the same
            arm, and is solved once.
        holding: least power of waiting [W].
        fastest: the moves' time-optimal laws.
        step: called after each move that was solved.
        near: an allocator of the same moves with narrower limits, from whose laws the
            search for a price starts that is known there; None for none.
    """

    def __init__(
        self,
        moves: Sequence[tuple[PathDynamics, PathLimits]],
        holding: float,
        fastest: Sequence[TimeLaw],
        step: Callable[[], None] = lambda: None,
        near: Allocator | None = None,
    ) -> None:
        self._arms = [arm for arm, _ in moves]
        self._laws = {id(arm): EnergyLaws(arm, limits) for arm, limits in moves}
        self._holding = holding
        self._fastest = tuple(fastest)
        self._step = step
        self._jerk = max((limits.jerk for _, limits in moves), default=np.inf)
        self._known: dict[float, tuple[TimeLaw, ...]] = {}
        self._near: dict[float, tuple[TimeLaw, ...]] = {}
        self._first_price = MIDDLE
        if near is not None:
            self._near = near._known
            self._first_price = near._first_price

    @property
    def shortest(self) -> float:
        """Duration of all moves with their time-optimal laws [s]."""
        return _total(self._fastest)

    def at(self, shadow_price: float) -> tuple[TimeLaw, ...]:
        """The moves' laws for a shadow price of time [W]."""
        if shadow_price in self._known:
            return self._known[shadow_price]
        known = self._known or self._near
        starts: dict[int, TimeLaw] = {}
        if known:
            nearest = min(known, key=lambda price: abs(np.log(price / shadow_price)))
            for arm, law in zip(self._arms, known[nearest], strict=True):
                starts[id(arm)] = law
        found: dict[int, TimeLaw] = {}
        for key, move in self._laws.items():
            law = move.cheapest(self._holding - shadow_price, starts.get(key))
            found[key] = with_jerk_limit(law, self._jerk)
            self._step()
        laws = tuple(found[id(arm)] for arm in self._arms)
        self._known[shadow_price] = laws
        return laws

    def allocate(self, duration: float, near: float | None = None) -> Allocation:
        """The laws of least energy for a total duration of moves and waiting.

        Args:
            duration: duration of moves and waiting [s].
            near: shadow price from which the search starts, for instance the result of a
                coarser calculation [W]; None for the price that was found last, also by
                an allocator with narrower limits, or for `MIDDLE`.
        """
        if not self._arms:  # every move stays as recorded
            return Allocation((), duration)
        shadow_price = self._search(duration, near or self._first_price)
        self._first_price = shadow_price
        found = self.at(shadow_price)
        if shadow_price == SLOWEST and _total(found) <= duration:
            return Allocation(found, duration - _total(found))
        laws = self._fitted(found, duration)
        price = self._holding - shadow_price
        energy = 0.0
        # The laws found minimise energy minus price times duration. Any laws that take
        # this duration together therefore take at least this energy.
        lower_bound = price * duration
        for arm, law, cheapest in zip(self._arms, laws, found, strict=True):
            move = self._laws[id(arm)]
            energy += move.energy(law.b)
            lower_bound += move.energy(cheapest.b) - price * cheapest.duration
        return Allocation(laws, 0.0, max(energy - lower_bound, 0.0))

    def _search(self, duration: float, near: float) -> float:
        """The shadow price at which the moves take a duration [s].

        The logarithm of the duration is nearly a straight line over the logarithm of the
        price. The line goes through the nearest prices that are too low and too high, or
        through one of them with the usual slope where the other is unknown.

        Args:
            duration: duration of all moves [s].
            near: price of the first trial [W].
        """
        target = np.log(duration)
        trial = float(np.clip(near, SLOWEST, FASTEST))
        # Logarithm of duration over target, by the logarithm of the price.
        excess: dict[float, float] = {}
        for price, laws in self._known.items():
            excess[np.log(price)] = np.log(_total(laws)) - target
        for _ in range(_MOST_TRIALS):
            late = np.log(_total(self.at(trial))) - target
            excess[np.log(trial)] = late
            if abs(late) < _TOLERANCE:
                return trial
            too_low = [at for at, late in excess.items() if late > 0.0]
            too_high = [at for at, late in excess.items() if late <= 0.0]
            if not too_low:
                high = min(too_high)
                if high == np.log(SLOWEST):
                    return SLOWEST
                following = high + excess[high] / USUAL_SLOPE - _BEYOND
            elif not too_high:
                low = max(too_low)
                if low == np.log(FASTEST):
                    return FASTEST
                following = low + excess[low] / USUAL_SLOPE + _BEYOND
            else:
                low = max(too_low)
                high = min(too_high)
                share = excess[low] / max(excess[low] - excess[high], 1e-12)
                following = low + float(np.clip(share, 0.05, 0.95)) * (high - low)
            trial = float(np.clip(np.exp(following), SLOWEST, FASTEST))
        return trial

    def _fitted(self, found: tuple[TimeLaw, ...], duration: float) -> tuple[TimeLaw, ...]:
        """Laws that take exactly a duration [s], from those found, stretched evenly.

        Where energy over duration is not convex, no price gives the durations in between:
        there the laws found are mixed with laws of a price on the other side.
        """
        total = _total(found)
        if abs(duration / total - 1.0) > 2 * _TOLERANCE:
            known = (*self._known.values(), self._fastest)
            slower = [laws for laws in known if _total(laws) > duration]
            faster = [laws for laws in known if _total(laws) <= duration]
            if total < duration and slower:
                found = _mixed(min(slower, key=_total), found, duration)
            elif total > duration and faster:
                found = _mixed(found, max(faster, key=_total), duration)
        ratio = duration / _total(found)
        return tuple(law.stretched(law.duration * ratio) for law in found)


def _total(laws: Sequence[TimeLaw]) -> float:
    """Duration of all laws [s]."""
    return sum(law.duration for law in laws)


def _mixed(
    slow: Sequence[TimeLaw], fast: Sequence[TimeLaw], duration: float
) -> tuple[TimeLaw, ...]:
    """Laws of a total duration [s] between slower and faster laws of the same moves.

    What is averaged is slowness, the inverse of the path speed: then durations mix in the
    same proportion.
    """
    share = (_total(slow) - duration) / (_total(slow) - _total(fast))
    mixed = []
    for law, other in zip(slow, fast, strict=True):
        b = law.b.copy()
        own = (1 - share) / np.sqrt(b[1:-1])
        slowness = own + share / np.sqrt(other.b[1:-1])
        b[1:-1] = slowness**-2.0
        mixed.append(TimeLaw(law.arm, b, max(law.window, other.window)))
    return tuple(mixed)


SAME_PATH = 1e-4
"""Difference of the ends of two moves up to which their paths are the same [rad]."""
SAME_PACE = 0.01
"""Relative difference of the durations of two moves up to which they are equally fast."""


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
    same_motion = bool(ends < SAME_PATH and pace < SAME_PACE)
    return same_motion and _same_payload(one.payload, other.payload)


def _same_payload(one: Payload | None, other: Payload | None) -> bool:
    """Whether two payloads have equal mass, centre of mass and inertia, or both are None."""
    if one is None or other is None:
        return one is other
    same_center = np.array_equal(one.center_of_mass, other.center_of_mass)
    same_inertia = np.array_equal(one.inertia, other.inertia)
    return one.mass == other.mass and same_center and same_inertia


SAMPLE_PERIOD = 0.002  # period of the new time laws [s], as in an e-Series controller
PATH_RESOLUTION = 1e-4
"""Deviation from a path that is stated at least [rad]; noise of measured positions is larger."""


class CycleProblem:
    """One recorded cycle to be optimized.

    Moves that are repeated in a cycle share their arm on the path.

    Args:
        model: model of the arm, best in the session of the recording.
        cycle: recorded cycle, with the moves and waits that it must keep.
        options: what the cycle may become.
        robot: type of the arm.
        arms: arms on the paths of another problem of the same cycle, to be used again;
            empty to compute them.
        step: called after each move that was solved.

    Attributes:
        energies: energies of cycles of this arm.
        recorded: energies of the stretches of the recorded cycle.
        shown: largest values of each recorded move.
        arms: the arm on the path of each move.
        kept: time of the cycle that stays: rests and moves that are kept [s].
        tool_speed: highest speed of flange and elbow in the recording [m/s].
        limits: limits of the new moves: the usual limits, raised to the recorded values
            where these exceed them, except for the tool speed.
        beyond: names of the limits that the recording exceeds, as text.
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
        kept_rests = sum(rest.kept for rest in cycle.rests)
        kept_moves = sum(move.duration for move in cycle.moves if move.kept)
        self.kept = kept_rests + kept_moves
        largest = self.shown[0].at_least(*self.shown)
        self.tool_speed = largest.tool_speed
        usual = _usual_limits(robot, options)
        if options.recorded_limits:
            self.beyond = ""
            self.limits = _recorded_limits(largest, usual)
        else:
            self.beyond = ", ".join(_exceeded(largest, usual))
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
        """Limits of the move with this number."""
        factor = self.options.max_speedup
        if factor is None:
            return self.limits
        return self.limits.with_speedup(self.shown[self._same[index]], factor)

    def reached(self, part: StretchEnergy) -> PathLimits:
        """The largest values of a stretch."""
        _, q, qd, qdd = part.stretch.plan.sampled()
        dynamics = self.energies.dynamics(part.stretch.payload)
        return reached(q, qd, qdd, part.torque, dynamics)

    @property
    def _free(self) -> list[int]:
        """Numbers of the moves that need not stay as recorded."""
        return [k for k, move in enumerate(self.cycle.moves) if not move.kept]

    def trapezoids(self, index: int) -> TrapezoidEnergies:
        """Energies of the programmed move with this number, for speeds and accelerations."""
        same = self._same[index]
        if same not in self._trapezoids:
            programmed = self.cycle.moves[same].programmed
            assert programmed is not None
            table = TrapezoidEnergies(programmed, self.arms[same], self.limits_of(same))
            self._trapezoids[same] = table
        return self._trapezoids[same]

    @cached_property
    def fastest_laws(self) -> tuple[TimeLaw, ...]:
        """Time-optimal laws of all free moves."""
        return self._fastest_below(np.inf)

    def _fastest_below(self, power: float) -> tuple[TimeLaw, ...]:
        """Time-optimal laws of all free moves, with at most a power at the supply [W]."""
        source = self.cycle.source
        found: dict[int, TimeLaw] = {}
        laws = []
        for number in self._free:
            same = self._same[number]
            if same not in found:
                limits = replace(self.limits_of(number), power=power)
                found[same] = fastest_law(self.arms[number], limits, source)
                self._step()
            laws.append(found[same])
        return tuple(laws)

    @property
    def shortest(self) -> float:
        """Duration of the time-optimal cycle [s]."""
        return _total(self.fastest_laws) + self.kept

    @cached_property
    def holding(self) -> list[float]:
        """Power of waiting after each move [W]."""
        temperature = self.cycle.temperature
        powers = []
        for move in self.cycle.moves:
            dynamics = self.energies.dynamics(move.rest.payload)
            power = holding_power(self.model, dynamics, move.q[-1:], temperature)
            powers.append(float(power[0]))
        return powers

    @property
    def waiting_after(self) -> int:
        """Number of the move after which left-over time is waited.

        It is the place with the least power of holding among those at which the program
        waits already, for instance until a part arrives; without any, the end of the cycle.
        """
        slack = [number for number, rest in enumerate(self.cycle.rests) if rest.slack > 0]
        last = len(self.holding) - 1
        return min(slack, key=self.holding.__getitem__, default=last)

    @cached_property
    def allocator(self) -> Allocator:
        """Distributes time over the moves, where waiting takes the power of holding the arm."""
        return self.allocator_with(self.holding[self.waiting_after])

    def allocator_with(self, waiting: float) -> Allocator:
        """An allocator of time over the moves, where waiting takes this power [W]."""
        moves = [(self.arms[k], self.limits_of(k)) for k in self._free]
        return Allocator(moves, waiting, self.fastest_laws, self._step)

    def allocator_below(self, power: float, near: Allocator | None = None) -> Allocator:
        """An allocator whose moves take at most a power at the supply.

        Args:
            power: largest power in each interval of a path [W].
            near: an allocator of a lower power, from whose laws the search starts.

        Raises:
            InputError: a path cannot be taken with this power.
        """
        moves = []
        for number in self._free:
            limits = replace(self.limits_of(number), power=power)
            moves.append((self.arms[number], limits))
        waiting = self.holding[self.waiting_after]
        fastest = self._fastest_below(power)
        return Allocator(moves, waiting, fastest, self._step, near)

    def allocate(self, duration: float, near: float | None = None) -> Allocation:
        """The laws of least energy of the moves for a cycle time.

        Args:
            duration: cycle time [s].
            near: shadow price from which the search starts [W]; None for `MIDDLE`.
        """
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
            laws: time laws of the free moves, in order.
            waiting: time that is waited beyond the standstill that must stay [s].
            kept: whether the standstill that must stay is included.
            std: whether sensitivities are computed.
            period: sample period of the motion from which the energies are computed [s].
        """
        stretches: list[Stretch] = []
        remaining = iter(laws)
        waits = [rest.kept if kept else 0.0 for rest in self.cycle.rests]
        waits[self.waiting_after] += waiting
        recorded = (part.stretch for part in self.recorded if part.stretch.moving)
        for move, stretch, wait in zip(self.cycle.moves, recorded, waits, strict=True):
            if not move.kept:
                samples = next(remaining).sample(period)
                stretch = Stretch(Plan(*samples, self.cycle.source), move.payload)
            stretches += with_rest(stretch, wait, move.rest.payload)
        return self.energies.of(stretches, std=std)

    def scaled(self, duration: float) -> list[StretchEnergy]:
        """The recorded cycle slowed (or sped up) by speed scaling to a cycle time [s]."""
        moving = sum(move.duration for move in self.cycle.moves)
        kept = sum(rest.kept for rest in self.cycle.rests)
        factor = (duration - kept) / moving
        return self.energies.of(recorded_stretches(self.cycle, stretch=factor))

    def permits(self, parts: Sequence[StretchEnergy]) -> bool:
        """Whether a scaled cycle keeps all limits; never where a move must stay as recorded."""
        moving = [part for part in parts if part.stretch.moving]
        if len(self._free) < len(moving):
            return False
        return all(
            self.reached(part).within(self.limits_of(number))
            for number, part in enumerate(moving)
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


def _usual_limits(robot: RobotDescription, options: OptimizationOptions) -> PathLimits:
    """Limits of the robot file, with tool speed and jerk of the options."""
    limits = PathLimits.of_robot(robot)
    if options.tool_speed is not None:
        limits = replace(limits, tool_speed=TOOL_SPEED_SHARE * options.tool_speed)
    if options.jerk is not None:
        limits = replace(limits, jerk=options.jerk)
    return limits


def _recorded_limits(largest: PathLimits, usual: PathLimits) -> PathLimits:
    """Limits that are only as high as recorded, with a small part of the usual limits at least.

    Args:
        largest: largest values of all recorded moves.
        usual: limits without regard to the recording.
    """
    still = replace(
        usual,
        speed=STILL * usual.speed,
        acceleration=STILL * usual.acceleration,
        torque=STILL * usual.torque,
    )
    return replace(still.at_least(largest), recorded=True)


def _exceeded(largest: PathLimits, limits: PathLimits) -> list[str]:
    """Names of the limits of the joints that the largest values of a motion exceed."""
    names = []
    for name in ("speed", "acceleration", "torque"):
        values = getattr(largest, name)
        if (values > getattr(limits, name)).any():
            names.append(name)
    return names


def switched_off(
    problem: CycleProblem, parts: Sequence[StretchEnergy]
) -> tuple[list[StretchEnergy], list[str]]:
    """Energies of a cycle in whose long waits the arm is switched off, as far as that saves.

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
    new_parts = []
    count = 0
    for part in parts:
        wait = part.stretch.plan.duration
        energy = switching.energy + switching.power * (wait - switching.time)
        long = not part.stretch.moving and wait > max(after, switching.time)
        if long and energy < part.energy:
            count += 1
            sensitivity = np.zeros_like(part.sensitivity)
            part = part._replace(energy=energy, motion=0.0, sensitivity=sensitivity)
        new_parts.append(part)
    note = "No wait is long enough for switching off to save energy."
    if count:
        note = (
            f"{count} of the waits are spent switched off; switching takes "
            f"{switching.time:.1f} s and {switching.energy:.0f} J as recorded."
        )
    return new_parts, [note]
