# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Health: levels of each arm day by day, and the changes in them in words.

A level is taken at equal temperature over a unit of work; the first part follows the
levels of one arm, the second reads those of all arms from a history.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date, datetime, timezone
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from ur_energy_model.energy.meter import CONFIDENCE
from ur_energy_model.identification.minute import LEVEL_SPREAD, MINUTE
from ur_energy_model.model.next_session import PRIOR_FREEDOM
from ur_energy_model.model.sessions import SESSION_GAP, STANDBY_SPREAD
from ur_energy_model.plant.holdings import Holdings
from ur_energy_model.plant.store import HistoryStore
from ur_energy_model.plant.store_files import StoreError
from ur_energy_model.telemetry.samples import equal_runs
from ur_energy_model.typing import Array, Indices, Progress


@dataclass(frozen=True)
class HealthQuantity:
    """A quantity of the joints or of the whole arm, with the scatter that is usual for its level.

    The scatters are standard deviations in the unit of the level.

    Attributes:
        name: of the quantity.
        relative: whether levels are logarithms, and changes are stated in percent.
        unit: of the level.
        least: smallest change that is stated.
        session: scatter between sessions.
        day: scatter between units of work of one session.
        common: scatter between sessions that all channels have in common.
        slope: scatter of the slope with temperature beyond the model [per kelvin].
        model: scatter between two models of the arm.
        work: scatter between programs of work, from which a change cannot be separated.
    """

    name: str
    relative: bool
    unit: str
    least: float
    session: float
    day: float
    common: float
    slope: float
    model: float
    work: float


_SPREAD = (
    LEVEL_SPREAD.session,
    LEVEL_SPREAD.wander,
    LEVEL_SPREAD.common,
    LEVEL_SPREAD.slope,
)
FRICTION = HealthQuantity("friction", True, "N m", 0.06, *_SPREAD, model=0.05, work=0.015)
"""Scatter as learning expects it; two models of an arm state friction up to 5 % apart, and
the simulated arm's differs by 1.2 % between programs of work (test/benchmarks/
bench_learning.py)."""
TORQUE_CONSTANT = HealthQuantity(
    "torque constant",
    True,
    "N m/A",
    0.03,
    0.01,
    0.005,
    0.01,
    0.0005,
    model=0.02,
    work=0.005,
)
"""Magnets lose 0.1 % of their field per kelvin at most, joints differ by less than that; what
remains of payloads that were not set in the controller is common to the joints."""
STANDBY = HealthQuantity(
    "standby power", False, "W", 2.0, STANDBY_SPREAD, 0.4, 0.0, 0.05, model=0.5, work=0.2
)

CERTAIN = 32.0
"""Likelihood ratio (twice its logarithm) from which a change is stated; measured with
test/benchmarks/bench_health.py."""
MOST_UNITS = 400
"""Units that are followed, the last ones: bounded time and memory for a store of any length."""
DAY = 86400.0  # s
# consecutive minutes with errors in common (learning/changes.py: 900 s)
_CORRELATED = 15.0
# minutes of a unit from which its own warming up shows the effect of temperature
_FEWEST = 30
_MOST_CHANGES = 6  # of one quantity of an arm
_FEWEST_JOINTS = 3  # joints from which what they have in common is estimated


@dataclass(frozen=True)
class MinuteLevels:
    """A quantity of c channels minute by minute.

    Attributes:
        time: ascending [minutes], s since 1970.
        value: [minutes, c], NaN where it is not measured.
        std: standard deviations of the values [minutes, c].
        temperature: [minutes, c], degC, NaN where it is unknown.
        model: numbers of the models that the values are stated with [minutes].
    """

    time: Array
    value: Array
    std: Array
    temperature: Array
    model: Indices


@dataclass(frozen=True)
class Levels:
    """The same by unit of work [u], the part of a session that is in one day.

    `time` is a unit's mean time; `slope` the change of each channel with temperature as
    seen within units [c], per kelvin, `slope_precision` the inverse of its variance, 0
    where nothing is known.
    """

    time: Array
    session: Indices
    model: Indices
    value: Array
    std: Array
    temperature: Array
    slope: Array
    slope_precision: Array


