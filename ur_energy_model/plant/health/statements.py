"""Statements on the health of an arm: levels day by day, and changes in words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timezone
from typing import Any

import numpy as np

from ur_energy_model.energy.meter import CONFIDENCE
from ur_energy_model.plant.health.arm_health import LevelChange, LevelCourse, follow
from ur_energy_model.plant.health.quantities import (
    FRICTION,
    STANDBY,
    TORQUE_CONSTANT,
    Quantity,
)
from ur_energy_model.plant.health.stored_minutes import ArmMinutes


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
