# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Named motions of an arm, and Fourier trajectories from files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path

import numpy as np

from ur_energy_model.errors import InputError
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.geometry import ArmGeometry
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.setup import Setup
from ur_energy_model.trajectory.fourier import load_trajectory
from ur_energy_model.trajectory.motions import (
    Chain,
    Cycloid,
    Hold,
    Motion,
    MoveSegment,
    Sinusoids,
    move,
)
from ur_energy_model.typing import Array

TEST_SPEED = 3.0
"""Speed of the test trajectories A and B [rad/s] (Clochiatti et al. 2024)."""
TEST_ACCELERATION = 6.0  # acceleration of the same trajectories [rad/s^2]
TOOL_SPEED = 1.3
"""Tool speed at which the controller re-plans its moves [m/s] (observed by Clochiatti et al.
2024)."""
TORQUE_SHARE = 0.8  # share of the joints' torque limits that planned moves use
CLEARANCE = 0.02  # least distance of the links from each other and from the table [m]
_POINTS = 6  # number of points of the test trajectories
_APART = 0.5  # least travel of the leading joint between consecutive points [rad]
_CANDIDATES = 2000  # random positions that are tried for a point
_DEAD_ENDS = 20  # dead ends after which the search for points is given up
_RETRIES = 15  # most reductions of speed and acceleration of a move
_SLOWER = 0.9  # factor on the speed of a move in each reduction
_GENTLER = 0.8  # factor on the acceleration of a move in each reduction
_SMALLER = 0.85  # factor on the amplitudes of a motion that is not clear
_LEAST_AMPLITUDE = 0.05  # amplitude below which a motion is not reduced further [rad]
_PATH_POINTS = 40  # number of points of a move that are checked


_PAN = 0
_LIFT = 1
_ELBOW = 2
"""Indices of the first joints of an arm with the kinematics of a UR."""


@dataclass(frozen=True)
class MotionLimits:
    """Limits of planned moves.

    Attributes:
        speed: speeds of the joints [n], rad/s.
        acceleration: accelerations of the joints [n], rad/s^2.
        tool_speed: speed of the flange [m/s].
        torque: torques of the joints [n], N m.
    """

    speed: Array
    acceleration: Array
    tool_speed: float
    torque: Array

    @classmethod
    def for_robot(
        cls,
        robot: RobotDescription,
        speed: float = TEST_SPEED,
        acceleration: float = TEST_ACCELERATION,
    ) -> MotionLimits:
        """The given speed and acceleration, or the arm's own limits where these are lower."""
        return cls(
            speed=np.minimum(speed, robot.max_velocity),
            acceleration=np.minimum(acceleration, robot.max_acceleration),
            tool_speed=TOOL_SPEED,
            torque=TORQUE_SHARE * robot.max_torque,
        )


