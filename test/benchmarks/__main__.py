# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Run all benchmarks, or those named: `python -m test.benchmarks [NAME...]`."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path


def main(names: list[str]) -> int:
    """Call `main()` of each bench_*.py; a failing one does not keep the others from running."""
    found = sorted(path.stem for path in Path(__file__).parent.glob("bench_*.py"))
    wanted = [f"bench_{name.removeprefix('bench_')}" for name in names] or found
    if unknown := sorted(set(wanted) - set(found)):
        print(f"no such benchmark: {', '.join(unknown)}; there are {', '.join(found)}")
        return 2
    failed = []
    for name in wanted:
        print(f"== {name}", flush=True)
        try:
            importlib.import_module(f"test.benchmarks.{name}").main()
        except Exception as error:  # whatever it is, the others still count
            failed.append(name)
            print(f"{name}: {type(error).__name__}: {error}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
