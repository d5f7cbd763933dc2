# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Health of all arms of a history: levels day by day, and the changes in them in words.

Levels are taken at equal temperature over a unit of work, see `level_changes`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timezone
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from ur_energy_model.energy.meter import CONFIDENCE
from ur_energy_model.identification.minute import MINUTE
from ur_energy_model.plant.holdings import Holdings
from ur_energy_model.plant.level_changes import (
    DAY,
    FRICTION,
    STANDBY,
    TORQUE_CONSTANT,
    ChannelChange,
    HealthQuantity,
    LevelCourse,
    MinuteLevels,
    follow,
)
from ur_energy_model.plant.store import HistoryStore
from ur_energy_model.plant.store_files import StoreError
from ur_energy_model.telemetry.samples import equal_runs
from ur_energy_model.typing import Array, Progress

COLUMNS = (
    "minute", "robot", "model", "joints", "joint_temperature", "joint_friction",
    "joint_friction_std", "joint_friction_reference", "joint_torque_constant",
    "joint_torque_constant_std", "standby", "standby_std",
)  # fmt: skip
"""Columns of the table `health` that levels are made from."""
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
        size: size of the change, relative (0.18 for 18 % more), or in W.
        interval: 95 % interval of the size.
        temperature: temperature of both levels [degC]; None where it is unknown.
        words: the change as one line of text.
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
    """Health of one arm.

    Attributes:
        arm: name of the arm.
        robot: type of the arm, such as ur5e.
        levels: levels of each joint and quantity, as in the JSON of `ur_energy history
            health`.
        changes: changes in order of time.
    """

    arm: str
    robot: str
    levels: tuple[dict[str, Any], ...]
    changes: tuple[HealthChange, ...]


