"""energy/joints with and without control_msgs."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from builtin_interfaces.msg import Time

from ur_energy_model.nodes.energy_publishers import DynamicJointStates


def test_energy_joints_needs_control_msgs_only_where_it_is_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With stand-in classes, since there is no wheel of control_msgs."""
    monkeypatch.setitem(sys.modules, "control_msgs", None)
    assert DynamicJointStates().message_type is None

    module: Any = ModuleType("control_msgs.msg")
    module.DynamicJointState = lambda **fields: SimpleNamespace(**fields)
    module.InterfaceValue = lambda **fields: SimpleNamespace(**fields)
    monkeypatch.setitem(sys.modules, "control_msgs", ModuleType("control_msgs"))
    monkeypatch.setitem(sys.modules, "control_msgs.msg", module)
    message = DynamicJointStates().message(
        Time(sec=3), {"a": {"electrical_power": 1.0}, "total": {"electrical_power": 2.0}}
    )
    assert message.header.stamp.sec == 3
    assert message.joint_names == ["a", "total"]
    assert message.interface_values[1].interface_names == ["electrical_power"]
    assert message.interface_values[1].values == [2.0]
