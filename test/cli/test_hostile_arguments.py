"""Every option and file of every command, also of those to come, with values nobody expects."""

from __future__ import annotations

import argparse
import gzip
import math
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from test.cli.command_worker import outcomes
from ur_energy_model.cli.main import build_parser

NUMBERS = (
    "nan", "inf", "-inf", "-1", "0", "1e300", "-1e300", "1e-300", "5e-324", "1" + "0" * 400,
    "0x10", "1_000", "1,5", "", " ", "x" * 100_000, "\udcff", "\x1b[2J", "\u0663",
)  # fmt: skip
TEXTS = (
    "", ".", "-", "missing/folder/x", "n" * 300, "a/" * 3000, "\udcff\udcfe", "\x1b[2J",
    "new\nline", "/proc/x", "*" * 100_000,
)  # fmt: skip
FILES: dict[str, bytes] = {
    "empty": b"",
    "zeros": b"\0" * 1_000_000,
    "not_utf8": bytes(range(128, 256)),
    "one_line": b"x" * 10_000_000,
    "brackets": b"a: " + b"[" * 100_000,
    "aliases": b"".join(
        b"a%d: &a%d [%s]\n" % (i, i, b",".join([b"x" if i == 0 else b"*a%d" % (i - 1)] * 10))
        for i in range(12)
    ),
    "merge_keys": b"a: &a {b: 1}\nc: {<<: [*a, *a]}\n",
    "keys": b"".join(b"k%d: 1\n" % i for i in range(300_000)),
    "digits": b"schema: " + b"9" * 1_000_000 + b"\n",
    "rows": b"1,1\n" * 100_000,
    "times": b"time,q_0,q_1,q_2,q_3,q_4,q_5\nnan,0,0,0,0,0,0\n1e300,0,0,0,0,0,0\n",
    "zipped.csv.gz": gzip.compress(b"\n" * 100_000_000, 9),
    "cut.csv.gz": gzip.compress(b"time\n1\n")[:-9],
    "x_0.mcap": b"\x89MCAP0\r\n" + b"\x06" + b"\xff" * 64,
}
CASES = 60
MEMORY = 500.0
"""Most memory of a command [MB]."""


def actions() -> Iterator[tuple[str, argparse.ArgumentParser, argparse.Action]]:
    """Each command with each of its arguments that takes a value."""
    (subparsers,) = (
        each for each in build_parser()._actions if isinstance(each, argparse._SubParsersAction)
    )
    for name, parser in subparsers.choices.items():
        for action in parser._actions:
            if action.nargs != 0 and action.choices is None:
                yield name, parser, action


TYPED = [(name, action) for name, _, action in actions() if action.type not in (None, Path)]


@pytest.mark.parametrize(
    "action",
    [action for _, action in TYPED],
    ids=[f"{name}-{action.dest}" for name, action in TYPED],
)
def test_numbers_of_options_are_finite_or_refused(action: argparse.Action) -> None:
    assert callable(action.type)
    for text in NUMBERS:
        try:
            value = action.type(text)
        except (argparse.ArgumentTypeError, ValueError):
            continue
        assert not isinstance(value, float) or math.isfinite(value), text


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files that nobody should hand to a command."""
    folder = tmp_path_factory.mktemp("hostile")
    for name, content in FILES.items():
        (folder / name).write_bytes(content)
        bag = folder / f"bag_{name}"
        bag.mkdir()
        (bag / "metadata.yaml").write_bytes(content)
        (bag / "bag_0.mcap").write_bytes(content)
    return folder


def test_every_command_refuses_in_one_line_whatever_it_is_given(folder: Path) -> None:
    chance = random.Random(14)
    lines = []
    for name, parser, action in actions():
        if action.type in (None, Path):
            lines += [command_line(name, parser, action, chance) for _ in range(3)]
    for end in outcomes(chance.sample(lines, min(CASES, len(lines))), folder):
        shown = f"{[each[:80] for each in end.arguments]}: {end.errors[-2000:]}"
        assert end.code in (0, 1, 2, 3), shown
        for word in ("Traceback", "Exception ignored", "Warning:"):
            assert word not in end.errors, shown
        assert end.megabytes < MEMORY, shown
        assert end.code == 0 or max(map(len, end.errors.splitlines())) < 1500, shown


def command_line(
    name: str, parser: argparse.ArgumentParser, hostile: argparse.Action, chance: random.Random
) -> list[str]:
    """A command whose files are all hostile, with any text for one argument."""
    needed = [action for action in parser._actions if action.required or action.dest == "robot"]
    for group in parser._mutually_exclusive_groups:
        needed = [action for action in needed if action not in group._group_actions]
        if group.required and hostile not in group._group_actions:
            needed.append(chance.choice(group._group_actions))
    line = [name]
    for action in dict.fromkeys([*needed, hostile]):
        if action.dest == "host":
            value = "127.1.2.3"  # nobody listens there
        elif action is hostile:
            value = chance.choice((*TEXTS, *FILES))
        elif action.choices is not None:
            value = str(chance.choice(list(action.choices)))
        else:
            value = chance.choice(("bag_", "")) + chance.choice(list(FILES))
        if action.option_strings:
            line.append(f"{action.option_strings[-1]}={value}")
        else:
            line.append(value if not value.startswith("-") else f"./{value}")
    return line
