# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Joints and parts in the messages sum to the total."""

from __future__ import annotations

from pathlib import Path

import pytest

from test.energy.test_parts import MESSAGES, SOURCES, Given, Surfaces, check_surface
from ur_energy_model.sinks.foxglove.messages import ReadingMessages


@pytest.mark.parametrize("source", SOURCES)
def test_the_parts_sum_to_the_total(source: str, tmp_path: Path) -> None:
    arm = Surfaces(source, tmp_path)
    check_surface("messages", surface(arm), arm, source)


def surface(arm: Surfaces) -> Given:
    for messages in ReadingMessages().of_reading(arm.reading):
        if messages.topic.name == "/energy":
            raw = messages.payload[-1].tobytes()
    return arm.of_message(MESSAGES.deserialize_cdr(raw, "sensor_msgs/msg/JointState"))
