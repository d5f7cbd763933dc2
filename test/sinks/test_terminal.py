# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The live view at any size, its lines without a terminal, and what it shows of problems."""

from __future__ import annotations

import json
import math
import threading
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from test.energy.known_arm import ROBOT
from test.sinks.readings import away, full, state, waiting
from ur_energy_model.sinks.live_arm import LiveState
from ur_energy_model.sinks.live_view import (
    FOOTER,
    BarAxis,
    LiveView,
    bar,
    joules,
    sparkline,
    watts,
    with_interval,
)
from ur_energy_model.sinks.terminal import (
    LinePrinter,
    json_line,
    last_text_line,
    text_line,
)

JOINT_NAMES = ROBOT.joint_names
BLOCKS = set("▁▂▃▄▅▆▇█▏▎▍▌▋▊▉")


def shown(
    what: LiveState, width: int, height: int, *, ascii_only: bool = False
) -> list[str]:
    view = LiveView(ascii_only=ascii_only)
    for _ in range(3):
        view.add(what)
    return [line.plain for line in view.lines(what, width, height)]


def test_numbers_and_bars() -> None:
    for found, expected in (
        (watts(-0.01), "0.0 W"), (watts(math.inf), "-"), (joules(2106.4), "2,106 J"),
        (joules(-2.3e8), "-230.0 MJ"), (bar(2.0, 3), "███"), (bar(math.nan, 2), "  "),
        (bar(0.55, 2), "█▏"), (bar(0.5, 4, ascii_only=True), "##  "),
        (sparkline([0.0, 1.0, 2.0], 4), " ▁▅█"), (sparkline([1.0, math.nan], 2), "█ "),
    ):  # fmt: skip
        assert found == expected


@given(
    st.floats(-500.0, 500.0),
    st.floats(0.0, 500.0),
    st.floats(0.0, 500.0),
    st.integers(4, 90),
)
def test_a_negative_power_is_a_bar_to_the_left_of_zero_as_long_as_its_share(
    power: float, below: float, above: float, width: int
) -> None:
    lowest = min(power, -below)
    largest = max(power, above)
    for ascii_only in (False, True):
        axis = BarAxis.of(lowest, largest, width)
        line = axis.bar(power, ascii_only=ascii_only).plain
        assert len(line) == axis.left + axis.right == width
        left = line[: axis.left]
        right = line[axis.left :]
        assert not (right if power < 0.0 else left).strip() or axis.left == 0
        own, room = (left, axis.left) if power < 0.0 else (right, axis.right)
        end = max(axis.high / axis.right, -axis.low / max(axis.left, 1)) * room
        if room:
            filled = len(own.strip())
            assert filled == pytest.approx(abs(power) / end * room, abs=1.0)
        if axis.left and power < 0.0:
            assert left == left.strip().rjust(axis.left), "it ends at zero"


@pytest.mark.parametrize("what", [full(), waiting()])
def test_it_fits_every_terminal(what: LiveState) -> None:
    for width in (1, 20, 61, 200):
        for height in (1, 2, 10, 60):
            for ascii_only in (False, True):
                lines = shown(what, width, height, ascii_only=ascii_only)
                assert len(lines) <= height
                assert all(len(line) <= width for line in lines)
                assert not (ascii_only and set("".join(lines)) & BLOCKS)


def test_it_shows_joints_supply_cycle_connection_sinks_and_the_reason_of_silence() -> (
    None
):
    lines = shown(full(), 100, 40)
    for joint in JOINT_NAMES:
        (row,) = [line for line in lines if line.startswith(joint)]
        assert all(unit in row for unit in (" W ", " J ", "°C"))
    for word in ("total", "measured", "model", "explains", "standby", "unexplained",
                 "cycle 1", "3 samples lost", "interruption",
                 "energy.json: cannot be written", "mqtt", "arm-1", "█", "±", FOOTER):  # fmt: skip
        assert word in "\n".join(lines), word
    assert shown(waiting(), 80, 24)[0].startswith(
        "waiting for 192.168.0.9: sent nothing for 3 s"
    )
    assert "no samples: sent nothing for 3 s" in shown(away(), 80, 24)[0]


@pytest.mark.parametrize(
    ("energy", "half", "expected"),
    [
        (139.014, 0.0328, "139.01 J ± 0.03 J"),
        (139.014, 0.96, "139.0 J ± 1.0 J"),
        (0.0, 1e-9, "0.000 J ± 0.001 J"),
        (1234.5, 54.3, "1,234 J ± 54 J"),
        (123_456.0, 0.2, "123.5 kJ ± 1 J"),
        (5.0, 0.0, "5 J ± 0 J"),
        (5.0, math.nan, "5 J ± -"),
    ],
)
def test_no_interval_is_rounded_to_zero(
    energy: float, half: float, expected: str
) -> None:
    assert with_interval(energy, half) == expected


def test_json_has_the_values_of_the_topics() -> None:
    what = full()
    assert what.reading is not None
    content = json.loads(json_line(what))
    assert content["values"] == what.reading.numbers()
    assert content["time"].startswith("2025-06-15T15:06:4")
    assert (content["connected"], content["samples_lost"]) == (True, 3)
    assert [joint["name"] for joint in content["joints"]] == list(what.reading.joints)
    last = json.loads(json_line(what, ended={"measures": []}))
    assert (content["ended"], last["ended"], last["measures"]) == (False, True, [])


def test_lines_of_text_have_no_control_characters_from_outside() -> None:
    what = state()
    for word in ("arm-1 moving", "total", "joints", "3 samples lost"):
        assert word in text_line(what)
    assert what.reading is not None
    evil = replace(
        what, source="\x1b[2J\n", reading=replace(what.reading, arm="\x1b[2J\n")
    )
    for line in (text_line(evil), last_text_line(evil), json_line(evil)):
        assert not set(line) & {"\x1b", "\n"}


@pytest.mark.parametrize("patience", [0.0, 1000.0])
def test_problems_and_waits_are_written_once(
    patience: float, capsys: pytest.CaptureFixture[str]
) -> None:
    """With patience, a wait is one line until samples come."""
    states = iter([waiting(), waiting(), full(), state(), waiting()])
    noted: list[str] = []
    lines = LinePrinter(
        lambda _: next(states), threading.Event(), text_line, noted.append, patience
    )
    for _ in range(5):
        lines.update()
    printed = ["waiting" in line for line in capsys.readouterr().out.splitlines()]
    assert printed == [True, *([True] * (not patience)), False, False, True]
    silent = [] if patience else ["no samples from 192.168.0.9"]
    found = [text.partition(":")[0] for text in noted]
    assert found == [*silent, "energy.json", "mqtt 127.0.0.1", *silent]
