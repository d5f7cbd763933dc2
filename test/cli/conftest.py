"""A recording of an arm whose parameters are known, its identified model, and refusals."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from test.identification.exact_arm import ExactArm
from ur_energy_model.cli.main import DONE, REFUSED, main

Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="session")
def bag(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return ExactArm().bag(tmp_path_factory.mktemp("cli"), seed=31, seconds=30)


@pytest.fixture(scope="session")
def model(bag: Path) -> Path:
    path = bag.parent / "model.yaml"
    assert main(["identify", str(bag), "--robot", "ur5e", "-o", str(path)]) == DONE
    return path


def printed(capsys: Capture) -> dict[str, object]:
    return dict(json.loads(capsys.readouterr().out))


def refused(arguments: list[str], capsys: Capture, *words: str) -> None:
    """One line on stderr with these words, nothing on stdout, exit code 1."""
    capsys.readouterr()
    assert main(arguments) == REFUSED
    out, err = capsys.readouterr()
    lines = [line for line in err.splitlines() if not line.endswith("...")]
    assert len(lines) == 1, err
    assert out == ""
    for word in words:
        assert word in lines[0]
