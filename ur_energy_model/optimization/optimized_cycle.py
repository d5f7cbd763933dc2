# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Result of an optimization: the new cycle, what to type for it, energies and what they rest on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ur_energy_model.energy.tariff import DAYS_PER_YEAR
from ur_energy_model.energy.wall import SOURCES
from ur_energy_model.model.wall import WallModel
from ur_energy_model.optimization.cycle import Move, Stretch, WorkCycle
from ur_energy_model.optimization.pendant import Step, copy_advice
from ur_energy_model.optimization.power_front import PowerFront
from ur_energy_model.optimization.programmed import pendant_unit
from ur_energy_model.typing import Array

BREAK = 30.0
"""Break of a day in which the arm could be switched off, for the ceiling [min]."""


class OptimizedMove(NamedTuple):
    """A move with its new time law.

    Attributes:
        move: recorded move.
        step: what to type.
        duration: duration of the new time law [s].
        energy: energy with the new time law, whole arm at the supply [J].
        typed_energy: energy if the sheet is typed [J].
    """

    move: Move
    step: Step
    duration: float
    energy: float
    typed_energy: float


@dataclass(frozen=True)
class MeasuredSaving:
    """Saving at the bus, measured by running both cycles in turns.

    Attributes:
        energy: mean energy of a recorded cycle [J].
        new_energy: mean energy of a cycle as typed [J].
        saving_percent: saving in percent of `energy`.
        interval: 95 % interval of the saving (low, high), percent; NaN with one pair of
            cycles, which shows no scatter.
        cycles: number of cycles of each kind.
        temperature: means of the joints in cycles before, after [2, n], degC.
        total_source: source of both energies: only energies of one source are compared in
            a proof.
    """

    energy: float
    new_energy: float
    saving_percent: float
    interval: tuple[float, float]
    cycles: int
    temperature: Array | None = None
    total_source: str = "measured"

    @property
    def interval_text(self) -> str:
        """The interval, and whether it proves a saving, in words."""
        low, high = self.interval
        if not math.isfinite(low):
            return "unknown: one pair of cycles does not show how much they scatter; not proven"
        if low > 0.0:
            return f"{low:.2f} to {high:.2f}"
        return f"{low:.2f} to {high:.2f}, not proven"


@dataclass(frozen=True)
class Ceiling:
    """The largest possible saving: of the arm, and at the wall, where control box and supply count.

    Attributes:
        wall: power at the mains, by the model or a meter.
        standby_share: share of standby in the energy of the recorded cycle.
        wall_standby_share: share of standby at the wall, the control box included.
        most_saving_percent: largest possible saving at this cycle time, with all moves
            and all waits free, percent.
        wall_most_saving_percent: this saving as a share of the energy at the wall.
        joules_per_second: saving at the wall by a cycle that is a second shorter [J];
            None where the cycle cannot be shorter.
        break_power: power at the wall that switching off saves while the arm waits [W].
    """

    wall: WallModel
    standby_share: float
    wall_standby_share: float
    most_saving_percent: float
    wall_most_saving_percent: float
    joules_per_second: float | None
    break_power: float

    @property
    def break_kwh(self) -> float:
        """Saving in a year by switching off in a break of `BREAK` minutes a day [kWh]."""
        return DAYS_PER_YEAR * 60.0 * BREAK * self.break_power / 3.6e6

    def as_json(self) -> dict[str, Any]:
        """`ceiling` of `ur_energy optimize --json`: shares, percent, J and W."""
        return {
            "standby_share": self.standby_share,
            "most_saving_percent": self.most_saving_percent,
            "joules_per_second": self.joules_per_second,
            "wall_standby_share": self.wall_standby_share,
            "wall_most_saving_percent": self.wall_most_saving_percent,
            "break_minutes": BREAK,
            "break_kwh_per_year": self.break_kwh,
            "wall_source": self.wall.energy_source,
        }

    def text(self) -> str:
        """All figures in one sentence."""
        second = self.joules_per_second
        shorter = "it cannot be shorter"
        if second is not None:
            change = "less" if second >= 0.0 else "more"
            shorter = f"a cycle that is a second shorter takes {abs(second):.0f} J {change} there"
        return (
            f"Standby is {100 * self.standby_share:.0f} % of this cycle, with the control box "
            f"{100 * self.wall_standby_share:.0f} % at the wall "
            f"({SOURCES[self.wall.energy_source]}); at this cycle time at most "
            f"{self.most_saving_percent:.1f} % can be saved, {self.wall_most_saving_percent:.1f} % "
            f"at the wall; {shorter}; switched off in a break of {BREAK:.0f} min a day, the arm "
            f"saves {self.break_kwh:.0f} kWh a year there."
        )


@dataclass(frozen=True)
class ArmLoad:
    """Load of the arm in a cycle.

    Attributes:
        joint: name of the joint whose torque comes closest to its limit.
        torque_share: largest torque of this joint over its limit.
        torque_rms: root mean square of the torques of all joints over their limits; gears
            wear and motors heat with it.
        power: largest power at the supply [W].
    """

    joint: str
    torque_share: float
    torque_rms: float
    power: float


