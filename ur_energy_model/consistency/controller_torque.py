# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""target_moment as a product of known columns and few unknowns: the columns, and rows of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ur_energy_model.low_pass import low_pass
from ur_energy_model.model import setup
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.setup import Setup
from ur_energy_model.telemetry.samples import Telemetry, time_blocks
from ur_energy_model.telemetry.usable_samples import resampled_runs, usable_samples
from ur_energy_model.typing import Array

# The controller's torque as columns. target_moment is the controller's own frictionless
# inverse dynamics (Clochiatti et al. 2024, eq. 2 and 7). In the mounting's gravity g,
# with a payload of ten parameters p on the flange and reflected motor inertias J it is,
# sample by sample, torque = bare(q, qd, qdd) + G(q) g + Y(q, qd, qdd) p + sum_k g_k
# Y_k(q) p[:4] + J qdd bilinear in g and p. With the products g_k p as separate unknowns
# it is linear, so any number of samples reduces to one Gram matrix per joint, on which
# any setup is evaluated cheaply.

_BODY = setup.COUNT  # number of parameters of a payload
_STATIC = setup.STATIC.stop  # number of these parameters that gravity acts on
BARE = 0
GRAVITY = slice(1, 4)
PAYLOAD = slice(4, 4 + _BODY)
_PRODUCTS = slice(PAYLOAD.stop, PAYLOAD.stop + 3 * _STATIC)
"""Places of the columns: bare arm without gravity, gravity [3], payload [10], and products of
gravity with the payload's mass and first moments [12]. The common unknowns follow."""


@dataclass(frozen=True)
class TorqueColumns:
    """Columns of the joint torques of one arm in any setup.

    Attributes:
        robot: the arm, n joints.
        tensors: whether the six tensor entries of every moving link are unknowns, too
            (deviations from the robot file).
    """

    robot: RobotDescription
    tensors: bool = False

    @property
    def common(self) -> int:
        """Number of unknowns that all setups share: reflected inertias, and tensors if asked."""
        return self.robot.dof * (7 if self.tensors else 1)

    @property
    def width(self) -> int:
        """Number of columns."""
        return _PRODUCTS.stop + self.common

    @cached_property
    def _dynamics(self) -> ArmDynamics:
        """The arm without gravity."""
        return ArmDynamics(self.robot, Setup(gravity=np.zeros(3)))

    def __call__(self, q: Array, qd: Array, qdd: Array) -> Array:
        """Columns of a motion; multiplied with `coefficients` they give joint torques in N m.

        Args:
            q: joint positions [samples, n], rad.
            qd: joint velocities [samples, n], rad/s.
            qdd: joint accelerations [samples, n], rad/s^2.

        Returns:
            Columns [samples, n, width].
        """
        n = self.robot.dof
        arm = self._dynamics
        regressor = arm.regressor(q, qd, qdd)
        gravity, flange_weight = arm.weight_regressors(q)
        parts = [
            (regressor @ arm.parameters())[:, :, None],
            gravity,
            regressor[:, :, -_BODY:],
            flange_weight.reshape(len(q), n, 3 * _STATIC),
            np.eye(n)[None] * qdd[:, None, :],
        ]
        if self.tensors:
            own = regressor.reshape(len(q), n, n, _BODY)[..., setup.TENSOR]
            parts.append(own.reshape(len(q), n, 6 * n))
        return np.concatenate(parts, axis=2)

    def coefficients(self, gravity: Array, payload: Array, common: Array) -> Array:
        """Coefficients of the columns in a setup [width].

        Args:
            gravity: gravity in the base frame [3], m/s^2.
            payload: ten parameters of the body on the flange [10].
            common: reflected inertias, joint side [n], kg m^2, and with `tensors` the
                deviations of the link tensors [6 n], kg m^2.
        """
        products = np.outer(gravity, payload[setup.STATIC]).ravel()
        return np.concatenate([np.ones(1), gravity, payload, products, common])

    def slopes(self, gravity: Array, payload: Array, changes: Array) -> Array:
        """Derivatives of `coefficients` by common unknowns, gravity and payload.

        Args:
            gravity: gravity in the base frame [3], m/s^2.
            payload: ten parameters of the body on the flange [10].
            changes: derivatives of these parameters by the k unknowns of the payload
                [10, k].

        Returns:
            Derivatives [width, unknowns].
        """
        common = self.common
        at_common = slice(0, common)
        at_gravity = slice(common, common + 3)
        at_payload = slice(common + 3, None)
        by_gravity = np.kron(np.eye(3), payload[setup.STATIC, None])
        by_payload = np.kron(gravity[:, None], changes[setup.STATIC])
        out = np.zeros((self.width, common + 3 + changes.shape[1]))
        out[_PRODUCTS.stop :, at_common] = np.eye(common)
        out[GRAVITY, at_gravity] = np.eye(3)
        out[PAYLOAD, at_payload] = changes
        out[_PRODUCTS, at_gravity] = by_gravity
        out[_PRODUCTS, at_payload] = by_payload
        return out


