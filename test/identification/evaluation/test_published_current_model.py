"""The current model and errors of Clochiatti et al. on an arm whose constants are known."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from test.identification.exact_arm import TORQUE_CONSTANT, ExactArm, write_bag
from ur_energy_model.identification.comparison import recorded_motions
from ur_energy_model.identification.pipeline import IdentificationOptions, identify
from ur_energy_model.identification.published_current_model import (
    PublishedCurrentModel,
    current_columns,
    fit_current_model,
    published_errors,
)


def test_columns_of_the_four_quadrants() -> None:
    """Power flows to the load where speed and load agree; the sign is that of the speed."""
    qd = np.array([[0.5], [0.5], [-0.5], [-0.5]])
    load = np.array([[10.0], [-10.0], [-10.0], [10.0]])
    columns = current_columns(load, qd, np.array([100.0]))[:, 0]
    np.testing.assert_allclose(columns[:, 0], [0.1, -0.1, -0.1, 0.1])
    np.testing.assert_allclose(columns[:, 1], [50.0, 50.0, -50.0, -50.0])
    np.testing.assert_allclose(columns[:, 2], [1.0, 0.0, -1.0, 0.0])
    np.testing.assert_allclose(columns[:, 3], [0.0, 1.0, 0.0, -1.0])
    model = PublishedCurrentModel(*(np.array([value]) for value in (0.1, 4e-4, 0.06, 0.04)))
    current = columns @ model.coefficients[0]
    np.testing.assert_allclose(current[0], (0.1 + 4e-4 * 50.0 + 0.06) / 0.1)
    np.testing.assert_allclose(current[1], (-0.1 + 4e-4 * 50.0 + 0.04) / 0.1)
    again = PublishedCurrentModel.from_coefficients(model.coefficients)
    assert again.coulomb_reverse == pytest.approx(0.04)


def test_finds_the_constants_and_counts_every_sample(tmp_path: Path) -> None:
    arm = ExactArm(current_noise=0.05)
    bags = [arm.bag(tmp_path, f"bag_{seed}", seconds=40.0, seed=seed) for seed in (1, 2)]
    model = identify(bags[:1], arm.robot, IdentificationOptions(friction="power_flow")).model
    found = fit_current_model(model, bags[0])
    np.testing.assert_allclose(found.torque_constant, TORQUE_CONSTANT, rtol=0.05)
    np.testing.assert_allclose(found.viscous / arm.size, 4e-4, rtol=0.1)
    np.testing.assert_allclose(found.coulomb_direct / arm.size, 0.06, rtol=0.15)
    errors = published_errors(model, bags[1], found)
    samples = sum(len(part) for part in recorded_motions(bags[1], 5.0))
    assert errors.current.count.tolist() == [samples] * 6
    # What is left is the noise, which a filter would have taken out.
    noise = 0.05 * arm.size**0.7
    np.testing.assert_allclose(errors.current.rms, noise, rtol=0.1)
    assert (errors.current.largest > 3 * noise).all()
    assert (np.abs(errors.current.mean) < 0.02).all()
    assert (errors.own_current.r2 > 0.98).all()


def test_recorded_samples_are_neither_filtered_nor_thinned(tmp_path: Path) -> None:
    recorded = ExactArm().record(40.0, seed=3)
    noisy = {**recorded.columns}
    noisy["actual_current"] = recorded["actual_current"] + 0.0
    noisy["actual_current"][1000] += 7.0
    bag = write_bag(tmp_path / "bag", replace(recorded, columns=noisy))
    parts = list(recorded_motions(bag, 5.0))
    time = np.concatenate([part.time for part in parts])
    np.testing.assert_array_equal(time, recorded.time)
    current = np.concatenate([part.current for part in parts])
    np.testing.assert_array_equal(current, noisy["actual_current"])
    assert np.isfinite(np.concatenate([part.qdd for part in parts])).all()