@dataclass(frozen=True)
class ChannelChange:
    """A change of a level.

    Attributes:
        onset: index of the first unit of work after it.
        gradual: whether the level drifts from there on.
        size: change up to the last unit, in the level's unit.
        std: standard deviation of the size.
        ratio: twice the logarithm of the likelihood ratio against no change.
        course: the change at each unit [u].
        channel: by number; None for a change that all joints have in common.
    """

    onset: int
    gradual: bool
    size: float
    std: float
    ratio: float
    course: Array
    channel: int | None = None


@dataclass(frozen=True)
class LevelCourse:
    """A quantity of c channels at equal temperature, by unit of work.

    Attributes:
        quantity: what it is.
        time: mean times of the units [u], s since 1970.
        reference: temperature of the levels [c], degC.
        value: levels [u, c], NaN where they are unknown.
        std: standard deviations of the levels [u, c].
        changes: those larger than their uncertainty, the likeliest first.
        now: level after the changes [c], mean over the scatter of sessions; NaN where it
            is unknown.
        now_std: its standard deviation [c].
    """

    quantity: HealthQuantity
    time: Array
    reference: Array
    value: Array
    std: Array
    changes: tuple[ChannelChange, ...]
    now: Array
    now_std: Array


def follow(
    minutes: MinuteLevels, quantity: HealthQuantity, certain: float = CERTAIN
) -> LevelCourse:
    """Levels of a quantity of one arm over days, and its changes of at least a likelihood ratio."""
    units = levels(minutes, quantity.day)
    known = np.isfinite(units.std)
    n = units.value.shape[1]
    warm = np.isfinite(units.temperature).any(axis=0)
    reference = np.full(n, np.nan)
    reference[warm] = np.nanmedian(units.temperature[:, warm], axis=0)
    excess = np.nan_to_num(units.temperature - reference)
    # The effect of temperature: none before, what units show of it, then what they leave
    # open.
    precision = units.slope_precision + quantity.slope**-2
    slope = units.slope * units.slope_precision / precision
    slope_std = precision**-0.5
    value = units.value - slope * excess

    # Sessions have a part of each channel and a common one, which the other channels
    # show.
    own = quantity.session**2 + quantity.day**2
    common = quantity.common**2
    others = n - 1 if n >= _FEWEST_JOINTS else 0
    left = common / (1.0 + others * common / own) if own else common
    alone = replace(quantity, session=float(np.hypot(quantity.session, np.sqrt(left))))
    columns = zip(units.std.T, excess.T, slope_std, strict=True)
    tests = [_ChangeTest(units, *column, alone) for column in columns]
    together = None
    count = known.sum(axis=1)
    if others and common:  # joints of one lubricant share its temperature
        spread = float(np.hypot(quantity.common, quantity.session / np.sqrt(n)))
        std = np.where(count >= _FEWEST_JOINTS, quantity.day / np.sqrt(n), np.nan)
        shared = replace(quantity, session=spread)
        together = _ChangeTest(units, std, excess.mean(axis=1), slope_std.mean(), shared)

    # One change after the other: each is taken out of the levels before the next is
    # sought.
    changes: list[ChannelChange] = []
    shift = np.zeros(value.shape)
    variance = np.array([test.mean_std**2 for test in tests])
    while True:
        rest = value - shift
        mean = np.array(
            [test.mean(level) for test, level in zip(tests, rest.T, strict=True)]
        )
        rest = rest - mean
        found = []
        for j, test in enumerate(tests):
            shown = np.zeros(len(rest))
            if together is not None:
                seen = known & (np.arange(n) != j)
                gain = common / (common * np.maximum(seen.sum(axis=1), 1) + own)
                shown = gain * np.where(seen, rest, 0.0).sum(axis=1)
            found.append(test.find(rest[:, j] - shown, j))
        if together is not None:
            shown = np.where(known, rest, 0.0).sum(axis=1) / np.maximum(count, 1)
            found.append(together.find(shown))
        stated = [
            each
            for each in found
            if each is not None
            and each.ratio >= certain
            and abs(each.size) >= quantity.least
        ]
        if not stated or len(changes) == _MOST_CHANGES:
            break
        best = max(stated, key=lambda each: each.ratio)
        changes.append(best)
        part = (
            slice(None) if best.channel is None else slice(best.channel, best.channel + 1)
        )
        shift[:, part] += best.course[:, None]
        variance[part] += best.std**2
    return LevelCourse(
        quantity=quantity,
        time=units.time,
        reference=reference,
        value=value,
        std=np.hypot(units.std, np.hypot(quantity.day, slope_std * excess)),
        changes=tuple(changes),
        now=mean + shift[-1],
        now_std=np.sqrt(variance),
    )


