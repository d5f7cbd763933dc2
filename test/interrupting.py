"""Ctrl-C at every phase of a program's life, again and again until it has ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

PATIENCE = 60.0  # longest time a program may take to end [s]; a bound, not an expectation
_AGAIN = 0.002  # time between one SIGINT and the next [s]
_AT_ONCE = 4
_SCRIPT = """\
import sys
from ur_energy_model import scripts
scripts.exit_quietly({code})  # what the script does first; before that Python itself starts
print("listening", flush=True)
sys.exit(scripts.{name}())
"""


def interrupted(
    name: str,
    arguments: Sequence[str],
    delays: Sequence[float],
    folder: Path,
    *,
    code: int = 0,
    environment: Mapping[str, str] | None = None,
) -> list[tuple[int, str]]:
    """Exit codes and outputs of a console script, interrupted after each of these delays.

    Args:
        name: of the script.
        arguments: of the script.
        delays: from the moment it listens to the first SIGINT [s]; more follow until it ends.
        folder: to run in.
        code: exit code where it ends before what it runs is imported.
        environment: variables; this process's own by default.
    """
    command = [sys.executable, "-c", _SCRIPT.format(name=name, code=code), *arguments]

    def run(delay: float) -> tuple[int, str]:
        with subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=folder,
            env=environment,
            start_new_session=True,
        ) as child:
            assert child.stdout is not None
            assert child.stdout.readline() == "listening\n"
            with suppress(subprocess.TimeoutExpired):
                child.wait(delay)
            deadline = time.monotonic() + PATIENCE
            while child.poll() is None:
                if time.monotonic() > deadline:
                    child.kill()
                with suppress(ProcessLookupError):  # to the whole group, as a terminal does
                    os.killpg(child.pid, signal.SIGINT)
                with suppress(subprocess.TimeoutExpired):
                    child.wait(_AGAIN)
            return child.returncode, child.stdout.read()

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(run, delays))


def assert_quiet(ends: Sequence[tuple[int, str]], *codes: int) -> None:
    """Every end has one of these exit codes and leaves no word of Python's."""
    for code, output in ends:
        assert code in codes, output
        assert "Traceback" not in output, output
        assert "Exception ignored" not in output, output