# Rows of these columns and the recorded torque, block by block.


class RowLayout:
    """Places of the entries of a row of `torque_rows`.

    Args:
        width: number of columns of the torque.

    Attributes:
        columns: columns of the torque [width], N m per unit of their coefficients.
        slopes: change of the columns with a later torque [width], per second.
        torque: recorded torque [N m].
        torque_slope: slope of the torque [N m/s].
        torque_curve: curvature of the torque [N m/s^2].
        size: number of entries; the last one is 1 and counts the samples.
    """

    def __init__(self, width: int) -> None:
        self.columns = slice(0, width)
        self.slopes = slice(width, 2 * width)
        self.torque = 2 * width
        self.torque_slope = 2 * width + 1
        self.torque_curve = 2 * width + 2
        self.size = 2 * width + 4


Columns = Callable[[Array, Array, Array], Array]
TARGET_RATE = 50.0  # samples per second used of noise-free targets [Hz]; more add nothing
POSITION_DELAY = 0.002
"""target_moment is computed from the target position of about one tick earlier [s].

Measured on recordings of a UR3e and two UR5e at 25, 50 and 500 Hz: the torque residual is
proportional to speed times stiffness of gravity, and vanishes with 2.3 to 2.6 ms.
"""
BLOCK = 2.0  # duration of a block of time [s]
_GROUP = 30
"""Number of blocks whose columns are computed together: columns of few samples cost more each."""
_STEP = 0.001  # step of the delay for the slopes of the columns [s]
_GRID_RATE = 100.0  # rate of the grid on which measured motion is differentiated [Hz]
_ACCELERATION_BANDWIDTH = 15.0  # bandwidth of the differentiated motion [Hz]
_BANDWIDTH = 2.5
"""Common filter of torque and columns [Hz]: arm motion lies below it, mostly noise above."""
_EDGE = 0.4  # time that is dropped at either end of a filtered stretch [s]
_PURPOSE = "estimating setup and motor inertia"


def has_targets(telemetry: Telemetry) -> bool:
    """Whether the motion that target_moment was computed from is recorded, free of noise."""
    return all(name in telemetry for name in ("target_q", "target_qd", "target_qdd"))


