# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The command line of `ur_energy`: values of the options of a command.

The tables of the command make one parser of argparse, which splits the command line into
words and writes the help. What the words mean is in the tables (`options`).
"""

from __future__ import annotations

import argparse
import re
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

from ur_energy_model.cli.listing import HELP, PROGRAM, refuse
from ur_energy_model.cli.options import add_options, options_of_tables, stated_values
from ur_energy_model.cli.output import WIDTH
from ur_energy_model.cli.tables import SUBJECT_HEADINGS, FrictionLawOptions
from ur_energy_model.options import Option, suggestion, table_of
from ur_energy_model.rooms import Command, Given, NoOptions, loaded, tables_of

_SYNONYMS: Mapping[str, tuple[str, ...]] = {
    "ip": ("host",),
    "address": ("host",),
    "robot-ip": ("host",),
    "robot_ip": ("host",),
    "time": ("duration", "period", "cycle-time"),
    "duration": ("duration", "period", "cycle-time"),
}
"""Names that other programs or commands have for options."""
_WITH_LAWS = ("model", "models", "friction law")
"""What options of commands hold that friction laws of users are needed for."""
_PLACE = re.compile(r"[a-z_.]+:\w+")
"""Notes of a command that are made by a function, instead of a text."""


class Call(NamedTuple):
    """A command, and the values that the user has given to it.

    Attributes:
        command: the subcommand.
        values: values of all options of the command, by their names.
        given: these values as objects of the tables of the subcommand.
    """

    command: Command
    values: Mapping[str, Any]
    given: Given


def call_of(command: Command, words: Sequence[str]) -> Call:
    """The values that a command line states for the options of a command.

    Help and mistakes are printed, and end the program with SystemExit.

    Args:
        command: command with which the line begins.
        words: behind the name of the command.
    """
    parser = Parser(command)
    tables = command_tables(command)
    _refuse_unknown(parser, options_of_tables(tables), words)
    # Options may stand between arguments, but argparse then forgets what is behind "--".
    parse = parser.parse_known_args
    if "--" not in words:
        parse = parser.parse_known_intermixed_args
    found, further = parse(words)
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
    """The tables of a command: its own, and those that extensions of its subjects add.

    Commands that read models get the files of the laws that these models may have.
    """
    tables = tables_of(command.options, command.subjects)
    if any(option.holds in _WITH_LAWS for option in options_of_tables(tables)):
        return (*tables, FrictionLawOptions)
    return tables


class Parser(argparse.ArgumentParser):
    """The parser of a command.

    Messages quote the command line, without characters that would control the terminal.
    """

    def __init__(self, command: Command) -> None:
        """Make the options of the command's tables."""
        examples = "\n".join(command.examples).replace("\n", "\n  ")
        super().__init__(
            prog=f"{PROGRAM} {command.name}",
            description=textwrap.fill(command.description, WIDTH),
            epilog=f"examples:\n  {examples}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        self._notes = command.notes
        headings: dict[type, str] = {}
        for subject, heading in SUBJECT_HEADINGS.items():
            headings |= dict.fromkeys(tables_of(NoOptions, (subject,)), heading)
        add_options(self, command_tables(command), headings)

    def error(self, message: str) -> NoReturn:
        """End the program with a usage error: one line on stderr, and the exit code."""
        text = message.replace("unrecognized arguments", "not understood")
        refuse(self.prog, text)

    def format_help(self) -> str:
        """The help of argparse, and the notes, which are made when they are needed."""
        notes = self._notes
        if _PLACE.fullmatch(notes):
            notes = loaded(notes)()
        text = super().format_help()
        return f"{text}\n{notes}\n" if notes else text


def _refuse_unknown(
    parser: Parser, options: Sequence[Option], words: Sequence[str]
) -> None:
    """Refuse the first option that does not exist, with the option that is likely meant.

    argparse would name what is missing first, although a misspelt option is the reason.

    Args:
        parser: parser of the command.
        options: options of the command.
        words: behind the name of the command; those behind "--" are arguments.
    """
    known = [*HELP]
    for option in options:
        known += option.flags
        if option.kind is bool and option.default:
            known += [flag.replace("--", "--no-", 1) for flag in option.flags]
    names = [flag.removeprefix("--") for flag in known if flag.startswith("--")]
    for word in words:
        if word == "--":
            return
        flag = word.partition("=")[0]
        is_option = flag.startswith("--") and " " not in flag
        # argparse takes the beginning of an option for the option.
        if not is_option or any(each.startswith(flag) for each in known):
            continue
        likely = flag.removeprefix("--")
        for synonym in _SYNONYMS.get(likely, ()):
            if synonym in names:
                likely = synonym
                break
        parser.error(f"there is no {flag}{suggestion(likely, names, '--')}")
