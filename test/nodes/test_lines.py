# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Lines for the operator: connection, bags, problems that come and go, the model, the clock."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from pathlib import Path

import pytest

from test.telemetry.system_clock import SystemClock
from ur_energy_model.nodes.lines import (
    ERROR,
    INFO,
    WARN,
    ConnectionLines,
    Level,
    OperatorLines,
    RecordingLines,
)
from ur_energy_model.telemetry.clock import HostClock
from ur_energy_model.telemetry.gaps import Losses
from ur_energy_model.telemetry.recording.writing_thread import RecorderStatus
from ur_energy_model.telemetry.samples import RecordingInfo
from ur_energy_model.telemetry.source import LinkStatus

ROBOT = RecordingInfo(
    source="10.0.0.7",
    robot="ur5e",
    serial="20195599999",
    controller_version="5.11.1",
    rate=500.0,
)
LOST = r"([\d,]+) samples? lost"
BAG = RecorderStatus(
    state="recording", bag=Path("bags/a"), samples=12000, seconds=24.0, bytes=5_500_000
)


class Written:
    """Lines over time, each with the time at which it was written."""

    def __init__(self, host_clock: HostClock | None = None) -> None:
        self.now = 1000.0
        self.all: list[tuple[float, Level, str]] = []
        self.lines = OperatorLines(
            lambda level, text: self.all.append((self.now, level, text)),
            lambda: self.now,
            host_clock or HostClock(),
        )

    def take(self) -> list[tuple[Level, str]]:
        """Lines since the last call."""
        taken = self.all
        self.all = []
        return [(level, text) for _, level, text in taken]

    def sum(self, pattern: str) -> int:
        """Sum of the numbers in the place of the pattern's group."""
        found = (re.search(pattern, text) for _, _, text in self.all)
        return sum(int(match[1].replace(",", "")) for match in found if match)

    def follow(
        self, connection: ConnectionLines, seconds: float, link: LinkStatus
    ) -> None:
        """Let time pass with a state of the connection."""
        for _ in range(round(10 * seconds)):
            connection.update(link, ROBOT if link.connected else None)
            self.now += 0.1


@pytest.fixture
def written() -> Written:
    return Written()


def test_a_connection_an_outage_and_its_end(written: Written) -> None:
    connection = ConnectionLines(written.lines, "10.0.0.7")
    assert len(written.take()) == 1
    refused = LinkStatus(connected=False, problem="10.0.0.7: no connection (refused)")
    written.follow(connection, 200.0, refused)
    first, *_ = lines = written.take()
    assert [level for level, _ in lines] == [WARN] * 4
    assert first[1] == "waiting for 10.0.0.7: no connection (refused)"
    written.follow(connection, 100.0, LinkStatus())
    ((level, text),) = written.take()
    assert level is INFO
    assert all(
        part in text for part in ("10.0.0.7", "ur5e", "20195599999", "5.11.1", "500 Hz")
    )
    away = LinkStatus(connected=False, problem="connection reset", outage=5.2)
    written.follow(connection, 4.0, away)
    ((_, text),) = written.take()
    assert "connection reset" in text
    written.follow(
        connection, 60.0, LinkStatus(reconnects=1, losses=Losses(2000, 4.0, 1))
    )
    ((level, text),) = written.take()
    assert level is WARN
    assert "2,000 samples lost in 4.0 s" in text
    for _ in range(2):  # once, what was lost since the last update
        connection.end(
            LinkStatus(connected=False, reconnects=2, losses=Losses(2004, 4.01, 2))
        )
    ((_, text),) = written.take()
    assert "4 samples lost" in text


def test_an_outage_without_loss_says_so(written: Written) -> None:
    """Packets that were late: the samples come, and whatever was estimated meanwhile is no loss."""
    connection = ConnectionLines(written.lines, "10.0.0.7")
    written.follow(connection, 5.0, LinkStatus())
    written.take()
    for outage in (0.6, 1.0):
        stalled = LinkStatus(problem="sends no new samples", outage=outage)
        written.follow(connection, outage, stalled)
        written.follow(connection, 20.0, LinkStatus())
        (_, silent), (level, again) = written.take()
        assert "no samples from 10.0.0.7" in silent
        assert level is INFO
        assert "samples of 10.0.0.7 come again, none lost" in again
    connection.end(LinkStatus())
    assert written.take() == []


def test_a_flapping_connection_is_summed_up(written: Written) -> None:
    """Five interruptions per second for a minute."""
    connection = ConnectionLines(written.lines, "10.0.0.7")
    written.follow(connection, 5.0, LinkStatus())
    for i in range(600):
        away = i % 2 == 0
        link = LinkStatus(
            connected=not away, problem="connection lost" if away else None, reconnects=i
        )
        written.follow(connection, 0.1, replace(link, losses=Losses(7 * i, 0.014 * i, i)))
    written.follow(
        connection, 20.0, LinkStatus(reconnects=600, losses=Losses(4200, 8.4, 600))
    )
    connection.end()
    assert written.sum(LOST) == 4200
    for kind in ("no samples from", "come again"):
        times = [time for time, _, text in written.all if kind in text]
        assert all(later - time >= 10.0 for time, later in itertools.pairwise(times))


def test_a_disk_fails_and_works_again_and_refusals_are_repeated_rarely(
    written: Written,
) -> None:
    recording = RecordingLines(written.lines)
    failing = replace(BAG, state="failing", last_error="disk full", waiting=700)
    for status in (BAG, failing):
        recording.update(status)
    level, text = written.take()[-1]
    assert level is ERROR
    assert "disk full (700 samples" in text
    written.now += 5.0
    recording.update(failing)
    assert not written.all
    recording.update(replace(BAG, overflow=30))
    ((level, text),) = written.take()
    assert level is WARN
    assert "30 samples lost to the disk" in text
    assert text.endswith("after 5.0 s")
    for second in range(130):
        recording.refused(f"bags/ur5e_{second}: no permission")
        written.now += 1.0
    assert [level for level, _ in written.take()] == [ERROR] * 3
    recording.update(replace(BAG, state="stopped", stopped_because="the disk is gone"))
    level, text = written.take()[-1]
    assert level is ERROR
    assert "the disk is gone" in text


def test_problems_events_and_steps_of_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    system = SystemClock(monkeypatch)
    written = Written(HostClock())
    lines = written.lines
    for problem, wait in (
        (None, 0.0),
        ("disk full", 3.0),
        ("disk full", 0.0),
        (None, 20.0),
    ):
        lines.problem("counters", problem, "the counters are saved again")
        written.now += wait
    over = "the counters are saved again, after 3.0 s"
    assert written.take() == [(ERROR, "disk full"), (INFO, over)]
    for _ in range(11):
        lines.event("bag", INFO, "the bag plays again")
        written.now += 1.0
    more = "the bag plays again (and 9 more times since the last line)"
    assert [text for _, text in written.take()] == ["the bag plays again", more]
    for step in (3600.0, -5.0, -5.0, 7.0):
        written.now += 10.0 * (step == 7.0)
        system.step(step)
        lines.clock_steps()
    first, last = (text for _, text in written.take())
    assert "forward by 3600.0 s" in first
    assert "forward by 7.0 s" in last
    assert "2 more times" in last
