# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The front of energy against peak power: cycles of equal duration, none better in both.

Peak power is a property of a time base. Two are stated, both of the power of the whole arm
at the supply, predicted over one cycle of a program that repeats:

    peak power         largest power of a sample, SAMPLE_PERIOD apart, as `predict` states it
    window peak power  largest mean over any PEAK_WINDOW of the cycle

The front is found by the epsilon-constraint method (Haimes, Lasdon and Wismer, On a
bicriterion formulation, IEEE T-SMC 1971): for a row of limits of power, the least energy of
the cycle along the same paths, in the same time, within the same limits of the joints. The
limit of power is a further barrier in the search for a time law (`least_energy`), so that
each point is as good a minimum as the one without a limit. The lowest limit is the one
with which the cycle can just be run in its time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from ur_energy_model.energy.meter import CONFIDENCE
from ur_energy_model.errors import InputError
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.optimization.cycle import Stretch, StretchEnergy, total_energy
from ur_energy_model.optimization.cycle_problem import (
    Allocator,
    CycleProblem,
    switched_off,
)
from ur_energy_model.trajectory.plan import SAMPLE_PERIOD
from ur_energy_model.typing import Array

PEAK_WINDOW = 0.1
"""Time over which power is averaged for the window peak power [s]: some cycles of a power supply's
control, and short beside a move, so that the measured power's noise hardly raises it."""
PEAK_ERROR = 0.14
"""Relative error of the predicted window peak power above standby (RMS), by the same arm's model.
In stretches of 2 s it was 0.13 (a UR5e on another day than that of its model) and 0.14 (a UR3e in
the recording of its model)."""
CLOSE = 0.005
"""Share of the range of peaks to which the lowest possible limit of power is found."""
BOUNDING = 0.98
"""Share of the lowest peak of a front above which the peak of moves that stay as recorded bounds
it."""
SAME_PEAK = 1e-3
"""Relative difference of peaks below which a point has no lower peak than another one."""


@dataclass(frozen=True)
class Peak:
    """Energy and peak power of a cycle as it is predicted, whole arm at the supply.

    Attributes:
        energy: energy of a cycle [J].
        peak_power: largest power of a sample [W].
        window_peak_power: largest mean power over `PEAK_WINDOW` [W].
        window_peak_power_interval: 95 % interval of `window_peak_power` (low, high), W.
    """

    energy: float
    peak_power: float
    window_peak_power: float
    window_peak_power_interval: tuple[float, float]


@dataclass(frozen=True)
class MeasuredPeak:
    """Energies and window peak powers that were measured at the bus, recorded and new in turns.

    Attributes:
        energy: mean energy of a recorded cycle [J].
        new_energy: mean energy of a cycle of the point [J].
        saving_percent: saving of the point, percent of `energy`.
        saving_percent_interval: 95 % interval of the saving (low, high), percent.
        window_peak_power: largest window peak power of the recorded cycles [W].
        new_window_peak_power: largest window peak power of the point's cycles [W].
        cycles: number of cycles of each kind.
    """

    energy: float
    new_energy: float
    saving_percent: float
    saving_percent_interval: tuple[float, float]
    window_peak_power: float
    new_window_peak_power: float
    cycles: int


@dataclass(frozen=True)
class FrontPoint:
    """One cycle of the front, as set points.

    Attributes:
        stretches: the cycle.
        predicted: its energy and peak powers.
        measured: what a run on the arm showed; None unless it was run.
    """

    stretches: Sequence[Stretch]
    predicted: Peak
    measured: MeasuredPeak | None = None


@dataclass(frozen=True)
class PowerFront:
    """The front of a cycle, all points of which have the same duration and the same paths.

    Attributes:
        recorded: energy and peak powers of the recorded cycle.
        points: from the least energy to the least peak power, at least one.
        kept_peak: largest peak power of the moves that stay as recorded [W]; 0 without any.
    """

    recorded: Peak
    points: tuple[FrontPoint, ...]
    kept_peak: float = 0.0

    def point(self, number: int) -> FrontPoint:
        """A point by its number, from 1.

        Raises:
            InputError: there is no such point.
        """
        if not 1 <= number <= len(self.points):
            problem = f"there is no point {number} in the front"
            remedy = f"give a number from 1 to {len(self.points)}"
            raise InputError("--front-point", problem, remedy)
        return self.points[number - 1]

    def with_measured(self, number: int, measured: MeasuredPeak) -> PowerFront:
        """The front with what a run of the point of this number showed."""
        points = list(self.points)
        points[number - 1] = replace(self.point(number), measured=measured)
        return replace(self, points=tuple(points))

    def saving_percent(self, predicted: Peak) -> float:
        """Predicted saving of a cycle, percent of the recorded cycle's energy."""
        return 100.0 * (1.0 - predicted.energy / self.recorded.energy)

    def as_json(self) -> dict[str, Any]:
        """`power_front` of `ur_energy optimize --pareto --json`."""
        points = []
        for number, point in enumerate(self.points, 1):
            values = {
                "point": number,
                **asdict(point.predicted),
                "saving_percent": self.saving_percent(point.predicted),
                "measured": point.measured,
            }
            points.append(values)
        return {
            "sample_period": SAMPLE_PERIOD,
            "window": PEAK_WINDOW,
            "recorded": self.recorded,
            "points": points,
        }

    def notes(self) -> list[str]:
        """What bounds the front: moves that stay as recorded, or the cycle time."""
        lowest = self.points[-1].predicted.peak_power
        if self.kept_peak > BOUNDING * lowest:
            return [
                f"Moves that stay as recorded take up to {self.kept_peak:.0f} W: no point of "
                "the front is below (--no-keep-slow frees slow moves)."
            ]
        if len(self.points) == 1:
            return [
                "The front of energy against peak power is one point: at this cycle time no "
                "lower peak is possible than that of the least energy."
            ]
        return []


