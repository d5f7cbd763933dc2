"""Torque constant and friction of every joint, together, from measured current.

Clochiatti et al., Robotica 2024, eq. 10-18: with the torque without friction known from motion,
the current is linear in 1/k_t and the friction parameters over k_t,

    I = 1/k_t * load / N + sum over terms (parameter / k_t * term),

so one linear least squares finds both. Every candidate law is accumulated at once in Gram
matrices per block of time; blocked cross-validation chooses, and parsimony wins ties. Only
moving samples are fitted: at standstill friction takes any value up to its limit.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np

from ur_energy_model.errors import IdentificationError
from ur_energy_model.identification.dynamics.reflected_inertia import InertiaEstimate
from ur_energy_model.identification.friction.current_columns import CurrentColumns
from ur_energy_model.identification.friction.inertia_from_current import (
    prior_with_inertia,
    separate_inertia,
)
from ur_energy_model.identification.friction.joint_estimate import (
    JointEstimate,
    friction_from_coefficients,
)
from ur_energy_model.identification.friction.law_candidates import (
    AUTO,
    FrictionCandidate,
    candidates,
)
from ur_energy_model.identification.friction.law_selection import (
    ScoredLaw,
    choose,
    scaled_coefficients,
)
from ur_energy_model.identification.friction.priors import current_prior
from ur_energy_model.identification.friction.session_scales import SessionBlocks, session_scales
from ur_energy_model.identification.friction.systematic_residual import (
    load_share_unexplained,
    systematic_rms,
)
from ur_energy_model.identification.regression.blocked_gram import BlockedGram
from ur_energy_model.identification.regression.filtered_motion import FilteredMotion
from ur_energy_model.identification.regression.least_squares import (
    Prior,
    Solution,
    cross_validate,
    solve,
)
from ur_energy_model.identification.regression.narrow_filter import NarrowFilter
from ur_energy_model.model.friction.law import LAWS, Friction
from ur_energy_model.model.friction.terms import OperatingPoint
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.typing import Array

MOVING_SPEED = 0.02
"""Joint speed above which a sample counts as moving [rad/s]."""
SHORTEST_MOTION = 1.0
"""A joint that moved for less time keeps the robot file's constants [s]."""
FRICTION_ERROR = 0.015
"""Share of a joint's friction that a law's form, and a delay of a millisecond or two between
currents and speeds, leave open whatever the statistics say; on made-up arms of such delays."""
_NO_CURRENT = 1e-6
"""RMS of a current that no motor has while it moves [A]."""
_FILTER_MEMORY = 6.0
"""Samples over which the narrow filter correlates white noise, at the rate kept behind it."""
_FRICTION_FORM = 0.005
"""Share of a current that the form of friction leaves open even where noise hides it, assumed: it
matters to wrists, whose links ask for little."""
_WHITE_TIME = 0.75
"""The same in periods of the cut-off, for recordings too slow to keep that rate."""


