"""Waits in which the arm is switched off, where that saves energy on this arm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ur_energy_model.optimization.cycle_energy import Stretch, StretchEnergy
from ur_energy_model.optimization.cycle_problem import CycleProblem


def with_long_waits(problem: CycleProblem, duration: float) -> list[list[Stretch]]:
    """The cycle whose moves are as fast as pays when waiting is done switched off, if allowed.

    Args:
        problem: with the option to switch off.
        duration: of the cycle [s].
    """
    switching = problem.cycle.switching
    if problem.options.power_off_after is None or switching is None:
        return []
    found = problem.allocate(duration, waiting=switching.power)
    return [problem.stretches(found.laws, found.waiting)]


def switched_off(
    problem: CycleProblem, stretches: Sequence[Stretch], energies: Sequence[StretchEnergy]
) -> tuple[list[StretchEnergy], list[str]]:
    """Energies of a cycle whose long waits are spent switched off, and a note on it."""
    after, switching = problem.options.power_off_after, problem.cycle.switching
    if after is None:
        return list(energies), []
    if switching is None:
        return list(energies), [
            "Switching off is left out: the recording does not show what it takes on this arm "
            "(record robot_mode and the bus while it is switched off and on once)."
        ]
    out, count = [], 0
    for stretch, energy in zip(stretches, energies, strict=True):
        wait = stretch.plan.duration
        off = switching.wait_energy(wait)
        if not stretch.moving and wait > after and off < energy.energy:
            count += 1
            energy = replace(energy, energy=off, motion=0.0, sensitivity=0.0 * energy.sensitivity)
        out.append(energy)
    return out, [
        f"{count} of the waits are spent switched off; switching takes {switching.time:.1f} s and "
        f"{switching.energy:.0f} J as recorded."
        if count
        else "No wait is long enough for switching off to save energy."
    ]
