# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Motion of an arm whose friction, payload and mounting are known exactly."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np

from test.identification.conftest import smooth_motion
from ur_energy_model.files import config_file
from ur_energy_model.identification.filtered_motion import FilteredMotion
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.model_file import load_model
from ur_energy_model.model.robots import load_robot
from ur_energy_model.model.sessions import Session
from ur_energy_model.model.setup import Payload, Setup
from ur_energy_model.telemetry.samples import RecordingInfo, Telemetry

ROBOT = load_robot("ur5e")
N = ROBOT.dof


@cache
def generic() -> EnergyModel:
    """The package's model of the arm."""
    return load_model(config_file("models", "ur5e.yaml"))


def motion(
    seconds: float = 120.0,
    *,
    friction: np.ndarray | None = None,
    payload: Payload | None = None,
    gravity: np.ndarray | None = None,
    temperature: float = 35.0,
    noise: float = 0.02,
    seed: int = 1,
    start: float = 60.0,
) -> FilteredMotion:
    """Smooth motion at 50 Hz; currents are those of the arm as given."""
    time = start + np.arange(round(50 * seconds)) / 50.0
    q, qd, qdd = smooth_motion(ROBOT, time, seed)
    model = generic()
    scale = np.ones(N) if friction is None else friction
    model = model.in_session(Session(model.bus.standby, 0.0, scale, np.zeros(N)))
    setup = Setup(
        model.setup.gravity if gravity is None else gravity,
        model.setup.payload if payload is None else payload,
    )
    warmth = np.full((len(time), N), temperature)
    powers = replace(model, setup=setup).predict(
        q, qd, qdd, temperature=warmth, std=False
    )
    random = np.random.default_rng(seed + 100)
    current = powers.current + noise * random.standard_normal(q.shape)
    unknown = np.full_like(q, np.nan)
    return FilteredMotion(
        time, q, qd, qdd, current, unknown, warmth, np.zeros((len(time), 4))
    )


def resting(power: float) -> Telemetry:
    """130 s at 50 Hz of an arm that takes so much power [W] at rest."""
    time = 60.0 + np.arange(6500) / 50.0
    zero = np.zeros((6500, N))
    columns = {
        "actual_qd": zero,
        "actual_current": zero,
        "actual_robot_voltage": np.full(len(time), 48.0),
        "actual_robot_current": np.full(len(time), power / 48.0),
        "robot_mode": np.full(len(time), 7.0),
    }
    return Telemetry(time, columns, RecordingInfo(rate=50.0))
