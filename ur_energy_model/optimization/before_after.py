# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The saving of a changed program from ordinary production: cycles before and after the change.

Energies are those measured at the bus. Cycles of one recording (or of one day of a history store)
have standby power and friction in common, so the recordings count, not the cycles alone. Standby
that differs is corrected where both stand at the same points; what friction and temperature may
differ by widens the interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import t as student

from ur_energy_model.energy.telemetry_checks import OperatingConditions
from ur_energy_model.errors import InputError, RecordingError
from ur_energy_model.model.robots import load_robot
from ur_energy_model.model.setup import Setup
from ur_energy_model.optimization.found_cycles import find_cycles
from ur_energy_model.optimization.recorded_cycle import cycle_energies, scaling_of
from ur_energy_model.optimization.recorded_motion import STILL_TARGET, find_moves, read_motion
from ur_energy_model.plant.database import HistoryDatabase
from ur_energy_model.telemetry.bag.reader import read_info
from ur_energy_model.telemetry.samples import same_serial
from ur_energy_model.typing import Array

STANDBY_SPREAD, FRICTION_SPREAD = 2.0, 0.06
"""Standard deviations between recordings of one arm: of standby [W], where it cannot be corrected,
and of the energy of motion, relative."""
WARMTH = 0.006  # relative change of the energy of motion per kelvin of the joints
PRIOR = 8.0  # number of recordings whose scatter these spreads are worth
NEAR = 0.02
"""Distance within which two programs rest at the same point [rad]: it may be taught anew."""
USUAL = 1.3  # factor on the median duration beyond which a cycle was interrupted
NOTABLE = {"payload": 0.05, "temperature": 3.0, "scaling": 0.01}
"""Differences from which payload [kg], joint temperature [K] and speed scaling are reported."""
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Production:
    """Cycles of a recording, or of a day of a history store; None where something is unknown."""

    source: str  # recording or day
    energy: Array  # of its cycles [k], J, measured at the bus
    duration: Array  # of them [s]
    serial: str | None = None  # of the arm
    program: str | None = None  # name
    points: Array | None = None  # where the moves of a cycle start [moves, n], rad
    rests: Sequence[tuple[Array, float]] = ()  # points of rest [n], rad, and the power there [W]
    idle: float | None = None  # mean power at rest [W]
    payload: tuple[float, float] | None = None  # smallest and largest [kg]
    temperature: float | None = None  # mean of the joints [degC]
    scaling: float | None = None  # speed slider times limiter

    def as_json(self) -> dict[str, Any]:
        """A recording in the JSON of `Comparison`."""
        return {
            "source": self.source,
            "cycles": len(self.energy),
            "energies": self.energy.tolist(),
            "durations": self.duration.tolist(),
            "serial": self.serial,
            "program": self.program,
            "moves": None if self.points is None else len(self.points),
            "idle_power": self.idle,
            "payload": None if self.payload is None else list(self.payload),
            "temperature": self.temperature,
            "speed_scaling": self.scaling,
        }


@dataclass(frozen=True)
class Comparison:
    """Saving per cycle from before to after a change."""

    before: Sequence[Production]
    after: Sequence[Production]
    energy: float  # mean of a cycle before [J]
    new_energy: float  # mean of a cycle after, with standby as before [J]
    interval: tuple[float, float]  # 95 % interval of the saving (low, high) [J]
    standby_corrected: bool  # whether different standby was taken out
    differences: tuple[str, ...]  # what else changed, one sentence each
    proven: bool  # whether the interval excludes zero, on one arm

    @property
    def saving(self) -> float:
        """Per cycle [J]."""
        return self.energy - self.new_energy

    def as_json(self) -> dict[str, Any]:
        """`ur_energy optimize --before ... --after ... --json`."""
        return {
            **vars(self),
            "saving": self.saving,
            "saving_percent": 100.0 * self.saving / self.energy,
            "saving_percent_interval": [100.0 * end / self.energy for end in self.interval],
            "before": [each.as_json() for each in self.before],
            "after": [each.as_json() for each in self.after],
        }


