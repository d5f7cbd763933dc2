# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""How well an arm's constants fit recorded samples: its torques, and its tool poses.

Each fit leaves free what a recording does not state: mounting, payload, reflected
inertias, tool. The fits are linear in these, so that none has a local minimum, and have
no priors: the arm that was recorded always fits. They also leave free what no setup can
be (gravity of any magnitude, payloads of any tensor); the gravity found shows an arm that
fits in numbers only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ur_energy_model.consistency.controller_torque import (
    BARE,
    GRAVITY,
    PAYLOAD,
    RowLayout,
    TorqueColumns,
    has_targets,
    torque_rows,
)
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.setup import MASS
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.typing import Array

TARGET_SAMPLES = 600
"""Noise-free samples of target_moment that are used; more of them decide nothing else."""
_THINNED = 4  # rows of filtered motion per row that is used: the filter passes 2.5 Hz
FILTERED_RATE = 12.5  # samples used of a second of filtered motion [Hz]
_ROUNDS = 6  # iterations of the joints' noise levels
_LEAST_NOISE = 1e-3  # smallest noise level, about the rounding in the controller [N m]
_DEPENDENT = 1e-9  # smaller eigenvalues of the scaled information are not determined
_LEAST_SCALE = 0.01
"""Least scale of a joint's torque, as a share of the largest torque of any joint."""


@dataclass(frozen=True)
class TorqueFit:
    """Torques of an arm with n joints, explained by its rigid bodies in any setup.

    Attributes:
        misfit: RMS residual of each joint over the scale of its torque [n].
        r2: explained share of the variance of each joint's torque [n].
        gravity: magnitude of the gravity found [m/s^2]; about 9.8 if the arm is this one.
        mass: mass of the payload found [kg].
        measured: whether the measured motion was used in place of recorded targets.
        samples: number of samples used; FILTERED_RATE a second of measured motion.
    """

    misfit: Array
    r2: Array
    gravity: float
    mass: float
    measured: bool
    samples: int


def torque_fit(windows: Sequence[Telemetry], robot: RobotDescription) -> TorqueFit | None:
    """target_moment, explained by an arm in any mounting and with any payload.

    Args:
        windows: samples with target_moment and the motion, of one payload.
        robot: the arm.

    Returns:
        Fit of the moments; None without a usable sample.

    Raises:
        MissingFieldError: target_moment is missing, or every pair of position and speed.
    """
    columns = TorqueColumns(robot)
    layout = RowLayout(columns.width)
    measured = not all(map(has_targets, windows))
    seconds = sum(float(part.time[-1] - part.time[0]) for part in windows if len(part))
    rate = TARGET_SAMPLES / max(seconds, 1.0)
    known = list[Array]()
    torques = list[Array]()
    for part in windows:
        for rows, _ in torque_rows(part, columns, rate):
            if measured:
                rows = rows[::_THINNED]
            if len(rows):
                known.append(rows[:, :, layout.columns])
                torques.append(rows[:, :, layout.torque])
    if not known:
        return None
    return _solved(np.concatenate(known), np.concatenate(torques), measured=measured)


def _solved(columns: Array, torque: Array, *, measured: bool) -> TorqueFit:
    """Weighted least squares with coefficients common to the joints.

    A joint is weighted by its residual, which is found in some rounds.

    Args:
        columns: columns of `TorqueColumns` [samples, n, p]; the torque of the bare arm has
            the coefficient 1.
        torque: torque [samples, n], N m.
        measured: whether the motion is the measured one.
    """
    first = BARE + 1  # the first of the free columns
    free = columns[:, :, first:]
    rest = torque - columns[:, :, BARE]
    by_joint = np.ascontiguousarray(np.swapaxes(free, 0, 1))
    grams = np.swapaxes(by_joint, 1, 2) @ by_joint
    right = np.einsum("jsp,sj->jp", by_joint, rest)
    largest = np.abs(torque).max(axis=0)
    scale = np.maximum(largest + _LEAST_SCALE * largest.max(), _LEAST_NOISE)
    noise = scale
    for _ in range(_ROUNDS):
        weights = noise**-2.0
        information = np.einsum("j,jpk->pk", weights, grams)
        size = np.sqrt(np.maximum(np.diag(information), 1e-300))
        values, vectors = np.linalg.eigh(information / np.outer(size, size))
        determined = values > _DEPENDENT * values[-1]
        basis = vectors[:, determined] / size[:, None]
        inverse = (basis / values[determined]) @ basis.T
        coefficients = inverse @ (weights @ right)
        residual = rest - free @ coefficients
        rms = np.sqrt(np.mean(residual**2, axis=0))
        noise = np.maximum(rms, _LEAST_NOISE)
    variance = np.maximum(torque.var(axis=0), _LEAST_NOISE**2)
    found = np.append(1.0, coefficients)
    return TorqueFit(
        misfit=rms / scale,
        r2=1.0 - rms**2 / variance,
        gravity=float(np.linalg.norm(found[GRAVITY])),
        mass=float(found[PAYLOAD][MASS]),
        measured=measured,
        samples=len(torque),
    )


# actual_TCP_pose, which the controller computes from the lengths of its arm and one tool.


def tool_scatter(robot: RobotDescription, q: Array, position: Array) -> float:
    """Scatter of the tool that an arm must have to be where the controller has its tool [m].

    The tool is a point fixed to the flange. For the arm that was recorded the scatter comes
    from its calibration alone (nominal lengths differ from calibrated ones by a millimetre
    or two), whatever the tool is.

    Args:
        robot: the arm, with the base frame of the controller.
        q: joint positions at different poses [poses, n], rad.
        position: position of the tool in the base frame [poses, 3], m.
    """
    links, _ = ArmDynamics(robot).frames(q)
    flange = links[:, -1]
    offset = position - flange[:, :3, 3]
    tool = np.einsum("pij,pi->pj", flange[:, :3, :3], offset)
    return float(np.sqrt(np.mean(np.sum((tool - tool.mean(axis=0)) ** 2, axis=1))))
