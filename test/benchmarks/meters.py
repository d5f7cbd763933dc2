# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""What benchmarks measure with: processor time, memory, and tables."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
"""Recordings of real arms, kept beside the checkout."""
UR_ENERGY = (sys.executable, "-m", "ur_energy_model.cli.main")
SECONDS = float(os.environ.get("BENCH_SECONDS", "20"))
"""Length of a measurement of something live [s]."""


def least_cpu(action: Callable[[], object], *, repeats: int = 3) -> float:
    """Least processor time of an action [s]."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        action()
        times.append(time.process_time() - start)
    return min(times)


def spent_by(process: int | str) -> float:
    """Processor time of a process so far [s]."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident(process: int | str = "self") -> float:
    """Resident memory of a process [MB]."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE") / 1e6


def size(folder: Path) -> int:
    """Bytes of the files below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table whose columns stand under each other."""
    lines = [list(columns), *map(list, rows)]
    widths = [max(3, *(len(line[k]) for line in lines)) for k in range(len(columns))]
    lines.insert(1, ["-" * width for width in widths])
    return "\n".join(f"| {' | '.join(map(str.ljust, line, widths))} |" for line in lines)
