# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Predicted and measured savings of work cycles on simulated arms.

Each arm is identified from one motion; its cycle, in another session, runs through other
points. Both cycles are then run in turns on the arm, and the saving is measured at its
bus.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from test.identification.exact_arm import write_bag
from ur_energy_model.experiment.cycle_proof import Proof, measured_saving
from ur_energy_model.identification.pipeline import identify
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.robots import load_robot
from ur_energy_model.optimization.optimize import optimize_cycle
from ur_energy_model.optimization.optimized_cycle import OptimizedCycle
from ur_energy_model.simulation.arm_options import ArmOptions
from ur_energy_model.simulation.simulated_arm import SimulatedArm, record_arm
from ur_energy_model.trajectory.motions import Chain, Motion
from ur_energy_model.trajectory.named_motions import MotionLimits, Planner, named_motion

# types and seeds of the arms
ARMS = (("ur5e", 41), ("ur5e", 42), ("ur3e", 43), ("ur10e", 44))
# of the recorded moves [rad/s, rad/s^2]
SPEED = 2.5
ACCELERATION = 5.5
POINTS = 5
GRIP = 0.3
SLACK = 0.4
"""Of a cycle; wait after each move [s]; share of the cycle in which the arm only waits."""
CYCLES = 4
OTHER_SESSION = ArmOptions(session=2)


def cell_of(
    name: str, seed: int, folder: Path
) -> tuple[EnergyModel, Path, Callable[[str, Motion], Path]]:
    """An arm at work in another session than that of its model.

    Returns:
        The model, the recording of the cell, and a function that runs a motion on the same
        arm in the session of the cell and returns its recording of a name.
    """
    robot = load_robot(name)

    def run(bag: str, motion: Motion, seconds: float, options: ArmOptions) -> Path:
        arm = SimulatedArm(robot, motion=motion, seed=seed, options=options)
        return write_bag(folder / bag, record_arm(arm, seconds))

    learned = run(
        "identification", named_motion("trajectory_a", robot), 60.0, ArmOptions()
    )
    planner = Planner(robot, limits=MotionLimits.for_robot(robot, SPEED, ACCELERATION))
    points = planner.random_points(seed, POINTS)
    moves = [
        planner.move(a, b)
        for a, b in zip(points, np.roll(points, -1, axis=0), strict=True)
    ]
    ends = np.cumsum([0.0, *(each.duration + GRIP for each in moves)]).tolist()
    cycle = Chain(moves, ends[:-1], ends[-1] / (1.0 - SLACK))
    cell = run("cell", cycle, 3.3 * cycle.duration, OTHER_SESSION)

    def again(bag: str, motion: Motion) -> Path:
        return run(bag, motion, motion.duration + 1.0, OTHER_SESSION)

    return identify([learned], name).model, cell, again


def saving_of(name: str, seed: int, folder: Path) -> tuple[OptimizedCycle, float]:
    """The optimized cycle of an arm, and its measured saving [%]."""
    model, cell, run = cell_of(name, seed, folder)
    found = optimize_cycle(model, cell)
    proof = Proof.of(found, CYCLES)
    return found, measured_saving(run("proof", proof.motion()), proof).saving_percent


def main() -> None:
    """Print a line per arm."""
    print(
        "arm    seed  cycle [s]  energy [J]  as typed  scaling   predicted   measured  [%]"
    )
    for name, seed in ARMS:
        with tempfile.TemporaryDirectory() as folder:
            found, measured = saving_of(name, seed, Path(folder))
        gain, typed, scaled = (
            100.0 * (1.0 - energy / found.energy)
            for energy in (found.new_energy, found.typed_energy, found.scaled_energy)
        )
        print(
            f"{name:6s} {seed:4d} {found.duration:10.2f} {found.energy:11.1f} {typed:9.2f} "
            f"{scaled:8.2f} {gain:11.2f} {measured:10.2f}",
            flush=True,
        )