class Planner:
    """Plans moves of one arm in one setup.

    Args:
        robot: the arm, n joints.
        setup: mounting and payload, for the torques; upright and unloaded by default.
        reflected_inertia: reflected inertia of motors and reducers, joint side [n], kg
            m^2; None for the nominal one. Unknown values count as zero.
        limits: limits of the moves; None for the limits of the test trajectories.
    """

    def __init__(
        self,
        robot: RobotDescription,
        setup: Setup | None = None,
        *,
        reflected_inertia: Array | None = None,
        limits: MotionLimits | None = None,
    ) -> None:
        self.robot = robot
        self.dynamics = ArmDynamics(robot, setup)
        if reflected_inertia is None:
            reflected_inertia = robot.reflected_inertia
        self.inertia = np.nan_to_num(reflected_inertia)
        self.limits = MotionLimits.for_robot(robot) if limits is None else limits

    def move(
        self,
        start: Array,
        end: Array,
        rest: float = 0.0,
        limits: MotionLimits | None = None,
    ) -> MoveSegment:
        """Straight joint-space move with trapezoidal speed within all limits.

        Speed is reduced to the limit of the tool speed, then speed and acceleration
        together to the torque limits, as far as slowing down helps.

        Args:
            start: joint positions at the begin [n], rad.
            end: joint positions at the end [n], rad.
            rest: pause after the move [s].
            limits: limits of this move; None for the limits of the planner.
        """
        limits = self.limits if limits is None else limits
        speed = limits.speed
        acceleration = limits.acceleration
        segment = move(start, end, speed, acceleration, rest)
        if segment.profile.duration == 0.0:
            return segment
        path = straight_line(start, end)
        direction = np.broadcast_to(end - start, path.shape)
        # Longest way of the flange for each unit of the path from 0 to 1 [m].
        flange = self.dynamics.flange_speed(path, direction)
        way = np.linalg.norm(flange, axis=1).max()
        step = np.abs(end - start)
        if way > 0.0:
            speed = np.minimum(speed, step * limits.tool_speed / way + 1e-9)
        for _ in range(_RETRIES + 1):
            segment = move(start, end, np.maximum(speed, 1e-6), acceleration, rest)
            time = np.linspace(0.0, segment.profile.duration, _PATH_POINTS)
            q, qd, qdd = segment.sample(time)
            torque = self.dynamics.inverse_dynamics(q, qd, qdd) + self.inertia * qdd
            if np.all(np.abs(torque).max(axis=0) <= limits.torque):
                break
            speed = _SLOWER * speed
            acceleration = _GENTLER * acceleration
        return segment

    def chain_through(self, points: Array, rest: float = 0.3) -> Chain:
        """Closed chain of moves through points.

        Args:
            points: joint positions [m, n], rad.
            rest: pause at each point [s].
        """
        ends = np.roll(points, -1, axis=0)
        moves = []
        for start, end in zip(points, ends, strict=True):
            moves.append(self.move(start, end, rest))
        return Chain(moves)

    def is_clear(self, q: Array) -> bool:
        """Whether the arm is clear of itself and the table.

        Args:
            q: joint positions [samples, n], rad.
        """
        return float(self._geometry.distances(q).min()) > CLEARANCE

    @cached_property
    def _geometry(self) -> ArmGeometry:
        """Capsules of the arm."""
        return ArmGeometry(self.robot)

    def random_points(self, seed: int, count: int = _POINTS) -> Array:
        """Seeded random joint positions [count, n], rad, whose closed chain of moves is clear.

        Args:
            seed: seed of the random choices.
            count: number of positions.

        Raises:
            InputError: the arm is hardly anywhere clear of itself and the table.
        """
        random = np.random.default_rng(seed)
        centre = self.robot.middle_position.copy()
        width = np.minimum(2.4, 0.6 * self.robot.max_position)
        if is_articulated(self.robot):  # keep the upper arm above the table
            centre[_LIFT] = -np.pi / 2
            width[_LIFT] = 1.1
            width[_ELBOW] = 2.2
        low = centre - width
        high = centre + width
        points = [home_position(self.robot)]
        dead_ends = 0
        while len(points) < count + 1:
            for _ in range(_CANDIDATES):
                candidate = random.uniform(low, high)
                if self._continues(points, candidate, closes=len(points) == count):
                    points.append(candidate)
                    break
            else:
                points = points[:1]  # dead end: start again with the next random numbers
                dead_ends += 1
            if dead_ends > _DEAD_ENDS:
                problem = "is hardly anywhere clear of itself and the table"
                remedy = "check its position limits and its capsules (--geometry FILE)"
                raise InputError(self.robot.name, problem, remedy)
        return np.array(points[1:])

    def _continues(
        self, points: Sequence[Array], candidate: Array, *, closes: bool
    ) -> bool:
        """Whether a candidate can be the next point of a chain.

        It must be far from the last point, and the move to it must be clear. The last
        point of the chain must also have a clear move to the first point.

        Args:
            points: home position, then the points of the chain so far, each [n], rad.
            candidate: joint positions [n], rad.
            closes: whether the candidate is the last point.
        """
        if not np.abs(candidate - points[-1]).max() > _APART:
            return False
        if not self.is_clear(candidate[None]):
            return False
        if len(points) > 1 and not self.is_clear(straight_line(points[-1], candidate)):
            return False
        return not closes or self.is_clear(straight_line(candidate, points[1]))


def straight_line(start: Array, end: Array) -> Array:
    """Joint positions along a straight move [_PATH_POINTS, n], rad."""
    return np.linspace(start, end, _PATH_POINTS)


def is_articulated(robot: RobotDescription) -> bool:
    """Whether an arm has the kinematics of a UR: shoulder, lift, elbow, wrist."""
    return robot.joint_names[1:3] == ("shoulder_lift_joint", "elbow_joint")


def home_position(robot: RobotDescription) -> Array:
    """Home position [n], rad: upper arm up, elbow bent, tool down.

    For other kinematics it is the middle of the joints' ranges, which is often zero.
    """
    if is_articulated(robot):
        return np.array([0.0, -np.pi / 2, np.pi / 2, -np.pi / 2, -np.pi / 2, 0.0])
    return np.array(robot.middle_position)


_SEED_A = 1
_SEED_B = 36
"""Seeds of the random points of trajectories A and B, in which joints of a UR5e reach 2 to 3
rad/s."""


