# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The saving of a changed program from ordinary production: cycles before and after the change.

Compared are the measured totals of the cycles as they are; nothing is corrected. The
interval comes from the scatter of the cycles, or, where a side has several sessions, from
that of the sessions: the cycles of one session have standby power and friction in common.
What the two sides are seen not to have in common widens it: the power of parts of the
cycle that the change left alike, and the temperature of the joints. Where nothing is
measured, the energies of one model are compared, whose errors are mostly common to both
sides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ur_energy_model.energy.difference import (
    Difference,
    both_measured,
    model_variance,
    sources_json,
)
from ur_energy_model.energy.powers import TotalSource
from ur_energy_model.plant.production import CyclePart, Production
from ur_energy_model.telemetry.samples import same_serial
from ur_energy_model.typing import Array

SAME_SESSION = 4.0 * 3600.0
"""Longest time between two recordings of one session [s]: then the joints are cold, and another
start of the arm is likely."""
STANDBY_SPREAD = 2.0
FRICTION_SPREAD = 0.06
"""Standard deviations between sessions of one arm: of standby power [W], and of the energy of
motion, relative. They count where one session on each side cannot show them."""
PRIOR = 8.0  # number of sessions that these spreads were seen in
WARMTH = 0.006  # relative change of the energy of motion per kelvin of the joints
NEAR = 0.02
"""Distance within which two programs are at the same point [rad]: it may be taught anew."""
ALIKE = 0.01  # relative difference of durations up to which two moves are the same motion
LONGER = 1.8
"""Factor on the duration of a cycle from which on it may hold two of the other side's."""
CERTAIN = 0.999
"""Confidence from which on a difference of parts that are alike counts as one."""
NOTABLE = {"payload": 0.05, "temperature": 3.0, "scaling": 0.01}
"""Differences from which payload [kg], joint temperature [K] and speed scaling are reported."""


Sides = tuple[Sequence[Production], Sequence[Production]]


@dataclass(frozen=True)
class ProductionSaving:
    """Saving per cycle from before to after a change.

    Attributes:
        before: productions before the change.
        after: productions after it.
        energy: mean of a cycle before [J].
        new_energy: mean of a cycle after [J].
        interval: 95 % interval of the saving (low, high) [J]; NaN where nothing shows the
            scatter.
        differences: what else changed, one sentence each.
        notes: what the interval rests on, and what is left out, one sentence each.
        proven: whether the interval excludes zero, on one arm.
        alike_power: power by which parts of the cycle that are alike differ, after less
            before [W]; None without such parts, or where nothing shows their scatter.
    """

    before: Sequence[Production]
    after: Sequence[Production]
    energy: float
    new_energy: float
    interval: tuple[float, float]
    differences: tuple[str, ...]
    notes: tuple[str, ...]
    proven: bool
    alike_power: float | None = None

    @property
    def saving(self) -> float:
        """Per cycle [J]."""
        return self.energy - self.new_energy

    @property
    def sources(self) -> tuple[TotalSource, TotalSource]:
        """Where the totals before and after come from."""
        before, after = (_source_of(side) for side in (self.before, self.after))
        return before, after

    @property
    def is_measured(self) -> bool:
        """Whether measured totals are compared, and not those of a model."""
        return both_measured(*self.sources)

    def as_json(self) -> dict[str, Any]:
        """`ur_energy optimize --before ... --after ... --json`."""
        return {
            **vars(self),
            "saving": self.saving,
            "saving_percent": 100.0 * self.saving / self.energy,
            "saving_percent_interval": [
                100.0 * end / self.energy for end in self.interval
            ],
            "standby_corrected": False,
            **sources_json(*self.sources),
            "before": [each.as_json() for each in self.before],
            "after": [each.as_json() for each in self.after],
        }


def compare(
    before: Sequence[Production], after: Sequence[Production]
) -> ProductionSaving:
    """The saving per cycle, with its 95 % interval.

    With one session on each side the cycles are what scatters. With one cycle on one side
    it is taken to scatter as those of the other side; with one on each side nothing shows
    the scatter, so that the interval is unknown and nothing is proven.

    Args:
        before: recordings or days before the change, at least one.
        after: recordings or days after it, at least one.
    """
    sides = (before, after)
    sessions = [_sessions(side) for side in sides]
    notes = _notes(sides, sessions)
    alike = None
    if all(len(each) == 1 for each in sessions):
        difference = Difference.of_means(sessions[0][0], sessions[1][0])
        alike = _alike(before[0].parts, after[0].parts)
        seen = _of_session(sides, alike)
        notes += seen.notes
        difference = difference.widened(seen.variance, seen.freedom)
    else:
        means = [np.array([cycles.mean() for cycles in each]) for each in sessions]
        difference = Difference.of_groups(*means)
    difference = difference.widened(_of_warmth(sides))
    if not all(each.is_measured for each in (*before, *after)):
        difference = difference.widened(_of_model(sides))
    if not _same_work(sides):
        difference = Difference(difference.value, np.nan, 0.0)
        notes.append(
            "A cycle of one side may hold several of the other's, by their durations: the interval "
            "is unknown. Record more cycles of both."
        )
    serials = {each.serial for each in (*before, *after)}
    one_arm = all(
        same_serial(first, other) is not False for first in serials for other in serials
    )
    energies = [float(np.mean([cycles.mean() for cycles in each])) for each in sessions]
    interval = difference.interval
    return ProductionSaving(
        *sides,
        energies[0],
        energies[1],
        interval=interval,
        differences=tuple(_differences(sides)),
        notes=tuple(notes),
        proven=bool(interval[0] > 0.0 and one_arm),
        alike_power=None if alike is None else -alike.power.value,
    )


