# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The example of the room runs as its own text says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from test.energy.work_cycles import arm_model
from test.optimization.hand_made import hand_made_recording
from test.telemetry.bag.bag_files import write_bag
from ur_energy_model.model.model_file import save_model

ROOT = Path(__file__).resolve().parents[2]


def test_cheaper_cycle(tmp_path: Path) -> None:
    save_model(arm_model(), tmp_path / "model.yaml")
    write_bag(tmp_path / "bag", hand_made_recording(cycles=3))
    example = ROOT / "examples" / "cheaper_cycle.py"
    command: list[Any] = [sys.executable, example, "model.yaml", "bag"]
    lines = subprocess.run(
        command,
        cwd=tmp_path,
        check=True,
        timeout=240,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout.splitlines()
    before, after = (float(part.split()[0]) for part in lines[0].split(" -> "))
    assert after < before
    assert [line.split(":")[0] for line in lines[1:]] == [
        f"step {n}" for n in range(1, 7)
    ]