def torque_rows(
    telemetry: Telemetry, columns: Columns, rate: float = TARGET_RATE
) -> Iterator[tuple[Array, Array]]:
    """Rows of the usable samples for the fit of a setup, block by block.

    Torques and columns are linear in a small remaining delay h [s] of target_moment,

    torque + h torque_slope + h^2/2 torque_curve = (columns + h column_slopes) @
    coefficients,

    and a row is [columns, column slopes, torque, torque slope, torque curve, 1], see
    `RowLayout`. With recorded targets the torque is computed from the position of
    POSITION_DELAY earlier, and `rate` samples per second are used [Hz]; without, motion,
    torque and columns pass the same filter. Blocks are BLOCK long.

    Args:
        telemetry: telemetry with target_moment.
        columns: columns of the torque, in the order of `TorqueColumns`.
        rate: samples per second that are used of recorded targets [Hz].

    Returns:
        Rows [samples, n, 2 width + 4] and positions [samples, n], rad, of each block.

    Raises:
        MissingFieldError: target_moment is missing, or every pair of position and speed.
    """
    telemetry.require("target_moment", purpose=_PURPOSE)
    telemetry = telemetry.distinct()
    if has_targets(telemetry):
        return _target_blocks(telemetry, columns, rate)
    telemetry.require("actual_q", "actual_qd", purpose=_PURPOSE)
    return _actual_blocks(telemetry, columns)


def _target_blocks(
    telemetry: Telemetry, columns: Columns, rate: float
) -> Iterator[tuple[Array, Array]]:
    """Rows and positions [samples, n] of recorded targets, block by block."""
    names = ("target_q", "target_qd", "target_qdd", "target_moment")
    keep = np.flatnonzero(usable_samples(telemetry, *names))
    if keep.size == 0:
        return
    tick = np.floor(telemetry.time[keep] * rate)
    keep = keep[np.concatenate([[True], np.diff(tick) != 0])]
    blocks = list(time_blocks(telemetry.time[keep], BLOCK, telemetry.time[keep[0]]))
    for first in range(0, len(blocks), _GROUP):
        group = blocks[first : first + _GROUP]
        used = keep[group[0].start : group[-1].stop]
        q, qd, qdd, torque = (telemetry[name][used] for name in names)
        delays = POSITION_DELAY + _STEP * np.array([0.0, 1.0, -1.0])[:, None, None]
        earlier = (q - delays * qd + 0.5 * delays**2 * qdd).reshape(-1, q.shape[1])
        found = columns(earlier, np.tile(qd, (3, 1)), np.tile(qdd, (3, 1)))
        now, late, early = np.split(found, 3)
        none = np.zeros_like(torque)
        rows = _rows(now, (late - early) / (2 * _STEP), torque, none, none)
        for block in group:
            part = slice(block.start - group[0].start, block.stop - group[0].start)
            yield rows[part], q[part]


def _actual_blocks(
    telemetry: Telemetry, columns: Columns
) -> Iterator[tuple[Array, Array]]:
    """Rows and positions [samples, n] of filtered measured motion, block by block."""
    names = ("actual_q", "actual_qd", "target_moment")
    rate = _GRID_RATE / 2
    edge = int(_EDGE * rate)
    for time, q, qd, torque in resampled_runs(
        telemetry,
        names,
        usable_samples(telemetry, *names),
        rate=_GRID_RATE,
        bandwidth=_ACCELERATION_BANDWIDTH,
        shortest=4 * _EDGE,
    ):
        qdd = np.gradient(qd, 1 / _GRID_RATE, axis=0)[::2]
        time = time[::2]
        q = q[::2]
        qd = qd[::2]
        torque = low_pass(torque[::2], 1 / rate, _BANDWIDTH)
        slope = np.gradient(torque, 1 / rate, axis=0)
        curve = np.gradient(slope, 1 / rate, axis=0)
        values = low_pass(columns(q, qd, qdd), 1 / rate, _BANDWIDTH)
        rows = _rows(values, np.zeros_like(values), torque, slope, curve)
        time = time[edge:-edge]
        for part in time_blocks(time, BLOCK, time[0]):
            inside = slice(part.start + edge, part.stop + edge)
            yield rows[inside], q[inside]


def _rows(
    columns: Array, slopes: Array, torque: Array, slope: Array, curve: Array
) -> Array:
    """Columns, their slopes, torque, its slope, its curve and 1, side by side."""
    torques = np.stack([torque, slope, curve, np.ones_like(torque)], axis=2)
    return np.concatenate([columns, slopes, torques], axis=2)
