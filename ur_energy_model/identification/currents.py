"""Torque constant and friction of every joint, together, from measured current.

Clochiatti et al., Robotica 2024, eq. 10-18: with the torque without friction known from motion,
the current is linear in 1/k_t and the friction parameters over k_t,

    I = 1/k_t * load / N + sum over terms (parameter / k_t * term),

so one linear least squares finds both. Every candidate law is accumulated at once in Gram
matrices per block of time; blocked cross-validation chooses, and parsimony wins ties. Only
moving samples are fitted: at standstill friction takes any value up to its limit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.errors import IdentificationError
from ur_energy_model.identification.friction_choice import AUTO, Candidate, candidates, choose
from ur_energy_model.identification.friction_priors import current_prior
from ur_energy_model.identification.grams import BlockedGram, Prior, Solution, cross_validate, solve
from ur_energy_model.identification.joint_fit import JointFit, friction_of
from ur_energy_model.identification.session_scales import SessionBlocks, session_scales
from ur_energy_model.identification.signals import Motion, NarrowFilter
from ur_energy_model.model.friction import LAWS, Friction
from ur_energy_model.model.friction_terms import OperatingPoint, Term
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.sessions import scaled_parameters

Array = NDArray[np.float64]

MOVING_SPEED = 0.02
"""Joint speed above which a sample counts as moving [rad/s]."""
SHORTEST_MOTION = 1.0
"""A joint that moved for less time keeps the robot file's constants [s]."""
_FILTER_MEMORY = 6.0
"""Samples over which the narrow filter correlates white noise, at the rate kept behind it."""


class _Library:
    """The distinct columns of all candidates: load, friction terms with their shapes, current."""

    def __init__(self, laws: Sequence[Candidate]) -> None:
        self._terms: dict[tuple[Term, tuple[float, ...]], tuple[int, dict[str, float]]] = {}
        self.places: list[list[int]] = []
        for candidate in laws:
            shape = dict(candidate.shape)
            place = [0]
            for term in candidate.law.terms.values():
                key = (term, tuple(shape[name] for name in term.uses))
                entry = self._terms.setdefault(key, (len(self._terms) + 1, shape))
                place.append(entry[0])
            self.places.append(place)
        self.width = len(self._terms) + 2
        self.places = [[*place, self.width - 1] for place in self.places]

    def columns(self, point: OperatingPoint, current: Array) -> Array:
        """[samples, n, width]."""
        out = np.empty((*current.shape, self.width))
        out[..., 0] = point.load / point.gear_ratio
        for (term, _), (place, shape) in self._terms.items():
            out[..., place] = term(point, shape)
        out[..., -1] = current
        return out


@dataclass(frozen=True)
class _Scored:
    """A candidate of one joint: blocks under its session scales [sessions], errors per fold."""

    candidate: Candidate
    sessions: list[SessionBlocks]
    blocks: Array
    prior: Prior
    errors: Array
    scales: Array

    def with_final_scales(self) -> _Scored:
        """The chosen law: scales enter its fit unless it has temperature for what they say."""
        applied = not self.candidate.law.uses_temperature
        scales, blocks = session_scales(
            self.sessions, self.prior, _scaled(self.candidate), applied=applied
        )
        return replace(self, blocks=blocks, scales=scales)


def _scaled(candidate: Candidate) -> NDArray[np.bool_]:
    """Which coefficients of (1/k_t, friction parameters / k_t) a session scales."""
    return np.append(False, scaled_parameters(candidate.law.parameters))


