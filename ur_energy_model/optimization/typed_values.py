# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Values to type: a speed and an acceleration for each line of the program, for the least energy.

All moves that a line runs have the values of the line, such as moves of a subprogram that
is called several times. For a cycle time, the sum of the energies of all lines is least
where a second more saves the same in every line, as in `Allocator`: for a shadow price of
time each line has its best values, and the price is searched for. The candidates of a line
are a coarse grid over speed and shape of its trapezoids, and then finer grids around the
best candidate.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.interpolate import PchipInterpolator

from ur_energy_model.optimization.path import PathDynamics, PathLimits
from ur_energy_model.optimization.programmed import TYPED_DIGITS, ProgrammedMove
from ur_energy_model.trajectory.motions import Trapezoid
from ur_energy_model.typing import Array, Mask

SPEEDS = 24  # speeds in the first grid of a line
SHAPES = 9  # shapes for each speed in the first grid of a line
SQUAREST = 1.05  # least shape: nearly constant speed; a shape is highest over mean speed
TRIANGLE = 2.0  # shape of a trapezoid without constant speed
FINER = np.linspace(-1.0, 1.0, 5)
"""Speeds and shapes of a finer grid, in its steps from the best candidate."""
ROUNDS = 3  # rounds of finer and finer candidates
NARROWER = 0.35  # steps of a finer grid relative to the steps of the grid before
HIGHEST = 1e5  # highest shadow price of time in the search [W]
LOWEST = 0.05  # lowest shadow price of time in the search [W]
GENTLER = 0.99  # factor on values that exceed a limit, for the next trial
GENTLENESS = 0.01
"""Share of a line's energy that twice the recorded acceleration must save: tool and part
are exposed to it."""


_ROUNDING = 1.0 + 1e-9  # factor on a limit that a value may reach exactly


class Values(NamedTuple):
    """Speed and acceleration of a line in SI: of the leading joint (moveJ) or the tool (moveL)."""

    speed: float
    acceleration: float


