# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The harness finds what it is there to find: faulty stand-ins fail, sound ones do not."""

from __future__ import annotations

import sys

import pytest

from test.torture import __main__ as program
from test.torture.harness import Case, Family, Verdict, Watched, report, run_families

FAULTS = {
    "traceback: Traceback": "print('Traceback (most recent call last):')",
    "crash": "import os; os.abort()",
    "hang": "import time; time.sleep(60)",
    "memory": "bytearray(600 << 20)",
    "exit code 7": "raise SystemExit(7)",
}


def test_faulty_programs_fail_and_sound_ones_pass(
    capsys: pytest.CaptureFixture[str],
) -> None:
    programs = [*FAULTS.values(), "print('fine')"]
    drawn = list[float]()

    def run(case: Case) -> Verdict:
        verdict = Verdict("a stand-in")
        text = programs[case.number]
        drawn.append(case.random.random())
        process = Watched([sys.executable, "-c", text], case.folder)
        process.finish(2.0 if "sleep" in text else 60.0)
        process.judge(verdict, (0,))
        return verdict

    for number, fault in enumerate([*FAULTS, "0 failures"]):
        results = run_families([Family("stand-in", 1.0, run)], 3, 60.0, only_case=number)
        assert report(results, 3) == (number < len(FAULTS))
        out = capsys.readouterr().out
        assert fault in out
        assert (f"--seed 3 --only stand-in --case {number}" in out) == (
            number < len(FAULTS)
        )
    run_families([Family("stand-in", 1.0, run)], 3, 60.0, only_case=number)
    assert drawn[-1] == drawn[-2], "cases depend on seed and number alone"
    assert len(set(drawn)) == len(programs)


def test_every_family_exists() -> None:
    assert all(program.load(name).name == name for name in program.FAMILIES)
