# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The saving of a changed program, from ordinary production, in `ur_energy optimize`.

--before and --after name recordings; --history and --changed take the cycles of a store
instead. No model is needed, and the program is not optimised.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ur_energy_model.cli.output import (
    WIDTH,
    print_json,
    print_line,
    print_table,
    progress,
)
from ur_energy_model.plant.room import ChangedProgramOptions
from ur_energy_model.rooms import Given

if TYPE_CHECKING:  # need packages that an optimisation does not need
    from ur_energy_model.plant.before_after import ProductionSaving
    from ur_energy_model.plant.production import Production

_OF_OPTIMIZATION = ("model", "execute", "output", "report")
"""Options of the command that belong to an optimisation."""


def compare_production(given: Given) -> bool:
    """Print the saving of a changed program, if the options ask for it.

    A usage error ends the command if options of an optimisation are given as well.

    Args:
        given: options of `ur_energy optimize`.

    Returns:
        Whether the options ask for the saving.

    Raises:
        UrEnergyError: a recording or the store cannot be used, or has no cycles.
    """
    options = given.of(ChangedProgramOptions)
    asked = (options.before, options.after, options.history, options.changed)
    if not any(asked):
        return False
    if any(given.value(name) for name in _OF_OPTIMIZATION):
        given.refuse("--before, --after and --changed need no model, and write no files")
    from ur_energy_model.plant.before_after import compare

    before, after = _productions(given, options)
    comparison = compare(before, after)
    if given.value("json"):
        print_json(comparison.as_json())
    else:
        _print(comparison, before, after)
    return True


def _productions(
    given: Given, options: ChangedProgramOptions
) -> tuple[Sequence[Production], Sequence[Production]]:
    """The cycles before and after the change, from recordings or from a store.

    A usage error ends the command if the options are incomplete.

    Args:
        given: options of `ur_energy optimize`.
        options: the options of this module among them.
    """
    from ur_energy_model.plant.commands import opened_store
    from ur_energy_model.plant.database import HistoryDatabase, instant
    from ur_energy_model.plant.recorded_production import recorded_productions
    from ur_energy_model.plant.stored_production import stored_productions

    recordings = options.before or options.after
    if options.history is None and options.changed is None:
        if not options.before or not options.after:
            given.refuse("--before BAG... and --after BAG... belong together")
        with progress("finding the cycles") as report:
            return recorded_productions(options.before, options.after, progress=report)
    if options.history is None or options.changed is None or recordings:
        given.refuse("--history STORE and --changed DATE belong together, alone")
    changed = instant(options.changed, "--changed")
    arms = () if options.arm is None else (options.arm,)
    with HistoryDatabase(opened_store(options.history), arms=arms) as database:
        return stored_productions(database, changed)


def _print(
    comparison: ProductionSaving,
    before: Sequence[Production],
    after: Sequence[Production],
) -> None:
    """Print the cycles of both sides, and the saving with its interval.

    Args:
        comparison: the saving.
        before: recordings or days before the change.
        after: recordings or days after it.
    """
    source = "measured at the bus" if comparison.is_measured else "from the model"
    columns = ["", "recordings", "cycles", "cycle [s]", "energy [J]", "scatter [J]",
               "at rest [W]"]  # fmt: skip
    rows = [_side_row("before", before), _side_row("after", after)]
    print_table(f"Cycles of ordinary production, {source}", columns, rows)
    percent = 100.0 / comparison.energy
    low, high = (end * percent for end in comparison.interval)
    found = f"Saving per cycle: {comparison.saving:.1f} J, {comparison.saving * percent:.1f} %"
    if np.isfinite(low):
        interval = f"({low:.1f} to {high:.1f} % with 95 % confidence)"
        doubt = "" if comparison.proven else ", not proven"
        _print_text(f"{found} {interval}{doubt}.")
    else:
        _print_text(f"{found}, not proven: its interval is unknown.")
    for text in (*comparison.notes, *comparison.differences):
        print_line(f"- {text}")


def _side_row(name: str, side: Sequence[Production]) -> list[str | float | None]:
    """The cycles of one side as a row of the table, see its columns in `_print`.

    One cycle has no scatter; the power at rest is left out unless all recordings have it.
    """
    energy = np.concatenate([each.energy for each in side])
    duration = np.concatenate([each.duration for each in side])
    idle = [each.idle for each in side if each.idle is not None]
    return [
        name,
        len(side),
        len(energy),
        float(duration.mean()),
        float(np.mean([each.energy.mean() for each in side])),
        float(energy.std(ddof=1)) if len(energy) > 1 else None,
        float(np.mean(idle)) if len(idle) == len(side) else None,
    ]


def _print_text(text: str) -> None:
    """Print a text in lines of at most WIDTH characters."""
    for line in textwrap.wrap(text, WIDTH):
        print_line(line)
