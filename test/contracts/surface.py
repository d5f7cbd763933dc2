# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Surface: the one place that names what is inside the package; everything else is outside."""

from __future__ import annotations

import io
import json
import shutil
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from test.absent_rooms import absent_rooms, needs_room
from test.contracts.golden import GOLDEN
from ur_energy_model.cli.listing import all_commands
from ur_energy_model.cli.main import main
from ur_energy_model.cli.options import options_of_tables
from ur_energy_model.cli.parser import command_tables
from ur_energy_model.options import Option

FIXTURES = Path(__file__).parent / "fixtures"
"""Files that an earlier version wrote; copy what a command may change."""


EVERY_OPTION = json.loads((GOLDEN / "options.json").read_text(encoding="utf-8"))
"""Options of the commands of all rooms, also of those that are absent."""
ROOMS = {
    "demo": "demo",
    "excite": "experiment",
    "history": "plant",
    "learn": "learning",
    "optimize": "optimization",
    "protocol": "papers",
    "simulate": "simulation",
}
"""The removable room of a command, of those that belong to one."""


def options_of_commands() -> dict[str, tuple[Option, ...]]:
    """The options of every subcommand, by its name; none of one with others below it."""
    return {
        name: options_of_tables(command_tables(command))
        for name, command in all_commands().items()
    }


def of_an_absent_room(arguments: list[str]) -> bool:
    """Whether only an absent room has the command of a command line, or one of its options."""
    if not absent_rooms() or not arguments:
        return False
    if arguments[0] not in all_commands():
        return f"ur_energy {arguments[0]}" in EVERY_OPTION
    known = {
        flag for option in options_of_commands()[arguments[0]] for flag in option.flags
    }
    every = {
        flag
        for flags in EVERY_OPTION[f"ur_energy {arguments[0]}"]
        for flag in flags.split()
    }
    used = {word.partition("=")[0] for word in arguments if word.startswith("-")}
    return bool(used & every - known)


@dataclass(frozen=True)
class Outcome:
    """Exit code and output of a command."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The JSON document on stdout."""
        assert self.code == 0, self.err
        return json.loads(self.out)


def ur_energy(*words: object) -> Outcome:
    """Run a command in this process; the test is skipped where its room is absent."""
    if words and words[0] in ROOMS:
        needs_room(ROOMS[str(words[0])])
    with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
        try:
            code = main([str(word) for word in words])
        except SystemExit as end:
            code = int(end.code or 0)
    return Outcome(code, out.getvalue(), err.getvalue())


def program(name: str, *words: object) -> list[str]:
    """Command line of an installed program, for a process of its own."""
    return [str(Path(sys.executable).with_name(name)), *map(str, words)]


def fixture_copy(name: str, folder: Path) -> Path:
    """A copy of a file or folder of `FIXTURES`."""
    source = FIXTURES / name
    return Path(
        (shutil.copytree if source.is_dir() else shutil.copy2)(source, folder / name)
    )
