# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Regression of the motor currents: torque constant and friction of every joint.

Clochiatti et al., Robotica 2024, eq. 10-18: torque constant and friction are fitted
together, by linear least squares, with the friction laws of model/friction.py in place of
the paper's single one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ur_energy_model.errors import IdentificationError
from ur_energy_model.identification.dynamics import RecordingDynamics
from ur_energy_model.identification.filtered_motion import (
    MOVING_SPEED,
    NO_MOTION,
    SHORTEST_MOTION,
    FilteredMotion,
    ParallelFilter,
    merged_ranges,
)
from ur_energy_model.identification.friction_data import (
    AUTO,
    CURRENT,
    WARMTH,
    CurrentColumns,
    FrictionCandidate,
    RecordedPoints,
    SessionScales,
    candidates,
    choose,
    clearly_better,
    current_prior,
    known_prior,
    session_scales,
)
from ur_energy_model.identification.friction_shape import (
    MOST_ROUNDS,
    ShapeChanges,
    ShapedCandidate,
    fitted_constants,
    linearised,
    next_shape,
)
from ur_energy_model.identification.least_squares import (
    BlockedGram,
    Prior,
    Solution,
    cross_validate,
    gram_matrices_by_joint,
    prior_alone,
    solve,
)
from ur_energy_model.identification.recording import SessionData
from ur_energy_model.identification.reflected_inertia import (
    InertiaEstimate,
    JointInertiaPrior,
    current_of_load,
    current_of_own_load,
    inertia_from,
    inertia_with_currents,
    with_inertia,
)
from ur_energy_model.identification.torque_constants import (
    JointEstimate,
    friction_from_coefficients,
)
from ur_energy_model.model.drive_errors import FRICTION_COEFFICIENTS, LOAD_COEFFICIENT
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.friction import LAWS, Friction
from ur_energy_model.model.friction_files import is_own
from ur_energy_model.model.friction_terms import OperatingPoint
from ur_energy_model.model.generic import is_generic
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.telemetry.samples import time_blocks
from ur_energy_model.typing import Array

ENOUGH_MOTION = 60.0
"""Motion of a joint after which the friction law is chosen by its currents alone; with less motion
the law of a generic model is kept unless another one is clearly better [s]. In six recordings of a
UR10e, the law of the generic model had up to 16 % more error."""
FRICTION_ERROR = 0.015
"""Relative model error of a joint's friction: the form of the law, and a delay of one or two
milliseconds between currents and speeds (from simulated arms with such delays)."""
_FILTER_MEMORY = 6.0
"""Number of samples over which the narrow filter correlates white noise, at the rate that is kept
after filtering."""
_WHITE_TIME = 0.75
"""Time over which the narrow filter correlates white noise, in periods of the cut-off frequency;
for recordings whose sample rate is below the rate that is kept."""
_FRICTION_FORM = 0.005
"""Assumed model error of friction that noise hides, as a share of the current; it matters for
wrists, whose links load them little."""
_NO_CURRENT = 1e-6  # RMS current that every moving motor exceeds [A]
_LEAST_CURRENT = 1e-9  # RMS current for a load that is divided by, at least [A]
_CLEAR = 3.0  # number of standard deviations beyond which a wrong sign is no chance
_SCALING_ROUNDS = 8
"""Rounds in which 1/k_t and the scale of the inertia's coefficient come to agree."""
_LEAST_LOAD_COEFFICIENT = 1e-9  # 1/k_t of a motor that hardly takes current [A/(N m)]
_BLOCK = 1.0  # duration of a block of time [s]


class _Scored(NamedTuple):
    """A friction law of one joint with its data, prior and held-out errors.

    Attributes:
        candidate: the law and its shape constants.
        sessions: Gram matrices of the law's columns in each session [blocks, p + 1, p + 1].
        prior: prior of the law's coefficients, without the coefficient of the inertia.
        inverse: 1/k_t [A/(N m)], which scales the prior of the inertia's coefficient.
        errors: held-out mean squared residuals [folds], A^2.
    """

    candidate: FrictionCandidate
    sessions: list[Array]
    prior: Prior
    inverse: float
    errors: Array


