"""`ur_energy protocol`: its options, and protocols on arms that it simulates itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ur_energy_model.cli.main import main


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """One line on stderr of a refused call."""
    assert main(["protocol", *map(str, arguments)]) == 1
    captured = capsys.readouterr()
    assert not captured.out
    (line,) = captured.err.strip().splitlines()
    return line


def test_a_robot_and_a_simulated_arm_exclude_each_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "out"
    both = ("--simulated", "--host", "127.0.0.9")
    assert "exclude each other" in refused(capsys, "s1", *both, "-o", folder)
    assert "one of them" in refused(capsys, "s1", "-o", folder)
    assert "simulated arms only" in refused(capsys, "all", "--host", "127.0.0.9", "-o", folder)
    assert not folder.exists()


def test_options_of_other_protocols_and_full_folders_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "out"
    assert "belongs to s1" in refused(capsys, "s3", "--simulated", "--campaign", "-o", folder)
    (tmp_path / "mine").write_text("x")
    assert "not an empty folder" in refused(capsys, "s3", "--simulated", "-o", tmp_path)
    assert "was not begun" in refused(capsys, "all", "--simulated", "-o", tmp_path)


def test_a_protocol_on_a_simulated_arm(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "slides"
    assert main(["protocol", "s3", "--simulated", "-o", str(folder), "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["simulated"] is True
    assert content["robot"] == "ur5"
    numerator = next(row for row in content["figures"] if row["figure"] == "numerator")
    assert numerator["verdict"] == "agrees"
    assert numerator["place"].startswith("PD tuning")
    assert all((folder / picture["file"]).is_file() for picture in content["pictures"])
