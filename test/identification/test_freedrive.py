# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Evaluation of recordings in which the arm was moved by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from test.identification.exact_arm import write_bag
from ur_energy_model.identification.evaluation import Metrics, evaluate
from ur_energy_model.model.generic import generic_model
from ur_energy_model.model.robots import load_robot
from ur_energy_model.simulation.simulated_arm import SimulatedArm, record_arm
from ur_energy_model.telemetry.csv.reader import read_csv
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.telemetry.usable_samples import freedrive_samples
from ur_energy_model.trajectory.named_motions import named_motion

ROBOT = load_robot("ur5e")


@pytest.fixture(scope="module")
def program() -> Telemetry:
    """An arm that runs a program; never at constant speed, as no hand moves an arm either."""
    robot = replace(ROBOT, rate=125.0)
    arm = SimulatedArm(robot, motion=named_motion("sinusoids", ROBOT), seed=617)
    return record_arm(arm, 20.0)


def by_hand(telemetry: Telemetry, start: float, power: float) -> Telemetry:
    """The recording as if from `start` [s] on a hand moved the arm, with `power` [W] more at 48 V.

    In freedrive the target follows the hand while target_qdd stays zero.
    """
    later = telemetry.time - telemetry.time[0] >= start
    still = np.where(later[:, None], 0.0, telemetry["target_qdd"])
    made = replace(telemetry, columns={**telemetry.columns, "target_qdd": still})
    more = freedrive_samples(made) * power / 48.0
    current = made["actual_robot_current"] + more
    return replace(made, columns={**made.columns, "actual_robot_current": current})


def evaluated(folder: Path, telemetry: Telemetry) -> Metrics:
    return evaluate(generic_model(ROBOT), write_bag(folder / "bag", telemetry))


def test_power_from_the_motion_leaves_freedrive_out(
    program: Telemetry, tmp_path: Path
) -> None:
    partly = evaluated(tmp_path / "partly", by_hand(program, 12.0, 100.0))
    whole = evaluated(tmp_path / "whole", program)
    errors = [(each.power_from_motion or {}).get("rmse") for each in (partly, whole)]
    assert errors[0] == pytest.approx(errors[1], rel=0.5)
    from_currents = (partly.power or {}).get("rmse")
    assert from_currents is not None
    assert from_currents > 20.0
    assert sum("freedrive" in line for line in partly.warnings) == 1
    assert not any("freedrive" in line for line in whole.warnings)


def test_motion_by_hand_only_has_no_power_from_the_motion(
    program: Telemetry, tmp_path: Path
) -> None:
    found = evaluated(tmp_path, by_hand(program, 0.0, 0.0))
    assert found.power is not None
    assert found.power_from_motion is None
    assert found.motion_energy_error_percent is None
    assert sum("freedrive" in line for line in found.warnings) == 1


def test_a_real_arm_moved_by_hand(recordings: Path, tmp_path: Path) -> None:
    found = evaluated(
        tmp_path, read_csv([recordings / "ur5e_other_arm_125hz_11s.csv.gz"], "ur5e")
    )
    assert found.power is not None
    assert found.power_from_motion is None
    assert found.motion_energy_error_percent is None