def levels(minutes: MinuteLevels, wander: float) -> Levels:
    """Levels of the last MOST_UNITS units; `wander`: scatter of their minutes besides `std`."""
    session = np.cumsum(np.diff(minutes.time, prepend=minutes.time[0]) > SESSION_GAP)
    keys = np.stack([session, np.floor(minutes.time / DAY), minutes.model])
    unit = np.append(0, np.cumsum((np.diff(keys, axis=1) != 0).any(axis=0)))
    recent = unit > unit[-1] - MOST_UNITS
    unit = unit[recent] - unit[recent][0]
    count = int(unit[-1]) + 1
    first = np.searchsorted(unit, np.arange(count))
    value = minutes.value[recent]
    temperature = minutes.temperature[recent]
    known = np.isfinite(value) & np.isfinite(minutes.std[recent])
    weight = np.where(known, 1.0 / (np.square(minutes.std[recent]) + wander**2), 0.0)
    warm = np.where(np.isfinite(temperature), weight, 0.0)

    def sums(values: Array) -> Array:
        return np.stack([np.bincount(unit, column, count) for column in values.T], axis=1)

    information = sums(weight)
    many = sums(known.astype(float))
    with np.errstate(invalid="ignore", divide="ignore"):
        out = sums(np.where(weight > 0, weight * value, 0.0)) / information
        warmth = sums(np.where(warm > 0, warm * temperature, 0.0)) / sums(warm)
        fewer = np.maximum(1.0, np.minimum(many, _CORRELATED))
        std = np.where(many > 0, np.sqrt(fewer / information), np.nan)
    # Within units: regression of the value on temperature, errors correlated over
    # minutes.
    used = warm * (many >= _FEWEST)[unit]
    excess = np.where(used > 0, temperature - warmth[unit], 0.0)
    rest = np.where(used > 0, value - out[unit], 0.0)
    square = (used * excess**2).sum(axis=0)
    product = (used * excess * rest).sum(axis=0)
    return Levels(
        time=np.bincount(unit, minutes.time[recent], count)
        / np.bincount(unit, minlength=count),
        session=session[recent][first],
        model=minutes.model[recent][first],
        value=out,
        std=std,
        temperature=warmth,
        slope=np.where(square > 0, product / np.where(square > 0, square, 1.0), 0.0),
        slope_precision=square / _CORRELATED,
    )


# Test for a change of a level between sessions: steps and ramps by generalised least
# squares. The level of a unit of work is level = usual + slope (temperature - reference)
# + session + day + measurement error + change with random sessions and days. For every
# possible onset the sizes of a step and of ramps are estimated at once, and the likeliest
# one is returned (Willsky and Jones 1976, with a block- diagonal covariance instead of a
# filter). The scale of the scatter is estimated with the size, from a scaled inverse
# chi-squared prior, so that an arm that scatters more needs a larger change.

# units needed before and after an onset
_BEFORE = 4
_AFTER = 2
# days that a gradual change takes, at most up to the last unit
_RAMPS = (20.0, 60.0, np.inf)
_SCALE_LEAST = 0.25  # least variance of the scatter over the expected one


