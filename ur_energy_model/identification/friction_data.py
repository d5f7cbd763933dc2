"""Currents of an arm as regression data: columns, friction laws, sessions, priors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import NamedTuple

import numpy as np

from ur_energy_model.errors import InputError
from ur_energy_model.identification.filtered_motion import FilteredMotion, merged_ranges
from ur_energy_model.identification.least_squares import (
    MAX_BLOCKS,
    BlockedGram,
    Prior,
    gram_matrices_by_joint,
    solve,
)
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.friction import (
    LAWS,
    LOAD,
    LOAD_ASYMMETRY,
    FrictionBank,
    FrictionLaw,
    OperatingPoint,
    Term,
)
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.sessions import scaled_parameters
from ur_energy_model.telemetry.samples import time_blocks
from ur_energy_model.typing import Array, Mask

# Candidate friction laws of a joint, and the choice among them by held-out errors.

AUTO = "auto"
WARMTH = 2.0  # temperature span from which temperature-dependent friction is tried [K]
AUTOMATIC = (
    "coulomb_viscous",
    "power_flow",
    "power",
    "load_dependent",
    "power_load",
    "temperature_linear",
    "power_temperature",
    "power_load_temperature",
)
"""Laws that "auto" chooses among. Terms with a power of the speed and with load lower the error on
recordings of other days of real arms. Power flow hardly lowers it, but without it torque constants
are wrong on arms that have it. Stribeck, polynomial and the manufacturer's double exponential do
not lower it and are fitted on request only."""
_GRID = 8

GAIN_PER_PARAMETER = 0.02  # held-out RMS a further parameter must save to be worth having


@dataclass(frozen=True)
class FrictionCandidate:
    """A law with values for its shape constants."""

    law: FrictionLaw
    shape: tuple[tuple[str, float], ...]

    def scaled(self, width: int) -> Mask:
        """Coefficients [width] of (1/k_t, friction parameters / k_t, ...) that a session scales."""
        out = np.zeros(width, dtype=bool)
        out[1 : 1 + len(self.law.parameters)] = scaled_parameters(self.law.parameters)
        return out


def candidates(friction: str, *, warm: bool) -> tuple[FrictionCandidate, ...]:
    """Laws to fit, with a logarithmic grid over the shape constants that are not fixed.

    `friction`: name of a law, or "auto" for those of AUTOMATIC. `warm`: whether recorded
    temperatures change enough for laws that use them.

    Raises:
        InputError: unknown law.
    """
    if friction != AUTO and friction not in LAWS:
        raise InputError(
            "--friction", f"unknown law '{friction}'", f"use auto or one of {', '.join(LAWS)}"
        )
    out: list[FrictionCandidate] = []
    for name, law in LAWS.items():
        tried = friction == AUTO and name in AUTOMATIC and (warm or not law.uses_temperature)
        if name == friction or tried:
            grids = [
                [default] if low == high else np.geomspace(low, high, _GRID).tolist()
                for low, default, high in law.shape.values()
            ]
            for values in product(*grids):
                shape = zip(law.shape, map(float, values), strict=True)
                out.append(FrictionCandidate(law, tuple(shape)))
    return tuple(out)


def choose(errors: dict[str, Array]) -> tuple[str, str]:
    """The law with the least held-out error, and the reason for the choice.

    A law with fewer parameters is preferred if its additional error is within the scatter over
    folds or below GAIN_PER_PARAMETER for each parameter saved.

    `errors`: held-out mean squared residual [folds], A^2, by law name.
    """
    best = min(errors, key=lambda name: float(errors[name].mean()))
    rms = {name: float(np.sqrt(values.mean())) for name, values in errors.items()}
    for name in sorted(errors, key=lambda name: LAWS[name].freedom):
        extra = LAWS[best].freedom - LAWS[name].freedom
        if extra < 0 or name == best:
            continue
        loss = errors[name] - errors[best]
        scatter = loss.std(ddof=1) / np.sqrt(len(loss)) if len(loss) > 1 else 0.0
        allowance = (1 + GAIN_PER_PARAMETER) ** (2 * extra) - 1
        if loss.mean() <= max(scatter, allowance * errors[best].mean()):
            return name, (
                f"held-out RMS {rms[name]:.4g} A; {best} with more parameters gets "
                f"{rms[best]:.4g} A, which is within the scatter over folds or too small a gain"
            )
    second = min((name for name in rms if name != best), key=rms.__getitem__, default=None)
    against = "" if second is None else f" against {rms[second]:.4g} A of {second}"
    return best, f"least held-out RMS, {rms[best]:.4g} A{against}"


def clearly_better(errors: Array, than: Array) -> bool:
    """Whether held-out errors [folds], A^2, are smaller by more than scatter and allowance."""
    gain = than - errors
    scatter = gain.std(ddof=1) / np.sqrt(len(gain)) if len(gain) > 1 else np.inf
    allowance = (1 + GAIN_PER_PARAMETER) ** 2 - 1
    return bool(gain.mean() > max(2.0 * scatter, allowance * than.mean()))


# Friction scales of several sessions.
#
# Recordings of different days share an arm's torque constants and the form of its friction, but
# not its level. A fit to several sessions therefore gives each a friction scale per joint,
# alternating between parameters for given scales and scales for given parameters. Scales are
# relative to the mean of the sessions.

_ROUNDS = 4
_WIDEST = 0.3  # prior standard deviation of the scales
_BOUNDS = (0.2, 5.0)


class SessionBlocks(NamedTuple):
    """Gram matrices of one joint in one session."""

    blocks: Array  # of [regressor, measurement] per block of time [blocks, p + 1, p + 1]
    counts: Array  # number of samples per block [blocks]


def session_scales(
    sessions: Sequence[SessionBlocks],
    prior: Prior,
    which: Mask,
    *,
    applied: bool = True,
) -> tuple[Array, Array]:
    """Scales of one joint [sessions] with mean 1, and the blocks of all sessions to fit.

    `which` are the coefficients that the scale multiplies [p]. Not `applied` where the law may
    explain differences of the sessions by temperature: scales are then the remainder.
    """
    p = len(which)
    grams = [session.blocks.sum(axis=0) for session in sessions]
    unscaled = np.concatenate([session.blocks for session in sessions])
    counts = np.concatenate([session.counts for session in sessions])
    owner = np.repeat(np.arange(len(sessions)), [len(session.counts) for session in sessions])
    scales, blocks = np.ones(len(sessions)), unscaled
    if len(sessions) < 2 or not which.any():
        return scales, blocks
    for _ in range(_ROUNDS if applied else 1):
        solution = solve(blocks, prior, counts)
        part = np.where(which, solution.coefficients, 0.0)
        rest = solution.coefficients - part
        independent = solution.effective_samples / max(solution.samples, 1.0)
        for index, gram in enumerate(grams):  # the scale that fits best, the rest as fitted
            square = float(part @ gram[:p, :p] @ part)
            cross = float(part @ (gram[:p, p] - gram[:p, :p] @ rest))
            weight = square * independent / max(solution.residual**2, 1e-30)
            change = (cross / square - 1.0) if square > 0 else 0.0
            scales[index] = 1.0 + change * weight / (weight + 1.0 / _WIDEST**2)
        scales = np.clip(scales, *_BOUNDS)
        scales /= scales.mean()
        if applied:
            factors = np.where(np.append(which, False), scales[owner, None], 1.0)
            blocks = unscaled * factors[:, :, None] * factors[:, None]
    return scales, blocks


# Priors of a joint's torque constant and friction.

TORQUE_CONSTANT_SPREAD = 0.5
"""Weak prior that keeps the regression finite; torque_constants.py applies the real one."""
LOAD_ASYMMETRY_SPREAD = 0.01
"""Half the difference of load friction between both directions of power flow; gear catalogues state
a few percent less efficiency for strain-wave gears driven by the load."""
_LOAD_SPREAD = 0.2
_NEGLIGIBLE = 1e-6
_COULOMB_SHARE = 0.04
_VISCOUS_SHARE = 0.028


def current_prior(robot: RobotDescription, law: FrictionLaw, j: int) -> Prior:
    """Prior of (1/k_t, friction parameters / k_t) of one joint.

    Torque constant from the robot file. Friction, motor side, from factory no-load calibrations of
    UR5e joints, and wide: joint-side Coulomb friction near 4 % of the rated torque and viscous
    friction near 2.8 % per rad/s, on the large and the small size alike. Without a rated torque
    there is no prior of friction but for the asymmetry of load friction, and without a torque
    constant none of anything but what the currents cannot separate from it.
    """
    constant, ratio, rated = robot.torque_constant[j], robot.gear_ratio[j], robot.max_torque[j]
    known = bool(np.isfinite(constant))
    coulomb = _COULOMB_SHARE * rated / ratio
    viscous = _VISCOUS_SHARE * rated / ratio**2
    fastest = ratio * robot.max_velocity[j]
    table = {  # mean and standard deviation between arms
        "viscous": (viscous, viscous),
        "coulomb": (coulomb, coulomb),
        "coulomb_direct": (coulomb, coulomb),
        "coulomb_reverse": (coulomb, coulomb),
        "stribeck": (0.0, coulomb),
        "power": (viscous * ratio, viscous * ratio),
        LOAD: (0.0, _LOAD_SPREAD),
        "square": (0.0, viscous / fastest),
        "cubic": (0.0, viscous / fastest**2),
        "viscous_temperature": (0.0, 0.05 * viscous),
        "power_temperature": (0.0, 0.05 * viscous * ratio),
    }
    if not (known and np.isfinite(rated)):
        table = dict.fromkeys(table, (0.0, np.inf))
    table[LOAD_ASYMMETRY] = (0.0, LOAD_ASYMMETRY_SPREAD if known else _NEGLIGIBLE)
    first = (1.0, TORQUE_CONSTANT_SPREAD) if known else (0.0, np.inf)
    mean, std = np.array([first, *(table[name] for name in law.parameters)]).T
    scale = constant if known else 1.0
    return Prior(mean / scale, std / scale)


# A model known before as the prior of the currents: its friction law, values and uncertainty.

_FORM = 0.02
"""Error of each friction coefficient that a model known before may have beyond its standard
deviation, relative."""
_LEAST = 1e-9


class KnownFriction:
    """Columns and priors of the friction laws of a model known before.

    With few data its values are corrected only in the directions in which they are uncertain:
    a friction scale at first, single parameters later. That is least squares with the prior's full
    covariance.
    """

    def __init__(self, model: EnergyModel) -> None:
        self.model = model
        ratio = np.array([joint.gear_ratio for joint in model.joints])
        self._bank = FrictionBank([joint.friction for joint in model.joints], ratio)
        self.counts = [len(joint.friction.law.parameters) for joint in model.joints]
        self.width = max(self.counts)
        """Number of columns."""

    def columns(self, point: OperatingPoint) -> Array:
        """Terms of each joint's law [samples, n, width]; zero beyond its parameters."""
        temperature = None if point.temperature is None else np.asarray(point.temperature)
        out = np.zeros((*point.speed.shape, self.width))
        for j, own in enumerate(self._bank.regressors(point.speed, point.load, temperature)):
            out[:, j, : own.shape[1]] = own
        return out

    def candidate(self, j: int) -> FrictionCandidate:
        """The law of a joint with its shape."""
        friction = self.model.joints[j].friction
        return FrictionCandidate(friction.law, tuple(friction.all_shape.items()))

    def prior(self, j: int) -> Prior:
        """Prior of (1/k_t, friction parameters / k_t) of a joint in any session.

        The torque constant's is weak, as that of `current_prior`.
        """
        joint = self.model.joints[j]
        names = joint.friction.law.parameters
        mean = np.append(1.0, joint.friction.values) / joint.torque_constant
        covariance = joint.current_root @ joint.current_root.T
        covariance[0], covariance[:, 0] = 0.0, 0.0
        covariance[0, 0] = (TORQUE_CONSTANT_SPREAD * mean[0]) ** 2
        spread = float(self.model.session.friction_std[j])
        scale = np.append(0.0, np.where(scaled_parameters(names), spread * mean[1:], 0.0))
        floor = np.append(0.0, np.abs(mean[1:]) * _FORM + _LEAST)
        covariance = covariance + np.outer(scale, scale) + np.diag(floor**2)
        return Prior(mean, np.sqrt(np.diag(covariance)), covariance)

    def temperature_range(self, j: int, seen: Array) -> Array:
        """Temperatures that the law is known for, those seen [2] included, degC."""
        known = self.model.joints[j].friction.temperature_range
        if known is None or not np.isfinite(seen).all():
            return seen
        return np.array([min(known[0], seen[0]), max(known[1], seen[1])])


