# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""What others do with the same recordings: current from motion, and power from current and speed.

All of them are ordinary least squares and state no intervals. They are given the
mounting, the payload and the filters that our identification worked out.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from test.benchmarks.peers.recordings import Part, Recorded
from ur_energy_model.identification.base_parameters import (
    FullRegressor,
    regroup,
    snapped_to_axis,
)
from ur_energy_model.identification.null_models import ANCHOR_SECONDS, supply_columns
from ur_energy_model.identification.power_structures import PowerRows, power_columns
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.typing import Array

SMOOTHING = 1e-3
"""Coulomb friction as tanh(qd / 0.001 rad/s) (Raviola et al. 2021) [rad/s]."""
NEGLIGIBLE = 1e-8  # singular values below this share of the largest are rounding
# angle between gravities up to which base parameters hold
SAME_MOUNTING = np.radians(1.0)

CurrentMethod: TypeAlias = Callable[[Recorded, Sequence[Recorded]], list[Array | None]]
"""Currents of recordings from one that was fitted [samples, n], as `Recorded.current` has them.

None where the method does not apply.
"""


def solve(columns: Array, values: Array) -> Array:
    """Least squares [k] of values [samples] over columns [samples, k], of least norm."""
    return np.asarray(np.linalg.lstsq(columns, values, rcond=NEGLIGIBLE)[0])


RIDGES = tuple(np.geomspace(1e-4, 1e2, 13))
"""Candidate weights of the squared coefficients, over the number of samples."""
FOLDS = 5  # stretches of time by which the weight is chosen


def ridge(columns: Array, values: Array) -> Array:
    """Ridge regression [k] of values [samples] over columns [samples, k], the first one constant.

    Columns are scaled to the same variance; the weight is that of the least held-out
    error.
    """
    scale = np.append(1.0, np.maximum(columns[:, 1:].std(axis=0), 1e-12))
    mean = np.append(0.0, columns[:, 1:].mean(axis=0))
    scaled = (columns - mean) / scale

    def fit(rows: Array, own: Array, weight: float) -> Array:
        penalty = weight * len(rows) * np.diag(np.append(0.0, np.ones(rows.shape[1] - 1)))
        return np.asarray(np.linalg.solve(rows.T @ rows + penalty, rows.T @ own))

    fold = np.arange(len(values)) * FOLDS // len(values)
    errors = [
        sum(
            float(
                np.square(
                    scaled[fold == k] @ fit(scaled[fold != k], values[fold != k], weight)
                    - values[fold == k]
                ).sum()
            )
            for k in range(FOLDS)
        )
        for weight in RIDGES
    ]
    found = fit(scaled, values, RIDGES[int(np.argmin(errors))]) / scale
    found[0] -= mean[1:] @ found[1:]
    return found


def per_joint(columns: Callable[[Part], Array]) -> CurrentMethod:
    """Every joint's current by a regression of its own, on columns of a part [samples, n, k]."""

    def predict(train: Recorded, judged: Sequence[Recorded]) -> list[Array | None]:
        fitted = train.filtered(columns)
        found = [solve(fitted[:, j], train.current[:, j]) for j in range(fitted.shape[1])]
        return [
            np.einsum("snk,nk->sn", each.filtered(columns), np.array(found))
            for each in judged
        ]

    return predict


def twenty_lines(part: Part) -> Array:
    """qdd, qd, tanh, torque of the nominal links, 1."""
    qd = part.motion.qd
    qdd = part.motion.qdd
    columns = [qdd, qd, np.tanh(qd / SMOOTHING), part.link_torque, np.ones_like(qd)]
    return np.stack(columns, axis=2)