class _ChangeTest:
    """Finds the likeliest change of one channel, from its std [u] (NaN where not measured).

    `excess` is the temperature above the reference [u], K, 0 where unknown, with the
    effect `slope_std` per kelvin; `mean_std` is the standard deviation of `mean`,
    sessions included.
    """

    def __init__(
        self,
        levels: Levels,
        std: Array,
        excess: Array,
        slope_std: float,
        scatter: HealthQuantity,
    ) -> None:
        self._work = scatter.work
        self._units = len(std)
        self._rows = rows = np.flatnonzero(np.isfinite(std))
        session = levels.session[rows]
        model = levels.model[rows]
        time = levels.time[rows]
        covariance = scatter.session**2 * (session[:, None] == session)
        covariance = covariance + np.diag(scatter.day**2 + np.square(std[rows]))
        covariance += slope_std**2 * np.outer(excess[rows], excess[rows])
        if (model != model[:1]).any():
            covariance += scatter.model**2 * (model[:, None] == model)
        precision = np.linalg.inv(covariance)
        ones = precision.sum(axis=1)
        total = float(ones.sum()) if len(rows) else 1.0
        self._weights = ones / total
        self.mean_std = total**-0.5 if len(rows) else np.inf
        self._projected = precision - np.outer(ones, ones) / total
        onsets = np.arange(_BEFORE, len(rows) - _AFTER + 1)
        shapes = [(np.arange(len(rows))[:, None] >= onsets).astype(float)]
        for days in _RAMPS if len(onsets) else ():
            begin = time[onsets - 1]
            span = np.maximum(np.minimum(days * DAY, time[-1] - begin), 1.0)
            shapes.append(np.clip((time[:, None] - begin) / span, 0.0, 1.0))
        self._onsets = np.tile(onsets, len(shapes))
        self._gradual = np.arange(len(self._onsets)) >= len(onsets)
        self._shapes = np.concatenate(shapes, axis=1)
        self._filtered = self._projected @ self._shapes
        self._information = np.einsum("us,us->s", self._shapes, self._filtered)

    def mean(self, level: Array) -> float:
        """Weighted mean of a level [u] over the units in which it is known."""
        return (
            float(self._weights @ level[self._rows]) if len(self._rows) else float("nan")
        )

    def find(self, level: Array, channel: int | None = None) -> ChannelChange | None:
        """The likeliest change of a level [u]; None with too few units."""
        if not len(self._onsets):
            return None
        own = level[self._rows]
        usable = self._information > 1e-12
        information = np.where(usable, self._information, 1.0)
        sizes = np.where(usable, self._filtered.T @ own / information, 0.0)
        explained = sizes**2 * information
        freedom = len(own) - 2.0 + PRIOR_FREEDOM
        left = PRIOR_FREEDOM + float(own @ self._projected @ own) - explained
        variance = np.maximum(left / freedom, _SCALE_LEAST)
        ratio = (freedom + 1.0) * np.log1p(explained / (freedom * variance))
        best = int(np.argmax(ratio))
        course = np.zeros(self._units)
        course[self._rows] = sizes[best] * self._shapes[:, best]
        # Onset and shape are not known either: mean over all of them, by their
        # likelihood.
        weight = np.where(usable, np.exp(0.5 * (ratio - ratio[best])), 0.0)
        weight /= weight.sum()
        size = float(weight @ sizes)
        spread = variance / information + np.square(sizes - size)
        return ChannelChange(
            onset=int(self._rows[self._onsets[best]]),
            gradual=bool(self._gradual[best]),
            size=size,
            std=float(np.hypot(np.sqrt(weight @ spread), self._work)),
            ratio=float(ratio[best]),
            course=course,
            channel=channel,
        )


# The arms of a history.