def _sessions(side: Sequence[Production]) -> list[Array]:
    """Energies of the cycles of each session of a side, J.

    Recordings that follow each other within `SAME_SESSION` are one session; one whose
    time of day is unknown is a session of its own.
    """
    found: list[list[Array]] = []
    latest = -np.inf
    for each in sorted(side, key=lambda one: -np.inf if one.begin is None else one.begin):
        if each.begin is not None and each.begin - latest <= SAME_SESSION:
            found[-1].append(each.energy)
        else:
            found.append([each.energy])
        latest = max(latest, -np.inf if each.end is None else each.end)
    return [np.concatenate(cycles) for cycles in found]


def _source_of(side: Sequence[Production]) -> TotalSource:
    """Where the totals of a side come from, by the number of its cycles."""
    counts = np.array([len(each.energy) for each in side], dtype=float)
    shares = np.array([each.total_source.share for each in side])
    return TotalSource.of(float(counts @ shares), float(counts.sum()))


def _notes(sides: Sides, sessions: Sequence[Sequence[Array]]) -> list[str]:
    """What is compared, what is left out, and whether cycles or sessions scatter."""
    notes = []
    sources = [_source_of(side) for side in sides]
    if any(source.name != "measured" for source in sources):
        before, after = (source.words() for source in sources)
        notes.append(
            f"Totals before: {before}; after: {after}. So energies of the model are compared, and "
            "the interval has the model's error."
        )
    if any(len(each) > 1 for each in sessions):
        before, after = (str(len(each)) for each in sessions)
        notes.append(
            f"The interval comes from the scatter of the sessions, {before} before and {after} "
            "after: the cycles of one session have standby power and friction in common."
        )
    if all(len(each) == 1 and len(each[0]) == 1 for each in sessions):
        notes.append(
            "One cycle on each side does not show how much cycles scatter: record several of each."
        )
    left_out = sum(each.left_out for side in sides for each in side)
    if left_out:
        notes.append(
            f"Left out: {left_out} cycles with an outage, or much longer than usual."
        )
    return notes


def _apart(before: Sequence[Production], after: Sequence[Production]) -> bool:
    """Whether the two sides are known to be of different sessions."""
    every = [*before, *after]
    if any(each.begin is None or each.end is None for each in every):
        return False
    return len(_sessions(every)) > 1


def _motion_energy(production: Production) -> float:
    """Energy of a cycle above that of resting as long; half of it all where that is unknown [J]."""
    energy = float(production.energy.mean())
    if production.idle is None:
        return 0.5 * energy
    return max(energy - production.idle * float(production.duration.mean()), 0.0)


def _of_model(sides: Sides) -> float:
    """Variance of the error of the model in the saving [J^2].

    Where both energies were calculated by one model, its errors are mostly common to
    both. The rows of a store have the deviation of each alone.
    """
    means = [[each.modelled for each in side] for side in sides]
    if any(modelled is None for side in means for modelled in side):
        return sum(max(each.model_std for each in side) ** 2 for side in sides)
    nets = [
        np.mean([one.net.mean(axis=0) for one in side if one is not None], axis=0)
        for side in means
    ]
    first = means[0][0]
    assert first is not None
    return model_variance(first.channels, *nets)


def _same_work(sides: Sides) -> bool:
    """Whether the cycles of both sides have as many moves, or at least similar durations.

    From few or slow samples, two cycles may be found as one.
    """
    points = [len(points) for side in _known(sides, "points") for points in side]
    if len(points) == len(sides[0]) + len(sides[1]) and len(set(points)) == 1:
        return True
    lengths = [float(np.mean([each.duration.mean() for each in side])) for side in sides]
    return max(lengths) < LONGER * min(lengths)


# What the two sides do not have in common.


class SessionError(NamedTuple):
    """What one session on each side may add to the saving, beside the scatter of the cycles.

    Attributes:
        variance: J^2.
        freedom: degrees of freedom of the variance.
        notes: for people.
    """

    variance: float
    freedom: float
    notes: list[str]


