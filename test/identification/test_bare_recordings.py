"""Position, speed, current and power alone, of arms whose rotor inertia nobody knows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from test.identification.conftest import made_up_recording
from test.identification.exact_arm import write_bag
from ur_energy_model.identification.pipeline import IdentificationOptions, identify
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.robots import load_robot

ARMS = ("gen3", "fr3", "ur5", "ur10")
INERTIA = {6: [1.9, 2.0, 1.8, 0.25, 0.2, 0.22], 7: [0.6, 0.5, 0.4, 0.35, 0.3, 0.2, 0.15]}
STANDBY = 30.0
LAW = IdentificationOptions(friction="coulomb_viscous")


def model_of(name: str, folder: Path, *, noise: float, seed: int = 1) -> EnergyModel:
    """The model identified from 40 s; torque constant 0.1 N m/A times 101 over the gear ratio."""
    robot = load_robot(name)
    made = made_up_recording(
        robot,
        reflected_inertia=np.array(INERTIA[robot.dof]),
        noise=noise,
        coulomb=2.0,
        viscous=1.5,
        seed=seed,
    )
    scale = 101.0 / robot.gear_ratio  # made-up recordings have 0.1 N m/A on the motor's side
    current = made["actual_current"] / scale
    conversion = 0.1 * 101.0 * made["actual_qd"] * current
    watts = STANDBY + (0.5 * current**2 + conversion + 0.25 * np.abs(current)).sum(axis=1)
    watts += noise * np.random.default_rng(seed).standard_normal(len(watts))
    columns = {
        "actual_q": made["actual_q"],
        "actual_qd": made["actual_qd"],
        "actual_current": current,
        "actual_robot_voltage": np.full(len(watts), 48.0),
        "actual_robot_current": watts / 48.0,
    }
    bag = write_bag(folder / f"{name}_{seed}", replace(made, columns=columns))
    return identify([bag], name, LAW).model


def scores(model: EnergyModel) -> tuple[np.ndarray, np.ndarray]:
    """Errors of torque constants and inertias over their standard deviations [n]."""
    inertia = np.array(INERTIA[model.dof])
    out = []
    for quantity, truth in (("torque_constant", None), ("reflected_inertia", inertia)):
        value = np.array([getattr(joint, quantity) for joint in model.joints])
        std = np.array([joint.std[quantity] for joint in model.joints])
        ratio = np.array([joint.gear_ratio for joint in model.joints])
        out.append((value - (0.1 * 101.0 / ratio if truth is None else truth)) / std)
    return out[0], out[1]


@pytest.mark.parametrize("name", ARMS)
def test_without_noise_the_priors_still_count(name: str, tmp_path: Path) -> None:
    """Exact data once outweighed the priors beyond floating point: constants were 40 % wrong."""
    model = model_of(name, tmp_path, noise=0.0)
    constants = np.array([joint.torque_constant * joint.gear_ratio for joint in model.joints])
    np.testing.assert_allclose(constants[:-1], 10.1, rtol=0.03)
    assert model.bus.standby == pytest.approx(STANDBY, abs=1.0)


def test_intervals_of_inertia_and_torque_constant_are_honest(tmp_path: Path) -> None:
    constants, inertias = [], []
    for name in ("gen3", "ur5"):
        for seed in (21, 22, 23):
            for found, score in zip(
                (constants, inertias),
                scores(model_of(name, tmp_path, noise=0.2, seed=seed)),
                strict=True,
            ):
                found.append(score)
    for found in (constants, inertias):
        inside = np.abs(np.concatenate(found)) < 1.96
        assert inside.mean() > 0.9


def test_bus_power_shows_the_inertia_of_a_joint_that_carries_nothing(tmp_path: Path) -> None:
    """The last link of Gen3 needs no torque: only bus power gives its torque constant."""
    for seed in (31, 32):
        last = model_of("gen3", tmp_path, noise=0.2, seed=seed).joints[-1]
        assert last.source["reflected_inertia"] == "current"
        assert last.reflected_inertia == pytest.approx(INERTIA[7][-1], rel=0.15)
