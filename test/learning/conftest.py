# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""An exact arm at work, and a learner that went through its work."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from test.identification.exact_arm import ExactArm
from ur_energy_model.learning.history import Attempt
from ur_energy_model.learning.learner import Learner, first_model
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.telemetry.samples import Telemetry

WORK = 62.0  # work of the arm [s]


@pytest.fixture(scope="session")
def arm() -> ExactArm:
    return ExactArm()


@pytest.fixture(scope="session")
def work(arm: ExactArm) -> Telemetry:
    return arm.record(WORK, seed=52)


@pytest.fixture(scope="session")
def generic(arm: ExactArm) -> EnergyModel:
    return first_model(arm.robot)


@pytest.fixture(scope="session")
def learned(
    arm: ExactArm, work: Telemetry, generic: EnergyModel
) -> tuple[Learner, tuple[Attempt, ...]]:
    learner = Learner(arm.robot, generic)
    return learner, tuple(fed(learner, work, 250))


def fed(learner: Learner, work: Telemetry, size: int) -> list[Attempt]:
    """Attempts of a learner that gets samples in batches of a size."""
    attempts = []
    for batch in batches(work, size):
        learner.update(batch)
        attempts += learner.attempts()
    return attempts


def batches(work: Telemetry, size: int) -> Iterator[Telemetry]:
    for start in range(0, len(work), size):
        yield work.cut(slice(start, start + size))


def constants(model: EnergyModel) -> np.ndarray:
    """Torque constant and reflected inertia of each joint, and standby power."""
    values = [(joint.torque_constant, joint.reflected_inertia) for joint in model.joints]
    return np.append(np.array(values).ravel(), model.bus.standby)
