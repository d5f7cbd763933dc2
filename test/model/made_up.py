# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""A model with made-up values, and motions for it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ur_energy_model.model.drives import BusModel, JointModel
from ur_energy_model.model.energy_model import EnergyModel, LinkTensors
from ur_energy_model.model.friction import LAWS, Friction
from ur_energy_model.model.robots import load_robot
from ur_energy_model.model.setup import Payload, Setup

ROBOT = load_robot("ur5e")
N = 6


def made_up_model() -> EnergyModel:
    random = np.random.default_rng(0)
    laws = [
        "power_flow",
        "stribeck",
        "power_load",
        "coulomb_viscous",
        "sign",
        "temperature_linear",
    ]
    joints = []
    for j, name in enumerate(laws):
        law = LAWS[name]
        root = random.normal(0, 1e-3, (1 + len(law.parameters),) * 2)
        parameters = {p: float(random.uniform(1e-4, 1e-2)) for p in law.parameters}
        joints.append(
            JointModel(
                ROBOT.joint_names[j],
                101.0,
                1.9,
                0.1,
                0.3,
                0.098,
                Friction(law, parameters, law.default_shape, None, (20.0, 40.0), 1e-3),
                std={"torque_constant": 1e-3, **dict.fromkeys(parameters, 1e-4)},
                source={
                    "torque_constant": "current",
                    **dict.fromkeys(parameters, "current"),
                },
                current_covariance=root @ root.T,
                current_residual=0.02,
                friction_reason="made up: for a test",
            )
        )
    bus = BusModel(
        "physical",
        25.0,
        np.full(N, 0.2),
        np.zeros(N),
        std={"standby": 0.5, "driver": 0.01},
        errors=random.normal(0, 1e-3, (3, 2 + 3 * N)),
        mode_power={"idle": 12.5},
        residual=1.5,
        source="bus_power",
        reason="made up",
    )
    setup = Setup(np.array([0.0, 6.94, -6.94]), Payload(1.2, np.array([0.0, 0.01, 0.1])))
    return EnergyModel(
        "ur5e",
        setup,
        "estimated",
        tuple(joints),
        bus,
        fit=({"bag": "a", "torque": None},),
        provenance={"date": "today", "serial": None},
        current_delay=1.2e-3,
    )


def motion(samples: int = 50) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(1)
    return tuple(random.uniform(-1, 1, (samples, N)) for _ in range(3))  # type: ignore[return-value]


def with_tensors() -> EnergyModel:
    values = np.array([np.diag([0.01, 0.02, 0.02 + 1e-3 * j]) for j in range(N)])
    return replace(
        made_up_model(), link_tensors=LinkTensors(values, np.full((N, 3, 3), 1e-3))
    )
