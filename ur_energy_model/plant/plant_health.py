"""Health of all arms of a history."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timezone
from typing import Any

import numpy as np
import pyarrow
import pyarrow.dataset

from ur_energy_model.energy.meter import CONFIDENCE
from ur_energy_model.learning.minute import MINUTE
from ur_energy_model.plant.arm_health import (
    FRICTION,
    STANDBY,
    TORQUE_CONSTANT,
    LevelChange,
    LevelCourse,
    MinuteLevels,
    Quantity,
    follow,
)
from ur_energy_model.plant.store import HistoryStore
from ur_energy_model.plant.store_files import StoreError
from ur_energy_model.typing import Array, Progress

# Minutes of one arm from the table `health` of a history.

COLUMNS = (
    "minute",
    "robot",
    "model",
    "joints",
    "joint_temperature",
    "joint_friction",
    "joint_friction_std",
    "joint_friction_reference",
    "joint_torque_constant",
    "joint_torque_constant_std",
    "standby",
    "standby_std",
)
"""Those that are needed."""


_SAME_MINUTE = 0.5 * MINUTE
"""Rows closer to each other are of the same minute [s]."""


@dataclass(frozen=True)
class ArmMinutes:
    """Levels of an arm with n joints, minute by minute.

    Attributes:
        robot: type of the arm.
        joints: names.
        friction: logarithm of friction at 0.5 rad/s, joint side, in N m [minutes, n].
        torque_constant: logarithm of torque per ampere, motor side, in N m/A [minutes, n].
        standby: standby power [minutes, 1], W.
    """

    robot: str
    joints: tuple[str, ...]
    friction: MinuteLevels
    torque_constant: MinuteLevels
    standby: MinuteLevels


def arm_minutes(rows: pyarrow.Table) -> ArmMinutes | None:
    """Minutes of one arm; None without any.

    Args:
        rows: of the arm, with COLUMNS, in any order. Those with another number of joints than the
            last one are left out.
    """
    if not rows.num_rows:
        return None
    rows = rows.sort_by("minute")
    joints = tuple(rows["joints"][-1].as_py())
    n = len(joints)
    same = np.array(rows["joints"].combine_chunks().value_lengths()) == n
    if not same.all():
        rows = rows.filter(same)
    time = _seconds(rows)
    once = np.diff(time, prepend=-np.inf) > _SAME_MINUTE
    if not once.all():  # sources that overlap
        rows = rows.filter(once)
        time = _seconds(rows)
    texts = np.array(rows["model"].to_pylist(), dtype=str)
    model = np.unique(texts, return_inverse=True)[1]

    def matrix(name: str) -> Array:
        values = rows[name].combine_chunks().flatten().to_numpy(zero_copy_only=False)
        return np.asarray(values, dtype=float).reshape(-1, n)

    def column(name: str) -> Array:
        return np.asarray(rows[name].to_numpy(), dtype=float)[:, None]

    temperature = matrix("joint_temperature")

    def logarithm(value: Array, std: Array) -> MinuteLevels:
        good = (value > 0) & (std >= 0)
        safe = np.where(good, value, 1.0)
        level = np.where(good, np.log(safe), np.nan)
        return MinuteLevels(time, level, np.where(good, std / safe, np.nan), temperature, model)

    reference = matrix("joint_friction_reference")
    known = np.isfinite(temperature)
    total = np.where(known, temperature, 0.0).sum(axis=1, keepdims=True)
    count = known.sum(axis=1, keepdims=True)
    mean = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    return ArmMinutes(
        robot=str(rows["robot"][-1].as_py()),
        joints=joints,
        friction=logarithm(
            matrix("joint_friction") * reference, matrix("joint_friction_std") * reference
        ),
        torque_constant=logarithm(
            matrix("joint_torque_constant"), matrix("joint_torque_constant_std")
        ),
        standby=MinuteLevels(time, column("standby"), column("standby_std"), mean, model),
    )


def _seconds(rows: pyarrow.Table) -> Array:
    """Begin of each minute [rows], s since 1970."""
    return np.asarray(rows["minute"].cast("int64").to_numpy() * 1e-6)


# Statements on the health of an arm: levels day by day, and changes in words.


@dataclass(frozen=True)
class HealthChange:
    """A change that is larger than its uncertainty.

    Attributes:
        arm: name.
        joint: name; None for a change of the whole arm.
        what: name of the quantity.
        since: day of its begin (UTC).
        gradual: whether the level changed gradually from then on.
        size: relative (0.18 for 18 % more); of standby power in W.
        interval: 95 % interval of the size (low, high).
        temperature: that both levels are stated at, degC; None where unknown.
        words: for people.
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

    def as_json(self) -> dict[str, Any]:
        """An entry of "changes"."""
        return {
            "arm": self.arm,
            "joint": self.joint,
            "what": self.what,
            "since": self.since.isoformat(),
            "gradual": self.gradual,
            "size": self.size,
            "interval": list(self.interval),
            "temperature": self.temperature,
            "words": self.words,
        }


