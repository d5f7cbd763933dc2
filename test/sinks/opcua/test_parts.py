# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Metering points of joints and parts sum to the main one, whose interval is that of the total."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from test.energy.test_parts import SOURCES, Given, Surfaces, check_surface
from ur_energy_model.energy.meter import CONFIDENCE
from ur_energy_model.sinks.opcua.metering_points import (
    JOULES_PER_WATT_HOUR,
    POWER,
    SUM,
    Measurand,
    metering_points,
    plain_values,
)


@pytest.mark.parametrize("source", SOURCES)
def test_the_parts_sum_to_the_total(source: str, tmp_path: Path) -> None:
    arm = Surfaces(source, tmp_path)
    check_surface("energies", surface(arm, SUM), arm, source)
    check_surface("powers", surface(arm, POWER), arm, source)
    net = arm.snapshot.since_reset.net
    points = metering_points(arm.reading)
    for point, deviation in (
        ("Main", arm.channels.deviations_of_total(net)),
        ("Model", arm.channels.deviations_of_model(net)),
    ):
        half = points[point][SUM].uncertainty * JOULES_PER_WATT_HOUR
        assert half == pytest.approx(CONFIDENCE * float(deviation))


def surface(arm: Surfaces, quantity: Measurand) -> Given:
    points = metering_points(arm.reading).items()
    unit = JOULES_PER_WATT_HOUR if quantity is SUM else 1.0
    found: dict[str, Any] = {
        name.lower(): unit * each[quantity].value for name, each in points
    }
    plain = {name: value for name, (value, _) in plain_values(arm.reading).items()}
    found |= {name: plain[name] for name in ("total_source", "total_measured_share")}
    return arm.of_names({**found, "total": found["main"]}, "{}")
