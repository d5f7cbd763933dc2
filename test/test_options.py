# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Tables of options: what the command line, ROS and launch files make of them."""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import pytest

from ur_energy_model.addresses import is_address
from ur_energy_model.cli.options import add_options, stated_values
from ur_energy_model.nodes.parameters import NODES
from ur_energy_model.options import option, options_of, part, table_of


@dataclass(frozen=True)
class Inner:
    files: tuple[Path, ...] = option((), "files", flags=("--file",), metavar="FILE")


@dataclass(frozen=True)
class Table:
    bag: Path = option(help="bag")
    host: str = option(help="address", address=True)
    rate: float = option(10.0, "rate", unit="Hz", limits=(1, 20), changeable=True)
    number: int = option(1, "number", limits=(0, 9), flags=())
    switch: str = option("on", "100 % switch", choices=("on", "off"))
    inner: Inner = field(default=Inner())
    log: Path | None = option(None, "log", only_with=("switch", "off"))
    loop: bool = option(False, "again")


ENTRIES = {entry.name: entry for entry in options_of(Table)}


T = TypeVar("T")


def read_table(table: type[T], *words: str) -> T:
    parser = argparse.ArgumentParser(exit_on_error=False)
    add_options(parser, [table])
    return table_of(table, stated_values([table], parser.parse_args(words)))


def read(*words: str) -> Table:
    return read_table(Table, *words)


def test_a_command_line_gives_the_values_of_a_table() -> None:
    assert read("--bag", "bag", "--host", "::1") == Table(Path("bag"), "::1")
    words = [
        "--rate",
        "2",
        "--switch",
        "off",
        "--file",
        "a",
        "--file",
        "b",
        "--log",
        "c",
        "--loop",
    ]
    found = read("--bag", "bag", "--host", "robot", *words)
    inner = Inner((Path("a"), Path("b")))
    assert found == Table(Path("bag"), "robot", 2.0, 1, "off", inner, Path("c"), True)


def version(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(".")))


@dataclass(frozen=True, kw_only=True)
class CommandTable:
    model: Path | None = option(None, "model", positional=True, metavar="MODEL")
    bags: tuple[Path, ...] = option(help="bags", positional=True, metavar="BAG")
    wall: tuple[tuple[float, float], ...] = option((), "walls", metavar="ANGLE OFFSET")
    tool: tuple[float, float] | None = option(None, "tool", metavar="LENGTH RADIUS")
    before: tuple[Path, ...] = option((), "bags", metavar="BAG", several=True)
    version: tuple[int, ...] | None = option(None, "version", metavar="X", parse=version)
    law: str = option("linear", "law", choices=lambda: ("linear", "cubic"))
    keep: bool = option(True, "keep")
    host: str | None = option(None, "host", metavar="A", one_of="source")
    bag: Path | None = option(None, "bag", metavar="BAG", one_of="source")
    inner: Inner = part(Inner, "further")


def test_a_command_line_with_several_values_exclusive_options_and_parts() -> None:
    words = "m a b --wall 1 2 --wall -3 4 --tool .5 .1 --before x y --version 5.1.0"
    found = read_table(CommandTable, *words.split(), "--no-keep", "--law", "cubic")
    assert found == CommandTable(
        model=Path("m"),
        bags=(Path("a"), Path("b")),
        wall=((1.0, 2.0), (-3.0, 4.0)),
        tool=(0.5, 0.1),
        before=(Path("x"), Path("y")),
        version=(5, 1, 0),
        law="cubic",
        keep=False,
    )
    assert read_table(CommandTable, "a") == CommandTable(bags=(Path("a"),))


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("a --wall 1", "expected 2 arguments"),
        ("a --tool 1 x", "--tool: 'x' is not a number"),
        ("a --version x", "--version"),
        ("a --law cubc", "did you mean cubic"),
        ("a --host h --bag b", "not allowed with"),
    ],
)
def test_a_command_line_that_is_not_allowed(words: str, problem: str) -> None:
    with pytest.raises((ValueError, argparse.ArgumentError), match=problem):
        read_table(CommandTable, *words.split())


@pytest.mark.parametrize(
    ("name", "text", "value", "typed"),
    [
        ("loop", "true", True, True),
        ("rate", "2.5", 2.5, 2.5),
        ("log", "", "", None),
        ("log", "a b", "a b", Path("a b")),
        ("files", "['a', b]", ["a", "b"], (Path("a"), Path("b"))),
        ("files", "", [""], ()),
    ],
)
def test_arguments_of_launch_files_become_parameters(
    name: str, text: str, value: object, typed: object
) -> None:
    entry = ENTRIES[name]
    assert repr(entry.parse(text)) == repr(value)
    assert entry.typed(value) == typed


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("rate", "fast", "rate:=fast is not a number, 1 to 20"),
        ("rate", "30", "rate must be between 1 and 20, not 30"),
        ("switch", "c", "switch must be one of on, off, not 'c'"),
        ("host", "192.168..10", "host must be the address of a host, not '192.168..10'"),
        *(("files", text, "is not a list of text") for text in ("['a'", "[[a]]")),
    ],
)
def test_arguments_of_launch_files_that_are_not_allowed(
    name: str, text: str, problem: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(problem)):
        ENTRIES[name].parse(text)


@pytest.mark.parametrize(
    ("name", "value"),
    [("number", True), ("rate", "1"), ("files", [1]), ("log", "~nobody-of-this-name/x")],
)  # fmt: skip
def test_parameters_of_another_type_are_refused(name: str, value: object) -> None:
    assert name in str(ENTRIES[name].problem(value))


def test_parameters_of_nodes_are_described_and_accept_their_default() -> None:
    for node, entries in NODES.items():
        for entry in entries:
            assert entry.problem(entry.parameter) is None, (node, entry)
            assert entry.typed(entry.parameter) == entry.default
            assert entry.help
            assert not entry.help.endswith(".")
            assert (entry.limits is not None) == (entry.kind in (int, float))


def test_addresses_and_names() -> None:
    for text in ("192.168.0.10", "::1", "fe80::1%eth0", "robot", "ur-5e.cell.local"):
        assert is_address(text)
    wrong = (
        "",
        " ",
        "192.168..10",
        "robot 1",
        "a" * 64 + ".local",
        "\x1b[2J",
        "a\n",
        "x" * 300,
    )
    assert not any(map(is_address, wrong))
