"""Child processes of a command: started together, watched, and never left behind."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sysconfig
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from typing_extensions import Self

from ur_energy_model.errors import UrEnergyError

STOP_TIMEOUT = 10.0
"""Longest time a child may take to end after SIGINT before it is killed [s]."""


class ChildError(UrEnergyError):
    """A child process that ended, or was not ready, when it was needed.

    Attributes:
        name: of the child.
        log: file that holds what it printed.
    """

    def __init__(self, name: str, problem: str, log: Path) -> None:
        self.name, self.log = name, log
        super().__init__(f"{name} {problem}; its output is in {log}")


class Processes:
    """A context manager whose children end with it, last started first.

    Args:
        logs: folder for one log file a child.
        environment: variables that the children get on top of this process's own.
    """

    def __init__(self, logs: Path, environment: Mapping[str, str]) -> None:
        self._logs = logs
        self._environment = {**os.environ, **environment}
        self._children: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str, command: Sequence[str]) -> None:
        """Start a console script of this package (or any command) in a session of its own.

        A session of its own keeps Ctrl-C of the terminal from reaching the child before this
        process has decided what to end first.
        """
        script = Path(sysconfig.get_path("scripts")) / command[0]
        program = str(script) if script.is_file() else command[0]
        self._logs.mkdir(parents=True, exist_ok=True)
        with self.log(name).open("ab") as log:
            self._children[name] = subprocess.Popen(
                [program, *command[1:]],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=self._environment,
                start_new_session=True,
            )

    def log(self, name: str) -> Path:
        """File that holds what a child printed."""
        return self._logs / f"{name}.log"

    def check(self) -> None:
        """Make sure that every child still runs.

        Raises:
            ChildError: one has ended.
        """
        for name, child in self._children.items():
            if child.poll() is not None:
                raise ChildError(name, f"ended with exit code {child.returncode}", self.log(name))

    def wait_until(self, ready: Callable[[], bool], name: str, timeout: float) -> None:
        """Wait for a child's readiness.

        Raises:
            ChildError: it ended, or was not ready in time.
        """
        end = time.monotonic() + timeout
        while not ready():
            self.check()
            if time.monotonic() > end:
                raise ChildError(name, f"was not ready within {timeout:g} s", self.log(name))
            time.sleep(0.05)

    def stop(self, name: str) -> int:
        """End one child as Ctrl-C would, and return its exit code."""
        child = self._children.pop(name)
        if child.poll() is None:
            child.send_signal(signal.SIGINT)
            try:
                child.wait(STOP_TIMEOUT)
            except subprocess.TimeoutExpired:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(child.pid, signal.SIGKILL)
                child.wait()
        return child.returncode

    def __enter__(self) -> Self:
        """Take SIGTERM like Ctrl-C: its default would end this process and leave the children."""
        self._before = signal.signal(signal.SIGTERM, signal.default_int_handler)
        return self

    def __exit__(self, *_: object) -> None:
        """End all children, in any case; a second Ctrl-C must not leave one behind."""
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            for name in reversed(list(self._children)):
                self.stop(name)
        finally:
            signal.signal(signal.SIGINT, before)
            signal.signal(signal.SIGTERM, self._before)
