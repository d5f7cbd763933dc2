"""The `ur_energy` command: the table of its subcommands, and how errors become exit codes."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence

from ur_energy_model import __version__
from ur_energy_model.errors import UrEnergyError
from ur_energy_model.interrupts import raised_once
from ur_energy_model.scripts import INTERRUPTED

# Many small matrices: threads of the linear algebra would only wait for each other (ten times
# slower beside other work). Set before anything imports numpy.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

DONE, REFUSED, USAGE = 0, 1, 2

GROUPS: tuple[str, ...] = (
    "bags", "record", "identify", "estimate", "predict", "inspect", "payload",
    "base_parameters", "excite", "protocol", "simulate", "report", "demo", "completion",
)  # fmt: skip
"""Modules of this room; each adds its subcommands with `register(subparsers)`."""


def build_parser() -> argparse.ArgumentParser:
    """The whole command-line grammar."""
    parser = argparse.ArgumentParser(
        prog="ur_energy",
        description="Energy of Universal Robots arms: record, identify, estimate. "
        "Read-only unless a motion is asked for by name.",
    )
    parser.add_argument("--version", action="version", version=f"ur_energy {__version__}")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for group in GROUPS:
        importlib.import_module(f"ur_energy_model.cli.{group}").register(subparsers)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a subcommand; the exit code is 0 done, 1 refused input, 2 usage, 130 Ctrl-C."""
    name = "ur_energy"
    try:
        options = build_parser().parse_args(arguments)
        name = f"ur_energy {options.command}"
        with raised_once():
            return _outcome(options)
    except KeyboardInterrupt:
        print(f"{name}: stopped", file=sys.stderr)
        return INTERRUPTED


def _outcome(options: argparse.Namespace) -> int:
    """Run a subcommand; what it refuses becomes one line."""
    try:
        code: int = options.run(options)
        sys.stdout.flush()
        return code
    except UrEnergyError as error:
        print(f"ur_energy {options.command}: {error}", file=sys.stderr)
        return REFUSED
    except BrokenPipeError:  # the reader of a pipe has left, as `| head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE


if __name__ == "__main__":
    sys.exit(main())