class TypedLine:
    """A line of the program: its moves for any speed and acceleration, and candidates of values.

    Args:
        moves: moves of the line, with their energies; a move that is run several times is
            contained as often.
        recorded: values that the line was run with.
        most: highest values that may be typed.
        units: units of typed speeds and accelerations, SI.

    Attributes:
        shapes: speed and ratio of highest to mean speed of the candidates [k, 2].
        time: time of all moves of the line with each candidate [k], s.
        energy: energy of all moves at the supply with each candidate [k], J, raised for
            accelerations above the recorded one (`GENTLENESS`); infinite where a limit is
            exceeded.
    """

    def __init__(
        self,
        moves: Sequence[TrapezoidEnergies],
        recorded: Values,
        most: Values,
        units: Values,
    ) -> None:
        self._moves = {move: moves.count(move) for move in moves}
        self._recorded = recorded
        self._most = most
        self._units = units
        self._longest = max(move.distance for move in moves)
        slowest = max(move.slowest for move in moves)
        fastest = min(most.speed, min(move.fastest for move in moves))
        speeds = np.geomspace(min(slowest, fastest), fastest, SPEEDS)
        shapes = 1.0 + np.geomspace(SQUAREST - 1.0, TRIANGLE - 1.0, SHAPES)
        # Logarithmic steps of the first grid, of the speed and of the shape less 1.
        speed_ratio = speeds[1] / speeds[0]
        shape_ratio = (shapes[1] - 1.0) / (shapes[0] - 1.0)
        self._steps = np.log([speed_ratio, shape_ratio])
        self._lowest = speeds[0]
        self.shapes = np.zeros((0, 2))
        self.time = np.zeros(0)
        self.energy = np.zeros(0)
        recorded_shape = 1.0 + recorded.speed**2 / (recorded.acceleration * self._longest)
        as_recorded = [[recorded.speed, recorded_shape]]
        self._add(np.concatenate([_grid(speeds, shapes), as_recorded]))

    @property
    def possible(self) -> bool:
        """Whether any values keep the limits."""
        return bool(np.isfinite(self.energy).any())

    def best(self, price: float) -> int:
        """Number of the candidate with the least energy minus price times duration."""
        return int(np.argmin(self.energy - price * self.time))

    def refine(self, number: int, scale: float) -> None:
        """Add a grid of candidates around a candidate.

        Args:
            number: number of the candidate.
            scale: steps of the new grid over the steps of the first grid.
        """
        speed, shape = self.shapes[number]
        speed_step, shape_step = scale * self._steps
        speeds = speed * np.exp(FINER * speed_step)
        shapes = 1.0 + (shape - 1.0) * np.exp(FINER * shape_step)
        shapes = np.clip(shapes, SQUAREST, max(shape, TRIANGLE))
        self._add(_grid(speeds, shapes))

    def forbid(self, values: Values) -> None:
        """Exclude candidates as fast or as hard as values that exceed a limit in the cycle."""
        most = Values(GENTLER * values.speed, GENTLER * values.acceleration)
        speed, acceleration = self._values(self.shapes)
        harder = (speed >= most.speed) | (acceleration >= most.acceleration)
        self.energy = np.where(harder, np.inf, self.energy)
        self._most = most

    def _add(self, shapes: Array) -> None:
        """Add candidates [k, 2] with their times and energies."""
        speeds = shapes[:, 0]
        shapes = shapes[speeds >= self._lowest * (1.0 - 1e-9)]
        speed, acceleration = self._values(shapes)
        time = np.zeros(len(shapes))
        energy = np.zeros(len(shapes))
        for move, times in self._moves.items():
            taken, spent = move(speed, acceleration)
            time += times * taken
            energy += times * spent
        above = np.maximum(acceleration / self._recorded.acceleration - 1.0, 0.0)
        allowed = self._allowed(speed, acceleration)
        energy = np.where(allowed, energy * (1.0 + GENTLENESS * above), np.inf)
        self.shapes = np.concatenate([self.shapes, shapes])
        self.time = np.concatenate([self.time, time])
        self.energy = np.concatenate([self.energy, energy])

    def _values(self, shapes: Array) -> tuple[Array, Array]:
        """Speeds and accelerations [k] of speeds and shapes [k, 2]."""
        speed, shape = shapes.T
        return speed, speed**2 / ((shape - 1.0) * self._longest)

    def _allowed(self, speed: Array, acceleration: Array) -> Mask:
        """Whether speeds and accelerations [k] are within the highest values."""
        slow_enough = speed <= _ROUNDING * self._most.speed
        gentle_enough = acceleration <= _ROUNDING * self._most.acceleration
        return np.asarray(slow_enough & gentle_enough)

    def rounded(self, number: int, slower: float, time: float) -> tuple[Values, float]:
        """Values that a person types, from a candidate that is run slower.

        Args:
            number: number of the candidate.
            slower: factor on the duration of its moves.
            time: longest time that all moves may take [s].

        Returns:
            The typed values, from the numbers next to the candidate's values: with the
            longest duration within `time`, or with the shortest duration if none is
            within `time`; and the duration of all moves with these values [s].
        """
        speed, acceleration = self._values(self.shapes[[number]])
        exact_speed = float(speed[0]) / slower
        exact_acceleration = float(acceleration[0]) / slower**2
        units = self._units
        speeds = _numbers_beside(exact_speed, units.speed, self._most.speed)
        accelerations = _numbers_beside(
            exact_acceleration, units.acceleration, self._most.acceleration
        )
        tried = [Values(v, a) for v in speeds for a in accelerations]
        within = [values for values in tried if self.duration(values) <= time]
        typed = min(tried, key=self.duration)
        if within:
            typed = max(within, key=self.duration)
        return typed, self.duration(typed)

    def duration(self, values: Values) -> float:
        """Duration of all moves of the line with these values [s]."""
        speed = np.array([values.speed])
        acceleration = np.array([values.acceleration])
        total = 0.0
        for move, times in self._moves.items():
            of_one = durations(move.distance, speed, acceleration)
            total += times * float(of_one[0])
        return total


