# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""A UR5e whose model and telemetry are known exactly, so that energies have a closed truth."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ur_energy_model.consistency.controller_constants import ControllerConstantsFit
from ur_energy_model.energy.live import LIVE_FIELDS, LiveEstimator, LiveOptions
from ur_energy_model.model.drives import BusModel, JointModel
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.friction import LAWS, Friction
from ur_energy_model.model.robots import load_robot
from ur_energy_model.model.setup import Setup
from ur_energy_model.telemetry.bag.source import BagSource
from ur_energy_model.telemetry.samples import RecordingInfo, Telemetry
from ur_energy_model.typing import Array

ROBOT = load_robot("ur5e")
RATE = 500.0
STANDBY = 25.0
DRIVER = 1.5  # W/A


def known_model(standby: float = STANDBY, **changes: float) -> EnergyModel:
    """A model with round constants; `changes` replace those of every joint."""
    law = LAWS["coulomb_viscous"]
    joints = []
    for i, name in enumerate(ROBOT.joint_names):
        constants: dict[str, Any] = {
            "gear_ratio": 101.0,
            "reflected_inertia": 1.9 if i < 3 else 0.2,
            "torque_constant": 0.1,
            "winding_resistance": 0.5,
            "back_emf_constant": 0.1,
        } | changes
        friction = Friction(law, dict.fromkeys(law.parameters, 0.001), law.default_shape)
        joints.append(
            JointModel(
                name,
                friction=friction,
                **constants,
                std={"winding_resistance": 0.05, "back_emf_constant": 0.001},
            )
        )
    # One common error of standby (0.5 W), one of all back-EMF constants (0.001 V s/rad).
    errors = np.zeros((2, 2 + 3 * 6))
    errors[0, 0] = 0.5
    errors[1, 7:13] = 0.001
    bus = BusModel("physical", standby, np.full(6, DRIVER), np.zeros(6), errors=errors)
    return EnergyModel("ur5e", Setup(), "given", tuple(joints), bus)


def electrical(telemetry: Telemetry) -> Array:
    """Electrical power of each joint by the model's equation, R I^2 + k_b N qd I."""
    current = telemetry["actual_current"]
    qd = telemetry["actual_qd"]
    return 0.5 * current**2 + 0.1 * 101.0 * qd * current


def total(telemetry: Telemetry, standby: float = STANDBY) -> Array:
    """Power of the whole arm with brakes released."""
    drivers = DRIVER * np.abs(telemetry["actual_current"]).sum(axis=1)
    return np.maximum(0.0, standby + drivers + electrical(telemetry).sum(axis=1))


def motion(seconds: float, *, start: float = 100.0, speed: float = 1.0) -> Telemetry:
    """Sinusoidal motion with currents that also regenerate; bus power as modelled.

    speed 0 gives an arm that is held at standstill.
    """
    n = round(seconds * RATE) + 1
    time = start + np.arange(n) / RATE
    phase = np.arange(6)
    angle = 2 * np.pi * 0.5 * (time - start)[:, None] + phase
    qd = speed * np.cos(angle)
    current = 1.0 + 0.5 * phase + 2.0 * np.sin(2 * angle) * (speed != 0)
    columns: dict[str, Array] = {
        "timestamp": time,
        "actual_q": speed * np.sin(angle) / np.pi,
        "actual_qd": qd,
        "actual_current": np.broadcast_to(current, (n, 6)).copy(),
        "joint_temperatures": np.full((n, 6), 30.0),
        "robot_mode": np.full(n, 7.0),
        "safety_mode": np.full(n, 1.0),
        "runtime_state": np.full(n, 2.0),
        "actual_digital_output_bits": np.zeros(n),
        "output_int_register_0": np.zeros(n),
        "payload": np.zeros(n),
        "payload_cog": np.zeros((n, 3)),
        "speed_scaling": np.ones(n),
        "actual_robot_voltage": np.full(n, 48.0),
    }
    telemetry = Telemetry(time, columns, RecordingInfo(source="known arm", rate=RATE))
    columns["actual_robot_current"] = total(telemetry) / 48.0
    return telemetry


def changed(telemetry: Telemetry, **columns: Array) -> Telemetry:
    """The same samples with other columns."""
    return replace(telemetry, columns={**telemetry.columns, **columns})


def without_bus(telemetry: Telemetry) -> Telemetry:
    """The same samples of a source that has no bus power."""
    names = ("actual_robot_voltage", "actual_robot_current")
    columns = {
        name: each for name, each in telemetry.columns.items() if name not in names
    }
    return replace(telemetry, columns=columns)


def packets(telemetry: Telemetry, size: int = 1) -> Iterator[Telemetry]:
    """The samples in batches, as a source hands them on."""
    for start in range(0, len(telemetry), size):
        yield telemetry.cut(slice(start, min(start + size, len(telemetry))))


def live_from_bag(model: EnergyModel, bag: Path) -> LiveEstimator:
    """A live estimator that has played a bag to its end."""
    estimator = LiveEstimator(model, ROBOT)
    with BagSource(bag, fields=LIVE_FIELDS) as source, suppress(EOFError):
        while (batch := source.read(0.0)) is not None:
            estimator.update(batch)
    return estimator


def live(model: EnergyModel, telemetry: Telemetry, size: int) -> LiveEstimator:
    """A live estimator that has seen all samples in batches, with the stated constants."""
    fit = ControllerConstantsFit(ROBOT)
    fit.accumulate(telemetry)
    estimator = LiveEstimator(model, ROBOT, LiveOptions(constants=fit.result()))
    for k, batch in enumerate(packets(telemetry, size)):
        estimator.update(batch)
        if k % 3 == 0:
            estimator.snapshot()
    return estimator


def counted(estimator: LiveEstimator) -> Array:
    """Net energies of all channels since the first start [channels], J."""
    snapshot = estimator.snapshot("end")
    assert snapshot is not None
    return snapshot.lifetime.net
