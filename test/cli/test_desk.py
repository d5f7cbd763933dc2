"""`ur_energy simulate` and `layouts`; help, tables, and completion of the command line."""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from test.cli.conftest import Capture, answer, refused
from test.layouts.viewers import plotjuggler_curves
from ur_energy_model.cli.main import DONE, build_parser, main
from ur_energy_model.cli.output import WIDTH, print_table
from ur_energy_model.files import config_file
from ur_energy_model.simulation.faults import FAULTS
from ur_energy_model.telemetry.bag.layout import JOINT_NAMES
from ur_energy_model.telemetry.rtde.source import RtdeSource

shtab = pytest.importorskip("shtab", reason="run make setup")
Host = Callable[[], str]
Simulate = Callable[..., "subprocess.Popen[str]"]
SUBCOMMANDS = next(
    action for action in build_parser()._actions if isinstance(action, argparse._SubParsersAction)
)
PARSERS = dict(SUBCOMMANDS.choices)
for command, parser in SUBCOMMANDS.choices.items():
    for nested in parser._actions:
        if isinstance(nested, argparse._SubParsersAction):
            PARSERS |= {f"{command} {name}": each for name, each in nested.choices.items()}


def ask_dashboard(host: str, line: str) -> str:
    with socket.create_connection((host, 29999), timeout=3.0) as client:
        stream = client.makefile("rw")
        stream.readline()
        stream.write(f"{line}\n")
        stream.flush()
        return stream.readline().strip()


def test_robots_stand_side_by_side_until_a_signal_ends_them_with_the_truth_written(
    simulate: Simulate, fresh_host: Host, tmp_path: Path
) -> None:
    first, second = fresh_host(), fresh_host()
    truths = [tmp_path / "first.json", tmp_path / "second.json"]
    words = ["--seed", "3", "--controller-version", "5.23.0", "--session", "2"]
    children = [
        simulate(first, *words, "--truth", str(truths[0])),
        simulate(second, "--motion", "hold", "--truth", str(truths[1]), robot="ur5"),
    ]
    assert ask_dashboard(first, "PolyscopeVersion").startswith("URSoftware 5.23.0.")
    assert ask_dashboard(second, "PolyscopeVersion").startswith("URSoftware 3.15.")
    assert ask_dashboard(first, "get serial number") == "20000000003"
    assert ask_dashboard(first, "programState") == "PLAYING trajectory_a.urp"
    assert ask_dashboard(second, "programState") == "STOPPED hold.urp"
    with RtdeSource(first) as source:
        assert source.info.simulated, "what is recorded must not pass for a real arm"
    for child, number in zip(children, (signal.SIGINT, signal.SIGTERM), strict=True):
        child.send_signal(number)
        out, err = child.communicate(timeout=20)
        assert (child.returncode, out) == (0, ""), err
        assert "ticks" in err
    contents = [json.loads(path.read_text()) for path in truths]
    assert [content["robot"] for content in contents] == ["ur5e", "ur5"]
    assert contents[0]["simulated"] is True
    assert contents[0]["session"]["number"] == 2


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--fault", "gremlin"], ["gremlin", "stalled_stream"]),
        (["--host", "robot.example"], ["robot.example", "127.0.0.2"]),
        (["--controller-version", "3.15"], ["3.15", "ur5e", "5.x"]),
        (["--speed", "0"], ["--speed", "positive"]),
        (["--session", "-1"], ["--session", "-1"]),
        (["--truth", "/no/such/folder/t.json"], ["/no/such/folder", "folder"]),
    ],
)
def test_what_cannot_be_simulated_is_refused(
    options: list[str], words: list[str], capsys: Capture
) -> None:
    refused(["simulate", "--robot", "ur5e", *options], capsys, *words)


