# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Cycles of ordinary production in a history store, by day, before and after an instant."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np

from ur_energy_model.energy.powers import TotalSource
from ur_energy_model.errors import InputError
from ur_energy_model.plant.database import HistoryDatabase
from ur_energy_model.plant.production import Production, usual_cycles
from ur_energy_model.plant.summary import WHOLE
from ur_energy_model.typing import Array, Mask


def stored_productions(
    database: HistoryDatabase, changed: datetime
) -> tuple[list[Production], list[Production]]:
    """Cycles of a history store before and after an instant, by day.

    Where programs have names, only cycles of the program that ran most count. Energies
    are the measured ones if both sides have cycles that are measured as a whole, else the
    energies of the model.

    Args:
        database: database of the store, for one arm.
        changed: when the program was changed.

    Raises:
        InputError: no whole cycle on one of the sides, or several arms.
    """
    later_from = f">= TIMESTAMPTZ '{changed.isoformat()}' AS later"
    cycles = _stored_cycles(database, later_from)
    days = database.rows(
        f"SELECT CAST(day AS VARCHAR) AS day, second {later_from}, "
        "avg(list_avg(joint_temperature)) AS temperature, avg(speed_scaling) AS scaling "
        "FROM seconds GROUP BY ALL"
    )
    states = {}
    for row in days:
        states[row["later"], row["day"]] = _DayState(row["temperature"], row["scaling"])
    before = _by_day(cycles, states, later=False)
    after = _by_day(cycles, states, later=True)
    for side, found in (("before", before), ("after", after)):
        if not found:
            raise InputError(
                "--changed",
                f"the store has no whole cycle {side} {changed:%Y-%m-%d %H:%M}",
                "name another date, or add recordings of that time",
            )
    return before, after


class _DayState(NamedTuple):
    """Mean state of an arm on a day, before or after the change; None where it is unknown.

    Attributes:
        temperature: mean of the joints [degC].
        scaling: mean of the speed slider.
    """

    temperature: float | None = None
    scaling: float | None = None


class _StoredCycles(NamedTuple):
    """Whole cycles of one arm and program in a history store, in order of time.

    Attributes:
        arm: name of the arm that ran the cycles.
        program: name of the program of the cycles; None where programs have no names.
        later: whether each is after the change [cycles].
        day: UTC day of each cycle [cycles], YYYY-MM-DD.
        begin: begin of each cycle [cycles], s since 1970.
        duration: duration of each cycle [cycles], s.
        energy: energy of each cycle [cycles], J, measured or by the model.
        measured: whether the total of each is measured as a whole [cycles].
        model_std: standard deviation of each modelled energy [cycles], J; 0 where all
            energies are measured.
    """

    arm: str
    program: str | None
    later: Mask
    day: Any
    begin: Array
    duration: Array
    energy: Array
    measured: Mask
    model_std: Array


def _stored_cycles(database: HistoryDatabase, later_from: str) -> _StoredCycles:
    """The cycles of the program that ran most, with measured energies if both sides have any.

    Args:
        database: database of the store, for one arm.
        later_from: rest of an SQL expression after a time, which gives the column
            `later`: whether the time is after the change.

    Raises:
        InputError: no whole cycle, or several arms.
    """
    rows = database.columns(
        "SELECT arm, CAST(day AS VARCHAR) AS day, program, duration, bus_energy, "
        f"model_energy, model_std, epoch(start) AS begin, start {later_from} FROM cycles "
        f"WHERE {WHOLE} ORDER BY start"
    )
    arms = sorted(set(rows["arm"]))
    if not arms:
        remedy = "add recordings of the running program, or name another arm: --arm"
        raise InputError("--history", "has no whole cycle of this arm", remedy)
    if len(arms) > 1:
        raise InputError(
            "--history", f"holds cycles of {len(arms)} arms", f"name one: --arm {arms[0]}"
        )
    program = None
    wanted = np.ones(len(rows["arm"]), dtype=bool)
    names = [str(name) for name in rows["program"] if name is not None]
    if names:
        program = max(set(names), key=names.count)
        wanted = np.array([name == program for name in rows["program"]], dtype=bool)
    later = rows["later"].astype(bool)
    energy = rows["bus_energy"].astype(float)
    model_std = np.zeros(len(energy))
    measured = np.isfinite(energy)
    measured_before = (measured & wanted & ~later).any()
    measured_after = (measured & wanted & later).any()
    if not (measured_before and measured_after):
        energy = rows["model_energy"].astype(float)
        model_std = rows["model_std"].astype(float)
    kept = wanted & np.isfinite(energy)
    return _StoredCycles(
        arms[0],
        program,
        later[kept],
        rows["day"][kept],
        rows["begin"][kept].astype(float),
        rows["duration"][kept].astype(float),
        energy[kept],
        measured[kept],
        model_std[kept],
    )


def _by_day(
    cycles: _StoredCycles, states: Mapping[tuple[bool, str], _DayState], *, later: bool
) -> list[Production]:
    """Cycles of one side by day, without cycles that took unusually long or short.

    Args:
        cycles: cycles of both sides.
        states: states of the arm by side (`later`) and day.
        later: whether the cycles after the change are selected.
    """
    usual = cycles.later == later
    usual[usual] = usual_cycles(cycles.duration[usual])
    found = []
    for day in dict.fromkeys(cycles.day[usual]):
        here = usual & (cycles.day == day)
        begins = cycles.begin[here]
        durations = cycles.duration[here]
        state = states.get((later, day), _DayState())
        production = Production(
            source=str(day),
            energy=cycles.energy[here],
            duration=durations,
            total_source=TotalSource.of(float(cycles.measured[here].mean()), 1.0),
            model_std=float(cycles.model_std[here].mean()),
            serial=cycles.arm,
            program=cycles.program,
            begin=float(begins[0]),
            end=float(begins[-1] + durations[-1]),
            temperature=state.temperature,
            scaling=state.scaling,
        )
        found.append(production)
    return found
