"""Plans made of measured positions."""

from __future__ import annotations

import numpy as np
import pytest

from test.energy.known_arm import ROBOT, known_model
from ur_energy_model.energy.prediction import predict_energy
from ur_energy_model.trajectory.plan import Plan, smooth_plan

LIMIT = ROBOT.max_acceleration


def swing(rate: float, noise: float = 0.0, jitter: float = 0.0, velocities: float | None = None):
    """Four seconds of smooth swings of all joints that start and end at rest."""
    random = np.random.default_rng(2)
    time = np.arange(round(4 * rate) + 1) / rate
    time[1:-1] += jitter / rate * random.uniform(-1, 1, len(time) - 2)
    reach = np.array([0.5, -0.4, 0.6, 0.3, -0.3, 0.5])
    q = np.outer((1 - np.cos(np.pi * time)) / 2, reach)
    qd = np.outer(np.pi * np.sin(np.pi * time) / 2, reach)
    q += noise * random.standard_normal(q.shape)
    if velocities is None:
        return Plan(time, q)
    return Plan(time, q, qd + velocities * random.standard_normal(qd.shape))


TRUE = predict_energy(known_model(), swing(100.0)).total


@pytest.mark.parametrize("rate", [5.0, 25.0, 125.0, 500.0])
def test_planned_motions_stay_as_they_are(rate):
    plan = swing(rate)
    assert smooth_plan(plan, LIMIT) == (plan, None)


def test_rounded_positions_at_a_low_rate_are_harmless():
    plan = swing(25.0, noise=1e-5)
    assert smooth_plan(plan, LIMIT)[1] is None
    assert predict_energy(known_model(), plan).total == pytest.approx(TRUE, rel=0.01)


@pytest.mark.parametrize(
    ("rate", "noise", "jitter"), [(500.0, 1e-4, 0.0), (500.0, 3e-5, 0.0), (100.0, 3e-4, 0.2)]
)
def test_measured_positions_are_smoothed_with_a_warning(rate, noise, jitter):
    model = known_model()
    measured = swing(rate, noise, jitter)
    plan, warning = smooth_plan(measured, LIMIT)
    assert warning is not None
    assert "positions look measured" in warning
    assert predict_energy(model, plan).total == pytest.approx(TRUE, rel=0.02)
    assert abs(predict_energy(model, measured).total / TRUE - 1) > abs(
        predict_energy(model, plan).total / TRUE - 1
    )


def test_measured_velocities_are_replaced_by_derivatives():
    plan, warning = smooth_plan(swing(500.0, velocities=0.01), LIMIT)
    assert warning is not None
    assert "velocities look measured" in warning
    assert plan.qd is None
    assert predict_energy(known_model(), plan).total == pytest.approx(TRUE, rel=0.01)


def test_a_trapezoid_is_not_taken_for_noise():
    time = np.linspace(0.0, 3.0, 1501)
    speed = np.clip(np.minimum(time, 3.0 - time), 0.0, 0.8)
    q = np.outer(np.cumsum(speed) * 0.002, np.ones(6))
    plan = Plan(time, q)
    assert smooth_plan(plan, LIMIT)[1] is None
