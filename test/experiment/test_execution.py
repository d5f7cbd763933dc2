# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""A motion is run, recorded and monitored on the simulated controller, and stopped on problems."""

from __future__ import annotations

import importlib
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from importlib.util import find_spec
from pathlib import Path
from subprocess import PIPE

import numpy as np
import pytest

from test.optimization.hand_made import hand_made_cycle
from ur_energy_model.errors import MotionRefusedError
from ur_energy_model.experiment.cycle_proof import Proof, measured_saving
from ur_energy_model.experiment.design_problem import DesignRequest, limits_of
from ur_energy_model.experiment.execution import (
    ExecutionPlan,
    ExecutionResult,
    MotionSummary,
    execute,
)
from ur_energy_model.experiment.same_arm import KnownArm
from ur_energy_model.files import config_file
from ur_energy_model.model.robots import load_robot
from ur_energy_model.telemetry.bag.reader import read_bag
from ur_energy_model.telemetry.rtde.source import RtdeSource
from ur_energy_model.trajectory.fourier import (
    FourierTrajectory,
    load_trajectory,
    save_trajectory,
)
from ur_energy_model.trajectory.named_motions import home_position

ROBOT = load_robot("ur5")
"""Its controller has the lowest rate, so that these tests run beside others."""
RATE = 125.0
LIMITS = limits_of(DesignRequest(ROBOT))
OPTIONS = ("--motion", "hold", "--seed", "7", "--speed", "2")
STARVED = (
    "the controller does not accept set points",
    "the controller ended the program",
)
"""How a motion ends if this machine is too busy to send set points in time: the watchdog of the
controller stops the arm, as it must, and the motion is tried again."""
MOST_ATTEMPTS = 10


@pytest.fixture(scope="module")
def host(simulate_of_module, fresh_host):
    """Address of a simulated controller at twice the speed."""
    host = fresh_host()
    simulate_of_module(host, *OPTIONS, robot=ROBOT.name)
    return host


@pytest.fixture(scope="module")
def short() -> FourierTrajectory:
    """The trajectory of the UR5 at a twelfth of its size, starting near the home position."""
    whole = load_trajectory(config_file("excitation", "ur5.yaml"))
    a = whole.a / 12
    b = whole.b / 12
    start = home_position(ROBOT) + 0.05
    return replace(
        whole, q0=start + b.sum(axis=1), a=a, b=b, period=4.0, repetitions=1, design={}
    )


def yes(summary: MotionSummary) -> bool:
    return summary.robot == ROBOT.name


def skip_without_control() -> None:
    """Processes of their own move the arm, whose errors name no missing package here."""
    if find_spec("rtde_control") is None:
        pytest.skip("the Python package 'rtde_control' is not installed")


def executed(plan: ExecutionPlan, host: str, bag: Path, approve=yes) -> ExecutionResult:
    """The result of a motion that was not stopped because this machine is busy."""
    skip_without_control()
    for _ in range(MOST_ATTEMPTS):
        shutil.rmtree(bag, ignore_errors=True)
        result = execute(plan, host, bag, approve=approve)
        if result.reason not in STARVED:
            break
    return result


ENOUGH = 40_000  # size of a bag in which the arm moves [bytes]


@contextmanager
def execution(
    host: str, trajectory: FourierTrajectory, folder: Path
) -> Iterator[subprocess.Popen[str]]:
    """`ur_energy excite --execute` in its own process, once it records for some seconds."""
    skip_without_control()
    path = folder / "trajectory.yaml"
    bag = folder / "bag"
    save_trajectory(path, trajectory)
    words = ["excite", "--execute", path, "--host", host, "-o", bag, "--yes", "--json"]
    command = [sys.executable, "-m", "ur_energy_model.cli.main", *map(str, words)]
    for _ in range(MOST_ATTEMPTS):
        shutil.rmtree(bag, ignore_errors=True)
        with subprocess.Popen(command, stdout=PIPE, stderr=PIPE, text=True) as child:
            try:
                while child.poll() is None:
                    if has_grown(bag):
                        yield child
                        return
                    time.sleep(0.05)
                _, errors = child.communicate()
                assert any(reason in errors for reason in STARVED), errors
            finally:
                child.kill()
    pytest.fail("the machine is too busy for any motion")


