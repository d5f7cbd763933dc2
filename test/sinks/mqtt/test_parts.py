# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Metrics of joints and parts sum to the total."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from test.energy.test_parts import SOURCES, Given, Surfaces, check_surface
from ur_energy_model.sinks.mqtt.edge_node import ReadingStore, json_messages


@pytest.mark.parametrize("source", SOURCES)
def test_the_parts_sum_to_the_total(source: str, tmp_path: Path) -> None:
    arm = Surfaces(source, tmp_path)
    check_surface("energies", surface(arm, "energy/{}/energy"), arm, source)
    check_surface("powers", surface(arm, "energy/{}/power"), arm, source)


def surface(arm: Surfaces, pattern: str) -> Given:
    store = ReadingStore()
    store.add(arm.reading)
    readings, newest = store.oldest(1)
    (message,) = json_messages("group", "node", readings, newest)
    found = json.loads(message.payload)
    return arm.of_names(found, pattern)