def recorded_production(path: str | Path) -> Production:
    """Cycles of a recording of ordinary production.

    Raises:
        UrEnergyError: no cycle, no bus power, an unknown arm, or a recording that cannot be used.
    """
    info = read_info(path)
    if info.robot is None:
        raise RecordingError(
            path, "does not name the arm that it was recorded on", "record with --robot NAME"
        )
    motion = read_motion(path, load_robot(info.robot))
    power = motion.telemetry.bus_power
    telemetry = motion.telemetry
    if power is None or not np.isfinite(power).any():
        problem = "has no bus power, so that energies of cycles are not measured"
        raise RecordingError(path, problem, "record actual_robot_voltage and actual_robot_current")
    moves = find_moves(motion)
    found = find_cycles(motion, moves)
    energy = cycle_energies(motion, found, power)
    columns = telemetry.columns
    duration = motion.time[found.ends] - motion.time[[each[0].first for each in found.moves]]
    usual = duration <= USUAL * np.median(duration)
    inside = np.zeros(len(motion.time), dtype=bool)
    for cycle, end in zip(found.moves, found.ends, strict=True):
        inside[cycle[0].first : end + 1] = True
    still = inside & (np.abs(motion.qd).max(axis=1) < STILL_TARGET)
    rests = [
        (motion.q[move.last], float(power[move.last + 1 : after.first].mean()))
        for move, after in pairwise(moves)
        if after.first - move.last - 1 > 0.1 / motion.period
    ]
    carried = [there.payload.mass for _, there in OperatingConditions(Setup()).parts(telemetry)]
    warmth = columns.get("joint_temperatures")
    scaled = "speed_scaling" in columns or "target_speed_fraction" in columns
    return Production(
        str(path),
        energy[usual],
        duration[usual],
        info.serial,
        info.program,
        motion.q[[move.first for move in found.moves[0]]],
        rests,
        float(power[still].mean()) if still.any() else None,
        (min(carried), max(carried)) if "payload" in columns else None,
        None if warmth is None else float(np.nanmean(warmth[inside])),
        scaling_of(motion) if scaled else None,
    )


def stored_production(
    database: HistoryDatabase, changed: datetime
) -> tuple[list[Production], list[Production]]:
    """Cycles of a history store before and after an instant, by arm and day.

    Where programs have names, the cycles are those of the program that ran most.

    Raises:
        InputError: no cycle with measured energy on one of the sides, or several arms.
    """
    later_from = f">= TIMESTAMPTZ '{changed.isoformat()}' AS later"
    rows = database.columns(
        "SELECT arm, CAST(day AS VARCHAR) AS day, program, duration, bus_energy, "
        f"start {later_from} FROM cycles "
        "WHERE bus_energy IS NOT NULL AND isfinite(bus_energy) ORDER BY start"
    )
    arms = sorted(set(rows["arm"]))
    if not arms:
        remedy = "add recordings with bus power, or name another arm: --arm"
        raise InputError("--history", "has no cycle with measured energy of this arm", remedy)
    if len(arms) > 1:
        raise InputError(
            "--history", f"holds cycles of {len(arms)} arms", f"name one: --arm {arms[0]}"
        )
    days = database.columns(
        f"SELECT CAST(day AS VARCHAR) AS day, second {later_from}, "
        "avg(list_avg(joint_temperature)) AS temperature, avg(speed_scaling) AS scaling "
        "FROM seconds GROUP BY ALL"
    )
    columns = (days[name] for name in ("later", "day", "temperature", "scaling"))
    state = {(bool(later), day): values for later, day, *values in zip(*columns, strict=True)}
    names = [str(name) for name in rows["program"] if name is not None]
    usual = max(set(names), key=names.count) if names else None
    wanted = np.array([usual is None or name == usual for name in rows["program"]], dtype=bool)
    sides: list[list[Production]] = [[], []]
    for later in (False, True):
        mine = (rows["later"].astype(bool) == later) & wanted
        duration = rows["duration"][mine].astype(float)
        energy = rows["bus_energy"][mine].astype(float)
        day = rows["day"][mine]
        whole = duration <= USUAL * np.median(duration) if len(duration) else mine[:0]
        for each in dict.fromkeys(day[whole]):
            here = whole & (day == each)
            warmth, scaling = (
                None if value is None else float(value)
                for value in state.get((later, each), (None, None))
            )
            production = Production(str(each), energy[here], duration[here], arms[0], usual)
            sides[later].append(replace(production, temperature=warmth, scaling=scaling))
        if not sides[later]:
            raise InputError(
                "--changed",
                f"the store has no cycle with measured energy {'after' if later else 'before'} "
                f"{changed:%Y-%m-%d %H:%M}",
                "name another date, or add recordings with bus power",
            )
    return sides[0], sides[1]


