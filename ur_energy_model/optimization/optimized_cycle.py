"""Result of an optimization: new time laws of all moves, their energies and what they rest on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ur_energy_model.optimization.cycle import Move, WorkCycle
from ur_energy_model.optimization.pendant import Step
from ur_energy_model.typing import Array

BREAK = 30.0
"""Of a day in which the arm could be switched off, for the ceiling [min]."""
DAYS = 365.0
"""Of a year."""


@dataclass(frozen=True)
class OptimizedMove:
    """A move with its new time law; n joints, k samples.

    Attributes:
        move: as recorded.
        start: time since the start of the new cycle [s].
        time: since the start of the move [k], s.
        q, qd, qdd: on the recorded path [k, n], rad, rad/s, rad/s^2.
        energy: whole arm at the supply [J].
        speed, acceleration: what to type, as in `Move`; NaN for "other".
        typed_energy: energy of the move when the sheet is typed [J].
        kept: whether it stays as recorded.
    """

    move: Move
    start: float
    time: Array
    q: Array
    qd: Array
    qdd: Array
    energy: float
    speed: float
    acceleration: float
    typed_energy: float
    kept: bool = False

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
class Ceiling:
    """What can be saved at all.

    Attributes:
        standby_share: part of the recorded cycle's energy that is standby.
        most_saving_percent: at this cycle time, with all moves and all waits free.
        joules_per_second: what a cycle saves that is a second shorter [J]; None where it cannot be
            shorter.
        break_power: what switching off saves while the arm waits [W].
    """

    standby_share: float
    most_saving_percent: float
    joules_per_second: float | None
    break_power: float

    def break_energy(self, minutes: float = BREAK) -> float:
        """What is saved in a year by switching off in a break of some minutes a day [J]."""
        return DAYS * 60.0 * minutes * self.break_power

    def as_json(self) -> dict[str, Any]:
        """`ceiling` of `ur_energy optimize --json`."""
        break_kwh = self.break_energy() / 3.6e6
        names = ("standby_share", "most_saving_percent", "joules_per_second")
        return _named(self, names) | {"break_minutes": BREAK, "break_kwh_per_year": break_kwh}

    def text(self) -> str:
        """In a sentence."""
        second = (
            "it cannot be shorter"
            if self.joules_per_second is None
            else f"a cycle that is a second shorter takes {self.joules_per_second:.0f} J less"
            if self.joules_per_second >= 0.0
            else f"a cycle that is a second shorter takes {-self.joules_per_second:.0f} J more"
        )
        return (
            f"Standby is {100 * self.standby_share:.0f} % of this cycle; at this cycle time at "
            f"most {self.most_saving_percent:.1f} % can be saved; {second}; switched off in a "
            f"break of {BREAK:.0f} min a day, the arm saves {self.break_energy() / 3.6e6:.0f} kWh "
            "a year."
        )


@dataclass(frozen=True)
class ArmLoad:
    """What a cycle demands of the arm.

    Attributes:
        joint: whose torque comes closest to its limit.
        torque_share: its largest torque over its limit.
        torque_rms: root mean square of all joints' torques over their limits; gears wear and
            motors heat with it.
        power: largest at the supply [W].
    """

    joint: str
    torque_share: float
    torque_rms: float
    power: float


@dataclass(frozen=True)
class OptimizedCycle:
    """A cycle for less energy; energies are of the whole arm at the supply for one cycle [J].

    Attributes:
        cycle: as recorded.
        duration: of the new cycle [s].
        moves: with new time laws.
        energy, new_energy: as recorded, and new.
        saving_interval: 95 % interval of the saving (low, high), percent of energy.
        time_optimal_duration, time_optimal_energy: every move as fast as the limits allow.
        scaled_energy: the recorded cycle slowed by speed scaling to the same duration, without
            slack.
        bound_gap: how far new_energy may be above the optimum of the allocation [J].
        pareto: cycle time [s] and energy [J] pairs [k, 2]; None without the option.
        notes: what the result rests on and what it leaves out, one sentence each.
        sheet: what to type.
        typed_energy, typed_duration: of one cycle when exactly the sheet is typed [J, s].
        typed_interval: 95 % interval of the saving then (low, high), percent of energy.
        ceiling: what can be saved at all; None if it was not computed.
        loads: of the cycle as recorded, as typed, and as fast as possible; None likewise.
        measured: None unless it was run.
    """

    cycle: WorkCycle
    duration: float
    moves: tuple[OptimizedMove, ...]
    energy: float
    new_energy: float
    saving_interval: tuple[float, float]
    time_optimal_duration: float
    time_optimal_energy: float
    scaled_energy: float
    bound_gap: float
    pareto: Array | None
    notes: tuple[str, ...]
    sheet: tuple[Step, ...]
    typed_energy: float
    typed_duration: float
    typed_interval: tuple[float, float]
    ceiling: Ceiling | None = None
    loads: tuple[ArmLoad, ArmLoad, ArmLoad] | None = None
    measured: MeasuredSaving | None = None

    @property
    def saving_percent(self) -> float:
        """Predicted saving, percent of the recorded cycle's energy."""
        return 100.0 * (1.0 - self.new_energy / self.energy)

    @property
    def typed_saving_percent(self) -> float:
        """Predicted saving when exactly the sheet is typed, percent of the recorded energy."""
        return 100.0 * (1.0 - self.typed_energy / self.energy)

    @property
    def proven(self) -> bool:
        """Whether the interval of the saving excludes zero: the measured one where there is one."""
        low, _ = self.typed_interval if self.measured is None else self.measured.interval
        return low > 0.0

    def as_json(self) -> dict[str, Any]:
        """`ur_energy optimize --json`."""
        cycle, loads = self.cycle, self.loads
        names = ("recorded", "typed", "time_optimal")
        return {
            "ceiling": None if self.ceiling is None else self.ceiling.as_json(),
            "sheet": [step.as_json(number) for number, step in enumerate(self.sheet, 1)],
            "cycle": {
                **_named(cycle, ("duration", "slack", "count", "found_by")),
                "moves": len(cycle.moves),
                "dwells": sum(rest.duration > 0.0 for rest in cycle.rests),
            },
            "moves": [
                {
                    **_named(each.move, ("start", "duration", "energy", "kind", "peak_power")),
                    **_named(each.move, ("speed", "acceleration")),
                    **_named(each, ("duration", "energy", "speed", "acceleration"), "new_"),
                    **_named(each, ("typed_energy", "kept")),
                }
                for each in self.moves
            ],
            **_named(self, _FIGURES),
            "typed_saving_percent_interval": self.typed_interval,
            "saving_percent_interval": self.saving_interval,
            "load": None if loads is None else dict(zip(names, loads, strict=True)),
        }


_FIGURES = (
    "duration", "energy", "new_energy", "typed_energy", "typed_duration", "typed_saving_percent",
    "proven", "saving_percent", "time_optimal_duration", "time_optimal_energy", "scaled_energy",
    "bound_gap", "pareto", "measured", "notes",
)  # fmt: skip


def _named(thing: object, names: Sequence[str], prefix: str = "") -> dict[str, Any]:
    """Attributes by name."""
    return {prefix + name: getattr(thing, name) for name in names}
