# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Commands: their options, and exit codes."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import pytest

from test.contracts.golden import check
from test.contracts.surface import FIXTURES, parser, ur_energy
from ur_energy_model.telemetry.bag.compression import available_packing

MODEL = FIXTURES / "model.yaml"
WORK = FIXTURES / "work"
DONE = 0
REFUSED = 1
USAGE = 2
PART = 3
EXIT_CODES: list[tuple[int, list[object]]] = [
    (DONE, ["--help"]),
    (DONE, ["--version"]),
    (DONE, ["history", "add", "--help"]),
    (DONE, ["completion", "bash"]),
    (USAGE, []),
    (USAGE, ["unknown"]),
    (USAGE, ["estimate"]),
    (USAGE, ["history"]),
    (USAGE, ["inspect", WORK, "--unknown"]),
    (USAGE, ["inspect", WORK, WORK]),
    (USAGE, ["record", "--host", "bad address", "-o", "new"]),
    (USAGE, ["record", "--host", "127.0.0.1", "-o", "new", "--rate", "fast"]),
    (USAGE, ["identify", WORK, "-o", "new.yaml", "--power-model", "unknown"]),
    (USAGE, ["estimate", WORK, MODEL]),
    (USAGE, ["live"]),
    (REFUSED, ["inspect", "absent"]),
    (REFUSED, ["inspect", MODEL]),
    (REFUSED, ["evaluate", "absent.yaml", WORK]),
    (REFUSED, ["evaluate", WORK / "metadata.yaml", WORK]),
    (REFUSED, ["estimate", WORK, "--robot", "unknown"]),
    (REFUSED, ["identify", WORK, "-o", "new.yaml", "--friction", "unknown"]),
    (REFUSED, ["predict", MODEL, FIXTURES / "model.yaml"]),
    (REFUSED, ["history", "summary", "absent"]),
    (REFUSED, ["import", FIXTURES / "motion.csv", "--robot", "ur5e", "-o", "new"]),
    (REFUSED, ["record", "--host", "127.99.99.99", "-o", "new"]),
    (REFUSED, ["live", "--bag", "absent"]),
    (REFUSED, ["excite", "--check", MODEL]),
    (PART, ["estimate", MODEL, WORK, "absent", "--workers", "1"]),
]


def subparsers(
    of: argparse.ArgumentParser, name: str
) -> dict[str, argparse.ArgumentParser]:
    """All commands below a parser by their full names."""
    found = {name: of}
    for action in of._actions:
        if isinstance(action, argparse._SubParsersAction):
            for word, inner in action.choices.items():
                found |= subparsers(inner, f"{name} {word}")
    return found


def option(action: argparse.Action) -> dict[str, Any]:
    """What a user sees of an option or a positional argument."""
    default = action.default
    if not isinstance(default, (bool, int, float, list, type(None))):
        default = str(default)
    known = {
        "flag": action.nargs == 0,
        "repeats": isinstance(action, argparse._AppendAction),
        "required": action.required,
        "default": default,
        "choices": None
        if action.choices is None
        else [str(each) for each in action.choices],
        "count": action.nargs,
        "metavar": action.metavar,
        "without value": action.const if action.nargs == "?" else None,
        "described": bool(action.help),
    }
    return {key: value for key, value in known.items() if value not in (None, False)}


def test_options() -> None:
    found = {}
    for name, each in subparsers(parser(), "ur_energy").items():
        arguments = [action for action in each._actions if action.dest != "help"]
        found[name] = {
            " ".join(action.option_strings) or f"{i}: {action.dest}": option(action)
            for i, action in enumerate(arguments)
        }
        groups = [
            sorted(" ".join(action.option_strings) for action in group._group_actions)
            for group in each._mutually_exclusive_groups
        ]
        if groups:
            found[name]["exclude each other"] = {"groups": groups}
    check("options", found)


@pytest.mark.parametrize(
    ("code", "words"),
    EXIT_CODES,
    ids=lambda each: (
        " ".join(getattr(word, "name", str(word)) for word in each)
        if isinstance(each, list)
        else str(each)
    ),
)
def test_exit_codes(
    code: int, words: list[object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A refusal is one line on stderr, which begins with the command, and nothing on stdout."""
    monkeypatch.chdir(tmp_path)
    outcome = ur_energy(*words)
    assert outcome.code == code, outcome.err
    packing = available_packing().shortcoming or "packed"
    lines = [
        line
        for line in outcome.err.splitlines()
        if not line.endswith("...") and packing not in line
    ]
    if code in (REFUSED, USAGE):
        assert outcome.out == ""
        (line,) = lines
        assert line.startswith("ur_energy")
    elif code == DONE:
        assert (bool(outcome.out), lines) == (True, [])
    assert not [path for path in tmp_path.iterdir() if path.name.startswith("new")]
