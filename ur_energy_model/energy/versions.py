# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Two versions of a program: what changed in the energy of each node or line, and in the script.

Measured totals are compared where both recordings are measured; the interval of a
difference is then that of the scatter of the cycles. Else the energies of the model are
compared, whose errors are common to both versions as far as the motion is the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Any

import numpy as np

from ur_energy_model.energy.difference import Difference, both_measured, model_variance
from ur_energy_model.energy.profile import ProgramProfile, Row
from ur_energy_model.typing import Array

MOST_COMPARED = 500  # lines of two versions that are compared one by one


def is_measured(before: ProgramProfile, after: ProgramProfile) -> bool:
    """Whether measured totals of two versions are compared, and not modelled energies."""
    return both_measured(before.total_source, after.total_source)


def sources_words(before: ProgramProfile, after: ProgramProfile) -> str:
    """Where the totals of two versions come from, and what is compared, in words."""
    sides = f"Total before: {before.total_source.words()}; after: {after.total_source.words()}."
    if is_measured(before, after):
        return f"{sides} Measured energies are compared."
    return f"{sides} So energies of the model are compared, and the intervals have its error."


def compare_programs(
    before: ProgramProfile, after: ProgramProfile
) -> list[dict[str, Any]]:
    """What changed in each node, or line outside of nodes, between two versions of a program.

    Returns:
        As `compare` of `ur_energy profile --json`: energies per cycle, or in all where
        there are no cycles [J], None where a version does not have the part; lines of the
        script that were taken out ("- ...") or added ("+ ..."). The interval of a
        measured difference is unknown (NaN) where there are not two cycles that show the
        scatter.
    """
    sides = [_by_name(each) for each in (before, after)]
    measured = is_measured(before, after)
    found = []
    for key in dict.fromkeys((*sides[0], *sides[1])):
        rows = [named.get(key) for named in sides]
        energies = [
            None if row is None else _per_cycle(row, measured=measured) for row in rows
        ]
        difference = _difference(energies[1], energies[0])
        if not measured:
            nets = [_net_per_cycle(before, row) for row in rows]
            channels = before.counted.channels
            difference = difference.widened(model_variance(channels, *nets))
        texts = [_text(*each) for each in zip((before, after), rows, strict=True)]
        means = [None if each is None else float(each.mean()) for each in energies]
        found.append(
            {
                "label": key[0],
                "energy": means[0],
                "other": means[1],
                "difference": difference.value,
                "interval": difference.interval,
                "text": changed_lines(*texts),
                "compared": "measured" if measured else "modelled",
                "total_source": None if rows[0] is None else rows[0]["total_source"],
                "other_total_source": None
                if rows[1] is None
                else rows[1]["total_source"],
            }
        )
    return found


def _by_name(profile: ProgramProfile) -> dict[tuple[str, int], Row]:
    """Nodes, and lines outside of them, by their text and the number of those with it before."""
    named: dict[tuple[str, int], Row] = {}
    for row in profile.nodes():
        text = row["label"] or profile.line_text(row["lines"][0]).partition(": ")[2]
        text = text or f"line {row['lines'][0]}"
        named[text, sum(1 for label, _ in named if label == text)] = row
    return named


def _per_cycle(row: Row, *, measured: bool) -> Array:
    """Energy of a part in each cycle [k], J; in all [1], where there are no cycles."""
    cycles: Array = row["cycles"] if measured else row["model_cycles"]
    if len(cycles):
        return cycles
    return np.array([row["energy"] if measured else row["model_energy"]])


def _difference(after: Array | None, before: Array | None) -> Difference:
    """Mean after less mean before of energies in each cycle [k], J; a missing part has 0 J."""
    if after is not None and before is not None:
        return Difference.of_means(after, before)
    if before is None:
        assert after is not None
        return Difference.of_mean(after)
    return -Difference.of_mean(before)


def _net_per_cycle(profile: ProgramProfile, row: Row | None) -> Array:
    """Integrals of the channels over a part in a cycle, or in all without cycles [channels], J."""
    if row is None:
        return np.zeros(len(profile.counted.channels))
    whole = row["model_energy"]
    share = float(_per_cycle(row, measured=False).mean()) / whole if whole else 0.0
    return np.asarray(share * row["net"])


def _text(profile: ProgramProfile, row: Row | None) -> list[str]:
    """Lines of the script of a part; none without a script."""
    if row is None or profile.script is None:
        return []
    first, last = row["lines"]
    count = len(profile.script.text)
    return [profile.shown(line).strip() for line in range(first, min(last + 1, count))]


def changed_lines(before: Sequence[str], after: Sequence[str]) -> list[str]:
    """Lines that were taken out ("- ...") or added ("+ ..."), in the order of the script.

    Long parts that differ are compared as sets of lines, which takes time in proportion
    to them.
    """
    first = 0
    while first < min(len(before), len(after)) and before[first] == after[first]:
        first += 1
    last = 0
    while (
        last < min(len(before), len(after)) - first
        and before[-1 - last] == after[-1 - last]
    ):
        last += 1
    old = before[first : len(before) - last]
    new = after[first : len(after) - last]
    if len(old) * len(new) > MOST_COMPARED**2:
        gone = Counter(old) - Counter(new)
        added = Counter(new) - Counter(old)
        taken_out = [f"- {line}" for line in old if gone[line]]
        return taken_out + [f"+ {line}" for line in new if added[line]]
    found: list[str] = []
    for kind, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind != "equal":
            found += [f"- {line}" for line in old[a:b]] + [
                f"+ {line}" for line in new[c:d]
            ]
    return found
