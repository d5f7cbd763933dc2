# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The saving of a changed program from ordinary production: cycles before and after the change.

The measured totals of the cycles are compared as they are; nothing is corrected. The 95 %
interval comes from the scatter of the cycles, or, where a side has several sessions, from
the scatter of the sessions: the cycles of one session have standby power and friction in
common. Differences that the program does not explain widen the interval: another power in
parts of the cycle that the change left alike, and another temperature of the joints.
Where nothing is measured, the energies of one model are compared, whose errors are mostly
common to both sides.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from ur_energy_model.energy.difference import (
    Difference,
    both_measured,
    model_variance,
    sources_json,
)
from ur_energy_model.energy.powers import TotalSource
from ur_energy_model.plant.production import CyclePart, ModelledCycles, Production
from ur_energy_model.telemetry.samples import same_serial
from ur_energy_model.typing import Array

SAME_SESSION = 4.0 * 3600.0
"""Longest time between two recordings of one session [s]: after a longer time the joints
are cold, and another start of the arm is likely."""
STANDBY_SPREAD = 2.0
"""Standard deviation of the standby power between sessions of one arm [W]."""
FRICTION_SPREAD = 0.06
"""Relative standard deviation of the energy of motion between sessions of one arm. Both spreads
count where one session on each side cannot show them."""
PRIOR = 8.0  # number of sessions from which these spreads were estimated
WARMTH = 0.006  # relative change of the energy of motion per kelvin of the joints
NEAR = 0.02
"""Distance within which two programs are at the same point [rad]: points may be taught
anew."""
ALIKE = 0.01  # relative difference of durations up to which two moves are the same motion
LONGER = 1.8
"""Factor on the duration of a cycle from which on it may hold two cycles of the other
side."""
CERTAIN = 0.999
"""Confidence from which on a difference of parts that are alike counts as a
difference."""
NOTABLE = {"payload": 0.05, "temperature": 3.0, "scaling": 0.01}
"""Differences from which payload [kg], joint temperature [K] and speed scaling are
reported."""


@dataclass(frozen=True)
class Side:
    """The productions before a change, or after it.

    Attributes:
        productions: recordings or days, at least one.
    """

    productions: Sequence[Production]

    def sessions(self) -> list[Array]:
        """Energies of the cycles of each session [cycles], J.

        Recordings that follow each other within `SAME_SESSION` are one session; a
        recording whose time of day is unknown is a session of its own.
        """
        found: list[list[Array]] = []
        latest = -np.inf
        for each in sorted(self.productions, key=_begin):
            if each.begin is not None and each.begin - latest <= SAME_SESSION:
                found[-1].append(each.energy)
            else:
                found.append([each.energy])
            if each.end is not None:
                latest = max(latest, each.end)
        return [np.concatenate(cycles) for cycles in found]

    def source(self) -> TotalSource:
        """Where the totals come from; all cycles have the same weight."""
        counts = np.array([len(each.energy) for each in self.productions], dtype=float)
        shares = np.array([each.total_source.share for each in self.productions])
        return TotalSource.of(float(counts @ shares), float(counts.sum()))

    def known(self, name: str) -> list[Any]:
        """The known values of an attribute of the productions."""
        values = [getattr(each, name) for each in self.productions]
        return [value for value in values if value is not None]

    def names(self, name: str) -> str:
        """The different texts of an attribute of the productions, in one text."""
        return ", ".join(sorted({str(value) for value in self.known(name)} - {""}))

    def mean(self, name: str) -> float | None:
        """The mean of an attribute of the productions; None where none is known."""
        values = self.known(name)
        return float(np.mean(values)) if values else None

    @property
    def cycle_time(self) -> float:
        """Mean duration of all cycles [s]."""
        durations = [each.duration for each in self.productions]
        return float(np.mean(np.concatenate(durations)))

    @property
    def numbers_of_moves(self) -> list[int]:
        """Different numbers of moves that a cycle has, ascending.

        There are none where points are unknown.
        """
        return sorted({len(points) for points in self.known("points")})


