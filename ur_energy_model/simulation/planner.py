"""Named motions for an arm, planned within its limits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from ur_energy_model.errors import InputError
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.fourier import load_trajectory
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.setup import Setup
from ur_energy_model.simulation.motions import (
    Chain,
    Cycloid,
    Hold,
    Motion,
    Segment,
    Sinusoids,
    move,
)

Array = NDArray[np.float64]

TEST_SPEED, TEST_ACCELERATION = 3.0, 6.0
"""Of the test trajectories A and B (Clochiatti et al. 2024), rad/s and rad/s^2."""
TOOL_SPEED = 1.3
"""Tool speed at which the controller re-plans its moves (observed there), m/s."""
TORQUE_SHARE = 0.8
"""Share of the joints' torque limits that planned moves use."""
CLEARANCE = 0.12
"""Least height of elbow, wrist and flange above the mounting plane, m."""
_POINTS = 6
_RETRIES = 15
_SEEDS = {"trajectory_a": 20, "trajectory_b": 38}
"""Of the random points; with these a UR5e's joints reach 1.6 to 3 rad/s in both trajectories."""


@dataclass(frozen=True)
class Limits:
    """What planned moves keep to.

    Attributes:
        speed, acceleration: of the joints [n], rad/s and rad/s^2.
        tool_speed: of the flange [m/s].
        torque: of the joints [n], N m.
    """

    speed: Array
    acceleration: Array
    tool_speed: float
    torque: Array

    @classmethod
    def of(
        cls, robot: RobotDescription, speed: float = TEST_SPEED,
        acceleration: float = TEST_ACCELERATION,
    ) -> Limits:  # fmt: skip
        """The wished speed and acceleration, less where the arm's own limits are lower."""
        return cls(
            speed=np.minimum(speed, robot.max_velocity),
            acceleration=np.minimum(acceleration, robot.max_acceleration),
            tool_speed=TOOL_SPEED,
            torque=TORQUE_SHARE * robot.max_torque,
        )


class Planner:
    """Plans moves of one arm in one setup.

    Args:
        robot: n joints.
        setup: mounting and payload, for the torques.
        reflected_inertia: of motors and reducers, joint side [n], kg m^2; unknown ones are left
            out.
        limits: of every move.
    """

    def __init__(
        self, robot: RobotDescription, setup: Setup | None = None, *,
        reflected_inertia: Array | None = None, limits: Limits | None = None,
    ) -> None:  # fmt: skip
        self.robot = robot
        self.dynamics = ArmDynamics(robot, setup)
        inertia = robot.reflected_inertia if reflected_inertia is None else reflected_inertia
        self.inertia = np.nan_to_num(inertia)
        self.limits = Limits.of(robot) if limits is None else limits

    def move(
        self, start: Array, end: Array, rest: float = 0.0, limits: Limits | None = None
    ) -> Segment:
        """Straight joint-space move with trapezoidal speed within all limits.

        Speed is lowered until the flange keeps to the tool speed, then speed and acceleration
        together until the torques keep to theirs, where slowing down can do that.

        Args:
            start: joint positions [n], rad.
            end: joint positions [n], rad.
            rest: pause at the end [s].
            limits: of this move instead of the planner's own.
        """
        limits = self.limits if limits is None else limits
        speed, acceleration = limits.speed, limits.acceleration
        segment = move(start, end, speed, acceleration, rest)
        if segment.profile.duration == 0.0:
            return segment
        line = np.linspace(start, end, 30)
        reach = np.linalg.norm(
            self.dynamics.flange_speed(line, np.broadcast_to(end - start, line.shape)), axis=1
        ).max()
        step = np.abs(end - start)
        if reach > 0.0:
            speed = np.minimum(speed, step * limits.tool_speed / reach + 1e-9)
        segment = self._cap(start, end, speed, acceleration, rest)
        for _ in range(_RETRIES):
            if np.all(self._torques(segment) <= limits.torque):
                break
            speed, acceleration = 0.9 * speed, 0.8 * acceleration
            segment = self._cap(start, end, speed, acceleration, rest)
        return segment

    def through(self, points: Array, rest: float = 0.3) -> Chain:
        """Moves through points [m, n] and back to the first, with a rest at each."""
        ends = np.roll(points, -1, axis=0)
        return Chain([self.move(a, b, rest) for a, b in zip(points, ends, strict=True)])

    def clear(self, start: Array, end: Array) -> bool:
        """Whether elbow, wrist and flange stay above the table and off the arm's own column."""
        model, data = self.dynamics.model, self.dynamics.data
        reach = float(np.abs(self.robot.a).sum() + np.abs(self.robot.d[1:]).sum())
        for q in np.linspace(start, end, 40):
            pin.forwardKinematics(model, data, q)
            places = [data.oMi[j].translation for j in range(3, self.robot.dof + 1)]
            places.append(self.dynamics.flange_pose(q[None, :])[0, :3, 3])
            if min(place[2] for place in places) < CLEARANCE:
                return False
            if min(float(np.hypot(*place[:2])) for place in places[1:]) < 0.15 * reach:
                return False
        return True

    def random_points(self, seed: int, count: int = _POINTS) -> Array:
        """Seeded random joint points [count, n] whose moves in a circle are clear."""
        random = np.random.default_rng(seed)
        low, high = _range(self.robot)
        points = [_home(self.robot)]
        while len(points) < count + 1:
            last = len(points) == count
            for _ in range(2000):
                candidate = random.uniform(low, high)
                far = np.abs(candidate - points[-1]).max() > 0.5
                closes = not last or self.clear(candidate, points[1])
                if far and (len(points) == 1 or self.clear(points[-1], candidate)) and closes:
                    points.append(candidate)
                    break
            else:
                points = points[:1]  # a dead end: begin again with what the seed gives next
        return np.array(points[1:])

    def _cap(
        self, start: Array, end: Array, speed: Array, acceleration: Array, rest: float
    ) -> Segment:
        return move(start, end, np.maximum(speed, 1e-6), acceleration, rest)

    def _torques(self, segment: Segment) -> Array:
        """Largest torque of each joint during a move [n], N m."""
        t = np.linspace(0.0, segment.profile.duration, 40)
        q, qd, qdd = segment.at(t)
        torque = self.dynamics.inverse_dynamics(q, qd, qdd) + self.inertia * qdd
        return np.asarray(np.abs(torque).max(axis=0))


