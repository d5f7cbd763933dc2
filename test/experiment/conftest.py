"""Fixtures of the experiment tests."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from ur_energy_model.experiment.design_problem import DesignProblem, DesignRequest
from ur_energy_model.model.robots import load_robot

Motion = tuple[np.ndarray, np.ndarray, np.ndarray]


@pytest.fixture(scope="session")
def problem() -> DesignProblem:
    return DesignProblem(DesignRequest(load_robot("ur5e")))


@pytest.fixture
def motion() -> Motion:
    random = np.random.default_rng(1)
    return (
        random.uniform(-2, 2, (30, 6)),
        random.uniform(-4, 4, (30, 6)),
        random.uniform(-20, 20, (30, 6)),
    )


def assert_gradient(
    function: Callable[..., tuple[float, Motion]], motion: Motion, tolerance: float = 1e-4
) -> None:
    """Compare a gradient with central differences along random directions."""
    gradient = function(*motion)[1]
    random = np.random.default_rng(2)
    for which in range(3):
        direction = random.normal(size=motion[which].shape)
        step = 1e-5
        values = []
        for sign in (1, -1):
            moved = list(motion)
            moved[which] = moved[which] + sign * step * direction
            values.append(function(*moved)[0])
        numeric = (values[0] - values[1]) / (2 * step)
        analytic = float(np.sum(gradient[which] * direction))
        assert analytic == pytest.approx(numeric, rel=tolerance, abs=1e-6)