def six_terms(train: Recorded, judged: Sequence[Recorded]) -> list[Array | None]:
    """The null model of identification: target_moment, 1 and friction, scaled on the first 3 s."""

    def columns(part: Part) -> Array:
        qd = part.motion.qd
        moment = part.motion.moment
        sign = np.sign(qd) * (np.abs(qd) > SMOOTHING)
        friction = (qd, sign, sign * np.sqrt(np.abs(qd)), sign * np.abs(moment))
        return np.stack([moment, np.ones_like(qd), *friction], axis=2)

    if not all(
        np.isfinite(part.motion.moment).all()
        for each in (train, *judged)
        for part in each.parts
    ):
        return [None] * len(judged)
    fitted = train.filtered(columns)
    out = list[Array | None]()
    found = [
        solve(fitted[use, j], train.current[use, j])
        for j, use in enumerate(train.moving.T)
    ]
    for each in judged:
        time = each.inside(lambda part: part.motion.time)
        rows = each.filtered(columns)
        predicted = np.empty_like(each.current)
        for j, own in enumerate(found):
            rest = rows[:, j, :2] @ own[:2]
            friction = rows[:, j, 2:] @ own[2:]
            seconds = np.cumsum(each.moving[:, j]) * np.median(np.diff(time))
            first = each.moving[:, j] & (seconds <= ANCHOR_SECONDS)
            known = friction[first]
            shown = (each.current[:, j] - rest)[first]
            scale = known @ shown / (known @ known) if known @ known > 0 else 1.0
            predicted[:, j] = rest + scale * friction
        out.append(predicted)
    return out


def ecbot_currents(part: Part) -> Array:
    """EcBot, eq. 9-12: masses known, tensors of this and the later links unknown, friction."""
    motion = part.motion
    n = motion.q.shape[1]
    regressor = part.bare.regressor(motion.q, motion.qd, motion.qdd).reshape(-1, n, n, 10)
    nominal = part.bare.parameters().reshape(n, 10)
    known = (
        np.einsum("snlk,lk->sn", regressor[..., :4], nominal[:, :4]) + part.payload_torque
    )
    tensors = regressor[..., 4:].reshape(-1, n, 6 * n)
    rest = np.stack([known, motion.qd, np.tanh(motion.qd / SMOOTHING)], axis=2)
    return np.concatenate([rest, tensors], axis=2)


def base_parameters(train: Recorded, judged: Sequence[Recorded]) -> list[Array | None]:
    """Base parameters of the whole arm from torque = N k_t i, k_t as in the robot file.

    Raviola et al. (RAAD 2021, sec. 2) and Machines 2024, 12(9), 595, sec. 3: ordinary
    least squares over all joints. Where the mounting is another one they do not hold.
    """
    full = FullRegressor(train.robot, snapped_to_axis(train.gravity))
    base = regroup(full).base
    per_ampere = torque_per_ampere(train.robot)

    def columns(part: Part) -> Array:
        motion = part.motion
        return full(motion.q, motion.qd, motion.qdd).at(base).values

    stacked = train.filtered(columns)
    torque = train.current * per_ampere - train.filtered(lambda part: part.payload_torque)
    found = solve(stacked.reshape(-1, stacked.shape[2]), torque.ravel())
    return [
        (
            other.filtered(columns) @ found
            + other.filtered(lambda part: part.payload_torque)
        )
        / per_ampere
        if same_mounting(train, other)
        else None
        for other in judged
    ]


def torque_per_ampere(robot: RobotDescription) -> Array:
    """N k_t of the robot file, joint side [n], N m/A."""
    return np.asarray(robot.gear_ratio * robot.torque_constant)


def same_mounting(one: Recorded, other: Recorded) -> bool:
    """Whether two arms stand alike."""
    a, b = (
        recording.gravity / np.linalg.norm(recording.gravity)
        for recording in (one, other)
    )
    return bool(np.arccos(np.clip(a @ b, -1.0, 1.0)) < SAME_MOUNTING)


ENVIRONMENT = Path(__file__).resolve().parents[3] / "build" / "peers"
"""Of figaroh 1.0.2 with pin 4.1.0 and numpy 2.4.6, whose dependencies are its own; made by hand."""


def python_with_figaroh() -> Path | None:
    """A Python that can import figaroh; None without one."""
    if find_spec("figaroh") is not None:
        return Path(sys.executable)
    python = ENVIRONMENT / "bin" / "python"
    return python if python.exists() else None


