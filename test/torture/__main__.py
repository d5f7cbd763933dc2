# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Run the harness: `python -m test.torture [--seed N] [--minutes M] [--only FAMILY]`."""

from __future__ import annotations

import argparse
import importlib
import signal
import sys

from test.torture.harness import Family, report, run_families

FAMILIES = (
    "network", "kills", "ends", "disks", "bags", "files", "scripts", "clocks", "messages",
    "history", "queries",
)  # fmt: skip


def load(name: str) -> Family:
    """A family of faults, from the module of its name."""
    module = importlib.import_module(
        f"test.torture.{'files' if name == 'bags' else name}"
    )
    return module.BAGS if name == "bags" else module.FAMILY


def main() -> int:
    """Run the families; returns 1 if any case failed."""
    parser = argparse.ArgumentParser(prog="python -m test.torture", description=__doc__)
    parser.add_argument(
        "--seed", type=int, default=0, help="of all random numbers (default: 0)"
    )
    parser.add_argument(
        "--minutes",
        type=float,
        default=13.0,
        help="for all families together (default: 13)",
    )
    parser.add_argument(
        "--only", choices=FAMILIES, action="append", help="run only this family"
    )
    parser.add_argument("--case", type=int, help="run only the case of this number")
    options = parser.parse_args()
    # Under nohup, and in a background job, a program and what it starts would ignore
    # these.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    families = [load(name) for name in options.only or FAMILIES]
    results = run_families(families, options.seed, 60.0 * options.minutes, options.case)
    return report(results, options.seed)


if __name__ == "__main__":
    sys.exit(main())