def named_motion(
    name: str | Path, robot: RobotDescription, setup: Setup | None = None, *,
    reflected_inertia: Array | None = None,
) -> Motion:  # fmt: skip
    """A motion by name, or a Fourier trajectory from its YAML file.

    Args:
        name: one of `MOTIONS`, or a path.
        robot: the arm.
        setup: mounting and payload.
        reflected_inertia: as `Planner` takes it.

    Raises:
        InputError: no such motion, or a file that is not for this arm.
    """
    if str(name) in MOTIONS:
        planner = Planner(robot, setup, reflected_inertia=reflected_inertia)
        return MOTIONS[str(name)](planner)
    path = Path(name)
    if path.suffix not in {".yaml", ".yml"}:
        raise InputError(
            str(name), "no such motion", f"use {', '.join(MOTIONS)} or a trajectory YAML file"
        )
    trajectory = load_trajectory(path)
    if trajectory.dof != robot.dof:
        raise InputError(
            path, f"moves {trajectory.dof} joints, {robot.name} has {robot.dof}",
            f"design one for this arm with 'ur_energy excite --robot {robot.name}'",
        )  # fmt: skip
    return trajectory


def _home(robot: RobotDescription) -> Array:
    """A quiet place to stand: upper arm up, elbow bent, tool down (others: all joints zero)."""
    if robot.joint_names[1:3] == ("shoulder_lift_joint", "elbow_joint"):
        return np.array([0.0, -np.pi / 2, np.pi / 2, -np.pi / 2, -np.pi / 2, 0.0])
    return np.zeros(robot.dof)


def _range(robot: RobotDescription) -> tuple[Array, Array]:
    """Joint ranges of the random points [n] each: the shoulder lift above the table."""
    centre = np.zeros(robot.dof)
    width = np.minimum(2.4, 0.6 * robot.max_position)
    if robot.joint_names[1:3] == ("shoulder_lift_joint", "elbow_joint"):
        centre[1], width[1], width[2] = -np.pi / 2, 1.1, 2.2
    return centre - width, centre + width


def _trajectory(name: str) -> Callable[[Planner], Motion]:
    return lambda planner: planner.through(planner.random_points(_SEEDS[name]))


def _hold(planner: Planner) -> Motion:
    return Hold(_home(planner.robot))


def _sinusoids(planner: Planner) -> Motion:
    """One minute of sines at 0.05 to 0.2 Hz, amplitudes within speed and acceleration limits."""
    robot = planner.robot
    frequency = np.linspace(0.08, 0.21, robot.dof)
    pace = 2 * np.pi * frequency
    amplitude = np.minimum.reduce([
        np.full(robot.dof, 0.6), 0.4 * planner.limits.speed / pace,
        0.4 * planner.limits.acceleration / pace**2,
    ])  # fmt: skip
    return Sinusoids(_home(robot), amplitude, frequency, duration=60.0)


def _pick_and_place(planner: Planner) -> Motion:
    """Three points, above, pick and place, joined by cycloids (Battistini et al.)."""
    home = _home(planner.robot)
    pick, place = home.copy(), home.copy()
    pick[0] += 0.5
    place[0] -= 0.7
    for point in (pick, place):
        point[1] -= 0.35
        point[2] += 0.3
    segments = []
    for start, end in ((home, pick), (pick, home), (home, place), (place, home)):
        guide = planner.move(start, end)
        # A cycloid peaks at twice its mean speed and 2 pi times the mean acceleration scale.
        step = np.abs(end - start).max()
        mean = float(planner.limits.acceleration.min())
        duration = max(2.0 * guide.duration, float(np.sqrt(2 * np.pi * step / mean)))
        segments.append(Segment(start, end, Cycloid(1.0, duration), rest=0.5))
    return Chain(segments)


def _warm_up(planner: Planner) -> Motion:
    """Every joint to and fro at test speed, one after the other and then all (Raviola et al.)."""
    home = _home(planner.robot)
    width = np.minimum(0.9, 0.4 * planner.robot.max_position)
    width[1] = min(width[1], 0.5)
    strokes = [*np.diag(width), width]
    segments = []
    for stroke in strokes:
        for start, end in ((home, home + stroke), (home + stroke, home - stroke),
                           (home - stroke, home)):  # fmt: skip
            segments.append(planner.move(start, end))
    return Chain(segments)


MOTIONS: dict[str, Callable[[Planner], Motion]] = {
    "trajectory_a": _trajectory("trajectory_a"),
    "trajectory_b": _trajectory("trajectory_b"),
    "hold": _hold,
    "sinusoids": _sinusoids,
    "pick_and_place": _pick_and_place,
    "warm_up": _warm_up,
}
"""Motions by name."""
