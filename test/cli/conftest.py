# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""A recording of an arm whose parameters are known, its identified model, and refusals."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from test.identification.exact_arm import ExactArm
from ur_energy_model.cli.main import DONE, REFUSED, main

Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="session")
def bag(made_once: Callable[[str, Callable[[Path], object]], Path]) -> Path:
    """30 s; beside it stands `model.yaml`."""

    def make(folder: Path) -> None:
        made = ExactArm().bag(folder, seed=31, seconds=30)
        words = [
            "identify",
            str(made),
            "--robot",
            "ur5e",
            "-o",
            str(folder / "model.yaml"),
        ]
        assert main(words) == DONE

    return made_once("cli", make) / "bag"


@pytest.fixture(scope="session")
def model(bag: Path) -> Path:
    return bag.parent / "model.yaml"


def answer(capsys: Capture, *words: object, code: int = DONE) -> dict[str, Any]:
    """JSON of a command."""
    capsys.readouterr()
    assert main([*map(str, words), "--json"]) == code
    return dict(json.loads(capsys.readouterr().out.splitlines()[-1]))


def end_of(words: list[str], capsys: Capture) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a command."""
    capsys.readouterr()
    try:
        code = main(words)
    except SystemExit as end:
        code = int(end.code or 0)
    return (code, *capsys.readouterr())


def refused(arguments: list[str], capsys: Capture, *words: str) -> None:
    """One line on stderr with these words, nothing on stdout, exit code 1."""
    code, out, err = end_of(arguments, capsys)
    lines = [line for line in err.splitlines() if not line.endswith("...")]
    assert (code, out) == (REFUSED, "")
    assert len(lines) == 1, err
    for word in words:
        assert word in lines[0]
