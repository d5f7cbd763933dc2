"""Runs command lines of `ur_energy` one after the other, each in a child of one warm process.

Started as a program: a JSON list of command lines on stdin, a JSON list of outcomes on stdout.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

PATIENCE = 15
"""Longest time that a command may take [s]; a bound, not an expectation."""


@dataclass(frozen=True)
class Outcome:
    """End of a command.

    Attributes:
        arguments: of `ur_energy`.
        code: exit code, or minus the signal that ended it.
        errors: what it printed on stderr.
        megabytes: peak memory.
    """

    arguments: list[str]
    code: int
    errors: str
    megabytes: float


def outcomes(lines: Sequence[Sequence[str]], folder: Path) -> list[Outcome]:
    """Run command lines in a folder."""
    done = subprocess.run(
        [sys.executable, "-m", "test.cli.command_worker"],
        input=json.dumps([list(line) for line in lines]),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
    )
    return [Outcome(**each) for each in json.loads(done.stdout)]


def _run(arguments: list[str]) -> Outcome:
    with tempfile.TemporaryFile() as errors:
        child = os.fork()
        if child == 0:
            _become(arguments, errors.fileno())
        deadline = time.monotonic() + PATIENCE
        while True:
            pid, status, usage = os.wait4(child, os.WNOHANG)
            if pid:
                break
            if time.monotonic() > deadline:
                os.killpg(child, signal.SIGKILL)
                deadline = float("inf")
            time.sleep(0.002)
        errors.seek(0)
        said = errors.read().decode(errors="replace")
    return Outcome(arguments, os.waitstatus_to_exitcode(status), said, usage.ru_maxrss / 1024)


def _become(arguments: list[str], errors: int) -> None:
    """Be the command, in a process group of its own, without stdin and stdout."""
    from ur_energy_model.scripts import ur_energy

    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    for source, target in ((null, 0), (null, 1), (errors, 2)):
        os.dup2(source, target)
    sys.argv = ["ur_energy", *arguments]
    code = 1
    try:
        code = ur_energy()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    import ur_energy_model.cli.main
    import ur_energy_model.identification.evaluation
    import ur_energy_model.telemetry.bag.reader  # noqa: F401  the slow imports, once

    json.dump([asdict(_run(each)) for each in json.load(sys.stdin)], sys.stdout)