# Columns of the regression of current on load, friction and acceleration.

LOAD_COLUMN, ACCELERATION, CURRENT = 0, -2, -1
"""Columns of one candidate: the load first, the current last, the acceleration before it where the
inertia is fitted; friction terms between."""


class CurrentColumns:
    """The distinct columns of all candidates, so that candidates share their common terms.

    `accelerations`: add a column for the motor inertia. `known`: friction of a model known before;
    None without.
    """

    def __init__(
        self,
        laws: Sequence[FrictionCandidate],
        accelerations: bool,
        known: KnownFriction | None = None,
    ) -> None:
        self._known, self._accelerations = known, accelerations
        self._terms: dict[tuple[Term, tuple[float, ...]], tuple[int, dict[str, float]]] = {}
        self._candidates: list[list[int]] = []
        for candidate in laws:
            shape, columns = dict(candidate.shape), []
            for term in candidate.law.terms.values():
                key = (term, tuple(shape[name] for name in term.uses))
                column, _ = self._terms.setdefault(key, (len(self._terms) + 1, shape))
                columns.append(column)
            self._candidates.append(columns)
        self._known_from = len(self._terms) + 1
        self.width = self._known_from + (0 if known is None else known.width) + 1 + accelerations

    def of_law(self, index: int | None, j: int, with_inertia: bool) -> list[int]:
        """Columns of a candidate, or of the law of a joint known before where `index` is None.

        The acceleration is among them if requested and available.
        """
        if index is None:
            count = 0 if self._known is None else self._known.counts[j]
            terms = list(range(self._known_from, self._known_from + count))
        else:
            terms = self._candidates[index]
        own = [self.width + ACCELERATION] if with_inertia and self._accelerations else []
        return [LOAD_COLUMN, *terms, *own, self.width + CURRENT]

    def columns(self, point: OperatingPoint, motion: FilteredMotion) -> Array:
        """All columns [samples, n, width] of a motion [samples, n]."""
        out = np.empty((*motion.current.shape, self.width))
        out[..., LOAD_COLUMN] = point.load / point.gear_ratio
        for (term, _), (column, shape) in self._terms.items():
            out[..., column] = term(point, shape)
        if self._known is not None:
            first = self._known_from
            out[..., first : first + self._known.width] = self._known.columns(point)
        if self._accelerations:
            out[..., ACCELERATION] = motion.qdd / point.gear_ratio
        out[..., CURRENT] = motion.current
        return out


