# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Tables and result lines of the command line, as they are in a file."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from test.cli.conftest import Capture, end_of
from test.properties import examples
from ur_energy_model.cli.output import print_table
from ur_energy_model.model.robots import load_robot

JOINTS = load_robot("ur5e").joint_names
numbers = st.floats(-1e6, 1e6) | st.none()


@examples(20)
@given(
    st.lists(st.lists(numbers, min_size=9, max_size=9), min_size=1, max_size=7),
    st.text("ab ", min_size=1, max_size=60),
)
def test_no_table_breaks_a_joint_or_a_number(
    rows: list[list[float | None]], text: str
) -> None:
    """Joints name columns or rows; a sentence beside them may be folded, they may not."""
    with pytest.MonkeyPatch.context() as patch:
        lines: list[str] = []
        patch.setattr("sys.stdout", _Lines(lines))
        print_table("joints in columns", ["step", "line", *JOINTS, text], rows)
        print_table(
            "joints in rows",
            ["joint", *[f"energy_{k}" for k in range(9)], "why"],
            [[joint, *row, text] for joint, row in zip(JOINTS, rows, strict=False)],
        )
    words = set("".join(lines).split())
    short = [joint.removesuffix("_joint") for joint in JOINTS]
    for joint, name in zip(JOINTS, short, strict=True):
        assert words & {joint, name}
    for row in rows[: len(JOINTS)]:
        for value in row:
            if value is not None:
                shown = f"{value:.4g}"
                assert shown in words or shown == "-0"


class _Lines:
    """A stdout that is no terminal."""

    encoding = "utf-8"

    def __init__(self, lines: list[str]) -> None:
        self._lines = lines

    def write(self, text: str) -> int:
        self._lines.append(text)
        return len(text)

    def flush(self) -> None:
        return

    def isatty(self) -> bool:
        return False


@pytest.mark.parametrize(
    ("command", "headline"),
    [
        ("estimate", ("at the supply: ", "at the wall: ", "model: ", "standby power")),
        ("evaluate", ("adapted to ", "fitted to this recording")),
        ("identify", ("power: standby ", "friction ± ")),
    ],
)
def test_a_file_has_the_result_and_its_headline(
    command: str,
    headline: tuple[str, ...],
    model: Path,
    bag: Path,
    tmp_path: Path,
    capsys: Capture,
) -> None:
    words = [command, str(model), str(bag)]
    if command == "identify":
        words = [command, str(bag), "--robot", "ur5e", "-o", str(tmp_path / "model.yaml")]
    _, out, _ = end_of(words, capsys)
    for text in headline:
        assert text in out
