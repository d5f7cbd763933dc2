"""Moves as a program has them: straight in joint space or at the tool, with trapezoids of speed."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import pinocchio as pin
from scipy.optimize import least_squares, minimize_scalar

from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.simulation.kinematics import (
    ArmKinematics,
    LinePlanner,
    ScriptError,
    StraightLine,
    matrix_of,
    pose_vector,
)
from ur_energy_model.trajectory import motions
from ur_energy_model.trajectory.motions import Motion, Trapezoid
from ur_energy_model.typing import Array

JOINT_TOLERANCE = 1e-3  # largest distance of a joint from the straight line of a moveJ [rad]
TOOL_TOLERANCE, TURN_TOLERANCE = 5e-4, 2e-3
"""Largest distance and angle of the tool from the straight line of a moveL [m, rad]."""
SHORTEST = 1e-6
"""Travel below which nothing moves [rad], or only the orientation of the tool [m]."""
_CHECKED = 300  # points of a path that are compared with a straight line


@dataclass(frozen=True)
class ProgrammedMove:
    """A moveJ or moveL, and the speed and acceleration that it was run with.

    Speeds are those of the leading joint [rad/s], of the tool for moveL [m/s], or its rate of turn
    [rad/s] if it only turns; accelerations and distance in the same unit.
    """

    kind: Literal["moveJ", "moveL"]
    distance: float
    speed: float  # as recorded
    acceleration: float  # as recorded
    start: Array  # joint positions [n], rad
    end: Array  # joint positions [n], rad
    line: StraightLine | None = None  # the path of a moveL in joint space; None for moveJ

    def motion(self, speed: float, acceleration: float) -> Motion:
        """The move with another speed and acceleration."""
        if self.line is None:
            return motions.move(self.start, self.end, speed, acceleration)
        return self.line.with_profile(speed, acceleration)


def programmed_move(
    time: Array, q: Array, robot: RobotDescription, tool: Array | None = None
) -> ProgrammedMove | None:
    """The moveJ or moveL that a recorded move is; None if it is neither.

    A line that is straight in joint space counts as moveJ, even if the tool moves straight too.
    Times are those since the start of the move [k], s, with target positions [k, n], rad; nominal
    kinematics are used. The tool centre point [6], in the flange frame (the flange where None),
    matters only where the tool turns on its way.
    """
    step = q[-1] - q[0]
    leading = int(np.abs(step).argmax())
    distance = float(abs(step[leading]))
    if distance >= SHORTEST:
        share = (q[:, leading] - q[0, leading]) / step[leading]
        if np.abs(q - q[0] - share[:, None] * step).max() <= JOINT_TOLERANCE:
            fitted = fit_trapezoid(time, _monotone(share) * distance)
            return ProgrammedMove("moveJ", *fitted, q[0], q[-1])
    kinematics = ArmKinematics(robot)
    tool = np.zeros(6) if tool is None else tool
    some = np.round(np.linspace(0, len(q) - 1, min(len(q), _CHECKED))).astype(int)
    poses = np.array([matrix_of(kinematics.forward(each, tool)) for each in q[some]])
    first, last = poses[0], poses[-1]
    moved = poses[:, :3, 3] - first[:3, 3]
    turned = np.array([pin.log3(first[:3, :3].T @ pose[:3, :3]) for pose in poses])
    shift, turn = last[:3, 3] - first[:3, 3], pin.log3(first[:3, :3].T @ last[:3, :3])
    length, angle = float(np.linalg.norm(shift)), float(np.linalg.norm(turn))
    if length > SHORTEST:
        distance, share = length, moved @ shift / length**2
    elif angle > SHORTEST:
        distance, share = angle, turned @ turn / angle**2
    else:
        return None
    off = np.linalg.norm(moved - share[:, None] * shift, axis=1).max()
    twisted = np.linalg.norm(turned - share[:, None] * turn, axis=1).max()
    if off > TOOL_TOLERANCE or twisted > TURN_TOLERANCE:
        return None
    goal = pose_vector(matrix_of(kinematics.forward(q[-1], tool)))
    planner = LinePlanner(kinematics, q[0], goal, tool, 1.0, 1.0, robot.max_velocity)
    try:
        while (line := planner.advance()) is None:
            pass
    except ScriptError:  # the line leaves the arm's reach
        return None
    places = np.linspace(0, len(q) - 1, len(share))
    progress = np.interp(np.arange(len(q)), places, _monotone(share)) * distance
    return ProgrammedMove("moveL", *fit_trapezoid(time, progress), q[0], q[-1], line)


def _monotone(share: Array) -> Array:
    """Progress from 0 to 1 that never decreases."""
    return np.asarray(np.maximum.accumulate(np.clip(share, 0.0, 1.0)))


def fit_trapezoid(time: Array, progress: Array) -> tuple[float, float, float]:
    """Distance, peak speed and acceleration of the trapezoid nearest to a recorded move.

    In the mean square of the travelled distance, at times since the start of the move [k], s, from
    0 to the whole one [k].
    """
    distance, duration = float(progress[-1]), float(time[-1])
    slowest = distance / duration

    def profile(parameters: Array) -> Trapezoid:
        speed, share, _ = parameters
        ramp = share * distance / speed  # the ramp's longest, in a triangle, is distance / speed
        return Trapezoid(distance, speed, speed / ramp)

    def errors(parameters: Array) -> Array:
        return np.asarray(profile(parameters).sample(time - parameters[2])[0] - progress)

    fastest = float(np.gradient(progress, time).max())
    first = np.clip(fastest, 1.001 * slowest, 2.0 * slowest)
    ramp = duration - distance / first
    tick = duration / (len(time) - 1)
    found = least_squares(
        errors,
        [first, np.clip(ramp * first / distance, 0.02, 0.99), 0.0],
        bounds=(
            [0.5 * slowest, 0.01, -2.0 * tick],
            [4.0 * slowest, 1.0, 0.1 * duration + 2.0 * tick],
        ),
        x_scale=[slowest, 1.0, tick],
    )
    fitted = profile(found.x)
    return distance, float(fitted.peak), float(fitted.acceleration)


SPEEDS = 10  # speeds that are tried before the search between the best one's neighbours
TYPED_DIGITS = 3
"""Significant digits of a typed speed or acceleration, in the units of the pendant."""
GENTLENESS = 0.05
"""Share of a move's energy that an acceleration of twice the usual one must save: it is felt by
tool and part."""


class TypedMove(NamedTuple):
    """Speed and acceleration of a move as typed, round numbers on the pendant, in SI."""

    speed: float
    acceleration: float
    duration: float  # of the move with them [s]
    energy: float  # until the end of the slot, with the price of an unusual acceleration [J]


def best_trapezoid(
    move: ProgrammedMove,
    slot: float,
    cost: Callable[[Motion], float],
    units: tuple[float, float],
    max_speedup: float = math.inf,
) -> TypedMove | None:
    """The speed and acceleration to type that fill a slot [s] with the least energy.

    Both are rounded up to numbers that a person types, so that the move is never longer than its
    slot. None if no trapezoid in this slot keeps the limits.

    The cost is the energy of a motion that lasts the slot at most, with the rest after it [J],
    infinite if it exceeds a limit; the units are those of typed speeds and accelerations in SI.
    """
    slowest = move.distance / slot
    recorded = (move.speed, move.acceleration)
    most = [
        (1.0 + 1e-9) * (max_speedup * as_typed(value, unit) * unit)
        for value, unit in zip(recorded, units, strict=True)
    ]
    tried: list[TypedMove] = []

    def energy(ratio: float) -> float:
        speed = ratio * slowest
        ramp = slot - move.distance / speed
        values = rounded_up(speed, units[0]), rounded_up(speed / ramp, units[1])
        found = TypedMove(*values, slot, math.inf)
        if values[0] <= most[0] and values[1] <= most[1]:
            motion = move.motion(*values)
            if motion.duration <= slot * (1.0 + 1e-9):
                price = 1.0 + GENTLENESS * max(values[1] / move.acceleration - 1.0, 0.0)
                found = TypedMove(*values, motion.duration, price * cost(motion))
        tried.append(found)
        return found.energy if math.isfinite(found.energy) else 1e12

    ratios = np.linspace(1.05, 2.0, SPEEDS)
    best = int(np.argmin([energy(ratio) for ratio in ratios.tolist()]))
    if not math.isfinite(tried[best].energy):
        return None
    around = ratios[max(best - 1, 0)], ratios[min(best + 1, SPEEDS - 1)]
    minimize_scalar(energy, bounds=around, method="bounded", options={"maxiter": 8})
    return min(tried, key=lambda each: each.energy)


def pendant_unit(kind: str) -> float:
    """The pendant's unit of speed in SI: degrees for moveJ, mm for moveL."""
    return math.pi / 180.0 if kind == "moveJ" else 1e-3


def rounded_up(value: float, unit: float) -> float:
    """The next larger number of `TYPED_DIGITS` significant digits in a unit."""
    there = value / unit
    step = 10.0 ** (math.floor(math.log10(there)) + 1 - TYPED_DIGITS)
    return math.ceil(there / step - 1e-6) * step * unit


def as_typed(value: float, unit: float) -> float:
    """A number in a unit, with the digits that a person types."""
    return float(f"{value / unit:.{TYPED_DIGITS}g}")
