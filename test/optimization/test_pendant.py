# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Paths are recognized, and energies of trapezoids are those of the motions."""

from __future__ import annotations

import numpy as np
import pytest

from test.energy.work_cycles import arm_model
from test.optimization.hand_made import FAST, HOME, ROBOT, sampled, straight_down
from ur_energy_model.energy.prediction import predict_energy
from ur_energy_model.optimization.path import PathDynamics, PathLimits
from ur_energy_model.optimization.programmed import fit_trapezoid, programmed_move
from ur_energy_model.optimization.typed_values import TrapezoidEnergies
from ur_energy_model.trajectory.motions import Trapezoid, move
from ur_energy_model.trajectory.plan import Plan

STEP = np.array([0.2, -0.5, 0.9, 0.0, 0.1, -0.3])


@pytest.mark.parametrize(
    ("speed", "acceleration", "late"), [(1.5, 3.0, 0.0), (3.0, 2.0, 0.0013)]
)
def test_a_trapezoid_is_recovered(speed: float, acceleration: float, late: float) -> None:
    """Also where the move starts between two samples, and where it never reaches its speed."""
    truth = Trapezoid(0.9, speed, acceleration)
    time = np.arange(0.0, truth.duration + 0.004, 0.002)
    _, speed, found = fit_trapezoid(time, truth.sample(time - late)[0])
    assert speed == pytest.approx(truth.peak, rel=2e-3)
    assert found == pytest.approx(acceleration, rel=5e-3)


@pytest.mark.parametrize("kind", ["moveJ", "moveL"])
def test_energies_of_many_trapezoids_are_those_of_their_motions(kind: str) -> None:
    """Sampled motions are predicted by another calculation; one pair of values is too fast."""
    made = move(HOME, HOME + STEP, *FAST) if kind == "moveJ" else straight_down(HOME, 0.2)
    time, q, qd, _ = sampled(made)
    programmed = programmed_move(time, q, ROBOT)
    model = arm_model()
    assert programmed is not None
    arm = PathDynamics(model, model.dynamics(), (time, q, qd))
    table = TrapezoidEnergies(programmed, arm, PathLimits.of_robot(ROBOT))
    speeds = np.array([0.1, 0.2, 0.5, 9.0])
    accelerations = np.array([0.3, 2.0, 1.0, 90.0])
    taken, energies = table(speeds, accelerations)
    assert not np.isfinite(energies[-1])
    for k in range(3):
        motion = programmed.motion(float(speeds[k]), float(accelerations[k]))
        assert taken[k] == pytest.approx(motion.duration)
        plan = Plan(*sampled(motion))
        exact = predict_energy(arm_model(capacitor=0.0), plan).total
        assert energies[k] == pytest.approx(exact, rel=5e-3)


def test_a_straight_tool_is_a_movel_with_its_length() -> None:
    time, q, _, _ = sampled(straight_down(HOME, 0.2))
    line = programmed_move(time, q, ROBOT)
    assert line is not None
    assert (line.kind, line.distance) == ("moveL", pytest.approx(0.2, abs=1e-6))
    slow = line.motion(0.05, 0.3)
    assert slow.duration == pytest.approx(0.2 / 0.05 + 0.05 / 0.3)
    end = slow.sample(np.array([slow.duration]))[0][0]
    np.testing.assert_allclose(end, q[-1], atol=1e-5)
    # nearly straight in joint space
    short_time, short, _, _ = sampled(straight_down(HOME, 0.02))
    found = programmed_move(short_time, short, ROBOT)
    assert found is not None
    assert (found.kind, found.distance) == ("moveL", pytest.approx(0.02, abs=1e-6))
    beside = programmed_move(*sampled(move(HOME, HOME + 0.02 * STEP, *FAST))[:2], ROBOT)
    assert beside is not None
    assert beside.kind == "moveJ"
    after, beyond, _, _ = sampled(move(q[-1], q[-1] + STEP, *FAST))
    corner = np.concatenate([q, beyond])
    assert (
        programmed_move(np.append(time, time[-1] + 0.002 + after), corner, ROBOT) is None
    )
