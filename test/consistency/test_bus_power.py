# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""A bus power in another unit is found beside the model, and real arms are not accused."""

from __future__ import annotations

from pathlib import Path

import pytest

from test.energy.known_arm import changed, known_model, motion
from test.identification.exact_arm import write_bag
from ur_energy_model.energy.recording_energy import estimate_energy


@pytest.mark.parametrize(
    ("factor", "found"), [(0.1, True), (10.0, True), (0.9, False), (1.1, False)]
)
def test_a_bus_current_in_another_unit_is_found(
    tmp_path: Path, factor: float, found: bool
) -> None:
    telemetry = motion(20.0)
    current = factor * telemetry["actual_robot_current"]
    bag = write_bag(tmp_path / "bag", changed(telemetry, actual_robot_current=current))
    summary = estimate_energy(known_model(), bag)
    subjects = [each.subject for each in summary.contradictions]
    assert ("bus_power" in subjects) == found
    assert any("actual_robot_current" in line for line in summary.warnings) == found
