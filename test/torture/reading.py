# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Hands hostile files to a process of its own, whose time and memory are measured.

`python -m test.torture.reading` takes lines "KIND PATH" and answers each with a line of
JSON: outcome ("read", "refused" or "traceback"), text, seconds, and peak memory of this
file [MB].
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from test.torture.harness import ROOT, Surroundings, Verdict, bound_memory, peak_memory
from test.torture.hostile_files import READERS as YAML_READERS
from ur_energy_model.cli.main import main as command
from ur_energy_model.errors import UrEnergyError
from ur_energy_model.telemetry.bag.reader import iterate_bag, read_bag
from ur_energy_model.telemetry.bag.recovery import recover_bag
from ur_energy_model.telemetry.bag.retention import file_contents
from ur_energy_model.typing import Array

LONGEST = 60.0  # most time that one file may take [s], on a busy machine
LONGEST_TEXT = 1500  # longest refusal [characters]


class ReadingWorker:
    """A process that reads files; started again after a hang or a crash."""

    def __init__(self, around: Surroundings) -> None:
        self._around = around
        self._child: subprocess.Popen[str] | None = None
        around.at_end(self._close)

    def judge(self, verdict: Verdict, kind: str, path: Path) -> str:
        """Outcome of reading a file: read or refused in one line, in bounded time and memory."""
        answer = self._ask(kind, path)
        memory, outcome, text = (answer[key] for key in ("memory", "outcome", "text"))
        verdict.weigh(memory)
        verdict.seconds = max(verdict.seconds, answer["seconds"])
        verdict.expect(outcome in ("read", "refused"), f"{kind}: {outcome}: {text[:300]}")
        if outcome == "refused":
            one = "\n" not in text and len(text) < LONGEST_TEXT
            verdict.expect(one, f"{kind}: the refusal is not one line: {text[:200]!r}")
            verdict.expect(
                "\x1b" not in text, f"{kind}: the refusal has escape sequences"
            )
        return outcome

    def _ask(self, kind: str, path: Path) -> dict[str, Any]:
        if self._child is None:
            with (self._around.folder / "reading.txt").open("ab") as errors:
                self._child = subprocess.Popen(
                    [sys.executable, "-m", "test.torture.reading"],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    text=True,
                    cwd=ROOT,
                    env=self._around.environment,
                )
            bound_memory(self._child.pid)
        child = self._child
        assert child.stdin is not None
        assert child.stdout is not None
        with suppress(BrokenPipeError):  # reported below
            child.stdin.write(f"{kind} {path}\n")
            child.stdin.flush()
        ready, _, _ = select.select([child.stdout], [], [], LONGEST)
        if ready and (line := child.stdout.readline()):
            return dict(json.loads(line))
        outcome = "the reader crashed" if ready else f"hang: over {LONGEST:g} s"
        self._close()
        return {"outcome": outcome, "text": "", "seconds": LONGEST, "memory": 0.0}

    def _close(self) -> None:
        if self._child is not None:
            self._child.kill()
            with suppress(BrokenPipeError):
                self._child.communicate()
            self._child = None


def _iterate(path: Path) -> None:
    for _ in iterate_bag(path):
        pass


def _import(path: Path) -> dict[str, Array]:
    """Columns of an imported CSV file."""
    with tempfile.TemporaryDirectory() as folder:
        code = command(["import", str(path), "--robot", "ur5e", "-o", f"{folder}/bag"])
        if code not in (0, 1, 3):
            raise AssertionError(f"import ended with {code}")
        if code:
            raise UrEnergyError("refused by import")
        return dict(read_bag(f"{folder}/bag").columns)


def _table(path: Path) -> None:
    """Import a table in which each column holds its number, see `hostile_files.shifted_csv`."""
    columns = _import(path)
    for first, name in ((0, "actual_q"), (6, "actual_qd")):
        if not np.allclose(columns[name], 0.1 * np.arange(first, first + 6), atol=1e-6):
            raise AssertionError(f"values of {name} come from other columns")


READERS: dict[str, Callable[[Path], Any]] = {
    "bag": read_bag,
    "iterate": _iterate,
    "events": file_contents,
    "recover": recover_bag,
    **YAML_READERS,
    "csv": _import,
    "table": _table,
}


def main() -> None:
    """Answer until the input ends."""
    answers = sys.stdout
    sys.stdout = sys.stderr
    for line in sys.stdin:
        kind, _, path = line.rstrip("\n").partition(" ")
        with suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
        began = time.monotonic()
        outcome = "read"
        text = ""
        try:
            READERS[kind](Path(path))
        except UrEnergyError as error:
            outcome = "refused"
            text = str(error)
        except (Exception, SystemExit) as error:
            place = traceback.extract_tb(error.__traceback__)[-1]
            file = Path(place.filename).name
            outcome = "traceback"
            text = f"{type(error).__name__} in {file}:{place.lineno}: {error}"
        seconds = time.monotonic() - began
        answer = {"outcome": outcome, "text": text[:2000], "seconds": seconds}
        print(
            json.dumps({**answer, "memory": peak_memory(os.getpid())}),
            file=answers,
            flush=True,
        )


if __name__ == "__main__":
    main()
