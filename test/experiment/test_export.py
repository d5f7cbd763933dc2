"""Exports describe the same motion: the table by its rows, the URScript by running it."""

from __future__ import annotations

import csv
import math
import re
from typing import Any

import numpy as np
import pytest

from test.trajectory.test_fourier import random_trajectory
from ur_energy_model.errors import InputError
from ur_energy_model.experiment.motion_process import export_trajectory, urscript

STEP = 0.002


def run_script(text: str) -> list[list[float]]:
    """Run the loop of the program as a controller at 500 Hz does; returns the servoj positions."""
    streamed: list[list[float]] = []
    body = text.replace("def exciting_trajectory():", "def program():")
    body = re.sub(r"\blocal ", "", body)
    body = re.sub(r"^( *)end$", "", body, flags=re.MULTILINE)
    names: dict[str, Any] = {
        "sin": math.sin,
        "cos": math.cos,
        "get_steptime": lambda: STEP,
        "movej": lambda q, a, v: streamed.append(q),
        "stopj": lambda a: None,
        "servoj": lambda q, a, v, t, lookahead, gain: streamed.append(q),
    }
    exec(body, names)
    names["program"]()
    return streamed


def test_script_streams_the_series():
    trajectory = random_trajectory(repetitions=1)
    streamed = np.array(run_script(urscript(trajectory)))
    expected = trajectory.sample(STEP * np.arange(len(streamed) - 1.0))[0]
    assert len(streamed) == pytest.approx(trajectory.duration / STEP + 1, abs=2)
    np.testing.assert_allclose(streamed[0], trajectory.start, atol=1e-8)
    np.testing.assert_allclose(streamed[1:], expected, atol=1e-6)


def test_table_holds_the_motion(tmp_path):
    trajectory = random_trajectory(repetitions=1)
    export_trajectory(tmp_path / "t.csv", trajectory, rate=50.0)
    with (tmp_path / "t.csv").open() as file:
        rows = list(csv.DictReader(file))
    time = np.array([float(row["time"]) for row in rows])
    assert (time[0], time[-1], len(time)) == (0.0, trajectory.duration, 401)
    for name, values in zip(("q", "qd", "qdd"), trajectory.sample(time), strict=True):
        read = np.array([[float(row[f"{name}_{j}"]) for j in range(6)] for row in rows])
        np.testing.assert_allclose(read, values, rtol=1e-7, atol=1e-7)


def test_other_suffixes_are_refused(tmp_path):
    with pytest.raises(InputError, match="script"):
        export_trajectory(tmp_path / "t.txt", random_trajectory(), 50.0)
    assert not list(tmp_path.iterdir())
