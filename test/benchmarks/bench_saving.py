"""Predicted and measured savings of work cycles on simulated arms.

Each arm is identified from one motion; its cycle, in another session, runs through other points.
Both cycles are then run in turns on the arm, and the saving is measured at its bus.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from ur_energy_model.experiment.cycle_proof import Proof, measured_saving
from ur_energy_model.identification.pipeline import identify
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.robots import load_robot
from ur_energy_model.optimization.optimize import optimize_cycle
from ur_energy_model.optimization.optimized_cycle import OptimizedCycle
from ur_energy_model.optimization.plan_optimization import TimedMoves
from ur_energy_model.simulation.arm_options import ArmOptions
from ur_energy_model.simulation.simulated_arm import SimulatedArm, record_arm
from ur_energy_model.telemetry.bag.writer import BagWriter
from ur_energy_model.trajectory.motions import Motion
from ur_energy_model.trajectory.named_motions import MotionLimits, Planner, named_motion

ARMS = (("ur5e", 41), ("ur5e", 42), ("ur3e", 43), ("ur10e", 44))
"""Types and seeds of the arms."""
SPEED, ACCELERATION = 2.5, 5.5
"""Of the recorded moves [rad/s, rad/s^2]."""
SLACK = 0.4
"""Share of the cycle in which the arm only waits."""
POINTS = 5
GRIP = 0.3
"""Wait after a move [s]."""
CYCLES = 4
OTHER_SESSION = ArmOptions(session=2)


def main() -> None:
    """Print a line per arm."""
    print("arm    seed  cycle [s]  energy [J]  as typed  scaling   predicted   measured  [%]")
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


def saving_of(name: str, seed: int, folder: Path) -> tuple[OptimizedCycle, float]:
    """The optimized cycle of an arm, and its measured saving [%]."""
    robot = load_robot(name)
    learned = folder / "identification"
    write(learned, SimulatedArm(robot, motion=named_motion("trajectory_a", robot), seed=seed), 60.0)
    model: EnergyModel = identify([learned], name).model
    limits = MotionLimits.for_robot(robot, SPEED, ACCELERATION)
    cycle = random_cycle(Planner(robot, limits=limits), seed)
    run(folder / "cell", name, seed, cycle, 3.3 * cycle.duration)
    found = optimize_cycle(model, folder / "cell")
    proof = Proof.of(found, load_robot(name), CYCLES)
    motion = proof.motion()
    run(folder / "proof", name, seed, motion, motion.duration + 1.0)
    return found, measured_saving(folder / "proof", proof).saving_percent


def random_cycle(planner: Planner, seed: int) -> TimedMoves:
    """Moves through random points with short waits, then the slack."""
    points = planner.random_points(seed, POINTS)
    moves: list[Motion] = [
        planner.move(start, end)
        for start, end in zip(points, np.roll(points, -1, axis=0), strict=True)
    ]
    ends = np.cumsum([each.duration + GRIP for each in moves])
    starts = (0.0, *(float(end) for end in ends[:-1]))
    return TimedMoves(starts, tuple(moves), float(ends[-1]) / (1.0 - SLACK))


def run(path: Path, name: str, seed: int, motion: Motion, seconds: float) -> None:
    """Record an arm in its second session along a motion."""
    robot = load_robot(name)
    write(path, SimulatedArm(robot, motion=motion, seed=seed, options=OTHER_SESSION), seconds)


def write(path: Path, arm: SimulatedArm, seconds: float) -> None:
    """A bag of an arm."""
    telemetry = record_arm(arm, seconds)
    with BagWriter(path, telemetry.info, tuple(telemetry.columns), name=path.name) as bag:
        bag.write(telemetry)
