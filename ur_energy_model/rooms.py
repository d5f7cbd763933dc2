# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Rooms: folders of the package that can be taken out, each with a table of what it adds.

A room is a folder that holds a module `room` with a `Room` named ROOM. It states the
subcommands of the room, its ROS nodes and launch files, and its extensions: what the room
adds to a subject outside the room, such as "sinks" or "measures". The core of the package
(telemetry, model, trajectory, energy, identification, report, nodes, cli) imports no room
by name: it asks `rooms` and `extensions`, and works without any of them.

A module `room` imports nothing but the ground floor, so that `ur_energy --help` is fast;
what the table names as "module:attribute" is imported when it is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from ur_energy_model.errors import optional_import
from ur_energy_model.options import Option

PACKAGE = "ur_energy_model"
_FOLDER = Path(__file__).parent
T = TypeVar("T")


@dataclass(frozen=True)
class NoOptions:
    """The table of a command without options."""


@dataclass(frozen=True)
class Command:
    """A subcommand of `ur_energy`, or one below a subcommand ("history add").

    Attributes:
        name: name as users type it.
        summary: one line for the list of commands, without a full stop.
        options: table of its options and arguments, a dataclass made with `option`.
        run: "module:function" that does it; the function takes a `Given`. "" for a command
            that only has others below it.
        description: paragraph at the head of its help.
        examples: command lines, without a prompt.
        notes: what its help ends with: text, or "module:function" that returns it.
        group: heading under which `ur_energy --help` lists it.
        subjects: subjects whose extensions the command uses, together with their options.
    """

    name: str
    summary: str
    options: type = NoOptions
    run: str = ""
    description: str = ""
    examples: tuple[str, ...] = ()
    notes: str = ""
    group: str = "more"
    subjects: tuple[str, ...] = ()


@dataclass(frozen=True)
class Extension:
    """An addition of a room to a subject outside the room.

    Attributes:
        subject: what it is for, such as "sinks" (commands and nodes that feed sinks) or
            "measures" (what can be done for less energy); the chapter that uses the
            extensions of a subject declares a Protocol for what they provide.
        provides: "module:attribute" of what is loaded.
        options: table of the options that commands and nodes with this subject get; None
            for none.
        shared: further table, which several extensions of the subject have in common;
            commands and nodes get it once, after the tables of all extensions.
        name: name by which users choose the extension among the extensions of the
            subject; empty where users do not choose.
    """

    subject: str
    provides: str
    options: type | None = None
    shared: type | None = None
    name: str = ""

    def load(self) -> Any:
        """What the extension provides.

        Raises:
            MissingPackageError: a package that it needs is not installed.
        """
        return loaded(self.provides)


@dataclass(frozen=True)
class Node:
    """A ROS node of a room.

    Attributes:
        name: name of the node; its executable is `<name>_node`.
        parameters: table of its parameters, a dataclass made with `option`.
        main: "module:function" that runs it.
        subjects: subjects whose extensions the node uses, with their options as
            parameters.
    """

    name: str
    parameters: type
    main: str
    subjects: tuple[str, ...] = ()


@dataclass(frozen=True)
class Room:
    """What a room adds to the package.

    Attributes:
        name: folder of the room below the package, such as "plant" or "sinks/mqtt".
        purpose: what it is for, one line without a full stop.
        requires: rooms that this room imports; where one is absent, this room has no
            effect.
        commands: subcommands of `ur_energy`.
        extensions: what it adds to subjects outside the room.
        nodes: ROS nodes.
        launch_files: "module:attribute" of the table of a launch file, by its name.
        tests: folders and files of its tests.
        pages: folders and files of its documentation.
        files: further files that only this room uses: configuration, launch files, tools.
    """

    name: str
    purpose: str
    requires: tuple[str, ...] = ()
    commands: tuple[Command, ...] = ()
    extensions: tuple[Extension, ...] = ()
    nodes: tuple[Node, ...] = ()
    launch_files: Mapping[str, str] = field(default_factory=dict)
    tests: tuple[str, ...] = ()
    pages: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


