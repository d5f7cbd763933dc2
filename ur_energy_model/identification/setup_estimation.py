"""Mounting, payload and reflected motor inertia, estimated from target_moment alone.

The controller's torque is its own inverse dynamics, mounting and configured payload included
(Clochiatti et al. 2024, eq. 2 and 7-9): gravity vector, payload and the reflected inertias
follow from it by nonlinear least squares on accumulated Gram matrices (`torque_columns`), with
weak priors that decide only what the motion leaves open.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from ur_energy_model.errors import IdentificationError
from ur_energy_model.identification.reference_motion import ReferenceBlock, reference_blocks
from ur_energy_model.identification.torque_columns import TorqueColumns, payload_parameters
from ur_energy_model.model.dynamics import tensor_of
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.setup import Payload, Setup
from ur_energy_model.telemetry.samples import Array, RecordingInfo, Telemetry

_CLUSTERS = 32
_STEADY = 1e-3
"""Joints whose position spans less do not identify an inertia [rad]."""
_NOISE_FLOOR = 1e-3
_ROUNDS = 4
_GRAVITY_STD = 3.0
_MAGNITUDE_STD = 0.02
_MASS_STD = 2.0
_CENTER_STD = 0.3
_TENSOR_STD = 1e-4
_DELAY_STD = 0.003
_INERTIA_STD = 0.2
_LINK_TENSOR_STD = 0.05
_UNKNOWN_INERTIA_STD = 10.0
_LOCAL = 14
"""Unknowns of one recording: gravity 3, mass, centre 3, payload tensor 6, delay."""


@dataclass(frozen=True)
class RecordingSetup:
    """What one recording says about its mounting and payload.

    Attributes:
        source: bag or file.
        setup: estimate.
        std: standard deviations, gravity [3] m/s^2, mass kg, centre [3] m, in a Setup-like order.
        delay: of target_moment behind the motion columns [s].
        reference: "target" where recorded targets were used, "actual" where filtered measurement.
        rms: torque residual per joint [n], N m.
        r2: coefficient of determination per joint [n]; NaN for a torque that never changes.
        samples: number of samples used.
        warnings: disagreements with what is configured or recorded.
    """

    source: str
    setup: Setup
    std: Array
    delay: float
    reference: str
    rms: Array
    r2: Array
    samples: int
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class SetupEstimate:
    """Setup and reflected inertia of an arm.

    Attributes:
        setup: of the recording with the most samples.
        setup_source: "estimated" (from target_moment), "rtde", "configured" or "default", the
            latter three where the motion could not tell.
        reflected_inertia: motor and reducer, joint side [n], kg m^2.
        std: its standard deviation [n]; correlated residuals allowed for.
        identified: [n]; False where the joint hardly moved and the robot file's value stands.
        link_tensors: deviations of the link tensors from the robot file [n, 3, 3], kg m^2, about
            the link frame origin, or None where they were not asked for.
        recordings: one entry per recording.
        rms: torque residual per joint over all recordings [n], N m.
        r2: coefficient of determination per joint [n].
        warnings: for the user, one line each.
    """

    setup: Setup
    setup_source: str
    reflected_inertia: Array
    std: Array
    identified: NDArray[np.bool_]
    link_tensors: Array | None
    recordings: tuple[RecordingSetup, ...]
    rms: Array
    r2: Array
    warnings: tuple[str, ...] = ()


def estimate_setup_and_inertia(
    recordings: Iterable[Telemetry],
    robot: RobotDescription,
    *,
    configured: Setup | None = None,
    identify_tensors: bool = False,
) -> SetupEstimate:
    """Gravity vector, payload and reflected inertias from target_moment.

    Parts of one recording (same `info.source`) share a setup; the reflected inertias are common
    to all. Parts are read once and not kept, so memory does not grow with their number; where
    measured motion stands in for the targets each part loses 0.4 s at either end to the filter.

    Args:
        recordings: recordings or consecutive parts of them.
        robot: the arm, n joints.
        configured: mounting and payload as the user states them; None takes what the recording
            says (payload and payload_cog, info), else upright and unloaded.
        identify_tensors: also estimate deviations of the link tensors.

    Raises:
        MissingFieldError: a recording lacks target_moment or position and speed.
        IdentificationError: no usable sample at all.
    """
    columns = TorqueColumns(robot, identify_tensors)
    collected: dict[str, _Collected] = {}
    for part in recordings:
        key = part.info.source
        if key not in collected:
            collected[key] = _Collected(key, _prior_setup(part, robot, configured))
        for block in reference_blocks(part, columns):
            collected[key].add(block)
    useful = [entry for entry in collected.values() if entry.samples]
    if not useful:
        names = ", ".join(collected) or "no recording"
        raise IdentificationError(
            f"{names}: no sample with finite target_moment, brakes released and no freedrive; "
            "record the robot while a program moves it"
        )
    return _Solver(columns, useful).solve()


@dataclass(frozen=True)
class _Prior:
    setup: Setup
    source: str


def _prior_setup(part: Telemetry, robot: RobotDescription, configured: Setup | None) -> _Prior:
    if configured is not None:
        return _Prior(configured, "configured")
    info: RecordingInfo = part.info
    gravity = np.array([0.0, 0.0, -robot.controller_gravity])
    if info.gravity is not None:
        gravity = np.array(info.gravity, dtype=float)
    mass, center, source = info.payload_mass, info.payload_center_of_mass, "default"
    inertia = np.zeros((3, 3))
    if "payload" in part and len(part) and np.isfinite(part["payload"]).all():
        mass, source = float(np.median(part["payload"])), "rtde"
        if "payload_cog" in part:
            x, y, z = np.median(part["payload_cog"], axis=0)
            center = (float(x), float(y), float(z))
    elif mass is not None or info.gravity is not None:
        source = "configured"
    where = np.zeros(3) if center is None else np.array(center, dtype=float)
    return _Prior(Setup(gravity, Payload(mass or 0.0, where, inertia)), source)


@dataclass
class _Collected:
    """Gram matrices of one recording, in at most `_CLUSTERS` stretches of time."""

    source: str
    prior: _Prior
    kind: str = "target"
    nominal_delay: float = 0.0
    samples: int = 0
    clusters: list[Array] = field(default_factory=list)
    blocks_per_cluster: int = 1
    filled: int = 0
    low: Array | None = None
    high: Array | None = None

    def add(self, block: ReferenceBlock) -> None:
        if not len(block.torque):
            return
        torque = np.stack([block.torque, block.torque_slope, block.torque_curve], axis=2)
        ones = np.ones((*block.torque.shape, 1))
        rows = np.concatenate([block.columns, block.column_slopes, torque, ones], axis=2)
        gram = np.einsum("sji,sjk->jik", rows, rows, optimize=True)
        if self.filled == 0:
            if len(self.clusters) == _CLUSTERS:
                pairs = zip(self.clusters[::2], self.clusters[1::2], strict=True)
                self.clusters = [a + b for a, b in pairs]
                self.blocks_per_cluster *= 2
            self.clusters.append(gram)
        else:
            self.clusters[-1] = self.clusters[-1] + gram
        self.filled = (self.filled + 1) % self.blocks_per_cluster
        self.kind, self.nominal_delay = block.kind, block.nominal_delay
        self.samples += len(block.torque)
        low, high = block.position.min(axis=0), block.position.max(axis=0)
        self.low = low if self.low is None else np.minimum(self.low, low)
        self.high = high if self.high is None else np.maximum(self.high, high)

    @property
    def gram(self) -> Array:
        return np.asarray(np.sum(self.clusters, axis=0))

    @property
    def moved(self) -> NDArray[np.bool_]:
        assert self.low is not None
        assert self.high is not None
        return np.asarray(self.high - self.low > _STEADY)


class _Solver:
    """Weighted nonlinear least squares over the Gram matrices of all recordings."""

    def __init__(self, columns: TorqueColumns, collected: list[_Collected]) -> None:
        self.columns = columns
        self.robot = columns.robot
        self.collected = collected
        self.roots = [_root(entry.gram) for entry in collected]
        self.noise = [np.ones(self.robot.dof) for _ in collected]
        n = self.robot.dof
        self.common = n + (6 * n if columns.tensors else 0)
        self.moved = np.any([entry.moved for entry in collected], axis=0)
        self.mean, self.spread = self._priors()

    def _priors(self) -> tuple[Array, Array]:
        nominal = self.robot.reflected_inertia
        known = np.isfinite(nominal)
        inertia = np.where(known, nominal, 0.0)
        deviation = np.where(known, _INERTIA_STD * inertia, _UNKNOWN_INERTIA_STD)
        deviation = np.where(self.moved, deviation, 1e-6)
        mean, spread = [inertia], [deviation]
        if self.columns.tensors:
            mass = self.robot.mass[~self.robot.fixed]
            mean.append(np.zeros(6 * len(mass)))
            spread.append(np.repeat(_LINK_TENSOR_STD * mass, 6))
        for entry in self.collected:
            payload = entry.prior.setup.payload
            mean += [
                entry.prior.setup.gravity, np.array([payload.mass]),
                payload.center_of_mass, np.zeros(6), np.zeros(1),
            ]  # fmt: skip
            spread += [
                np.full(3, _GRAVITY_STD), np.array([_MASS_STD]), np.full(3, _CENTER_STD),
                np.full(6, _TENSOR_STD), np.array([_DELAY_STD]),
            ]  # fmt: skip
        return np.concatenate(mean), np.concatenate(spread)

    def _local(self, unknowns: Array, index: int) -> Array:
        start = self.common + _LOCAL * index
        return unknowns[start : start + _LOCAL]

    def _coefficients(self, unknowns: Array, index: int) -> Array:
        """Coefficients of one recording's Gram matrix whose product is the residual."""
        n = self.robot.dof
        local = self._local(unknowns, index)
        payload = payload_parameters(local[3], local[4:7], local[7:13])
        tensors = unknowns[n : self.common] if self.columns.tensors else None
        plain = self.columns.coefficients(local[:3], payload, unknowns[:n], tensors)
        delay = local[13]
        torque = -np.array([1.0, delay, 0.5 * delay**2])
        return np.concatenate([plain, delay * plain, torque, [0.0]])

    def _residual(self, unknowns: Array) -> Array:
        parts = []
        for index, (root, noise) in enumerate(zip(self.roots, self.noise, strict=True)):
            parts.append((root @ self._coefficients(unknowns, index) / noise[:, None]).ravel())
            magnitude = np.linalg.norm(self._local(unknowns, index)[:3])
            expected = np.linalg.norm(self.collected[index].prior.setup.gravity)
            parts.append(np.array([(magnitude - expected) / _MAGNITUDE_STD]))
        parts.append((unknowns - self.mean) / self.spread)
        return np.concatenate(parts)

    def solve(self) -> SetupEstimate:
        lower = np.full(len(self.mean), -np.inf)
        masses = self.common + 3 + _LOCAL * np.arange(len(self.collected))
        lower[masses] = 0.0
        unknowns = self.mean.copy()
        unknowns[masses] = np.maximum(unknowns[masses], 0.5)  # a massless body has no centre
        for _ in range(_ROUNDS):
            solution = least_squares(
                self._residual, unknowns, x_scale=self.spread, bounds=(lower, np.inf)
            )
            unknowns = solution.x
            self.noise = [
                np.maximum(self._rms(unknowns, index), _NOISE_FLOOR)
                for index in range(len(self.collected))
            ]
        covariance = self._covariance(unknowns)
        return self._estimate(unknowns, np.sqrt(np.diag(covariance)))

    def _rms(self, unknowns: Array, index: int) -> Array:
        residual = self.roots[index] @ self._coefficients(unknowns, index)
        return np.asarray(np.linalg.norm(residual, axis=1) / np.sqrt(self.collected[index].samples))

    def _covariance(self, unknowns: Array) -> Array:
        """Cluster-robust ("sandwich") covariance: stretches of time as independent units."""
        size = len(unknowns)
        hessian = np.diag(1 / self.spread**2)
        middle = hessian.copy()
        for index, entry in enumerate(self.collected):
            slopes = self._coefficient_slopes(unknowns, index)
            weight = 1 / self.noise[index] ** 2
            now = self._coefficients(unknowns, index)
            hessian += slopes.T @ np.einsum("j,jik->ik", weight, entry.gram) @ slopes
            scores = np.array(
                [slopes.T @ (np.einsum("j,jik->ik", weight, gram) @ now)
                 for gram in entry.clusters]
            )  # fmt: skip
            scores -= scores.mean(axis=0)
            count = len(scores)
            middle += scores.T @ scores * (count / max(1, count - 1))
            direction = np.zeros(size)
            gravity = self._local(unknowns, index)[:3]
            start = self.common + _LOCAL * index
            direction[start : start + 3] = gravity / np.linalg.norm(gravity) / _MAGNITUDE_STD
            hessian += np.outer(direction, direction)
            middle += np.outer(direction, direction)
        inverse = np.linalg.inv(hessian)
        return np.asarray(inverse @ middle @ inverse)

    def _coefficient_slopes(self, unknowns: Array, index: int) -> Array:
        steps = 1e-6 * self.spread
        out = np.empty((len(self._coefficients(unknowns, index)), len(unknowns)))
        for k, step in enumerate(steps):
            above, below = unknowns.copy(), unknowns.copy()
            above[k] += step
            below[k] -= step
            rise = self._coefficients(above, index) - self._coefficients(below, index)
            out[:, k] = rise / (2 * step)
        return out

    def _estimate(self, unknowns: Array, std: Array) -> SetupEstimate:
        n = self.robot.dof
        recordings = tuple(
            self._recording(unknowns, std, index) for index in range(len(self.collected))
        )
        most = max(range(len(recordings)), key=lambda i: recordings[i].samples)
        inertia, deviation = unknowns[:n].copy(), std[:n].copy()
        nominal = self.robot.reflected_inertia
        identified = self.moved & (deviation < 0.05 * np.abs(inertia))
        prior_std = np.where(np.isfinite(nominal), _INERTIA_STD * nominal, np.nan)
        inertia = np.where(identified | self.moved, inertia, nominal)
        deviation = np.where(self.moved, deviation, prior_std)
        tensors = None
        if self.columns.tensors:
            entries = unknowns[n : self.common].reshape(n, 6)
            tensors = np.array([tensor_of(entry) for entry in entries])
        weights = np.array([entry.samples for entry in recordings], dtype=float)
        rms = np.sqrt(np.average([r.rms**2 for r in recordings], axis=0, weights=weights))
        return SetupEstimate(
            setup=recordings[most].setup,
            setup_source=self._source(std, most),
            reflected_inertia=inertia,
            std=deviation,
            identified=identified,
            link_tensors=tensors,
            recordings=recordings,
            rms=np.asarray(rms),
            r2=self._total_r2(unknowns),
            warnings=tuple(w for r in recordings for w in r.warnings)
            + self._joint_warnings(identified),
        )

    def _source(self, std: Array, index: int) -> str:
        local = self._local(std, index)
        decided = local[:3].max() < 0.1 * _GRAVITY_STD and local[3] < 0.25 * _MASS_STD
        return "estimated" if decided else self.collected[index].prior.source

    def _recording(self, unknowns: Array, std: Array, index: int) -> RecordingSetup:
        entry = self.collected[index]
        local, deviation = self._local(unknowns, index), self._local(std, index)
        inertia = tensor_of(local[7:13]) if local[3] > 0 else np.zeros((3, 3))
        setup = Setup(local[:3].copy(), Payload(float(local[3]), local[4:7].copy(), inertia))
        squares, spread = self._squares(unknowns, index)
        return RecordingSetup(
            source=entry.source,
            setup=setup,
            std=deviation[:7].copy(),
            delay=entry.nominal_delay + float(local[13]),
            reference=entry.kind,
            rms=self._rms(unknowns, index),
            r2=_r2(squares, spread),
            samples=entry.samples,
            warnings=_disagreements(entry, setup, deviation),
        )

    def _squares(self, unknowns: Array, index: int) -> tuple[Array, Array]:
        """Residual and total sums of squares per joint [n]."""
        gram, count = self.collected[index].gram, self.collected[index].samples
        squares = self._rms(unknowns, index) ** 2 * count
        at = 2 * self.columns.width
        spread = gram[:, at, at] - gram[:, at, -1] ** 2 / count
        return squares, np.maximum(spread, 0.0)

    def _total_r2(self, unknowns: Array) -> Array:
        sums = [self._squares(unknowns, index) for index in range(len(self.collected))]
        return _r2(np.sum([s[0] for s in sums], axis=0), np.sum([s[1] for s in sums], axis=0))

    def _joint_warnings(self, identified: NDArray[np.bool_]) -> tuple[str, ...]:
        names = [name for name, good in zip(self.robot.joint_names, identified, strict=True)
                 if not good]  # fmt: skip
        if not names:
            return ()
        return (f"{', '.join(names)}: too little motion to identify the motor inertia; "
                "the robot file's value stands",)  # fmt: skip


