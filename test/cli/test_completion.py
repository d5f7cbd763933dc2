"""Completion scripts are valid in their shells and offer subcommands, options, words and files."""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ur_energy_model.cli.main import DONE, REFUSED, build_parser, main

shtab = pytest.importorskip("shtab", reason="run make setup")
SHELLS = ("bash", "zsh", "fish")


@pytest.fixture
def script(request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["completion", request.param]) == DONE
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("script", "shell"), [(shell, shell) for shell in SHELLS], indirect=["script"]
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
        (["ur_energy", "report", "model.yaml", "oth"], {"other.txt"}),
        (["ur_energy", "identify", "other.txt", "-o", "mod"], {"model.yaml"}),
        (["ur_energy", "excite", "--check", "mod"], {"model.yaml"}),
        (["ur_energy", "simulate", "--motion", "mod"], {"model.yaml"}),
        (["ur_energy", "report", "--tariff", "mod"], set()),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bash_offers(script: str, typed: list[str], offered: set[str], tmp_path: Path) -> None:
    (tmp_path / "model.yaml").touch()
    (tmp_path / "other.txt").touch()
    words = " ".join(f'"{word}"' for word in typed)
    trial = (
        f"{script}\nCOMP_WORDS=({words}); COMP_CWORD={len(typed) - 1}\n"
        "set -- $(complete -p ur_energy)\n"  # complete ... -F FUNCTION ur_energy
        '"${@: -2:1}"\n'
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(
        ["bash", "-c", trial], cwd=tmp_path, capture_output=True, text=True, timeout=30, check=True
    )
    assert set(done.stdout.split()) == offered


@pytest.mark.parametrize("shell", SHELLS)
def test_scripts_describe_every_subcommand(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == DONE
    script = capsys.readouterr().out
    for name in subcommands():
        assert name in script


def test_missing_or_old_shtab_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(shtab, "SUPPORTED_SHELLS", ["bash", "zsh", "tcsh"])
    assert main(["completion", "fish"]) == REFUSED
    assert "pip install --upgrade shtab" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert main(["completion", "bash"]) == REFUSED
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert "apt install python3-shtab" in err
    assert "pip install shtab" in err


def subcommands() -> dict[str, argparse.ArgumentParser]:
    (action,) = (action for action in build_parser()._actions if action.dest == "command")
    return dict(action.choices or {})
