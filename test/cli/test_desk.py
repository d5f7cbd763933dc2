# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""`ur_energy simulate` and `layouts`; help, tables, and completion of the command line."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from test.cli.conftest import Capture
from ur_energy_model.cli.main import DONE, main
from ur_energy_model.cli.parser import (
    all_commands,
    command_tables,
    commands_below,
    listing,
    parser_of,
)
from ur_energy_model.options import options_of_tables
from ur_energy_model.simulation.faults import FAULTS

shtab = pytest.importorskip("shtab", reason="run make setup")
Host = Callable[[], str]
Simulate = Callable[..., "subprocess.Popen[str]"]


def test_robots_stand_side_by_side_until_a_signal_ends_them_with_the_truth_written(
    simulate: Simulate, fresh_host: Host, tmp_path: Path
) -> None:
    truths = {robot: tmp_path / f"{robot}.json" for robot in ("ur5e", "ur5")}
    children = [
        simulate(fresh_host(), "--truth", str(path), robot=robot)
        for robot, path in truths.items()
    ]
    for child, number in zip(children, (signal.SIGINT, signal.SIGTERM), strict=True):
        child.send_signal(number)
        out, err = child.communicate(timeout=240)
        assert (child.returncode, out) == (0, ""), err
        assert "ticks" in err
    for robot, path in truths.items():
        content = json.loads(path.read_text())
        assert (content["robot"], content["simulated"]) == (robot, True)


# Help, tables and completion.


def help_of(name: str) -> str:
    """The help of a command."""
    return (
        listing(name)
        if commands_below(name)
        else parser_of(all_commands()[name]).format_help()
    )


def test_help_fits_a_terminal_and_describes_everything() -> None:
    for name, command in all_commands().items():
        text = help_of(name)
        assert f"examples:\n  ur_energy {name} " in text
        options = options_of_tables(command_tables(command))
        assert all(option.help for option in options), name
        assert all(flag in text for option in options for flag in option.flags)
    assert all(fault in help_of("simulate") for fault in FAULTS)


def test_help_lists_everyday_commands_first_and_all_in_groups() -> None:
    names = re.findall(r"^  (\w[\w-]+) ", listing(), re.M)
    everyday = "record live estimate identify report profile optimize history"
    assert " ".join(names[:8]) == everyday
    assert sorted(names) == sorted(commands_below(""))
    assert max(map(len, listing().splitlines())) <= 80


OFFERED = {
    "report --tar": "--tariff",
    "import --robot ur5": "ur5 ur5e",
    "report model.yaml oth": "other.txt",
    "excite --check mod": "model.yaml",
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
