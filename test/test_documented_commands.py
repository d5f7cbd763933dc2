# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Every command that documentation, help and scripts for users show is one that works.

Where rooms of the package are absent, commands and options that only they have are left
out: the golden list of all options, of test/contracts, has their names.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from test.absent_rooms import absent_rooms
from test.contracts.golden import GOLDEN
from test.contracts.surface import of_an_absent_room
from ur_energy_model.cli.listing import all_commands, chosen_command
from ur_energy_model.cli.parser import call_of
from ur_energy_model.nodes.launch_files import launch_files

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PROGRAM = re.compile(r"(?:\S*/)?ur_energy$")
EVERY_ARGUMENT = json.loads(
    (GOLDEN / "launch_arguments.json").read_text(encoding="utf-8")
)
LINK = re.compile(r"\]\(([^)#\s:]+)(?:#[^)\s]*)?\)")


def lines_of(text: str) -> Iterator[str]:
    """Lines without comments, those that end in a backslash joined with the next."""
    for line in text.replace("\\\n", " ").splitlines():
        yield re.sub(r"\s#.*|\s\(.*\)$", "", line)


def shown_commands() -> Iterator[tuple[str, list[str]]]:
    """Where a command is shown on a line of its own, and its arguments."""
    texts = [(page.name, page.read_text(encoding="utf-8")) for page in PAGES]
    for name, command in all_commands().items():
        texts.append((f"{name} --help", "\n".join(command.examples)))
    for place, text in texts:
        for line in lines_of(text):
            match = re.match(r"(?:example:)?\s*([\w./]*ur_energy .*)", line)
            if match:
                program, *arguments = shlex.split(match.group(1).partition(" > ")[0])
                assert PROGRAM.match(program), line
                yield place, arguments


def test_shown_commands_are_accepted(capsys: pytest.CaptureFixture[str]) -> None:
    shown = list(shown_commands())
    assert len(shown) > 20
    place = ""
    arguments = [""]
    try:
        for place, arguments in shown:  # noqa: B007  named where one fails
            if not of_an_absent_room(arguments):
                call_of(*chosen_command(arguments))
    except SystemExit:
        pytest.fail(f"{place}: {' '.join(arguments)}: {capsys.readouterr().err}")


def test_launch_lines_name_files_and_arguments_that_exist() -> None:
    found = 0
    for page in PAGES:
        for line in lines_of(page.read_text(encoding="utf-8")):
            match = re.search(r"ros2 launch ur_energy_model (\w+)\.launch\.py(.*)", line)
            described = launch_files()
            if match and (match.group(1) in described or not absent_rooms()):
                known = {each.name for each in described[match.group(1)].arguments}
                if absent_rooms():
                    known |= EVERY_ARGUMENT[f"{match.group(1)}.launch.py"].keys()
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


def test_links_of_pages_outside_of_docs_lead_somewhere() -> None:
    """Sphinx checks those of docs/; pages of an absent room may be missing with their folder."""
    found = 0
    for name in ("README.md", "CONTRIBUTING.md", "RELEASING.md"):
        for place in LINK.findall((ROOT / name).read_text(encoding="utf-8")):
            target = ROOT / place
            assert target.exists() or not target.parent.is_dir(), f"{name}: {place}"
            found += 1
    assert found > 10
