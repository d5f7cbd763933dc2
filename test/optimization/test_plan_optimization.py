"""Plans of several moves keep their stops, path and duration, and take less energy."""

from __future__ import annotations

import numpy as np
import pytest

from test.optimization.hand_made import HOME, sampled
from test.optimization.simulated_cycle import arm_model
from ur_energy_model.energy.prediction import predict_energy
from ur_energy_model.errors import InputError
from ur_energy_model.experiment.cycle_exports import trajectory_points
from ur_energy_model.optimization.plan_optimization import LONGEST, optimize_moves
from ur_energy_model.trajectory.motions import move
from ur_energy_model.trajectory.plan import Plan

MODEL = arm_model()
AWAY = HOME + np.array([0.9, -0.2, 0.3, 0.1, 0.0, 0.8])
STOP = 0.6


def there_and_back() -> Plan:
    """Two fast moves with a stop between them, both with triangular speed."""
    there, back = (sampled(move(a, b, 3.0, 2.5)) for a, b in ((HOME, AWAY), (AWAY, HOME)))
    for part in (there, back):
        part[3][[0, -1]] = 0.0
    time = np.concatenate([there[0], back[0] + there[0][-1] + STOP])
    q, qd, qdd = (np.concatenate(pair) for pair in zip(there[1:], back[1:], strict=True))
    return Plan(time, q, qd, qdd)


def test_less_energy_with_the_same_stops_path_and_duration() -> None:
    plan = there_and_back()
    motion = optimize_moves(MODEL, plan)
    new = trajectory_points(motion)
    assert new.duration == pytest.approx(plan.duration, abs=1e-6)
    before, after = (predict_energy(MODEL, each).total for each in (plan, new))
    assert after < 0.995 * before
    rest = 0.5 * plan.duration
    q, qd, _ = motion.sample(np.array([0.0, rest, plan.duration]))
    np.testing.assert_allclose(q, [HOME, AWAY, HOME], atol=1e-4)
    assert np.abs(qd).max() < 1e-6
    q = motion.sample(np.linspace(0.0, rest, 200))[0]
    share = (q - HOME) @ (AWAY - HOME) / np.sum((AWAY - HOME) ** 2)
    np.testing.assert_allclose(q, HOME + share[:, None] * (AWAY - HOME), atol=1e-4)


def test_plans_that_cannot_be_optimized_are_refused() -> None:
    plan = there_and_back()
    assert plan.qd is not None
    with pytest.raises(InputError, match="rest"):
        optimize_moves(MODEL, Plan(plan.time, plan.q, plan.qd + 0.1))
    still = Plan(np.array([0.0, 1.0]), np.stack([HOME, HOME]))
    with pytest.raises(InputError, match="does not move"):
        optimize_moves(MODEL, still)
    with pytest.raises(InputError, match="stops"):
        optimize_moves(MODEL, Plan(np.array([0.0, 2 * LONGEST]), np.stack([HOME, AWAY])))
