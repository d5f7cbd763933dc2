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
    ClockLines,
    ConnectionLines,
    Level,
    Line,
    ProblemLines,
    RecordingLines,
    RepeatedLines,
)
from ur_energy_model.telemetry.clock import HostClock
from ur_energy_model.telemetry.recording.writing_thread import RecorderStatus
from ur_energy_model.telemetry.samples import RecordingInfo
from ur_energy_model.telemetry.source import LinkStatus


class Clock:
    """Time [s], called like time.monotonic."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self.now += seconds


INFO = RecordingInfo(
    source="10.0.0.7", robot="ur5e", serial="20195599999", controller_version="5.11.1", rate=500.0
)


class Watched:
    """ConnectionLines over time; every line with the time at which it was written."""

    def __init__(self) -> None:
        self.clock = Clock()
        self._lines = ConnectionLines("10.0.0.7", self.clock)
        self.written: list[tuple[float, Line]] = []
        self.link = LinkStatus(connected=False, problem="not connected yet")
        self._keep(self._lines.begin())

    def _keep(self, lines: list[Line]) -> None:
        self.written += [(self.clock.now, line) for line in lines]

    def go(self, seconds: float, link: LinkStatus | None = None, step: float = 0.1) -> list[Line]:
        """Let time pass with a state; returns the lines of that time."""
        self.link = self.link if link is None else link
        before = len(self.written)
        for _ in range(round(seconds / step)):
            self._keep(self._lines.update(self.link, INFO if self.link.connected else None))
            self.clock.wait(step)
        return [line for _, line in self.written[before:]]

    def end(self) -> list[Line]:
        """Lines at the end."""
        lines = self._lines.end()
        self._keep(lines)
        return lines

    def told(self, pattern: str) -> int:
        """Sum of the numbers that lines tell in the place of the pattern's group."""
        found = (re.search(pattern, line.text) for _, line in self.written)
        return sum(int(match[1].replace(",", "")) for match in found if match)


@pytest.fixture
def watched() -> Watched:
    return Watched()


def test_a_connection_an_outage_and_its_end(watched: Watched) -> None:
    refused = LinkStatus(connected=False, problem="10.0.0.7: no connection (refused)")
    lines = watched.go(200.0, refused)
    assert [line.level for line in lines] == [Level.WARN] * 4
    assert lines[0].text == "waiting for 10.0.0.7: no connection (refused)"
    assert all("refused" in line.text for line in lines)
    (line,) = watched.go(100.0, LinkStatus())
    assert line.level is Level.INFO
    for part in ("10.0.0.7", "ur5e", "20195599999", "5.11.1", "500 Hz"):
        assert part in line.text
    away = LinkStatus(connected=False, problem="connection reset", lost=2600, lost_seconds=5.2)
    (gone,) = watched.go(4.0, away)
    assert gone.level is Level.WARN
    assert "connection reset" in gone.text
    # The estimate was too large.
    (back,) = watched.go(60.0, LinkStatus(reconnects=1, lost=2000, lost_seconds=4.0))
    assert "2,000 samples lost in 4.0 s" in back.text


@pytest.mark.parametrize("poll", [0.1, 1.0])
def test_a_flapping_connection_is_summed_up(watched: Watched, poll: float) -> None:
    """Ten interruptions per second for a minute, whether the poll sees them or not."""
    watched.go(5.0, LinkStatus(), poll)
    for i in range(600):
        away = i % 2 == 0
        link = LinkStatus(
            connected=not away,
            problem="connection lost" if away else None,
            reconnects=i,
            lost=7 * i,
            lost_seconds=0.014 * i,
        )
        if poll == 0.1 or i % 10 == 9:
            watched.go(poll, link, poll)
    final = LinkStatus(reconnects=600, lost=4200, lost_seconds=8.4)
    watched.go(20.0, final, poll)
    assert watched.end() == []
    assert watched.told(r"([\d,]+) samples? lost") == 4200
    for kind in ("no samples from", "come again"):
        times = [time for time, line in watched.written if kind in line.text]
        assert all(later - time >= 10.0 for time, later in itertools.pairwise(times))


def test_a_source_that_replaces_another_counts_from_zero(watched: Watched) -> None:
    watched.go(5.0, LinkStatus())
    watched.go(15.0, LinkStatus(reconnects=3, lost=100))
    watched.go(15.0, LinkStatus(connected=False, problem="gone", reconnects=3, lost=150))
    watched.go(15.0, LinkStatus())
    assert watched.told(r"([\d,]+) samples? lost") == 150


