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
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.errors import IdentificationError
from ur_energy_model.identification.friction_choice import AUTO, Candidate, candidates, choose
from ur_energy_model.identification.friction_priors import current_prior
from ur_energy_model.identification.grams import BlockedGram, Prior, Solution, cross_validate, solve
from ur_energy_model.identification.joint_fit import JointFit, friction_of
from ur_energy_model.identification.signals import Motion, NarrowFilter
from ur_energy_model.model.friction import LAWS, Friction
from ur_energy_model.model.friction_terms import OperatingPoint, Term
from ur_energy_model.model.robots import RobotDescription

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
        self._library = _Library(self.candidates)
        self._grams = BlockedGram()
        self._counts = BlockedGram()
        self._temperature = np.array([[np.inf, -np.inf]] * robot.dof)
        self._moving_time = np.zeros(robot.dof)

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
        by_joint = np.ascontiguousarray(rows.transpose(1, 0, 2))
        edges = [0, *(np.flatnonzero(np.diff(np.floor(time))) + 1), len(time)]
        for start, stop in pairwise(edges):
            piece = by_joint[:, start:stop]
            duration = (stop - start) * period
            self._grams.add(piece.transpose(0, 2, 1) @ piece, duration)
            self._counts.add(moving[start:stop].sum(axis=0, dtype=float), duration)

    def merge(self, other: CurrentFit) -> None:
        """Take over what another accumulator with the same candidates has seen."""
        if other.candidates != self.candidates:
            raise ValueError("accumulators of different friction candidates do not merge")
        self._grams.merge(other._grams)
        self._counts.merge(other._counts)
        self._moving_time += other._moving_time
        self._temperature[:, 0] = np.minimum(self._temperature[:, 0], other._temperature[:, 0])
        self._temperature[:, 1] = np.maximum(self._temperature[:, 1], other._temperature[:, 1])

    def fit(self) -> tuple[JointFit, ...]:
        """Results per joint.

        Raises:
            IdentificationError: a joint that did not move has no constants in the robot file.
        """
        return tuple(self._joint(j) for j in range(self.robot.dof))

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
        counts = self._counts.blocks[:, j]
        scored: list[tuple[Candidate, Array, Prior, Array]] = []
        library = self._grams.blocks[:, j]
        for candidate, place in zip(self.candidates, self._library.places, strict=True):
            blocks = library[:, place][:, :, place]
            prior = current_prior(self.robot, candidate.law, j)
            errors = (
                cross_validate(blocks, prior, counts) if len(self.candidates) > 1 else np.zeros(1)
            )
            scored.append((candidate, blocks, prior, errors))
        best: dict[str, tuple[Candidate, Array, Prior, Array]] = {}
        for entry in scored:
            name = entry[0].law.name
            if name not in best or entry[3].mean() < best[name][3].mean():
                best[name] = entry
        chosen, reason = choose({name: entry[3] for name, entry in best.items()})
        candidate, blocks, prior, _ = best[chosen]
        solution = solve(blocks, prior, counts)
        if solution.coefficients[0] <= 0:
            raise IdentificationError(
                f"{self.robot.joint_names[j]}: current falls as torque rises; check that the "
                "recording is of this robot"
            )
        comparison = {name: float(np.sqrt(entry[3].mean())) for name, entry in best.items()}
        if len(self.candidates) == 1:
            comparison, reason = {}, "chosen by --friction"
        ratio = _unexplained_over_load(solution, blocks.sum(axis=0))
        return self._result(j, candidate, prior, solution, reason, comparison, ratio)

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