def plant_health(
    address: str, *, progress: Progress | None = None
) -> tuple[tuple[ArmHealth, ...], Holdings]:
    """Health of all arms of a history store. One arm is in memory at a time.

    Args:
        address: address of the store.
        progress: called with the share that is done, and a text.

    Returns:
        The arms in order of their names, and what the store holds.

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
        health = arm_health(arm, own)
        if health is not None:
            found.append(health)
    return tuple(found), holdings


def arm_health(arm: str, rows: pa.Table) -> ArmHealth | None:
    """Levels of an arm, and the changes in them.

    Args:
        arm: name of the arm.
        rows: COLUMNS of the table `health`.

    Returns:
        Health of the arm; None without any row.
    """
    if not rows.num_rows:
        return None
    robot, joints, minutes = minute_levels(rows)
    levels = []
    changes = []
    for quantity, of_minutes in minutes.items():
        course = follow(of_minutes, quantity)
        owners = (None,) if quantity is STANDBY else joints
        for channel, joint in enumerate(owners):
            if np.isfinite(course.now[channel]):
                levels.append(_level(course, channel, joint))
        changes += [_stated(arm, owners, course, change) for change in course.changes]
    changes.sort(key=lambda change: change.since)
    return ArmHealth(arm, robot, tuple(levels), tuple(changes))


def minute_levels(
    rows: pa.Table,
) -> tuple[str, tuple[str, ...], dict[HealthQuantity, MinuteLevels]]:
    """Type and joints of an arm, and its levels minute by minute.

    Levels of friction are logarithms of the torque at 0.5 rad/s, joint side, in N m
    [minutes, n]; levels of the torque constant are logarithms, motor side, in N m/A
    [minutes, n]; levels of the standby power are in W [minutes, 1]. Rows with another
    number of joints than the last row are left out; one row of each minute is used.

    Args:
        rows: COLUMNS of the table `health`, at least one row.

    Returns:
        Type of the arm, names of its joints, and levels by quantity.
    """
    rows = rows.sort_by("minute")
    joints = tuple(rows["joints"][-1].as_py())
    rows = rows.filter(pc.equal(pc.list_value_length(rows["joints"]), len(joints)))
    time = rows["minute"].cast("int64").to_numpy() * 1e-6
    once = np.diff(time, prepend=-np.inf) > _SAME_MINUTE
    rows = rows.filter(once)
    time = time[once]
    names = np.array(rows["model"].to_pylist(), dtype=str)
    _, model = np.unique(names, return_inverse=True)
    temperature = _matrix(rows, "joint_temperature")

    def logarithm(name: str, unit: Array | float) -> MinuteLevels:
        """Logarithms of a column times its unit; NaN where it is not positive."""
        value = _matrix(rows, name) * unit
        std = _matrix(rows, f"{name}_std") * unit
        good = (value > 0) & (std >= 0)
        safe = np.where(good, value, 1.0)
        level = np.where(good, np.log(safe), np.nan)
        relative_std = np.where(good, std / safe, np.nan)
        return MinuteLevels(time, level, relative_std, temperature, model)

    standby = _matrix(rows, "standby")
    standby_std = _matrix(rows, "standby_std")
    mean = _mean_of_joints(temperature)
    levels = {
        FRICTION: logarithm("joint_friction", _matrix(rows, "joint_friction_reference")),
        TORQUE_CONSTANT: logarithm("joint_torque_constant", 1.0),
        STANDBY: MinuteLevels(time, standby, standby_std, mean, model),
    }
    return str(rows["robot"][-1].as_py()), joints, levels


def _matrix(rows: pa.Table, name: str) -> Array:
    """A column of numbers or of lists of equal length as an array [rows, 1 or n]."""
    values = rows[name].combine_chunks()
    flat = values.flatten() if pa.types.is_list(values.type) else values
    numbers = np.asarray(flat.to_numpy(zero_copy_only=False), dtype=float)
    return numbers.reshape(len(rows), -1)


def _mean_of_joints(temperature: Array) -> Array:
    """Mean [minutes, 1] of the known temperatures [minutes, n]; NaN where none is known."""
    known = np.isfinite(temperature)
    count = known.sum(axis=1, keepdims=True)
    total = np.where(known, temperature, 0.0).sum(axis=1, keepdims=True)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def _level(course: LevelCourse, channel: int, joint: str | None) -> dict[str, Any]:
    """The level of a channel now and on each UTC day, as in the JSON of the command.

    Args:
        course: the quantity over days.
        channel: number of the channel.
        joint: name of its joint; None for the whole arm.
    """
    quantity = course.quantity
    reference = float(course.reference[channel])

    def entry(level: float, std: float) -> dict[str, Any]:
        value, low, high = _with_interval(level, std)
        if quantity.relative:
            value, low, high = np.exp([value, low, high]).tolist()
        return {"value": value, "interval": (low, high)}

    known = np.flatnonzero(np.isfinite(course.value[:, channel]))
    days = []
    for run in equal_runs(course.time[known] // DAY):
        units = known[run]
        weight = course.std[units, channel] ** -2.0
        mean = float(np.average(course.value[units, channel], weights=weight))
        level = entry(mean, float(weight.sum() ** -0.5))
        days.append({"day": _day(course.time[units[0]]).isoformat(), **level})
    return {
        "joint": joint,
        "what": quantity.name,
        "unit": quantity.unit,
        "temperature": reference if np.isfinite(reference) else None,
        **entry(float(course.now[channel]), float(course.now_std[channel])),
        "days": days,
    }


def _stated(
    arm: str, owners: tuple[str | None, ...], course: LevelCourse, change: ChannelChange
) -> HealthChange:
    """A change of an arm, in numbers and in words.

    Args:
        arm: name of the arm.
        owners: names of the joints by channel; None for the whole arm.
        course: the quantity over days.
        change: change of one channel of the quantity, or of all.
    """
    quantity = course.quantity
    channels = range(len(owners)) if change.channel is None else [change.channel]
    joint = None if change.channel is None else owners[change.channel]
    reference = course.reference[channels]
    known = reference[np.isfinite(reference)]
    temperature = float(known.mean()) if known.size else None
    size, low, high = _with_interval(change.size, change.std)
    amount = f"{size:+.1f} {quantity.unit}"
    if quantity.relative:
        size, low, high = np.expm1([size, low, high]).tolist()
        amount = f"{100 * size:+.0f} %"
    since = _day(course.time[change.onset])
    when = f"{since.day} {since:%B}"
    if since.year != _day(course.time[-1]).year:
        when += f" {since.year}"
    owner = arm if arm.lower().startswith("arm") else f"arm {arm}"
    if quantity is not STANDBY:
        owner = f"{joint or 'all joints'} of {owner}"
    words = f"{owner}: {quantity.name} {amount} since {when}"
    if temperature is not None:
        words += f", at {temperature:.0f} degC"
    if change.gradual:
        words += " (gradually)"
    return HealthChange(
        arm=arm,
        joint=joint,
        what=quantity.name,
        since=since,
        gradual=change.gradual,
        size=size,
        interval=(low, high),
        temperature=temperature,
        words=words,
    )


def _with_interval(value: float, std: float) -> tuple[float, float, float]:
    """A value, and the ends of its 95 % interval."""
    return value, value - CONFIDENCE * std, value + CONFIDENCE * std


def _day(time: float) -> date:
    """UTC day of a time [s since 1970]."""
    return datetime.fromtimestamp(float(time), timezone.utc).date()
