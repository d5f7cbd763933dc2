"""Reads hostile files in a process of its own, whose time and memory are measured.

`python -m test.torture.reading_worker` takes lines "KIND PATH" and answers each with a line of
JSON: outcome ("read", "refused" or "traceback"), text, seconds, and peak memory of this file [MB].
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from test.torture.watched import peak_memory
from ur_energy_model.cli.main import main as command
from ur_energy_model.errors import UrEnergyError
from ur_energy_model.model.model_file import load_model
from ur_energy_model.model.robots import load_robot
from ur_energy_model.telemetry.bag.reader import iterate_bag, read_bag, read_events
from ur_energy_model.telemetry.bag.recovery import recover_bag
from ur_energy_model.trajectory.fourier import load_trajectory
from ur_energy_model.typing import Array


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
        expected = 0.1 * np.arange(first, first + 6)
        if not np.allclose(columns[name], expected, atol=1e-6):
            raise AssertionError(f"values of {name} come from other columns")


READERS: dict[str, Callable[[Path], Any]] = {
    "bag": read_bag,
    "iterate": _iterate,
    "events": read_events,
    "recover": recover_bag,
    "robot": load_robot,
    "model": load_model,
    "trajectory": load_trajectory,
    "csv": _import,
    "table": _table,
}


def read(kind: str, path: Path) -> dict[str, Any]:
    """Read one file; what happened, with time [s] and peak memory [MB]."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    began = time.monotonic()
    try:
        READERS[kind](path)
        outcome, text = "read", ""
    except UrEnergyError as error:
        outcome, text = "refused", str(error)
    except (Exception, SystemExit) as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        outcome = "traceback"
        text = f"{type(error).__name__} in {Path(place.filename).name}:{place.lineno}: {error}"
    return {
        "outcome": outcome,
        "text": text[:2000],
        "seconds": time.monotonic() - began,
        "memory": peak_memory(os.getpid()),
    }


def main() -> None:
    """Answer until the input ends."""
    answers, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        kind, _, path = line.rstrip("\n").partition(" ")
        print(json.dumps(read(kind, Path(path))), file=answers, flush=True)


if __name__ == "__main__":
    main()
