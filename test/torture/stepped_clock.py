"""Runs a console script of the package in a process whose wall clock steps.

`python -m test.torture.stepped_clock SECONDS AFTER SCRIPT ARGUMENT...`: the wall clock that Python
code reads jumps by SECONDS, AFTER seconds after the start. The monotonic clock does not.
"""

from __future__ import annotations

import sys
import time


def main() -> None:
    """Let time.time and time.time_ns jump once, and run the script."""
    seconds, after = map(float, sys.argv[1:3])
    true_ns, monotonic, began = time.time_ns, time.monotonic, time.monotonic()

    def stepped_ns() -> int:
        return true_ns() + (round(1e9 * seconds) if monotonic() - began > after else 0)

    time.time_ns = stepped_ns
    time.time = lambda: stepped_ns() / 1e9
    name, sys.argv = sys.argv[3], sys.argv[3:]
    from ur_energy_model import scripts  # once the clock is in place

    sys.exit(getattr(scripts, name)())


if __name__ == "__main__":
    main()