COLUMNS = (
    "minute", "robot", "model", "joints", "joint_temperature", "joint_friction",
    "joint_friction_std", "joint_friction_reference", "joint_torque_constant",
    "joint_torque_constant_std", "standby", "standby_std",
)  # fmt: skip
"""Those that are needed."""
_SAME_MINUTE = 0.5 * MINUTE  # rows closer to each other are of the same minute [s]


@dataclass(frozen=True)
class HealthChange:
    """A change that is larger than its uncertainty.

    Attributes:
        arm: name of the arm.
        joint: name of the joint; None for a change of the whole arm.
        what: quantity that has changed.
        since: UTC day of its begin.
        gradual: whether it is drift, not a step.
        size: relative (0.18 for 18 % more), or in W.
        interval: 95 % interval of the size.
        temperature: of both levels [degC]; None where it is unknown.
    """

    arm: str
    joint: str | None
    what: str
    since: date
    gradual: bool
    size: float
    interval: tuple[float, float]
    temperature: float | None
    words: str


@dataclass(frozen=True)
class ArmHealth:
    """Health of one arm: levels as in the command's JSON, changes in order of time."""

    arm: str
    robot: str
    levels: tuple[dict[str, Any], ...]
    changes: tuple[HealthChange, ...]


def plant_health(
    address: str, *, progress: Progress | None = None
) -> tuple[tuple[ArmHealth, ...], Holdings]:
    """Health of all arms, in order of their names, and what the store holds.

    One arm is in memory at a time.

    Raises:
        StoreError: the store cannot be read, or has no health of any arm.
    """
    store = HistoryStore(address)
    holdings = store.holdings()
    rows = store.rows("health", holdings)
    arms = sorted({str(file.arm) for file in holdings.files["health"]})
    if not arms:
        remedy = "add recordings with `ur_energy history add`"
        raise StoreError(address, "holds no minutes of motion or standstill", remedy)
    found: list[ArmHealth] = []
    for number, arm in enumerate(arms):
        if progress is not None:
            progress(number / len(arms), f"{arm}: {number + 1} of {len(arms)} arms")
        own = rows.to_table(columns=list(COLUMNS), filter=ds.field("arm") == arm)
        found += filter(None, [arm_health(arm, own)])
    return tuple(found), holdings


def arm_health(arm: str, rows: pa.Table) -> ArmHealth | None:
    """Levels of an arm and their changes, from COLUMNS of `health`; None without any minute."""
    if not rows.num_rows:
        return None
    robot, joints, minutes = minute_levels(rows)
    levels = []
    changes = []
    for quantity, each in minutes.items():
        course = follow(each, quantity)
        of = (None,) if quantity is STANDBY else joints
        levels += [
            _level(course, j, joint)
            for j, joint in enumerate(of)
            if np.isfinite(course.now[j])
        ]
        changes += [_stated(arm, of, course, change) for change in course.changes]
    changes.sort(key=lambda change: change.since)
    return ArmHealth(arm, robot, tuple(levels), tuple(changes))


