# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Our model beside what others do with the same recordings, on data that no method has seen.

Real arms: every recording kept beside the checkout against every other one of an arm of
its type. Simulated arms: one session fitted, three other sessions judged. Currents are
predicted from motion, energies from measured currents and speeds. The others: a
regression of twenty lines, base parameters (figaroh's where it is installed, else plain
least squares), three coefficients of power, ridge regression, EcBot's regressions, and the
one-parameter electrical model of Petrichenko et al., which takes power from the motion;
where another arm is judged, what is known without any model of an arm: generic models and
untrained constants.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from test.benchmarks.meters import DATA, table
from test.benchmarks.peers.comparison import OURS, Results, compare
from test.benchmarks.peers.figures import (
    HALF_WIDTH,
    Coverage,
    CurrentError,
    EnergyError,
    median_and_worst,
    number,
)
from test.benchmarks.peers.recordings import Pair, real_bags, simulated_bags

Found = Mapping[tuple[Pair, str], Any]


def main() -> None:
    """Compare, and print the summary as Markdown; what was refused goes to standard error."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        results = compare(real_bags(DATA, folder) + simulated_bags(folder), folder)
    print(summary(results))
    print(*results.refused, sep="\n", file=sys.stderr)


def summary(results: Results) -> str:
    """Groups of pairs, coverage and time, as Markdown."""

    def of_currents(
        found: Sequence[CurrentError], group: str, method: str
    ) -> tuple[str, ...]:
        return tuple(
            median_and_worst([error[k] for error in found], digits)
            for k, digits in enumerate((3, 2, 3, 2))
        )

    def of_energies(
        found: Sequence[EnergyError], group: str, method: str
    ) -> tuple[str, ...]:
        supply = np.array([error.supply for error in found])
        std = np.array([error.std for error in found])
        counted = Coverage()
        counted.add(supply, std)
        stated = counted.count > 0
        return (
            f"{np.sqrt(np.square(supply).mean()):.2f}",
            median_and_worst(supply.tolist()),
            median_and_worst([error.motion for error in found]),
            f"± {HALF_WIDTH * np.nanmean(std):.1f}" if stated else "",
            number(counted.share, ".2f") if stated else "",
            number(counted.rms, ".1f") if stated else "",
        )

    # Of the same pairs: some recordings are too short to identify a model from them.
    ours = {pair for pair, method in results.energies if method == OURS}
    energy_errors = {
        key: error for key, error in results.energies.items() if key[0] in ours
    }
    first = ("judged on", "method", "pairs")
    currents = ("all [A]", "all [%]", "moving [A]", "moving [%]")
    energies = (
        "rms [%]",
        "supply [%]",
        "motion [%]",
        "95 % interval [%]",
        "coverage",
        "RMS",
    )
    coverage = [
        (quantity, group, f"{c.count:.0f}", number(c.share, ".2f"), number(c.rms, ".1f"))
        for (quantity, group), c in sorted(results.coverage.items())
        if c.count
    ]
    seconds = [
        (name, f"{np.median(each):.2f}", str(len(each)))
        for name, each in results.seconds.items()
    ]
    return "\n\n".join(
        [
            "Current predicted from motion, medians (worst) over pairs; percent of each joint's "
            "range, mean of the joints (EcBot, eq. 26).",
            table((*first, *currents), _by_group(results.currents, of_currents)),
            "Energy at the supply from measured currents and speeds: root mean square, medians "
            "(worst) over pairs; mean half width of the stated intervals, the share of them that "
            "holds the truth, and RMS of errors over stated deviations. Motion energy is the "
            "energy above standstill.",
            table((*first, *energies), _by_group(energy_errors, of_energies)),
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
        for method in sorted(dict.fromkeys(n for _, n in found), key=lambda n: n != OURS)
        if (
            own := [
                v
                for (pair, name), v in found.items()
                if (pair.group, name) == (group, method)
            ]
        )
    ]
