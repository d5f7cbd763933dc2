"""A trajectory for the gap of a learned model shows what was missing."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest

from ur_energy_model.codec import plain
from ur_energy_model.errors import InputError
from ur_energy_model.experiment import design as gradient_search
from ur_energy_model.experiment.design import Design, descend, make_design
from ur_energy_model.experiment.design_problem import (
    DesignProblem,
    DesignRequest,
    SpeedGap,
    gaps_among,
    needs_of,
)
from ur_energy_model.files import config_file
from ur_energy_model.learning.history import NEEDS, Need
from ur_energy_model.learning.learner import Learner
from ur_energy_model.model.model_file import load_model, save_model
from ur_energy_model.model.robots import load_robot
from ur_energy_model.simulation.simulated_arm import SimulatedArm, record_arm
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.trajectory.motions import Motion
from ur_energy_model.trajectory.named_motions import MotionLimits, Planner

ROBOT = load_robot("ur5e")
SLOW = Need(4, "speed", (0.4, 3.0), 1.8, "wrist_2_joint has not moved faster than 0.4 rad/s")


def test_needs_survive_the_model_file(tmp_path):
    model = load_model(config_file("models", "ur5e.yaml"))
    with pytest.raises(InputError, match="does not say what it lacks"):
        needs_of(model, "model.yaml")
    learned = replace(model, provenance={**model.provenance, NEEDS: [plain(SLOW)]})
    save_model(learned, tmp_path / "model.yaml")
    assert needs_of(load_model(tmp_path / "model.yaml"), "model.yaml") == (SLOW,)


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


def test_the_objective_counts_the_joints_of_the_gap_only():
    gap = SpeedGap(4, 0.4, 2.8)
    problem = DesignProblem(DesignRequest(ROBOT, gaps=(gap,)))
    motion = problem.motion(problem.random_start(np.random.default_rng(1)))
    before = problem.objective.value(*motion)
    q, qd, qdd = motion
    others = np.arange(6) != 4
    slower = np.where(others, 0.5 * qd, qd)
    assert problem.objective.value(q, slower, qdd) == pytest.approx(before, rel=0.2)
    faster = np.where(others, qd, 2.0 * qd)
    assert problem.objective.value(q, faster, qdd) < 0.7 * before


def learn(learner: Learner, motion: Motion, seconds: float, offset: float = 0.0) -> None:
    """A recording of the arm at a reduced rate."""
    arm = SimulatedArm(replace(ROBOT, rate=125.0), motion=motion, seed=5)
    batch = record_arm(arm, seconds)
    for k in range(0, len(batch), 625):
        part = batch.cut(slice(k, k + 625))
        learner.update(Telemetry(part.time + offset, part.columns, part.info))
        learner.step()
    learner.finish()
    learner.attempts()


def quick_design(request: DesignRequest, monkeypatch) -> Design:
    """The first of some short descents that passes every check."""
    monkeypatch.setattr(
        gradient_search, "_STAGES", ((3.0, 4.0, 15), (100.0, 8.0, 15), (3000.0, 16.0, 30))
    )
    problem = DesignProblem(request)
    for seed in range(20):
        found = descend(problem, problem.random_start(np.random.default_rng(seed)))
        if found is not None:
            return make_design(problem, found[1], time.monotonic(), seed + 1)
    pytest.fail("none of twenty short descents passes the checks")


@pytest.mark.timeout(300)  # ten seconds of processor time; other work on the machine may share it
def test_learning_from_the_trajectory_closes_the_gap(monkeypatch):
    """Slow work, the trajectory for what it lacks, learning from both."""
    planner = Planner(ROBOT, limits=MotionLimits.for_robot(ROBOT, 0.35, 2.0))
    work = planner.chain_through(planner.random_points(7), rest=1.0)
    model = load_model(config_file("models", "ur5e.yaml"))
    learner = Learner(ROBOT, model)
    learn(learner, work, 50.0)
    before = [need for need in learner.needs() if need.what == "speed"]
    gaps = gaps_among(before[:1], ROBOT, "model.yaml")
    request = DesignRequest(ROBOT, harmonics=3, gaps=gaps, objective="energy")
    design = quick_design(request, monkeypatch)
    (entry,) = design.trajectory.design["for_gap"]
    assert entry["joint"] == ROBOT.joint_names[gaps[0].joint]
    assert entry["seconds"] > 5.0
    learn(learner, design.trajectory, design.trajectory.duration, offset=1e4)
    after = {need.joint: need.energy_share_percent for need in learner.needs()}
    assert after.get(before[0].joint, 0.0) < 0.5 * before[0].energy_share_percent