def minute_levels(
    rows: pa.Table,
) -> tuple[str, tuple[str, ...], dict[HealthQuantity, MinuteLevels]]:
    """Type and joints of an arm, and its levels minute by minute, from one or more rows.

    Friction is that at 0.5 rad/s, joint side, as its logarithm in N m [minutes, n];
    torque per ampere, motor side, as its logarithm in N m/A [minutes, n]; standby power
    in W [minutes, 1]. Rows with another number of joints than the last one, and all but
    one of a minute, are left out.
    """
    rows = rows.sort_by("minute")
    joints = tuple(rows["joints"][-1].as_py())
    rows = rows.filter(pc.equal(pc.list_value_length(rows["joints"]), len(joints)))
    time = rows["minute"].cast("int64").to_numpy() * 1e-6
    once = np.diff(time, prepend=-np.inf) > _SAME_MINUTE
    rows = rows.filter(once)
    time = time[once]
    model = np.unique(
        np.array(rows["model"].to_pylist(), dtype=str), return_inverse=True
    )[1]

    def matrix(name: str) -> Array:
        values = rows[name].combine_chunks()
        flat = values.flatten() if pa.types.is_list(values.type) else values
        return np.asarray(flat.to_numpy(zero_copy_only=False), dtype=float).reshape(
            len(rows), -1
        )

    temperature = matrix("joint_temperature")
    reference = matrix("joint_friction_reference")

    def logarithm(name: str, unit: Array | float) -> MinuteLevels:
        value = matrix(name) * unit
        std = matrix(f"{name}_std") * unit
        good = (value > 0) & (std >= 0)
        safe = np.where(good, value, 1.0)
        level = np.where(good, np.log(safe), np.nan)
        return MinuteLevels(
            time, level, np.where(good, std / safe, np.nan), temperature, model
        )

    known = np.isfinite(temperature)
    count = known.sum(axis=1, keepdims=True)
    total = np.where(known, temperature, 0.0).sum(axis=1, keepdims=True)
    mean = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    levels = {
        FRICTION: logarithm("joint_friction", reference),
        TORQUE_CONSTANT: logarithm("joint_torque_constant", 1.0),
        STANDBY: MinuteLevels(
            time, matrix("standby"), matrix("standby_std"), mean, model
        ),
    }
    return str(rows["robot"][-1].as_py()), joints, levels


def _level(course: LevelCourse, j: int, joint: str | None) -> dict[str, Any]:
    """The level of a channel now, and on each day (UTC)."""
    quantity = course.quantity
    reference = float(course.reference[j])

    def entry(level: float, std: float) -> dict[str, Any]:
        ends = level + CONFIDENCE * std * np.array([0.0, -1.0, 1.0])
        value, *interval = (np.exp(ends) if quantity.relative else ends).tolist()
        return {"value": value, "interval": tuple(interval)}

    known = np.flatnonzero(np.isfinite(course.value[:, j]))
    days = []
    for run in equal_runs(course.time[known] // DAY):
        units = known[run]
        weight = course.std[units, j] ** -2.0
        mean = float(np.average(course.value[units, j], weights=weight))
        level = entry(mean, float(weight.sum() ** -0.5))
        days.append({"day": _day(course.time[units[0]]).isoformat(), **level})
    return {
        "joint": joint,
        "what": quantity.name,
        "unit": quantity.unit,
        "temperature": reference if np.isfinite(reference) else None,
        **entry(float(course.now[j]), float(course.now_std[j])),
        "days": days,
    }


def _stated(
    arm: str, joints: tuple[str | None, ...], course: LevelCourse, change: ChannelChange
) -> HealthChange:
    quantity = course.quantity
    channels = range(len(joints)) if change.channel is None else [change.channel]
    joint = None if change.channel is None else joints[change.channel]
    reference = course.reference[channels]
    known = reference[np.isfinite(reference)]
    temperature = float(known.mean()) if known.size else None
    ends = change.size + CONFIDENCE * change.std * np.array([0.0, -1.0, 1.0])
    size, low, high = (np.expm1(ends) if quantity.relative else ends).tolist()
    since = _day(course.time[change.onset])
    last = _day(course.time[-1])
    owner = arm if arm.lower().startswith("arm") else f"arm {arm}"
    if quantity is not STANDBY:
        owner = f"{'all joints' if joint is None else joint} of {owner}"
    amount = (
        f"{100 * size:+.0f} %" if quantity.relative else f"{size:+.1f} {quantity.unit}"
    )
    when = f"{since.day} {since:%B}" + (
        "" if since.year == last.year else f" {since.year}"
    )
    warm = f", at {temperature:.0f} degC" if temperature is not None else ""
    gradual = " (gradually)" if change.gradual else ""
    return HealthChange(
        arm=arm,
        joint=joint,
        what=quantity.name,
        since=since,
        gradual=change.gradual,
        size=size,
        interval=(low, high),
        temperature=temperature,
        words=f"{owner}: {quantity.name} {amount} since {when}{warm}{gradual}",
    )


def _day(time: float) -> date:
    return datetime.fromtimestamp(float(time), timezone.utc).date()
