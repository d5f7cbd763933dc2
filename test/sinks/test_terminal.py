"""The live view fits every terminal; lines for pipes: text for people, JSON for scripts."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Callable
from dataclasses import replace

import pytest

from test.sinks.readings import away, full, state, waiting
from ur_energy_model.errors import span
from ur_energy_model.sinks.live_arm import LiveState
from ur_energy_model.sinks.terminal import (
    FOOTER,
    WIDEST,
    Lines,
    LiveView,
    bar,
    degrees,
    end_of_scale,
    joules,
    json_line,
    last_json_line,
    last_text_line,
    percent,
    sparkline,
    text_line,
    watts,
)
from ur_energy_model.telemetry.bag.layout import JOINT_NAMES


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        *((bar(share, 4), "    ") for share in (0.0, -1.0, math.nan)),
        (bar(0.5, 4), "██  "),
        (bar(0.53125, 4), "██▏ "),
        *((bar(share, 4), "████") for share in (1.0, 7.0)),
        (sparkline((0.0, 7.0), 4), "  ▁█"),
        (sparkline((7.0, 0.0, 3.5, 7.0), 2), "▅█"),
        (sparkline((1.0, math.nan), 2), "█ "),
        (sparkline((), 3), "   "),
        (sparkline((-5.0, 0.0), 2), "▁▁"),
        (sparkline((1.0,), 0), ""),
        (sparkline((0.0, 7.0), 2, ascii_only=True), "_#"),
        (joules(0.4), "0 J"),
        (joules(-12.0), "-12 J"),
        (joules(9999.4), "9,999 J"),
        (joules(12_345.0), "12.35 kJ"),
        (joules(123_456.0), "123.5 kJ"),
        (joules(9_999_999.0), "10.00 MJ"),
        (joules(4.2e9), "4.20 GJ"),
        (joules(-4.2e6), "-4.20 MJ"),
        (watts(-3.14159), "-3.1 W"),
        (percent(0.714), "71 %"),
        (degrees(35.4), "35 °C"),
        *((made, "-") for made in (joules(math.nan), watts(math.inf), percent(math.nan))),
        (degrees(None), "-"),
        *((span(s), text) for s, text in ((3.0, "3.0 s"), (300.0, "5.0 min"), (9000.0, "2.5 h"))),
    ],
)
def test_bars_sparklines_and_quantities(made: str, expected: str) -> None:
    assert made == expected


@pytest.mark.parametrize(
    ("value", "end"),
    [(0.0, 1.0), (1.0, 1.0), (1.1, 2.0), (50.0, 50.0), (51.0, 100.0), (730.0, 1e3)],
)
def test_ends_of_scales(value: float, end: float) -> None:
    assert end_of_scale(value) == end


SIZES = [(80, 24), (120, 40), (60, 20), (40, 12), (20, 5), (300, 100), (1, 1), (80, 1), (80, 2)]


STATES: dict[str, Callable[[], LiveState]] = {
    "waiting": waiting,
    "running": state,
    "away": away,
    "full": full,
}


def shown(what: LiveState, width: int, height: int, *, ascii_only: bool = False) -> list[str]:
    view = LiveView(ascii_only=ascii_only)
    for _ in range(70):
        view.add(what)
    return [line.plain for line in view.lines(what, width, height)]


@pytest.mark.parametrize(("width", "height"), SIZES)
@pytest.mark.parametrize("kind", STATES)
def test_the_view_fits(kind: str, width: int, height: int) -> None:
    lines = shown(STATES[kind](), width, height)
    assert 1 <= len(lines) <= height
    assert max(map(len, lines)) <= min(width, WIDEST)


@pytest.mark.parametrize(("width", "height"), [(80, 24), (120, 40), (60, 20)])
def test_what_matters_is_visible(width: int, height: int) -> None:
    what = full()
    lines = shown(what, width, height)
    text = "\n".join(lines)
    for joint in JOINT_NAMES:
        (row,) = [line for line in lines if line.startswith(joint)]
        assert " W " in row
        assert " J " in row
        assert "°C" in row
    for word in ("total", "bus", "standby", "residual", "cycle 1", "3 samples lost", "interruption",
                 "energy.json: cannot be written", "mqtt"):  # fmt: skip
        assert word in text, word
    assert "arm-1" in lines[0]
    assert lines[-1] == FOOTER
    (total,) = [line for line in lines if line.startswith("total")]
    assert "█" in total
    assert "±" in total


def test_while_no_samples_come_it_says_why() -> None:
    assert shown(waiting(), 80, 24)[0].startswith("waiting for 192.168.0.9: sent nothing for 3 s")
    assert "no samples: sent nothing for 3 s" in shown(away(), 80, 24)[0]
    view = LiveView()
    view.add(away())
    assert not view.history["total"]


def test_terminals_without_block_characters() -> None:
    text = "".join(shown(state(), 80, 24, ascii_only=True))
    assert not set(text) & set("▁▂▃▄▅▆▇█▏▎▍▌▋▊▉")


def test_the_scale_of_the_bars_holds_the_largest_power() -> None:
    view, what = LiveView(), state()
    (heading,) = [line.plain for line in view.lines(what, 80, 24) if line.plain.startswith("joint")]
    assert what.reading is not None
    powers = [abs(what.reading.numbers()[f"energy/{name}/power"]) for name in JOINT_NAMES]
    scale = float(heading.split(" to ")[1].split(" W")[0])
    assert max(powers) <= scale <= 2.5 * max(powers)


def test_json_has_the_values_of_the_topics() -> None:
    what = full()
    assert what.reading is not None
    text = json_line(what)
    assert "\n" not in text
    content = json.loads(text)
    assert content["values"] == what.reading.numbers()
    assert content["time"].startswith("2025-06-15T15:06:4")
    assert content["connected"] is True
    assert content["samples_lost"] == 3
    assert content["cycle"]["number"] == 1
    assert [joint["name"] for joint in content["joints"]] == list(what.reading.joints)
    assert {"power", "energy", "efficiency", "temperature"} <= content["joints"][0].keys()
    assert [sink["problem"] for sink in content["sinks"]].count(None) == 3
    assert content["ended"] is False
    assert json.loads(last_json_line(what))["ended"] is True


def test_text_lines() -> None:
    line = text_line(state())
    for word in ("arm-1 moving", "total", "bus", "joints", "3 samples lost", "±"):
        assert word in line
    assert "waiting for 192.168.0.9" in text_line(waiting())
    assert "no samples (sent nothing" in text_line(away())
    assert "in 2.0 s, 3 samples lost" in last_text_line(state())


def test_names_from_outside_cannot_control_the_terminal() -> None:
    what = state()
    assert what.reading is not None
    evil = replace(what, source="\x1b[2J\n", reading=replace(what.reading, arm="\x1b[2J\n"))
    for line in (text_line(evil), last_text_line(evil), json_line(evil)):
        assert "\x1b" not in line
        assert "\n" not in line


def test_problems_are_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    states = iter([waiting(), waiting(), full(), state(), waiting()])
    told: list[str] = []
    lines = Lines(lambda _: next(states), threading.Event(), text_line, told.append)
    for _ in range(5):
        lines.update()
    assert len(capsys.readouterr().out.splitlines()) == 5
    assert [text.partition(":")[0] for text in told] == [
        "no samples from 192.168.0.9",
        "energy.json",
        "mqtt 127.0.0.1",
        "no samples from 192.168.0.9",
    ]


def test_a_wait_is_one_line_until_samples_come(capsys: pytest.CaptureFixture[str]) -> None:
    states = iter([waiting(), waiting(), waiting(), state(), state(), waiting(), waiting()])
    told: list[str] = []
    lines = Lines(
        lambda _: next(states), threading.Event(), text_line, told.append, patience=1000.0
    )
    for _ in range(7):
        lines.update()
    printed = capsys.readouterr().out.splitlines()
    assert ["waiting" in line for line in printed] == [True, False, False, True]
    assert told == []