def run_figaroh(python: Path, data: dict[str, Any]) -> list[Array]:
    """The torques of the recordings from 1, by figaroh_script.py."""
    script = Path(__file__).with_name("figaroh_script.py")
    with tempfile.TemporaryDirectory() as folder:
        given, result = (Path(folder) / name for name in ("in.npz", "out.npz"))
        np.savez(given, **data)
        command = [python, script, given, result]
        subprocess.run(command, check=True, capture_output=True, timeout=600.0)
        with np.load(result) as torques:
            return [torques[f"torque_{k + 1}"] for k in range(len(torques.files))]


def figaroh(python: Path) -> CurrentMethod:
    """Base parameters by figaroh from torque = N k_t i, k_t as in the robot file."""

    def whole(recording: Recorded, columns: Callable[[Part], Array]) -> Array:
        return np.concatenate([columns(part) for part in recording.parts])

    def predict(train: Recorded, judged: Sequence[Recorded]) -> list[Array | None]:
        per_ampere = torque_per_ampere(train.robot)
        alike = [other for other in judged if same_mounting(train, other)]
        currents = whole(train, lambda part: part.motion.current)
        data: dict[str, Any] = {
            "robot": train.robot.name,
            "gravity": snapped_to_axis(train.gravity),
            "torque": currents * per_ampere
            - whole(train, lambda part: part.payload_torque),
        }
        for k, recording in enumerate((train, *alike)):
            data[f"q_{k}"] = whole(recording, lambda part: part.motion.q)
            data[f"qdd_{k}"] = whole(recording, lambda part: part.motion.qdd)
            qd = whole(recording, lambda part: part.motion.qd)
            # rest has no sign
            data[f"qd_{k}"] = np.where(np.abs(qd) < SMOOTHING, 0.0, qd)
        torques = run_figaroh(python, data)
        found: list[Array | None] = [None] * len(judged)
        for other, torque in zip(alike, torques, strict=True):
            lengths = [len(part.motion) for part in other.parts]
            pieces = iter(np.split(torque, np.cumsum(lengths)[:-1]))

            def torque_of(part: Any, rest: Any = pieces) -> Any:
                return next(rest) + part.payload_torque

            filtered = other.filtered(torque_of)
            found[judged.index(other)] = filtered / per_ampere
        return found

    return predict


def current_methods() -> dict[str, CurrentMethod]:
    """Those of others by name; figaroh where it is installed, else base parameters in its place."""
    python = python_with_figaroh()
    return {
        "least squares": per_joint(twenty_lines),
        "six terms": six_terms,
        "EcBot": per_joint(ecbot_currents),
        **(
            {"base parameters": base_parameters}
            if python is None
            else {"figaroh": figaroh(python)}
        ),
    }


def three_columns(rows: PowerRows, robot: RobotDescription) -> Array:
    """1, sum R i^2, sum k_t N qd i, R and k_t as in the robot file."""
    return supply_columns(robot, rows.qd, rows.current)


def ecbot_columns(rows: PowerRows, robot: RobotDescription) -> Array:
    """EcBot, eq. 13-21: 1 and, for each joint, i^2, qd i, |i| and i di/dt (4 n + 1)."""
    every = power_columns(rows, robot.gear_ratio, robot.torque_constant)
    return every[:, : 4 * robot.dof + 1]


def joint_columns(rows: PowerRows, robot: RobotDescription) -> Array:
    """1 and, for each joint, i^2 and qd i (2 n + 1)."""
    return ecbot_columns(rows, robot)[:, : 2 * robot.dof + 1]


def link_torque(recording: Recorded, rows: PowerRows) -> Array:
    """Torque of links and payload at samples of the supply [samples, n], N m.

    It is interpolated between the filtered motions; before, between and after them the
    arm stands still.
    """
    time = np.concatenate([part.motion.time for part in recording.parts])
    torque = np.concatenate([part.link_torque for part in recording.parts])
    order = np.argsort(time, kind="stable")
    columns = [np.interp(rows.time, time[order], each[order]) for each in torque.T]
    return np.stack(columns, axis=1)


POWERS = {
    "three coefficients": three_columns,
    "ridge": joint_columns,
    "EcBot": ecbot_columns,
}
"""Columns [samples, k] of a regression of the power at the supply, by name of the method."""
SOLVERS = {"ridge": ridge}
"""Regressions other than `solve`, by name of the method."""
