"""An optimized cycle with its powers over time, before it is laid out as a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ur_energy_model.energy.powers.plan_powers import PlanPowers
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.optimization.cycle import WorkCycle
from ur_energy_model.optimization.cycle_energy import (
    CycleEnergies,
    Stretch,
    recorded_stretches,
)
from ur_energy_model.optimization.optimized_cycle import OptimizedCycle
from ur_energy_model.optimization.pendant import typed_stretches
from ur_energy_model.report.tariff import Tariff
from ur_energy_model.typing import Array

STEP = 0.01
"""Time between samples of the drawn powers [s]."""
SCALED_POINTS = 15
"""Of the curve of speed scaling."""


@dataclass(frozen=True)
class CyclePowers:
    """Predicted powers [W] over one cycle, k samples.

    Attributes:
        time: since the start of the cycle [k], s.
        qd: joint velocities [k, n], rad/s.
        standby, driver: of the whole arm [k].
        electrical: of the motors [k, n].
        total: of the whole arm at the supply [k].
    """

    time: Array
    qd: Array
    standby: Array
    driver: Array
    electrical: Array
    total: Array


@dataclass(frozen=True)
class OptimizationReport:
    """The content of the page of an optimized cycle.

    Attributes:
        optimized: with what to type.
        joint_names: names of the joints.
        before, after: powers of the cycle as recorded and as typed.
        scaled: cycle times [s] and energies [J] of speed scaling [k, 2]; None without the curve
            of least energy.
        tariff: cost of energy.
    """

    optimized: OptimizedCycle
    joint_names: tuple[str, ...]
    before: CyclePowers
    after: CyclePowers
    scaled: Array | None
    tariff: Tariff


def make_optimization_report(
    model: EnergyModel, optimized: OptimizedCycle, *, tariff: Tariff | None = None
) -> OptimizationReport:
    """Powers of an optimized cycle over time, and its energy with speed scaling.

    Args:
        model: of the arm in its session.
        optimized: with what to type.
        tariff: cost of energy.
    """
    cycle = optimized.cycle
    energies = CycleEnergies(model, cycle.temperature)
    scaled = None
    if optimized.pareto is not None:
        scaled = _scaled(energies, cycle, float(optimized.pareto[-1, 0]))
    return OptimizationReport(
        optimized,
        tuple(joint.name for joint in model.joints),
        cycle_powers(energies, recorded_stretches(cycle)),
        cycle_powers(energies, typed_stretches(cycle, optimized.sheet, model.description())),
        scaled,
        tariff or Tariff(),
    )


def cycle_powers(energies: CycleEnergies, stretches: Sequence[Stretch]) -> CyclePowers:
    """Predicted powers over a cycle.

    Args:
        energies: of cycles of the arm.
        stretches: of the cycle, in order.
    """
    powers = PlanPowers(energies.model, energies.temperature, std=False)
    start, rows = 0.0, []
    for stretch in stretches:
        dynamics = energies.dynamics(stretch.payload)
        for motion in stretch.plan.motion(STEP):
            shifted = replace(motion, time=motion.time + start)
            split, total = powers(shifted, dynamics)
            rows.append(
                (
                    shifted.time,
                    motion.qd,
                    split.standby_power,
                    split.driver_power,
                    split.electrical_power,
                    total,
                )
            )
        start += stretch.plan.duration
    return CyclePowers(*(np.concatenate(column) for column in zip(*rows, strict=True)))


def _scaled(energies: CycleEnergies, cycle: WorkCycle, longest: float) -> Array:
    """Cycle times [s] and energies [J] [k, 2] of the recorded moves slowed down, without slack."""
    moving = sum(move.duration for move in cycle.moves)
    kept = sum(rest.kept for rest in cycle.rests)
    times = np.linspace(moving + kept, max(longest, moving + kept), SCALED_POINTS)
    out = []
    for time in times:
        factor = max((float(time) - kept) / moving, 1.0 + 1e-9)  # 1 would keep the slack
        out.append((float(time), energies.total(recorded_stretches(cycle, stretch=factor))))
    return np.array(out)