def _begin(production: Production) -> float:
    """Begin of a production [s since 1970]; before all others where it is unknown."""
    return -np.inf if production.begin is None else production.begin


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
        notes: what the interval was computed from, and what is left out, one sentence
            each.
        proven: whether the interval excludes zero, on one arm.
        alike_power: difference of power in parts of the cycle that are alike, after minus
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
        """Saving per cycle [J].

        It is negative if a cycle takes more energy after the change.
        """
        return self.energy - self.new_energy

    @property
    def sources(self) -> tuple[TotalSource, TotalSource]:
        """Where the totals before and after come from."""
        return Side(self.before).source(), Side(self.after).source()

    @property
    def is_measured(self) -> bool:
        """Whether measured totals are compared, not totals of a model."""
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

    With one session on each side, the scatter is the scatter of the cycles. If a side has
    one cycle, its scatter is taken to be the scatter of the other side. If both sides
    have one cycle, nothing shows the scatter, so that the interval is unknown and nothing
    is proven.

    Args:
        before: recordings or days before the change, at least one.
        after: recordings or days after it, at least one.
    """
    old = Side(before)
    new = Side(after)
    old_sessions = old.sessions()
    new_sessions = new.sessions()
    old_means = np.array([float(cycles.mean()) for cycles in old_sessions])
    new_means = np.array([float(cycles.mean()) for cycles in new_sessions])
    notes = _notes(old, new)
    alike = None
    if len(old_sessions) == 1 and len(new_sessions) == 1:
        alike = _alike(before[0].parts, after[0].parts)
        error = _of_session(old, new, alike)
        notes += error.notes
        difference = Difference.of_means(old_sessions[0], new_sessions[0])
        difference = difference.widened(error.variance, error.freedom)
    else:
        difference = Difference.of_groups(old_means, new_means)
    difference = difference.widened(_of_warmth(old, new))
    if not all(each.is_measured for each in (*before, *after)):
        difference = difference.widened(_of_model(old, new))
    if not _same_work(old, new):
        difference = Difference(difference.value, np.nan, 0.0)
        notes.append(
            "A cycle of one side may hold several of the other's, by their durations: "
            "the interval is unknown. Record more cycles of both."
        )
    interval = difference.interval
    return ProductionSaving(
        before,
        after,
        energy=float(old_means.mean()),
        new_energy=float(new_means.mean()),
        interval=interval,
        differences=tuple(_differences(old, new)),
        notes=tuple(notes),
        proven=bool(interval[0] > 0.0 and _one_arm((*before, *after))),
        alike_power=None if alike is None else -alike.power.value,
    )


def _one_arm(productions: Sequence[Production]) -> bool:
    """Whether the productions can be of one arm, by the serial numbers that are known."""
    pairs = combinations({each.serial for each in productions}, 2)
    return all(same_serial(one, other) is not False for one, other in pairs)


def _notes(before: Side, after: Side) -> list[str]:
    """Sentences on what is compared, what is left out, and whether cycles or sessions scatter."""
    notes = []
    old_source = before.source()
    new_source = after.source()
    if not both_measured(old_source, new_source):
        notes.append(
            f"Totals before: {old_source.words()}; after: {new_source.words()}. So "
            "energies of the model are compared, and the interval has the model's error."
        )
    old = before.sessions()
    new = after.sessions()
    if len(old) > 1 or len(new) > 1:
        notes.append(
            f"The interval comes from the scatter of the sessions, {len(old)} before and "
            f"{len(new)} after: the cycles of one session have standby power and "
            "friction in common."
        )
    elif len(old[0]) == 1 and len(new[0]) == 1:
        notes.append(
            "One cycle on each side does not show how much cycles scatter: record several of each."
        )
    productions = (*before.productions, *after.productions)
    left_out = sum(each.left_out for each in productions)
    if left_out:
        notes.append(
            f"Left out: {left_out} cycles with an outage, or much longer than usual."
        )
    return notes


def _apart(before: Side, after: Side) -> bool:
    """Whether the two sides are known to be of different sessions, by their times of day."""
    every = [*before.productions, *after.productions]
    if any(each.begin is None or each.end is None for each in every):
        return False
    return len(Side(every).sessions()) > 1


def _motion_energy(production: Production) -> float:
    """Energy of a cycle above the energy of resting as long [J].

    Half of the energy counts where the power at rest is unknown.
    """
    energy = float(production.energy.mean())
    if production.idle is None:
        return 0.5 * energy
    return max(energy - production.idle * float(production.duration.mean()), 0.0)


def _of_model(before: Side, after: Side) -> float:
    """Variance of the error of the model in the saving [J^2].

    Where both energies were calculated by one model, its errors are mostly common to
    both. Days of a store have the deviation of each energy alone: their variances add up.
    """
    old: list[ModelledCycles] = before.known("modelled")
    new: list[ModelledCycles] = after.known("modelled")
    if len(old) < len(before.productions) or len(new) < len(after.productions):
        old_std = max(each.model_std for each in before.productions)
        new_std = max(each.model_std for each in after.productions)
        return old_std**2 + new_std**2
    return model_variance(old[0].channels, _mean_net(old), _mean_net(new))


def _mean_net(modelled: Sequence[ModelledCycles]) -> Array:
    """Integrals of a mean cycle [channels], J; each recording counts alike."""
    means = [each.net.mean(axis=0) for each in modelled]
    return np.asarray(np.mean(means, axis=0))


def _same_work(before: Side, after: Side) -> bool:
    """Whether the cycles of both sides have as many moves, or at least similar durations.

    From few or slow samples, two cycles may be found as one.
    """
    productions = (*before.productions, *after.productions)
    moves = {None if each.points is None else len(each.points) for each in productions}
    if len(moves) == 1 and None not in moves:
        return True
    old = float(np.mean([each.duration.mean() for each in before.productions]))
    new = float(np.mean([each.duration.mean() for each in after.productions]))
    return max(old, new) < LONGER * min(old, new)


# What the two sides do not have in common.


class SessionError(NamedTuple):
    """The error of a saving because each side has one session, besides the scatter of cycles.

    Attributes:
        variance: variance of the error [J^2].
        freedom: degrees of freedom of the variance.
        notes: sentences about the error, for people.
    """

    variance: float
    freedom: float
    notes: list[str]


def _of_session(before: Side, after: Side, alike: AlikeParts | None) -> SessionError:
    """The error by which standby power and friction of two sessions differ.

    Parts of the cycle that are alike show it. Sessions that are known to be different,
    and have no move alike, may differ by the usual spreads between sessions.

    Args:
        before: one session before the change.
        after: one session after it.
        alike: power of the parts that the change left alike; None without any.
    """
    apart = _apart(before, after)
    every = [*before.productions, *after.productions]
    duration = max(float(each.duration.mean()) for each in every)
    variance = 0.0
    freedom = np.inf
    notes = []
    if alike is not None:
        power = alike.power.value
        differs = abs(power) > alike.power.half_width(CERTAIN)
        if differs:
            notes.append(
                f"Parts of the cycle that are alike on both sides took {-power:+.2f} W "
                "after the change, which is not the program's: the interval is wider for it."
            )
        if differs or apart:
            variance += (power * duration) ** 2
    if apart and (alike is None or not alike.moves):
        notes.append(
            "The two sides are of different sessions, and no move is alike on both: the "
            "interval has what standby power and friction of an arm usually differ by. "
            "Several days of each show it."
        )
        motion = max(_motion_energy(each) for each in every)
        spread = np.hypot(STANDBY_SPREAD * duration, FRICTION_SPREAD * motion)
        variance += 2.0 * float(spread) ** 2
        freedom = 2.0 * PRIOR
    return SessionError(variance, freedom, notes)


def _of_warmth(before: Side, after: Side) -> float:
    """Variance of the saving from joints that are warmer on one side [J^2].

    It is 0 where temperatures are unknown.
    """
    old = before.mean("temperature")
    new = after.mean("temperature")
    if old is None or new is None:
        return 0.0
    productions = (*before.productions, *after.productions)
    motion = max(_motion_energy(each) for each in productions)
    return (WARMTH * (new - old) * motion) ** 2


@dataclass(frozen=True)
class AlikeParts:
    """Parts of the cycle that the change left as they were.

    Attributes:
        power: difference of their mean power, before less after [W].
        moves: whether a move is among them.
    """

    power: Difference
    moves: bool


def _alike(before: Sequence[CyclePart], after: Sequence[CyclePart]) -> AlikeParts | None:
    """Compare the power of the parts that are alike on both sides.

    A settled rest is alike at the same point. A move is alike if it leads from the same
    point to the same one in the same time, and begins from a settled rest or follows a
    move that is alike: else the bus capacitor is charged differently at its begin.

    Args:
        before: parts of a cycle before the change, in order.
        after: parts of a cycle after it, in order.

    Returns:
        The difference; None without such parts, or where nothing shows their scatter.
    """
    pairs = _pairs(before, after)
    if not pairs:
        return None
    weights = [min(one.duration, other.duration) for one, other in pairs]
    old = np.average([one.power for one, _ in pairs], axis=0, weights=weights)
    new = np.average([other.power for _, other in pairs], axis=0, weights=weights)
    if len(old) == 0 or len(new) == 0 or len(old) == len(new) == 1:
        return None  # nothing shows the scatter
    has_move = any(one.moves for one, _ in pairs)
    return AlikeParts(Difference.of_means(old, new), has_move)


def _pairs(
    before: Sequence[CyclePart], after: Sequence[CyclePart]
) -> list[tuple[CyclePart, CyclePart]]:
    """Parts before and after that are alike, each at most once.

    Cycles are closed: the first part of a cycle follows its last part.
    """
    same = set()
    for i, one in enumerate(before):
        for j, other in enumerate(after):
            if _same_motion(one, other):
                same.add((i, j))
    found: dict[int, int] = {}
    for i, j in sorted(same):
        previous_i = (i - 1) % len(before)
        previous_j = (j - 1) % len(after)
        is_rest = not before[i].moves
        from_rest = not before[previous_i].moves and not after[previous_j].moves
        entered_alike = is_rest or from_rest or (previous_i, previous_j) in same
        if entered_alike and i not in found and j not in found.values():
            found[i] = j
    return [(before[i], after[j]) for i, j in found.items()]


def _same_motion(one: CyclePart, other: CyclePart) -> bool:
    """Whether two parts are rests at one point, or moves between the same points in one time."""
    if one.moves != other.moves or len(one.start) != len(other.start):
        return False
    start_distance = np.abs(one.start - other.start).max()
    end_distance = np.abs(one.end - other.end).max()
    if max(start_distance, end_distance) >= NEAR:
        return False
    tolerance = ALIKE * max(one.duration, other.duration) + max(one.tick, other.tick)
    as_long = abs(one.duration - other.duration) <= tolerance
    return as_long or not one.moves


# What else changed.


def _differences(before: Side, after: Side) -> Iterator[str]:
    """What else changed from before to after, or is not known on both sides: sentences."""
    yield from _changed_name(before, after, "serial")
    yield from _changed_name(before, after, "program")
    points_known = bool(before.known("points") and after.known("points"))
    loads_known = bool(before.known("payload") and after.known("payload"))
    if points_known:
        yield from _changed_points(before, after)
    if loads_known:
        yield from _changed_payload(before, after)
    if not points_known or not loads_known:
        yield "Payloads and points are not known on both sides: check that they stayed."
    yield from _changed_state(before, after)
    ratio = after.cycle_time / before.cycle_time
    if abs(ratio - 1.0) > NOTABLE["scaling"]:
        change = f"{before.cycle_time:.2f} s to {after.cycle_time:.2f} s"
        yield f"The cycle time changed from {change}."


_NAMES = {
    "serial": ("The arm", ": a saving between two arms proves nothing"),
    "program": ("The program's name", ""),
}
"""Attributes of productions that name something: what that is, and what a change
means."""


def _changed_name(before: Side, after: Side, name: str) -> Iterator[str]:
    """A sentence if the known texts of an attribute of `_NAMES` differ."""
    what, meaning = _NAMES[name]
    old = before.names(name)
    new = after.names(name)
    if old and new and old != new:
        yield f"{what} changed from {old} to {new}{meaning}."


def _changed_points(before: Side, after: Side) -> Iterator[str]:
    """A sentence if numbers of moves differ, or points are elsewhere.

    The points are known.
    """
    old_numbers = " or ".join(map(str, before.numbers_of_moves))
    new_numbers = " or ".join(map(str, after.numbers_of_moves))
    if old_numbers != new_numbers:
        yield f"A cycle has {old_numbers} moves before and {new_numbers} after."
        return
    far = _distance(before.known("points")[0], after.known("points")[0])
    if far > NEAR:
        yield (
            f"The moves start at other points, by up to {np.degrees(far):.1f}°: it may "
            "be other work."
        )


def _distance(before: Array, after: Array) -> float:
    """Largest distance of points before and after a change, rad.

    A cycle may begin with any of its moves: the beginning with the least distance counts.

    Args:
        before: points at which the moves start [moves, n], rad.
        after: the same points of the other cycle [moves, n], rad; where the numbers of
            moves differ, the distance is infinite.
    """
    if before.shape != after.shape:
        return np.inf
    distances = []
    for moves in range(len(after)):
        turned = np.roll(after, moves, axis=0)
        distances.append(float(np.abs(before - turned).max()))
    return min(distances)


def _changed_payload(before: Side, after: Side) -> Iterator[str]:
    """A sentence if the payload differs; the payloads of both sides are known."""
    # Smallest and largest mass of each production, where they differ [k, 2], kg.
    old = np.array(sorted(set(before.known("payload"))))
    new = np.array(sorted(set(after.known("payload"))))
    difference = np.abs(old.mean(axis=0) - new.mean(axis=0))
    if difference.max() > NOTABLE["payload"]:
        yield f"The payload changed from {old.max():.2f} kg to {new.max():.2f} kg at most."


def _changed_state(before: Side, after: Side) -> Iterator[str]:
    """Sentences about joints that are warmer or colder, and about another speed slider."""
    old = before.mean("temperature")
    new = after.mean("temperature")
    if old is not None and new is not None and abs(new - old) > NOTABLE["temperature"]:
        yield (
            f"The joints' temperature changed from {old:.1f} to {new:.1f} °C: warm "
            "joints have less friction; the interval is wider for it."
        )
    old = before.mean("scaling")
    new = after.mean("scaling")
    if old is not None and new is not None and abs(new - old) > NOTABLE["scaling"]:
        yield f"The speed slider changed from {100.0 * old:.0f} % to {100.0 * new:.0f} %."
