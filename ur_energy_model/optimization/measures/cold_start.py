# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""What a cold start costs: the same cycles took more energy while the joints were cold.

The grease of the gears is stiff when it is cold: friction falls by a tenth or more while
the joints warm up, for half an hour and longer. A warm-up motion saves nothing, as its
heat is energy too; fewer cold starts do. The energy of the same work that begins right
after the recorded work, with joints as warm as at its end, follows from an exponential
approach to the energy of warm joints.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ur_energy_model.energy.work_log import LoggedCycle, WorkLog
from ur_energy_model.model.wall import WallModel
from ur_energy_model.optimization.measures.measure import (
    LEAST_SHARE,
    Finding,
    Measure,
    Omitted,
    saving_while_running,
)
from ur_energy_model.typing import Array

LEAST_CYCLES = 12  # fewest cycles that show how the energy of a cycle changes
LEAST_WARMING = 2.0  # least rise of the mean joint temperature for a cold start [K]
ALIKE = 0.1  # relative difference of times in motion up to which cycles are alike
FIRST_CYCLES = 3  # cycles over which temperatures at start and end are averaged
TIME_CONSTANTS = np.geomspace(0.05, 5.0, 60)
"""Time constants of warming up that are compared, relative to the time of all cycles."""
MODEL_STD = 0.1
"""Relative standard deviation of an excess by the model's errors, which are errors of the
torque constants and resistances by which losses are computed from measured currents."""
STARTS_PER_YEAR = 365.0  # cold starts in a year: one a day is assumed


def cold_start_measures(log: WorkLog, wall: WallModel) -> list[Finding]:
    """The measure of avoiding a cold start, if the recording begins with one.

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
    first = float(temperature[:FIRST_CYCLES].mean())
    last = float(temperature[-FIRST_CYCLES:].mean())
    if not np.isfinite(last - first):
        return [Omitted("cold_start", "joint temperatures are not recorded")]
    if last - first < LEAST_WARMING:
        reason = f"the joints warmed up by {last - first:.1f} K only"
        return [Omitted("cold_start", reason)]
    saved, fit_std = saved_by_warm_start(energy)
    share = saved / float(energy.sum())
    if share < LEAST_SHARE:
        reason = "cold cycles took hardly more energy than warm ones"
        return [Omitted("cold_start", reason)]
    std = float(np.hypot(fit_std, MODEL_STD * saved))
    seconds = sum(cycle.duration for cycle in cycles)
    power = sum(cycle.energy for cycle in cycles) / seconds
    return [
        Measure(
            kind="cold_start",
            title=f"a cold start, {first:.0f} to {last:.0f} °C: {len(cycles)} cycles took "
            f"{100.0 * share:.1f} % more energy of motion than if they had "
            "begun as warm as they ended",
            action="start cold less often: join short runs to one, and begin directly after other "
            "work; a warm-up motion takes more energy than it saves",
            saving=saving_while_running(wall, saved, std, power=power),
            condition="one cold start a day is avoided, by work that ends right before",
            times_per_year=STARTS_PER_YEAR,
        )
    ]


def alike(cycles: Sequence[LoggedCycle]) -> list[LoggedCycle]:
    """Cycles of the usual work: their time in motion is about the median of all cycles."""
    if not cycles:
        return []
    usual = float(np.median([cycle.motion_time for cycle in cycles]))
    return [each for each in cycles if abs(each.motion_time - usual) <= ALIKE * usual]


def saved_by_warm_start(energy: Array) -> tuple[float, float]:
    """Energy that all cycles would save if they began as warm as they ended.

    Energies are fitted by a + b exp(-t / tau), t from 0 to 1 over all cycles. The same
    cycles right after these have t from 1 to 2, and take the sum of
    b exp(-t / tau) (1 - exp(-1 / tau)) less. The result is the mean over tau, weighted by
    the likelihood. The standard deviation combines the uncertainty of tau and the scatter
    of consecutive cycles, which are equally warm.

    Args:
        energy: energy of each cycle [cycles], J.

    Returns:
        The energy saved and its standard deviation [J].
    """
    count = len(energy)
    time = np.arange(count) / count
    scatter = float(np.std(np.diff(energy))) / np.sqrt(2.0)
    saved = np.empty(len(TIME_CONSTANTS))
    variance = np.empty(len(TIME_CONSTANTS))
    misfit = np.empty(len(TIME_CONSTANTS))
    for k, tau in enumerate(TIME_CONSTANTS):
        decay = np.exp(-time / tau)
        design = np.column_stack([np.ones(count), decay])
        normal = np.linalg.inv(design.T @ design)
        solution = normal @ (design.T @ energy)
        factor = decay.sum() * -np.expm1(-1.0 / tau)
        saved[k] = solution[1] * factor
        variance[k] = normal[1, 1] * factor**2  # per variance of an energy
        misfit[k] = float(((energy - design @ solution) ** 2).sum())
    # The best fit may be worse than the scatter: this is no noise, but makes all fits less
    # certain. The last value keeps the likelihoods finite where all energies are equal.
    noise = max(scatter**2, float(misfit.min()) / count, 1e-12)
    weight = np.exp(-0.5 * (misfit - misfit.min()) / noise)
    weight /= weight.sum()
    mean = float(weight @ saved)
    deviation = float(np.sqrt(weight @ (variance * noise + (saved - mean) ** 2)))
    return mean, deviation
