"""Both cycles run in turns on a simulated controller, and their recording shows the saving."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from test.optimization.hand_made import ROBOT, hand_made_cycle
from ur_energy_model.experiment.cycle_proof import Proof, measured_saving
from ur_energy_model.experiment.execution import ExecutionPlan, MotionSummary, execute
from ur_energy_model.experiment.limits import SafetyLimits
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.geometry import ArmGeometry
from ur_energy_model.telemetry.bag.reader import read_bag


def test_a_run_on_the_simulated_controller(simulate, fresh_host, tmp_path: Path) -> None:
    host = fresh_host()
    simulate(host, "--motion", "hold")
    proof = Proof.of(hand_made_cycle(), ROBOT, 1)
    plan = ExecutionPlan(proof.motion(), SafetyLimits(ArmDynamics(ROBOT), ArmGeometry(ROBOT)))
    summaries: list[MotionSummary] = []

    def approve(summary: MotionSummary) -> bool:
        summaries.append(summary)
        return True

    result = execute(plan, host, tmp_path / "proof", approve=approve)
    assert result.completed, result.reason
    assert summaries[0].duration == plan.duration
    saving = measured_saving(tmp_path / "proof", proof)
    assert 1.0 < saving.saving_percent < 40.0
    assert saving.temperature is not None
    recorded = read_bag(tmp_path / "proof", ["target_qd", "actual_qd"])
    for name in ("target_qd", "actual_qd"):
        assert (np.abs(recorded[name]).max(axis=0) < ROBOT.max_velocity).all()
