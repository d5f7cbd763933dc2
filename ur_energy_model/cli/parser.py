# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The command line of `ur_energy`: which command it is, its values, and the help.

The first words of the command line choose a `Command`, of the core or of a room; its
tables then make one parser of argparse, which splits the rest into words. What the words
mean is in the tables (`options`).
"""

from __future__ import annotations

import argparse
import re
import sys
import textwrap
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple, NoReturn

from ur_energy_model import __version__
from ur_energy_model.cli.commands import COMMANDS
from ur_energy_model.cli.output import WIDTH
from ur_energy_model.cli.tables import GROUPS, SUBJECT_HEADINGS
from ur_energy_model.errors import one_line, printable
from ur_energy_model.options import (
    Option,
    add_options,
    options_of_tables,
    stated_values,
    suggestion,
    table_of,
)
from ur_energy_model.rooms import Command, Given, NoOptions, loaded, rooms, tables_of

PROGRAM = "ur_energy"
USAGE = 2
"""Exit code of a usage error."""
_DESCRIPTION = "Record, identify and estimate the energy of Universal Robots arms."
_EPILOG = "Commands that move a robot ask before they do. All others only read from it."
_HELP = ("-h", "--help")
_SYNONYMS: Mapping[str, tuple[str, ...]] = {
    "ip": ("host",),
    "address": ("host",),
    "robot-ip": ("host",),
    "robot_ip": ("host",),
    "time": ("duration", "period", "cycle-time"),
    "duration": ("duration", "period", "cycle-time"),
}
"""Names that other programs or commands have for options."""
_PLACE = re.compile(r"[a-z_.]+:\w+")
"""Notes of a command that are made by a function, instead of a text."""


class Call(NamedTuple):
    """A command, and the values that the user has given to it.

    Attributes:
        command: which it is.
        values: of all its options, by their names.
        given: the same as objects of its tables.
    """

    command: Command
    values: Mapping[str, Any]
    given: Given


@cache
def all_commands() -> Mapping[str, Command]:
    """The commands of the core and of the rooms that are there, by their names."""
    found = {command.name: command for command in COMMANDS}
    for room in rooms():
        found |= {command.name: command for command in room.commands}
    return found


def commands_below(name: str) -> dict[str, Command]:
    """Commands one word longer than a name, by that word; of "" those of one word."""
    before = f"{name} " if name else ""
    below: dict[str, Command] = {}
    for full, command in all_commands().items():
        word = full.removeprefix(before)
        if full.startswith(before) and " " not in word:
            below[word] = command
    return below


def call_of(words: Sequence[str]) -> Call:
    """What a command line asks for.

    Help and version are printed, and mistakes are one line on stderr; both end the
    program with SystemExit.

    Args:
        words: the command line, without the name of the program.
    """
    name = ""
    rest = list(words)
    while True:
        below = commands_below(name)
        if not below:
            break
        word = rest.pop(0) if rest else None
        if word is None or word not in below:
            _refuse_command(name, word, below)
        name = f"{name} {word}".strip()
    command = all_commands()[name]
    parser = parser_of(command)
    tables = command_tables(command)
    _refuse_unknown(parser, options_of_tables(tables), rest)
    # Options may stand between arguments, but argparse then forgets what is behind "--".
    parse = parser.parse_known_args
    if "--" not in rest:
        parse = parser.parse_known_intermixed_args
    found, further = parse(rest)
    if further:
        text = " ".join(further)
        parser.error(f"{text}: one word too many, or an option that is not there")
    try:
        values = stated_values(tables, found)
    except ValueError as error:
        parser.error(str(error))
    objects: list[object] = [table_of(table, values) for table in tables]
    return Call(command, values, Given(*objects, refuse=parser.error))


def command_tables(command: Command) -> tuple[type, ...]:
    """The tables of a command: its own, and those of what rooms add to it."""
    return tables_of(command.options, command.subjects)


class Parser(argparse.ArgumentParser):
    """A parser whose messages, which quote the command line, cannot control the terminal."""

    def error(self, message: str) -> NoReturn:
        """One line on stderr, and the exit code of a usage error."""
        text = message.replace("unrecognized arguments", "not understood")
        _refuse(self.prog, text)


def parser_of(command: Command) -> Parser:
    """The parser of a command, with its help."""
    examples = "\n".join(command.examples).replace("\n", "\n  ")
    epilog = f"examples:\n  {examples}"
    parser = _ParserWithNotes(
        prog=f"{PROGRAM} {command.name}",
        description=textwrap.fill(command.description, WIDTH),
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.command = command
    headings: dict[type, str] = {}
    for subject, heading in SUBJECT_HEADINGS.items():
        headings |= dict.fromkeys(tables_of(NoOptions, (subject,)), heading)
    add_options(parser, command_tables(command), headings)
    return parser


class _ParserWithNotes(Parser):
    """A parser whose help ends with the notes of a command, made when they are needed."""

    command: Command

    def format_help(self) -> str:
        """The help of argparse, and the notes."""
        notes = self.command.notes
        if _PLACE.fullmatch(notes):
            notes = loaded(notes)()
        text = super().format_help()
        return f"{text}\n{notes}\n" if notes else text


# Mistakes.


def _refuse(program: str, problem: str) -> NoReturn:
    """One line on stderr, and the exit code of a usage error."""
    line = one_line(f"{program}: {problem}; see {program} --help")
    print(line, file=sys.stderr)
    sys.exit(USAGE)


def _refuse_command(
    name: str, word: str | None, below: Mapping[str, Command]
) -> NoReturn:
    """Print help or version, or refuse a word that is not a command; ends the program.

    Args:
        name: of the command so far, "" for none.
        word: in place of its next word; None if there is none.
        below: commands that could be there.
    """
    program = f"{PROGRAM} {name}".strip()
    if word in _HELP:
        print(printable(listing(name)), end="")
        sys.exit(0)
    if word == "--version" and not name:
        print(f"{PROGRAM} {__version__}")
        sys.exit(0)
    if word is None:
        _refuse(program, "the following arguments are required: COMMAND")
    if word.startswith("-"):
        known = ("help",) if name else ("help", "version")
        hint = suggestion(word.lstrip("-"), known, "--")
        _refuse(program, f"there is no {word}{hint}")
    _refuse(program, f"there is no command {word!r}{suggestion(word, tuple(below))}")


def _refuse_unknown(
    parser: Parser, options: Sequence[Option], words: Sequence[str]
) -> None:
    """Refuse the first option that does not exist, before anything that is missing."""
    known = [*_HELP]
    for option in options:
        known += option.flags
        if option.kind is bool and option.default:
            known += [flag.replace("--", "--no-", 1) for flag in option.flags]
    longer = [flag.removeprefix("--") for flag in known if flag.startswith("--")]
    for word in words:
        flag = word.partition("=")[0]
        if word == "--":
            return
        if not flag.startswith("--") or " " in flag:
            continue
        if any(each.startswith(flag) for each in known):
            continue
        typed = flag.removeprefix("--")
        meant = [each for each in _SYNONYMS.get(typed, ()) if each in longer]
        likely = meant[0] if meant else typed
        parser.error(f"there is no {flag}{suggestion(likely, longer, '--')}")


# Help.

_COLUMN = 24
"""Where the descriptions of commands begin."""


def listing(name: str = "") -> str:
    """The help of `ur_energy`, or of a command that has others below it.

    Args:
        name: of that command; "" for `ur_energy`.
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
        parts.append(_entries(title, summaries))
    parts += [_entries("options", options), end]
    return "\n\n".join(parts) + "\n"


def _grouped(commands: Mapping[str, Command]) -> dict[str, dict[str, Command]]:
    """Commands by the titles of their groups, everyday ones first."""
    groups: dict[str, dict[str, Command]] = {title: {} for title in GROUPS}
    for name, command in commands.items():
        groups.setdefault(command.group, {})[name] = command
    return {title: found for title, found in groups.items() if found}


def _entries(title: str, entries: Mapping[str, str]) -> str:
    """A heading, and terms with their descriptions side by side."""
    lines = [f"{title}:"]
    for term, description in entries.items():
        lines += textwrap.wrap(
            f"  {term}".ljust(_COLUMN) + description,
            WIDTH,
            subsequent_indent=" " * _COLUMN,
        )
    return "\n".join(lines)
