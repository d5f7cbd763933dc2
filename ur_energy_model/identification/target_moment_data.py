"""target_moment and the columns it is a product of, in blocks of time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

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
_GROUP = 500
"""Samples whose columns are computed together."""
_STEP = 0.001
_GRID_RATE = 100.0
_ACCELERATION_BANDWIDTH = 15.0
_BANDWIDTH = 2.5
"""Common filter of both sides [Hz]: arm motion lies below it, mostly noise above."""
_EDGE = 0.4
"""Dropped at either end of a filtered stretch [s]."""


@dataclass(frozen=True)
class ReferenceBlock:
    """A stretch of torques and columns, linear in a small remaining delay h [s].

    torque + h torque_slope + h^2/2 torque_curve = (columns + h column_slopes) @ coefficients

    Attributes:
        kind: "target" (recorded targets) or "actual" (filtered measurement).
        nominal_delay: delay already compensated [s]; h is the remainder.
        columns, column_slopes: [samples, n, width] and per second.
        torque, torque_slope, torque_curve: [samples, n], N m, and per second (squared).
        position: joint side [samples, n], rad.
        duration: time it covers [s].
    """

    kind: Literal["target", "actual"]
    nominal_delay: float
    columns: Array
    column_slopes: Array
    torque: Array
    torque_slope: Array
    torque_curve: Array
    position: Array
    duration: float


def reference_blocks(telemetry: Telemetry, columns: Columns) -> Iterator[ReferenceBlock]:
    """Blocks of time of a recording's usable samples.

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
    blocks = time_blocks(telemetry.time[keep], _BLOCK, telemetry.time[keep[0]])
    for group in _groups(blocks):
        rows = keep[group[0].start : group[-1].stop]
        q, qd, qdd, torque = (telemetry[name][rows] for name in names)
        now, late, early = (
            columns(q - delay * qd + 0.5 * delay**2 * qdd, qd, qdd)
            for delay in (POSITION_DELAY, POSITION_DELAY + _STEP, POSITION_DELAY - _STEP)
        )
        slopes = (late - early) / (2 * _STEP)
        for block in group:
            part = slice(block.start - group[0].start, block.stop - group[0].start)
            zero = np.zeros_like(torque[part])
            yield ReferenceBlock(
                kind="target",
                nominal_delay=POSITION_DELAY,
                columns=now[part],
                column_slopes=slopes[part],
                torque=torque[part],
                torque_slope=zero,
                torque_curve=zero,
                position=q[part],
                duration=_BLOCK,
            )


def _groups(blocks: Iterable[slice]) -> Iterator[list[slice]]:
    """Consecutive blocks, some hundred samples together: columns of few samples cost more each."""
    group: list[slice] = []
    for block in blocks:
        group.append(block)
        if block.stop - group[0].start >= _GROUP:
            yield group
            group = []
    if group:
        yield group


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
        time = run.time[::2][edge:-edge]
        for part in time_blocks(time, _BLOCK, time[0]):
            inside = slice(part.start + edge, part.stop + edge)
            yield ReferenceBlock(
                kind="actual",
                nominal_delay=0.0,
                columns=values[inside],
                column_slopes=np.zeros_like(values[inside]),
                torque=torque[inside],
                torque_slope=slope[inside],
                torque_curve=curve[inside],
                position=q[inside],
                duration=_BLOCK,
            )


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

    The columns are those of a ReferenceBlock, their slopes, the torque with its slope and curve,
    and a constant.

    Attributes:
        source: bag or file.
        stated: mounting and payload as stated.
        kind: of the reference motion, "target" or "actual".
        nominal_delay: of target_moment, already compensated [s].
        samples: number of samples.
        grams: Gram matrices [n, k, k] per block.
    """

    source: str
    stated: SetupPrior
    kind: str = "target"
    nominal_delay: float = 0.0
    samples: int = 0
    grams: BlockedGram = field(default_factory=BlockedGram)
    _low: Array | None = None
    _high: Array | None = None
    _total: Array | None = None

    def accumulate(self, block: ReferenceBlock) -> None:
        """Add a block of samples."""
        if not len(block.torque):
            return
        torque = np.stack([block.torque, block.torque_slope, block.torque_curve], axis=2)
        ones = np.ones((*block.torque.shape, 1))
        rows = np.concatenate([block.columns, block.column_slopes, torque, ones], axis=2)
        self.grams.accumulate(gram_matrices_by_joint(rows), block.duration)
        self.kind, self.nominal_delay = block.kind, block.nominal_delay
        self.samples += len(block.torque)
        low, high = block.position.min(axis=0), block.position.max(axis=0)
        self._low = low if self._low is None else np.minimum(self._low, low)
        self._high = high if self._high is None else np.maximum(self._high, high)
        self._total = None

    @property
    def gram(self) -> Array:
        """Sum over all blocks [n, k, k]."""
        if self._total is None:
            self._total = np.asarray(self.grams.blocks.sum(axis=0))
        return self._total

    @property
    def torque_spread(self) -> Array:
        """Sum of squared deviations of the torque from its mean [n], (N m)^2."""
        gram = self.gram
        total = gram[:, _TORQUE, _TORQUE] - gram[:, _TORQUE, _ONE] ** 2 / self.samples
        return np.asarray(np.maximum(total, 0.0))

    @property
    def moved(self) -> Mask:
        """Joints [n] that moved."""
        if self._low is None or self._high is None:
            raise ValueError("no samples yet")
        return np.asarray(self._high - self._low > _STEADY)


def residual_coefficients(coefficients: Array, delay: float) -> Array:
    """Coefficients [k] of the Gram matrix's columns whose product is the torque residual.

    Args:
        coefficients: of the torque columns [width].
        delay: of target_moment on top of the nominal one [s].
    """
    torque = -np.array([1.0, delay, 0.5 * delay**2])
    return np.concatenate([coefficients, delay * coefficients, torque, [0.0]])
