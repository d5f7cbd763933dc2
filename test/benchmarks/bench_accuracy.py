"""How near energies come to the truth: simulated arms, identified on A, judged on B.

Each arm (by seed) runs trajectory A for a minute, is identified from that recording alone, and runs
trajectory B for five minutes. What the model makes of the recorded speeds and currents of B stands
beside the simulation's truth.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from test.identification.exact_arm import write_bag
from ur_energy_model.demo.run import true_energy
from ur_energy_model.energy.meter import CONFIDENCE
from ur_energy_model.energy.recording_energy import estimate_energy
from ur_energy_model.identification.pipeline import identify
from ur_energy_model.model.robots import RobotDescription, load_robot
from ur_energy_model.model.setup import Setup
from ur_energy_model.simulation.parameters import ArmParameters
from ur_energy_model.simulation.simulated_arm import SimulatedArm, record_arm
from ur_energy_model.trajectory.named_motions import named_motion

ARMS = (("ur5e", 1), ("ur5e", 2), ("ur5e", 3), ("ur10e", 1), ("ur3e", 1))
FIT, JUDGE = 60.0, 300.0


def main() -> None:
    """Print errors in percent of the truth, joint by joint."""
    inside, count = 0, 0
    for name, seed in ARMS:
        robot = load_robot(name)
        with tempfile.TemporaryDirectory() as folder:
            fitted, parameters, *_ = record(robot, seed, "trajectory_a", FIT, Path(folder))
            judged, _, start, end = record(robot, seed, "trajectory_b", JUDGE, Path(folder))
            model = identify([fitted], robot).model
            summary = estimate_energy(model, judged)
            truth = true_energy(judged.with_suffix(".json"), start, end)
        constants = np.array([joint.torque_constant for joint in model.joints])
        error = summary.electrical - truth.electrical
        inside += int((np.abs(error) < CONFIDENCE * summary.electrical_std).sum())
        count += robot.dof
        print(f"{name} {seed}: torque constants {percent(constants, parameters.torque_constant)} %")
        print(
            f"    electrical energy {percent(summary.electrical, truth.electrical)} %, "
            f"all joints {percent(summary.electrical.sum(), truth.electrical.sum())} %, "
            f"at the supply {percent(summary.supply, truth.bus)} %"
        )
    print(f"95 % intervals that hold the truth: {inside} of {count}")


def record(
    robot: RobotDescription, seed: int, motion: str, seconds: float, folder: Path
) -> tuple[Path, ArmParameters, float, float]:
    """Bag of a motion, the arm's constants, and the controller times of first and last sample."""
    path = folder / motion
    truth = path.with_suffix(".json")
    arm = SimulatedArm(robot, motion=named_motion(motion, robot, Setup()), seed=seed, truth=truth)
    telemetry = record_arm(arm, seconds)
    arm.close()
    start, end = float(telemetry.time[0]), float(telemetry.time[-1])
    return write_bag(path, telemetry), arm.parameters, start, end


def percent(value: np.ndarray | float, truth: np.ndarray | float) -> str:
    """Errors as text."""
    errors = 100 * (np.atleast_1d(value) / np.atleast_1d(truth) - 1)
    return " ".join(f"{error:+.2f}" for error in errors)


if __name__ == "__main__":
    main()
