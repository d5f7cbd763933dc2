"""Health of all arms of a history: levels day by day, and changes in words."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timezone
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from ur_energy_model.energy.meter import CONFIDENCE
from ur_energy_model.learning.minute import MINUTE
from ur_energy_model.plant.arm_health import (
    DAY,
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
from ur_energy_model.telemetry.samples import equal_runs
from ur_energy_model.typing import Array, Progress

TABLE = "health"
COLUMNS = (
    "minute", "robot", "model", "joints", "joint_temperature", "joint_friction",
    "joint_friction_std", "joint_friction_reference", "joint_torque_constant",
    "joint_torque_constant_std", "standby", "standby_std",
)  # fmt: skip
"""Those that are needed."""
_SAME_MINUTE = 0.5 * MINUTE
"""Rows closer to each other are of the same minute [s]."""


@dataclass(frozen=True)
class HealthChange:
    """A change that is larger than its uncertainty; of the whole arm if `joint` is None.

    `since` is the UTC day of its begin, `size` relative (0.18 for 18 % more) or in W, `interval`
    its 95 % interval, `temperature` that of both levels, degC, None where unknown.
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
) -> tuple[tuple[ArmHealth, ...], tuple[str, ...]]:
    """Health of all arms, in order of their names, and what is wrong with the store.

    One arm is in memory at a time.

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
    found = []
    for number, arm in enumerate(arms):
        if progress is not None:
            progress(number / len(arms), f"{arm}: {number + 1} of {len(arms)} arms")
        own = rows.to_table(columns=list(COLUMNS), filter=ds.field("arm") == arm)
        found.append(arm_health(arm, own))
    return tuple(each for each in found if each is not None), holdings.warnings


def arm_health(arm: str, rows: pa.Table) -> ArmHealth | None:
    """Levels of an arm and their changes, from COLUMNS of `health`; None without any minute."""
    if not rows.num_rows:
        return None
    robot, joints, minutes = minute_levels(rows)
    levels, changes = [], []
    for quantity, each in minutes.items():
        course = follow(each, quantity)
        of = (None,) if quantity is STANDBY else joints
        levels += [
            _level(course, j, joint) for j, joint in enumerate(of) if np.isfinite(course.now[j])
        ]
        changes += [_stated(arm, of, course, change) for change in course.changes]
    changes.sort(key=lambda change: change.since)
    return ArmHealth(arm, robot, tuple(levels), tuple(changes))


def minute_levels(
    rows: pa.Table,
) -> tuple[str, tuple[str, ...], dict[Quantity, MinuteLevels]]:
    """Type and joints of an arm, and its levels minute by minute, from one or more rows.

    Friction is that at 0.5 rad/s, joint side, as its logarithm in N m [minutes, n]; torque per
    ampere, motor side, as its logarithm in N m/A [minutes, n]; standby power in W [minutes, 1].
    Rows with another number of joints than the last one, and all but one of a minute, are left out.
    """
    rows = rows.sort_by("minute")
    joints = tuple(rows["joints"][-1].as_py())
    rows = rows.filter(pc.equal(pc.list_value_length(rows["joints"]), len(joints)))
    time = rows["minute"].cast("int64").to_numpy() * 1e-6
    once = np.diff(time, prepend=-np.inf) > _SAME_MINUTE
    rows, time = rows.filter(once), time[once]
    model = np.unique(np.array(rows["model"].to_pylist(), dtype=str), return_inverse=True)[1]

    def matrix(name: str) -> Array:
        values = rows[name].combine_chunks()
        flat = values.flatten() if pa.types.is_list(values.type) else values
        return np.asarray(flat.to_numpy(zero_copy_only=False), dtype=float).reshape(len(rows), -1)

    temperature, reference = matrix("joint_temperature"), matrix("joint_friction_reference")

    def logarithm(name: str, unit: Array | float) -> MinuteLevels:
        value, std = matrix(name) * unit, matrix(f"{name}_std") * unit
        good = (value > 0) & (std >= 0)
        safe = np.where(good, value, 1.0)
        level = np.where(good, np.log(safe), np.nan)
        return MinuteLevels(time, level, np.where(good, std / safe, np.nan), temperature, model)

    known = np.isfinite(temperature)
    total, count = np.where(known, temperature, 0.0).sum(axis=1), known.sum(axis=1)
    mean = np.where(count > 0, total / np.maximum(count, 1), np.nan)[:, None]
    levels = {
        FRICTION: logarithm("joint_friction", reference),
        TORQUE_CONSTANT: logarithm("joint_torque_constant", 1.0),
        STANDBY: MinuteLevels(time, matrix("standby"), matrix("standby_std"), mean, model),
    }
    return str(rows["robot"][-1].as_py()), joints, levels


def _level(course: LevelCourse, j: int, joint: str | None) -> dict[str, Any]:
    """The level of a channel now, and on each day (UTC)."""
    quantity, reference = course.quantity, float(course.reference[j])

    def entry(level: float, std: float) -> dict[str, Any]:
        ends = level + CONFIDENCE * std * np.array([0.0, -1.0, 1.0])
        value, *interval = (np.exp(ends) if quantity.relative else ends).tolist()
        return {"value": value, "interval": tuple(interval)}

    known = np.flatnonzero(np.isfinite(course.value[:, j]))
    days = []
    for run in equal_runs(course.time[known] // DAY):
        units = known[run]
        weight = course.std[units, j] ** -2.0
        level = entry(float(np.average(course.value[units, j], weights=weight)),
                      float(weight.sum() ** -0.5))  # fmt: skip
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
    arm: str, joints: tuple[str | None, ...], course: LevelCourse, change: LevelChange
) -> HealthChange:
    quantity = course.quantity
    channels = range(len(joints)) if change.channel is None else [change.channel]
    joint = None if change.channel is None else joints[change.channel]
    reference = course.reference[channels]
    known = reference[np.isfinite(reference)]
    temperature = float(known.mean()) if known.size else None
    ends = change.size + CONFIDENCE * change.std * np.array([0.0, -1.0, 1.0])
    size, low, high = (np.expm1(ends) if quantity.relative else ends).tolist()
    since, last = _day(course.time[change.onset]), _day(course.time[-1])
    owner = arm if arm.lower().startswith("arm") else f"arm {arm}"
    if quantity is not STANDBY:
        owner = f"{'all joints' if joint is None else joint} of {owner}"
    amount = f"{100 * size:+.0f} %" if quantity.relative else f"{size:+.1f} {quantity.unit}"
    when = f"{since.day} {since:%B}" + ("" if since.year == last.year else f" {since.year}")
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
