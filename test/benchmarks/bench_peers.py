"""Our model beside what others do with the same recordings, on data that no method has seen.

Real arms: every recording kept beside the checkout against every other one of an arm of its type.
Simulated arms: one session fitted, three other sessions judged. Currents are predicted from
motion, energies from measured currents and speeds. The others: a regression of twenty lines, base
parameters (figaroh's where bench_base_parameters installed it, else plain least squares), three
coefficients of power, and EcBot's regressions.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import numpy as np

from test.benchmarks.peers.cases import Pair, real_bags, simulated_bags
from test.benchmarks.peers.comparison import OURS, Results, compare
from test.benchmarks.peers.figures import median_and_worst, number, table

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
"""Recordings of real arms, kept beside the checkout."""


def main(*, only_summary: bool = False) -> None:
    """Compare and print, pair by pair or only the summary."""
    begin = perf_counter()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        bags = real_bags(DATA, folder) + simulated_bags(folder)
        results = compare(bags, folder)
    if only_summary:
        print(summary(results))
        return
    if not DATA.is_dir():
        print(f"no recordings of real arms at {DATA}: simulated arms only")
    print(pair_by_pair(results))
    print(summary(results))
    for line in results.refused:
        print(f"refused: {line}")
    print(f"{perf_counter() - begin:.0f} s in all")


def summary(results: Results) -> str:
    """Groups of pairs, coverage and time, as Markdown."""
    return "\n\n".join(
        [
            "Current predicted from motion, medians (worst) over pairs; percent of each joint's "
            "range, mean of the joints (EcBot, eq. 26).",
            _current_summary(results),
            "Energy at the supply from measured currents and speeds, medians (worst) over pairs. "
            "Motion energy is the energy above standstill.",
            _energy_summary(results),
            "Share of our 95 % intervals that contain the truth (0.95 is right), and RMS of errors "
            "over stated deviations (1 is right).",
            _coverage(results),
            "Time of a fit; for currents of the other methods it includes their predictions.",
            table(
                ("method", "median [s]", "fits"),
                [
                    (name, f"{np.median(each):.2f}", str(len(each)))
                    for name, each in results.seconds.items()
                ],
            ),
        ]
    )


def pair_by_pair(results: Results) -> str:
    """Every pair of recordings."""
    methods = _methods(results.currents)
    currents = table(
        ("fitted", "judged", *(f"{m} [A, %; moving A, %]" for m in methods)),
        [
            (
                pair.train.name,
                pair.judged.name,
                *(_current(results, pair, method) for method in methods),
            )
            for pair in _pairs(results.currents)
        ],
    )
    methods = _methods(results.energies)
    energies = table(
        ("fitted", "judged", *(f"{m} [supply %, motion %]" for m in methods), "covered"),
        [
            (
                pair.train.name,
                pair.judged.name,
                *(_energy(results, pair, method) for method in methods),
                {True: "yes", False: "no", None: ""}[results.supply_covered.get(pair)],
            )
            for pair in _pairs(results.energies)
        ],
    )
    return f"{currents}\n\n{energies}\n"


def _current_summary(results: Results) -> str:
    def row(group: str, method: str) -> tuple[str, ...]:
        found = _of_group(results.currents, group, method)
        return (
            group,
            method,
            str(len(found)),
            *(
                median_and_worst([getattr(error, name) for error in found], digits)
                for name, digits in (
                    ("rms", 3),
                    ("percent", 2),
                    ("moving_rms", 3),
                    ("moving_percent", 2),
                )
            ),
        )

    columns = ("judged on", "method", "pairs", "all [A]", "all [%]", "moving [A]", "moving [%]")
    return table(columns, _rows(results.currents, row))


def _energy_summary(results: Results) -> str:
    def row(group: str, method: str) -> tuple[str, ...]:
        found = _of_group(results.energies, group, method)
        covered = [v for pair, v in results.supply_covered.items() if pair.group == group]
        return (
            group,
            method,
            str(len(found)),
            median_and_worst([error.supply for error in found]),
            median_and_worst([error.motion for error in found]),
            f"{sum(covered)} of {len(covered)}" if method == OURS else "",
        )

    columns = ("judged on", "method", "pairs", "supply [%]", "motion [%]", "in our interval")
    return table(columns, _rows(results.energies, row))


def _coverage(results: Results) -> str:
    return table(
        ("quantity", "judged on", "intervals", "coverage", "RMS"),
        [
            (
                quantity,
                group,
                f"{found.count:.0f}",
                number(found.share, ".2f"),
                number(found.rms, ".1f"),
            )
            for (quantity, group), found in sorted(results.coverage.items())
            if found.count
        ],
    )


def _current(results: Results, pair: Pair, method: str) -> str:
    error = results.currents.get((pair, method))
    if error is None:
        return ""
    return (
        f"{error.rms:.3f} {error.percent:.2f}; "
        f"{number(error.moving_rms, '.3f')} {number(error.moving_percent, '.2f')}"
    )


def _energy(results: Results, pair: Pair, method: str) -> str:
    error = results.energies.get((pair, method))
    return "" if error is None else f"{error.supply:+.1f} {number(error.motion, '+.1f')}"


def _pairs(found: dict) -> list[Pair]:
    return list(dict.fromkeys(pair for pair, _ in found))


def _methods(found: dict) -> list[str]:
    """Ours first."""
    return sorted(dict.fromkeys(method for _, method in found), key=lambda name: name != OURS)


def _of_group(found: dict, group: str, method: str) -> list:
    return [v for (pair, name), v in found.items() if (pair.group, name) == (group, method)]


def _rows(found: dict, row: Callable[[str, str], tuple[str, ...]]) -> list[tuple[str, ...]]:
    groups = dict.fromkeys(pair.group for pair, _ in found)
    return [
        row(group, method)
        for group in groups
        for method in _methods(found)
        if _of_group(found, group, method)
    ]


if __name__ == "__main__":
    main(only_summary="--summary" in sys.argv)