@dataclass(frozen=True)
class ArmHealth:
    """Health of one arm.

    Attributes:
        arm: name.
        robot: type.
        joints: names.
        courses: levels of friction, torque constant and standby power.
        changes: in order of time.
    """

    arm: str
    robot: str
    joints: tuple[str, ...]
    courses: tuple[LevelCourse, ...]
    changes: tuple[HealthChange, ...]

    def as_json(self) -> dict[str, Any]:
        """An entry of "arms"."""
        levels = [
            entry
            for course in self.courses
            for j in range(course.value.shape[1])
            if (entry := self._level(course, j)) is not None
        ]
        return {"arm": self.arm, "robot": self.robot, "levels": levels}

    def _level(self, course: LevelCourse, j: int) -> dict[str, Any] | None:
        quantity = course.quantity
        if not np.isfinite(course.now[j]):
            return None
        return {
            "joint": None if quantity is STANDBY else self.joints[j],
            "what": quantity.name,
            "unit": quantity.unit,
            "temperature": _known(course.reference[j]),
            "value": _value(quantity, course.now[j]),
            "interval": _interval(quantity, course.now[j], course.now_std[j]),
            "days": [
                {
                    "day": day.isoformat(),
                    "value": _value(quantity, level),
                    "interval": _interval(quantity, level, std),
                }
                for day, level, std in daily(course, j)
            ],
        }


def arm_health(arm: str, minutes: ArmMinutes) -> ArmHealth:
    """Levels of an arm and their changes.

    Args:
        arm: name.
        minutes: of the arm.
    """
    courses = (
        follow(minutes.friction, FRICTION),
        follow(minutes.torque_constant, TORQUE_CONSTANT),
        follow(minutes.standby, STANDBY),
    )
    changes = [
        _stated(arm, minutes.joints, course, change)
        for course in courses
        for change in course.changes
    ]
    changes.sort(key=lambda change: change.since)
    return ArmHealth(arm, minutes.robot, minutes.joints, courses, tuple(changes))


def daily(course: LevelCourse, j: int) -> list[tuple[date, float, float]]:
    """Day (UTC), level at the reference temperature and its standard deviation of a channel."""
    level, std = course.value[:, j], course.std[:, j]
    days: dict[date, list[int]] = {}
    for unit in np.flatnonzero(np.isfinite(level)).tolist():
        days.setdefault(_day(course.units.time[unit]), []).append(unit)
    out = []
    for day, units in days.items():
        precision = np.square(1.0 / std[units])
        mean = float(precision @ level[units] / precision.sum())
        out.append((day, mean, float(precision.sum() ** -0.5)))
    return out


def _stated(
    arm: str, joints: Sequence[str], course: LevelCourse, change: LevelChange
) -> HealthChange:
    quantity, found = course.quantity, change.found
    joint = None if change.channel is None or quantity is STANDBY else joints[change.channel]
    since = _day(course.units.time[found.onset])
    reference = course.reference if change.channel is None else course.reference[[change.channel]]
    known = reference[np.isfinite(reference)]
    temperature = float(known.mean()) if known.size else None
    half = CONFIDENCE * found.std
    size, low, high = (
        _size(quantity, value) for value in (found.size, found.size - half, found.size + half)
    )
    last = _day(course.units.time[-1])
    when = f"{since.day} {since:%B}" + ("" if since.year == last.year else f" {since.year}")
    amount = f"{100 * size:+.0f} %" if quantity.relative else f"{size:+.1f} {quantity.unit}"
    warm = f", at {temperature:.0f} degC" if temperature is not None else ""
    owner = _owner(arm) if joint is None else f"{joint} of {_owner(arm)}"
    if joint is None and quantity is not STANDBY:
        owner = f"all joints of {_owner(arm)}"
    gradual = " (gradually)" if found.gradual else ""
    return HealthChange(
        arm=arm,
        joint=joint,
        what=quantity.name,
        since=since,
        gradual=found.gradual,
        size=size,
        interval=(low, high),
        temperature=temperature,
        words=f"{owner}: {quantity.name} {amount} since {when}{warm}{gradual}",
    )


def _owner(arm: str) -> str:
    """The arm in words."""
    return arm if arm.lower().startswith("arm") else f"arm {arm}"


def _day(time: float) -> date:
    return datetime.fromtimestamp(float(time), timezone.utc).date()


def _known(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _size(quantity: Quantity, change: float) -> float:
    return math.expm1(change) if quantity.relative else float(change)


def _value(quantity: Quantity, level: float) -> float:
    return math.exp(level) if quantity.relative else float(level)


def _interval(quantity: Quantity, level: float, std: float) -> tuple[float, float]:
    half = CONFIDENCE * std
    return _value(quantity, level - half), _value(quantity, level + half)


TABLE = "health"


def plant_health(
    address: str, *, progress: Progress | None = None
) -> tuple[tuple[ArmHealth, ...], tuple[str, ...]]:
    """Health of all arms, in order of their names; one arm is in memory at a time.

    With it, what is wrong with the store, see `HistoryStore.holdings`.

    Args:
        address: of the store.
        progress: called with the finished fraction and text.

    Raises:
        StoreError: the store cannot be read, or has no health of any arm.
    """
    store = HistoryStore(address)
    holdings = store.holdings()
    rows = store.rows(TABLE, holdings)
    arms = sorted({str(file.arm) for file in holdings.files[TABLE]})
    if not arms:
        raise StoreError(
            address,
            "holds no minutes of motion or standstill",
            "add recordings with `ur_energy history add`",
        )
    out = []
    for number, arm in enumerate(arms):
        if progress is not None:
            progress(number / len(arms), f"{arm}: {number + 1} of {len(arms)} arms")
        minutes = arm_minutes(_rows_of(rows, arm))
        if minutes is not None:
            out.append(arm_health(arm, minutes))
    return tuple(out), holdings.warnings


def _rows_of(rows: pyarrow.dataset.Dataset, arm: str) -> pyarrow.Table:
    return rows.to_table(columns=list(COLUMNS), filter=pyarrow.dataset.field("arm") == arm)
