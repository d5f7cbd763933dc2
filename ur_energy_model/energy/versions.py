# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Two versions of a program: what changed in the energy of each node or line, and in the script.

Measured totals are compared where both recordings are measured; the interval of a
difference is then the uncertainty by the scatter of the cycles. Else the energies of the model are
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
        Entries as in `compare` of `ur_energy profile --json`: energies per cycle, or in all where
        there are no cycles [J], None where a version does not have the part; lines of the
        script that were taken out ("- ...") or added ("+ ..."). The interval of a
        measured difference is unknown (NaN) where there are not two cycles that show the
        scatter.
    """
    rows_before = _by_name(before)
    rows_after = _by_name(after)
    measured = is_measured(before, after)
    channels = before.counted.channels
    found = []
    for key in dict.fromkeys((*rows_before, *rows_after)):
        row_before = rows_before.get(key)
        row_after = rows_after.get(key)
        energies_before = _per_cycle(row_before, measured=measured)
        energies_after = _per_cycle(row_after, measured=measured)
        difference = _difference(energies_after, energies_before)
        if not measured:
            net_before = _net_per_cycle(before, row_before)
            net_after = _net_per_cycle(after, row_after)
            variance = model_variance(channels, net_before, net_after)
            difference = difference.widened(variance)
        text_before = _text(before, row_before)
        text_after = _text(after, row_after)
        found.append(
            {
                "label": key[0],
                "energy": _mean(energies_before),
                "other": _mean(energies_after),
                "difference": difference.value,
                "interval": difference.interval,
                "text": changed_lines(text_before, text_after),
                "compared": "measured" if measured else "modelled",
                "total_source": row_before["total_source"] if row_before else None,
                "other_total_source": row_after["total_source"] if row_after else None,
            }
        )
    return found


def _by_name(profile: ProgramProfile) -> dict[tuple[str, int], Row]:
    """Nodes, and lines outside of nodes, under keys that both versions of a program share.

    A key is the text of a node or line, and the number of nodes or lines with the same
    text before it.
    """
    named: dict[tuple[str, int], Row] = {}
    occurrences: Counter[str] = Counter()
    for row in profile.nodes():
        line = row["lines"][0]
        text = row["label"] or profile.line_text(line).partition(": ")[2]
        text = text or f"line {line}"
        named[text, occurrences[text]] = row
        occurrences[text] += 1
    return named


def _per_cycle(row: Row | None, *, measured: bool) -> Array | None:
    """Energy of a part in each cycle [k], J; in all [1], where there are no cycles.

    None for a part that a version does not have.
    """
    if row is None:
        return None
    cycles: Array = row["cycles"] if measured else row["model_cycles"]
    if len(cycles):
        return cycles
    return np.array([row["energy"] if measured else row["model_energy"]])


def _mean(energies: Array | None) -> float | None:
    """Mean of the energies of a part [k], J; None for a part that a version does not have."""
    return None if energies is None else float(energies.mean())


def _difference(after: Array | None, before: Array | None) -> Difference:
    """Mean after less mean before of energies in each cycle [k], J.

    One of the two may be missing, and counts as 0 J.
    """
    if after is None:
        assert before is not None
        return -Difference.of_mean(before)
    if before is None:
        return Difference.of_mean(after)
    return Difference.of_means(after, before)


def _net_per_cycle(profile: ProgramProfile, row: Row | None) -> Array:
    """Integrals of the channels over a part in a cycle, or in all without cycles [channels], J.

    The integrals over all cycles are scaled to the modelled energy of one cycle.
    """
    modelled = _mean(_per_cycle(row, measured=False))
    if row is None or modelled is None or not row["model_energy"]:
        return np.zeros(len(profile.counted.channels))
    return np.asarray(modelled / row["model_energy"] * row["net"])


def _text(profile: ProgramProfile, row: Row | None) -> list[str]:
    """Lines of the script of a part; none without a script."""
    if row is None or profile.script is None:
        return []
    first, last = row["lines"]
    count = len(profile.script.text)
    return [profile.shown(line).strip() for line in range(first, min(last + 1, count))]


def changed_lines(before: Sequence[str], after: Sequence[str]) -> list[str]:
    """Lines that were taken out ("- ...") or added ("+ ..."), in the order of the script.

    Lines that both scripts have at the beginning and at the end are left out first. Where
    the rest is long, it is compared as sets of lines, which takes time in proportion to
    its length.
    """
    shorter = min(len(before), len(after))
    same_first = 0
    while same_first < shorter and before[same_first] == after[same_first]:
        same_first += 1
    same_last = 0
    most_last = shorter - same_first
    while same_last < most_last and before[-1 - same_last] == after[-1 - same_last]:
        same_last += 1
    old = before[same_first : len(before) - same_last]
    new = after[same_first : len(after) - same_last]
    if len(old) * len(new) > MOST_COMPARED**2:
        gone = Counter(old) - Counter(new)
        added = Counter(new) - Counter(old)
        taken_out = [f"- {line}" for line in old if gone[line]]
        return taken_out + [f"+ {line}" for line in new if added[line]]
    found: list[str] = []
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    for kind, old_begin, old_end, new_begin, new_end in matcher.get_opcodes():
        if kind != "equal":
            found += [f"- {line}" for line in old[old_begin:old_end]]
            found += [f"+ {line}" for line in new[new_begin:new_end]]
    return found
