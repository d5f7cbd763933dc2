"""Hands hostile files to a reading worker, and judges its answers."""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from test.torture.case import MEMORY_LIMIT, Verdict
from test.torture.surroundings import ROOT, Surroundings
from test.torture.watched import ADDRESS_SPACE

LONGEST = 60.0
"""Most time that one file may take [s], on a busy machine."""
LONGEST_TEXT = 1500
"""Longest refusal [characters]."""


class ReadingWorker:
    """A process that reads files; started again after a hang or a crash."""

    def __init__(self, around: Surroundings) -> None:
        self._around = around
        self._child: subprocess.Popen[str] | None = None
        around.at_end(self.close)

    def judge(self, verdict: Verdict, kind: str, path: Path) -> dict[str, Any]:
        """Read a file as this kind: read or refused in one line, in bounded time and memory."""
        answer = self._ask(kind, path)
        verdict.weigh(answer["memory"])
        verdict.seconds = max(verdict.seconds, answer["seconds"])
        text = answer["text"]
        fine = answer["outcome"] in ("read", "refused")
        verdict.expect(fine, f"{kind}: {answer['outcome']}: {text[:300]}")
        if answer["outcome"] == "refused":
            one = "\n" not in text and len(text) < LONGEST_TEXT
            verdict.expect(one, f"{kind}: the refusal is not one line: {text[:200]!r}")
            verdict.expect("\x1b" not in text, f"{kind}: the refusal has escape sequences")
        limit = f"{kind}: {answer['memory']:.0f} MB, limit {MEMORY_LIMIT:.0f} MB"
        verdict.expect(answer["memory"] < MEMORY_LIMIT, limit)
        return answer

    def _ask(self, kind: str, path: Path) -> dict[str, Any]:
        child = self._start() if self._child is None else self._child
        assert child.stdin is not None
        assert child.stdout is not None
        with suppress(BrokenPipeError):  # told below
            child.stdin.write(f"{kind} {path}\n")
            child.stdin.flush()
        ready, _, _ = select.select([child.stdout], [], [], LONGEST)
        line = child.stdout.readline() if ready else ""
        if line:
            return dict(json.loads(line))
        outcome = "the reader crashed" if ready else f"hang: over {LONGEST:g} s"
        self.close()
        return {"outcome": outcome, "text": "", "seconds": LONGEST, "memory": 0.0}

    def _start(self) -> subprocess.Popen[str]:
        errors = (self._around.folder / "reading_worker.txt").open("ab")
        self._child = subprocess.Popen(
            [sys.executable, "-m", "test.torture.reading_worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            cwd=ROOT,
            env=self._around.environment,
            start_new_session=True,
        )
        errors.close()
        limits = (ADDRESS_SPACE, ADDRESS_SPACE)
        with suppress(OSError):
            resource.prlimit(self._child.pid, resource.RLIMIT_AS, limits)
        return self._child

    def close(self) -> None:
        """End the process."""
        if self._child is not None:
            with suppress(OSError):
                os.killpg(self._child.pid, signal.SIGKILL)
            with suppress(BrokenPipeError):
                self._child.communicate()
            self._child = None


def worker_of(around: Surroundings) -> ReadingWorker:
    """The worker that all cases share."""
    worker = around.kept.setdefault("reading worker", None) or ReadingWorker(around)
    around.kept["reading worker"] = worker
    assert isinstance(worker, ReadingWorker)
    return worker
