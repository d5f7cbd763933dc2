"""States of a live view, for its tests."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from test.sinks.live_readings import live_readings
from ur_energy_model.sinks.estimator_reading import LiveState
from ur_energy_model.sinks.sink import SinkStatus
from ur_energy_model.telemetry.source import LinkStatus

SINKS = (
    SinkStatus("foxglove 127.0.0.1:8765", None, 12, 0, 0, 2),
    SinkStatus("prometheus 127.0.0.1:9464", None, 12),
    SinkStatus("mqtt 127.0.0.1:1883", "nobody listens", 0, 40, 50),
    SinkStatus("opcua 127.0.0.1:4840", None, 12, 3),
)
AWAY = LinkStatus(connected=False, problem="192.168.0.9: sent nothing for 3 s; check the network")


@cache
def state() -> LiveState:
    """After two seconds of motion and a cycle, without sinks."""
    *_, reading = live_readings(2.0)
    (cycle,) = next(each.cycles for each in live_readings(2.0) if each.cycles)
    return LiveState("192.168.0.9", reading, LinkStatus(lost=3, reconnects=1), (), cycle)


def waiting() -> LiveState:
    """Before the first sample."""
    return LiveState("192.168.0.9", None, AWAY)


def away() -> LiveState:
    """After the controller went away."""
    return replace(state(), link=AWAY)


def full() -> LiveState:
    """With all sinks, and a full disk."""
    return replace(state(), sinks=SINKS, disk_problem="energy.json: cannot be written (full)")
