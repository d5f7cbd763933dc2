# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The history of a made-up plant: arms with other joints, one without bus power, two programs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from test.plant.synthetic_plant import Arm, Work, write_plant
from test.report.browser import browser as browser

PLANT_ARMS = [
    Arm("A1", programs=("weld", "pick")),
    Arm(
        "A2",
        joints=("one", "two", "three", "four", "five", "six", "seven"),
        programs=("",),
    ),
    Arm("A3", motion_power=60.0, bus=False),
]
PLANT_WORK = Work(days=2, hour=21, seconds=3 * 3600 - 7, seed=3)
"""From 21:00 to almost midnight UTC: in Berlin, the last two hours are those of the next day."""


@pytest.fixture(scope="session")
def plant(made_once: Callable[[str, Callable[[Path], object]], Path]) -> Path:
    def make(folder: Path) -> None:
        write_plant(folder / "plant", PLANT_ARMS, PLANT_WORK)

    return made_once("plant", make) / "plant"
