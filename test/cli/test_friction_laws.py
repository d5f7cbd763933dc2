# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""`--friction-laws`: every command that reads a model takes it, and names it if it is missing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from test.cli.conftest import Capture
from test.contracts.surface import of_an_absent_room, options_of_commands
from test.model.test_friction_files import LAW, law_file, lugre, with_law
from ur_energy_model.cli.main import DONE, REFUSED, main
from ur_energy_model.model.friction import LAWS
from ur_energy_model.model.model_file import save_model

pytestmark = pytest.mark.usefixtures("package_laws")


def test_every_command_that_reads_a_model_takes_friction_laws() -> None:
    for name, options in options_of_commands().items():
        reads = any(option.holds == "model" for option in options)
        takes = any("--friction-laws" in option.flags for option in options)
        assert takes >= reads, name


@pytest.mark.parametrize(
    "words",
    [
        ["estimate", "model.yaml", "bag"],
        ["evaluate", "model.yaml", "bag"],
        ["report", "model.yaml", "bag", "-o", "report.html"],
        ["predict", "model.yaml", "trajectory.csv"],
        ["profile", "bag", "--model", "model.yaml"],
        ["payload", "model.yaml", "bag"],
        ["learn", "bag", "--model", "model.yaml", "-o", "learned.yaml"],
    ],
)
def test_a_model_with_an_unknown_law_names_option_and_file(
    words: list[str],
    bag: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Capture,
) -> None:
    if of_an_absent_room(words):
        pytest.skip("the room of this command is absent")
    monkeypatch.chdir(tmp_path)
    save_model(with_law(lugre(tmp_path)), tmp_path / "model.yaml")
    del LAWS["lugre"]
    (tmp_path / "bag").symlink_to(bag)
    (tmp_path / "trajectory.csv").write_text("time,q_0\n0,0\n")
    assert main(words) == REFUSED
    error = capsys.readouterr().err
    assert "give its file with --friction-laws laws.py" in error
    assert "lugre" not in LAWS


def test_estimate_with_the_law_of_the_model(
    bag: Path, tmp_path: Path, capsys: Capture
) -> None:
    model = tmp_path / "model.yaml"
    save_model(with_law(lugre(tmp_path)), model)
    del LAWS["lugre"]
    words = ["estimate", str(model), str(bag), "--json"]
    assert main([*words, "--friction-laws", str(tmp_path / "laws.py")]) == DONE
    assert json.loads(capsys.readouterr().out)["joints"][0]["friction_energy"] > 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "cannot be read"),
        ("def", "is not Python in line 1"),
        (LAW.replace("* slow", "* np.nan"), "lugre: breakaway is nan"),
        (LAW.replace('"lugre"', '"stribeck"'), "is the name of a law of the package"),
    ],
)
def test_wrong_files_are_refused_before_anything_is_done(
    tmp_path: Path, capsys: Capture, text: str | None, message: str
) -> None:
    path = tmp_path / "laws.py"
    if text is not None:
        law_file(tmp_path, text)
    output = tmp_path / "model.yaml"
    words = ["identify", "no_bag", "-o", str(output), "--friction-laws", str(path)]
    assert main(words) == REFUSED
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.err.count("\n") == 1
    assert captured.out == ""


def test_an_unknown_law_of_identify_is_refused(bag: Path, tmp_path: Path) -> None:
    words = ["identify", str(bag), "-o", str(tmp_path / "m.yaml"), "--friction", "lugre"]
    assert main(words) == REFUSED
