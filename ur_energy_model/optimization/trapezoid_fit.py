"""What to type for a move: the trapezoidal speed profile of a moveJ or moveL.

A controller accelerates a move evenly to its speed and brakes it evenly. For a given distance and
duration, the speed alone determines such a profile: its acceleration follows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import least_squares, minimize_scalar

from ur_energy_model.optimization.programmed_path import ProgrammedPath
from ur_energy_model.trajectory.motions import Motion
from ur_energy_model.trajectory.profiles import Trapezoid
from ur_energy_model.typing import Array

SPEEDS = 10
"""Speeds that are tried before the search between the best one's neighbours."""
TYPED_DIGITS = 3
"""Significant digits of a typed speed or acceleration, in the units of the pendant."""

WORTH = 0.05
"""Share of a move's energy that an acceleration of twice the usual one must save: it is felt by
tool and part."""

Cost = Callable[[Motion], float]
"""Energy of a motion [J]; infinite if it exceeds a limit."""


@dataclass(frozen=True)
class TypedMove:
    """Speed and acceleration of a move, as typed on the pendant.

    Attributes:
        speed: of the leading joint [rad/s], or of the tool [m/s]; a round number on the pendant.
        acceleration: the same, per s.
        duration: of the move with them [s].
        energy: of the move with them and the rest until the end of its slot, with the price of an
            unusual acceleration [J].
    """

    speed: float
    acceleration: float
    duration: float
    energy: float


def fit_trapezoid(time: Array, progress: Array) -> Trapezoid:
    """The trapezoid nearest to a recorded move, in the mean square of the travelled distance.

    Args:
        time: of the samples since the start of the move [k], s; increasing.
        progress: travelled distance, from 0 to the whole one [k].
    """
    distance, duration = float(progress[-1]), float(time[-1])
    slowest = distance / duration

    def profile(parameters: Array) -> tuple[Trapezoid, float]:
        speed, share, shift = parameters
        ramp = share * distance / speed  # the ramp's longest, in a triangle, is distance / speed
        return Trapezoid(distance, speed, speed / ramp), shift

    def errors(parameters: Array) -> Array:
        trapezoid, shift = profile(parameters)
        return np.asarray(trapezoid.sample(time - shift)[0] - progress)

    fastest = float(np.gradient(progress, time).max())
    first = np.clip(fastest, 1.001 * slowest, 2.0 * slowest)
    ramp = duration - distance / first
    guess = [first, np.clip(ramp * first / distance, 0.02, 0.99), 0.0]
    tick = duration / (len(time) - 1)
    found = least_squares(
        errors,
        guess,
        bounds=(
            [0.5 * slowest, 0.01, -2.0 * tick],
            [4.0 * slowest, 1.0, 0.1 * duration + 2.0 * tick],
        ),
        x_scale=[slowest, 1.0, tick],
    )
    return profile(found.x)[0]


def best_trapezoid(
    path: ProgrammedPath,
    slot: float,
    cost: Cost,
    units: tuple[float, float] | None = None,
    most: tuple[float, float] = (math.inf, math.inf),
    usual: float = math.inf,
) -> TypedMove | None:
    """The speed and acceleration to type that fill a slot with the least energy.

    Both are rounded up to numbers that a person types, so that the move is never longer than its
    slot.

    Args:
        path: of the move.
        slot: time for the move [s].
        cost: energy of a motion that lasts the slot at most, with the rest after it [J].
        units: of typed speeds and accelerations in SI; those of the pendant where None.
        most: largest speed and acceleration.
        usual: acceleration beyond which a profile must save `WORTH` to be chosen.

    Returns:
        None if no trapezoid in this slot keeps the limits.
    """
    slowest = path.distance / slot
    unit = pendant_unit(path.kind)
    units = (unit, unit) if units is None else units

    def typed(ratio: float) -> TypedMove:
        speed = ratio * slowest
        ramp = slot - path.distance / speed
        values = (
            rounded_up(speed, units[0]),
            rounded_up(speed / ramp, units[1]),
        )
        if values[0] > (1.0 + 1e-9) * most[0] or values[1] > (1.0 + 1e-9) * most[1]:
            return TypedMove(*values, slot, math.inf)
        motion = path.motion(*values)
        if motion.duration > slot * (1.0 + 1e-9):
            return TypedMove(*values, motion.duration, math.inf)
        price = 1.0 + WORTH * max(values[1] / usual - 1.0, 0.0)
        return TypedMove(*values, motion.duration, price * cost(motion))

    ratios = np.linspace(1.05, 2.0, SPEEDS)
    tried = [typed(ratio) for ratio in ratios]
    best = int(np.argmin([move.energy for move in tried]))
    if not math.isfinite(tried[best].energy):
        return None
    around = ratios[max(best - 1, 0)], ratios[min(best + 1, SPEEDS - 1)]

    def energy(ratio: float) -> float:
        tried.append(typed(float(ratio)))
        return tried[-1].energy if math.isfinite(tried[-1].energy) else 1e12

    minimize_scalar(energy, bounds=around, method="bounded", options={"maxiter": 8})
    return min(tried, key=lambda move: move.energy)


def pendant_unit(kind: str) -> float:
    """The pendant's unit of speed in SI: degrees for moveJ, mm for moveL."""
    return math.pi / 180.0 if kind == "moveJ" else 1e-3


def rounded_up(value: float, unit: float) -> float:
    """The next larger number of `TYPED_DIGITS` significant digits in a unit."""
    there = value / unit
    step = 10.0 ** (math.floor(math.log10(there)) + 1 - TYPED_DIGITS)
    return math.ceil(there / step - 1e-6) * step * unit
