"""Sources of samples of the estimator node, as its parameters say."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ur_energy_model.energy.live.options import LIVE_FIELDS
from ur_energy_model.identification.fields import FIELDS as LEARNED_FIELDS
from ur_energy_model.nodes.joint_states_source import JointStatesSource
from ur_energy_model.nodes.polled_subscription import PolledSubscription
from ur_energy_model.nodes.terminal.line import Level, Line
from ur_energy_model.telemetry.bag.source import BagSource
from ur_energy_model.telemetry.joint_state_stream import JointStateStream
from ur_energy_model.telemetry.rtde.source import RtdeSource
from ur_energy_model.telemetry.source import TelemetrySource

SHORTEST_BATCH, LONGEST_BATCH = 0.008, 0.05
"""Time span of packets that are decoded together [s]: shorter publish periods share a batch."""


def batch_seconds(value: Callable[[str], Any]) -> float:
    """Time span of the samples that are integrated and published together [s].

    Args:
        value: returns the value of a parameter by its name.
    """
    period = 1.0 / float(value("publish_rate"))
    return min(LONGEST_BATCH, period * max(1, int(SHORTEST_BATCH / period + 1e-9)))


def connection(
    value: Callable[[str], Any], robot_ip: str, robot: str | None, fields: Sequence[str]
) -> RtdeSource:
    """An RTDE connection whose batches cover one publish period."""
    return RtdeSource(robot_ip, robot=robot, fields=fields, batch_seconds=batch_seconds(value))


def fields_of(value: Callable[[str], Any]) -> tuple[str, ...]:
    """RTDE fields that the estimator asks a controller for.

    Args:
        value: returns the value of a parameter by its name.
    """
    return (
        LIVE_FIELDS
        if value("learn") == "off"
        else tuple(dict.fromkeys((*LIVE_FIELDS, *LEARNED_FIELDS)))
    )


def source_of(value: Callable[[str], Any], robot: str | None) -> TelemetrySource:
    """The bag or the controller that the parameters name.

    Args:
        value: returns the value of a parameter by its name.
        robot: name of the robot that is expected; None for the one that the controller names.
    """
    if value("source") == "bag":
        return BagSource(value("bag"), real_time=True, batch_seconds=batch_seconds(value))
    return connection(value, value("robot_ip"), robot, fields_of(value))


def joint_states_source(
    value: Callable[[str], Any],
    subscription: PolledSubscription,
    joints: Sequence[str],
    say: Callable[[list[Line]], None],
) -> JointStatesSource:
    """The joint_states topic of a driver.

    Args:
        value: returns the value of a parameter by its name.
        subscription: to the topic.
        joints: joint names of the arm, prefix included.
        say: called with lines about messages that were refused.
    """
    amperes = value("effort_unit") == "ampere"
    stream = JointStateStream(
        joints,
        "actual_current" if amperes else "actual_current_as_torque",
        require_effort=value("method") == "current",
        source="joint_states",
    )

    def notice(text: str) -> None:
        say([Line(Level.WARN, text)])

    return JointStatesSource(
        subscription, stream, batch_seconds=batch_seconds(value), notice=notice
    )