def _grid(speeds: Array, shapes: Array) -> Array:
    """All pairs of speeds [a] and shapes [b] as candidates [a b, 2]."""
    pairs = np.meshgrid(speeds, shapes, indexing="ij")
    return np.stack(pairs, axis=-1).reshape(-1, 2)


def _numbers_beside(value: float, unit: float, most: float) -> list[float]:
    """The numbers of `TYPED_DIGITS` digits in a unit next to a value, below and above.

    The number above is left out where it exceeds `most`. Arguments and results are in SI.
    """
    there = value / unit
    step = 10.0 ** (math.floor(math.log10(there)) + 1 - TYPED_DIGITS)
    below = math.floor(there / step + 1e-6) * step * unit
    above = math.ceil(there / step - 1e-6) * step * unit
    if above > most * _ROUNDING:
        return [below]
    return [below, above]


class Choice(NamedTuple):
    """Values of all lines, and the time of their moves.

    Attributes:
        values: values to type, of each line.
        time: time of all moves [s].
        price: shadow price of time [W].
    """

    values: tuple[Values, ...]
    time: float
    price: float


def best_values(lines: Sequence[TypedLine], time: float, holding: float) -> Choice:
    """Typed values with the least energy of moves and of waiting for the rest of a time.

    Where the moves take longer than the time however fast, they are as fast as the limits
    allow.

    Args:
        lines: lines of the program.
        time: time of all moves and of waiting [s].
        holding: power of waiting [W].
    """
    chosen, price = _choose(lines, time, holding)
    scale = 1.0
    for _ in range(ROUNDS):
        scale *= NARROWER
        for line, number in zip(lines, chosen, strict=True):
            line.refine(number, scale)
        chosen, price = _choose(lines, time, holding)
    total = _total_time(lines, chosen)
    slower = 1.0
    if price > LOWEST and total > 0.0:
        # Candidates leave a little of the time: where time is scarce, moves use it up.
        slower = max(time / total, 1.0)
    values = []
    left = 0.0  # time that rounding has saved so far [s]
    for line, number in zip(lines, chosen, strict=True):
        goal = slower * float(line.time[number])
        typed, duration = line.rounded(number, slower, goal + left)
        values.append(typed)
        left += goal - duration
    return Choice(tuple(values), slower * total - left, price)


def _choose(
    lines: Sequence[TypedLine], time: float, holding: float
) -> tuple[list[int], float]:
    """The best candidates of all lines that take a time [s] at most, and the price of time [W].

    The price is found by bisection of its logarithm: the higher, the faster are the lines.
    """
    chosen = [line.best(holding - LOWEST) for line in lines]
    if _total_time(lines, chosen) <= time:
        return chosen, LOWEST
    low = np.log(LOWEST)
    high = np.log(HIGHEST)
    chosen = [line.best(holding - HIGHEST) for line in lines]
    while high - low > 1e-6:
        middle = 0.5 * (low + high)
        price = float(np.exp(middle))
        numbers = [line.best(holding - price) for line in lines]
        if _total_time(lines, numbers) <= time:
            chosen = numbers
            high = middle
        else:
            low = middle
    return chosen, float(np.exp(high))


def _total_time(lines: Sequence[TypedLine], chosen: Sequence[int]) -> float:
    """Time of all lines with a candidate each [s]."""
    total = 0.0
    for line, number in zip(lines, chosen, strict=True):
        total += float(line.time[number])
    return total


# Energies of a move with any speed and acceleration: trapezoids on its path, many at
# once. Speed and acceleration give the speed at each place of the path, so that torques
# and powers of many pairs of values are one calculation on the intervals of the path.
# Values are chosen by these energies; energies that are printed come from the sampled
# motion.

TOLERANCE = 1.001
"""Factor by which typed values may exceed a limit: values of the recording are among the limits."""
PROGRESS_SAMPLES = 400  # samples of a moveL, from which the progress of its tool is found
ROWS = 4000
"""Intervals that are calculated together: more do not fit into the processor's cache."""


