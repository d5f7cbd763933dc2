"""An optimized cycle with its powers over time, before it is laid out as a page."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ur_energy_model.energy.powers.bus_capacitor import BusCapacitor
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.friction.presliding import FrictionDirection
from ur_energy_model.optimization.cycle_motion import TimedMoves, new_motion, recorded_motion
from ur_energy_model.optimization.optimized_cycle import OptimizedCycle
from ur_energy_model.report.tariff import Tariff
from ur_energy_model.typing import Array

STEP = 0.01
"""Time between samples of the drawn powers [s]."""


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
        before, after: powers of the recorded and the new cycle.
        tariff: cost of energy.
    """

    optimized: OptimizedCycle
    joint_names: tuple[str, ...]
    before: CyclePowers
    after: CyclePowers
    tariff: Tariff


def make_optimization_report(
    model: EnergyModel,
    optimized: OptimizedCycle,
    *,
    dynamics: ArmDynamics | None = None,
    tariff: Tariff | None = None,
) -> OptimizationReport:
    """Powers of an optimized cycle over time.

    Args:
        model: of the arm in its session.
        optimized: with what to type.
        dynamics: of the arm in its setup; the model's where None.
        tariff: cost of energy.
    """
    dynamics = model.dynamics() if dynamics is None else dynamics
    warmth = optimized.cycle.temperature
    before, after = (
        cycle_powers(model, motion, dynamics, warmth)
        for motion in (recorded_motion(optimized.cycle), new_motion(optimized))
    )
    names = tuple(joint.name for joint in model.joints)
    return OptimizationReport(optimized, names, before, after, tariff or Tariff())


def cycle_powers(
    model: EnergyModel, motion: TimedMoves, dynamics: ArmDynamics, temperature: Array | None
) -> CyclePowers:
    """Predicted powers over a cycle.

    Args:
        model: of the arm in its session.
        motion: one cycle.
        dynamics: of the arm in its setup.
        temperature: of the joints [n], degC; None if unknown.
    """
    time = np.linspace(0.0, motion.duration, max(2, round(motion.duration / STEP) + 1))
    q, qd, qdd = motion.sample(time)
    powers = model.from_link_torque(
        dynamics.inverse_dynamics(q, qd, qdd),
        qd,
        qdd,
        temperature=temperature,
        direction=FrictionDirection(model.presliding)(q, qd),
        std=False,
    )
    supply = BusCapacitor(model.bus.capacitor_energy, model.bus.floor)
    return CyclePowers(
        time,
        qd,
        powers.standby_power,
        powers.driver_power,
        powers.electrical_power,
        supply(np.diff(time, prepend=0.0), powers.demand),
    )
