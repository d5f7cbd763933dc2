"""Lines for pipes: text for people, JSON for scripts, problems on stderr."""

from __future__ import annotations

import json
import threading
from dataclasses import replace

import pytest

from test.sinks.terminal.live_states import away, full, state, waiting
from ur_energy_model.sinks.estimator_reading import LiveState
from ur_energy_model.sinks.terminal import (
    Lines,
    json_line,
    last_json_line,
    last_text_line,
    text_line,
)


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


def test_json_before_the_first_sample() -> None:
    content = json.loads(json_line(waiting()))
    assert content["connected"] is False
    assert content["problem"].startswith("sent nothing for 3 s")
    assert "values" not in content


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


def test_numbers_in_a_problem_make_no_new_one() -> None:
    told: list[str] = []
    texts = iter(["sent nothing for 3 s", "sent nothing for 4 s"])

    def next_state(viewer: str) -> LiveState:
        what = waiting()
        return replace(what, link=replace(what.link, problem=next(texts)))

    lines = Lines(next_state, threading.Event(), text_line, told.append)
    lines.update()
    lines.update()
    assert len(told) == 1


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