_BLOCK = 1.0  # duration of a block of time [s]


@dataclass
class CurrentData:
    """Sums over any number of sessions of an arm with n joints."""

    temperature: Array  # lowest and highest temperatures [n, 2], degC; NaN where not recorded
    moving_time: Array  # motion of each joint [n], s
    memory: float  # samples over which the narrow filter correlates white noise
    most_blocks: int = MAX_BLOCKS  # Gram matrices kept of a session
    # Gram matrices of [columns, current] per joint and block of time, and numbers of samples
    # per joint
    sessions: list[tuple[BlockedGram, BlockedGram]] = field(default_factory=list)

    def start_session(self) -> None:
        """Start another session, with its own friction level."""
        self.sessions.append((BlockedGram(self.most_blocks), BlockedGram(self.most_blocks)))

    def restart_session(self) -> None:
        """Forget the data of the current session."""
        if self.sessions:
            del self.sessions[-1]
        if not self.sessions:
            self.moving_time = np.zeros_like(self.moving_time)
        self.start_session()

    def add(self, time: Array, rows: Array, moving: Mask, temperature: Array) -> None:
        """Add samples to the current session.

        Args:
            time: evenly spaced [samples], s.
            rows: columns and current [samples, n, width], zero where the joint does not move.
            moving: joints that move [samples, n].
            temperature: lowest and highest [n, 2], degC.
        """
        self.temperature = merged_ranges(self.temperature, temperature)
        period = float(time[1] - time[0])
        self.moving_time = self.moving_time + moving.sum(axis=0) * period
        if not self.sessions:
            self.start_session()
        grams, counts = self.sessions[-1]
        for block in time_blocks(time, _BLOCK):
            duration = len(time[block]) * period
            grams.accumulate(gram_matrices_by_joint(rows[block]), duration)
            counts.accumulate(moving[block].sum(axis=0, dtype=float), duration)

    def of_joint(self, j: int) -> dict[int, SessionBlocks]:
        """Sessions in which a joint moved, by their number."""
        return {
            number: SessionBlocks(grams.blocks[:, j], counts.blocks[:, j])
            for number, (grams, counts) in enumerate(self.sessions)
            if len(counts) and counts.blocks[:, j].any()
        }

    def with_inertia_changed(self, change: Array) -> CurrentData:
        """The same data with loads computed from other inertias.

        Effects on friction that depends on the load are neglected.

        `change`: of the reflected inertias [n], kg m^2; their columns are among the data.
        """
        width = next((g.blocks.shape[-1] for g, _ in self.sessions if len(g)), None)
        if width is None:
            return self
        matrix = np.repeat(np.eye(width)[None], len(change), axis=0)
        matrix[:, ACCELERATION, LOAD_COLUMN] = change
        moved = [(grams.transformed(matrix), counts) for grams, counts in self.sessions]
        return replace(self, sessions=moved)
