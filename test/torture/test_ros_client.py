"""Hostile messages have the types of their fields, and do contain hostile values."""

from __future__ import annotations

import math
from random import Random

import pytest

pytest.importorskip("rclpy")

from test.torture.ros_client import hostile_message, message_class

KINDS = (
    "trajectory_msgs/msg/JointTrajectory",
    "sensor_msgs/msg/JointState",
    "std_msgs/msg/String",
    "std_msgs/msg/Float64",
    "diagnostic_msgs/msg/DiagnosticArray",
)


@pytest.mark.parametrize("kind", KINDS)
def test_messages_of_any_type_can_be_made_and_repeated(kind: str) -> None:
    for seed in range(20):
        message = hostile_message(kind, Random(seed))
        assert isinstance(message, message_class(kind))
        assert str(message) == str(hostile_message(kind, Random(seed)))


def test_numbers_are_hostile() -> None:
    values = [hostile_message("std_msgs/msg/Float64", Random(seed)).data for seed in range(60)]
    assert any(math.isnan(value) for value in values)
    assert any(math.isinf(value) for value in values)
    assert any(value == 1e300 for value in values)