def named_motion(
    name: str | Path,
    robot: RobotDescription,
    setup: Setup | None = None,
    *,
    reflected_inertia: Array | None = None,
) -> Motion:
    """A motion by name, or a Fourier trajectory from its YAML file.

    Args:
        name: one of `MOTIONS`, or a path.
        robot: the arm.
        setup: mounting and payload.
        reflected_inertia: reflected inertia as `Planner` takes it.

    Raises:
        InputError: there is no such motion, or the file is for another arm.
    """
    if str(name) in MOTIONS:
        planner = Planner(robot, setup, reflected_inertia=reflected_inertia)
        return MOTIONS[str(name)](planner)
    path = Path(name)
    if path.suffix not in {".yaml", ".yml"}:
        remedy = f"use {', '.join(MOTIONS)} or a trajectory YAML file"
        raise InputError(str(name), "no such motion", remedy)
    trajectory = load_trajectory(path)
    if trajectory.dof != robot.dof:
        problem = f"moves {trajectory.dof} joints, {robot.name} has {robot.dof}"
        remedy = f"design one for this arm with 'ur_energy excite --robot {robot.name}'"
        raise InputError(path, problem, remedy)
    return trajectory


def _sinusoids(planner: Planner) -> Motion:
    """One minute of sines at 0.05 to 0.2 Hz, amplitudes within speed and acceleration limits."""
    robot = planner.robot
    frequency = np.linspace(0.08, 0.21, robot.dof)
    pace = 2 * np.pi * frequency
    by_speed = 0.4 * planner.limits.speed / pace
    by_acceleration = 0.4 * planner.limits.acceleration / pace**2
    amplitude = np.minimum(0.6, np.minimum(by_speed, by_acceleration))
    while True:
        motion = Sinusoids(home_position(robot), amplitude, frequency, duration=60.0)
        q, _, _ = motion.sample(np.linspace(0.0, 60.0, 600))
        if amplitude.max() < _LEAST_AMPLITUDE or planner.is_clear(q):
            return motion
        amplitude = _SMALLER * amplitude


def pick_and_place(planner: Planner, wrist: float = 0.0, rest: float = 0.5) -> Motion:
    """Three points (home, pick, place) joined by cycloids (Battistini et al.).

    Args:
        planner: planner of the arm.
        wrist: angle by which the joints behind the third one turn as well [rad].
        rest: pause at each point [s].
    """
    home = home_position(planner.robot)
    pick = home.copy()
    place = home.copy()
    pick[_PAN] += 0.5
    place[_PAN] -= 0.7
    for point in (pick, place):
        point[_LIFT] -= 0.35
        point[_ELBOW] += 0.3
        point[_ELBOW + 1 :] += wrist
    segments = []
    for start, end in ((home, pick), (pick, home), (home, place), (place, home)):
        guide = planner.move(start, end)
        # A cycloid over a distance d in a time T has a highest speed of 2 d / T, twice the
        # mean speed, and a highest acceleration of 2 pi d / T^2.
        step = np.abs(end - start).max()
        acceleration = float(planner.limits.acceleration.min())
        shortest = float(np.sqrt(2 * np.pi * step / acceleration))
        duration = max(2.0 * guide.duration, shortest)
        segments.append(MoveSegment(start, end, Cycloid(1.0, duration), rest))
    return Chain(segments)


def _warm_up(planner: Planner) -> Motion:
    """Every joint back and forth at test speed, one by one and then together (Raviola et al.)."""
    home = home_position(planner.robot)
    width = np.minimum(0.9, 0.4 * planner.robot.max_position)
    width[_LIFT] = min(width[_LIFT], 0.5)
    segments = []
    for stroke in (*np.diag(width), width):
        while np.abs(stroke).max() > _LEAST_AMPLITUDE:
            if planner.is_clear(straight_line(home - stroke, home + stroke)):
                break
            stroke = _SMALLER * stroke
        points = (home, home + stroke, home - stroke, home)
        segments += [planner.move(start, end) for start, end in pairwise(points)]
    return Chain(segments)


MOTIONS: dict[str, Callable[[Planner], Motion]] = {
    "trajectory_a": lambda planner: planner.chain_through(planner.random_points(_SEED_A)),
    "trajectory_b": lambda planner: planner.chain_through(planner.random_points(_SEED_B)),
    "hold": lambda planner: Hold(home_position(planner.robot)),
    "sinusoids": _sinusoids,
    "pick_and_place": pick_and_place,
    "warm_up": _warm_up,
}
"""Motions by name."""
