# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The `ur_energy` command: how it runs a subcommand, and how errors become exit codes."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ur_energy_model.cli.listing import PROGRAM, chosen_command
from ur_energy_model.errors import UrEnergyError, one_line, optional_import
from ur_energy_model.interrupts import (
    EndRequest,
    exit_code,
    leave_closed_terminal,
    raised_once,
)
from ur_energy_model.rooms import loaded, use_values

if TYPE_CHECKING:
    from ur_energy_model.cli.parser import Call

# With many small matrices, linear algebra threads only wait for each other (ten times
# slower on a busy machine). numpy reads the variable when it is imported, so that it is
# set before.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

DONE = 0
"""Exit code of a command that has done all its work."""
REFUSED = 1
"""Exit code of a command that an error of the operating system has stopped."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a subcommand.

    Args:
        arguments: words of the command line behind the name of the program; None for the
            words of this process.

    Returns:
        The exit code: 0 done, 1 refused, 3 done in part (`record`, or some of many bags
        failed), 130 Ctrl-C, 143 SIGTERM, 129 SIGHUP. A usage error raises SystemExit with
        the exit code 2.
    """
    name = PROGRAM
    try:
        words = sys.argv[1:] if arguments is None else arguments
        command, rest = chosen_command(words)
        name = f"{PROGRAM} {command.name}"
        # A list of commands, which ends the program above, needs no parser.
        from ur_energy_model.cli.parser import call_of

        call = call_of(command, rest)
        with raised_once():
            return _outcome(call, name)
    except KeyboardInterrupt as interrupt:
        print(f"{name}: stopped", file=sys.stderr)
        return exit_code(interrupt)


def _outcome(call: Call, name: str) -> int:
    """Run a command; an error of this package becomes one line on stderr.

    Args:
        call: the command and its values.
        name: name of the command, for errors.

    Returns:
        The exit code.

    Raises:
        EndRequest: the terminal of this process was closed.
    """
    from ur_energy_model.cli.kinds import check_kinds
    from ur_energy_model.cli.options import options_of_tables
    from ur_energy_model.cli.parser import command_tables

    try:
        check_kinds(call)
        for option in options_of_tables(command_tables(call.command)):
            use_values(option, call.values[option.name])
        with optional_import():
            loaded(call.command.run)(call.given)
        sys.stdout.flush()
        return DONE
    except UrEnergyError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:  # the reading end of the pipe is closed, as by `| head`
        _discard_output()
        return DONE
    except OSError as error:  # a path that is too long, a full disk behind stdout
        if leave_closed_terminal():
            raise EndRequest(signal.SIGHUP) from None
        place = "" if error.filename is None else f"{error.filename}: "
        problem = f"{place}{error.strerror or error}; check path and disk"
        print(one_line(f"{name}: {problem}"), file=sys.stderr)
        if error.filename is None:  # a write into an open file failed, such as stdout
            _discard_output()
        return REFUSED


def _discard_output() -> None:
    """Replace stdout, so that Python can flush and close it without an error."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main())