@dataclass(frozen=True)
class OptimizedCycle:
    """A cycle for less energy; energies are of the whole arm at the supply for one cycle [J].

    Attributes:
        cycle: recorded cycle.
        stretches: the new cycle as set points.
        duration: duration of the new cycle [s].
        moves: moves with their new time laws, in order.
        energy: energy of the recorded cycle.
        new_energy: energy of the new cycle as set points.
        saving_interval: 95 % interval of the saving by the set points (low, high),
            percent of `energy`.
        time_optimal_duration: every move as fast as the limits allow [s].
        time_optimal_energy: energy of the cycle at `time_optimal_duration`.
        scaled_energy: slowed by speed scaling to the same duration, without slack.
        bound_gap: how far new_energy may be above the optimum of the allocation [J].
        pareto: cycle times [s] and energies [J] [k, 2]; None without the option.
        notes: what the result rests on and what it leaves out, one sentence each.
        sheet: what to type.
        typed_energy: energy if exactly the sheet is typed.
        typed_duration: duration if exactly the sheet is typed [s].
        typed_interval: 95 % interval of the saving by the typed sheet (low, high),
            percent of `energy`.
        copied_saving_percent: predicted saving if each step had values of its own,
            percent of `energy`; None where no line of the program runs several steps.
        ceiling: what can be saved at all.
        loads: recorded, typed, as fast as possible.
        measured: None unless it was run.
        power_front: cycles of less peak power for more energy; None without the option.
    """

    cycle: WorkCycle
    stretches: Sequence[Stretch]
    duration: float
    moves: Sequence[OptimizedMove]
    energy: float
    new_energy: float
    saving_interval: tuple[float, float]
    time_optimal_duration: float
    time_optimal_energy: float
    scaled_energy: float
    bound_gap: float
    pareto: Array | None
    notes: Sequence[str]
    sheet: Sequence[Step]
    typed_energy: float
    typed_duration: float
    typed_interval: tuple[float, float]
    copied_saving_percent: float | None
    ceiling: Ceiling
    loads: tuple[ArmLoad, ArmLoad, ArmLoad]
    measured: MeasuredSaving | None = None
    power_front: PowerFront | None = None

    @property
    def saving_percent(self) -> float:
        """Predicted saving, percent of the recorded cycle's energy."""
        return 100.0 * (1.0 - self.new_energy / self.energy)

    @property
    def typed_saving_percent(self) -> float:
        """Predicted saving when exactly the sheet is typed, percent of the recorded energy."""
        return 100.0 * (1.0 - self.typed_energy / self.energy)

    @property
    def copy_advice(self) -> str:
        """What copies of a subprogram would save, where that is worth it; else empty."""
        return copy_advice(self.typed_saving_percent, self.copied_saving_percent)

    @property
    def proven(self) -> bool:
        """Whether the interval of the saving excludes zero: the measured one where there is one."""
        low, _ = self.typed_interval if self.measured is None else self.measured.interval
        return low > 0.0

    def as_json(self) -> dict[str, Any]:
        """`ur_energy optimize --json`."""
        cycle = self.cycle
        recorded, typed, time_optimal = self.loads
        front = {}
        if self.power_front is not None:
            front["power_front"] = self.power_front.as_json()
        return {
            "ceiling": self.ceiling.as_json(),
            "sheet": [step.as_json(number) for number, step in enumerate(self.sheet, 1)],
            "cycle": {
                **_named(cycle, ("duration", "slack", "count", "found_by")),
                "moves": len(cycle.moves),
                "dwells": sum(rest.duration > 0.0 for rest in cycle.rests),
            },
            "moves": [self._move_json(each) for each in self.moves],
            **_named(self, _FIGURES),
            "typed_saving_percent_interval": self.typed_interval,
            "saving_percent_interval": self.saving_interval,
            "load": {"recorded": recorded, "typed": typed, "time_optimal": time_optimal},
            **front,
        }

    def _move_json(self, optimized: OptimizedMove) -> dict[str, Any]:
        """A move in JSON; values of moveJ and moveL are null for other moves."""
        move = optimized.move
        step = optimized.step
        scale = self.cycle.scaling
        unit = pendant_unit(move.kind)
        speed = math.nan
        acceleration = math.nan
        if move.programmed is not None:
            speed = move.programmed.speed
            acceleration = move.programmed.acceleration
        return {
            **_named(move, ("start", "duration", "energy", "kind", "peak_power")),
            "speed": speed,
            "acceleration": acceleration,
            "new_duration": optimized.duration,
            "new_energy": optimized.energy,
            "new_speed": (step.new_speed or math.nan) * unit * scale,
            "new_acceleration": (step.new_acceleration or math.nan) * unit * scale**2,
            "typed_energy": optimized.typed_energy,
            "kept": step.kept,
        }


_FIGURES = (
    "duration", "energy", "new_energy", "typed_energy", "typed_duration", "typed_saving_percent",
    "copied_saving_percent", "proven", "saving_percent", "time_optimal_duration",
    "time_optimal_energy", "scaled_energy", "bound_gap", "pareto", "measured", "notes",
)  # fmt: skip


def _named(thing: object, names: Sequence[str]) -> dict[str, Any]:
    """Attributes of a thing by their names."""
    return {name: getattr(thing, name) for name in names}