def test_layouts_of_an_arm_in_a_cell(tmp_path: Path, capsys: Capture) -> None:
    """Without namespace they are those of the package."""
    command = ["layouts", "--namespace", "cell1", "--tf-prefix", "left_", "-o", str(tmp_path)]
    content = answer(capsys, *command)
    assert content["topic"] == "/cell1/energy"
    written = sorted(path for path in tmp_path.rglob("*") if path.is_file())
    assert sorted(map(Path, content["files"])) == written
    curves = plotjuggler_curves((tmp_path / "plotjuggler" / "energy_bag.xml").read_text())
    assert "/cell1/energy/left_wrist_1_joint/position" in curves
    refused(command, capsys, "exists already")
    refused(["layouts", "--namespace", "1x", "-o", str(tmp_path)], capsys, "--namespace")
    for path in map(Path, answer(capsys, "layouts", "-o", tmp_path, "--overwrite")["files"]):
        assert path.read_text() == config_file(*path.relative_to(tmp_path).parts).read_text()


# Help, tables and completion.


def test_help_fits_a_terminal_and_describes_everything() -> None:
    for name, each in PARSERS.items():
        assert max(map(len, (each.description or "").splitlines())) <= 80
        assert f"examples:\n  ur_energy {name} " in each.format_help()
        assert all(action.help for action in each._actions)
    listed = {"simulate": tuple(FAULTS), "identify": ("power_flow",), "import": ("ur_rtde",)}
    for name, words in listed.items():
        assert all(word in PARSERS[name].format_help() for word in words)


def test_the_help_lists_every_command_and_names_those_that_move_a_robot() -> None:
    text = build_parser().format_help()
    listed = [
        line.split()[0] for line in text.splitlines() if line.startswith("  ") and line[2] > " "
    ]
    assert sorted(set(SUBCOMMANDS.choices) & set(listed)) == sorted(SUBCOMMANDS.choices)
    assert len(listed) == len(set(listed))
    moving = {name for name, each in PARSERS.items() if "--another-arm" in each.format_help()}
    end = text[text.index("Only '") :]
    assert moving == {name for name in PARSERS if f"'{name} " in end}


def test_numbers_of_a_wide_table_are_whole(capsys: Capture) -> None:
    headings = ["arm", "joint", "kWh", "standby %", "idle %", "motion %", "hours", "EUR", "kg CO2"]
    numbers = [0.0004589, 44.14, 5.765, 94.23, 0.009856, 8.246e-05, 0.0001649]
    rows = [["ur10e", "shoulder lift", *numbers], ["ur3e", "elbow", *numbers]]
    print_table("energy", headings, rows)
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= WIDTH
    for number in numbers:
        assert out.count(f"{number:.4g}") == 2
    assert all(word in out.split() for word in ("ur10e", "ur3e", "standby", "CO2"))
    angles = [f"{-100.25 - j:.2f}" for j in range(6)]
    print_table("waypoints", ["step", *JOINT_NAMES], [["1", *angles]])  # broken at underscores
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= WIDTH
    assert any(line.split()[-6:] == angles for line in lines)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_a_script_of_the_shell(shell: str, tmp_path: Path, capsys: Capture) -> None:
    assert main(["completion", shell]) == DONE
    script = capsys.readouterr().out
    assert all(name in script for name in SUBCOMMANDS.choices)
    if (program := shutil.which(shell)) is not None:
        file = tmp_path / "completion"
        file.write_text(script)
        subprocess.run([program, "-n", file], check=True, timeout=30)


OFFERED = {
    "ident": "identify",
    "report --tar": "--tariff",
    "report --cycle pro": "program",
    "import --robot ur5": "ur5 ur5e",
    "identify --friction cou": "coulomb_viscous",
    "report model.yaml oth": "other.txt",
    "excite --check mod": "model.yaml",
    "simulate --motion mod": "model.yaml",
    "report --tariff mod": "",
}


def test_bash_offers(tmp_path: Path, capsys: Capture) -> None:
    assert main(["completion", "bash"]) == DONE
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
        cwd=tmp_path, capture_output=True, text=True, timeout=30, check=True,
    )  # fmt: skip
    assert dict(zip(OFFERED, done.stdout.splitlines(), strict=True)) == OFFERED


def test_missing_or_old_shtab_is_one_line(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setattr(shtab, "SUPPORTED_SHELLS", ["bash", "zsh", "tcsh"])
    refused(["completion", "fish"], capsys, "pip install --upgrade shtab")
    monkeypatch.setitem(sys.modules, "shtab", None)
    refused(["completion", "bash"], capsys, "apt install python3-shtab", "pip install shtab")
