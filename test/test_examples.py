# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The examples run as their own text says, and the documentation builds without a warning."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from test.energy.known_arm import known_model
from test.energy.work_cycles import arm_model
from test.optimization.hand_made import hand_made_recording
from test.report.conftest import explained_recording
from test.telemetry.bag.bag_files import write_bag
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.model_file import save_model
from ur_energy_model.telemetry.samples import Telemetry

ROOT = Path(__file__).resolve().parents[1]


def run(
    script: str, folder: Path, model: EnergyModel, telemetry: Telemetry, *words: str
) -> str:
    """Output of an example, with this model and a bag."""
    save_model(model, folder / "model.yaml")
    write_bag(folder / "bag", telemetry)
    command: list[Any] = [
        sys.executable,
        ROOT / "examples" / script,
        "model.yaml",
        "bag",
        *words,
    ]
    return subprocess.run(
        command, cwd=folder, check=True, timeout=240, stdout=subprocess.PIPE, text=True
    ).stdout


def test_bag_to_figure(tmp_path: Path) -> None:
    model = known_model()
    telemetry = explained_recording(model, seconds=12.0)
    run("bag_to_figure.py", tmp_path, model, telemetry, "figure.png")
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")


def test_cheaper_cycle(tmp_path: Path) -> None:
    lines = run(
        "cheaper_cycle.py", tmp_path, arm_model(), hand_made_recording(cycles=3)
    ).splitlines()
    before, after = (float(part.split()[0]) for part in lines[0].split(" -> "))
    assert after < before
    assert [line.split(":")[0] for line in lines[1:]] == [
        f"step {n}" for n in range(1, 7)
    ]


def test_documentation_builds_without_a_warning(tmp_path: Path) -> None:
    if sys.version_info < (3, 11):
        pytest.skip(
            "the pinned Sphinx needs Python 3.11; not tested: links and index of docs/"
        )
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-b", "html", "-W", "-q", "docs", tmp_path],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=240,
        env={**os.environ, "TERM": "dumb"},
    )
    assert done.returncode == 0, done.stderr
