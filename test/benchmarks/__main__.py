"""Run all benchmarks, or those named: `python -m test.benchmarks [NAME...]`."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path


def main(names: list[str]) -> int:
    """Call `main()` of each bench_*.py; a failing one does not keep the others from running."""
    found = sorted(path.stem for path in Path(__file__).parent.glob("bench_*.py"))
    wanted = [name if name.startswith("bench_") else f"bench_{name}" for name in names] or found
    unknown = sorted(set(wanted) - set(found))
    if unknown:
        print(f"no such benchmark: {', '.join(unknown)}; there are {', '.join(found)}")
        return 2
    failed = [name for name in wanted if not _run(name)]
    if failed:
        print(f"failed: {', '.join(failed)}")
    return 1 if failed else 0


def _run(name: str) -> bool:
    print(f"== {name}", flush=True)
    try:
        importlib.import_module(f"test.benchmarks.{name}").main()
    except Exception as error:  # whatever it is, the others still count
        print(f"{name}: {type(error).__name__}: {error}")
        return False
    return True


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
