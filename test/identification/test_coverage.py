"""Whether intervals are as wide as they should be: many arms, identified and held against truth."""

from __future__ import annotations

import numpy as np
import pytest

from test.identification.exact_arm import TORQUE_CONSTANT, ExactArm, write_bag
from ur_energy_model.energy.alignment import SpeedAlignment
from ur_energy_model.energy.gaps import bridged_steps
from ur_energy_model.energy.meter import CONFIDENCE
from ur_energy_model.energy.recorded import estimate
from ur_energy_model.identification.pipeline import identify

ARMS = 10


def some_arm(seed: int) -> ExactArm:
    """An arm from the spread that the priors speak of."""
    random = np.random.default_rng([seed, 5])
    return ExactArm(
        torque_constant=TORQUE_CONSTANT * random.normal(1.0, 0.05, 6),
        resistance_factor=random.uniform(0.5, 1.2),
        driver=random.normal(0.25, 0.05),
        standby=random.uniform(22.0, 34.0),
        current_delay=random.normal(0.0, 1e-3),
    )


@pytest.fixture(scope="module")
def deviations(tmp_path_factory: pytest.TempPathFactory) -> dict[str, np.ndarray]:
    """Errors over standard deviations by quantity [arms, joints or 1]."""
    found: dict[str, list[np.ndarray]] = {"torque constant": [], "energy": [], "sum": []}
    for seed in range(ARMS):
        arm, folder = some_arm(seed), tmp_path_factory.mktemp("arm")
        bag = arm.bag(folder, "fit", seconds=40.0, rate=250.0, seed=seed)
        recording = arm.record(30.0, rate=250.0, seed=seed + 100)
        model = identify([bag], arm.robot, friction="power_flow").model
        summary = estimate(model, write_bag(folder / "other", recording))
        qd = SpeedAlignment(arm.current_delay)(
            bridged_steps(recording.time), recording["actual_qd"]
        )
        current = recording["actual_current"]
        copper = arm.resistance_factor * arm.robot.winding_resistance * current**2
        shaft = arm.torque_constant * arm.robot.gear_ratio * qd * current
        truth = np.trapezoid(copper + shaft, recording.time, axis=0)
        found["energy"].append((summary.electrical - truth) / summary.electrical_std)
        total = summary.electrical.sum() - truth.sum()
        found["sum"].append(np.array([total / summary.electrical_total_std]))
        found["torque constant"].append(
            np.array([
                (joint.torque_constant - true) / joint.std["torque_constant"]
                for joint, true in zip(model.joints, arm.torque_constant, strict=True)
            ])
        )  # fmt: skip
    return {name: np.array(values) for name, values in found.items()}


@pytest.mark.parametrize("quantity", ["torque constant", "energy", "sum"])
def test_intervals_cover_the_truth(deviations: dict[str, np.ndarray], quantity: str) -> None:
    z = deviations[quantity]
    assert (np.abs(z) < CONFIDENCE).mean() >= 0.9
    assert np.sqrt(np.square(z).mean()) > 0.4  # nor are they wide for safety's sake
