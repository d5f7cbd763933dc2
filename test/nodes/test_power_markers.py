"""Markers of the power at each joint."""

from __future__ import annotations

import numpy as np
import pytest
from builtin_interfaces.msg import Time

from ur_energy_model.nodes.energy_publishers import PowerMarkers

STAMP = Time(sec=5, nanosec=500_000_000)


def test_markers_show_power_by_colour() -> None:
    positions = np.array([[0.0, 0.0, 0.1], [0.0, 0.0, 0.4], [0.3, 0.0, 0.4]])
    markers = PowerMarkers("base", 3)
    markers.message(Time(), positions + 1.0, np.array([50.0, 50.0, 50.0]), 1.0)
    array = markers.message(STAMP, positions, np.array([-80.0, 0.0, 200.0]), 143.6)
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
