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
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from test.benchmarks.meters import DATA, table
from test.benchmarks.peers.comparison import OURS, Results, compare
from test.benchmarks.peers.figures import CurrentError, EnergyError, median_and_worst, number
from test.benchmarks.peers.recordings import Pair, real_bags, simulated_bags

Found = Mapping[tuple[Pair, str], Any]


def main(*, only_summary: bool = False) -> None:
    """Compare and print, pair by pair or only the summary."""
    begin = perf_counter()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        results = compare(real_bags(DATA, folder) + simulated_bags(folder), folder)
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

    def of_currents(found: Sequence[CurrentError], group: str, method: str) -> tuple[str, ...]:
        return tuple(
            median_and_worst([error[k] for error in found], digits)
            for k, digits in enumerate((3, 2, 3, 2))
        )

    def of_energies(found: Sequence[EnergyError], group: str, method: str) -> tuple[str, ...]:
        covered = [yes for pair, yes in results.supply_covered.items() if pair.group == group]
        return (
            median_and_worst([error.supply for error in found]),
            median_and_worst([error.motion for error in found]),
            f"{sum(covered)} of {len(covered)}" if method == OURS else "",
        )

    first = ("judged on", "method", "pairs")
    currents = ("all [A]", "all [%]", "moving [A]", "moving [%]")
    energies = ("supply [%]", "motion [%]", "in our interval")
    coverage = [
        (quantity, group, f"{c.count:.0f}", number(c.share, ".2f"), number(c.rms, ".1f"))
        for (quantity, group), c in sorted(results.coverage.items())
        if c.count
    ]
    seconds = [
        (name, f"{np.median(each):.2f}", str(len(each))) for name, each in results.seconds.items()
    ]
    return "\n\n".join(
        [
            "Current predicted from motion, medians (worst) over pairs; percent of each joint's "
            "range, mean of the joints (EcBot, eq. 26).",
            table((*first, *currents), _by_group(results.currents, of_currents)),
            "Energy at the supply from measured currents and speeds, medians (worst) over pairs. "
            "Motion energy is the energy above standstill.",
            table((*first, *energies), _by_group(results.energies, of_energies)),
            "Share of our 95 % intervals that contain the truth (0.95 is right), and RMS of errors "
            "over stated deviations (1 is right).",
            table(("quantity", "judged on", "intervals", "coverage", "RMS"), coverage),
            "Time of a fit; for currents of the other methods it includes their predictions.",
            table(("method", "median [s]", "fits"), seconds),
        ]
    )


def _by_group(
    found: Found, cells: Callable[[Sequence[Any], str, str], tuple[str, ...]]
) -> list[tuple[str, ...]]:
    """A row for each group and method that has pairs."""
    return [
        (group, method, str(len(own)), *cells(own, group, method))
        for group in dict.fromkeys(pair.group for pair, _ in found)
        for method in _methods(found)
        if (
            own := [v for (pair, name), v in found.items() if (pair.group, name) == (group, method)]
        )
    ]


def pair_by_pair(results: Results) -> str:
    """Every pair of recordings."""

    def current(error: CurrentError) -> str:
        moving = f"{number(error.moving_rms, '.3f')} {number(error.moving_percent, '.2f')}"
        return f"{error.rms:.3f} {error.percent:.2f}; {moving}"

    def energy(error: EnergyError) -> str:
        return f"{error.supply:+.1f} {number(error.motion, '+.1f')}"

    def covered(pair: Pair) -> tuple[str]:
        return ({True: "yes", False: "no", None: ""}[results.supply_covered.get(pair)],)

    return "\n\n".join(
        [
            _table_of_pairs(results.currents, current, "[A, %; moving A, %]"),
            _table_of_pairs(results.energies, energy, "[supply %, motion %]", "covered", covered),
        ]
    )


def _table_of_pairs(
    found: Found,
    cell: Callable[[Any], str],
    units: str,
    last: str | None = None,
    more: Callable[[Pair], tuple[str]] | None = None,
) -> str:
    methods = _methods(found)
    columns = ("fitted", "judged", *(f"{method} {units}" for method in methods))
    rows = [
        (
            pair.train.name,
            pair.judged.name,
            *(cell(found[pair, m]) if (pair, m) in found else "" for m in methods),
            *(() if more is None else more(pair)),
        )
        for pair in dict.fromkeys(pair for pair, _ in found)
    ]
    return table(columns if last is None else (*columns, last), rows)


def _methods(found: Found) -> list[str]:
    """Ours first."""
    return sorted(dict.fromkeys(method for _, method in found), key=lambda name: name != OURS)


if __name__ == "__main__":
    main(only_summary="--summary" in sys.argv)
