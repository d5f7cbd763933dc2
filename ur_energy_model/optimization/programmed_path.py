"""How the path of a move can be programmed: moveJ, moveL or neither."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.optimization.cycle import Kind
from ur_energy_model.simulation.arm.tool import pose_vector
from ur_energy_model.simulation.control.kinematics import ArmKinematics, matrix_of
from ur_energy_model.simulation.control.program import ScriptError
from ur_energy_model.simulation.control.straight_line import LinePlanner, StraightLine
from ur_energy_model.trajectory.motions import Motion, move
from ur_energy_model.typing import Array

JOINT_TOLERANCE = 1e-3
"""Largest distance of a joint from the straight line of a moveJ [rad]."""
TOOL_TOLERANCE, TURN_TOLERANCE = 5e-4, 2e-3
"""Largest distance and angle of the tool from the straight line of a moveL [m, rad]."""
SHORTEST = 1e-6
"""Travel below which nothing moves [rad], or only the orientation of the tool [m]."""
_CHECKED = 300
"""Points of a path that are compared with a straight line."""


@dataclass(frozen=True)
class ProgrammedPath:
    """The path of a moveJ or moveL, which has a speed and an acceleration.

    Attributes:
        kind: "moveJ" or "moveL".
        distance: travel of the leading joint [rad]; of the tool for moveL [m], or its angle [rad]
            if it only turns.
        progress: travelled distance at the recorded samples [k], the unit of `distance`.
        start, end: joint positions [n], rad.
        line: the path of a moveL in joint space; None for moveJ.
    """

    kind: Kind
    distance: float
    progress: Array
    start: Array
    end: Array
    line: StraightLine | None = None

    def motion(self, speed: float, acceleration: float) -> Motion:
        """The move as a controller runs it.

        Args:
            speed: of the leading joint [rad/s], or of the tool [m/s].
            acceleration: the same, per s.
        """
        if self.line is None:
            return move(self.start, self.end, speed, acceleration)
        return self.line.with_profile(speed, acceleration)


def programmed_path(
    q: Array, robot: RobotDescription, tool: Array | None = None
) -> ProgrammedPath | None:
    """The moveJ or moveL that has a recorded path; None if it is neither.

    A line that is straight in joint space counts as moveJ, even if the tool moves straight too.

    Args:
        q: target positions of the move [k, n], rad.
        robot: the arm; its nominal kinematics are used.
        tool: tool centre point in the flange frame [6]; the flange where None. It matters only
            where the tool turns on its way.
    """
    joints = _along_joints(q)
    if joints is not None:
        return ProgrammedPath("moveJ", float(joints[-1]), joints, q[0], q[-1])
    kinematics = ArmKinematics(robot)
    tool = np.zeros(6) if tool is None else tool
    progress = _along_tool(q, kinematics, tool)
    if progress is None:
        return None
    line = _solved_line(q, kinematics, tool, robot.max_velocity)
    if line is None:
        return None
    return ProgrammedPath("moveL", float(progress[-1]), progress, q[0], q[-1], line)


def _along_joints(q: Array) -> Array | None:
    """Travel of the leading joint [k], rad; None if the path is not straight in joint space."""
    step = q[-1] - q[0]
    leading = int(np.abs(step).argmax())
    if abs(step[leading]) < SHORTEST:
        return None
    share = (q[:, leading] - q[0, leading]) / step[leading]
    if np.abs(q - q[0] - share[:, None] * step).max() > JOINT_TOLERANCE:
        return None
    return np.asarray(_monotone(share) * abs(step[leading]))


def _along_tool(q: Array, kinematics: ArmKinematics, tool: Array) -> Array | None:
    """Travel of the tool [k], m (rad if it only turns); None if it does not move straight."""
    poses = np.array([matrix_of(kinematics.forward(each, tool)) for each in _thinned(q)])
    first, last = poses[0], poses[-1]
    shift = last[:3, 3] - first[:3, 3]
    turn = pin.log3(first[:3, :3].T @ last[:3, :3])
    length, angle = float(np.linalg.norm(shift)), float(np.linalg.norm(turn))
    turned = np.array([pin.log3(first[:3, :3].T @ pose[:3, :3]) for pose in poses])
    moved = poses[:, :3, 3] - first[:3, 3]
    if length > SHORTEST:
        share = moved @ shift / length**2
    elif angle > SHORTEST:
        share = turned @ turn / angle**2
    else:
        return None
    if np.linalg.norm(moved - share[:, None] * shift, axis=1).max() > TOOL_TOLERANCE:
        return None
    if np.linalg.norm(turned - share[:, None] * turn, axis=1).max() > TURN_TOLERANCE:
        return None
    distance = length if length > SHORTEST else angle
    places = np.linspace(0, len(q) - 1, len(share))
    return np.interp(np.arange(len(q)), places, _monotone(share)) * distance


def _solved_line(
    q: Array, kinematics: ArmKinematics, tool: Array, max_speed: Array
) -> StraightLine | None:
    """The straight line from first to last position, solved from the first one."""
    goal = pose_vector(matrix_of(kinematics.forward(q[-1], tool)))
    planner = LinePlanner(kinematics, q[0], goal, tool, 1.0, 1.0, max_speed)
    try:
        while (line := planner.advance()) is None:
            pass
    except ScriptError:
        return None
    return line


def _thinned(q: Array) -> Array:
    """At most `_CHECKED` of the positions, both ends included."""
    if len(q) <= _CHECKED:
        return q
    return np.asarray(q[np.round(np.linspace(0, len(q) - 1, _CHECKED)).astype(int)])


def _monotone(share: Array) -> Array:
    """Progress from 0 to 1 that never decreases."""
    return np.asarray(np.maximum.accumulate(np.clip(share, 0.0, 1.0)))
