"""Runs families of cases within a time, and prints what they found."""

from __future__ import annotations

import sys
import threading
import time
import traceback
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from random import Random

from test.torture.case import Case, Family, Verdict
from test.torture.surroundings import Surroundings

_HEAD = ("family", "cases", "skipped", "failures", "worst memory [MB]", "longest time [s]")


@dataclass
class Result:
    """What the cases of one family found.

    Attributes:
        family: name.
        verdicts: by case, in order.
    """

    family: str
    verdicts: list[tuple[str, Verdict]] = field(default_factory=list)

    @property
    def failed(self) -> list[tuple[str, Verdict]]:
        """Cases with problems."""
        return [(case, verdict) for case, verdict in self.verdicts if verdict.problems]

    @property
    def row(self) -> tuple[str, ...]:
        """Cells of the table."""
        verdicts = [verdict for _, verdict in self.verdicts]
        skipped = [verdict for verdict in verdicts if verdict.skipped]
        memory = max((verdict.memory for verdict in verdicts), default=0.0)
        longest = max((verdict.seconds for verdict in verdicts), default=0.0)
        counts = (len(verdicts) - len(skipped), len(skipped), len(self.failed))
        return (self.family, *map(str, counts), f"{memory:.0f}", f"{longest:.1f}")


def run_families(
    families: Sequence[Family], seed: int, seconds: float, only_case: int | None = None
) -> list[Result]:
    """Run each family for its share of the time.

    Args:
        families: to run.
        seed: of all random numbers.
        seconds: for all together.
        only_case: number of the only case to run; None for all.
    """
    total = sum(family.share for family in families)
    results: list[Result] = []
    end = time.monotonic()
    with Surroundings() as around:
        for family in families:
            end += seconds * family.share / total  # what one overruns, the next ones do not have
            results.append(_run_family(family, seed, end, only_case, around))
            print(_line(results[-1].row), flush=True)
    return results


def _run_family(
    family: Family, seed: int, end: float, only_case: int | None, around: Surroundings
) -> Result:
    result = Result(family.name)
    numbers = iter(range(family.count or sys.maxsize) if only_case is None else [only_case])
    following = threading.Lock()

    def run_cases() -> None:
        first = True
        while first or time.monotonic() < end:
            first = False
            with following:
                number = next(numbers, None)
            if number is None:
                return
            folder = around.folder / f"{family.name}_{number}"
            folder.mkdir()
            case = Case(number, Random(f"{seed}/{family.name}/{number}"), folder, around)
            result.verdicts.append((str(number), _guarded(family, case)))

    with ThreadPoolExecutor(family.at_once) as pool:
        for done in [pool.submit(run_cases) for _ in range(family.at_once)]:
            done.result()
    result.verdicts.sort(key=lambda item: int(item[0]))
    if family.finish is not None:
        result.verdicts.append(("end", family.finish(around)))
    return result


def _guarded(family: Family, case: Case) -> Verdict:
    """Run a case; whatever goes wrong in the harness itself counts as a failure too."""
    began = time.monotonic()
    try:
        verdict = family.run(case)
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        verdict = Verdict("the harness itself")
        verdict.problems.append(f"{type(error).__name__} at {place.name}:{place.lineno}: {error}")
    verdict.seconds = verdict.seconds or time.monotonic() - began
    return verdict


def report(results: Iterable[Result], seed: int) -> int:
    """Print the table, what was skipped and what failed; returns the exit code."""
    results = list(results)
    print("\n" + _line(_HEAD))
    for result in results:
        print(_line(result.row))
    for result in results:
        for reason in sorted({verdict.skipped for _, verdict in result.verdicts} - {""}):
            print(f"skipped in {result.family}: {reason}")
    failures = [(result.family, *failed) for result in results for failed in result.failed]
    for family, case, verdict in failures:
        print(f"\nFAILED {family} case {case}: {verdict.name}")
        for problem in verdict.problems:
            print(f"  {problem}")
        repeat = "" if case == "end" else f" --case {case}"
        print(f"  repeat: python -m test.torture --seed {seed} --only {family}{repeat}")
    print(f"\nseed {seed}: {len(failures)} failures")
    return 1 if failures else 0


def _line(cells: Sequence[str]) -> str:
    name, *others = cells
    widths = [len(cell) + 2 for cell in _HEAD[1:]]
    return f"{name:10}" + "".join(f"{cell:>{n}}" for cell, n in zip(others, widths, strict=True))
