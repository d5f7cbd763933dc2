# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Fourier trajectories: at rest at both ends for any coefficients, and their files."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from test.trajectory.conftest import random_trajectory
from ur_energy_model.errors import TrajectoryFileError
from ur_energy_model.trajectory.fourier import load_trajectory, save_trajectory


def test_velocity_and_acceleration_are_derivatives():
    trajectory = random_trajectory()
    time = np.linspace(1.0, 7.0, 50)
    step = 1e-6
    pairs = zip(
        trajectory.sample(time + step), trajectory.sample(time - step), strict=True
    )
    q, qd, _ = ((after - before) / (2 * step) for after, before in pairs)
    np.testing.assert_allclose(trajectory.sample(time)[1], q, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(trajectory.sample(time)[2], qd, rtol=1e-6, atol=1e-7)


def test_file_keeps_every_digit_and_rest_at_the_ends(tmp_path):
    trajectory = random_trajectory(harmonics=4)
    save_trajectory(tmp_path / "t.yaml", trajectory)
    loaded = load_trajectory(tmp_path / "t.yaml")
    np.testing.assert_array_equal(loaded.coefficients, trajectory.coefficients)
    assert (loaded.robot, loaded.period, loaded.repetitions) == ("ur5e", 8.0, 2)
    trajectory.a[2, 0] += 1e-3
    save_trajectory(tmp_path / "t.yaml", trajectory)
    with pytest.raises(TrajectoryFileError, match="rest"):
        load_trajectory(tmp_path / "t.yaml")


def test_damaged_files_name_the_key(tmp_path):
    path = tmp_path / "t.yaml"
    save_trajectory(path, random_trajectory())
    text = path.read_text()
    for key, before, after in (("schema", "1", "9"), ("period", "8.0", "-1")):
        path.write_text(text.replace(f"{key}: {before}", f"{key}: {after}"))
        with pytest.raises(TrajectoryFileError) as refused:
            load_trajectory(path)
        assert re.fullmatch(rf"line \d+(: {key})?", str(refused.value.field))
        assert key in str(refused.value)


def test_no_limit_is_null_and_infinity_of_earlier_files_is_no_limit(tmp_path):
    path = tmp_path / "t.yaml"
    design = {"tool_speed_limit": float("inf"), "clearance": 0.1}
    save_trajectory(path, replace(random_trajectory(), design=design))
    assert "tool_speed_limit: null" in path.read_text()
    expected = {"tool_speed_limit": None, "clearance": 0.1}
    assert load_trajectory(path).design == expected
    path.write_text(path.read_text().replace("null", ".inf"))
    assert load_trajectory(path).design == expected
