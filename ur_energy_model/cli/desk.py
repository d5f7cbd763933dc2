# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Files for other programs: `ur_energy layouts` and `completion`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from ur_energy_model.cli.command_options import CompletionOptions, LayoutsOptions
from ur_energy_model.cli.listing import PROGRAM, all_commands, commands_below
from ur_energy_model.cli.options import add_options, options_of_tables
from ur_energy_model.cli.output import note, print_json, print_table
from ur_energy_model.cli.parser import command_tables
from ur_energy_model.errors import InputError, optional_import
from ur_energy_model.options import Option
from ur_energy_model.rooms import Given

_ANY_ROBOT = "ur5e"
"""Arm of the layouts without --robot; all UR arms have the same joint names."""


def layouts(given: Given) -> None:
    """`ur_energy layouts`: write the files.

    Raises:
        UrEnergyError: there is no such robot, or the folder has files already.
    """
    from ur_energy_model.files import check_output_folder, write_text
    from ur_energy_model.layouts.files import PURPOSES, ArmTopics, layout_files
    from ur_energy_model.model.robots import load_robot

    options = given.of(LayoutsOptions)
    robot = load_robot(options.robot or _ANY_ROBOT)
    arm = ArmTopics(tuple(robot.joint_names), options.namespace, options.tf_prefix)
    files = {options.output / name: text for name, text in layout_files(arm).items()}
    check_output_folder(options.output, overwrite=options.overwrite)
    for path, text in files.items():
        write_text(path, text)
    if options.json:
        print_json({"files": list(files), "topic": arm.energies})
    else:
        rows = list(zip(files, PURPOSES.values(), strict=True))
        print_table("Layouts", ("file", "for"), rows)
        note(f"all curves are in {arm.energies}")


# Completion of the command line by a shell.


def completion(given: Given) -> None:
    """`ur_energy completion`: print the script.

    Raises:
        MissingPackageError: shtab is not installed.
        InputError: the package is too old for this shell.
    """
    shell = given.of(CompletionOptions).shell
    with optional_import():
        import shtab
    if shell not in shtab.SUPPORTED_SHELLS:
        problem = f"shtab {shtab.__version__} does not support this shell"
        raise InputError(shell, problem, "pip install --upgrade shtab")
    parser = argparse.ArgumentParser(prog=PROGRAM)
    parser.add_argument(
        "--version", action="version", help="show the version", version=""
    )
    _add_commands(parser, "", file=shtab.FILE)
    print(shtab.complete(parser, shell))


def _add_commands(parser: argparse.ArgumentParser, name: str, *, file: Any) -> None:
    """Add the options of a command and the commands below it to a parser, for shtab.

    Args:
        parser: parser of the command.
        name: name of the command, "" for `ur_energy` itself.
        file: what shtab takes for arguments that are files.
    """
    below = commands_below(name)
    if below:
        parsers = parser.add_subparsers(metavar="COMMAND")
        for word, command in below.items():
            # one line, for the menus of zsh and fish
            inner = parsers.add_parser(
                word, help=command.summary, description=command.summary
            )
            _add_commands(inner, f"{name} {word}".strip(), file=file)
        return
    tables = command_tables(all_commands()[name])
    actions = add_options(parser, tables)
    for option in options_of_tables(tables):
        action: Any = actions[option.name]
        action.choices = _words_of(option)
        if action.choices is None and _may_be_file(option):
            action.complete = file


def _words_of(option: Option) -> tuple[str, ...] | None:
    """Words that a shell offers for an option: its choices, else common values.

    Returns:
        None for an option without such words.
    """
    offered = () if option.offered is None else option.offered()
    return option.choices or tuple(offered) or None


def _may_be_file(option: Option) -> bool:
    """Whether the value of an option is a path, or a text that may be one."""
    return option.kind in (Path, str) and not option.address
