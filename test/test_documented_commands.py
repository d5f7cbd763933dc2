# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Every command that documentation, help and scripts for users show is one that works."""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from ur_energy_model.cli.parser import build_parser
from ur_energy_model.nodes.launch_files import LAUNCH_FILES

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PARSER = build_parser()
PROGRAM = re.compile(r"(?:\S*/)?ur_energy$")
SUBPARSERS = next(
    action for action in PARSER._actions if isinstance(action, argparse._SubParsersAction)
)


def lines_of(text: str) -> Iterator[str]:
    """Lines without comments, those that end in a backslash joined with the next."""
    for line in text.replace("\\\n", " ").splitlines():
        yield re.sub(r"\s#.*|\s\(.*\)$", "", line)


def shown_commands() -> Iterator[tuple[str, list[str]]]:
    """Where a command is shown on a line of its own, and its arguments."""
    texts = [(page.name, page.read_text(encoding="utf-8")) for page in PAGES]
    texts += [
        (f"{name} --help", sub.epilog or "") for name, sub in SUBPARSERS.choices.items()
    ]
    for place, text in texts:
        for line in lines_of(text):
            match = re.match(r"(?:example:)?\s*([\w./]*ur_energy .*)", line)
            if match:
                program, *arguments = shlex.split(match.group(1).partition(" > ")[0])
                assert PROGRAM.match(program), line
                yield place, arguments


def test_shown_commands_are_accepted(capsys: pytest.CaptureFixture[str]) -> None:
    shown = list(shown_commands())
    assert len(shown) > 50
    place = ""
    arguments = [""]
    try:
        for place, arguments in shown:  # noqa: B007  named where one fails
            PARSER.parse_args(arguments)
    except SystemExit:
        pytest.fail(f"{place}: {' '.join(arguments)}: {capsys.readouterr().err}")


def test_launch_lines_name_files_and_arguments_that_exist() -> None:
    found = 0
    for page in PAGES:
        for line in lines_of(page.read_text(encoding="utf-8")):
            match = re.search(r"ros2 launch ur_energy_model (\w+)\.launch\.py(.*)", line)
            if match:
                known = {argument.name for argument in LAUNCH_FILES[match.group(1)]}
                assert set(re.findall(r"\s(\w+):=", match.group(2))) <= known, line
                found += 1
    assert found >= 3


def test_make_targets_exist() -> None:
    targets = re.findall(
        r"^(\w+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M
    )
    for page in PAGES:
        for line in lines_of(page.read_text(encoding="utf-8")):
            match = re.match(r" {4,}make (\w+)", line)
            if match:
                assert match.group(1) in targets, line
