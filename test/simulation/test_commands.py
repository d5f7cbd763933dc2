# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""`ur_energy simulate`, as a user calls it."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

from ur_energy_model.cli.listing import all_commands
from ur_energy_model.cli.parser import Parser
from ur_energy_model.simulation.faults import FAULTS

Host = Callable[[], str]
Simulate = Callable[..., "subprocess.Popen[str]"]


def test_robots_stand_side_by_side_until_a_signal_ends_them_with_the_truth_written(
    simulate: Simulate, fresh_host: Host, tmp_path: Path
) -> None:
    truths = {robot: tmp_path / f"{robot}.json" for robot in ("ur5e", "ur5")}
    children = [
        simulate(fresh_host(), "--truth", str(path), robot=robot)
        for robot, path in truths.items()
    ]
    for child, number in zip(children, (signal.SIGINT, signal.SIGTERM), strict=True):
        child.send_signal(number)
        out, err = child.communicate(timeout=240)
        assert (child.returncode, out) == (0, ""), err
        assert "ticks" in err
    for robot, path in truths.items():
        content = json.loads(path.read_text())
        assert (content["robot"], content["simulated"]) == (robot, True)


def test_help_lists_the_faults() -> None:
    text = Parser(all_commands()["simulate"]).format_help()
    assert all(fault in text for fault in FAULTS)
