"""Lines for the operator: connection, bags, problems that come and go, the model, the clock."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import pytest

from test.energy.known_arm import known_model
from test.telemetry.system_clock import SystemClock
from ur_energy_model.nodes.estimator_health import model_line
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
from ur_energy_model.telemetry.recording.writing_thread import RecorderStatus
from ur_energy_model.telemetry.samples import RecordingInfo
from ur_energy_model.telemetry.source import LinkStatus

ROBOT = RecordingInfo(
    source="10.0.0.7", robot="ur5e", serial="20195599999", controller_version="5.11.1", rate=500.0
)
LOST = r"([\d,]+) samples? lost"


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
        taken, self.all = self.all, []
        return [(level, text) for _, level, text in taken]

    def sum(self, pattern: str) -> int:
        """Sum of the numbers in the place of the pattern's group."""
        found = (re.search(pattern, text) for _, _, text in self.all)
        return sum(int(match[1].replace(",", "")) for match in found if match)


@pytest.fixture
def written() -> Written:
    return Written()


@pytest.fixture
def connection(written: Written) -> ConnectionLines:
    return ConnectionLines(written.lines, "10.0.0.7")


def follow(
    written: Written,
    connection: ConnectionLines,
    seconds: float,
    link: LinkStatus,
    step: float = 0.1,
) -> None:
    """Let time pass with a state of the connection."""
    for _ in range(round(seconds / step)):
        connection.update(link, ROBOT if link.connected else None)
        written.now += step


def test_a_connection_an_outage_and_its_end(written: Written, connection: ConnectionLines) -> None:
    assert len(written.take()) == 1
    refused = LinkStatus(connected=False, problem="10.0.0.7: no connection (refused)")
    follow(written, connection, 200.0, refused)
    first, *_ = lines = written.take()
    assert [level for level, _ in lines] == [WARN] * 4
    assert first[1] == "waiting for 10.0.0.7: no connection (refused)"
    follow(written, connection, 100.0, LinkStatus())
    ((level, text),) = written.take()
    assert level is INFO
    for part in ("10.0.0.7", "ur5e", "20195599999", "5.11.1", "500 Hz"):
        assert part in text
    away = LinkStatus(connected=False, problem="connection reset", lost=2600, lost_seconds=5.2)
    follow(written, connection, 4.0, away)
    ((_, text),) = written.take()
    assert "connection reset" in text
    # The estimate was too large.
    follow(written, connection, 60.0, LinkStatus(reconnects=1, lost=2000, lost_seconds=4.0))
    ((_, text),) = written.take()
    assert "2,000 samples lost in 4.0 s" in text
    for _ in range(2):  # once, what was lost since the last update
        connection.end(LinkStatus(connected=False, reconnects=2, lost=2004))
    ((_, text),) = written.take()
    assert "4 samples lost" in text


@pytest.mark.parametrize("poll", [0.1, 1.0])
def test_a_flapping_connection_is_summed_up(
    written: Written, connection: ConnectionLines, poll: float
) -> None:
    """Ten interruptions per second for a minute, whether the poll sees them or not."""
    follow(written, connection, 5.0, LinkStatus(), poll)
    for i in range(600):
        away = i % 2 == 0
        problem = "connection lost" if away else None
        lost = {"lost": 7 * i, "lost_seconds": 0.014 * i}
        if poll == 0.1 or i % 10 == 9:
            link = LinkStatus(connected=not away, problem=problem, reconnects=i, **lost)  # type: ignore[arg-type]
            follow(written, connection, poll, link, poll)
    last = LinkStatus(reconnects=600, lost=4200, lost_seconds=8.4)
    follow(written, connection, 20.0, last, poll)
    connection.end()
    assert written.sum(LOST) == 4200
    for kind in ("no samples from", "come again"):
        times = [time for time, _, text in written.all if kind in text]
        assert all(later - time >= 10.0 for time, later in itertools.pairwise(times))
    for link in (  # another source counts from zero
        LinkStatus(connected=False, problem="gone", reconnects=600, lost=4250),
        LinkStatus(),
    ):
        follow(written, connection, 15.0, link)
    assert written.sum(LOST) == 4250


BAG = RecorderStatus(
    state="recording", bag=Path("bags/a"), samples=12000, seconds=24.0, bytes=5_500_000
)


