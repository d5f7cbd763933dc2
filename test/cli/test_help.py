# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Help and completion of the command line."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from test.cli.conftest import Capture
from ur_energy_model.cli.commands import live_command
from ur_energy_model.cli.listing import all_commands, commands_below, listing
from ur_energy_model.cli.main import DONE, main
from ur_energy_model.cli.options import options_of_tables
from ur_energy_model.cli.parser import Parser, command_tables
from ur_energy_model.rooms import NoOptions
from ur_energy_model.sinks.options import SinkKind

shtab = pytest.importorskip("shtab", reason="run make setup")


def help_of(name: str) -> str:
    """The help of a command."""
    return (
        listing(name)
        if commands_below(name)
        else Parser(all_commands()[name]).format_help()
    )


def test_help_fits_a_terminal_and_describes_everything() -> None:
    for name, command in all_commands().items():
        text = help_of(name)
        assert f"examples:\n  ur_energy {name} " in text
        options = options_of_tables(command_tables(command))
        assert all(option.help for option in options), name
        assert all(flag in text for option in options for flag in option.flags)


def test_help_lists_everyday_commands_first_and_all_in_groups() -> None:
    names = re.findall(r"^  (\w[\w-]+) ", listing(), re.M)
    everyday = "record live estimate identify report profile optimize history"
    there = [name for name in everyday.split() if name in all_commands()]
    assert names[: len(there)] == there
    assert sorted(names) == sorted(commands_below(""))
    assert max(map(len, listing().splitlines())) <= 80


def test_help_of_live_names_the_sinks_that_are_there() -> None:
    server = SinkKind("radio", "radios", NoOptions, "radio:sink", default_port=99)
    file = SinkKind("tape", "tapes", NoOptions, "tape:sink")
    both = live_command([server, file])
    assert both.summary.endswith("; feed radios, tapes")
    assert any("--radio 127.0.0.1:99" in example for example in both.examples)
    without = live_command([])
    text = " ".join((without.summary, without.notes, *without.examples))
    assert "feed" not in text
    assert "127.0.0.1" not in text
    assert "--allow-network" not in text


OFFERED = {
    "report --tar": "--tariff",
    "import --robot ur5": "ur5 ur5e",
    "report model.yaml oth": "other.txt",
    "evaluate mod": "model.yaml",
    "report --tariff mod": "",
}


def test_bash_offers(tmp_path: Path, capsys: Capture) -> None:
    for shell in ("zsh", "fish", "bash"):
        capsys.readouterr()
        assert main(["completion", shell]) == DONE
    trials = [
        capsys.readouterr().out,
        "set -- $(complete -p ur_energy)",
    ]  # ... -F FUNCTION ur_energy
    for name in ("model.yaml", "other.txt"):
        (tmp_path / name).touch()
    for typed in OFFERED:
        words = ["ur_energy", *typed.split()]
        trials += [
            f"COMPREPLY=(); COMP_WORDS=({' '.join(words)}); COMP_CWORD={len(words) - 1}",
            '"${@: -2:1}"; echo "${COMPREPLY[@]}"',
        ]
    done = subprocess.run(
        ["bash", "-c", "\n".join(trials)],
        cwd=tmp_path, capture_output=True, text=True, timeout=240, check=True,
    )  # fmt: skip
    assert dict(zip(OFFERED, done.stdout.splitlines(), strict=True)) == OFFERED
