# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Commands: their options, and exit codes."""

from __future__ import annotations

from dataclasses import MISSING
from pathlib import Path
from typing import Any

import pytest

from test.contracts.golden import check
from test.contracts.surface import FIXTURES, options_of_commands, ur_energy
from ur_energy_model.options import Option
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


def described(option: Option) -> dict[str, Any]:
    """What a user sees of an option or a positional argument."""
    default = None if option.default is MISSING else option.default
    if isinstance(default, tuple):
        default = list(default) if option.many else None
    elif not isinstance(default, (bool, int, float, type(None))):
        default = str(default)
    repeats = option.many and not option.positional and not option.several
    count: int | str | None = option.count if option.count > 1 else None
    if option.several or (option.positional and option.many):
        count = "+"
    elif option.bare is not None or (option.positional and option.default is None):
        count = "?"
    metavar: str | list[str] | None = option.metavar
    if option.count > 1 and option.metavar is not None:
        metavar = option.metavar.split()
    known = {
        "flag": option.kind is bool,
        "repeats": repeats,
        "required": option.default is MISSING,
        "default": default,
        "choices": list(option.choices) or None,
        "count": count,
        "metavar": metavar,
        "without value": option.bare,
        "described": bool(option.help),
    }
    return {key: value for key, value in known.items() if value not in (None, False)}


def test_options() -> None:
    found: dict[str, dict[str, Any]] = {}
    for name, options in options_of_commands().items():
        positional = [option.name for option in options if option.positional]
        entries: dict[str, Any] = {}
        sets: dict[str, list[str]] = {}
        for option in options:
            flags = " ".join(option.flags)
            if option.kind is bool and option.default:
                flags += flags.replace("--", " --no-")
            if option.positional:
                flags = f"{positional.index(option.name)}: {option.name}"
            entries[flags] = described(option)
            if option.one_of:
                sets.setdefault(option.one_of, []).append(flags)
        if sets:
            groups = [sorted(flags) for flags in sets.values()]
            entries["exclude each other"] = {"groups": groups}
        found[f"ur_energy {name}"] = entries
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
