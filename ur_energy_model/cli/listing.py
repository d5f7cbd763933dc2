# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The commands of `ur_energy`: their list, and the one that a command line means.

The list of commands is the help that is asked for most often. It is made without
argparse, which is slow to import.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Mapping, Sequence
from functools import cache
from typing import NoReturn

from ur_energy_model import __version__
from ur_energy_model.cli.commands import COMMANDS
from ur_energy_model.cli.output import WIDTH, defined
from ur_energy_model.cli.tables import GROUPS
from ur_energy_model.errors import one_line, printable
from ur_energy_model.options import suggestion
from ur_energy_model.rooms import Command, rooms

PROGRAM = "ur_energy"
USAGE = 2
"""Exit code of a usage error."""
_DESCRIPTION = "Record, identify and estimate the energy of Universal Robots arms."
_EPILOG = "Commands that move a robot ask before they do. All others only read from it."
HELP = ("-h", "--help")


@cache
def all_commands() -> Mapping[str, Command]:
    """The commands of the core and of the rooms that are there, by their names."""
    found = {command.name: command for command in COMMANDS}
    for room in rooms():
        found |= {command.name: command for command in room.commands}
    return found


def commands_below(name: str) -> dict[str, Command]:
    """Commands that are one word longer than a name, by this word.

    Args:
        name: name of a command, such as "history"; "" for the commands of one word.
    """
    before = f"{name} " if name else ""
    below: dict[str, Command] = {}
    for full, command in all_commands().items():
        word = full.removeprefix(before)
        if full.startswith(before) and " " not in word:
            below[word] = command
    return below


def chosen_command(words: Sequence[str]) -> tuple[Command, list[str]]:
    """The command that a command line begins with, and the words behind it.

    Help, version and mistakes are printed, and end the program with SystemExit.

    Args:
        words: the command line, without the name of the program.
    """
    name = ""
    rest = list(words)
    while True:
        below = commands_below(name)
        if not below:
            return all_commands()[name], rest
        word = rest.pop(0) if rest else None
        if word is None or word not in below:
            _refuse_command(name, word, below)
        name = f"{name} {word}".strip()


def refuse(program: str, problem: str) -> NoReturn:
    """End the program with a usage error: one line on stderr, and the exit code USAGE.

    Args:
        program: program and command, such as "ur_energy record".
        problem: the problem as a clause, without a full stop.
    """
    line = one_line(f"{program}: {problem}; see {program} --help")
    print(line, file=sys.stderr)
    sys.exit(USAGE)


def _refuse_command(
    name: str, word: str | None, below: Mapping[str, Command]
) -> NoReturn:
    """Print help or version, or refuse a word that is not a command; ends the program.

    Args:
        name: words of the command so far; "" for none.
        word: word that was typed in place of the next word of the command; None if there
            is none.
        below: commands that could be there.
    """
    program = f"{PROGRAM} {name}".strip()
    if word in HELP:
        print(printable(listing(name)), end="")
        sys.exit(0)
    if word == "--version" and not name:
        print(f"{PROGRAM} {__version__}")
        sys.exit(0)
    if word is None:
        refuse(program, "the following arguments are required: COMMAND")
    if word.startswith("-"):
        known = ("help",) if name else ("help", "version")
        hint = suggestion(word.lstrip("-"), known, "--")
        refuse(program, f"there is no {word}{hint}")
    refuse(program, f"there is no command {word!r}{suggestion(word, tuple(below))}")


# Help.

_COLUMN = 24
"""Where the descriptions of commands begin."""


def listing(name: str = "") -> str:
    """The help of `ur_energy`, or of a command that has others below it.

    Args:
        name: name of that command; "" for `ur_energy`.
    """
    if name:
        command = all_commands()[name]
        groups = {"commands": commands_below(name)}
        description = command.description
        examples = "\n  ".join(command.examples)
        end = f"examples:\n  {examples}"
    else:
        groups = _grouped(commands_below(""))
        description = _DESCRIPTION
        end = textwrap.fill(_EPILOG, WIDTH)
    options = {"-h, --help": "show this help message and exit"}
    flags = "[-h]"
    if not name:
        options["--version"] = "show program's version number and exit"
        flags = "[-h] [--version]"
    program = f"{PROGRAM} {name}".strip()
    parts = [
        f"usage: {program} {flags} COMMAND ...",
        textwrap.fill(description, WIDTH),
    ]
    for title, commands in groups.items():
        summaries = {word: command.summary for word, command in commands.items()}
        parts.append(defined(title, summaries, _COLUMN))
    parts += [defined("options", options, _COLUMN), end]
    return "\n\n".join(parts) + "\n"


def _grouped(commands: Mapping[str, Command]) -> dict[str, dict[str, Command]]:
    """Commands by the titles of their groups, everyday ones first."""
    groups: dict[str, dict[str, Command]] = {title: {} for title in GROUPS}
    for name, command in commands.items():
        groups.setdefault(command.group, {})[name] = command
    return {title: found for title, found in groups.items() if found}
