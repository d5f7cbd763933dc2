# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The examples run as their own text says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from test.energy.known_arm import known_model
from test.report.conftest import explained_recording
from test.telemetry.bag.bag_files import write_bag
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.model_file import save_model
from ur_energy_model.telemetry.samples import Telemetry

ROOT = Path(__file__).resolve().parents[1]


def run_example(
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
    run_example("bag_to_figure.py", tmp_path, model, telemetry, "figure.png")
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")
