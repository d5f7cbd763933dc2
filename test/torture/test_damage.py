"""Damage is real and repeatable, hostile files are what they claim, and the judge is strict."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml

from test.torture.case import Verdict
from test.torture.damage import KINDS, damaged
from test.torture.hostile_files import alias_bomb, deep, inline_bomb, merge_bomb
from test.torture.reading import ReadingWorker
from test.torture.reading_worker import read
from test.torture.surroundings import Surroundings

DATA = bytes(range(256)) * 20


@pytest.mark.parametrize("kind", KINDS)
def test_damage_changes_the_data_and_can_be_repeated(kind: str) -> None:
    for seed in range(50):
        once = damaged(DATA, Random(seed), kind)
        assert once != DATA
        assert once == damaged(DATA, Random(seed), kind)


def test_data_that_cannot_be_swapped_is_damaged_too() -> None:
    assert damaged(bytes(100), Random(0), "swap") == bytes(99)


def test_bombs_are_yaml_that_expands() -> None:
    assert len(yaml.safe_load(alias_bomb(3, 4))["a2"]) == 4
    assert len(yaml.safe_load("x: " + inline_bomb(3, 4))["x"]) == 4
    assert len(yaml.safe_load(merge_bomb(3))["m2"]) == 3
    assert yaml.safe_load(deep(3)) == {"a": [[[]]]}


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ({"outcome": "traceback", "text": "KeyError"}, "traceback: KeyError"),
        ({"outcome": "hang: over 20 s"}, "hang"),
        ({"outcome": "refused", "text": "one\ntwo"}, "not one line"),
        ({"outcome": "refused", "text": "x" * 1500}, "not one line"),
        ({"outcome": "refused", "text": "\x1b[2J"}, "escape"),
        ({"outcome": "read", "memory": 501.0}, "501 MB"),
    ],
)
def test_bad_answers_are_found(
    monkeypatch: pytest.MonkeyPatch, answer: dict[str, Any], words: str
) -> None:
    whole = {"text": "", "seconds": 0.1, "memory": 10.0, **answer}
    with Surroundings() as around:
        worker = ReadingWorker(around)
        monkeypatch.setattr(worker, "_ask", lambda kind, path: whole)
        verdict = Verdict("x")
        worker.judge(verdict, "bag", Path("x"))
    assert len(verdict.problems) == 1
    assert words in verdict.problems[0]


def test_good_answers_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    with Surroundings() as around:
        worker = ReadingWorker(around)
        verdict = Verdict("x")
        for outcome in ("read", "refused"):
            answer = {"outcome": outcome, "text": "a: is wrong", "seconds": 0.1, "memory": 10.0}
            monkeypatch.setattr(worker, "_ask", lambda kind, path, answer=answer: answer)
            worker.judge(verdict, "bag", Path("x"))
    assert verdict.problems == []


def test_a_reader_tells_refusals_from_tracebacks(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text("schema: 99\n")
    assert read("robot", path)["outcome"] == "refused"
    assert read("no such kind", path)["outcome"] == "traceback"
    assert read("robot", path)["memory"] > 1.0


def test_a_worker_answers_and_starts_again_after_a_crash(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text("schema: 99\n")
    with Surroundings() as around:
        worker, verdict = ReadingWorker(around), Verdict("x")
        assert worker.judge(verdict, "robot", path)["outcome"] == "refused"
        assert worker._child is not None
        worker._child.kill()
        worker._child.wait()
        assert worker.judge(Verdict("y"), "robot", path)["outcome"] == "the reader crashed"
        assert worker.judge(verdict, "robot", path)["outcome"] == "refused"
    assert verdict.problems == []
