"""Messages of the estimator that need no node: markers, energy/joints, latency on /diagnostics."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from builtin_interfaces.msg import Time

from ur_energy_model.nodes import estimator_health
from ur_energy_model.nodes.energy_publishers import DynamicJointStates, PowerMarkers
from ur_energy_model.nodes.estimator_health import EstimatorHealth

NOW = 1_700_000_000_000_000_000


def test_markers_show_power_by_colour() -> None:
    positions = np.array([[0.0, 0.0, 0.1], [0.0, 0.0, 0.4], [0.3, 0.0, 0.4]])
    markers, stamp = PowerMarkers("base", 3), Time(sec=5, nanosec=500_000_000)
    markers.message(Time(), positions + 1.0, np.array([50.0, 50.0, 50.0]), 1.0)
    array = markers.message(stamp, positions, np.array([-80.0, 0.0, 200.0]), 143.6)
    assert {(m.header.frame_id, m.header.stamp.sec) for m in array.markers} == {("base", 5)}
    assert len({(m.ns, m.id) for m in array.markers}) == 4
    back, none, much, text = array.markers
    assert back.color.b > back.color.r
    assert none.color.g == 1.0
    assert (much.color.r, much.color.g) == (1.0, 0.0)
    assert much.scale.x > none.scale.x
    assert text.text == "144 W"
    assert text.pose.position.z == pytest.approx(0.65)
    assert [much.pose.position.x, much.pose.position.z] == [0.3, 0.4]


def test_energy_joints_needs_control_msgs_only_where_it_is_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With stand-in classes, since there is no wheel of control_msgs."""
    monkeypatch.setitem(sys.modules, "control_msgs", None)
    assert DynamicJointStates().message_type is None
    module: Any = ModuleType("control_msgs.msg")
    module.DynamicJointState = module.InterfaceValue = lambda **fields: SimpleNamespace(**fields)
    monkeypatch.setitem(sys.modules, "control_msgs", ModuleType("control_msgs"))
    monkeypatch.setitem(sys.modules, "control_msgs.msg", module)
    values = {"a": {"electrical_power": 1.0}, "total": {"electrical_power": 2.0}}
    message = DynamicJointStates().message(Time(sec=3), values)
    assert message.header.stamp.sec == 3
    assert message.joint_names == ["a", "total"]
    assert message.interface_values[1].interface_names == ["electrical_power"]
    assert message.interface_values[1].values == [2.0]


def test_latency_is_from_the_stamp_to_the_publication(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(stamp=lambda: NOW, check=lambda: 0)
    monkeypatch.setattr(estimator_health, "HOST_CLOCK", clock)
    health = EstimatorHealth("estimator")
    for milliseconds in (1, 2, 3, 10):
        health.record_publication(NOW - milliseconds * 1_000_000)
    first, second = (
        {pair.key: pair.value for pair in health.statuses(None, None, None)()[0].values}
        for _ in range(2)
    )
    assert float(first["latency_p50_ms"]) == pytest.approx(2.5)
    assert float(first["latency_max_ms"]) == pytest.approx(10.0)
    assert "latency_p50_ms" not in second  # each report covers its own interval
