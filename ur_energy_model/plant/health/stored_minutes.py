"""Minutes of one arm from the table `health` of a history."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ur_energy_model.learning.minute import MINUTE
from ur_energy_model.plant.health.levels import MinuteLevels
from ur_energy_model.typing import Array

if TYPE_CHECKING:
    import pyarrow

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