class CurrentRegression:
    """Accumulates motions of any number of recordings and fits all joints.

    Args:
        robot: the arm, n joints; source of the priors.
        friction: law name or "auto".
        warm: see `candidates`.
        inertia: reflected inertias believed of the joints, of which the unknown ones are fitted
            too; None where all of them are known.
        nominal: those that the loads are computed with [n], kg m^2; the believed ones where None.
    """

    def __init__(
        self,
        robot: RobotDescription,
        friction: str = AUTO,
        *,
        warm: bool = False,
        inertia: InertiaEstimate | None = None,
        nominal: Array | None = None,
    ) -> None:
        self.robot = robot
        self.friction = friction
        self.candidates = candidates(friction, warm=warm)
        self._warm = warm
        self._sessions: list[tuple[BlockedGram, BlockedGram]] = []
        self._inertia = inertia
        self._nominal = inertia.value if inertia is not None and nominal is None else nominal
        self._library = CurrentColumns(
            self.candidates, inertia is not None and bool(inertia.unknown.any())
        )
        self._temperature = np.array([[np.inf, -np.inf]] * robot.dof)
        self._moving_time = np.zeros(robot.dof)
        self._memory = _FILTER_MEMORY

    def start_session(self) -> None:
        """What is added from now on belongs to another session, with friction of its own level."""
        self._sessions.append((BlockedGram(), BlockedGram()))

    def accumulate(self, motion: FilteredMotion, load: Array, narrow: NarrowFilter) -> None:
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
        rows = narrow(motion, self._library.columns(self._point(motion, load), motion))
        rows = rows[inside] * moving[:, :, None]
        time = motion.time[inside]
        period = float(time[1] - time[0])
        self._moving_time += moving.sum(axis=0) * period
        self._memory = max(1.0, min(self._memory, _WHITE_TIME / (narrow.cutoff * period)))
        grams, sizes = self._last()
        by_joint = np.ascontiguousarray(rows.transpose(1, 0, 2))
        edges = [0, *(np.flatnonzero(np.diff(np.floor(time))) + 1), len(time)]
        for start, stop in pairwise(edges):
            piece = by_joint[:, start:stop]
            duration = (stop - start) * period
            grams.accumulate(piece.transpose(0, 2, 1) @ piece, duration)
            sizes.accumulate(moving[start:stop].sum(axis=0, dtype=float), duration)

    def merge(self, other: CurrentRegression) -> None:
        """Take over what another accumulator with the same candidates has seen of this session."""
        if other.candidates != self.candidates:
            raise ValueError("accumulators of different friction candidates do not merge")
        for own, theirs in zip(self._last(), other._last(), strict=True):
            own.merge(theirs)
        self._moving_time += other._moving_time
        self._temperature[:, 0] = np.minimum(self._temperature[:, 0], other._temperature[:, 0])
        self._temperature[:, 1] = np.maximum(self._temperature[:, 1], other._temperature[:, 1])

    def fit(self) -> tuple[JointEstimate, ...]:
        """Results per joint.

        Raises:
            IdentificationError: no joint moves, or one that does not move has no constants in the
                robot file.
        """
        if self._moving_time.max(initial=0.0) < SHORTEST_MOTION:
            raise IdentificationError(
                f"no joint moves for {SHORTEST_MOTION:g} s or more, brakes released and no "
                "freedrive; record the robot while a program moves it"
            )
        return tuple(self._joint(j) for j in range(self.robot.dof))

    def _last(self) -> tuple[BlockedGram, BlockedGram]:
        """Gram matrices and numbers of samples of the session that is being added to."""
        if not self._sessions:
            self.start_session()
        return self._sessions[-1]

    def _point(self, motion: FilteredMotion, load: Array) -> OperatingPoint:
        model = self.robot.friction_temperature_model.T
        return OperatingPoint(
            motion.qd,
            load,
            self.robot.gear_ratio,
            motion.temperature if np.isfinite(motion.temperature).all() else None,
            model if np.isfinite(model).all() else None,
        )

    def _joint(self, j: int) -> JointEstimate:
        if self._moving_time[j] < SHORTEST_MOTION:
            return self._from_prior(j)
        library = [(g.blocks[:, j], c.blocks[:, j]) for g, c in self._sessions if len(c)]
        library = [(grams, counts) for grams, counts in library if counts.any()]
        counts = np.concatenate([counts for _, counts in library])
        scored: list[ScoredLaw] = []
        fits_inertia = self._inertia is not None and bool(self._inertia.unknown[j])
        nominal = 0.0 if self._nominal is None else float(self._nominal[j])
        for index, candidate in enumerate(self.candidates):
            place = self._library.place(index, fits_inertia)
            sessions = [SessionBlocks(g[:, place][:, :, place], c) for g, c in library]
            prior = current_prior(self.robot, candidate.law, j)
            if self._inertia is not None and fits_inertia:
                believed = (float(self._inertia.value[j]), float(self._inertia.std[j]))
                whole = np.concatenate([session.blocks for session in sessions])
                prior = prior_with_inertia(prior, whole, counts, believed, nominal)
            # Laws compete without scales where temperature may explain what they would hide.
            which = scaled_coefficients(candidate, len(prior.mean))
            scales, blocks = session_scales(sessions, prior, which, applied=not self._warm)
            errors = (
                cross_validate(blocks, prior, counts) if len(self.candidates) > 1 else np.zeros(1)
            )
            scored.append(ScoredLaw(candidate, sessions, blocks, prior, errors, scales))
        best: dict[str, ScoredLaw] = {}
        for entry in scored:
            name = entry.candidate.law.name
            if name not in best or entry.errors.mean() < best[name].errors.mean():
                best[name] = entry
        chosen, reason = choose({name: entry.errors for name, entry in best.items()})
        found = best[chosen].with_final_scales()
        prior, gram = found.prior, found.blocks.sum(axis=0)
        solution = solve(found.blocks, prior, counts)
        self._refuse_impossible(solution, gram, j)
        comparison = {name: float(np.sqrt(e.errors.mean())) for name, e in best.items()}
        if len(self.candidates) == 1:
            comparison, reason = {}, "chosen by --friction"
        systematic, relative, inertia = systematic_rms(solution, self._memory), None, None
        if self._inertia is not None and fits_inertia:
            relative = float(self._inertia.std[j] / self._inertia.value[j])
            unseen = _FRICTION_FORM * np.sqrt(gram[-1, -1] / solution.samples)
            systematic = max(systematic, float(unseen))
            if self._memory < _FILTER_MEMORY:  # so slow that what is systematic looks white
                systematic = solution.residual
        ratio = load_share_unexplained(solution, gram, systematic, relative)
        if fits_inertia:
            solution, inertia = separate_inertia(solution, gram, nominal, systematic)
            prior = Prior(prior.mean[:-1], prior.std[:-1])
        fit = self._result(j, found.candidate, prior, solution, reason, comparison, ratio)
        return replace(fit, inertia=inertia, session_scales=found.scales)

    def _refuse_impossible(self, solution: Solution, gram: Array, j: int) -> None:
        name = self.robot.joint_names[j]
        if gram[-1, -1] <= _NO_CURRENT**2 * solution.samples:
            raise IdentificationError(
                f"{name}: actual_current stays zero while the joint moves; check the recorder and "
                "record again"
            )
        if not solution.coefficients[0] > 0:
            raise IdentificationError(
                f"{name}: current falls as torque rises; check that the recording is of this "
                "robot, mounted and loaded as stated (--gravity, --payload)"
            )

    def _result(
        self,
        j: int,
        candidate: FrictionCandidate,
        prior: Prior,
        solution: Solution,
        reason: str,
        comparison: dict[str, float],
        unexplained_over_load: float = float("inf"),
    ) -> JointEstimate:
        law = candidate.law
        form = FRICTION_ERROR * np.append(0.0, solution.coefficients[1:])
        solution = replace(solution, covariance=solution.covariance + np.outer(form, form))
        constant = 1.0 / solution.coefficients[0]
        deviation = float(solution.std[0] * constant**2)
        parameters, parameter_std = friction_from_coefficients(
            solution.coefficients, solution.covariance
        )
        told = solution.std < 0.5 * prior.std
        names = ("torque_constant", *law.parameters)
        low, high = self._temperature[j]
        known = bool(np.isfinite(low) and np.isfinite(high))
        model = self.robot.friction_temperature_model[j]
        uses_model = law.name == "temperature_exponential" and bool(np.isfinite(model).all())
        return JointEstimate(
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

    def _from_prior(self, j: int) -> JointEstimate:
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