def window_means(time: Array, power: Array, window: float) -> Array:
    """Mean power over a window from each sample on, as far as the samples reach.

    Power runs straight between the samples.

    Args:
        time: times of the samples, ascending [k], s.
        power: power [k], W.
        window: length of the window [s].

    Returns:
        Means of the windows that begin with the first samples [m], W; one mean over all
        samples where they are shorter than the window.
    """
    steps = np.diff(time)
    energy = np.concatenate([[0.0], np.cumsum(0.5 * (power[1:] + power[:-1]) * steps)])
    starts = np.flatnonzero(time <= time[-1] - window)
    if len(starts) == 0:
        return np.asarray(energy[-1:] / (time[-1] - time[0]))
    ends = time[starts] + window
    before = np.searchsorted(time, ends, side="right") - 1
    since = ends - time[before]
    at_end = np.interp(ends, time, power)
    until = energy[before] + 0.5 * (power[before] + at_end) * since
    return np.asarray((until - energy[starts]) / window)


def peak_of(model: EnergyModel, parts: Sequence[StretchEnergy]) -> Peak:
    """Energy and peak powers of a cycle that repeats.

    Args:
        model: model of the arm in the session of the recording.
        parts: energies of the stretches of the cycle, in order.
    """
    time = np.concatenate([part.time for part in parts])
    power = np.concatenate([part.power for part in parts])
    # The window may reach into the next cycle.
    again = time <= time[0] + PEAK_WINDOW
    time = np.concatenate([time, time[-1] + time[again]])
    power = np.concatenate([power, power[again]])
    window_peak = float(window_means(time, power, PEAK_WINDOW).max())
    of_motion = PEAK_ERROR * max(window_peak - model.bus.standby, 0.0)
    deviation = CONFIDENCE * math.hypot(of_motion, model.bus.std.get("standby", 0.0))
    return Peak(
        energy=total_energy(parts),
        peak_power=max(part.peak_power for part in parts),
        window_peak_power=window_peak,
        window_peak_power_interval=(window_peak - deviation, window_peak + deviation),
    )


def power_front(
    problem: CycleProblem,
    least_energy: Sequence[StretchEnergy],
    duration: float,
    count: int,
) -> PowerFront:
    """The front of energy against peak power of a cycle.

    Args:
        problem: the recorded cycle.
        least_energy: energies of the stretches of the cycle of least energy.
        duration: duration of all cycles of the front [s].
        count: number of points, 2 or more; the front has fewer where limits next to each
            other lead to the same cycle.
    """
    model = problem.model
    cycles = [list(least_energy)]
    highest = peak_of(model, least_energy).peak_power
    kept_peak = _kept_peak(problem)
    lowest = _lowest_limit(problem, duration, highest, kept_peak)
    if lowest < highest:
        # The lowest first: its laws keep all higher limits, so that the search for the
        # next limit starts from them.
        known: Allocator | None = None
        for limit in np.linspace(lowest, highest, count)[:-1].tolist():
            known = problem.allocator_below(limit, known)
            found = known.allocate(duration - problem.kept)
            parts, _ = switched_off(problem, problem.run(found.laws, found.waiting))
            cycles.append(parts)
    points = []
    for parts in cycles:
        stretches = [part.stretch for part in parts]
        points.append(FrontPoint(stretches, peak_of(model, parts)))
    recorded = peak_of(model, problem.recorded)
    return PowerFront(recorded, _not_dominated(points), kept_peak)


def _kept_peak(problem: CycleProblem) -> float:
    """Largest peak power of the moves that stay as recorded [W]; 0 without any."""
    recorded = [part for part in problem.recorded if part.stretch.moving]
    largest = 0.0
    for move, part in zip(problem.cycle.moves, recorded, strict=True):
        if move.kept:
            largest = max(largest, part.peak_power)
    return largest


def _not_dominated(points: Sequence[FrontPoint]) -> tuple[FrontPoint, ...]:
    """The points that no other one beats in energy and peak power, by ascending energy."""
    kept: list[FrontPoint] = []
    for point in sorted(points, key=lambda each: each.predicted.energy):
        below = math.inf
        if kept:
            below = (1.0 - SAME_PEAK) * kept[-1].predicted.peak_power
        if point.predicted.peak_power < below:
            kept.append(point)
    return tuple(kept)


def _lowest_limit(
    problem: CycleProblem, duration: float, highest: float, kept_peak: float
) -> float:
    """The lowest limit of power with which a cycle can be run in a duration [s].

    The time that the fastest cycle takes falls with the limit, which is bisected.

    Args:
        problem: the recorded cycle.
        duration: duration of the cycle [s].
        highest: peak power of the cycle of least energy [W].
        kept_peak: largest peak power of the moves that stay as recorded [W].

    Returns:
        The limit [W]; `highest` where no lower one is possible, as where nothing may
        change.
    """
    impossible = max(*problem.holding, kept_peak)
    possible = highest
    close = CLOSE * (highest - impossible)
    while possible - impossible > close:
        middle = 0.5 * (possible + impossible)
        if _shortest_below(problem, middle) <= duration:
            possible = middle
        else:
            impossible = middle
    return possible


def _shortest_below(problem: CycleProblem, power: float) -> float:
    """Duration of the fastest cycle below a power [W], s; infinite where there is none."""
    try:
        return problem.allocator_below(power).shortest + problem.kept
    except InputError:
        return math.inf
