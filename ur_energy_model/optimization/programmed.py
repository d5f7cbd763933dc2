# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Moves as a program has them: straight in joint space or at the tool, with trapezoids of speed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import pinocchio as pin
from scipy.optimize import least_squares

from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.trajectory import motions
from ur_energy_model.trajectory.kinematics import (
    ArmKinematics,
    LinePlanner,
    ScriptError,
    StraightLine,
    matrix_of,
    pose_vector,
)
from ur_energy_model.trajectory.motions import Motion, Trapezoid
from ur_energy_model.typing import Array

JOINT_TOLERANCE = 1e-3
"""Largest distance of a joint from the straight line of a moveJ [rad]."""
TOOL_TOLERANCE = 5e-4
TURN_TOLERANCE = 2e-3
"""Largest distance and angle of the tool from the straight line of a moveL [m, rad]."""
EXACT = 1e-6
"""Largest distance of the target positions of a moveJ from the straight line in joint space,
which is due to rounding [rad]."""
LEVER = 0.5
"""Length by which a distance of the tool is compared with an angle of a joint [m]."""
SHORTEST = 1e-6
"""Travel below which nothing moves [rad], or only the orientation of the tool [m]."""
_CHECKED = 300  # points of a path that are compared with a straight line


@dataclass(frozen=True)
class ProgrammedMove:
    """A moveJ or moveL, and the speed and acceleration that it was run with.

    For moveJ, speeds are speeds of the leading joint [rad/s]; for moveL, speeds of the
    tool [m/s], or its rate of turn [rad/s] if it only turns. Accelerations and distance
    are in the same unit.

    Attributes:
        kind: instruction of the program.
        distance: distance of the leading joint or of the tool.
        speed: recorded speed.
        acceleration: recorded acceleration.
        start: joint positions [n], rad.
        end: joint positions [n], rad.
        line: the path of a moveL in joint space; None for moveJ.
    """

    kind: Literal["moveJ", "moveL"]
    distance: float
    speed: float
    acceleration: float
    start: Array
    end: Array
    line: StraightLine | None = None

    def motion(self, speed: float, acceleration: float) -> Motion:
        """The move with another speed and acceleration."""
        if self.line is None:
            return motions.move(self.start, self.end, speed, acceleration)
        return self.line.with_profile(speed, acceleration)


def programmed_move(
    time: Array, q: Array, robot: RobotDescription, tool: Array | None = None
) -> ProgrammedMove | None:
    """The moveJ or moveL that a recorded move is.

    A short line of the tool is nearly straight in joint space, too: the move is then the
    instruction from whose line it deviates less. A move that is exactly straight in joint
    space, such as a turn of one joint, is a moveJ. Nominal kinematics are used.

    Args:
        time: time since the start of the move [k], s.
        q: target positions [k, n], rad.
        robot: type of the arm.
        tool: tool centre point in the flange frame [6], m and rad; None for the flange. It
            matters only where the tool turns on its way.

    Returns:
        The instruction; None if the move is neither.
    """
    step = q[-1] - q[0]
    leading = int(np.abs(step).argmax())
    distance = float(abs(step[leading]))
    off = np.inf  # largest distance of a joint from the straight line [rad]
    share = np.zeros(len(q))  # travelled share of the distance
    if distance >= SHORTEST:
        share = (q[:, leading] - q[0, leading]) / step[leading]
        off = float(np.abs(q - q[0] - share[:, None] * step).max())
    line = None
    if off > EXACT:
        flange = np.zeros(6)
        line = _tool_line(q, robot, flange if tool is None else tool)
    if off <= JOINT_TOLERANCE and (line is None or off <= line.off):
        fitted = fit_trapezoid(time, _monotone(share) * distance)
        return ProgrammedMove("moveJ", *fitted, q[0], q[-1])
    if line is None:
        return None
    fitted = fit_trapezoid(time, line.progress)
    return ProgrammedMove("moveL", *fitted, q[0], q[-1], line.path)


class _ToolLine(NamedTuple):
    """A recorded move whose tool moves straight.

    Attributes:
        progress: travel of the tool at each sample [k], m (rad if it only turns).
        path: path of the arm along the line, in joint space.
        off: largest distance from the line, as an angle of a joint [rad].
    """

    progress: Array
    path: StraightLine
    off: float


