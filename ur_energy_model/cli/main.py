# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The `ur_energy` command: its subcommands, and how errors become exit codes."""

from __future__ import annotations

import argparse
import importlib
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from ur_energy_model.cli.parser import ALL, build_parser, is_recording
from ur_energy_model.errors import InputError, UrEnergyError, one_line, optional_import
from ur_energy_model.interrupts import (
    EndRequest,
    exit_code,
    leave_closed_terminal,
    raised_once,
)

# With many small matrices, linear algebra threads only wait for each other (ten times
# slower on a busy machine). Must be set before numpy is imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

DONE = 0
REFUSED = 1


def _parsed(arguments: Sequence[str]) -> argparse.Namespace:
    """The command line; the parser is that of its subcommand alone."""
    parser = build_parser(arguments[:1] if arguments and arguments[0] in ALL else ALL)
    parser.check_options(arguments)
    options: argparse.Namespace
    options, rest = parser.parse_known_args(arguments)
    if rest:
        options.parser.error(
            f"{' '.join(rest)}: one word too many, or an option that is not there"
        )
    return options


def _check_kinds(options: argparse.Namespace) -> None:
    """Refuse a model where a recording is expected, and the reverse."""
    models: list[tuple[argparse.Action, Path]] = []
    recordings: list[Path] = []
    for action in options.parser._actions:
        value = getattr(options, action.dest, None)
        paths = [each for each in (value if isinstance(value, list) else [value]) if each]
        if action.dest in ("bag", "bags", "validate", "session", "empty"):
            recordings += [each for each in paths if isinstance(each, Path)]
        elif action.dest == "trajectory" or (action.dest in ("model", "for_gap")):
            models += [(action, each) for each in paths if isinstance(each, Path)]
        elif action.dest == "csv" and isinstance(value, list):
            for path in filter(is_recording, paths):
                raise InputError(path, "is a bag already", "use it as it is")
    for path in (*recordings, *(each for _, each in models)):
        if path.name == "metadata.yaml" and path.is_file():
            raise InputError(
                path, "is a file of a bag", f"name the folder of the bag: {path.parent}"
            )
    for action, path in models:
        others = [*recordings, *(each for _, each in models if each is not path)]
        wrong = is_recording(path) or path.suffix == ".csv"
        if action.dest == "model" and wrong and any(map(_is_yaml, others)):
            options.parser.error(f"the model comes first, then {path}")
        if is_recording(path) and action.nargs != "?":
            raise InputError(path, "is a recording", f"give {action.metavar} instead")
    for path in recordings:
        if _is_yaml(path) and path.is_file():
            alone = (
                len(recordings) == 1
                and not models
                and options.__dict__.keys() >= {"model"}
            )
            remedy = "the bag is missing, add it" if alone else "give a bag"
            raise InputError(path, "is a model or robot file, not a recording", remedy)
        if path.name.endswith((".csv", ".csv.gz", ".txt")) and path.is_file():
            raise InputError(
                path, "is no bag", "make a bag of a CSV file with: ur_energy import"
            )


def _is_yaml(path: Path) -> bool:
    return path.suffix in (".yaml", ".yml")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a subcommand and return the exit code.

    0 done, 1 refused, 2 usage error, 3 done in part (`record`, or some of many bags
    failed), 130 Ctrl-C, 143 SIGTERM, 129 SIGHUP.
    """
    name = "ur_energy"
    try:
        options = _parsed(sys.argv[1:] if arguments is None else arguments)
        name = f"ur_energy {options.command}"
        with raised_once():
            return _outcome(options)
    except KeyboardInterrupt as interrupt:
        print(f"{name}: stopped", file=sys.stderr)
        return exit_code(interrupt)


def _outcome(options: argparse.Namespace) -> int:
    """Run a subcommand; an error of this package becomes one line on stderr."""
    try:
        _check_kinds(options)
        with optional_import():
            module, _, function = options.run.rpartition(".")
            getattr(importlib.import_module(f"ur_energy_model.cli.{module}"), function)(
                options
            )
        sys.stdout.flush()
        return DONE
    except UrEnergyError as error:
        print(f"ur_energy {options.command}: {error}", file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:  # the reading end of the pipe is closed, as by `| head`
        _discard_output()
        return DONE
    except OSError as error:  # a path that is too long, a full disk behind stdout
        if leave_closed_terminal():
            raise EndRequest(signal.SIGHUP) from None
        place = "" if error.filename is None else f"{error.filename}: "
        problem = f"{place}{error.strerror or error}; check path and disk"
        print(one_line(f"ur_energy {options.command}: {problem}"), file=sys.stderr)
        if error.filename is None:
            _discard_output()
        return REFUSED


def _discard_output() -> None:
    """Let Python find nothing to complain about when it closes stdout at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main())
