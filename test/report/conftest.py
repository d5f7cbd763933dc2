# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""A recording that a known model explains exactly, so that the report's results are known."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from test.energy.known_arm import known_model
from test.report.browser import browser as browser
from ur_energy_model.consistency.controller_torque import POSITION_DELAY
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.report.analysis import Analysis, analyse
from ur_energy_model.telemetry.bag.writer import BagWriter
from ur_energy_model.telemetry.gaps import find_gaps
from ur_energy_model.telemetry.samples import RecordingInfo, Telemetry

RATE = 125.0


def explained_recording(
    model: EnergyModel,
    *,
    seconds: float = 30.0,
    rate: float = RATE,
    extra_power: float = 0.0,
) -> Telemetry:
    """Slow sines on all joints, then 4 s of standstill; currents and bus power of the model.

    A program starts every 10 s; `extra_power` is added to the bus [W].
    """
    time = 200.0 + np.arange(round(seconds * rate)) / rate
    t = (time - time[0])[:, None]
    moving = t < seconds - 4.0
    frequency = 2 * np.pi * np.array([0.1, 0.15, 0.2, 0.25, 0.3, 0.35])
    fade = np.where(moving, np.sin(np.pi * np.clip(t / (seconds - 4.0), 0, 1)) ** 2, 0.0)
    q = 0.6 * fade * np.sin(frequency * t) + np.array([0.0, -1.2, 1.4, -1.0, 0.8, 0.3])
    qd = np.gradient(q, 1 / rate, axis=0)
    qdd = np.gradient(qd, 1 / rate, axis=0)
    dynamics = model.dynamics()
    predicted = model.predict(q, qd, qdd, dynamics=dynamics)
    inertia = np.array([joint.reflected_inertia for joint in model.joints])
    power = predicted.total_power + extra_power
    delayed = q - POSITION_DELAY * qd
    columns = {
        "target_q": q,
        "target_qd": qd,
        "target_qdd": qdd,
        "target_moment": dynamics.inverse_dynamics(delayed, qd, qdd) + inertia * qdd,
        "actual_q": q,
        "actual_qd": qd,
        "actual_current": predicted.current,
        "joint_temperatures": np.full_like(q, 30.0),
        "actual_robot_voltage": np.full(len(time), 48.0),
        "actual_robot_current": power / 48.0,
        "robot_mode": np.full(len(time), 7.0),
        "safety_mode": np.ones(len(time)),
        "runtime_state": np.where((time - time[0]) % 10.0 < 9.0, 2.0, 1.0),
    }
    info = RecordingInfo(source="explained", robot=model.robot, rate=rate)
    return Telemetry(time, columns, info, find_gaps(time, 1 / rate))


@pytest.fixture(scope="session")
def model() -> EnergyModel:
    return known_model()


@pytest.fixture(scope="session")
def telemetry(model: EnergyModel) -> Telemetry:
    return explained_recording(model)


MakeBag = Callable[..., Path]


def write_bag(folder: Path, telemetry: Telemetry) -> Path:
    with BagWriter(folder, telemetry.info, tuple(telemetry.columns), name="bag") as bag:
        bag.write(telemetry)
    return folder


@pytest.fixture
def make_bag(tmp_path: Path) -> MakeBag:
    """Write telemetry into a bag of this name."""
    return lambda telemetry, name="monday": write_bag(tmp_path / name, telemetry)


@pytest.fixture(scope="session")
def monday(telemetry: Telemetry, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The telemetry as a bag that nobody changes."""
    return write_bag(tmp_path_factory.mktemp("bags") / "monday", telemetry)


@pytest.fixture(scope="session")
def analysis(model: EnergyModel, monday: Path) -> Analysis:
    return analyse(model, monday)
