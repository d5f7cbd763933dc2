# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Every exported file of a motion is read back as its user reads it."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from test.energy.known_arm import known_model
from test.optimization.hand_made import ROBOT, hand_made_cycle, sampled
from test.trajectory.conftest import random_trajectory
from ur_energy_model.energy.prediction import predict_energy
from ur_energy_model.experiment.cycle_exports import (
    FRONT,
    PREDICTION,
    PROGRAM,
    SET_POINTS,
    TRAJECTORY,
    export_cycle,
)
from ur_energy_model.experiment.motion_process import urscript
from ur_energy_model.optimization.cycle import motion_of, recorded_stretches
from ur_energy_model.optimization.power_front import FrontPoint, Peak, PowerFront
from ur_energy_model.simulation.arm_commands import ProgramState
from ur_energy_model.simulation.client_interfaces import ScriptSession
from ur_energy_model.simulation.control_box import ControlBox, SimulatedIdentity
from ur_energy_model.simulation.simulated_arm import SimulatedArm
from ur_energy_model.simulation.urscript import calls_of
from ur_energy_model.trajectory.motions import Hold
from ur_energy_model.trajectory.plan import Plan
from ur_energy_model.trajectory.plan_file import read_plan

STEP = 0.002


def test_script_streams_the_series():
    """The program as a controller at 500 Hz runs it, in Python's grammar."""
    trajectory = random_trajectory(repetitions=1)
    body = re.sub(r"\blocal |^ *end$", "", urscript(trajectory), flags=re.MULTILINE)
    streamed: list[list[float]] = []
    names: dict[str, Any] = {
        "sin": math.sin,
        "cos": math.cos,
        "get_steptime": lambda: STEP,
        "movej": lambda q, a, v: streamed.append(q),
        "stopj": lambda a: None,
        "servoj": lambda q, *parameters: streamed.append(q),
    }
    exec(body, names)
    names["exciting_trajectory"]()
    expected = trajectory.sample(STEP * np.arange(len(streamed) - 1.0))[0]
    assert len(streamed) == pytest.approx(trajectory.duration / STEP + 1, abs=2)
    np.testing.assert_allclose(streamed[0], trajectory.start, atol=1e-8)
    np.testing.assert_allclose(streamed[1:], expected, atol=1e-6)


OPTIMIZED = hand_made_cycle()
MOTION = motion_of("hand", OPTIMIZED.stretches)
MODEL = known_model()
ENERGY = predict_energy(MODEL, Plan(*sampled(MOTION))).total


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exports") / "made"
    files = export_cycle(OPTIMIZED, ROBOT, folder)
    assert all(path.is_file() and purpose for path, purpose in files.items())
    plan = read_plan(folder / PREDICTION, ROBOT.joint_names)
    assert predict_energy(MODEL, plan).total == pytest.approx(ENERGY, rel=1e-4)
    return folder


def test_the_program_runs_on_the_simulated_controller(folder: Path) -> None:
    """It ends where it starts, in the time of the cycle, along the exported motion."""
    text = (folder / PROGRAM).read_text()
    assert calls_of(text.rstrip("\n"))
    start = MOTION.sample(np.zeros(1))[0][0]
    arm = SimulatedArm(ROBOT, motion=Hold(start), seed=3)
    box = ControlBox(arm, SimulatedIdentity.for_robot(ROBOT, (5, 11, 1), 0, "hold"))
    ScriptSession(box).receive(text.encode())
    box.step()
    targets = []
    while box.program_state == ProgramState.PLAYING:
        box.step()
        targets.append(np.array(box.values["target_q"]))
        assert len(targets) < 2 * OPTIMIZED.duration * ROBOT.rate
    duration = len(targets) / ROBOT.rate
    assert duration == pytest.approx(OPTIMIZED.duration, abs=0.1)
    np.testing.assert_allclose(targets[-1], start, atol=1e-4)
    for stretch in OPTIMIZED.stretches:
        nearest = min(np.abs(target - stretch.plan.q[-1]).max() for target in targets)
        assert nearest < 1e-3


def test_the_points_of_a_front_are_written_as_the_cycle_is(tmp_path: Path) -> None:
    """Also over the files of a front with more points."""
    quick = FrontPoint(
        recorded_stretches(OPTIMIZED.cycle), Peak(9.0, 9.0, 9.0, (8.0, 9.0))
    )
    slow = replace(quick, stretches=OPTIMIZED.stretches)
    front = PowerFront(quick.predicted, (quick, slow, quick))
    export_cycle(replace(OPTIMIZED, power_front=front), ROBOT, tmp_path)
    front = replace(front, points=(quick, slow))
    files = export_cycle(replace(OPTIMIZED, power_front=front), ROBOT, tmp_path)
    assert tmp_path / FRONT in files
    names = {PREDICTION, SET_POINTS, TRAJECTORY}
    assert not any((tmp_path / FRONT / "point_3" / name).exists() for name in names)
    for number, point in enumerate(front.points, 1):
        folder = tmp_path / FRONT / f"point_{number}"
        assert {path.name for path in folder.iterdir()} == names
        motion = motion_of("hand", point.stretches)
        truth = predict_energy(MODEL, Plan(*sampled(motion)))
        plan = read_plan(folder / PREDICTION, ROBOT.joint_names)
        again = predict_energy(MODEL, plan)
        assert again.total == pytest.approx(truth.total, rel=1e-4)
        assert again.peak_power == pytest.approx(truth.peak_power, rel=1e-3)
        set_points = read_plan(folder / SET_POINTS, ROBOT.joint_names)
        np.testing.assert_allclose(set_points.q, plan.q, atol=1e-6)
        message = yaml.safe_load((folder / TRAJECTORY).read_text())
        assert message["joint_names"] == [*ROBOT.joint_names]
        last = message["points"][-1]
        end = last["time_from_start"]
        assert end["sec"] + 1e-9 * end["nanosec"] == pytest.approx(motion.duration)
        np.testing.assert_allclose(last["positions"], plan.q[-1], atol=1e-6)
