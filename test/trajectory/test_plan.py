"""Planned trajectories: interpolation, and what no plan may be."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.interpolate import BPoly, CubicHermiteSpline, CubicSpline

from ur_energy_model.errors import InputError
from ur_energy_model.trajectory.plan import CHUNK, LONGEST, MOST_POINTS, Plan
from ur_energy_model.typing import Array


def random_points(points: int) -> tuple[Array, Array, Array, Array]:
    rng = np.random.default_rng(points)
    time = 7.0 + np.cumsum(rng.uniform(0.05, 0.5, points))
    return time, *rng.normal(size=(3, points, 6))


@pytest.mark.parametrize("points", [2, 3, 12])
def test_the_motion_is_the_polynomial_of_the_points(points: int) -> None:
    time, q, qd, qdd = random_points(points)
    knots = time - time[0]
    derivatives = np.stack([q, qd, qdd], axis=1)
    for plan, curve in (
        (Plan(time, q), CubicSpline(knots, q, bc_type="clamped")),
        (Plan(time, q, qd), CubicHermiteSpline(knots, q, qd)),
        (Plan(time, q, qd, qdd), BPoly.from_derivatives(knots, derivatives)),
    ):
        (motion,) = plan.motion()
        assert motion.time[-1] == pytest.approx(knots[-1])
        assert np.diff(motion.time).max() <= 0.008 + 1e-12
        assert motion.q == pytest.approx(curve(motion.time), abs=1e-9)
        assert motion.qd == pytest.approx(curve.derivative(1)(motion.time), abs=1e-9)
        inner = slice(0, -1)  # scipy extrapolates at the very last point
        assert motion.qdd[inner] == pytest.approx(curve.derivative(2)(motion.time[inner]), abs=1e-7)


def test_a_long_motion_comes_in_parts_without_seams() -> None:
    plan = Plan(np.array([0.0, 30.0, 60.0]), np.outer([0.0, 1.0, 0.0], np.ones(6)))
    parts = list(plan.motion())
    assert len(parts) > 1
    assert max(len(part.time) for part in parts) == CHUNK
    time = np.concatenate([part.time for part in parts])
    assert np.allclose(np.diff(time), time[-1] / (len(time) - 1))


@pytest.mark.parametrize(
    ("time", "problem"),
    [
        ([0.0, 2147483647.0], "lasts 2.14748e.09 s.*in parts"),
        ([-1e308, 1e308], "lasts inf s"),
        ([0.0, np.nextafter(LONGEST, np.inf)], "longer than 3600 s"),
        ([0.0, np.inf], "not finite"),
        ([0.0, np.nan], "not finite"),
        ([1.0, 0.0], "does not increase at point 1"),
        ([0.0, 5e-324], "does not increase at point 1"),
    ],
)
def test_impossible_times_are_refused(time: list[float], problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        Plan(np.asarray(time, dtype=np.float64), np.zeros((2, 6)))


@pytest.mark.parametrize("value", [np.nan, -np.inf, 1e300])
@pytest.mark.parametrize("column", [0, 1, 2])
def test_impossible_values_are_refused(value: float, column: int) -> None:
    parts = np.zeros((3, 2, 6))
    parts[column, 1, 3] = value
    with pytest.raises(InputError, match="impossible"):
        Plan(np.array([0.0, 1.0]), *parts)


def test_too_many_points_are_refused() -> None:
    count = MOST_POINTS + 1
    with pytest.raises(InputError, match="more than 500000 points"):
        Plan(np.linspace(0.0, 500.0, count), np.zeros((count, 1)))
