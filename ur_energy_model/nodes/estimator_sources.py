"""Sources of samples of the estimator node, as its parameters say."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ur_energy_model.energy.live.options import LIVE_FIELDS
from ur_energy_model.telemetry.bag.source import BagSource
from ur_energy_model.telemetry.rtde.source import RtdeSource
from ur_energy_model.telemetry.source import TelemetrySource

LONGEST_BATCH = 0.05
"""Longest time span of packets that are decoded together [s]."""


def batch_seconds(value: Callable[[str], Any]) -> float:
    """Time span of the samples that are integrated and published together [s].

    Args:
        value: returns the value of a parameter by its name.
    """
    return min(LONGEST_BATCH, 1.0 / float(value("publish_rate")))


def connection(
    value: Callable[[str], Any], robot_ip: str, robot: str, fields: Sequence[str]
) -> RtdeSource:
    """An RTDE connection whose batches cover one publish period."""
    return RtdeSource(robot_ip, robot=robot, fields=fields, batch_seconds=batch_seconds(value))


def source_of(value: Callable[[str], Any], robot: str) -> TelemetrySource:
    """The bag or the controller that the parameters name.

    Args:
        value: returns the value of a parameter by its name.
        robot: name of the robot that is expected.
    """
    if value("source") == "bag":
        return BagSource(value("bag"), real_time=True, batch_seconds=batch_seconds(value))
    return connection(value, value("robot_ip"), robot, LIVE_FIELDS)