def has_grown(bag: Path) -> bool:
    """Whether a bag holds some seconds."""
    file = bag / "bag_0.mcap"
    return file.exists() and file.stat().st_size >= ENOUGH


def control(host: str, line: str) -> None:
    """Send a line to the control port of the simulation."""
    with (
        socket.create_connection((host, 29998), timeout=240) as connection,
        connection.makefile("rw") as lines,
    ):
        lines.readline()
        lines.write(f"{line}\n")
        lines.flush()
        assert lines.readline().startswith("ok")


def test_a_complete_recording_of_a_motion_whose_module_loads_slowly(
    host, short, tmp_path, monkeypatch
):
    """The controller's watchdog ends a program after half a second without set points."""
    (tmp_path / "slow_motion.py").write_text(
        "import time\nfrom dataclasses import dataclass\n"
        "from ur_energy_model.trajectory.fourier import FourierTrajectory\n"
        "time.sleep(0.8)\n\n@dataclass(frozen=True, eq=False)\n"
        "class SlowMotion(FourierTrajectory):\n    pass\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    kind = importlib.import_module("slow_motion").SlowMotion
    motion = kind(
        **{each.name: getattr(short, each.name) for each in fields(short) if each.init}
    )
    shown: list[MotionSummary] = []
    bag = tmp_path / "bag"

    def approve(summary: MotionSummary) -> bool:
        shown.append(summary)
        return True

    result = executed(ExecutionPlan(motion, LIMITS), host, bag, approve)
    assert result.completed, result.reason
    assert (result.status.losses.samples, result.following_error < 0.02) == (0, True)
    summary = shown[-1]
    assert (summary.robot, summary.duration) == (ROBOT.name, short.duration)
    np.testing.assert_allclose(summary.start, short.start)
    assert summary.joint_speed.max() < 3.2
    telemetry = read_bag(bag)
    assert (telemetry.gaps, telemetry.info.simulated) == ((), True)
    np.testing.assert_allclose(np.diff(telemetry.time), 1 / RATE, atol=1e-6)
    # The arm went where the series says, later by the controller's lag and the rest
    # before.
    moving = np.flatnonzero(np.abs(telemetry["target_qd"]).max(axis=1) > 1e-4)
    begin = telemetry.time[moving[0]]
    end = telemetry.time[moving[-1]]
    assert end - begin == pytest.approx(short.duration, rel=0.1)
    reached = telemetry["actual_q"]
    wanted = short.sample(np.linspace(0, short.duration, 500))[0]
    np.testing.assert_allclose(reached.max(axis=0), wanted.max(axis=0), atol=0.02)
    np.testing.assert_allclose(reached.min(axis=0), wanted.min(axis=0), atol=0.02)


@pytest.mark.truth
def test_a_proof_is_run_and_its_saving_measured(host, tmp_path: Path) -> None:
    proof = Proof.of(hand_made_cycle(ROBOT), 1)
    result = executed(ExecutionPlan(proof.motion(), LIMITS), host, tmp_path / "proof")
    assert result.completed, result.reason
    saving = measured_saving(tmp_path / "proof", proof)
    assert 1.0 < saving.saving_percent < 40.0
    assert saving.temperature is not None
    recorded = read_bag(tmp_path / "proof", ["target_qd", "actual_qd"])
    for name in ("target_qd", "actual_qd"):
        assert (np.abs(recorded[name]).max(axis=0) < ROBOT.max_velocity).all()


def test_unsafe_motions_and_other_arms_are_refused(host, short, tmp_path: Path) -> None:
    """Unsafe ones before connecting; another arm with both serials unless insisted."""
    wild = replace(short, a=20 * short.a, b=20 * short.b)
    with pytest.raises(MotionRefusedError, match="not safe"):
        execute(ExecutionPlan(wild, LIMITS), "127.0.15.99", tmp_path / "bag", approve=yes)
    at = home_position(ROBOT)[None]
    mine = "2015350123"
    other = "20000000007"
    plan, other_model = (
        ExecutionPlan(
            load_trajectory(config_file("excitation", f"{name}.yaml")),
            limits_of(DesignRequest(load_robot(name))),
            arm=KnownArm("monday", name, mine, positions=at),
        )
        for name in (ROBOT.name, "ur10")
    )
    shown: list[MotionSummary] = []

    def decline(summary: MotionSummary) -> bool:
        shown.append(summary)
        return False

    for refused in (plan, other_model, replace(other_model, another_arm=True)):
        with pytest.raises(MotionRefusedError) as error:
            execute(refused, host, tmp_path / "bag", approve=decline)
        assert mine in str(error.value)
        assert other in str(error.value)
    assert not shown
    with pytest.raises(MotionRefusedError, match="not approved"):
        execute(replace(plan, another_arm=True), host, tmp_path / "bag", approve=decline)
    assert mine in shown[0].other_arm
    assert other in shown[0].other_arm


def test_interrupt_stops_the_arm_and_keeps_the_bag(host, short, tmp_path):
    """The arm slows down on its path within half a second.

    On a busy machine the controller's watchdog may end the program while the arm slows
    down: the next attempt has a machine with more time.
    """
    for _ in range(MOST_ATTEMPTS):
        with execution(host, replace(short, repetitions=6), tmp_path) as child:
            child.send_signal(signal.SIGINT)
            _, errors = child.communicate(timeout=240)
        assert child.returncode == 130, errors
        telemetry = read_bag(tmp_path / "bag")
        assert len(telemetry) > RATE
        assert np.abs(telemetry["target_qd"]).max() > 0.05
        assert (telemetry["safety_mode"] == 1).all()
        last_speed = np.abs(telemetry["target_qd"][-1]).max()
        if last_speed < 0.02:
            break
    assert last_speed < 0.02


def test_a_cut_connection_stops_the_arm(host, short, tmp_path):
    """The arm comes to rest although the connection is lost."""
    bag = tmp_path / "bag"
    over = threading.Event()

    def cut() -> None:
        while not has_grown(bag):
            if over.wait(0.05):
                return
        control(host, "fault stalled_stream@0+inf")

    skip_without_control()
    cutter = threading.Thread(target=cut)
    cutter.start()
    plan = ExecutionPlan(replace(short, repetitions=8), LIMITS)
    try:
        for _ in range(MOST_ATTEMPTS):  # until the arm moved when the connection was cut
            shutil.rmtree(bag, ignore_errors=True)
            result = execute(plan, host, bag, approve=yes)
            if not cutter.is_alive():
                break
    finally:
        over.set()
        cutter.join()
    assert not result.completed
    assert "connection lost" in result.reason or result.reason in STARVED
    assert len(read_bag(bag)) > RATE
    control(host, "clear")
    with RtdeSource(host, patience=10.0) as source:
        after = source.read(1.0)
    assert after is not None
    assert np.abs(after["target_qd"]).max() < 1e-3


@pytest.mark.truth
def test_a_dead_controller_ends_the_run_and_keeps_the_bag(
    simulate, fresh_host, short, tmp_path
):
    host = fresh_host()
    controller = simulate(host, *OPTIONS, robot=ROBOT.name)
    with execution(host, replace(short, repetitions=6), tmp_path) as child:
        controller.kill()
        output, errors = child.communicate(timeout=240)
    assert (child.returncode, output) == (1, ""), errors
    assert "kept" in errors.splitlines()[-1]
    telemetry = read_bag(tmp_path / "bag")
    assert len(telemetry) > RATE
    # at most the outage
    assert all(gap.index == len(telemetry) for gap in telemetry.gaps)
