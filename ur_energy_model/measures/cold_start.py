# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0
"""What a cold start costs: the same cycles took more energy while the joints were cold.

The grease of the gears is stiff when it is cold: friction falls by a tenth or more while the joints
warm up in the first half hour. A warm-up motion saves nothing, as its heat is energy too; fewer
cold starts do.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ur_energy_model.energy.work_log import LoggedCycle, WorkLog
from ur_energy_model.measures.measure import (
    LEAST_SHARE,
    Finding,
    Measure,
    Omitted,
    saving_while_running,
)
from ur_energy_model.model.wall import WallModel
from ur_energy_model.typing import Array

LEAST_CYCLES = 12  # that show how the energy of a cycle changes
LEAST_WARMING = 2.0  # of the joints' mean temperature within a recording of a cold start [K]
ALIKE = 0.1  # largest relative difference of the motion's time between cycles of the same work
WARM_SHARE = 0.25  # of the cycles, the last ones, that count as warm
FIRST_CYCLES = 3  # whose temperature is that of the start
MODEL_STD = 0.1
"""Relative standard deviation of an excess by the model's errors: those of torque constants and
resistances, by which losses are computed from measured currents."""
STARTS_PER_YEAR = 365.0  # cold ones, assumed: one a day


def cold_start_measures(log: WorkLog, wall: WallModel) -> list[Finding]:
    """The measure of one cold start less, if the recording begins with one.

    Args:
        log: what the arm did, with its cycles.
        wall: power at the mains.
    """
    cycles = alike(list(log.cycles))
    if len(cycles) < LEAST_CYCLES:
        reason = f"fewer than {LEAST_CYCLES} alike cycles are recorded"
        return [Omitted("cold_start", reason)]
    energy = np.array([cycle.motion_energy for cycle in cycles])
    temperature = np.array([cycle.temperature for cycle in cycles])
    warm = max(round(WARM_SHARE * len(cycles)), FIRST_CYCLES)
    first = float(temperature[:FIRST_CYCLES].mean())
    last = float(temperature[-warm:].mean())
    if not np.isfinite(last - first):
        return [Omitted("cold_start", "joint temperatures are not recorded")]
    if last - first < LEAST_WARMING:
        reason = f"the joints warmed up by {last - first:.1f} K only"
        return [Omitted("cold_start", reason)]
    excess, scatter = _excess(energy, warm)
    if excess < LEAST_SHARE * float(energy.sum()):
        return [Omitted("cold_start", "cold cycles took hardly more energy than warm ones")]
    std = float(np.hypot(scatter, MODEL_STD * excess))
    seconds = sum(cycle.duration for cycle in cycles)
    power = sum(cycle.energy for cycle in cycles) / seconds
    return [
        Measure(
            kind="cold_start",
            title=f"a cold start: until the joints were warm ({first:.0f} to {last:.0f} °C) the "
            f"cycles took {100.0 * excess / float(energy.sum()):.1f} % more energy of motion than "
            "the last ones",
            action="start cold less often: join short runs to one, and begin directly after other "
            "work; a warm-up motion takes more energy than it saves",
            saving=saving_while_running(wall, excess, std, power=power),
            condition="one cold start a day is avoided",
            times_per_year=STARTS_PER_YEAR,
        )
    ]


def alike(cycles: Sequence[LoggedCycle]) -> list[LoggedCycle]:
    """Cycles of the usual work: those whose motion takes as long as the median one's."""
    if not cycles:
        return []
    usual = float(np.median([cycle.motion_time for cycle in cycles]))
    return [each for each in cycles if abs(each.motion_time - usual) <= ALIKE * usual]


def _excess(energy: Array, warm: int) -> tuple[float, float]:
    """What cycles took beyond the last ones, and its standard deviation [J].

    Args:
        energy: of each cycle [cycles], J.
        warm: number of the last ones.
    """
    level = float(energy[-warm:].mean())
    before = energy[:-warm]
    # The scatter is that of consecutive cycles, which are equally warm.
    scatter = float(np.std(np.diff(energy))) / np.sqrt(2.0)
    count = len(before)
    std = scatter * np.sqrt(count + count**2 / warm)
    return float((before - level).sum()), float(std)
