# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Arms of every type that no model has seen, and how a generic model does on them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from tools.generic_models import ASSUMED_CONSTANT, ASSUMED_RESISTANCE
from ur_energy_model.consistency.controller_constants import ControllerConstantsFit
from ur_energy_model.demo.results import true_energy
from ur_energy_model.energy.calculator import EnergyCalculator
from ur_energy_model.energy.energy_summary import EnergySummary, summarise
from ur_energy_model.energy.meter import CONFIDENCE, EnergyMeter
from ur_energy_model.energy.powers import PowerOptions
from ur_energy_model.model.arm_at_hand import with_controller_constants
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.generic import generic_model
from ur_energy_model.model.robots import RobotDescription, load_robot
from ur_energy_model.simulation.arm_options import ArmOptions
from ur_energy_model.simulation.parameters import motor_constants
from ur_energy_model.simulation.simulated_arm import SimulatedArm, record_arm
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.trajectory.named_motions import Planner, named_motion
from ur_energy_model.typing import Array

REAL = (
    "ur5e_pick_place_50hz_24s",
    "ur5e_streamed_move_500hz_6s",
    "ur5e_other_day_10hz_21s",
    "ur5e_other_arm_125hz_11s",
    "ur3e_moves_payload_1.07kg_25hz_36s",
)
"""Recordings of real arms with bus power."""
LEAST_SHARE = 0.002
"""Of the supply's energy; joints with less stand still, and noise is most of what they take."""


@dataclass(frozen=True)
class Trial:
    """Errors over standard deviations (joints, supply), errors and half widths in percent."""

    joints: Array
    joint_width: Array
    joint_error: Array
    supply: float
    width: float
    error: float
    anchored: bool


def unseen_robot(name: str, seed: int) -> RobotDescription:
    """The type with motor constants drawn where its file has none (not those of the models)."""
    robot = load_robot(name)
    random = np.random.default_rng([seed, 8])
    assumed = motor_constants(robot, robot.max_torque)
    rated, size = np.unique(robot.max_torque, return_inverse=True)

    def drawn(name: str, known: Array, spread: float) -> Array:
        factor = np.maximum(1.0 + spread * random.standard_normal(len(rated)), 0.1)[size]
        return np.where(np.isfinite(known), known, factor * assumed[name])

    return replace(
        robot,
        torque_constant=drawn("torque_constant", robot.torque_constant, ASSUMED_CONSTANT),
        winding_resistance=drawn(
            "winding_resistance", robot.winding_resistance, ASSUMED_RESISTANCE
        ),
    )


def record(
    name: str, seed: int, seconds: float, folder: Path
) -> tuple[Telemetry, dict[str, Any]]:
    robot = load_robot(name)
    if seed % 2:
        motion = named_motion("pick_and_place", robot)
    else:
        planner = Planner(robot)
        motion = planner.chain_through(planner.random_points(seed))
    truth = folder / f"{name}_{seed}.json"
    options = ArmOptions(session=1 + seed % 20)
    arm = SimulatedArm(
        unseen_robot(name, seed), motion=motion, seed=seed, truth=truth, options=options
    )
    telemetry = record_arm(arm, seconds)
    arm.close()
    return telemetry, true_energy(
        truth, float(telemetry.time[0]), float(telemetry.time[-1])
    )


def with_stated(model: EnergyModel, telemetry: Telemetry) -> EnergyModel:
    """The model with the torque constants that a recording states."""
    fit = ControllerConstantsFit(model.description())
    fit.accumulate(telemetry)
    return with_controller_constants(model, fit.result())


def energies(
    name: str,
    telemetry: Telemetry,
    options: PowerOptions | None = None,
    *,
    stated: bool = False,
) -> EnergySummary:
    """By the generic model, with the torque constants that the recording states, or without."""
    model = generic_model(name)
    model = with_stated(model, telemetry) if stated else model
    calculator = EnergyCalculator(model, load_robot(name), options)
    meter = EnergyMeter(len(calculator.channels))
    measured = True
    batches = [telemetry.cut(slice(k, k + 500)) for k in range(0, len(telemetry), 500)]
    calculator.follow_session(batches)
    for table in filter(None, map(calculator, batches)):
        table.integrate(meter)
        measured &= table.bus_measured
    return summarise(calculator, meter, measured)


def compared(summary: EnergySummary, truth: dict[str, Any]) -> Trial:
    electrical = truth["electrical_energy"]
    bus = truth["bus_energy"]
    moved = electrical > LEAST_SHARE * bus
    error = (summary.electrical - electrical)[moved]
    std = summary.electrical_std[moved]
    true = electrical[moved]
    return Trial(
        error / std,
        100 * CONFIDENCE * std / true,
        100 * error / true,
        (summary.supply - bus) / summary.supply_std,
        100 * CONFIDENCE * summary.supply_std / bus,
        100 * (summary.supply / bus - 1),
        summary.session.anchored,
    )


def without_bus(telemetry: Telemetry) -> Telemetry:
    """The same samples from a controller that does not measure its supply."""
    bus = ("actual_robot_voltage", "actual_robot_current")
    columns = {
        name: values for name, values in telemetry.columns.items() if name not in bus
    }
    return Telemetry(telemetry.time, columns, telemetry.info)


def slowly(telemetry: Telemetry, rate: float) -> Telemetry:
    """The same recording at a lower rate [Hz]."""
    every = round(1.0 / (rate * float(np.median(np.diff(telemetry.time)))))
    return telemetry.select(np.arange(len(telemetry)) % every == 0)
