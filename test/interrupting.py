# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Signals at every phase of a program's life: how it ends, and what it leaves behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

# longest time a program may take to end [s]; a bound, not an expectation
PATIENCE = 240.0
LINGER = 20.0
"""Longest time that a process may outlive its parent [s]: a node that finishes its bag has 10."""
MARK = "UR_ENERGY_TEST_MARK"
"""Variable of the environment by which descendants are found, whatever became of their parents."""
_AGAIN = 0.002  # time between one signal and the next [s]
_AT_ONCE = 4
_SCRIPT = """\
import sys
from ur_energy_model import interrupts, scripts
interrupts.exit_at_once({code})  # what the script does first; before that Python itself starts
print("listening", flush=True)
sys.exit(scripts.{name}())
"""
COMPLAINTS = (
    "Traceback",
    "Exception ignored",
    "semaphore",
    "resource_tracker",
    "core dumped",
)


@dataclass
class End:
    """How a program ended.

    Attributes:
        code: exit code, negative where a signal has killed it.
        output: what was printed, also by its children after its end.
        left: command lines of processes that outlived it for `LINGER`; they were killed.
        files: paths that temporary files and folders have, in the folder of the program
            and in the folder for temporary files.
    """

    code: int
    output: str
    left: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)


def ended(
    name: str,
    arguments: Sequence[str],
    number: int,
    delay: float,
    folder: Path,
    *,
    code: int | None = None,
    again: bool = False,
    environment: Mapping[str, str] | None = None,
) -> End:
    """Start a console script, end it by a signal, and look for what it leaves.

    Args:
        name: of the script.
        arguments: of the script.
        number: of the signal; SIGKILL goes to the script alone, others to its process
            group, as those of a terminal do.
        delay: from the moment it listens to the signal [s].
        folder: to run in; the folder `temporary` in it is for temporary files.
        code: exit code where a signal arrives before what it runs is imported; None for
            128 plus the number of the signal.
        again: send the signal again until the script has ended.
        environment: variables; this process's own by default.
    """
    command = [sys.executable, "-c", _SCRIPT.format(name=name, code=code), *arguments]
    temporary = folder / "temporary"
    temporary.mkdir(exist_ok=True)
    mark = uuid.uuid4().hex
    variables = dict(os.environ if environment is None else environment)
    variables |= {MARK: mark, "TMPDIR": str(temporary)}
    output = folder / f"output_{mark}.txt"
    with output.open("wb") as printed:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env=variables,
            start_new_session=True,
        )
    _wait_for_line(child, output)
    with suppress(subprocess.TimeoutExpired):
        child.wait(delay)
    deadline = time.monotonic() + PATIENCE
    sent = False
    while child.poll() is None:
        if time.monotonic() > deadline:
            child.kill()
        if again or not sent:
            with suppress(ProcessLookupError):
                send = os.kill if number == signal.SIGKILL else os.killpg
                send(child.pid, number)
            sent = True
        with suppress(subprocess.TimeoutExpired):
            child.wait(_AGAIN if again else 0.1)
    left = _left(mark)
    text = output.read_text(encoding="utf-8", errors="replace").removeprefix(
        "listening\n"
    )
    output.unlink()
    return End(child.returncode, text, left, temporary_files(folder))


def interrupted(
    name: str,
    arguments: Sequence[str],
    delays: Sequence[float],
    folder: Path,
    *,
    number: int = signal.SIGINT,
    code: int | None = None,
    environment: Mapping[str, str] | None = None,
) -> list[End]:
    """Ends of a console script that gets a signal again and again, each after one of the delays."""

    def run(delay: float) -> End:
        return ended(
            name,
            arguments,
            number,
            delay,
            folder,
            code=code,
            again=True,
            environment=environment,
        )

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(run, delays))


def assert_quiet(ends: Sequence[End], *codes: int) -> None:
    """Every end has one of these exit codes, no word of Python's, and leaves no process."""
    for end in ends:
        assert end.code in codes, end
        for complaint in COMPLAINTS:
            assert complaint not in end.output, end.output
        assert not end.left


def temporary_files(folder: Path) -> list[str]:
    """Temporary files and folders of this package in a folder and below, and all in `temporary`."""
    found = {path for path in folder.rglob("*") if ".ur_energy-" in path.name}
    found |= set((folder / "temporary").glob("*"))
    return sorted(str(path.relative_to(folder)) for path in found)


def marked(mark: str) -> dict[int, str]:
    """Command lines of running processes with this mark in their environment, by number."""
    found = {}
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if f"{MARK}={mark}".encode() in (path / "environ").read_bytes():
                line = (path / "cmdline").read_bytes().replace(b"\0", b" ")
                found[int(path.name)] = line.decode(errors="replace")
    return found


def _left(mark: str) -> list[str]:
    """Command lines of the marked processes that do not end in time; kills them."""
    deadline = time.monotonic() + LINGER
    while (running := marked(mark)) and time.monotonic() < deadline:
        time.sleep(0.05)
    for number in running:
        with suppress(ProcessLookupError):
            os.kill(number, signal.SIGKILL)
    return list(running.values())


def _wait_for_line(child: subprocess.Popen[bytes], output: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while not output.read_bytes():
        assert child.poll() is None
        assert time.monotonic() < deadline, "the script did not start"
        time.sleep(0.01)
