"""Sound accounts pass, and every kind of false account is found."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from test.torture.accounting import Recorded, check_counts, check_duration, check_received
from test.torture.case import Verdict
from test.torture.nodes import reported
from ur_energy_model.typing import Array

TIMES: Array = np.asarray(60.0 + 0.002 * np.arange(1000), dtype=np.float64)
SOUND = Recorded(TIMES, 1000, 0)


def problems(recorded: Recorded, passed: np.ndarray = TIMES, *, asked: float = 2.0, code: int = 0):
    verdict = Verdict("x")
    check_counts(verdict, recorded)
    check_received(verdict, recorded, passed.tolist())
    check_duration(verdict, recorded, asked, code)
    return verdict.problems


def test_a_whole_recording_is_sound() -> None:
    assert problems(SOUND) == []


def test_said_losses_are_sound() -> None:
    kept = np.r_[TIMES[:400], TIMES[450:]]
    assert problems(Recorded(kept, 950, 50)) == []
    assert problems(Recorded(TIMES[20:], 980, 20)) == []


def test_a_short_recording_that_says_so_is_sound() -> None:
    assert problems(SOUND, asked=6.0, code=3) != []
    assert problems(replace(SOUND, lost_seconds=4.0), asked=6.0, code=3) == []
    assert problems(replace(SOUND, lost=2000), asked=6.0, code=3) == []


def test_a_gap_at_the_end_is_a_gap_like_any_other_where_the_robot_came_back() -> None:
    gap = replace(SOUND, lost=2000, lost_seconds=4.0)
    for last, count in ((66.0, 0), (65.0, 1)):
        verdict = Verdict("x")
        check_duration(verdict, gap, 6.0, 0, [*TIMES.tolist(), last])
        assert len(verdict.problems) == count


@pytest.mark.parametrize(
    ("recorded", "passed", "words"),
    [
        (replace(SOUND, samples=1001), TIMES, "1001 samples reported, 1000 readable"),
        (Recorded(np.zeros(0), 7, 0), TIMES, "7 samples reported, 0 readable"),
        (Recorded(TIMES[::-1], 1000, 0), TIMES, "out of order"),
        (Recorded(np.r_[TIMES[:400], TIMES[450:]], 950, 49), TIMES, "50 cycles are missing, 49"),
        (Recorded(TIMES[20:], 980, 0), TIMES, "20 packages before the first sample"),
        (SOUND, TIMES[:990], "10 readable samples were never sent"),
        (SOUND, np.zeros(0), "never sent"),
    ],
)
def test_false_accounts_are_found(recorded: Recorded, passed: np.ndarray, words: str) -> None:
    assert any(words in problem for problem in problems(recorded, passed)), problems(recorded)


def test_a_short_recording_with_exit_code_0_is_found() -> None:
    (first, second) = problems(SOUND, asked=6.0)
    assert "2.0 s of 6 s recorded with exit code 0" in first
    assert "4.0 s are missing at the end, 0.0 s reported" in second


def test_what_a_logger_says_is_read() -> None:
    assert reported("bags/ur5e_1: 1500 samples, 3 lost") == ("bags/ur5e_1", 1500, 3)
    assert reported("not connected yet") is None