def compare(before: Sequence[Production], after: Sequence[Production]) -> Comparison:
    """The saving per cycle, with its 95 % interval.

    Each recording has an error of its own: its scatter is estimated from the recordings, together
    with the known spread of arms between them (`PRIOR`); the interval is that of Student's t.
    """
    every = [*before, *after]
    sides = (before, after)
    duration = np.array([each.duration.mean() for each in every])
    energy = np.array([each.energy.mean() for each in every])
    count = np.array([len(each.energy) for each in every], dtype=float)
    shifts = [_standby_shift(before[0], each) for each in every]
    corrected = all(shift is not None for shift in shifts)
    mean = energy - np.array(shifts, dtype=float) * duration if corrected else energy
    # Energy of a cycle above that of resting as long; half of it all where that is unknown.
    motion = np.array([
        0.5 * whole if each.idle is None else max(whole - each.idle * time, 0.0)
        for each, whole, time in zip(every, energy, duration, strict=True)
    ])  # fmt: skip
    spread = np.hypot(0.0 if corrected else STANDBY_SPREAD * duration, FRICTION_SPREAD * motion)
    squares = sum(float(np.sum((each.energy - each.energy.mean()) ** 2)) for each in every)
    cycle_variance = squares / max(float(np.sum(count - 1)), 1.0)
    variance = 0.0
    freedom = PRIOR
    energies = []
    for rows in (slice(len(before)), slice(len(before), None)):
        own = mean[rows]
        free = len(mean[rows]) - 1
        scatter = float(np.sum((own - own.mean()) ** 2))
        between = (PRIOR * float(spread[rows].max()) ** 2 + scatter) / (PRIOR + free)
        within = cycle_variance * float(np.sum(1 / count[rows]))
        variance += between / len(own) + within / len(own) ** 2
        freedom += free
        energies.append(float(own.mean()))
    cold, warm = _means(sides, "temperature") or (0.0, 0.0)
    variance += (WARMTH * abs(warm - cold) * float(motion.max())) ** 2
    half = float(student.ppf(0.5 + CONFIDENCE / 2, freedom)) * variance**0.5
    saving = energies[0] - energies[1]
    serials = {each.serial for each in every}
    one_arm = all(same_serial(first, other) is not False for first in serials for other in serials)
    return Comparison(
        *sides,
        energies[0],
        energies[1],
        interval=(saving - half, saving + half),
        standby_corrected=corrected,
        differences=tuple(_differences(sides)),
        proven=bool(saving > half and one_arm),
    )


def _standby_shift(first: Production, other: Production) -> float | None:
    """Power at rest over that of the first recording, at the same points [W]; None without any."""
    pairs = [
        power - there
        for q, power in other.rests
        for at, there in first.rests
        if len(q) == len(at) and np.abs(q - at).max() < NEAR
    ]
    return float(np.mean(pairs)) if pairs else None


Sides = tuple[Sequence[Production], Sequence[Production]]


def _known(sides: Sides, name: str) -> list[list[Any]]:
    """Known values of both sides."""
    values = ([getattr(each, name) for each in side] for side in sides)
    return [[value for value in side if value is not None] for side in values]


def _means(sides: Sides, name: str) -> tuple[float, float] | None:
    """Mean before and after; None where one is unknown."""
    before, after = _known(sides, name)
    return (float(np.mean(before)), float(np.mean(after))) if before and after else None


def _differences(sides: Sides) -> list[str]:
    """What else changed from before to after, one sentence each."""
    out = []
    for name, what, remedy in (
        ("serial", "The arm", ": a saving between two arms proves nothing"),
        ("program", "The program's name", ""),
    ):
        before, after = (", ".join(sorted({*map(str, x)} - {""})) for x in _known(sides, name))
        if before and after and before != after:
            out.append(f"{what} changed from {before} to {after}{remedy}.")
    points = _known(sides, "points")
    loads = _known(sides, "payload")
    if all(points):
        first, second = (side[0] for side in points)
        far = np.inf
        if first.shape == second.shape:  # a cycle may begin with another one of its moves
            turned = [np.roll(second, turn, axis=0) for turn in range(len(second))]
            far = min(float(np.abs(first - each).max()) for each in turned)
        moves = [" or ".join(map(str, sorted({len(each) for each in side}))) for side in points]
        if moves[0] != moves[1]:
            out.append(f"A cycle has {moves[0]} moves before and {moves[1]} after.")
        elif far > NEAR:
            out.append(
                f"The moves start at other points, by up to {np.degrees(far):.1f}°: it may be "
                "other work."
            )
    if all(loads):
        ends = [np.array(sorted(set(load))) for load in loads]
        if np.abs(ends[0].mean(axis=0) - ends[1].mean(axis=0)).max() > NOTABLE["payload"]:
            most = (float(end.max()) for end in ends)
            out.append("The payload changed from {:.2f} kg to {:.2f} kg at most.".format(*most))
    if not all(points) or not all(loads):
        out.append("Payloads and points are not known on both sides: check that they stayed.")
    for name, text, scale in (
        (
            "temperature",
            "The joints' temperature changed from {:.1f} to {:.1f} °C: warm joints have less "
            "friction; the interval is wider for it.",
            1.0,
        ),
        ("scaling", "The speed slider changed from {:.0f} % to {:.0f} %.", 100.0),
    ):
        both = _means(sides, name)
        if both is not None and abs(both[1] - both[0]) > NOTABLE[name]:
            out.append(text.format(*(scale * each for each in both)))
    times = [float(np.mean(np.concatenate([each.duration for each in side]))) for side in sides]
    if abs(times[1] / times[0] - 1.0) > NOTABLE["scaling"]:
        out.append(f"The cycle time changed from {times[0]:.2f} s to {times[1]:.2f} s.")
    return out
