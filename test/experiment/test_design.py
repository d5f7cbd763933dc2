# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Designs pass every check, repeat with their seed, close gaps, and end in time."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest

from test.truth import first_fast
from ur_energy_model.errors import InputError, MotionRefusedError
from ur_energy_model.experiment import design as search
from ur_energy_model.experiment.design import (
    Design,
    descend,
    design_trajectory,
    make_design,
    minimised,
)
from ur_energy_model.experiment.design_problem import (
    DesignProblem,
    DesignRequest,
    gaps_among,
)
from ur_energy_model.experiment.limits import check
from ur_energy_model.files import config_file
from ur_energy_model.learning.learner import Learner
from ur_energy_model.model.geometry import TABLE, Wall
from ur_energy_model.model.model_file import load_model
from ur_energy_model.model.needs import Need
from ur_energy_model.model.robots import load_robot
from ur_energy_model.simulation.simulated_arm import SimulatedArm, record_arm
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.trajectory.fourier import load_trajectory
from ur_energy_model.trajectory.motions import Motion
from ur_energy_model.trajectory.named_motions import MotionLimits, Planner

ROBOT = load_robot("ur5e")
ARMS = (
    "ur3", "ur5", "ur10", "ur3e", "ur5e", "ur7e", "ur10e", "ur12e", "ur16e",
    "ur8long", "ur15", "ur18", "ur20", "ur30",
)  # fmt: skip
OPEN = (0.0, -1.5, 1.2, -1.3, -1.5, 0.0)
SHORT = ((3.0, 4.0, 15), (100.0, 8.0, 15), (3000.0, 16.0, 30))
"""Stages of descents that take a tenth of the time."""


def first_design(request: DesignRequest) -> Design:
    """The first of some descents that passes every check; rounding decides which."""
    problem = DesignProblem(request)
    for seed in range(20):
        start = problem.random_start(np.random.default_rng(seed))
        found = descend(problem, start)
        if found is not None:
            assert found[0] < problem.value(problem.trajectory(start))
            return make_design(problem, found[1], time.monotonic(), seed + 1)
    pytest.fail("none of twenty descents passes the checks")


def test_descents_repeat_and_end_well_conditioned_and_safe(monkeypatch):
    """Repetition is compared before the checks, whose outcome may depend on rounding."""
    monkeypatch.setattr(search, "_STAGES", ((3.0, 4.0, 8),))
    problem = DesignProblem(DesignRequest(load_robot("ur3e"), harmonics=2))
    starts = [problem.random_start(np.random.default_rng(seed)) for seed in (9, 9, 10)]
    ends = [minimised(problem, start) for start in starts]
    np.testing.assert_array_equal(ends[0], ends[1])
    assert np.abs(ends[0] - starts[0]).max() > 0.01
    assert np.abs(ends[0] - ends[2]).max() > 0.01
    monkeypatch.setattr(search, "_STAGES", SHORT)
    request = DesignRequest(ROBOT, harmonics=3, centre=OPEN)
    found = first_design(request)
    assert check(found.trajectory, DesignProblem(request).limits) == found.verdict
    assert found.verdict.clearance >= 0.03


@pytest.mark.parametrize("fixed", ["start", "centre"])
def test_requested_ends_and_centre_are_kept(monkeypatch, fixed):
    """By random motions, descents and hops; the series is written out here."""
    request = DesignRequest(ROBOT, harmonics=3, start=OPEN)
    if fixed == "centre":
        request = DesignRequest(ROBOT, harmonics=3, centre=OPEN)
    problem = DesignProblem(request)
    x = problem.random_start(np.random.default_rng(1))
    monkeypatch.setattr(search, "_STAGES", ((3.0, 4.0, 8),))
    moved = minimised(problem, x)
    hop = problem.centred(moved + 0.3 * np.random.default_rng(2).standard_normal(x.shape))
    for each in (x, moved, problem.within_joint_limits(hop)):
        found = problem.trajectory(each)
        order = np.arange(1, 4)
        ends = found.q0 - found.b.sum(axis=1)
        kept = ends if fixed == "start" else found.q0
        np.testing.assert_allclose(kept, OPEN, atol=1e-12)
        np.testing.assert_allclose(found.a @ order, 0.0, atol=1e-12)  # speed at the ends
        assert np.abs(found.b).max() > 0.001
        q, _, _ = found.sample(np.linspace(0.0, found.period, 200))
        assert (np.abs(q) <= 1.02 * problem.limits.max_position).all()


