"""Learning of a simulated arm over a kill, a restarted controller, and an orderly end."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from test.nodes.conftest import PATIENCE, Cell


class Learner:
    """A simulated arm and an estimator that learns, as processes."""

    def __init__(self, cell: Cell, host: str) -> None:
        self.cell, self.host = cell, host
        cell.observer.subscribe("/diagnostics", "diagnostic_msgs/DiagnosticArray")

    def start_arm(self, seed: int) -> subprocess.Popen[str]:
        """Start an arm that works; its serial number follows from the seed."""
        return self.cell.start_process(
            "simulated_robot", host=self.host, motion="pick_and_place", seed=seed
        )

    def start(self) -> subprocess.Popen[str]:
        """Start the estimator."""
        self.cell.observer.latest.clear()
        return self.cell.start_process("estimator", robot_ip=self.host, state_file="state.json")

    def minutes(self) -> float:
        """Time learned from [min]."""
        status = self.cell.observer.status("/diagnostics", "estimator: model")
        return float(status["learned_minutes"])

    def wait_for(self, minutes: float) -> None:
        """Wait until more than this was learned from."""
        self.cell.observer.wait(lambda: self.minutes() > minutes, f"{minutes:.3f} minutes")


@pytest.mark.timeout(300)
def test_learning_over_all_that_happens_to_an_arm(
    cell: Cell, fresh_host: Callable[[], str]
) -> None:
    learner = Learner(cell, fresh_host())
    robot, estimator = learner.start_arm(seed=5), learner.start()
    learner.wait_for(0.1)  # two windows
    before, state = learner.minutes(), cell.folder / "state.json.learning-20000000005"
    cell.observer.wait(state.exists, "the state")
    saved = state.stat().st_mtime_ns
    cell.observer.wait(lambda: state.stat().st_mtime_ns > saved, "a newer state")

    (child,) = children(estimator.pid)
    kept = state.stat().st_mtime_ns
    estimator.kill()
    estimator.wait()
    cell.stop(robot)
    await_end(child)
    assert state.stat().st_mtime_ns == kept

    learner.start_arm(seed=5)
    estimator = learner.start()  # the arm's clock begins anew
    learner.wait_for(0.0)
    assert learner.minutes() >= before

    (child,) = children(estimator.pid)
    assert cell.stop(estimator)[0] == 0
    await_end(child)


def children(process: int) -> list[int]:
    """Processes that a process has started."""
    tasks = Path(f"/proc/{process}/task").glob("*/children")
    return [int(word) for path in tasks for word in path.read_text().split()]


def await_end(process: int) -> None:
    """Wait for the end of a process that is nobody's child here."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        try:
            state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return
        if state == "Z":
            return
        time.sleep(0.05)
    pytest.fail(f"process {process} has not ended within {PATIENCE:g} s")
