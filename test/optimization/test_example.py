# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The example of the room runs as its own text says."""

from __future__ import annotations

from pathlib import Path

from test.energy.work_cycles import arm_model
from test.optimization.hand_made import hand_made_recording
from test.test_examples import run_example


def test_cheaper_cycle(tmp_path: Path) -> None:
    lines = run_example(
        "cheaper_cycle.py", tmp_path, arm_model(), hand_made_recording(cycles=3)
    ).splitlines()
    before, after = (float(part.split()[0]) for part in lines[0].split(" -> "))
    assert after < before
    assert [line.split(":")[0] for line in lines[1:]] == [
        f"step {n}" for n in range(1, 7)
    ]