class CurrentFit:
    """Accumulates motions of any number of recordings and fits all joints.

    Args:
        robot: the arm, n joints; source of the priors.
        friction: law name or "auto".
        warm: see `candidates`.
    """

    def __init__(
        self, robot: RobotDescription, friction: str = AUTO, *, warm: bool = False
    ) -> None:
        self.robot = robot
        self.friction = friction
        self.candidates = candidates(friction, warm=warm)
        self._warm = warm
        self._library = _Library(self.candidates)
        self._sessions: list[tuple[BlockedGram, BlockedGram]] = []
        self._temperature = np.array([[np.inf, -np.inf]] * robot.dof)
        self._moving_time = np.zeros(robot.dof)

    def start_session(self) -> None:
        """What is added from now on belongs to another session, with friction of its own level."""
        self._sessions.append((BlockedGram(), BlockedGram()))

    def add(self, motion: Motion, load: Array, narrow: NarrowFilter) -> None:
        """Add an uninterrupted motion.

        Args:
            motion: [samples, n].
            load: its torque without friction, joint side [samples, n], N m.
            narrow: filter for columns and currents.
        """
        inside = narrow.inside(motion)
        if len(motion.time[inside]) < 2:
            return
        low = np.fmin.reduce(motion.temperature, axis=0)
        high = np.fmax.reduce(motion.temperature, axis=0)
        self._temperature[:, 0] = np.fmin(self._temperature[:, 0], low)
        self._temperature[:, 1] = np.fmax(self._temperature[:, 1], high)
        moving = narrow.moving(motion, MOVING_SPEED)[inside]
        rows = narrow(motion, self._library.columns(self._point(motion, load), motion.current))
        rows = rows[inside] * moving[:, :, None]
        time = motion.time[inside]
        period = float(time[1] - time[0])
        self._moving_time += moving.sum(axis=0) * period
        grams, sizes = self._last()
        by_joint = np.ascontiguousarray(rows.transpose(1, 0, 2))
        edges = [0, *(np.flatnonzero(np.diff(np.floor(time))) + 1), len(time)]
        for start, stop in pairwise(edges):
            piece = by_joint[:, start:stop]
            duration = (stop - start) * period
            grams.add(piece.transpose(0, 2, 1) @ piece, duration)
            sizes.add(moving[start:stop].sum(axis=0, dtype=float), duration)

    def merge(self, other: CurrentFit) -> None:
        """Take over what another accumulator with the same candidates has seen of this session."""
        if other.candidates != self.candidates:
            raise ValueError("accumulators of different friction candidates do not merge")
        for own, theirs in zip(self._last(), other._last(), strict=True):
            own.merge(theirs)
        self._moving_time += other._moving_time
        self._temperature[:, 0] = np.minimum(self._temperature[:, 0], other._temperature[:, 0])
        self._temperature[:, 1] = np.maximum(self._temperature[:, 1], other._temperature[:, 1])

    def fit(self) -> tuple[JointFit, ...]:
        """Results per joint.

        Raises:
            IdentificationError: a joint that did not move has no constants in the robot file.
        """
        return tuple(self._joint(j) for j in range(self.robot.dof))

    def _last(self) -> tuple[BlockedGram, BlockedGram]:
        """Gram matrices and numbers of samples of the session that is being added to."""
        if not self._sessions:
            self.start_session()
        return self._sessions[-1]

    def _point(self, motion: Motion, load: Array) -> OperatingPoint:
        model = self.robot.friction_temperature_model.T
        return OperatingPoint(
            motion.qd, load, self.robot.gear_ratio,
            motion.temperature if np.isfinite(motion.temperature).all() else None,
            model if np.isfinite(model).all() else None,
        )  # fmt: skip

    def _joint(self, j: int) -> JointFit:
        if self._moving_time[j] < SHORTEST_MOTION:
            return self._from_prior(j)
        library = [(g.blocks[:, j], c.blocks[:, j]) for g, c in self._sessions if len(c)]
        library = [(grams, counts) for grams, counts in library if counts.any()]
        counts = np.concatenate([counts for _, counts in library])
        scored: list[_Scored] = []
        for candidate, place in zip(self.candidates, self._library.places, strict=True):
            sessions = [SessionBlocks(g[:, place][:, :, place], c) for g, c in library]
            prior = current_prior(self.robot, candidate.law, j)
            # Laws compete without scales where temperature may explain what they would hide.
            scales, blocks = session_scales(
                sessions, prior, _scaled(candidate), applied=not self._warm
            )
            errors = (
                cross_validate(blocks, prior, counts) if len(self.candidates) > 1 else np.zeros(1)
            )
            scored.append(_Scored(candidate, sessions, blocks, prior, errors, scales))
        best: dict[str, _Scored] = {}
        for entry in scored:
            name = entry.candidate.law.name
            if name not in best or entry.errors.mean() < best[name].errors.mean():
                best[name] = entry
        chosen, reason = choose({name: entry.errors for name, entry in best.items()})
        found = best[chosen].with_final_scales()
        solution = solve(found.blocks, found.prior, counts)
        if solution.coefficients[0] <= 0:
            raise IdentificationError(
                f"{self.robot.joint_names[j]}: current falls as torque rises; check that the "
                "recording is of this robot"
            )
        comparison = {name: float(np.sqrt(e.errors.mean())) for name, e in best.items()}
        if len(self.candidates) == 1:
            comparison, reason = {}, "chosen by --friction"
        ratio = _unexplained_over_load(solution, found.blocks.sum(axis=0))
        fit = self._result(j, found.candidate, found.prior, solution, reason, comparison, ratio)
        return replace(fit, session_scales=found.scales)

    def _result(
        self, j: int, candidate: Candidate, prior: Prior, solution: Solution, reason: str,
        comparison: dict[str, float], unexplained_over_load: float = float("inf"),
    ) -> JointFit:  # fmt: skip
        law = candidate.law
        constant = 1.0 / solution.coefficients[0]
        deviation = float(solution.std[0] * constant**2)
        parameters, parameter_std = friction_of(solution.coefficients, solution.covariance)
        told = solution.std < 0.5 * prior.std
        names = ("torque_constant", *law.parameters)
        low, high = self._temperature[j]
        known = bool(np.isfinite(low) and np.isfinite(high))
        model = self.robot.friction_temperature_model[j]
        uses_model = law.name == "temperature_exponential" and bool(np.isfinite(model).all())
        return JointFit(
            torque_constant=float(constant),
            torque_constant_std=deviation,
            friction=Friction(
                law,
                dict(zip(law.parameters, parameters.tolist(), strict=True)),
                dict(candidate.shape),
                (model[0], model[1], model[2], model[3]) if uses_model else None,
                (float(low), float(high)) if known else None,
            ),
            friction_std=dict(zip(law.parameters, parameter_std.tolist(), strict=True)),
            covariance=solution.covariance,
            source={n: "current" if t else "prior" for n, t in zip(names, told, strict=True)},
            residual=solution.residual,
            reason=reason,
            comparison=comparison,
            effective_samples=solution.effective_samples,
            unexplained_over_load=unexplained_over_load,
            regressed_constant=float(constant),
            regressed_std=deviation,
        )

    def _from_prior(self, j: int) -> JointFit:
        """The robot file's word for a joint that did not move."""
        name = self.friction if self.friction != AUTO else "coulomb_viscous"
        law = LAWS[name]
        prior = current_prior(self.robot, law, j)
        if not np.isfinite(prior.std).all():
            raise IdentificationError(
                f"{self.robot.joint_names[j]} moved for less than {SHORTEST_MOTION:g} s and the "
                f"robot file {self.robot.name} has no torque constant for it; record a motion of "
                "all joints or add drive.torque_constant to the robot file"
            )
        candidate = next(c for c in candidates(name, warm=True))
        solution = Solution(prior.mean, np.diag(prior.std**2), float("nan"), 0.0, 0.0)
        reason = f"joint moved for less than {SHORTEST_MOTION:g} s: robot file and typical friction"
        return self._result(j, candidate, prior, solution, reason, {})


def _unexplained_over_load(solution: Solution, gram: Array) -> float:
    """RMS of the residual's systematic part over that of the load's current.

    Residuals that are correlated for longer than the filter makes white noise are systematic.
    """
    share = 1.0 - _FILTER_MEMORY * solution.effective_samples / solution.samples
    load = solution.coefficients[0] * np.sqrt(gram[0, 0] / solution.samples)
    return float(solution.residual * np.sqrt(max(share, 0.0)) / max(load, 1e-9))
