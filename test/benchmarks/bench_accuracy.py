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
from ur_energy_model.model.robots import load_robot
from ur_energy_model.model.setup import Setup
from ur_energy_model.simulation.simulated_arm import SimulatedArm, record_arm
from ur_energy_model.trajectory.named_motions import named_motion

ARMS = (("ur5e", 1), ("ur5e", 2), ("ur5e", 3), ("ur10e", 1), ("ur3e", 1))
MOTIONS = {"trajectory_a": 60.0, "trajectory_b": 300.0}
"""Fitted and judged, and their lengths [s]."""


def percent(value: np.ndarray | float, truth: np.ndarray | float) -> str:
    """Errors as text."""
    errors = 100 * (np.atleast_1d(value) / np.atleast_1d(truth) - 1)
    return " ".join(f"{error:+.2f}" for error in errors)


def main() -> None:
    """Print errors in percent of the truth, joint by joint."""
    inside, count = 0, 0
    for name, seed in ARMS:
        robot, bags = load_robot(name), []
        with tempfile.TemporaryDirectory() as folder:
            for motion, seconds in MOTIONS.items():
                path = Path(folder) / motion
                target, file = named_motion(motion, robot, Setup()), path.with_suffix(".json")
                arm = SimulatedArm(robot, motion=target, seed=seed, truth=file)
                telemetry = record_arm(arm, seconds)
                arm.close()
                bags.append(write_bag(path, telemetry))
            model = identify(bags[:1], robot).model
            summary = estimate_energy(model, bags[1])
            truth = true_energy(file, float(telemetry.time[0]), float(telemetry.time[-1]))
        constants = np.array([joint.torque_constant for joint in model.joints])
        error = summary.electrical - truth.electrical
        inside += int((np.abs(error) < CONFIDENCE * summary.electrical_std).sum())
        count += robot.dof
        true = arm.parameters.torque_constant
        print(f"{name} {seed}: torque constants {percent(constants, true)} %")
        print(
            f"    electrical energy {percent(summary.electrical, truth.electrical)} %, "
            f"all joints {percent(summary.electrical.sum(), truth.electrical.sum())} %, "
            f"at the supply {percent(summary.supply, truth.bus)} %"
        )
    print(f"95 % intervals that hold the truth: {inside} of {count}")
