"""A cycle as one motion: moves at their times, rest between them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from test.optimization.hand_made import hand_made_cycle
from ur_energy_model.errors import InputError
from ur_energy_model.optimization.plan_optimization import new_motion, plan_at, recorded_motion


def test_both_motions_follow_their_moves_and_rest_between() -> None:
    optimized = hand_made_cycle()
    for motion, moves in (
        (recorded_motion(optimized.cycle), optimized.cycle.moves),
        (new_motion(optimized), optimized.moves),
    ):
        assert motion.duration == optimized.duration
        for move in moves:
            q, qd, _ = motion.sample(move.start + move.time[1:-1])
            np.testing.assert_allclose(q, move.q[1:-1], atol=1e-9)
            np.testing.assert_allclose(qd, move.qd[1:-1], atol=1e-9)
        q, qd, qdd = motion.sample(np.array([0.0, motion.duration]))
        np.testing.assert_allclose(q[0], q[1], atol=1e-6)
        assert not qd.any()
        assert not qdd[1].any()


def test_a_plan_has_a_point_per_controller_cycle() -> None:
    motion = new_motion(hand_made_cycle())
    plan = plan_at(motion, 500.0, "cycle")
    assert plan.duration == pytest.approx(motion.duration)
    np.testing.assert_allclose(np.diff(plan.time)[:-1], 0.002)


def test_small_jumps_between_moves_are_spread_and_large_ones_refused() -> None:
    optimized = hand_made_cycle()
    second = optimized.moves[1]

    def shifted(by: float) -> None:
        moved = replace(second, q=second.q + by)
        motion = new_motion(replace(optimized, moves=(optimized.moves[0], moved)))
        around = second.start + np.array([-1e-6, 1e-6])
        q = motion.sample(around)[0]
        np.testing.assert_allclose(q[0], q[1], atol=1e-5)

    shifted(1e-3)
    with pytest.raises(InputError, match="move 2"):
        shifted(0.05)
