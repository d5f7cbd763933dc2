# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""A simulated arm, its model, and recordings of its program, made once for all tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from test.simulation.simulated_cell import (
    PICK_AND_PLACE,
    SimulatedCell,
    program,
)
from ur_energy_model.identification.pipeline import identify
from ur_energy_model.model.model_file import save_model
from ur_energy_model.model.setup import Payload

MakeOnce = Callable[[str, Callable[[Path], object]], Path]
KILOGRAM = Payload(1.0, np.array([0.0, 0.0, 0.05]))


@pytest.fixture(scope="session")
def model_file(made_once: MakeOnce) -> Path:
    """Model of the arm, from another motion and another day than all other recordings."""

    def make(folder: Path) -> None:
        cell = SimulatedCell(motion="trajectory_a", session=0)
        recorded = cell.record(folder / "excitation", 30.0, rate=250.0)
        save_model(identify([recorded.bag], "ur5e").model, folder / "model.yaml")

    return made_once("measures_model", make) / "model.yaml"


@pytest.fixture(scope="session")
def as_set(made_once: MakeOnce) -> Path:
    """The program of an arm that carries what was set: nothing."""

    def make(folder: Path) -> None:
        cell = SimulatedCell()
        cell.run(program(*PICK_AND_PLACE))
        cell.record(folder / "bag", 32.0)

    return made_once("measures_as_set", make) / "bag"


@pytest.fixture(scope="session")
def wrongly_set(made_once: MakeOnce) -> Path:
    """The same with 1 kg set in the controller, which the arm does not carry."""

    def make(folder: Path) -> None:
        cell = SimulatedCell(payload=KILOGRAM, carried=Payload())
        cell.run(program(*PICK_AND_PLACE))
        cell.record(folder / "bag", 32.0)

    return made_once("measures_wrongly_set", make) / "bag"
