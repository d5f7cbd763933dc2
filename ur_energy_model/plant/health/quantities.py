"""The quantities whose levels are followed, with the scatter that is usual for them."""

from __future__ import annotations

from dataclasses import dataclass

from ur_energy_model.learning.friction_clock import NOISE
from ur_energy_model.model.sessions import STANDBY_SPREAD
from ur_energy_model.plant.health.change_test import Scatter


@dataclass(frozen=True)
class Quantity:
    """A quantity of the joints or of the whole arm.

    Attributes:
        name: "friction", "torque constant" or "standby power".
        relative: whether levels are logarithms and changes are stated in percent; else in `unit`.
        unit: of its value.
        scatter: of the level.
        least: smallest change that is stated, in the level's unit.
    """

    name: str
    relative: bool
    unit: str
    scatter: Scatter
    least: float


FRICTION = Quantity(
    "friction",
    relative=True,
    unit="N m",
    scatter=Scatter(
        session=float(NOISE.session),
        day=float(NOISE.wander),
        common=NOISE.common,
        slope=float(NOISE.slope),
        model=0.05,
        work=0.015,
    ),
    least=0.06,
)
"""Scatter as learning expects it; two models of an arm state friction up to 5 % apart, and the
the simulated arm's differs by 1.2 % between programs of work (test/benchmarks/bench_drift.py)."""
TORQUE_CONSTANT = Quantity(
    "torque constant",
    relative=True,
    unit="N m/A",
    scatter=Scatter(session=0.01, day=0.005, common=0.01, slope=0.0005, model=0.02, work=0.005),
    least=0.03,
)
"""Magnets lose 0.1 % of their field per kelvin at most, joints differ by less than that; what
remains of payloads that the controller was not told is common to the joints."""
STANDBY = Quantity(
    "standby power",
    relative=False,
    unit="W",
    scatter=Scatter(session=STANDBY_SPREAD, day=0.4, common=0.0, slope=0.05, model=0.5, work=0.2),
    least=2.0,
)
