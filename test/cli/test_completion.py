"""Completion scripts are valid in their shells and offer what the grammar has."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from ur_energy_model.cli.completion import commands
from ur_energy_model.cli.main import build_parser, main


@pytest.fixture
def script(request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["completion", request.param]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("script", "shell"), [(s, s) for s in ("bash", "zsh", "fish")], indirect=["script"]
)
def test_shell_accepts_the_script(script: str, shell: str, tmp_path: Path) -> None:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed")
    file = tmp_path / "completion"
    file.write_text(script)
    subprocess.run([program, "-n", file], check=True, timeout=30)


@pytest.mark.parametrize("script", ["bash"], indirect=True)
@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        (["ur_energy", "ident"], {"identify"}),
        (["ur_energy", "report", "--tar"], {"--tariff"}),
        (["ur_energy", "report", "--cycle", "pro"], {"program"}),
        (["ur_energy", "completion", "z"], {"zsh"}),
        (["ur_energy", "import", "--robot", "ur5"], {"ur5", "ur5e"}),
        (["ur_energy", "identify", "--friction", "cou"], {"coulomb_viscous"}),
        (["ur_energy", "report", "mod"], {"model.yaml"}),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bash_offers(script: str, typed: list[str], offered: set[str], tmp_path: Path) -> None:
    (tmp_path / "model.yaml").touch()
    (tmp_path / "other.txt").touch()
    words = " ".join(f'"{word}"' for word in typed)
    trial = (
        f"{script}\nCOMP_WORDS=({words}); COMP_CWORD={len(typed) - 1}; _ur_energy\n"
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(
        ["bash", "-c", trial], cwd=tmp_path, capture_output=True, text=True, timeout=30, check=True
    )
    assert set(done.stdout.split()) == offered


def test_every_subcommand_has_help_and_an_example() -> None:
    for command in commands(build_parser()):
        assert command.text, f"{command.name} has no line in --help"
    parser = build_parser()
    (subparsers,) = (a for a in parser._actions if a.dest == "command")
    for name, subparser in dict(subparsers.choices or {}).items():
        assert "example" in (subparser.epilog or "").lower(), f"{name} --help has no example"