@cache
def rooms() -> tuple[Room, ...]:
    """The rooms that are there, with all rooms that they require, in order of their names."""
    tables = sorted((*_FOLDER.glob("*/room.py"), *_FOLDER.glob("*/*/room.py")))
    found: dict[str, Room] = {}
    for table in tables:
        folder = table.parent.relative_to(_FOLDER)
        module = ".".join((PACKAGE, *folder.parts, "room"))
        room: Room = import_module(module).ROOM
        found[room.name] = room
    while True:  # a room that is left out takes the rooms that require it along
        complete = {
            name: room
            for name, room in found.items()
            if found.keys() >= set(room.requires)
        }
        if len(complete) == len(found):
            return tuple(found.values())
        found = complete


def has_room(name: str) -> bool:
    """Whether a room is there, such as "simulation"."""
    return any(room.name == name for room in rooms())


def extensions(subject: str) -> tuple[Extension, ...]:
    """Additions of all rooms to a subject, in order of the rooms' names."""
    found: list[Extension] = []
    for room in rooms():
        found += [each for each in room.extensions if each.subject == subject]
    return tuple(found)


def choices_of(own: str, subject: str) -> tuple[str, ...]:
    """Names among which users choose: the package's own, and those that rooms add.

    Nothing is loaded for it, so that the help of a command is fast.

    Args:
        own: what works without any room.
        subject: subject of the extensions.
    """
    return (own, *(extension.name for extension in extensions(subject)))


def chosen(name: str, subject: str) -> Extension | None:
    """The extension of a subject with a name; None if no room adds it."""
    for extension in extensions(subject):
        if extension.name == name:
            return extension
    return None


def tables_of(options: type, subjects: tuple[str, ...]) -> tuple[type, ...]:
    """The tables of a command or node: its own, and the tables of its subjects' extensions."""
    tables = [options]
    for subject in subjects:
        found = extensions(subject)
        own = [extension.options for extension in found]
        shared = [extension.shared for extension in found]
        for table in (*own, *shared):
            if table is not None and table not in tables:
                tables.append(table)
    return tuple(tables)


def loaded(place: str) -> Any:
    """The attribute of a module that "module:attribute" names.

    Raises:
        MissingPackageError: the module imports a package that is not installed.
    """
    module, _, attribute = place.partition(":")
    with optional_import():
        return getattr(import_module(module), attribute)


def use_values(option: Option, value: Any) -> None:
    """Use the value of an option, or each of its values, as the table says (`Option.used_by`).

    Args:
        option: the option.
        value: value in the type of the table's field.

    Raises:
        UrEnergyError: a value cannot be used.
    """
    if not option.used_by:
        return
    use = loaded(option.used_by)
    for each in value if option.many else (value,):
        if each is not None:
            use(each)


class Given:
    """The values that a user has given to a command or node: one object of every table.

    The type distinguishes the command's own table from the tables of the extensions:
    `given.of(EstimateOptions)` returns the options of `ur_energy estimate`.

    Args:
        tables: objects of the tables.
        refuse: called with what is wrong about a combination of options, to end the
            command; None raises ValueError.
    """

    def __init__(
        self, *tables: object, refuse: Callable[[str], NoReturn] | None = None
    ) -> None:
        self._tables = tables
        self._refuse = refuse

    def of(self, table: type[T]) -> T:
        """The object of a table, or the part of an object that has this type.

        Raises:
            LookupError: the command or node has no such table.
        """
        for each in self._parts():
            if isinstance(each, table):
                return each
        raise LookupError(f"no {table.__name__} among {self._tables}")

    def value(self, name: str) -> Any:
        """The value of an option of any table, for a room that cannot import the table.

        Args:
            name: name of the field.

        Returns:
            The value; None where no table has such an option.
        """
        for each in self._parts():
            if hasattr(each, name):
                return getattr(each, name)
        return None

    def _parts(self) -> Iterator[object]:
        """The objects of all tables, and the objects of tables that they contain."""
        waiting = list(self._tables)
        for each in waiting:
            yield each
            if is_dataclass(each):
                values = [getattr(each, field.name) for field in fields(each)]
                waiting += [value for value in values if is_dataclass(value)]

    def refuse(self, problem: str) -> NoReturn:
        """End the command with a usage error: options that contradict each other."""
        if self._refuse is None:
            raise ValueError(problem)
        self._refuse(problem)
