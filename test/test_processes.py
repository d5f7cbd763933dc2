# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Child processes end with their parent, however it ends, and nothing else ends them."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from test.absent_rooms import needs_room
from test.interrupting import assert_quiet, ended
from test.truth import first_fast
from ur_energy_model.many_bags import WorkerProcesses
from ur_energy_model.processes import ChildProcess, start_command

PATIENCE = 240.0
PARENT = """\
import subprocess, sys, threading, time
from test.test_processes import {kind}
made = []
thread = threading.Thread(target=lambda: made.append({kind}()))
thread.start()
thread.join()  # the end of the thread that asked for the child is not the end of its parent
print(made[0], flush=True)
time.sleep(600)
"""
CHILD = """\
import signal, sys, time
from ur_energy_model import processes
processes.sys.platform = {platform!r}
{first}
processes.end_with_parent_of_environment()
print("ready", flush=True)
while True:
    time.sleep(0.01)
"""
IGNORES = "signal.signal(signal.SIGTERM, signal.SIG_IGN)"
FINISHES = "signal.signal(signal.SIGTERM, lambda *_: (time.sleep(0.3), sys.exit(0)))"


def sleep() -> None:
    """What a process of multiprocessing does here."""
    time.sleep(600)


def function() -> int | None:
    """Number of a process with a function."""
    process = ChildProcess(target=sleep, daemon=True)
    process.start()
    return process.pid


def program(first: str = "", platform: str = sys.platform, grace: float = 0.0) -> int:
    """Number of a process with a program, once it is ready."""
    code = CHILD.format(first=first, platform=platform)
    child = start_command(
        [sys.executable, "-c", code], grace=grace, stdout=subprocess.PIPE
    )
    assert child.stdout is not None
    assert child.stdout.readline() == b"ready\n"
    return child.pid


def elsewhere() -> int:
    """On a system whose kernel sends no signal."""
    return program(platform="elsewhere")


def stubborn() -> int:
    """It ignores the request to end."""
    return program(IGNORES, grace=0.2)


def orderly() -> int:
    """It finishes its work."""
    return program(FINISHES, grace=30.0)


def runs(number: int) -> bool:
    try:
        return (
            Path(f"/proc/{number}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
        )
    except OSError:
        return False


def until_ended(number: int) -> float:
    """Wait for the end of a process; the time that this took [s]."""
    began = time.monotonic()
    while runs(number):
        assert time.monotonic() - began < PATIENCE, "the child lives on"
        time.sleep(0.01)
    return time.monotonic() - began


@contextmanager
def parent_of(kind: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A process that has a child of a kind, and the number of the child."""
    command = [sys.executable, "-c", PARENT.format(kind=kind)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        try:
            yield parent, child
        finally:
            parent.kill()


@pytest.mark.parametrize(
    "kind", ["function", "program", "elsewhere", "stubborn", "orderly"]
)
def test_a_child_ends_with_its_parent_and_not_with_a_thread_of_it(kind: str) -> None:
    with parent_of(kind) as (parent, child):
        assert runs(child)
        parent.send_signal(signal.SIGKILL)
        parent.wait()
        assert until_ended(child) < 20.0


def test_a_child_that_starts_after_the_end_of_its_parent_ends_at_once() -> None:
    """Between its start and its request to the kernel."""
    command = [sys.executable, "-c", CHILD.format(first="", platform=sys.platform)]
    environment = {**os.environ, "UR_ENERGY_PARENT": f"{2**22 + 1}:0.0"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as child:
        output, _ = child.communicate(timeout=PATIENCE)
    assert child.returncode == -signal.SIGKILL
    assert output == b""


def test_signals_of_the_terminal_do_not_reach_children() -> None:
    process = ChildProcess(target=sleep, daemon=True)
    process.start()
    assert process.pid is not None
    for number in (signal.SIGINT, signal.SIGHUP):
        os.kill(process.pid, number)
    process.join(0.5)
    assert process.is_alive()
    process.terminate()
    process.join(PATIENCE)
    assert process.exitcode == -signal.SIGTERM


COMMANDS = {
    "excite": ["--robot", "ur5e", "-o", "t.yaml"],
    "protocol": ["all", "--simulated", "-o", "papers"],  # its processes have processes
    "demo": ["-o", "demo"],
}


LATEST = 5.0  # longest time from the start of a command to the signal [s]
ROOMS = {"excite": "experiment", "protocol": "papers", "demo": "demo"}


@pytest.mark.parametrize(
    ("command", "number"),
    first_fast(
        [
            ("excite", signal.SIGTERM),
            ("protocol", signal.SIGKILL),
            ("excite", signal.SIGKILL),
            ("demo", signal.SIGHUP),
            ("demo", signal.SIGKILL),
        ],
        2,
    ),
)
def test_commands_leave_no_process_whenever_and_however_they_end(
    command: str, number: int, tmp_path: Path, fresh_host
) -> None:
    """`python -m test.torture --only ends` has all commands, signals and what the next run does."""
    needs_room(ROOMS[command])
    words = [command, *COMMANDS[command]]
    if command == "demo":
        pytest.importorskip("rclpy", reason="needs ROS 2")
        words += ["--host", fresh_host()]
    end = ended("ur_energy", words, number, random.uniform(0.0, LATEST), tmp_path)
    assert_quiet([end], -number if number == signal.SIGKILL else 128 + number)
    assert not end.files


# Work on many bags in processes.


def length(bag: Path) -> int:
    """The work; that on the bag "slow" takes for ever."""
    if bag.name == "slow":
        time.sleep(600)
    return len(bag.name)


def test_a_caller_that_takes_no_more_results_leaves_free_processes() -> None:
    with WorkerProcesses(1) as each:
        results = each(length, [Path("a"), Path("slow"), Path("bb")])
        assert next(results).value == 1
        results.close()
        assert [result.value for result in each(length, [Path("bb"), Path("ccc")])] == [
            2,
            3,
        ]
