"""Named motions of an arm, and Fourier trajectories from files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from ur_energy_model.errors import InputError
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.setup import Setup
from ur_energy_model.trajectory.fourier import load_trajectory
from ur_energy_model.trajectory.motions import Chain, Hold, Motion, Segment, Sinusoids
from ur_energy_model.trajectory.planner import Planner, home_position, straight_line
from ur_energy_model.trajectory.profiles import Cycloid
from ur_energy_model.typing import Array

_SEEDS = {"trajectory_a": 1, "trajectory_b": 36}
"""Seeds of the random points; with these a UR5e's joints reach 2 to 3 rad/s in both."""


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
        reflected_inertia: as `Planner` takes it.

    Raises:
        InputError: there is no such motion, or the file is for another arm.
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
            path,
            f"moves {trajectory.dof} joints, {robot.name} has {robot.dof}",
            f"design one for this arm with 'ur_energy excite --robot {robot.name}'",
        )
    return trajectory


def _trajectory(name: str) -> Callable[[Planner], Motion]:
    return lambda planner: planner.chain_through(planner.random_points(_SEEDS[name]))


def _hold(planner: Planner) -> Motion:
    return Hold(home_position(planner.robot))


def _sinusoids(planner: Planner) -> Motion:
    """One minute of sines at 0.05 to 0.2 Hz, amplitudes within speed and acceleration limits."""
    robot = planner.robot
    frequency = np.linspace(0.08, 0.21, robot.dof)
    pace = 2 * np.pi * frequency
    amplitude = np.minimum.reduce(
        [
            np.full(robot.dof, 0.6),
            0.4 * planner.limits.speed / pace,
            0.4 * planner.limits.acceleration / pace**2,
        ]
    )
    while True:
        motion = Sinusoids(home_position(robot), amplitude, frequency, duration=60.0)
        if amplitude.max() < 0.05 or planner.is_clear(
            motion.sample(np.linspace(0.0, 60.0, 600))[0]
        ):
            return motion
        amplitude = 0.85 * amplitude


def _pick_and_place(planner: Planner) -> Motion:
    """Three points (home, pick, place) joined by cycloids (Battistini et al.)."""
    home = home_position(planner.robot)
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
    """Every joint back and forth at test speed, one by one and then together (Raviola et al.)."""
    home = home_position(planner.robot)
    width = np.minimum(0.9, 0.4 * planner.robot.max_position)
    width[1] = min(width[1], 0.5)
    segments = []
    for stroke in (*np.diag(width), width):
        while np.abs(stroke).max() > 0.05 and not planner.is_clear(
            straight_line(home - stroke, home + stroke)
        ):
            stroke = 0.85 * stroke
        for start, end in (
            (home, home + stroke),
            (home + stroke, home - stroke),
            (home - stroke, home),
        ):
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