def _root(gram: Array) -> Array:
    """R [n, k, k] with R' R = gram, which may be singular."""
    values, vectors = np.linalg.eigh(gram)
    return np.asarray(np.sqrt(np.clip(values, 0, None))[:, :, None] * np.swapaxes(vectors, 1, 2))


def _r2(squares: Array, spread: Array) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(spread > 1e-9, 1 - squares / spread, np.nan))


def _disagreements(entry: _Collected, setup: Setup, std: Array) -> tuple[str, ...]:
    """Lines where the estimate contradicts what was configured or recorded."""
    prior, source = entry.prior.setup, entry.prior.source
    out = []
    said, found = prior.gravity, setup.gravity
    cosine = said @ found / (np.linalg.norm(said) * np.linalg.norm(found))
    angle = np.degrees(np.arccos(np.clip(cosine, -1.0, 1.0)))
    if angle > 1.0 and std[:3].max() < 0.3:
        told = "upright, the default," if source in {"default", "rtde"} else "the configuration"
        vector = ", ".join(f"{value:.2f}" for value in found)
        out.append(
            f"{entry.source}: target_moment shows the base tilted {angle:.1f} degrees from "
            f"{told} (gravity {vector} m/s^2); the estimate is used"
        )
    change = setup.payload.mass - prior.payload.mass
    if abs(change) > max(0.05, 4 * std[3]) and std[3] < 0.3:
        out.append(
            f"{entry.source}: target_moment shows a payload of {setup.payload.mass:.2f} kg where "
            f"{prior.payload.mass:.2f} kg is {_SPOKEN[source]}; the estimate is used"
        )
    return tuple(out)


_SPOKEN = {"default": "assumed", "rtde": "recorded", "configured": "configured"}