class _Choice(NamedTuple):
    """The friction law that is used for one joint.

    Attributes:
        scored: the law with its data.
        known: whether it is the law of a model known before.
        reason: why it is used, in words.
        comparison: held-out RMS by law name [A]; empty for a law that the user chose.
        sessions: numbers of the sessions in which the joint moved.
        counts: numbers of samples of the blocks of each of these sessions [blocks].
    """

    scored: _Scored
    known: bool
    reason: str
    comparison: dict[str, float]
    sessions: tuple[int, ...]
    counts: tuple[Array, ...]


class CurrentRegression:
    """Accumulates motions of any number of recordings and fits all joints.

    The coefficients of a joint's current are 1/k_t for the load, the friction parameters
    over k_t, and (J - nominal) / k_t for the acceleration, with a prior of the reflected
    inertia J. The last one is needed although target_moment shows an inertia: it is the
    inertia in the controller, and the inertia of an arm differs from it. Wrists 1 and 3 of a
    UR10e have 0.8 times the controller's inertia in each of seven recordings, with the torque
    constant that joints of a size share.

    Args:
        robot: the arm, n joints.
        friction: name of a friction law, or "auto" to choose one for each joint.
        inertia: prior of the reflected inertias; None where they are not fitted.
        nominal: inertias that loads were computed with [n], kg m^2; None for the mean of
            the prior.
        known: a model known before. Its friction laws and values are tried, too; the laws
            and values of a generic model only until a joint has moved for ENOUGH_MOTION.
        warm: whether temperatures change enough for laws that use them, see `candidates`.
        around: regression of the same recordings, whose choice of laws this one keeps
            with shape constants that fit better; None to choose laws.
    """

    def __init__(
        self,
        robot: RobotDescription,
        friction: str = AUTO,
        *,
        warm: bool = False,
        inertia: InertiaEstimate | None = None,
        nominal: Array | None = None,
        known: EnergyModel | None = None,
        around: CurrentRegression | None = None,
    ) -> None:
        self.robot = robot
        self.friction = friction
        self._around = around
        # Of each joint: index of its only candidate, and of the same linearised.
        self._places: list[tuple[int, int | None]] = []
        if around is None:
            self.candidates = candidates(friction, warm=warm)
        else:
            self.candidates = self._candidates_around(around)
        self._warm = warm
        self._inertia = inertia
        self._known = known
        if nominal is None and inertia is not None:
            nominal = inertia.value
        self._nominal = nominal
        self._columns = CurrentColumns(self.candidates, inertia is not None, known)
        n = robot.dof
        # Lowest and highest temperatures of each joint [n, 2], degC; NaN if not recorded.
        self._temperature = np.full((n, 2), np.nan)
        self._moving_time = np.zeros(n)  # motion of each joint [s]
        # Number of samples over which the narrow filter correlates white noise.
        self._memory = _FILTER_MEMORY
        # For each session: Gram matrices of [columns, current] by joint and block of time,
        # and numbers of samples by joint and block.
        self._sessions: list[tuple[BlockedGram, BlockedGram]] = []
        self._choices: dict[int, _Choice] = {}

    def start_session(self) -> None:
        """Start another session, whose friction level is independent of the others."""
        self._sessions.append((BlockedGram(), BlockedGram()))

    def accumulate(
        self,
        motion: FilteredMotion,
        load: Array,
        narrow: ParallelFilter,
        rate: float | None = None,
    ) -> None:
        """Add a motion to the current session.

        Args:
            motion: a stretch without gaps.
            load: torque of the motion without friction, joint side [samples, n], N m.
            narrow: filter for columns and currents.
            rate: samples per second of the recording [Hz], with which friction terms of
                fitted shape constants are computed; None for those of the motion.
        """
        inside = narrow.inside(motion)
        time = motion.time[inside]
        if len(time) < 2:
            return
        self._choices = {}
        temperature_model = self.robot.friction_temperature_model.T
        known_model = bool(np.isfinite(temperature_model).all())
        point = OperatingPoint(
            motion.qd,
            load,
            self.robot.gear_ratio,
            motion.known_temperature,
            temperature_model if known_model else None,
        )
        moving = narrow.moving(motion, MOVING_SPEED)[inside]
        period = float(time[1] - time[0])
        recorded = None
        if self._around is not None and rate is not None:
            recorded = RecordedPoints.of(point, motion.time, narrow.cutoff, rate)
        columns = narrow(motion, self._columns.columns(point, motion, recorded))
        rows = columns[inside] * moving[:, :, None]
        self._memory = max(1.0, min(self._memory, _WHITE_TIME / (narrow.cutoff * period)))
        self._temperature = merged_ranges(self._temperature, motion.temperature_range)
        self._moving_time = self._moving_time + moving.sum(axis=0) * period
        grams, counts = self._sessions[-1]
        for block in time_blocks(time, _BLOCK):
            duration = len(time[block]) * period
            grams.accumulate(gram_matrices_by_joint(rows[block]), duration)
            counts.accumulate(moving[block].sum(axis=0, dtype=float), duration)

    def fit(self, *, own_inertia: bool = True) -> tuple[JointEstimate, ...]:
        """Results of all joints.

        Args:
            own_inertia: whether the inertias of the arm may differ from the controller's,
                which target_moment shows.

        Raises:
            IdentificationError: no joint moves, a joint that hardly moves has no
                constants in the robot file, or currents contradict the torque.
        """
        if self._moving_time.max(initial=0.0) < SHORTEST_MOTION:
            raise IdentificationError(NO_MOTION)
        joints = []
        for j, moved in enumerate(self._moving_time):
            if moved < SHORTEST_MOTION:
                joints.append(self._from_prior(j))
            else:
                joints.append(self._from_currents(j, own_inertia))
        return tuple(joints)

    def from_priors(self) -> tuple[JointEstimate, ...]:
        """The robot file's constants and typical friction of all joints.

        Raises:
            IdentificationError: the robot file has no torque constant for a joint.
        """
        return tuple(self._from_prior(j) for j in range(self.robot.dof))

    def _from_prior(self, j: int) -> JointEstimate:
        """A joint that hardly moved, by the model known before, else by robot file and type."""
        reason = f"joint moved for less than {SHORTEST_MOTION:g} s: "
        if self._known is not None:
            candidate, prior = self._known_candidate(j)
            reason += "as known before"
        else:
            law = LAWS["coulomb_viscous" if self.friction == AUTO else self.friction]
            candidate = FrictionCandidate(law, law.default_shape)
            prior = current_prior(self.robot, candidate.law, j)
            reason += "robot file and typical friction"
            if not np.isfinite(prior.std).all():
                raise IdentificationError(
                    f"{self.robot.joint_names[j]} moved for less than {SHORTEST_MOTION:g} s and "
                    f"the robot file {self.robot.name} has no torque constant for it; record a "
                    "motion of all joints or add drive.torque_constant to the robot file"
                )
        known = self._known is not None
        found = self._estimate(j, candidate, prior, prior_alone(prior), known=known)
        return replace(found, reason=reason)

    def _known_candidate(self, j: int) -> tuple[FrictionCandidate, Prior]:
        """The law of a joint known before, with its shape, and its prior."""
        assert self._known is not None
        friction = self._known.joints[j].friction
        candidate = FrictionCandidate(friction.law, friction.all_shape)
        return candidate, known_prior(self._known, j)

    def _data(self, j: int) -> tuple[list[int], list[Array], list[Array]]:
        """Data of one joint in each session in which it moved.

        Args:
            j: index of the joint, from 0.

        Returns:
            Numbers of the sessions; Gram matrices of all columns [blocks, width, width];
            samples of the blocks [blocks].
        """
        moved: list[int] = []  # numbers of the sessions in which the joint moved
        grams: list[Array] = []
        counts: list[Array] = []
        for number, (session_grams, session_counts) in enumerate(self._sessions):
            if len(session_counts) and session_counts.blocks[:, j].any():
                moved.append(number)
                grams.append(session_grams.blocks[:, j])
                counts.append(session_counts.blocks[:, j])
        return moved, grams, counts

    def choice(self, j: int) -> _Choice:
        """The friction law of one joint with the least held-out error.

        The inertia of the joint is fitted with the law, and may differ from the controller's.
        """
        if j in self._choices:
            return self._choices[j]
        moved, grams, counts = self._data(j)
        if self._around is not None:
            earlier = self._around.choice(j)
            index = None if earlier.known else self._places[j][0]
            kept = earlier._replace(
                scored=self._score(index, j, grams, counts),
                sessions=tuple(moved),
                counts=tuple(counts),
            )
            self._choices[j] = kept
            return kept
        best: dict[str, _Scored] = {}
        for index, candidate in enumerate(self.candidates):
            name = candidate.law.name
            scored = self._score(index, j, grams, counts)
            if name not in best or scored.errors.mean() < best[name].errors.mean():
                best[name] = scored
        chosen, reason = choose({name: entry.errors for name, entry in best.items()})
        comparison = {name: float(np.sqrt(e.errors.mean())) for name, e in best.items()}
        if self.friction != AUTO:
            reason = "chosen by --friction"
        if len(self.candidates) == 1:
            comparison = {}
        found = best[chosen]
        known = False
        enough = self._moving_time[j] >= ENOUGH_MOTION
        if self._known is not None and not (enough and is_generic(self._known)):
            before = self._score(None, j, grams, counts)
            if not clearly_better(found.errors, before.errors):
                found = before
                known = True
                reason = "law of the model known before; no other is clearly better"
        choice = _Choice(found, known, reason, comparison, tuple(moved), tuple(counts))
        self._choices[j] = choice
        return choice

    def _from_currents(self, j: int, own_inertia: bool) -> JointEstimate:
        """One joint, by the law chosen for it; `own_inertia` as in `fit`."""
        choice = self.choice(j)
        candidate = choice.scored.candidate
        inertia = self._inertia_prior(j, own=own_inertia)
        prior = with_inertia(choice.scored.prior, choice.scored.inverse, inertia)
        (scales, deviations, blocks), solution = _solved(
            candidate, choice.scored.sessions, choice.counts, prior
        )
        gram = blocks.sum(axis=0)
        self._refuse_impossible(j, solution, gram)
        systematic = self._systematic(solution, gram, hidden=inertia is not None)
        load = current_of_load(solution, gram)
        unexplained = float(systematic / max(load, _LEAST_CURRENT))
        fitted = None
        if inertia is not None:
            # The scale follows from the load that acceleration does not explain, or from
            # the prior of the inertia, whichever is more exact.
            own_load = current_of_own_load(solution, gram)
            by_load = float(systematic / max(own_load, _LEAST_CURRENT))
            by_inertia = float(np.hypot(unexplained, inertia.std / inertia.value))
            unexplained = min(by_load, by_inertia)
            fitted = inertia_from(solution, gram, inertia.nominal, systematic)
            solution = replace(
                solution,
                coefficients=solution.coefficients[:-1],
                covariance=solution.covariance[:-1, :-1],
            )
        estimate = self._estimate(
            j, candidate, choice.scored.prior, solution, known=choice.known
        )
        changes = self._shape_changes(j, inertia)
        if changes is not None:
            estimate = changes.in_deviations(estimate)
        return replace(
            estimate,
            reason=choice.reason,
            comparison=choice.comparison,
            unexplained_over_load=unexplained,
            session_scales=scales,
            session_deviations=deviations,
            sessions=choice.sessions,
            inertia=fitted,
        )

    # Shape constants.

    @property
    def has_better_shapes(self) -> bool:
        """Whether another regression would fit better with other shape constants."""
        for j in range(self.robot.dof):
            if self._shaped(j) is not None:
                changes = self._shape_changes(j, self._inertia_prior(j))
                if changes is None or not changes.are_small:
                    return True
        return False

    def _candidates_around(
        self, around: CurrentRegression
    ) -> tuple[FrictionCandidate, ...]:
        """The law of each joint as an earlier regression chose it, with better constants."""
        found: list[FrictionCandidate] = []
        for j in range(self.robot.dof):
            place = len(found)
            shaped = around._shaped(j)
            if shaped is not None:
                found += shaped
                self._places.append((place, place + 1))
            elif around._moves(j):
                found.append(around.choice(j).scored.candidate)
                self._places.append((place, None))
            else:
                self._places.append((place, None))
        return tuple(found)

    def _moves(self, j: int) -> bool:
        """Whether a joint moved long enough for its currents to be fitted."""
        return bool(self._moving_time[j] >= SHORTEST_MOTION)

    def _shaped(self, j: int) -> ShapedCandidate | None:
        """The law of a joint at its next shape constants; None where they are not fitted.

        Of the package's laws, only one that the user has chosen is refined: the constants
        of the others are near enough where many laws are compared.
        """
        if not self._moves(j):
            return None
        choice = self.choice(j)
        law = choice.scored.candidate.law
        is_refined = self.friction != AUTO or is_own(law)
        if choice.known or not is_refined or not fitted_constants(law):
            return None
        friction = self._from_currents(j, own_inertia=True).friction
        changes = self._shape_changes(j, self._inertia_prior(j))
        if changes is not None:
            friction = replace(friction, shape=next_shape(friction, changes.values))
        return linearised(friction)

    def _shape_changes(
        self, j: int, inertia: JointInertiaPrior | None
    ) -> ShapeChanges | None:
        """Changes of the shape constants that would fit better; None where they are not fitted.

        Args:
            j: index of the joint, from 0.
            inertia: prior of its inertia, as of the fit of the parameters.
        """
        if self._around is None or self._places[j][1] is None:
            return None
        choice = self.choice(j)
        _, grams, counts = self._data(j)
        scored = self._score(self._places[j][1], j, grams, counts)
        prior = with_inertia(scored.prior, choice.scored.inverse, inertia)
        _, solution = _solved(scored.candidate, scored.sessions, counts, prior)
        size = len(scored.prior.mean)
        return ShapeChanges.of(
            choice.scored.candidate.law,
            solution.coefficients[:size],
            solution.covariance[:size, :size],
        )

    def _systematic(self, solution: Solution, gram: Array, *, hidden: bool) -> float:
        """RMS of the systematic part of a joint's residual [A].

        The part of the residual that is correlated for longer than filtered white noise is
        systematic.

        Args:
            solution: solution of the joint's currents.
            gram: sum of the joint's Gram matrices [p + 1, p + 1].
            hidden: whether noise may hide errors of the friction law.
        """
        memory = self._memory
        share = 1.0 - memory * solution.effective_samples / solution.samples
        systematic = float(solution.residual * np.sqrt(max(share, 0.0)))
        if not hidden:
            return systematic
        # Sampled so slowly that systematic errors cannot be distinguished from white noise.
        if memory < _FILTER_MEMORY:
            return solution.residual
        current = np.sqrt(gram[CURRENT, CURRENT] / solution.samples)
        return max(systematic, float(_FRICTION_FORM * current))

    def _inertia_prior(self, j: int, *, own: bool = True) -> JointInertiaPrior | None:
        """Prior of a joint's inertia; None where inertias are not fitted.

        Args:
            j: index of the joint, from 0.
            own: whether the deviation of an arm's own inertias is used; else the deviation
                of the inertias that the controller computes with.
        """
        if self._inertia is None or self._nominal is None:
            return None
        spread = self._inertia.spread if own else self._inertia.std
        return JointInertiaPrior(
            float(self._inertia.value[j]), float(spread[j]), float(self._nominal[j])
        )

    def _score(
        self,
        index: int | None,
        j: int,
        grams: Sequence[Array],
        counts: Sequence[Array],
    ) -> _Scored:
        """A candidate of a joint with its held-out errors.

        Args:
            index: index of the candidate; None for the law known before.
            j: index of the joint, from 0.
            grams: Gram matrices of all columns in each session [blocks, width, width].
            counts: samples of these blocks in each session [blocks].
        """
        inertia = self._inertia_prior(j)
        if index is None:
            candidate, prior = self._known_candidate(j)
        else:
            candidate = self.candidates[index]
            prior = current_prior(self.robot, candidate.law, j)
        columns = np.array(self._columns.of_law(index, j))
        own = [blocks[:, columns[:, None], columns] for blocks in grams]
        inverse = float(prior.mean[LOAD_COEFFICIENT])
        # Without a k_t in the robot file, the scale of the inertia's coefficient follows
        # from the k_t of the fit, which depends on the scale: some rounds of both.
        if inertia is not None and not inverse > 0:
            whole = np.concatenate(own)
            samples = np.concatenate(counts)
            others = [*range(len(prior.mean)), -1]
            solution = solve(whole[:, others][:, :, others], prior, samples)
            inverse = _load_coefficient(solution)
            for _ in range(_SCALING_ROUNDS):
                solution = solve(whole, with_inertia(prior, inverse, inertia), samples)
                inverse = _load_coefficient(solution)
        errors = np.zeros(1)
        if len(self.candidates) > 1 or self._known is not None:
            # Session scales would hide temperature effects: recordings with changing
            # temperatures are scored without them.
            extended = with_inertia(prior, inverse, inertia)
            which = candidate.scaled(len(extended.mean))
            scaled = session_scales(own, counts, extended, which, applied=not self._warm)
            errors = cross_validate(scaled.blocks, extended, np.concatenate(counts))
        return _Scored(candidate, own, prior, inverse, errors)

    def _refuse_impossible(self, j: int, solution: Solution, gram: Array) -> None:
        """Refuse currents that no motor has: none in motion, or not rising with the torque."""
        name = self.robot.joint_names[j]
        inverse = solution.coefficients[LOAD_COEFFICIENT]
        if gram[CURRENT, CURRENT] <= _NO_CURRENT**2 * solution.samples:
            raise IdentificationError(
                f"{name}: actual_current stays zero while the joint moves; check the recorder and "
                "record again"
            )
        if -_CLEAR * solution.std[LOAD_COEFFICIENT] < inverse <= 0:
            raise IdentificationError(
                f"{name}: its currents do not show a torque constant; check that actual_current is "
                "this robot's, and record longer with faster starts and stops of this joint, or "
                "add drive.torque_constant to the robot file if it has none"
            )
        if not inverse > 0:
            raise IdentificationError(
                f"{name}: current falls as torque rises; check that the recording is of this "
                "robot, mounted and loaded as stated (--gravity, --payload)"
            )

    def _estimate(
        self,
        j: int,
        candidate: FrictionCandidate,
        prior: Prior,
        solution: Solution,
        *,
        known: bool,
    ) -> JointEstimate:
        """Result for a joint from prior and solution of (1/k_t, friction parameters / k_t).

        Args:
            j: index of the joint, from 0.
            candidate: friction law and its shape constants.
            prior: prior of the coefficients.
            solution: solution for the coefficients.
            known: whether the law was known before; its range of temperatures then
                includes the range known before.
        """
        law = candidate.law
        coefficients = solution.coefficients
        form = FRICTION_ERROR * np.append(0.0, coefficients[FRICTION_COEFFICIENTS])
        covariance = solution.covariance + np.outer(form, form)
        std = np.sqrt(np.diag(covariance))
        constant = float(1.0 / coefficients[LOAD_COEFFICIENT])
        deviation = float(std[LOAD_COEFFICIENT] * constant**2)
        parameters, parameter_std = friction_from_coefficients(coefficients, covariance)
        temperature_model: tuple[float, float, float, float] | None = None
        if law.name == "temperature_exponential":
            terms = self.robot.friction_temperature_model[j]
            if np.isfinite(terms).all():
                temperature_model = (terms[0], terms[1], terms[2], terms[3])
        friction = Friction(
            law,
            dict(zip(law.parameters, parameters.tolist(), strict=True)),
            dict(candidate.shape),
            temperature_model,
            self._temperature_range(j, known=known),
        )
        names = ("torque_constant", *law.parameters)
        sources = np.where(std < 0.5 * prior.std, "current", "prior").tolist()
        return JointEstimate(
            torque_constant=constant,
            torque_constant_std=deviation,
            friction=friction,
            friction_std=dict(zip(law.parameters, parameter_std.tolist(), strict=True)),
            covariance=covariance,
            source=dict(zip(names, sources, strict=True)),
            residual=solution.residual,
            regressed_constant=constant,
            regressed_std=deviation,
        )

    def _temperature_range(self, j: int, *, known: bool) -> tuple[float, float] | None:
        """Lowest and highest temperature of a joint's friction, degC; None where not recorded.

        Args:
            j: index of the joint, from 0.
            known: whether to include the temperatures of the model known before.
        """
        low, high = self._temperature[j].tolist()
        if not (np.isfinite(low) and np.isfinite(high)):
            return None
        before = None
        if known and self._known is not None:
            before = self._known.joints[j].friction.temperature_range
        if before is not None:
            low = min(before[0], low)
            high = max(before[1], high)
        return low, high


