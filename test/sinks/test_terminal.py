"""The live view at any size, its lines without a terminal, and what it shows of problems."""

from __future__ import annotations

import json
import math
import threading
from dataclasses import replace

import pytest

from test.energy.known_arm import ROBOT
from test.sinks.readings import away, full, state, waiting
from ur_energy_model.sinks.live_arm import LiveState
from ur_energy_model.sinks.terminal import (
    FOOTER,
    Lines,
    LiveView,
    bar,
    end_of_scale,
    joules,
    json_line,
    last_json_line,
    last_text_line,
    sparkline,
    text_line,
    watts,
)

JOINT_NAMES = ROBOT.joint_names
BLOCKS = set("▁▂▃▄▅▆▇█▏▎▍▌▋▊▉")


def shown(what: LiveState, width: int, height: int, *, ascii_only: bool = False) -> list[str]:
    view = LiveView(ascii_only=ascii_only)
    for _ in range(3):
        view.add(what)
    return [line.plain for line in view.lines(what, width, height)]


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (watts(93.94), "93.9 W"), (watts(-0.01), "0.0 W"), (watts(math.inf), "-"),
        (joules(2106.4), "2,106 J"), (joules(12345.0), "12.35 kJ"), (joules(1.5e6), "1.50 MJ"),
        (joules(-2.3e8), "-230.0 MJ"), (joules(5e9), "5.00 GJ"), (joules(math.nan), "-"),
        (bar(0.5, 4), "██  "), (bar(2.0, 3), "███"), (bar(-1.0, 2), "  "), (bar(math.nan, 2), "  "),
        (bar(0.55, 2), "█▏"), (bar(0.5, 4, ascii_only=True), "##  "),
        (sparkline([0.0, 1.0, 2.0], 4), " ▁▅█"), (sparkline([1.0, math.nan], 2), "█ "),
        (sparkline([], 3), "   "), (sparkline([0.0, 0.0], 2), "▁▁"), (sparkline([1.0], 0), ""),
        (end_of_scale(0.0), 1), (end_of_scale(1.5), 2), (end_of_scale(101), 200),
    ],
)  # fmt: skip
def test_numbers_and_bars(found: str | float, expected: str | float) -> None:
    assert found == expected


@pytest.mark.parametrize("what", [state(), full(), waiting(), away()])
def test_it_fits_every_terminal(what: LiveState) -> None:
    for width in (1, 20, 40, 61, 80, 200):
        for height in (1, 2, 10, 24, 60):
            for ascii_only in (False, True):
                lines = shown(what, width, height, ascii_only=ascii_only)
                assert len(lines) <= height
                assert all(len(line) <= width for line in lines)
                assert not (ascii_only and set("".join(lines)) & BLOCKS)


def test_it_shows_joints_supply_cycle_connection_and_sinks() -> None:
    lines = shown(full(), 100, 40)
    text = "\n".join(lines)
    for joint in JOINT_NAMES:
        (row,) = [line for line in lines if line.startswith(joint)]
        assert all(unit in row for unit in (" W ", " J ", "°C"))
    for word in ("total", "bus", "standby", "residual", "cycle 1", "3 samples lost", "interruption",
                 "energy.json: cannot be written", "mqtt"):  # fmt: skip
        assert word in text, word
    assert "arm-1" in lines[0]
    assert lines[-1] == FOOTER
    (total,) = [line for line in lines if line.startswith("total")]
    assert "█" in total
    assert "±" in total
    reading = full().reading
    assert reading is not None
    powers = [abs(reading.numbers()[f"energy/{name}/power"]) for name in JOINT_NAMES]
    (heading,) = [line for line in lines if line.startswith("joint")]
    scale = float(heading.split(" to ")[1].split(" W")[0])
    assert max(powers) <= scale <= 2.5 * max(powers)


def test_while_no_samples_come_the_reason_is_shown() -> None:
    assert shown(waiting(), 80, 24)[0].startswith("waiting for 192.168.0.9: sent nothing for 3 s")
    assert "no samples: sent nothing for 3 s" in shown(away(), 80, 24)[0]
    view = LiveView()
    view.add(away())
    assert not view.history["total"]


def test_json_has_the_values_of_the_topics() -> None:
    what = full()
    assert what.reading is not None
    content = json.loads(json_line(what))
    assert content["values"] == what.reading.numbers()
    assert content["time"].startswith("2025-06-15T15:06:4")
    assert (content["connected"], content["samples_lost"]) == (True, 3)
    assert content["cycle"]["number"] == 1
    assert [joint["name"] for joint in content["joints"]] == list(what.reading.joints)
    assert {"power", "energy", "efficiency", "temperature"} <= content["joints"][0].keys()
    assert [sink["problem"] for sink in content["sinks"]].count(None) == 3
    assert content["ended"] is False
    assert json.loads(last_json_line(what))["ended"] is True


def test_lines_of_text_have_no_control_characters_from_outside() -> None:
    what = state()
    for word in ("arm-1 moving", "total", "bus", "joints", "3 samples lost", "±"):
        assert word in text_line(what)
    assert "waiting for 192.168.0.9" in text_line(waiting())
    assert "no samples (sent nothing" in text_line(away())
    assert "in 2.0 s, 3 samples lost" in last_text_line(what)
    assert what.reading is not None
    evil = replace(what, source="\x1b[2J\n", reading=replace(what.reading, arm="\x1b[2J\n"))
    for line in (text_line(evil), last_text_line(evil), json_line(evil)):
        assert not set(line) & {"\x1b", "\n"}


@pytest.mark.parametrize("patience", [0.0, 1000.0])
def test_problems_and_waits_are_written_once(
    patience: float, capsys: pytest.CaptureFixture[str]
) -> None:
    """With patience, a wait is one line until samples come."""
    states = iter([waiting(), waiting(), full(), state(), waiting()])
    noted: list[str] = []
    lines = Lines(lambda _: next(states), threading.Event(), text_line, noted.append, patience)
    for _ in range(5):
        lines.update()
    printed = ["waiting" in line for line in capsys.readouterr().out.splitlines()]
    assert printed == [True, *([True] * (not patience)), False, False, True]
    silent = [] if patience else ["no samples from 192.168.0.9"]
    found = [text.partition(":")[0] for text in noted]
    assert found == [*silent, "energy.json", "mqtt 127.0.0.1", *silent]