def _of_session(sides: Sides, alike: AlikeParts | None) -> SessionError:
    """Standby power and friction of two sessions, as the parts that are alike show them.

    Sessions that are known to be different, and have no move alike, may differ by as much
    as those of other arms do.
    """
    apart = _apart(*sides)
    every = [*sides[0], *sides[1]]
    duration = max(float(each.duration.mean()) for each in every)
    variance = 0.0
    freedom = np.inf
    notes = []
    if alike is not None:
        power = alike.power.value
        differs = abs(power) > alike.power.half_width(CERTAIN)
        if differs:
            notes.append(
                f"Parts of the cycle that are alike on both sides took {-power:+.2f} W after the "
                "change, which is not the program's: the interval is wider for it."
            )
        if differs or apart:
            variance += (power * duration) ** 2
    if apart and (alike is None or not alike.moves):
        notes.append(
            "The two sides are of different sessions, and no move is alike on both: the interval "
            "has what standby power and friction of an arm usually differ by. Several days of each "
            "show it."
        )
        motion = max(_motion_energy(each) for each in every)
        spread = np.hypot(STANDBY_SPREAD * duration, FRICTION_SPREAD * motion)
        variance += 2.0 * float(spread) ** 2
        freedom = 2.0 * PRIOR
    return SessionError(variance, freedom, notes)


def _of_warmth(sides: Sides) -> float:
    """Variance from joints that are warmer on one side [J^2]; 0 where that is unknown."""
    cold, warm = _means(sides, "temperature") or (0.0, 0.0)
    motion = max(_motion_energy(each) for side in sides for each in side)
    return (WARMTH * (warm - cold) * motion) ** 2


@dataclass(frozen=True)
class AlikeParts:
    """Parts of the cycle that the change left as they were.

    Attributes:
        power: of their mean power, before less after [W].
        moves: whether a move is among them.
    """

    power: Difference
    moves: bool


def _alike(before: Sequence[CyclePart], after: Sequence[CyclePart]) -> AlikeParts | None:
    """How the power of the parts differs that are alike on both sides; None without any.

    A settled rest is alike at the same point. A move is alike if it leads from the same
    point to the same one in the same time, and begins from a settled rest or follows a
    move that is alike: else the bus capacitor is charged differently at its begin.
    """
    pairs = _pairs(before, after)
    if not pairs:
        return None
    weights = np.array([min(one.duration, other.duration) for one, other in pairs])
    power = [
        np.average([part.power for part in side], axis=0, weights=weights)
        for side in zip(*pairs, strict=True)
    ]
    if any(not len(each) for each in power) or all(len(each) == 1 for each in power):
        return None
    return AlikeParts(Difference.of_means(*power), any(one.moves for one, _ in pairs))


def _pairs(
    before: Sequence[CyclePart], after: Sequence[CyclePart]
) -> list[tuple[CyclePart, CyclePart]]:
    """Parts before and after that are alike, each at most once.

    A cycle goes round: its first part follows its last one.
    """
    like = {
        (i, j)
        for i, one in enumerate(before)
        for j, other in enumerate(after)
        if _same_motion(one, other)
    }
    found: dict[int, int] = {}
    for i, j in sorted(like):
        earlier = (i - 1) % len(before), (j - 1) % len(after)
        rested = not before[earlier[0]].moves and not after[earlier[1]].moves
        entered_alike = not before[i].moves or rested or earlier in like
        if entered_alike and i not in found and j not in found.values():
            found[i] = j
    return [(before[i], after[j]) for i, j in found.items()]


def _same_motion(one: CyclePart, other: CyclePart) -> bool:
    """Whether two parts are rests at one point, or moves on one way in one time."""
    if one.moves != other.moves or len(one.start) != len(other.start):
        return False
    far = max(np.abs(one.start - other.start).max(), np.abs(one.end - other.end).max())
    longer = abs(one.duration - other.duration)
    as_long = longer <= ALIKE * max(one.duration, other.duration) + max(
        one.tick, other.tick
    )
    return bool(far < NEAR and (as_long or not one.moves))


# What else changed.


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
        before, after = (
            ", ".join(sorted({*map(str, x)} - {""})) for x in _known(sides, name)
        )
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
        moves = [
            " or ".join(map(str, sorted({len(each) for each in side}))) for side in points
        ]
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
            out.append(
                "The payload changed from {:.2f} kg to {:.2f} kg at most.".format(*most)
            )
    if not all(points) or not all(loads):
        out.append(
            "Payloads and points are not known on both sides: check that they stayed."
        )
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
    times = [
        float(np.mean(np.concatenate([each.duration for each in side]))) for side in sides
    ]
    if abs(times[1] / times[0] - 1.0) > NOTABLE["scaling"]:
        out.append(f"The cycle time changed from {times[0]:.2f} s to {times[1]:.2f} s.")
    return out
