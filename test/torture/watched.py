"""A process under test: its output, exit code, peak memory, and whether it hangs."""

from __future__ import annotations

import os
import re
import resource
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

from test.torture.case import MEMORY_LIMIT, Verdict

SAMPLING = 0.05
"""Period of the memory measurement [s]."""
ADDRESS_SPACE = 6 << 30
"""Bound of the address space of a process [bytes]: what runs wild must not end the machine."""
_COMPLAINTS = re.compile(
    r"Traceback \(most recent call last\)|Exception ignored|Fatal Python error|"
    r"Segmentation fault|terminate called|exceptiongroup"
)
_CRASHES = {-signal.SIGSEGV, -signal.SIGABRT, -signal.SIGBUS, -signal.SIGFPE, -signal.SIGILL}


def peak_memory(pid: int) -> float:
    """Peak memory of a running process [MB], 0 if it has ended."""
    with suppress(OSError, ValueError):
        text = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
        match = re.search(r"VmHWM:\s+(\d+) kB", text)
        return int(match[1]) / 1024 if match else 0.0
    return 0.0


def complaint(output: str) -> str | None:
    """The lines of an output around a traceback or the like; None without one."""
    match = _COMPLAINTS.search(output)
    if match is None:
        return None
    lines = [line for line in output[match.start() :].splitlines() if line.strip()]
    raised = [line for line in lines if re.match(r"[\w.]+(Error|Exception|Interrupt)\b", line)]
    return " / ".join([lines[0], *raised[:1]])[:300]


class Watched:
    """A process in a session of its own; what it prints goes to a file.

    Args:
        command: to run.
        folder: to run in; its output goes to a file there.
        environment: variables; those of this process by default.
    """

    _started: ClassVar[list[Watched]] = []

    def __init__(
        self, command: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        self.began = time.monotonic()
        self.memory = 0.0
        self.hung = False
        self._path = folder / f"output_{time.monotonic_ns()}.txt"
        with self._path.open("wb") as file:
            self._child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                cwd=folder,
                env=environment,
                start_new_session=True,
            )
        with suppress(OSError):
            resource.prlimit(self.pid, resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
        self._code: int | None = None
        self._ended = threading.Event()
        for work in (self._reap, self._sample):
            threading.Thread(target=work, daemon=True).start()
        self._started.append(self)

    @classmethod
    def kill_the_rest(cls) -> None:
        """Kill the processes that cases left behind, such as after an error of the harness."""
        for each in cls._started:
            if each.running:
                each.finish(0.0)
        cls._started.clear()

    @property
    def pid(self) -> int:
        """Process number."""
        return self._child.pid

    @property
    def running(self) -> bool:
        """Whether it has not ended yet."""
        return not self._ended.is_set()

    @property
    def output(self) -> str:
        """What it has printed so far."""
        return self._path.read_text(encoding="utf-8", errors="replace")

    def send(self, number: int) -> None:
        """Send a signal, if it still runs."""
        if self.running:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def wait(self, seconds: float) -> int | None:
        """Exit code, None if it has not ended within this time."""
        self._ended.wait(seconds)
        return self._code

    def wait_for(self, text: str, seconds: float) -> bool:
        """Wait until it has printed a text; returns False if it has not, or has ended."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if text in self.output:
                return True
            if not self.running:
                return text in self.output
            time.sleep(SAMPLING)
        return False

    def end(self, seconds: float, number: int = signal.SIGINT) -> int:
        """Ask it to end, and kill it if it does not within this time; returns the exit code."""
        self.send(number)
        return self.finish(seconds)

    def finish(self, seconds: float) -> int:
        """Wait for its end, and kill it if that takes longer; returns the exit code."""
        code = self.wait(seconds)
        if code is None:
            self.hung = True
            with suppress(OSError):
                os.killpg(self.pid, signal.SIGKILL)
            self._ended.wait()
        return -signal.SIGKILL if self._code is None else self._code

    def judge(self, verdict: Verdict, codes: Sequence[int] | None = None) -> None:
        """Note tracebacks, crashes, hangs, too much memory, and an exit code not in `codes`."""
        verdict.weigh(self.memory)
        verdict.expect(not self.hung, "hang: it did not end in time and was killed")
        found = complaint(self.output)
        verdict.expect(found is None, f"traceback: {found}")
        limit = f"memory: {self.memory:.0f} MB, limit {MEMORY_LIMIT:.0f} MB"
        verdict.expect(self.memory < MEMORY_LIMIT, limit)
        code = self._code
        if code is None or self.hung:
            return
        verdict.expect(code not in _CRASHES, f"crash: exit code {code}")
        if codes is not None:
            last = (self.output.strip().splitlines() or ["no output"])[-1]
            verdict.expect(code in codes, f"exit code {code}, not {[*codes]}: {last[:200]}")

    def _sample(self) -> None:
        while self.running:
            self.memory = max(self.memory, peak_memory(self.pid))
            time.sleep(SAMPLING)

    def _reap(self) -> None:
        """Wait for the end; the exact peak is known then, where it is above that of the harness.

        The kernel's figure begins with the memory of the process that starts another.
        """
        _, status, usage = os.wait4(self.pid, 0)
        if usage.ru_maxrss / 1024 > peak_memory(os.getpid()) + 1.0:
            self.memory = max(self.memory, usage.ru_maxrss / 1024)
        self._code = self._child.returncode = os.waitstatus_to_exitcode(status)
        self._ended.set()
