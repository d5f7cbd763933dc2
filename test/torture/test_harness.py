"""The harness finds what it is there to find: faulty stand-ins fail, sound ones do not."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from test.torture import __main__ as program
from test.torture.case import Case, Family, Verdict
from test.torture.harness import report, run_families
from test.torture.watched import Watched, complaint

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


def test_an_error_of_the_harness_is_a_failure(capsys: pytest.CaptureFixture[str]) -> None:
    def broken(case: Case) -> Verdict:
        raise OSError("no disk")

    assert report(results(broken), 0) == 1
    assert "OSError" in capsys.readouterr().out


def test_skipped_cases_are_told_and_do_not_fail(capsys: pytest.CaptureFixture[str]) -> None:
    def skips(case: Case) -> Verdict:
        return Verdict("x", skipped="no root here")

    assert report(results(skips), 0) == 0
    assert "no root here" in capsys.readouterr().out


def test_a_failure_at_the_end_of_a_family_counts() -> None:
    def finish(around: object) -> Verdict:
        return Verdict("the end", ["it complained"])

    family = Family("stand-in", 1.0, stand_in(SOUND), 1, finish)
    assert report(run_families([family], 0, 10.0), 0) == 1


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


def test_the_time_is_a_bound() -> None:
    def slow(case: Case) -> Verdict:
        time.sleep(0.2)
        return Verdict("x")

    families = [Family("one", 1.0, slow), Family("two", 1.0, slow)]
    began = time.monotonic()
    counts = [len(result.verdicts) for result in run_families(families, 0, 1.0)]
    assert time.monotonic() - began < 30.0
    assert min(counts) >= 1
    assert max(counts) <= 4


def test_complaints_name_the_error() -> None:
    output = "x\nTraceback (most recent call last):\n  File 1\nValueError: no\n"
    assert complaint(output) == "Traceback (most recent call last): / ValueError: no"
    assert complaint("all is fine") is None


@pytest.mark.parametrize("name", program.FAMILIES)
def test_every_family_exists(name: str) -> None:
    if name == "messages":
        pytest.importorskip("rclpy")
    assert program.load(name).name == name


def test_the_wall_clock_of_a_stepped_process_jumps(tmp_path: Path) -> None:
    code = (
        "import time; from test.torture.stepped_clock import step_clock\n"
        "a, m = time.time(), time.monotonic(); step_clock(3600.0, 0.0); time.sleep(0.01)\n"
        "assert 3600 <= time.time() - a < 3660 and time.time_ns() / 1e9 - a >= 3600\n"
        "assert time.monotonic() - m < 60"
    )
    root = Path(__file__).resolve().parents[2]
    assert subprocess.run([sys.executable, "-c", code], cwd=root, check=False).returncode == 0
