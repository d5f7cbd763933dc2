# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Energy of planned trajectories."""

from __future__ import annotations

import numpy as np
import pytest

from test.energy.known_arm import known_model
from ur_energy_model.energy.prediction import predict_energy
from ur_energy_model.errors import InputError
from ur_energy_model.trajectory.plan import Plan


def quintic(points: int, derivatives: int = 2) -> Plan:
    """A rest-to-rest motion of 2 s through `points` points of one quintic."""
    time = np.linspace(0.0, 2.0, points)
    s = time / 2.0
    reach = np.array([1.0, -0.5, 0.8, 0.3, -0.2, 0.6])
    q = np.outer(10 * s**3 - 15 * s**4 + 6 * s**5, reach)
    qd = np.outer((30 * s**2 - 60 * s**3 + 30 * s**4) / 2.0, reach)
    qdd = np.outer((60 * s - 180 * s**2 + 120 * s**3) / 4.0, reach)
    return Plan(
        time, q, qd if derivatives > 0 else None, qdd if derivatives > 1 else None
    )


def test_energy_is_the_integral_of_the_predicted_power() -> None:
    model = known_model()
    dense = quintic(2001)
    assert dense.qd is not None
    assert dense.qdd is not None
    split = model.predict(dense.q, dense.qd, dense.qdd)
    found = predict_energy(model, quintic(3))
    assert found.total == pytest.approx(
        np.trapezoid(split.total_power, dense.time), rel=1e-4
    )
    each = np.trapezoid(split.electrical_power, dense.time, axis=0)
    assert found.electrical == pytest.approx(each, rel=1e-3, abs=0.01)
    assert found.peak_power == pytest.approx(split.total_power.max(), rel=1e-3)
    assert found.duration == 2.0
    for derivatives in (0, 1):
        other = predict_energy(model, quintic(21, derivatives)).total
        assert other == pytest.approx(found.total, rel=1e-3)


def test_deviation_includes_standby_and_motors() -> None:
    model = known_model()
    still = Plan(np.array([0.0, 10.0]), np.zeros((2, 6)))
    found = predict_energy(model, still)
    held = model.predict(*np.zeros((3, 1, 6)))
    shares = held.current_std[0] / np.maximum(np.abs(held.current[0]), 1e-9)
    # copper loss is of the current squared
    motors = 2 * shares * held.copper_loss[0] * 10.0
    assert found.electrical_std == pytest.approx(motors, rel=1e-6)
    standby = np.hypot(0.5, model.sessions.standby) * 10.0
    assert found.total_std == pytest.approx(
        np.hypot(standby, np.linalg.norm(motors)), rel=1e-6
    )
    assert predict_energy(known_model(), quintic(3)).electrical_std.min() > 0


def test_impossible_plans_are_refused() -> None:
    model = known_model()
    plan = quintic(21)
    for scale, problem in (
        (90.0, "shoulder_pan_joint: reaches 90 rad"),
        (5.0, "rad/s.*slower"),
    ):
        with pytest.raises(InputError, match=problem):
            predict_energy(model, Plan(plan.time, scale * plan.q))
    with pytest.raises(InputError, match="has 2 joints"):
        predict_energy(model, Plan(np.array([0.0, 1.0]), np.zeros((2, 2))))
    with pytest.raises(InputError, match="speed scaling"):
        predict_energy(model, quintic(3), speed_scaling=0.0)
