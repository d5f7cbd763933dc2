"""Lines about problems and repeated events, with a made-up clock."""

from __future__ import annotations

from test.nodes.terminal.made_up_clock import Clock
from ur_energy_model.nodes.lines import Level, Line, ProblemLines, RepeatedLines


def test_a_problem_begins_and_ends() -> None:
    clock = Clock()
    lines = ProblemLines("the counters are saved again", clock=clock)
    assert lines.update(None) == []
    assert lines.update("disk full") == [Line(Level.ERROR, "disk full")]
    clock.wait(3.0)
    assert lines.update("disk full") == []
    (over,) = lines.update(None)
    assert over == Line(Level.INFO, "the counters are saved again, after 3.0 s")


def test_a_problem_that_comes_and_goes_writes_few_lines() -> None:
    clock = Clock()
    lines = ProblemLines("saved again", clock=clock)
    written = []
    for i in range(600):
        written += lines.update("disk full" if i % 2 else None)
        clock.wait(0.1)
    assert 2 <= len(written) <= 12
    assert "interruptions" in written[-1].text or "disk full" in written[-1].text


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
