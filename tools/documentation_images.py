# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Draws the figures of README and docs from a simulated UR5e.

python -m tools.documentation_images
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from ur_energy_model.identification.pipeline import identify
from ur_energy_model.model.robots import load_robot
from ur_energy_model.report.analysis import analyse
from ur_energy_model.report.figures import save_chart
from ur_energy_model.report.recording_charts import (
    current_chart,
    energy_split_chart,
    friction_chart,
    stack_chart,
)
from ur_energy_model.simulation.simulated_arm import SimulatedArm, record_arm
from ur_energy_model.telemetry.bag.writer import BagWriter
from ur_energy_model.trajectory.named_motions import named_motion

DOCS = Path(__file__).resolve().parents[1] / "docs"
FOLDER = DOCS / "images"
SEED = 7


def record(motion: str, seconds: float, folder: Path) -> Path:
    """A bag of a simulated UR5e."""
    robot = load_robot("ur5e")
    arm = SimulatedArm(robot, motion=named_motion(motion, robot), seed=SEED)
    telemetry = record_arm(arm, seconds)
    path = folder / motion
    with BagWriter(path, telemetry.info, tuple(telemetry.columns), name=motion) as bag:
        bag.write(telemetry)
    return path


def main() -> None:
    """Identify from trajectory A, draw trajectory B."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        fitted = record("trajectory_a", 60.0, folder)
        shown = record("trajectory_b", 20.0, folder)
        model = identify([fitted], "ur5e").model
        analysis = analyse(model, shown)
        for chart in (
            stack_chart(analysis),
            energy_split_chart(analysis),
            current_chart(analysis),
            friction_chart(analysis),
        ):
            if chart is not None:
                print(*save_chart(chart, FOLDER))


if __name__ == "__main__":
    main()
