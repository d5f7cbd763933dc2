# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Months of an arm's work as rows of the table `health`, without physics."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from test.learning.surrogate_work import DAY, SurrogateWork
from ur_energy_model.plant.schema import arrow_schema
from ur_energy_model.typing import Array

BEGIN = 1_767_225_600.0  # 2026-01-01
JOINTS = (
    "shoulder_pan_joint", "shoulder_lift_joint", "elbow_joint", "wrist_1_joint", "wrist_2_joint",
    "wrist_3_joint",
)  # fmt: skip
ELBOW = 2
REFERENCE = np.array([12.0, 13.0, 9.0, 2.0, 2.0, 2.0])
CONSTANT = np.array([0.1, 0.1, 0.1, 0.077, 0.077, 0.077])
CONSTANT_STD = 0.02  # relative, of one minute
RUN_IN = 60  # sessions after which the gears are run in

Injected = Callable[[float], Array]  # logarithm of factors on friction [n] by day


def health_table(
    seed: int,
    days: int,
    *,
    minutes: int = 15,
    friction: Injected | None = None,
    constant: Injected | None = None,
    standby: Callable[[float], float] | None = None,
    model: Callable[[float], tuple[str, float]] | None = None,
) -> pa.Table:
    """One session on every working day from BEGIN on, with injected changes by day.

    They are of the logarithms of friction and torque constants, and of standby power [W];
    `model` is the name of the model by day, and the logarithm of its friction over that
    of the first.
    """
    work = SurrogateWork(seed)
    random = np.random.default_rng([seed, 5])
    rows = []
    n = work.n
    for day in range(days):
        if day % 7 > 4:
            continue
        work.friction[:] = np.zeros(n) if friction is None else friction(float(day))
        shift = np.zeros(n) if constant is None else constant(float(day))
        name, apart = ("m0", 0.0) if model is None else model(float(day))
        extra = 0.0 if standby is None else standby(float(day))
        start = BEGIN + DAY * day + random.uniform(6.0, 14.0) * 3600.0
        offset = 0.01 * random.standard_normal(n)
        for entry in work.session(RUN_IN + day, start, minutes):
            minute = entry.minute
            scale = np.exp(minute.level - apart)
            measured = offset + shift + CONSTANT_STD * random.standard_normal(n)
            rows.append({
                "minute": round(1e6 * (minute.time - 60.0)),
                "source": f"s{day}",
                "robot": "ur5e",
                "model": name,
                "joints": list(JOINTS),
                "joint_moving": minute.moving_seconds.tolist(),
                "joint_temperature": minute.temperature.tolist(),
                "joint_friction": scale.tolist(),
                "joint_friction_std": (0.003 * scale).tolist(),
                "joint_friction_reference": (REFERENCE * np.exp(apart)).tolist(),
                "joint_torque_constant": (CONSTANT * np.exp(measured)).tolist(),
                "joint_torque_constant_std": (CONSTANT_STD * CONSTANT).tolist(),
                "standby": 30.0 + entry.standby + extra,
                "standby_std": 0.4,
            })  # fmt: skip
    return pa.Table.from_pylist(rows, arrow_schema("health"))


def elbow(size: float, since: float, until: float | None = None) -> Injected:
    """A factor 1 + size on the elbow's friction, from a day on, or gradually between two days."""

    def injected(day: float) -> Array:
        share = float(day >= since)
        if until is not None:
            share = float(np.clip((day - since) / (until - since), 0.0, 1.0))
        return np.log1p(size) * share * np.eye(len(JOINTS))[ELBOW]

    return injected