@pytest.fixture
def recording(written: Written) -> RecordingLines:
    return RecordingLines(written.lines)


def test_bags_begin_and_end_and_short_ones_are_added_up(
    written: Written, recording: RecordingLines
) -> None:
    for status in (BAG, BAG, replace(BAG, state="idle")):
        recording.update(status)
    finished = "finished bags/a: 12,000 samples, 0 lost, 24.0 s, 5.5 MB"
    assert written.take() == [(INFO, "recording bags/a"), (INFO, finished)]
    written.now += 20.0
    other = replace(BAG, bag=Path("bags/b"))
    recording.update(other)
    recording.update(replace(other, state="stopped", stopped_because="the disk is gone"))
    level, text = written.take()[-1]
    assert level is ERROR
    assert "the disk is gone" in text
    for i in range(30):
        bag = replace(BAG, bag=Path(f"bags/{i}"), samples=10)
        for status in (bag, replace(bag, state="idle")):
            recording.update(status)
            written.now += 0.5
    recording.end(None)
    assert len(written.all) <= 8
    assert written.sum(r"(\d+) samples") == 300


def test_a_disk_fails_and_works_again_and_refusals_are_repeated_rarely(
    written: Written, recording: RecordingLines
) -> None:
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
    assert "after 5.0 s; 30 samples lost to the disk" in text
    for second in range(130):
        recording.refused(f"bags/ur5e_{second}: no permission")
        written.now += 1.0
    lines = written.take()
    assert [level for level, _ in lines] == [ERROR] * 3
    assert "bags/ur5e_0: no permission" in lines[0][1]


def test_problems_events_and_steps_of_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    system, written = SystemClock(monkeypatch), Written(HostClock())
    lines = written.lines
    for problem, wait in ((None, 0.0), ("disk full", 3.0), ("disk full", 0.0), (None, 20.0)):
        lines.problem("counters", problem, "the counters are saved again")
        written.now += wait
    over = "the counters are saved again, after 3.0 s"
    assert written.take() == [(ERROR, "disk full"), (INFO, over)]
    for _ in range(21):
        lines.event("bag", INFO, "the bag plays again")
        written.now += 1.0
    more = "the bag plays again (and 9 more times since the last line)"
    assert [text for _, text in written.take()] == ["the bag plays again", more, more]
    lines.clock_steps()
    assert not written.all
    for step in (3600.0, -5.0, -5.0, 7.0):
        written.now += 10.0 * (step == 7.0)
        system.step(step)
        lines.clock_steps()
    first, last = (text for _, text in written.take())
    assert "forward by 3600.0 s" in first
    assert "forward by 7.0 s" in last
    assert "2 more times" in last


NOW = datetime(2026, 11, 22, tzinfo=timezone.utc)
MADE = {
    "date": "2026-11-12T00:00:00+00:00",
    "serial": "20195599999",
    "bags": [{"path": "a"}, {"path": "b"}],
}
HELD_OUT = {"power": {"rmse": 2.31, "energy_error_percent": -1.2}}


def test_age_origin_and_held_out_errors_of_a_model() -> None:
    """Only other motions of the same arm are held out."""

    def line(**content: object) -> tuple[Level, str]:
        model = replace(known_model(), **{"provenance": MADE, **content})  # type: ignore[arg-type]
        return model_line(Path("model.yaml"), model, NOW)

    assert line(validation=(HELD_OUT, {"power": None})) == (
        INFO,
        "model model.yaml: ur5e, serial 20195599999, identified on 2026-11-12 (10 days ago) from "
        "2 recordings, held-out power within 2.3 W rms and energy within 1.2 % (1 recording)",
    )
    level, text = line(provenance={**MADE, "date": "2025-01-01T00:00:00+00:00"})
    assert level is WARN
    assert "check it against a new recording" in text
    for more, counts in (
        ({"motion": "held out", "serials": {"model": "1", "recording": "1"}}, True),
        ({"motion": "held out", "serials": {"model": "1", "recording": "2"}}, False),
        ({"motion": "same motion again"}, False),
        ({"motion": "fitted"}, False),
    ):
        assert ("held-out power" in line(validation=({**HELD_OUT, **more},))[1]) == counts