def _solved(
    candidate: FrictionCandidate,
    sessions: Sequence[Array],
    counts: Sequence[Array],
    prior: Prior,
) -> tuple[SessionScales, Solution]:
    """Friction scales of the sessions of a joint, and the solution with them.

    Sessions have friction scales unless the law explains differences by temperature.

    Args:
        candidate: friction law and its shape constants.
        sessions: Gram matrices of each session [blocks, p + 1, p + 1].
        counts: samples of the blocks of each session [blocks].
        prior: prior of the p coefficients.
    """
    which = candidate.scaled(len(prior.mean))
    applied = not candidate.law.uses_temperature
    scaled = session_scales(sessions, counts, prior, which, applied=applied)
    return scaled, solve(scaled.blocks, prior, np.concatenate(counts))


def _load_coefficient(solution: Solution) -> float:
    """1/k_t of a solution [A/(N m)], above zero where currents do not show its sign."""
    return max(float(solution.coefficients[LOAD_COEFFICIENT]), _LEAST_LOAD_COEFFICIENT)


def current_regression(
    recordings: Sequence[SessionData],
    dynamics: Sequence[RecordingDynamics],
    robot: RobotDescription,
    inertia: InertiaEstimate,
    friction: str,
    known: EnergyModel | None = None,
) -> CurrentRegression:
    """The regression of the currents of recordings, each a session with its own friction level.

    Where inertias are unknown, its loads are computed from those that a first fit found.

    Args:
        recordings: recordings of the arm, each a session.
        dynamics: setups of the recordings, in the same order.
        robot: the arm, n joints.
        inertia: prior of the reflected inertias.
        friction: name of a law, or "auto".
        known: an earlier model of the arm, see `CurrentRegression`; None without one.
    """
    low = np.fmin.reduce([recording.warmth[:, 0] for recording in recordings])
    high = np.fmax.reduce([recording.warmth[:, 1] for recording in recordings])
    warm = bool((high - low > WARMTH).any())

    def accumulated(
        nominal: Array, around: CurrentRegression | None = None
    ) -> CurrentRegression:
        """The regression of all recordings.

        Args:
            nominal: inertias that the loads are computed with [n], kg m^2.
            around: see `CurrentRegression`.
        """
        fit = CurrentRegression(
            robot,
            friction,
            warm=warm,
            inertia=inertia,
            nominal=nominal,
            known=known,
            around=around,
        )
        for recording, own in zip(recordings, dynamics, strict=True):
            fit.start_session()
            narrow = ParallelFilter(recording.cutoff)
            for motion, link_torque in own.link_torques(recording):
                load = link_torque + nominal * motion.qdd
                fit.accumulate(motion, load, narrow, recording.rate)
        return fit

    nominal = inertia.value
    found = accumulated(nominal)
    if inertia.unknown.any():
        nominal = inertia_with_currents(inertia, found.fit()).value
        found = accumulated(nominal)
    for _ in range(MOST_ROUNDS):
        if not found.has_better_shapes:
            break
        found = accumulated(nominal, found)
    return found