def durations(distance: float, speed: Array, acceleration: Array) -> Array:
    """Durations of trapezoids of speed from rest to rest [k], s.

    Args:
        distance: travelled distance in the unit of `ProgrammedMove`.
        speed: highest speed [k], per s.
        acceleration: acceleration of both ramps [k], per s^2.
    """
    peak = np.minimum(speed, np.sqrt(distance * acceleration))
    return np.asarray(distance / peak + peak / acceleration)


class TrapezoidEnergies:
    """Duration and energy of a programmed move for speeds and accelerations, within limits.

    The move is run by an arm on the path of the recorded move. Speeds are speeds of the
    leading joint or of the tool, as in `ProgrammedMove`.
    """

    def __init__(
        self, move: ProgrammedMove, arm: PathDynamics, limits: PathLimits
    ) -> None:
        self.distance = move.distance
        self._arm = arm
        self._limits = limits
        self._progress, self._slope = _progress(move, arm)
        self._fastest = arm.fastest(limits)

    @property
    def slowest(self) -> float:
        """Mean speed below which friction of steady motion does not apply to the leading joint."""
        return self._arm.slowest * self.distance

    @property
    def fastest(self) -> float:
        """Speed above which no place of the path keeps the limits of speed."""
        return float((self._fastest * self._slope)[1:-1].max())

    def __call__(self, speed: Array, acceleration: Array) -> tuple[Array, Array]:
        """Durations [k], s, and energies at the supply [k], J, of pairs of values [k].

        The energy is infinite where a limit is exceeded.
        """
        exact = durations(self.distance, speed, acceleration)
        together = max(1, ROWS // len(self._arm.steps))
        power = np.zeros(len(speed))
        for start in range(0, len(speed), together):
            rows = slice(start, start + together)
            energy, duration = self._energy(speed[rows], acceleration[rows])
            power[rows] = energy / duration
        return exact, power * exact

    def _energy(self, speed: Array, acceleration: Array) -> tuple[Array, Array]:
        """Energies [k], J, and durations [k], s, as the intervals of the path give them."""
        arm = self._arm
        limits = self._limits
        v = speed[:, None]
        a = acceleration[:, None]
        ramps = 2.0 * a * np.minimum(self._progress, self.distance - self._progress)
        squared = np.minimum(np.maximum(ramps, 0.0), v**2)
        path_speed = np.sqrt(squared) / self._slope
        mean = 0.5 * (path_speed[:, 1:] + path_speed[:, :-1])
        rate = np.diff(path_speed**2, axis=1) / (2.0 * arm.steps)
        demand, torque, joint_acceleration = arm.powers(mean, rate)
        floor = arm.model.bus.floor
        energy = (np.maximum(demand, floor) * arm.steps / mean).sum(axis=1)
        kept = (path_speed <= TOLERANCE * self._fastest).all(axis=1)
        kept &= _within(torque, limits.torque)
        kept &= _within(joint_acceleration, limits.acceleration)
        return np.where(kept, energy, np.inf), (arm.steps / mean).sum(axis=1)


def _within(values: Array, limit: Array) -> Mask:
    """Whether values [k, N, n] keep limits [n], for each k."""
    return np.asarray((np.abs(values).max(axis=1) <= TOLERANCE * limit).all(axis=1))


def _progress(move: ProgrammedMove, arm: PathDynamics) -> tuple[Array, Array]:
    """Travel of a move at the ends of the N intervals of its path, and its derivative.

    Returns:
        Travel of the leading joint or the tool [N + 1], rad or m, and its derivative with
        respect to s, the place on the path from 0 to 1 [N + 1].
    """
    if move.line is None:  # straight in joint space: travel is proportional to the path
        return move.distance * arm.s, np.full(len(arm.s), move.distance)
    motion = move.motion(move.speed, move.acceleration)
    time = np.linspace(0.0, motion.duration, PROGRESS_SAMPLES)
    q, _, _ = motion.sample(time)
    travel, _, _ = Trapezoid(move.distance, move.speed, move.acceleration).sample(time)
    way = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(q, axis=0), axis=1))])
    further = np.concatenate([[True], np.diff(way) > 0.0])
    along = PchipInterpolator(way[further] / way[-1], travel[further])
    return np.clip(along(arm.s), 0.0, move.distance), np.asarray(along(arm.s, 1))
