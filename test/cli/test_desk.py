# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""`ur_energy simulate` and `layouts`; help, tables, and completion of the command line."""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from test.cli.conftest import Capture
from ur_energy_model.cli.main import DONE, main
from ur_energy_model.cli.parser import build_parser
from ur_energy_model.simulation.faults import FAULTS

shtab = pytest.importorskip("shtab", reason="run make setup")
Host = Callable[[], str]
Simulate = Callable[..., "subprocess.Popen[str]"]
SUBCOMMANDS = next(
    action
    for action in build_parser()._actions
    if isinstance(action, argparse._SubParsersAction)
)
PARSERS = dict(SUBCOMMANDS.choices)
for command, parser in SUBCOMMANDS.choices.items():
    for nested in parser._actions:
        if isinstance(nested, argparse._SubParsersAction):
            PARSERS |= {
                f"{command} {name}": each for name, each in nested.choices.items()
            }


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


def test_help_fits_a_terminal_and_describes_everything() -> None:
    for name, each in PARSERS.items():
        assert max(map(len, (each.description or "").splitlines())) <= 80
        assert f"examples:\n  ur_energy {name} " in each.format_help()
        assert all(action.help for action in each._actions)
    assert all(fault in PARSERS["simulate"].format_help() for fault in FAULTS)


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
