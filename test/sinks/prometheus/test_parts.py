# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Metrics of joints and parts sum to the total."""

from __future__ import annotations

from pathlib import Path

import pytest

from test.energy.test_parts import PARTS, SOURCES, Given, Surfaces, check_surface
from ur_energy_model.sinks.prometheus.sink import ArmMetrics


@pytest.mark.parametrize("source", SOURCES)
def test_the_parts_sum_to_the_total(source: str, tmp_path: Path) -> None:
    arm = Surfaces(source, tmp_path)
    for quantity in ("energy", "power"):
        name = f"{quantity} of the metrics"
        check_surface(name, surface(arm, quantity), arm, source)
    over = arm.snapshot.seconds
    of_power = float(arm.channels.deviations_of_total(arm.snapshot.power, over))
    metrics = ArmMetrics().values(arm.reading)
    assert metrics["ur_energy_total_power_std_watts"]["arm",] == pytest.approx(of_power)


def surface(arm: Surfaces, quantity: str) -> Given:
    values = ArmMetrics().values(arm.reading)
    (source,) = (key[1] for key, one in values["ur_energy_total_source"].items() if one)
    share = values["ur_energy_total_measured_ratio"]["arm",]
    if quantity == "energy":
        end = "energy_joules_total"
        parts = {
            part: each
            for (_, part), each in values["ur_energy_part_energy_joules"].items()
        }
    else:
        end = "power_watts"
        joints = values["ur_energy_joint_power_watts"].items()
        parts = {joint: each for (_, joint), each in joints}
        parts |= {name: values[f"ur_energy_{name}_power_watts"]["arm",] for name in PARTS}
    model, total = (
        values[f"ur_energy_{name}_{end}"]["arm",] for name in ("model", "total")
    )
    return Given(parts, total, model, source, share)
