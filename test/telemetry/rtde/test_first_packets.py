"""What the first packets tell: rate and payload."""

from __future__ import annotations

import numpy as np
import pytest

from ur_energy_model.telemetry.rtde.negotiation import observed_rate, with_payload
from ur_energy_model.telemetry.rtde.recipe import Recipe, in_type_order
from ur_energy_model.telemetry.samples import RecordingInfo


@pytest.mark.parametrize(
    ("times", "negotiated", "rate"),
    [
        (np.arange(10) / 500.0, 500.0, None),
        (np.arange(10) / 125.0, 500.0, 125.0),
        (np.array([0.0, 0.008, 0.05, 0.06]), 500.0, None),
        (np.arange(10) / 125.0, None, None),
        (np.zeros(3), 500.0, None),
    ],
)
def test_a_rate_counts_where_it_is_regular_and_another_one(
    times: np.ndarray, negotiated: float | None, rate: float | None
) -> None:
    found = observed_rate(times, negotiated)
    assert found is None if rate is None else found == pytest.approx(rate)


def test_the_payload_is_that_of_the_first_packet() -> None:
    recipe = Recipe(("payload", "payload_cog"), ("DOUBLE", "VECTOR3D"))
    records = np.zeros(2, recipe.dtype)
    records[0] = (1.5, (0.1, 0.2, 0.3))
    info = with_payload(RecordingInfo(robot="ur5e"), records)
    assert (info.robot, info.payload_mass) == ("ur5e", 1.5)
    assert info.payload_center_of_mass == (0.1, 0.2, 0.3)


def test_fields_of_one_type_are_side_by_side() -> None:
    names = in_type_order(["robot_mode", "actual_q", "tool_mode", "timestamp", "joint_mode"])
    assert names == ("timestamp", "actual_q", "joint_mode", "robot_mode", "tool_mode")
