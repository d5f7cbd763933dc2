"""The `ur_energy` command: its subcommands, and how errors become exit codes."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from ur_energy_model import __version__
from ur_energy_model.errors import UrEnergyError
from ur_energy_model.interrupts import raised_once
from ur_energy_model.scripts import INTERRUPTED
from ur_energy_model.terminal_text import one_line, printable

# With many small matrices, linear algebra threads only wait for each other (ten times slower on a
# busy machine). Must be set before numpy is imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

DONE, REFUSED, USAGE = 0, 1, 2

COMMANDS: tuple[str, ...] = (
    "import_csv", "recover", "record", "identify", "learn", "evaluate", "estimate", "predict",
    "optimize", "inspect", "payload", "base_parameters", "excite", "protocol", "simulate", "report",
    "history", "layouts", "demo", "completion",
)  # fmt: skip
"""Modules of the subcommands, in the order of the help; each has `register(subparsers)`."""


class _Parser(argparse.ArgumentParser):
    """A parser whose messages, which quote the command line, cannot control the terminal.

    Options may stand between positional arguments, also if one of these is optional.
    """

    _mixing = False

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        optional = any(a.nargs == "?" and not a.option_strings for a in self._actions)
        if self._mixing or not optional:
            return super().parse_known_args(args, namespace)
        self._mixing = True  # argparse calls this method again, for options and the rest
        try:
            return self.parse_known_intermixed_args(args, namespace)
        finally:
            self._mixing = False

    def _print_message(self, message: str, file: Any = None) -> None:
        super()._print_message(printable(message), file)

    def error(self, message: str) -> NoReturn:
        super().error(one_line(message))


def build_parser() -> argparse.ArgumentParser:
    """The parser of the whole command line."""
    parser = _Parser(
        prog="ur_energy",
        description="Record, identify and estimate the energy of Universal Robots arms. Only "
        "'excite --execute' and 'protocol' move a robot.",
    )
    parser.add_argument("--version", action="version", version=f"ur_energy {__version__}")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for command in COMMANDS:
        importlib.import_module(f"ur_energy_model.cli.{command}").register(subparsers)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a subcommand and return the exit code.

    0 done, 1 refused, 2 usage error, 3 done in part (`record`, or some of many bags failed),
    130 Ctrl-C.
    """
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
    """Run a subcommand; an error of this package becomes one line on stderr."""
    try:
        options.run(options)
        sys.stdout.flush()
        return DONE
    except UrEnergyError as error:
        print(f"ur_energy {options.command}: {error}", file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:  # the reading end of the pipe is closed, as by `| head`
        _discard_output()
        return DONE
    except OSError as error:  # a path that is too long, a full disk behind stdout
        place = "" if error.filename is None else f"{error.filename}: "
        problem = f"{place}{error.strerror or error}; check path and disk"
        print(one_line(f"ur_energy {options.command}: {problem}"), file=sys.stderr)
        _discard_output()
        return REFUSED


def _discard_output() -> None:
    """Let Python find nothing to complain about when it closes stdout at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main())
