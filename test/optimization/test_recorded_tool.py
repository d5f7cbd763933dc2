"""The tool centre point of a recording."""

from __future__ import annotations

import numpy as np
import pytest

from test.optimization.hand_made import HOME, ROBOT
from ur_energy_model.optimization.recorded_motion import recorded_tool
from ur_energy_model.simulation.kinematics import ArmKinematics
from ur_energy_model.telemetry.samples import Telemetry

TOOL = np.array([0.01, -0.02, 0.15, 0.1, 0.2, -0.3])


def recording(pose: np.ndarray) -> Telemetry:
    """The arm moves, then stands; the first sample's pose is late."""
    late = pose + 0.01
    return Telemetry(
        np.array([0.0, 0.1]),
        {
            "actual_q": np.stack([HOME, HOME]),
            "actual_qd": np.stack([np.ones(6), np.zeros(6)]),
            "actual_TCP_pose": np.stack([late, pose]),
        },
    )


def test_the_tool_is_that_of_the_standing_arm() -> None:
    pose = ArmKinematics(ROBOT).forward(HOME, TOOL)
    assert recorded_tool(recording(pose), ROBOT) == pytest.approx(TOOL, abs=1e-9)


def test_without_the_field_it_is_unknown() -> None:
    whole = recording(np.zeros(6))
    assert recorded_tool(whole.select(np.ones(2, dtype=bool)), ROBOT) is not None
    assert recorded_tool(Telemetry(whole.time, {"actual_q": whole["actual_q"]}), ROBOT) is None
    assert recorded_tool(recording(np.full(6, np.nan)), ROBOT) is None
