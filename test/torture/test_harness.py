"""The harness finds what it is there to find: faulty stand-ins fail, sound ones do not."""

from __future__ import annotations

import sys

import pytest

from test.torture import __main__ as program
from test.torture.harness import Case, Family, Verdict, Watched, report, run_families

FAULTS = {
    "traceback": "1 / 0",
    "traceback: Traceback": "print('Traceback (most recent call last):')",
    "crash": "import os; os.abort()",
    "hang": "import time; time.sleep(60)",
    "memory": "bytearray(600 << 20)",
    "exit code 7": "raise SystemExit(7)",
    "0 failures": "import time; print('fine'); time.sleep(0.3)",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faulty_programs_fail_and_sound_ones_pass(
    fault: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(case: Case) -> Verdict:
        verdict = Verdict("a stand-in")
        process = Watched([sys.executable, "-c", FAULTS[fault]], case.folder)
        process.finish(2.0 if fault == "hang" else 60.0)
        process.judge(verdict, (0,))
        return verdict

    results = run_families([Family("stand-in", 1.0, run, 1)], seed=3, seconds=60.0)
    sound = fault == "0 failures"
    assert report(results, 3) == (0 if sound else 1)
    assert not sound or results["stand-in"][0][1].memory > 1.0
    out = capsys.readouterr().out
    assert fault in out
    assert sound or "--seed 3 --only stand-in --case 0" in out


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
    assert program.load(name).name == name
