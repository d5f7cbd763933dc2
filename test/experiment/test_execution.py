"""A motion is run, recorded and monitored on the simulated controller, and stopped on problems."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from test.optimization.hand_made import hand_made_cycle
from ur_energy_model.errors import MotionRefusedError
from ur_energy_model.experiment.cycle_proof import Proof, measured_saving
from ur_energy_model.experiment.design_problem import DesignRequest, limits_of
from ur_energy_model.experiment.execution import ExecutionPlan, MotionSummary, execute
from ur_energy_model.files import config_file
from ur_energy_model.model.robots import load_robot
from ur_energy_model.telemetry.bag.reader import read_bag
from ur_energy_model.telemetry.rtde.source import RtdeSource
from ur_energy_model.trajectory.fourier import FourierTrajectory, load_trajectory, save_trajectory
from ur_energy_model.trajectory.named_motions import home_position

ROBOT = load_robot("ur5")
"""Its controller has the lowest rate, so that these tests run beside others."""
RATE = 125.0
LIMITS = limits_of(DesignRequest(ROBOT))
HOLD = ("--motion", "hold")


@pytest.fixture(scope="module")
def fast(simulate, fresh_host):
    """Address of a simulated controller at twice the speed."""
    host = fresh_host()
    simulate(host, *HOLD, "--speed", "2", robot=ROBOT.name)
    return host


@pytest.fixture(scope="module")
def short() -> FourierTrajectory:
    """The trajectory of the UR5 at a twelfth of its size, starting near the home position."""
    whole = load_trajectory(config_file("excitation", "ur5.yaml"))
    a, b = whole.a / 12, whole.b / 12
    start = home_position(ROBOT) + 0.05
    return replace(whole, q0=start + b.sum(axis=1), a=a, b=b, period=4.0, repetitions=1, design={})


class Approval:
    """Keeps the summaries and approves."""

    def __init__(self) -> None:
        self.shown: list[MotionSummary] = []

    def __call__(self, summary: MotionSummary) -> bool:
        self.shown.append(summary)
        return True


@contextmanager
def execution(
    host: str, trajectory: FourierTrajectory, folder: Path
) -> Iterator[subprocess.Popen[str]]:
    """`ur_energy excite --execute` in its own process, once it records for some seconds."""
    path, bag = folder / "trajectory.yaml", folder / "bag"
    save_trajectory(path, trajectory)
    words = ["excite", "--execute", path, "--host", host, "-o", bag, "--yes", "--json"]
    command = [sys.executable, "-m", "ur_energy_model.cli.main", *map(str, words)]
    pipes = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipes, stderr=pipes, text=True) as child:
        try:
            file = bag / "bag_0.mcap"
            while not file.exists() or file.stat().st_size < 40_000:
                assert child.poll() is None, child.communicate()[1]
                time.sleep(0.05)
            yield child
        finally:
            child.kill()


def control(host: str, line: str) -> None:
    """Send a line to the control port of the simulation."""
    with (
        socket.create_connection((host, 29998), timeout=10) as connection,
        connection.makefile("rw") as lines,
    ):
        lines.readline()
        lines.write(f"{line}\n")
        lines.flush()
        assert lines.readline().startswith("ok")


def test_a_complete_recording_of_a_motion(fast, short, tmp_path):
    approve, bag = Approval(), tmp_path / "bag"
    wild = replace(short, a=20 * short.a, b=20 * short.b)
    with pytest.raises(MotionRefusedError, match="not safe"):  # before it connects
        execute(ExecutionPlan(wild, LIMITS), "127.0.15.99", bag, approve=approve)
    result = execute(ExecutionPlan(short, LIMITS), fast, bag, approve=approve)
    assert result.completed, result.reason
    assert result.status.lost == 0
    assert result.following_error < 0.02
    (summary,) = approve.shown
    np.testing.assert_allclose(summary.start, short.start)
    telemetry = read_bag(bag)
    assert telemetry.gaps == ()
    assert telemetry.info.simulated
    np.testing.assert_allclose(np.diff(telemetry.time), 1 / RATE, atol=1e-6)
    # The arm went where the series says, later by the controller's lag and the rest before.
    moving = np.flatnonzero(np.abs(telemetry["target_qd"]).max(axis=1) > 1e-4)
    begin, end = telemetry.time[moving[0]], telemetry.time[moving[-1]]
    assert end - begin == pytest.approx(short.duration, rel=0.1)
    reached = telemetry["actual_q"]
    wanted = short.sample(np.linspace(0, short.duration, 500))[0]
    np.testing.assert_allclose(reached.max(axis=0), wanted.max(axis=0), atol=0.02)
    np.testing.assert_allclose(reached.min(axis=0), wanted.min(axis=0), atol=0.02)


def test_a_proof_is_run_and_its_saving_measured(fast, tmp_path: Path) -> None:
    proof = Proof.of(hand_made_cycle(ROBOT), ROBOT, 1)
    plan = ExecutionPlan(proof.motion(), LIMITS)
    result = execute(plan, fast, tmp_path / "proof", approve=Approval())
    assert result.completed, result.reason
    saving = measured_saving(tmp_path / "proof", proof)
    assert 1.0 < saving.saving_percent < 40.0
    assert saving.temperature is not None
    recorded = read_bag(tmp_path / "proof", ["target_qd", "actual_qd"])
    for name in ("target_qd", "actual_qd"):
        assert (np.abs(recorded[name]).max(axis=0) < ROBOT.max_velocity).all()


def test_runs_that_end_early_stop_the_arm_and_keep_their_bags(
    simulate, fresh_host, short, tmp_path
):
    """By Ctrl-C, a cut connection and a dead controller."""
    host = fresh_host()
    controller = simulate(host, *HOLD, robot=ROBOT.name)
    motion, bags = replace(short, repetitions=6), {}
    for how, code in (("interrupt", 130), ("cut", 1), ("dead", 1)):
        folder = tmp_path / how
        folder.mkdir()
        with execution(host, motion, folder) as child:
            if how == "interrupt":
                child.send_signal(signal.SIGINT)
            elif how == "cut":
                control(host, "fault stalled_stream@0+inf")
            else:
                controller.kill()
            output, errors = child.communicate(timeout=90)
        assert (child.returncode, output) == (code, ""), errors
        bags[how] = read_bag(folder / "bag")
        assert len(bags[how]) > RATE
        if how == "cut":  # the arm comes to rest although the connection is lost
            control(host, "clear")
            with RtdeSource(host, patience=10.0) as source:
                after = source.read(2.0)
            assert after is not None
            assert np.abs(after["target_qd"]).max() < 1e-3
        if how != "interrupt":
            assert "kept" in errors.splitlines()[-1]
    stopped = bags["interrupt"]
    assert np.abs(stopped["target_qd"]).max() > 0.05
    # It was slowed down on its path within half a second, not cut off.
    assert np.abs(stopped["target_qd"][-1]).max() < 0.02
    assert (stopped["safety_mode"] == 1).all()
    assert all(gap.index == len(bags["dead"]) for gap in bags["dead"].gaps)  # at most the outage
