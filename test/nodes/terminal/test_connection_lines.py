"""Lines about connections, from made-up sequences of states."""

from __future__ import annotations

import itertools
import re

import pytest

from test.nodes.terminal.made_up_clock import Clock
from ur_energy_model.nodes.lines import ConnectionLines, Level, Line
from ur_energy_model.telemetry.samples import RecordingInfo
from ur_energy_model.telemetry.source import LinkStatus

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


def test_the_first_line_names_the_address(watched: Watched) -> None:
    assert watched.written[0][1] == Line(Level.INFO, "connecting to 10.0.0.7")


def test_a_connection_is_described_once(watched: Watched) -> None:
    (line,) = watched.go(100.0, LinkStatus())
    assert line.level is Level.INFO
    for part in ("10.0.0.7", "ur5e", "20195599999", "5.11.1", "500 Hz"):
        assert part in line.text


def test_waiting_has_its_reason_and_is_repeated_rarely(watched: Watched) -> None:
    refused = LinkStatus(connected=False, problem="10.0.0.7: no connection (refused)")
    lines = watched.go(200.0, refused)
    assert [line.level for line in lines] == [Level.WARN] * 4
    assert lines[0].text == "waiting for 10.0.0.7: no connection (refused)"
    assert all("refused" in line.text for line in lines)


def test_another_reason_is_told_soon(watched: Watched) -> None:
    watched.go(15.0, LinkStatus(connected=False, problem="no connection (refused)"))
    (line,) = watched.go(15.0, LinkStatus(connected=False, problem="is a UR3"))
    assert "is a UR3" in line.text


def test_a_number_that_grows_is_no_other_reason(watched: Watched) -> None:
    watched.go(5.0, LinkStatus())
    for i in range(40):
        watched.go(1.0, LinkStatus(problem=f"has sent nothing for {i + 1}.0 s"))
    assert sum("has sent nothing" in line.text for _, line in watched.written) == 1


def test_an_outage_and_its_end(watched: Watched) -> None:
    watched.go(5.0, LinkStatus())
    (gone,) = watched.go(4.0, LinkStatus(connected=False, problem="connection reset"))
    assert gone.level is Level.WARN
    assert "connection reset" in gone.text
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


def test_losses_while_connected_are_told(watched: Watched) -> None:
    watched.go(5.0, LinkStatus())
    (line,) = watched.go(5.0, LinkStatus(lost=3))
    assert "3 samples lost" in line.text
    watched.go(5.0, LinkStatus(lost=8))  # too soon for a line of its own
    (later,) = watched.go(10.0)
    assert "5 samples lost" in later.text


def test_an_estimate_that_was_too_large_is_corrected(watched: Watched) -> None:
    watched.go(5.0, LinkStatus())
    watched.go(5.0, LinkStatus(connected=False, problem="gone", lost=2600, lost_seconds=5.2))
    (back,) = watched.go(5.0, LinkStatus(reconnects=1, lost=2500, lost_seconds=5.0))
    assert "2,500 samples lost in 5.0 s" in back.text


def test_a_source_that_replaces_another_counts_from_zero(watched: Watched) -> None:
    watched.go(5.0, LinkStatus())
    watched.go(15.0, LinkStatus(reconnects=3, lost=100))
    watched.go(15.0, LinkStatus(connected=False, problem="gone", reconnects=3, lost=150))
    watched.go(15.0, LinkStatus())
    assert watched.told(r"([\d,]+) samples? lost") == 150


def test_an_outage_at_the_end_is_told(watched: Watched) -> None:
    watched.go(5.0, LinkStatus())
    watched.go(5.0, LinkStatus(connected=False, problem="gone", lost=2500, lost_seconds=5.0))
    (line,) = watched.end()
    assert "at the end: 2,500 samples lost" in line.text


def test_what_was_lost_since_the_last_update_is_told_at_the_end() -> None:
    lines = ConnectionLines("10.0.0.7", Clock())
    lines.update(LinkStatus(), INFO)
    closed = LinkStatus(connected=False, lost=4, reconnects=1)
    (line,) = lines.end(closed)
    assert "4 samples lost" in line.text
    assert lines.end(closed) == []
