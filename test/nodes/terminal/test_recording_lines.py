"""Lines about bags, from made-up sequences of states."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from test.nodes.terminal.made_up_clock import Clock
from ur_energy_model.nodes.lines import Level, RecordingLines
from ur_energy_model.telemetry.recording.reception import RecorderStatus

BAG = RecorderStatus(
    state="recording", bag=Path("bags/a"), samples=12000, seconds=24.0, bytes=5_500_000
)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def lines(clock: Clock) -> RecordingLines:
    return RecordingLines(clock)


def test_nothing_is_said_without_a_bag(lines: RecordingLines) -> None:
    assert lines.update(RecorderStatus()) == []
    assert lines.end(RecorderStatus()) == []


def test_a_bag_begins_and_is_finished_with_its_counts(lines: RecordingLines) -> None:
    (begun,) = lines.update(BAG)
    assert (begun.level, begun.text) == (Level.INFO, "recording bags/a")
    assert lines.update(BAG) == []
    (finished,) = lines.update(replace(BAG, state="idle"))
    assert finished.level is Level.INFO
    assert finished.text == "finished bags/a: 12,000 samples, 0 lost, 24.0 s, 5.5 MB"


def test_a_bag_with_losses_is_a_warning(lines: RecordingLines) -> None:
    lines.update(BAG)
    (line,) = lines.update(replace(BAG, state="idle", lost=5))
    assert line.level is Level.WARN
    assert "5 lost" in line.text


def test_a_bag_that_ended_by_itself_is_an_error_with_its_reason(lines: RecordingLines) -> None:
    lines.update(BAG)
    (line,) = lines.update(replace(BAG, state="stopped", stopped_because="the disk is gone"))
    assert line.level is Level.ERROR
    assert "the disk is gone" in line.text


def test_many_short_bags_are_added_up(lines: RecordingLines, clock: Clock) -> None:
    written = []
    for i in range(30):
        bag = replace(BAG, bag=Path(f"bags/{i}"), samples=10)
        written += lines.update(bag)
        clock.wait(0.5)
        written += lines.update(replace(bag, state="idle"))
        clock.wait(0.5)
    written += lines.end(None)
    texts = [line.text for line in written]
    assert len(texts) <= 8
    told = sum(int(match[1]) for text in texts if (match := re.search(r"(\d+) samples", text)))
    assert told == 300


def test_a_bag_between_two_updates_is_told(lines: RecordingLines) -> None:
    (line,) = lines.update(replace(BAG, state="idle"))
    assert "finished bags/a" in line.text


def test_a_disk_fails_and_works_again(lines: RecordingLines, clock: Clock) -> None:
    lines.update(BAG)
    failing = replace(BAG, state="failing", last_error="disk full", waiting=700)
    (failed,) = lines.update(failing)
    assert failed.level is Level.ERROR
    assert "disk full (700 samples" in failed.text
    clock.wait(5.0)
    assert lines.update(failing) == []
    (works,) = lines.update(replace(BAG, overflow=30))
    assert works.level is Level.WARN
    assert "after 5.0 s; 30 samples lost to the disk" in works.text


def test_a_flapping_disk_writes_few_lines(lines: RecordingLines, clock: Clock) -> None:
    lines.update(BAG)
    written = []
    for i in range(600):
        state = "failing" if i % 2 else "recording"
        written += lines.update(replace(BAG, state=state, last_error="disk full"))
        clock.wait(0.1)
    assert 2 <= len(written) <= 12


def test_a_refusal_is_repeated_rarely(lines: RecordingLines, clock: Clock) -> None:
    written = []
    for second in range(130):
        written += lines.refused(f"bags/ur5e_{second}: no permission")
        clock.wait(1.0)
    assert [line.level for line in written] == [Level.ERROR] * 3
    assert "bags/ur5e_0: no permission" in written[0].text