def _tool_line(q: Array, robot: RobotDescription, tool: Array) -> _ToolLine | None:
    """The straight line of the tool along a recorded move.

    Args:
        q: joint positions [k, n], rad.
        robot: type of the arm.
        tool: tool centre point in the flange frame [6], m and rad.

    Returns:
        The line; None if the tool does not move, or not straight.
    """
    kinematics = ArmKinematics(robot)
    checked = np.round(np.linspace(0, len(q) - 1, min(len(q), _CHECKED))).astype(int)
    poses = np.array([matrix_of(kinematics.forward(each, tool)) for each in q[checked]])
    first = poses[0]
    last = poses[-1]
    moved = poses[:, :3, 3] - first[:3, 3]
    turned = np.array([pin.log3(first[:3, :3].T @ pose[:3, :3]) for pose in poses])
    shift = last[:3, 3] - first[:3, 3]
    turn = pin.log3(first[:3, :3].T @ last[:3, :3])
    length = float(np.linalg.norm(shift))
    angle = float(np.linalg.norm(turn))
    if length > SHORTEST:
        distance = length
        share = moved @ shift / length**2
    elif angle > SHORTEST:
        distance = angle
        share = turned @ turn / angle**2
    else:
        return None
    off = float(np.linalg.norm(moved - share[:, None] * shift, axis=1).max())
    twisted = float(np.linalg.norm(turned - share[:, None] * turn, axis=1).max())
    if off > TOOL_TOLERANCE or twisted > TURN_TOLERANCE:
        return None
    goal = pose_vector(matrix_of(kinematics.forward(q[-1], tool)))
    planner = LinePlanner(kinematics, q[0], goal, tool, 1.0, 1.0, robot.max_velocity)
    try:
        while (path := planner.advance()) is None:
            pass
    except ScriptError:  # the line leaves the arm's reach
        return None
    places = np.linspace(0, len(q) - 1, len(share))
    progress = np.interp(np.arange(len(q)), places, _monotone(share)) * distance
    return _ToolLine(progress, path, max(off / LEVER, twisted))


def _monotone(share: Array) -> Array:
    """Progress from 0 to 1 that never decreases."""
    return np.asarray(np.maximum.accumulate(np.clip(share, 0.0, 1.0)))


def fit_trapezoid(time: Array, progress: Array) -> tuple[float, float, float]:
    """The trapezoid of speed nearest to a recorded move, in the mean square of the distance.

    Args:
        time: time since the start of the move [k], s.
        progress: travelled distance, from 0 to the whole one [k].

    Returns:
        Distance, peak speed and acceleration, in the unit of `progress`.
    """
    distance = float(progress[-1])
    duration = float(time[-1])
    slowest = distance / duration

    # Parameters: peak speed, duration of the ramp relative to the longest one, which is that
    # of a triangle, and time at which the move starts [s].
    def profile(parameters: Array) -> Trapezoid:
        """The trapezoid of speed with some parameters."""
        speed, share, _ = parameters
        ramp = share * distance / speed
        return Trapezoid(distance, speed, speed / ramp)

    def errors(parameters: Array) -> Array:
        """Deviations of the travelled distance at the samples [k]."""
        _, _, start = parameters
        travelled, *_ = profile(parameters).sample(time - start)
        return np.asarray(travelled - progress)

    fastest = float(np.gradient(progress, time).max())
    first_speed = np.clip(fastest, 1.001 * slowest, 2.0 * slowest)
    first_ramp = duration - distance / first_speed
    first_share = np.clip(first_ramp * first_speed / distance, 0.02, 0.99)
    tick = duration / (len(time) - 1)
    found = least_squares(
        errors,
        [first_speed, first_share, 0.0],
        bounds=(
            [0.5 * slowest, 0.01, -2.0 * tick],
            [4.0 * slowest, 1.0, 0.1 * duration + 2.0 * tick],
        ),
        x_scale=[slowest, 1.0, tick],
    )
    fitted = profile(found.x)
    return distance, float(fitted.peak), float(fitted.acceleration)


TYPED_DIGITS = 3
"""Significant digits of a typed speed or acceleration, in the units of the pendant."""


def pendant_unit(kind: str) -> float:
    """The pendant's unit of speed in SI: degrees for moveJ, mm for moveL."""
    return math.pi / 180.0 if kind == "moveJ" else 1e-3


def as_typed(value: float, unit: float) -> float:
    """A number in a unit, with the digits that a person types."""
    return float(f"{value / unit:.{TYPED_DIGITS}g}")
