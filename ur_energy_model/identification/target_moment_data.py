"""target_moment and the columns it is a product of, in blocks of time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np

from ur_energy_model.identification.filtered_motion import resampled_runs, usable_samples
from ur_energy_model.identification.least_squares import BlockedGram, gram_matrices_by_joint
from ur_energy_model.identification.setup_prior import SetupPrior
from ur_energy_model.low_pass import low_pass
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.setup import COUNT, FIRST_MOMENT, TENSOR, Setup
from ur_energy_model.telemetry.samples import Telemetry, time_blocks
from ur_energy_model.typing import Array, Mask

Columns = Callable[[Array, Array, Array], Array]
TARGET_RATE = 50.0
"""Samples per second used of noise-free targets [Hz]; more add nothing."""
POSITION_DELAY = 0.002
"""target_moment is computed from the target position of about one tick earlier [s].

Measured on recordings of a UR3e and two UR5e at 25, 50 and 500 Hz: the torque residual is
proportional to speed times stiffness of gravity, and vanishes with 2.3 to 2.6 ms.
"""
_BLOCK = 2.0
"""Duration of a block of time [s]."""
_GROUP = 20
"""Blocks whose columns are computed together: columns of few samples cost more each."""
_STEP = 0.001
_GRID_RATE = 100.0
_ACCELERATION_BANDWIDTH = 15.0
_BANDWIDTH = 2.5
"""Common filter of both sides [Hz]: arm motion lies below it, mostly noise above."""
_EDGE = 0.4
"""Dropped at either end of a filtered stretch [s]."""


class ReferenceBlock(NamedTuple):
    """A stretch of torques and columns, linear in a small remaining delay h [s].

    torque + h torque_slope + h^2/2 torque_curve = (columns + h column_slopes) @ coefficients

    Attributes:
        kind: "target" (recorded targets) or "actual" (filtered measurement).
        nominal_delay: delay already compensated [s]; h is the remainder.
        rows: [columns, column slopes, torque, its slope, its curve, 1] [samples, n, 2 width + 4],
            N m, and per second (squared).
        position: joint side [samples, n], rad.
    """

    kind: Literal["target", "actual"]
    nominal_delay: float
    rows: Array
    position: Array


def reference_blocks(telemetry: Telemetry, columns: Columns) -> Iterator[ReferenceBlock]:
    """Blocks of two seconds of a recording's usable samples.

    Freedrive, stretches with brakes applied and samples that are not finite are left out.

    Raises:
        MissingFieldError: without target_moment, or without any position and speed.
    """
    telemetry.require("target_moment", purpose="estimating setup and motor inertia")
    telemetry = telemetry.distinct()
    if all(name in telemetry for name in ("target_q", "target_qd", "target_qdd")):
        yield from _target_blocks(telemetry, columns)
    else:
        telemetry.require("actual_q", "actual_qd", purpose="estimating setup and motor inertia")
        yield from _actual_blocks(telemetry, columns)


def _target_blocks(telemetry: Telemetry, columns: Columns) -> Iterator[ReferenceBlock]:
    names = ("target_q", "target_qd", "target_qdd", "target_moment")
    keep = np.flatnonzero(usable_samples(telemetry, *names))
    if keep.size == 0:
        return
    tick = np.floor(telemetry.time[keep] * TARGET_RATE)
    keep = keep[np.concatenate([[True], np.diff(tick) != 0])]
    blocks = list(time_blocks(telemetry.time[keep], _BLOCK, telemetry.time[keep[0]]))
    for first in range(0, len(blocks), _GROUP):
        group = blocks[first : first + _GROUP]
        used = keep[group[0].start : group[-1].stop]
        q, qd, qdd, torque = (telemetry[name][used] for name in names)
        now, late, early = (
            columns(q - delay * qd + 0.5 * delay**2 * qdd, qd, qdd)
            for delay in (POSITION_DELAY, POSITION_DELAY + _STEP, POSITION_DELAY - _STEP)
        )
        none = np.zeros_like(torque)
        rows = _rows(now, (late - early) / (2 * _STEP), torque, none, none)
        for block in group:
            part = slice(block.start - group[0].start, block.stop - group[0].start)
            yield ReferenceBlock("target", POSITION_DELAY, rows[part], q[part])


def _actual_blocks(telemetry: Telemetry, columns: Columns) -> Iterator[ReferenceBlock]:
    names = ("actual_q", "actual_qd", "target_moment")
    rate = _GRID_RATE / 2
    edge = int(_EDGE * rate)
    for run in resampled_runs(
        telemetry,
        names,
        usable_samples(telemetry, *names),
        rate=_GRID_RATE,
        bandwidth=_ACCELERATION_BANDWIDTH,
        shortest=4 * _EDGE,
    ):
        q, qd, qdd = run["actual_q"][::2], run["actual_qd"][::2], run.derivative("actual_qd")[::2]
        torque = low_pass(run["target_moment"][::2], 1 / rate, _BANDWIDTH)
        slope = np.gradient(torque, 1 / rate, axis=0)
        curve = np.gradient(slope, 1 / rate, axis=0)
        values = low_pass(columns(q, qd, qdd), 1 / rate, _BANDWIDTH)
        rows = _rows(values, np.zeros_like(values), torque, slope, curve)
        time = run.time[::2][edge:-edge]
        for part in time_blocks(time, _BLOCK, time[0]):
            inside = slice(part.start + edge, part.stop + edge)
            yield ReferenceBlock("actual", 0.0, rows[inside], q[inside])


def _rows(columns: Array, slopes: Array, torque: Array, slope: Array, curve: Array) -> Array:
    torques = np.stack([torque, slope, curve, np.ones_like(torque)], axis=2)
    return np.concatenate([columns, slopes, torques], axis=2)


# The controller's torque as a product of known columns and few unknowns.
#
# target_moment is the controller's own frictionless inverse dynamics (Clochiatti et al. 2024, eq.
# 2 and 7). In the mounting's gravity g, with a payload of ten parameters p on the flange and
# reflected motor inertias J it is, sample by sample,
#
# torque = bare(q, qd, qdd) + G(q) g + Y(q, qd, qdd) p + sum_k g_k Y_k(q) p[:4] + J qdd
#
# bilinear in g and p. With the products g_k p as separate unknowns it is linear, so any number of
# samples reduces to one Gram matrix per joint, on which any setup is evaluated cheaply.

_STATIC = FIRST_MOMENT.stop
"""Parameters of a payload that gravity acts on: mass and first moments."""


@dataclass(frozen=True)
class TorqueColumns:
    """Columns of the joint torques of one arm in any setup.

    Args:
        robot: the arm, n joints.
        tensors: add the six tensor entries of every moving link as unknowns (deviations from the
            robot file).
    """

    robot: RobotDescription
    tensors: bool = False

    @property
    def width(self) -> int:
        """Number of columns."""
        n = self.robot.dof
        return 1 + 3 + COUNT + 3 * _STATIC + n + (6 * n if self.tensors else 0)

    @cached_property
    def _dynamics(self) -> ArmDynamics:
        """The arm without gravity."""
        return ArmDynamics(self.robot, Setup(gravity=np.zeros(3)))

    @cached_property
    def _parameters(self) -> Array:
        """Inertial parameters of the bare arm [10 n]."""
        return self._dynamics.parameters()

    def __call__(self, q: Array, qd: Array, qdd: Array) -> Array:
        """Columns [samples, n, width] for joint positions, velocities, accelerations [samples, n].

        Multiplied with `coefficients` they give joint torques in N m.
        """
        weightless = self._dynamics
        n = self.robot.dof
        regressor = weightless.regressor(q, qd, qdd)
        bare = regressor @ self._parameters
        parts = [
            bare[:, :, None],
            weightless.gravity_regressor(q),
            regressor[:, :, -COUNT:],
            weightless.flange_weight_regressor(q).reshape(len(q), n, 3 * _STATIC),
            np.eye(n)[None] * qdd[:, None, :],
        ]
        if self.tensors:
            parts.append(
                regressor.reshape(len(q), n, n, COUNT)[..., TENSOR].reshape(len(q), n, 6 * n)
            )
        return np.concatenate(parts, axis=2)

    def coefficients(
        self, gravity: Array, payload: Array, reflected_inertia: Array, tensors: Array | None = None
    ) -> Array:
        """Coefficients [width] of the columns for one setup.

        Args:
            gravity: in the base frame [3], m/s^2.
            payload: ten parameters about the flange origin (see `inertial_parameters`).
            reflected_inertia: joint side [n], kg m^2.
            tensors: deviations of the link tensors [6 n], kg m^2, with `tensors` only.
        """
        products = np.outer(gravity, payload[:_STATIC]).ravel()
        parts = [np.ones(1), gravity, payload, products, reflected_inertia]
        if self.tensors:
            parts.append(np.zeros(6 * self.robot.dof) if tensors is None else tensors)
        return np.concatenate(parts)

    def slopes(self, gravity: Array, payload: Array, changes: Array) -> Array:
        """Change of `coefficients` with each unknown [width, unknowns].

        Args:
            gravity: in the base frame [3], m/s^2.
            payload: ten parameters about the flange origin.
            changes: of these with each unknown of the payload [10, k].

        Returns:
            for reflected inertias, tensors (with `tensors` only), gravity and payload, in order.
        """
        first = self.width - (common := self.robot.dof * (7 if self.tensors else 1))
        out = np.zeros((self.width, common + 3 + changes.shape[1]))
        out[first:, :common] = np.eye(common)
        at_gravity, at_payload = slice(common, common + 3), slice(common + 3, None)
        out[1:4, at_gravity] = np.eye(3)
        out[4 : 4 + COUNT, at_payload] = changes
        out[4 + COUNT : first, at_gravity] = np.kron(np.eye(3), payload[:_STATIC, None])
        out[4 + COUNT : first, at_payload] = np.kron(gravity[:, None], changes[:_STATIC])
        return out


# Gram matrices of target_moment, gathered from the stretches that share one setup.

_STEADY = 0.01
"""Joints that travel less do not identify an inertia [rad]."""
_TORQUE, _ONE = -4, -1
"""Columns of the torque, before its two derivatives, and of the constant."""


@dataclass
class TorqueInformation:
    """Gram matrices of the stretches that share one setup, per block of time.

    Attributes:
        source: bag or file.
        stated: mounting and payload as stated.
        kind: of the reference motion, "target" or "actual".
        nominal_delay: of target_moment, already compensated [s].
        samples: number of samples.
        grams: Gram matrices [n, k, k] of the rows of a ReferenceBlock, per block of time.
    """

    source: str
    stated: SetupPrior
    kind: str = "target"
    nominal_delay: float = 0.0
    samples: int = 0
    grams: BlockedGram = field(default_factory=BlockedGram)
    _low: Array | float = np.inf
    _high: Array | float = -np.inf

    def accumulate(self, block: ReferenceBlock) -> None:
        """Add a block of samples."""
        if not len(block.rows):
            return
        self.grams.accumulate(gram_matrices_by_joint(block.rows), _BLOCK)
        self.kind, self.nominal_delay = block.kind, block.nominal_delay
        self.samples += len(block.rows)
        self._low = np.minimum(self._low, block.position.min(axis=0))
        self._high = np.maximum(self._high, block.position.max(axis=0))
        self.__dict__.pop("gram", None)

    @cached_property
    def gram(self) -> Array:
        """Sum over all blocks [n, k, k]."""
        return np.asarray(self.grams.blocks.sum(axis=0))

    @property
    def torque_spread(self) -> Array:
        """Sum of squared deviations of the torque from its mean [n], (N m)^2."""
        gram = self.gram
        total = gram[:, _TORQUE, _TORQUE] - gram[:, _TORQUE, _ONE] ** 2 / self.samples
        return np.asarray(np.maximum(total, 0.0))

    @property
    def moved(self) -> Mask:
        """Joints [n] that moved."""
        return np.asarray(self._high - self._low > _STEADY)


def residual_coefficients(coefficients: Array, delay: float) -> Array:
    """Coefficients [k] of the Gram matrix's columns whose product is the torque residual.

    Args:
        coefficients: of the torque columns [width].
        delay: of target_moment on top of the nominal one [s].
    """
    torque = -np.array([1.0, delay, 0.5 * delay**2])
    return np.concatenate([coefficients, delay * coefficients, torque, [0.0]])
