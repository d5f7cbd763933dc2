"""Gravity vectors of mounting angles are those of UR's controller."""

from __future__ import annotations

import numpy as np
import pytest

from ur_energy_model.model.setup import Payload, Setup, gravity_of_mounting

HALF = 9.82 / np.sqrt(2)


@pytest.mark.parametrize(
    ("tilt", "rotation", "gravity"),
    [
        (0, 0, (0, 0, -9.82)),
        (0, 90, (0, 0, -9.82)),
        (180, 0, (0, 0, 9.82)),
        # URScript's set_gravity([0, 9.82, 0]), "mounted on the wall", is the negative of gravity.
        (90, 0, (0, -9.82, 0)),
        (90, 90, (-9.82, 0, 0)),
        (45, 0, (0, -HALF, -HALF)),
        # As recorded on an arm on a 45 degree stand: gravity 0, 6.94, -6.94.
        (45, 180, (0, HALF, -HALF)),
    ],
)
def test_gravity_of_known_mountings(tilt, rotation, gravity) -> None:
    found = gravity_of_mounting(np.radians(tilt), np.radians(rotation))
    assert np.allclose(found, gravity, atol=1e-9)


def test_gravity_keeps_its_magnitude() -> None:
    for tilt, rotation in np.random.default_rng(0).uniform(-np.pi, np.pi, (20, 2)):
        assert np.linalg.norm(gravity_of_mounting(tilt, rotation, 9.81)) == pytest.approx(9.81)


def test_default_setup_is_upright_without_payload() -> None:
    setup = Setup()
    assert np.array_equal(setup.gravity, [0, 0, -9.82])
    assert setup.payload.mass == 0
    assert not Payload().inertia.any()
