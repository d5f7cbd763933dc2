# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Options of the tables of a command: added to its parser, and read from its words."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

from ur_energy_model.options import Option, options_of


def add_options(
    parser: argparse.ArgumentParser,
    tables: Sequence[type],
    headings: Mapping[type, str] | None = None,
) -> dict[str, argparse.Action]:
    """Add the options of tables that have flags or are positional arguments.

    Args:
        parser: parser of the command.
        tables: tables of the command.
        headings: headings of tables in the help, for options without a heading of their
            own.

    Returns:
        Actions of argparse by name of the option.

    Raises:
        ValueError: two options of the tables have the same name.
    """
    groups: dict[str, Any] = {"": parser}
    sets: dict[str, Any] = {}
    actions: dict[str, argparse.Action] = {}
    for table in tables:
        heading_of_table = "" if headings is None else headings.get(table, "")
        for each in options_of_tables([table]):
            if each.name in actions:
                raise ValueError(f"{parser.prog} has two options of the name {each.name}")
            heading = each.heading or heading_of_table
            if heading not in groups:
                groups[heading] = parser.add_argument_group(heading)
            place = groups[heading]
            if each.one_of:
                if each.one_of not in sets:
                    exclusive = place.add_mutually_exclusive_group(required=each.needed)
                    sets[each.one_of] = exclusive
                place = sets[each.one_of]
            actions[each.name] = each.add_to(place)
    return actions


def options_of_tables(tables: Sequence[type]) -> tuple[Option, ...]:
    """Options of the tables of a command, as far as the command line has them."""
    found: list[Option] = []
    for table in tables:
        found += [each for each in options_of(table) if each.flags or each.positional]
    return tuple(found)


def stated_values(tables: Sequence[type], words: argparse.Namespace) -> dict[str, Any]:
    """The values of the options of a command by their names, for `table_of`.

    Args:
        tables: tables of the command.
        words: what argparse made of the command line.

    Raises:
        ValueError: a value that is not allowed; the message names the option.
    """
    return {
        each.name: each.read(getattr(words, each.name))
        for each in options_of_tables(tables)
    }