def test_what_was_lost_since_the_last_update_is_told_at_the_end() -> None:
    lines = ConnectionLines("10.0.0.7", Clock())
    lines.update(LinkStatus(), INFO)
    closed = LinkStatus(connected=False, lost=4, reconnects=1)
    (line,) = lines.end(closed)
    assert "4 samples lost" in line.text
    assert lines.end(closed) == []


BAG = RecorderStatus(
    state="recording", bag=Path("bags/a"), samples=12000, seconds=24.0, bytes=5_500_000
)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def lines(clock: Clock) -> RecordingLines:
    return RecordingLines(clock)


def test_a_bag_begins_and_ends(lines: RecordingLines, clock: Clock) -> None:
    assert lines.update(BAG) == [Line(Level.INFO, "recording bags/a")]
    assert lines.update(BAG) == []
    text = "finished bags/a: 12,000 samples, 0 lost, 24.0 s, 5.5 MB"
    assert lines.update(replace(BAG, state="idle")) == [Line(Level.INFO, text)]
    clock.wait(20.0)
    other = replace(BAG, bag=Path("bags/b"))
    lines.update(other)
    (line,) = lines.update(replace(other, state="stopped", stopped_because="the disk is gone"))
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


def test_a_refusal_is_repeated_rarely(lines: RecordingLines, clock: Clock) -> None:
    written = []
    for second in range(130):
        written += lines.refused(f"bags/ur5e_{second}: no permission")
        clock.wait(1.0)
    assert [line.level for line in written] == [Level.ERROR] * 3
    assert "bags/ur5e_0: no permission" in written[0].text


def test_a_problem_begins_and_ends() -> None:
    clock = Clock()
    lines = ProblemLines("the counters are saved again", clock=clock)
    assert lines.update(None) == []
    assert lines.update("disk full") == [Line(Level.ERROR, "disk full")]
    clock.wait(3.0)
    assert lines.update("disk full") == []
    (over,) = lines.update(None)
    assert over == Line(Level.INFO, "the counters are saved again, after 3.0 s")


def test_events_left_out_are_counted_in_the_next_line() -> None:
    clock = Clock()
    lines, written = RepeatedLines(clock=clock), list[Line]()
    for _ in range(21):
        written += lines.happened("the bag plays again")
        clock.wait(1.0)
    assert [line.text for line in written] == [
        "the bag plays again",
        "the bag plays again (and 9 more times since the last line)",
        "the bag plays again (and 9 more times since the last line)",
    ]


def test_steps_are_told_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    system, clock = SystemClock(monkeypatch), Clock()
    lines = ClockLines(HostClock(), clock)
    assert lines.update() == []
    system.step(3600.0)
    (line,) = lines.update()
    assert line.level is Level.WARN
    assert "forward by 3600.0 s" in line.text
    for _ in range(3):
        system.step(-5.0)
        assert lines.update() == []
    clock.wait(10.0)
    system.step(7.0)
    (line,) = lines.update()
    assert "forward by 7.0 s" in line.text
    assert "3 more times" in line.text


PATH = Path("model.yaml")


NOW = datetime(2026, 11, 22, tzinfo=timezone.utc)


MADE = {
    "date": "2026-11-12T00:00:00+00:00",
    "serial": "20195599999",
    "bags": [{"path": "a"}, {"path": "b"}],
}


HELD_OUT = ({"power": {"rmse": 2.31, "energy_error_percent": -1.2}}, {"power": None})


def test_age_origin_and_held_out_errors_of_a_model() -> None:
    line = model_line(PATH, replace(known_model(), provenance=MADE, validation=HELD_OUT), NOW)
    assert line.level is Level.INFO
    assert line.text == (
        "model model.yaml: ur5e, serial 20195599999, identified on 2026-11-12 (10 days ago) from "
        "2 recordings, held-out power within 2.3 W rms and energy within 1.2 % (1 recording)"
    )
    old = {**MADE, "date": "2025-01-01T00:00:00+00:00"}
    line = model_line(PATH, replace(known_model(), provenance=old), NOW)
    assert line.level is Level.WARN
    assert "check it against a new recording" in line.text


@pytest.mark.parametrize(
    ("entry", "counts"),
    [
        ({"motion": "held out", "serials": {"model": "1", "recording": "1"}}, True),
        ({"motion": "same motion again"}, False),
        ({"motion": "fitted"}, False),
        ({"motion": "held out", "serials": {"model": "1", "recording": "2"}}, False),
    ],
)
def test_only_other_motions_of_the_arm_are_held_out(entry: dict[str, object], counts: bool) -> None:
    validation = ({**HELD_OUT[0], **entry},)
    line = model_line(PATH, replace(known_model(), provenance=MADE, validation=validation), NOW)
    assert ("held-out power" in line.text) == counts
