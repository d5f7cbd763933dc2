# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Learning of a simulated arm over a kill, a restarted controller, and an orderly end."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from test.nodes.conftest import Cell, cell
from test.running import children_of
from ur_energy_model.learning.state import decoded, saved_learning
from ur_energy_model.state_file import StateFile

__all__ = ["cell"]  # the fixture


def end_of_child(cell: Cell, process: int) -> Callable[[], bool]:
    """Whether the only child of a process has ended, which then may be nobody's child."""
    cell.observer.wait(lambda: len(children_of(process)) == 1, "the process that learns")
    (child,) = children_of(process)

    def is_over() -> bool:
        try:
            text = Path(f"/proc/{child}/stat").read_text()
        except OSError:
            return True
        return text.rpartition(")")[2].split()[0] == "Z"

    return is_over


def saved_minutes(path: Path) -> float:
    """Time learned from by the state file [min]."""
    file = StateFile(path)
    file.open()
    saved = saved_learning(file, "20000000005")
    file.close()
    assert saved is not None
    assert saved.content is not None
    return float(decoded(saved.content)["learned"]["seconds"]) / 60.0


@pytest.mark.truth
def test_learning_over_all_that_happens_to_an_arm(
    cell: Cell, fresh_host: Callable[[], str]
) -> None:
    observer = cell.observer
    host = fresh_host()
    observer.subscribe("/diagnostics", "diagnostic_msgs/DiagnosticArray")

    def start() -> tuple[subprocess.Popen[str], subprocess.Popen[str]]:
        robot = cell.start_process(
            "simulated_robot", host=host, motion="pick_and_place", seed=5
        )
        observer.latest.clear()
        return robot, cell.start_process(
            "estimator", robot_ip=host, state_file="state.db"
        )

    def minutes(above: float) -> float:
        """Time learned from, once it is above this [min]."""
        key = "learned_minutes"
        name = "estimator: model"
        return float(
            observer.status_that(name, lambda s: float(s[key]) > above, "learning")[key]
        )

    robot, estimator = start()
    # two windows
    minutes(0.1)
    is_over = end_of_child(cell, estimator.pid)
    estimator.kill()
    estimator.wait()
    cell.stop(robot)
    observer.wait(is_over, "the end of what learns")

    before = saved_minutes(cell.folder / "state.db")
    _, estimator = start()  # the arm's clock begins anew
    assert minutes(0.0) >= before - 0.001 > 0.0  # printed with four digits
    is_over = end_of_child(cell, estimator.pid)
    assert cell.stop(estimator)[0] == 0
    observer.wait(is_over, "the end of what learns")
