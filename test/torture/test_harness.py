"""The harness finds what it is there to find: faulty stand-ins fail, sound ones do not."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from test.torture import __main__ as program
from test.torture.harness import Case, Family, Verdict, Watched, report, run_families

SOUND = "import time; print('fine'); time.sleep(0.3)"
FAULTS = {
    "traceback": "1 / 0",
    "traceback: Traceback": "import sys; print('Traceback (most recent call last):')",
    "crash": "import os; os.abort()",
    "hang": "import time; time.sleep(60)",
    "memory": "bytearray(600 << 20)",
    "exit code 7": "raise SystemExit(7)",
}


def stand_in(code: str) -> Callable[[Case], Verdict]:
    """A case whose program runs this Python code."""

    def run(case: Case) -> Verdict:
        verdict = Verdict("a stand-in")
        process = Watched([sys.executable, "-c", code], case.folder)
        process.finish(2.0 if "sleep(60)" in code else 60.0)
        process.judge(verdict, (0,))
        return verdict

    return run


def results(run: Callable[[Case], Verdict], count: int = 1) -> list:
    return run_families([Family("stand-in", 1.0, run, count)], seed=3, seconds=60.0)


def test_a_sound_program_passes(capsys: pytest.CaptureFixture[str]) -> None:
    found = results(stand_in(SOUND), count=2)
    assert report(found, 3) == 0
    assert len(found[0].verdicts) == 2
    assert found[0].verdicts[0][1].memory > 1.0
    assert "0 failures" in capsys.readouterr().out


@pytest.mark.parametrize("fault", FAULTS)
def test_a_faulty_program_fails(fault: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert report(results(stand_in(FAULTS[fault])), 3) == 1
    out = capsys.readouterr().out
    assert fault in out
    assert "--seed 3 --only stand-in --case 0" in out


def test_cases_depend_on_seed_and_number_alone() -> None:
    drawn: list[float] = []

    def draw(case: Case) -> Verdict:
        drawn.append(case.random.random())
        return Verdict("x")

    family = Family("stand-in", 1.0, draw, 3)
    run_families([family], 5, 10.0)
    run_families([family], 5, 10.0, only_case=2)
    run_families([family], 6, 10.0, only_case=2)
    assert drawn[3] == drawn[2]
    assert len(set(drawn)) == 4


@pytest.mark.parametrize("name", program.FAMILIES)
def test_every_family_exists(name: str) -> None:
    if name == "messages":
        pytest.importorskip("rclpy")
    assert program.load(name).name == name