def test_processes_search_until_their_time_is_over():
    """A wall through the base of the arm leaves no free space."""
    request = DesignRequest(ROBOT, harmonics=2, centre=OPEN)
    design = design_trajectory(request, time_limit=90.0, starts=1, workers=1)
    assert design.verdict.passed
    walls = (
        TABLE,
        *(Wall("wall", np.array([sign, 0.0, 0.0]), 0.5) for sign in (1.0, -1.0)),
    )
    with pytest.raises(MotionRefusedError, match="--time-limit"):
        design_trajectory(
            replace(request, walls=walls), time_limit=1.0, starts=1, workers=1
        )


@pytest.mark.parametrize("arm", first_fast(ARMS, 4))
def test_shipped_trajectories_match_their_metadata(arm):
    trajectory = load_trajectory(config_file("excitation", f"{arm}.yaml"))
    assert trajectory.robot == arm
    problem = DesignProblem(DesignRequest(load_robot(arm)))
    verdict = check(trajectory, problem.limits)
    assert verdict.passed, verdict.problems
    recorded = trajectory.design
    assert verdict.clearance == pytest.approx(recorded["clearance"], abs=1e-6)
    assert problem.condition_number(trajectory) == pytest.approx(
        recorded["condition_number"], 1e-6
    )
    assert recorded["condition_number"] < 60


SLOW = Need(
    4, "speed", (0.4, 3.0), 1.8, "wrist_2_joint has not moved faster than 0.4 rad/s"
)


def test_gaps_of_single_joints_within_the_limits():
    cold = Need(None, "temperature", None, 2.0, "cold")
    load = Need(1, "load", None, 1.0, "load")
    first, second = gaps_among([cold, SLOW, load], ROBOT, "model.yaml")
    assert (first.joint, first.low) == (4, 0.4)
    assert first.high <= 0.9 * ROBOT.max_velocity[4]
    assert (second.joint, second.low) == (1, 0.0)
    with pytest.raises(InputError, match="lacks nothing"):
        gaps_among([cold], ROBOT, "model.yaml")
    with pytest.raises(InputError, match="not a model of ur5e"):
        gaps_among([replace(SLOW, joint=6)], ROBOT, "model.yaml")


def learn(learner: Learner, motion: Motion, seconds: float, offset: float = 0.0) -> None:
    """A recording of the arm at a reduced rate."""
    batch = record_arm(
        SimulatedArm(replace(ROBOT, rate=125.0), motion=motion, seed=5), seconds
    )
    for k in range(0, len(batch), 625):
        part = batch.cut(slice(k, k + 625))
        learner.update(Telemetry(part.time + offset, part.columns, part.info))
        learner.step()
    learner.finish()
    learner.attempts()


@pytest.mark.truth
def test_a_design_for_a_gap_spends_time_in_it(monkeypatch):
    monkeypatch.setattr(search, "_STAGES", SHORT)
    gaps = gaps_among([SLOW], ROBOT, "model.yaml")
    design = first_design(
        DesignRequest(ROBOT, harmonics=3, gaps=gaps, objective="energy")
    )
    (entry,) = design.trajectory.design["for_gap"]
    assert entry["joint"] == ROBOT.joint_names[gaps[0].joint]
    assert entry["seconds"] > 5.0


@pytest.mark.truth
def test_learning_from_the_trajectory_closes_the_gap(monkeypatch):
    """Slow work, the trajectory for what it lacks, learning from both."""
    monkeypatch.setattr(search, "_STAGES", SHORT)
    planner = Planner(ROBOT, limits=MotionLimits.for_robot(ROBOT, 0.35, 2.0))
    work = planner.chain_through(planner.random_points(7), rest=1.0)
    learner = Learner(ROBOT, load_model(config_file("models", "ur5e.yaml")))
    learn(learner, work, 40.0)
    before = [need for need in learner.needs() if need.what == "speed"]
    gaps = gaps_among(before[:1], ROBOT, "model.yaml")
    design = first_design(
        DesignRequest(ROBOT, harmonics=3, gaps=gaps, objective="energy")
    )
    (entry,) = design.trajectory.design["for_gap"]
    assert entry["joint"] == ROBOT.joint_names[gaps[0].joint]
    assert entry["seconds"] > 5.0
    learn(learner, design.trajectory, design.trajectory.duration, offset=1e4)
    after = {need.joint: need.energy_share_percent for need in learner.needs()}
    assert after.get(before[0].joint, 0.0) < 0.5 * before[0].energy_share_percent
