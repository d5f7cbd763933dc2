"""Result of an optimization: new time laws of all moves, their energies and what they rest on."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from ur_energy_model.optimization.cycle import Dwell, Move, WorkCycle
from ur_energy_model.typing import Array


@dataclass(frozen=True)
class OptimizedMove:
    """A move with its new time law; n joints, k samples.

    Attributes:
        move: as recorded.
        start: time since the start of the new cycle [s].
        time: since the start of the move [k], s.
        q, qd, qdd: on the recorded path [k, n], rad, rad/s, rad/s^2.
        energy, energy_std: whole arm at the supply [J].
        speed, acceleration: what to type, as in `Move`; NaN for "other".
        typed_energy: energy of the trapezoid with that speed and acceleration [J]; NaN for "other".
    """

    move: Move
    start: float
    time: Array
    q: Array
    qd: Array
    qdd: Array
    energy: float
    energy_std: float
    speed: float
    acceleration: float
    typed_energy: float

    @property
    def duration(self) -> float:
        """Of the new move [s]."""
        return float(self.time[-1])


@dataclass(frozen=True)
class MeasuredSaving:
    """Saving at the bus, measured by running both cycles in turns.

    Attributes:
        energy, new_energy: mean per cycle [J].
        saving_percent: of energy.
        interval: its 95 % interval (low, high), percent.
        cycles: of each kind.
        temperature: mean joint temperatures during the cycles before and after [2, n], degC.
    """

    energy: float
    new_energy: float
    saving_percent: float
    interval: tuple[float, float]
    cycles: int
    temperature: Array | None = None


@dataclass(frozen=True)
class OptimizedCycle:
    """A cycle for less energy; energies are of the whole arm at the supply for one cycle [J].

    Attributes:
        cycle: as recorded.
        duration: of the new cycle [s].
        moves: with new time laws.
        dwells: kept and remaining ones, in the new cycle's time.
        energy, new_energy: as recorded, and new.
        saving_interval: 95 % interval of the saving (low, high), percent of energy.
        time_optimal_duration, time_optimal_energy: every move as fast as the limits allow.
        scaled_energy: the recorded cycle slowed by speed scaling to the same duration, without
            slack.
        bound_gap: how far new_energy may be above the optimum of the allocation [J].
        pareto: cycle time [s] and energy [J] pairs [k, 2]; None if not asked for.
        notes: what the result rests on and what it does not know, one sentence each.
        measured: None unless it was run.
    """

    cycle: WorkCycle
    duration: float
    moves: tuple[OptimizedMove, ...]
    dwells: tuple[Dwell, ...]
    energy: float
    new_energy: float
    saving_interval: tuple[float, float]
    time_optimal_duration: float
    time_optimal_energy: float
    scaled_energy: float
    bound_gap: float
    pareto: Array | None
    notes: tuple[str, ...]
    measured: MeasuredSaving | None = None

    @property
    def saving_percent(self) -> float:
        """Predicted saving, percent of the recorded cycle's energy."""
        return 100.0 * (1.0 - self.new_energy / self.energy)

    @property
    def typed_energy(self) -> float:
        """Energy of the new cycle with typed values; moves that cannot be typed as new [J]."""
        more = [m.typed_energy - m.energy for m in self.moves if math.isfinite(m.typed_energy)]
        return self.new_energy + sum(more)

    def as_json(self) -> dict[str, Any]:
        """`ur_energy optimize --json`."""
        cycle = self.cycle
        return {
            "cycle": {
                "duration": cycle.duration,
                "moves": len(cycle.moves),
                "dwells": len(cycle.dwells),
                "slack": cycle.slack,
                "count": cycle.count,
                "found_by": cycle.found_by,
            },
            "moves": [_move_json(move) for move in self.moves],
            "duration": self.duration,
            "energy": self.energy,
            "new_energy": self.new_energy,
            "typed_energy": self.typed_energy,
            "saving_percent": self.saving_percent,
            "saving_percent_interval": list(self.saving_interval),
            "time_optimal_duration": self.time_optimal_duration,
            "time_optimal_energy": self.time_optimal_energy,
            "scaled_energy": self.scaled_energy,
            "bound_gap": self.bound_gap,
            "pareto": None if self.pareto is None else self.pareto.tolist(),
            "measured": None if self.measured is None else _measured_json(self.measured),
            "notes": list(self.notes),
        }


def _move_json(move: OptimizedMove) -> dict[str, Any]:
    before = move.move
    return {
        "start": before.start,
        "duration": before.duration,
        "new_duration": move.duration,
        "energy": before.energy,
        "new_energy": move.energy,
        "kind": before.kind,
        "speed": before.speed,
        "acceleration": before.acceleration,
        "new_speed": move.speed,
        "new_acceleration": move.acceleration,
        "typed_energy": move.typed_energy,
        "peak_power": before.peak_power,
    }


def _measured_json(measured: MeasuredSaving) -> dict[str, Any]:
    return {
        "energy": measured.energy,
        "new_energy": measured.new_energy,
        "saving_percent": measured.saving_percent,
        "interval": list(measured.interval),
        "cycles": measured.cycles,
        "temperature": None if measured.temperature is None else measured.temperature.tolist(),
    }
