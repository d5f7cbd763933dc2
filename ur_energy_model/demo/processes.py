"""Child processes that are monitored and always ended."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sysconfig
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ur_energy_model.errors import UrEnergyError
from ur_energy_model.typing import Self

STOP_TIMEOUT = 10.0
"""Longest time a child may take to end after SIGINT before it is killed [s]."""


class ChildError(UrEnergyError):
    """A child process ended unexpectedly or was not ready in time.

    Attributes:
        name: name of the child.
        log: file with its output.
    """

    def __init__(self, name: str, problem: str, log: Path) -> None:
        self.name, self.log = name, log
        super().__init__(f"{name} {problem}; its output is in {log}")


class Processes:
    """Context manager that ends its child processes, last started first.

    Args:
        logs: folder for one log file per child.
        environment: additional environment variables of the children.
    """

    def __init__(self, logs: Path, environment: Mapping[str, str]) -> None:
        self._logs = logs
        self._environment = {**os.environ, **environment}
        self._children: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str, command: Sequence[str]) -> None:
        """Start a console script of this package, or any command, in a new session.

        In a new session, Ctrl-C of the terminal does not reach the child; this process decides the
        order in which the children end.
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
        """Log file of a child."""
        return self._logs / f"{name}.log"

    def check(self) -> None:
        """Check that every child is running.

        Raises:
            ChildError: a child has ended.
        """
        for name, child in self._children.items():
            if child.poll() is not None:
                raise ChildError(name, f"ended with exit code {child.returncode}", self.log(name))

    def wait_until(self, ready: Callable[[], bool], name: str, timeout: float) -> None:
        """Wait at most `timeout` s until a child is ready.

        Raises:
            ChildError: a child ended, or this one was not ready in time.
        """
        end = time.monotonic() + timeout
        while not ready():
            self.check()
            if time.monotonic() > end:
                raise ChildError(name, f"was not ready within {timeout:g} s", self.log(name))
            time.sleep(0.05)

    def stop(self, name: str) -> int:
        """End one child with SIGINT, as Ctrl-C does, and return its exit code."""
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
        """Handle SIGTERM like Ctrl-C; its default would end this process but not the children."""
        self._before = signal.signal(signal.SIGTERM, signal.default_int_handler)
        return self

    def __exit__(self, *_: object) -> None:
        """End all children; a second Ctrl-C is ignored meanwhile."""
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            for name in reversed(list(self._children)):
                self.stop(name)
        finally:
            signal.signal(signal.SIGINT, before)
            signal.signal(signal.SIGTERM, self._before)
