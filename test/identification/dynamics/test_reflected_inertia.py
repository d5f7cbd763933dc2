"""Motor against reducer, and which tensors a body can have."""

from __future__ import annotations

import numpy as np
import pytest

from ur_energy_model.identification.physical_consistency import possible_inertia
from ur_energy_model.identification.reflected_inertia import expected_inertia, split_inertia
from ur_energy_model.model.robots import load_robot


def test_splits_as_the_paper_does() -> None:
    """Clochiatti et al. 2024: reducers 1.07e-4 and 0.091e-4 kg m^2; figures motor side."""
    robot = load_robot("ur5e")
    motor = np.array([6.4e-5] * 3 + [1.2e-5] * 3)
    reflected = 101**2 * (motor + np.array([1.07e-4] * 3 + [0.091e-4] * 3))
    split = split_inertia(reflected, robot)
    assert np.allclose(split.rotor, motor)
    assert np.allclose(split.motor_side * 101**2, reflected)


def test_an_unknown_reducer_leaves_the_motor_unknown() -> None:
    split = split_inertia(np.ones(6), load_robot("ur10e"))
    assert np.isnan(split.rotor[0])
    assert np.isfinite(split.rotor[2])


def test_possible_tensors_stay() -> None:
    tensor = np.array([[3.0, 0.2, 0.1], [0.2, 2.5, -0.3], [0.1, -0.3, 2.0]])
    assert np.allclose(possible_inertia(tensor), tensor)


@pytest.mark.parametrize("seed", range(5))
def test_others_become_possible(seed: int) -> None:
    random = np.random.default_rng(seed)
    asked = random.normal(0, 1, (3, 3))
    found = possible_inertia(asked + asked.T)
    one, two, three = np.linalg.eigvalsh(found)
    assert one >= -1e-12
    assert one + two >= three - 1e-12
    assert np.allclose(possible_inertia(found), found)


def test_what_is_expected_of_a_motor_inertia() -> None:
    known = expected_inertia(load_robot("ur5e"))
    np.testing.assert_allclose(known.value, load_robot("ur5e").reflected_inertia)
    rated = expected_inertia(load_robot("ur10"))
    assert (np.abs(rated.value - load_robot("ur10e").reflected_inertia) < 2 * rated.std).all()
    unrated = expected_inertia(load_robot("gen3"))
    for believed in (known, rated, unrated):
        assert (believed.value > 0).all()
        assert (believed.std > 0).all()
        assert believed.unknown.all()
    assert (known.std / known.value < rated.std / rated.value).all()
