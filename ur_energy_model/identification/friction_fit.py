# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Currents of an arm: torque constant and friction of every joint, and its presliding."""

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
    ACCELERATION,
    AUTO,
    CURRENT,
    LOAD_COLUMN,
    WARMTH,
    CurrentColumns,
    FrictionCandidate,
    candidates,
    choose,
    clearly_better,
    current_prior,
    known_prior,
    session_scales,
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
from ur_energy_model.identification.torque_constants import (
    InertiaEstimate,
    InertiaFromCurrent,
    JointEstimate,
    friction_from_coefficients,
    inertia_with_currents,
)
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.friction import (
    Friction,
    OperatingPoint,
)
from ur_energy_model.model.generic import is_generic
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.telemetry.samples import time_blocks
from ur_energy_model.typing import Array

ENOUGH_MOTION = 60.0
"""Motion of a joint from which its own currents decide about its friction, whatever the
law of the generic model [s]. With six recordings of a UR10e, that law had up to 16 % more
error."""
FRICTION_ERROR = 0.015
"""Model error of a joint's friction, relative: form of the law, and a delay of a
millisecond or two between currents and speeds (from simulated arms with such delays)."""
_FILTER_MEMORY = 6.0
"""Samples over which the narrow filter correlates white noise, at the rate kept after
filtering."""
_WHITE_TIME = 0.75
"""The same in periods of the cut-off, for recordings sampled too slowly for that rate."""
_FRICTION_FORM = 0.005
"""Assumed model error of friction hidden by noise, as a share of the current; matters for
wrists, whose links load them little."""
_NO_CURRENT = 1e-6  # A moving motor has more current than this (RMS) [A]
_CLEAR = 3.0  # standard deviations beyond which a wrong sign is not chance
_SCALING_ROUNDS = 8
_BLOCK = 1.0  # duration of a block of time [s]


class _Scored(NamedTuple):
    """A law of one joint, its blocks in each session, prior and held-out errors [folds].

    `inverse` is the 1/k_t in the scale of the prior of the inertia's coefficient, the
    last one.
    """

    candidate: FrictionCandidate
    sessions: list[Array]
    prior: Prior
    inverse: float
    errors: Array


class _Choice(NamedTuple):
    """The law of one joint, whether it was known before, and why it is used.

    Attributes:
        sessions: in which the joint moved, by their numbers.
        counts: samples of their blocks.
    """

    scored: _Scored
    known: bool
    reason: str
    comparison: dict[str, float]
    sessions: tuple[int, ...]
    counts: tuple[Array, ...]


class CurrentRegression:
    """Accumulates motions of any number of recordings and fits all joints.

    The current needed for acceleration, J / k_t * qdd / N with the reflected inertia J,
    has a coefficient of its own with a prior on J: (J - nominal) / k_t, the last one;
    1/k_t is the first. target_moment shows the J of the controller, and an arm's own
    differs: wrists 1 and 3 of a UR10e have 0.8 times that on each of seven recordings,
    with the torque constant that joints of a size share.

    Args:
        inertia: prior of the reflected inertias; None where they are not fitted.
        nominal: inertias that loads were computed with [n], kg m^2; None for those of the
            prior.
        known: a model known before, whose friction laws and values are tried too, those
            of a generic one while a joint has moved little.
        warm: see `candidates`.
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
    ) -> None:
        self.robot = robot
        self.friction = friction
        self.candidates = candidates(friction, warm=warm)
        self._warm = warm
        self._inertia = inertia
        self._known = known
        self._nominal = (
            inertia.value if inertia is not None and nominal is None else nominal
        )
        self._columns = CurrentColumns(self.candidates, inertia is not None, known)
        n = robot.dof
        # Lowest and highest temperatures [n, 2], degC; NaN where not recorded
        self._temperature = np.full((n, 2), np.nan)
        self._moving_time = np.zeros(n)  # motion of each joint [s]
        # samples over which the narrow filter correlates white noise
        self._memory = _FILTER_MEMORY
        # Of each session: Gram matrices of [columns, current] per joint and block of
        # time, and numbers of samples per joint
        self._sessions: list[tuple[BlockedGram, BlockedGram]] = []
        self._choices: dict[int, _Choice] = {}

    def start_session(self) -> None:
        """Start another session, with its own friction level."""
        self._sessions.append((BlockedGram(), BlockedGram()))

    def accumulate(
        self, motion: FilteredMotion, load: Array, narrow: ParallelFilter
    ) -> None:
        """Add a motion to the current session.

        Args:
            motion: a stretch without gaps.
            load: its torque without friction, joint side [samples, n], N m.
            narrow: filter for columns and currents.
        """
        inside = narrow.inside(motion)
        time = motion.time[inside]
        if len(time) < 2:
            return
        self._choices = {}
        model = self.robot.friction_temperature_model.T
        point = OperatingPoint(
            motion.qd,
            load,
            self.robot.gear_ratio,
            motion.known_temperature,
            model if np.isfinite(model).all() else None,
        )
        moving = narrow.moving(motion, MOVING_SPEED)[inside]
        period = float(time[1] - time[0])
        rows = (
            narrow(motion, self._columns.columns(point, motion))[inside]
            * moving[:, :, None]
        )
        self._memory = max(1.0, min(self._memory, _WHITE_TIME / (narrow.cutoff * period)))
        self._temperature = merged_ranges(self._temperature, motion.temperature_range)
        self._moving_time = self._moving_time + moving.sum(axis=0) * period
        grams, counts = self._sessions[-1]
        for block in time_blocks(time, _BLOCK):
            duration = len(time[block]) * period
            grams.accumulate(gram_matrices_by_joint(rows[block]), duration)
            counts.accumulate(moving[block].sum(axis=0, dtype=float), duration)

    def fit(self, *, own_inertia: bool = True) -> tuple[JointEstimate, ...]:
        """Results per joint; without `own_inertia`, known inertias are the controller's.

        Raises:
            IdentificationError: no joint moves, a joint that hardly moves has no
                constants in the robot file, or currents contradict the torque.
        """
        if self._moving_time.max(initial=0.0) < SHORTEST_MOTION:
            raise IdentificationError(NO_MOTION)
        return tuple(
            self._from_prior(j)
            if moved < SHORTEST_MOTION
            else self._from_currents(j, own_inertia)
            for j, moved in enumerate(self._moving_time)
        )

    def from_priors(self) -> tuple[JointEstimate, ...]:
        """The robot file's constants and typical friction of all joints.

        Raises:
            IdentificationError: the robot file has no torque constant for a joint.
        """
        return tuple(self._from_prior(j) for j in range(self.robot.dof))

    def _from_prior(self, j: int) -> JointEstimate:
        """A joint that hardly moved: as known before, else robot file and typical friction."""
        reason = f"joint moved for less than {SHORTEST_MOTION:g} s: "
        if self._known is not None:
            candidate, prior = self._known_candidate(j)
            reason += "as known before"
        else:
            name = "coulomb_viscous" if self.friction == AUTO else self.friction
            candidate = candidates(name, warm=True)[0]
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
        return FrictionCandidate(friction.law, friction.all_shape), known_prior(
            self._known, j
        )

    def _chosen(self, j: int) -> _Choice:
        """The law of one joint with the least held-out error, inertias being the arm's own."""
        if j in self._choices:
            return self._choices[j]
        moved = {
            number: (grams.blocks[:, j], counts.blocks[:, j])
            for number, (grams, counts) in enumerate(self._sessions)
            if len(counts) and counts.blocks[:, j].any()
        }
        grams, counts = zip(*moved.values(), strict=True)
        best: dict[str, _Scored] = {}
        for index, candidate in enumerate(self.candidates):
            name = candidate.law.name
            scored = self._score(index, j, grams, counts)
            if name not in best or scored.errors.mean() < best[name].errors.mean():
                best[name] = scored
        chosen, reason = choose({name: entry.errors for name, entry in best.items()})
        comparison = {name: float(np.sqrt(e.errors.mean())) for name, e in best.items()}
        if len(self.candidates) == 1:
            comparison = {}
            reason = "chosen by --friction"
        found = best[chosen]
        known = False
        enough = self._moving_time[j] >= ENOUGH_MOTION
        if self._known is not None and not (enough and is_generic(self._known)):
            before = self._score(None, j, grams, counts)
            if not clearly_better(found.errors, before.errors):
                found = before
                known = True
                reason = "law of the model known before; no other is clearly better"
        choice = _Choice(found, known, reason, comparison, tuple(moved), counts)
        self._choices[j] = choice
        return choice

    def _from_currents(self, j: int, own_inertia: bool) -> JointEstimate:
        """One joint, by the law chosen for it."""
        found, known, reason, comparison, moved, counts = self._chosen(j)
        inertia = self._fitted_inertia(j, own=own_inertia)
        prior = self._with_inertia(found.prior, found.inverse, inertia)
        # Session scales enter unless the law explains differences by temperature.
        which = found.candidate.scaled(len(prior.mean))
        applied = not found.candidate.law.uses_temperature
        scales, deviations, blocks = session_scales(
            found.sessions, counts, prior, which, applied=applied
        )
        solution = solve(blocks, prior, np.concatenate(counts))
        gram = blocks.sum(axis=0)
        self._refuse_impossible(j, solution, gram)
        memory = self._memory
        # Residuals correlated for longer than filtered white noise would be are
        # systematic.
        share = 1.0 - memory * solution.effective_samples / solution.samples
        systematic = float(solution.residual * np.sqrt(max(share, 0.0)))
        # The current that determines the scale of the load.
        scale = solution.coefficients[0] / np.sqrt(solution.samples)
        fitted = None
        if inertia is not None:
            value, std, nominal = inertia
            # sampled so slowly that systematic errors look white
            if memory < _FILTER_MEMORY:
                systematic = solution.residual
            else:
                hidden = _FRICTION_FORM * np.sqrt(
                    gram[CURRENT, CURRENT] / solution.samples
                )
                systematic = max(systematic, float(hidden))
        ratio = float(
            systematic / max(scale * np.sqrt(gram[LOAD_COLUMN, LOAD_COLUMN]), 1e-9)
        )
        if inertia is not None:
            # The scale follows from the load that acceleration does not explain, or from
            # the prior of the inertia, whichever is more exact.
            accelerated = gram[ACCELERATION, ACCELERATION]
            shared = gram[LOAD_COLUMN, ACCELERATION] ** 2 / max(accelerated, 1e-30)
            own = scale * np.sqrt(max(gram[LOAD_COLUMN, LOAD_COLUMN] - shared, 0.0))
            ratio = min(
                float(systematic / max(own, 1e-9)), float(np.hypot(ratio, std / value))
            )
            # What the load shares with acceleration is in the slope, and certain where
            # k_t is.
            covariance = solution.covariance
            variance = float(covariance[0, 0])
            slope = float(covariance[0, -1]) / variance
            fitted = InertiaFromCurrent(
                nominal=nominal,
                excess=float(solution.coefficients[-1]),
                slope=slope,
                rest=max(float(covariance[-1, -1]) - slope**2 * variance, 0.0),
                left_out=systematic / max(float(scale * np.sqrt(accelerated)), 1e-9),
            )
            coefficients = solution.coefficients[:-1]
            solution = replace(
                solution, coefficients=coefficients, covariance=covariance[:-1, :-1]
            )
        return replace(
            self._estimate(j, found.candidate, found.prior, solution, known=known),
            reason=reason,
            comparison=comparison,
            unexplained_over_load=ratio,
            session_scales=scales,
            session_deviations=deviations,
            sessions=moved,
            inertia=fitted,
        )

    def _fitted_inertia(
        self, j: int, *, own: bool = True
    ) -> tuple[float, float, float] | None:
        """Prior of a joint's inertia, its deviation, and the one in the loads, if it is fitted.

        The deviation is that of the arm's `own` ones, or of those of the controller.
        """
        if self._inertia is None or self._nominal is None:
            return None
        spread = self._inertia.spread if own else self._inertia.std
        return float(self._inertia.value[j]), float(spread[j]), float(self._nominal[j])

    @staticmethod
    def _with_inertia(
        prior: Prior, inverse: float, inertia: tuple[float, float, float] | None
    ) -> Prior:
        """The prior of all coefficients where the inertia is fitted, with 1/k_t for its scale."""
        if inertia is None:
            return prior
        value, std, nominal = inertia
        return prior.extended((value - nominal) * inverse, std * inverse)

    def _score(
        self,
        index: int | None,
        j: int,
        grams: Sequence[Array],
        counts: Sequence[Array],
    ) -> _Scored:
        """A candidate of a joint, or the law known before where `index` is None."""
        inertia = self._fitted_inertia(j)
        if index is None:
            candidate, prior = self._known_candidate(j)
        else:
            candidate = self.candidates[index]
            prior = current_prior(self.robot, candidate.law, j)
        columns = np.array(self._columns.of_law(index, j))
        own = [blocks[:, columns[:, None], columns] for blocks in grams]
        inverse = float(prior.mean[0])
        # Without a k_t in the robot file, the one that agrees with the inertia's prior
        # sets the scale of its coefficient.
        if inertia is not None and not inverse > 0:
            whole = np.concatenate(own)
            samples = np.concatenate(counts)
            others = [*range(len(prior.mean)), -1]
            solution = solve(whole[:, others][:, :, others], prior, samples)
            for _ in range(_SCALING_ROUNDS):
                inverse = max(float(solution.coefficients[0]), 1e-9)
                solution = solve(
                    whole, self._with_inertia(prior, inverse, inertia), samples
                )
            inverse = max(float(solution.coefficients[0]), 1e-9)
        errors = np.zeros(1)
        if len(self.candidates) > 1 or self._known is not None:
            # Scales would hide temperature effects, so that warm recordings are scored
            # without.
            extended = self._with_inertia(prior, inverse, inertia)
            which = candidate.scaled(len(extended.mean))
            scaled = session_scales(own, counts, extended, which, applied=not self._warm)
            errors = cross_validate(scaled.blocks, extended, np.concatenate(counts))
        return _Scored(candidate, own, prior, inverse, errors)

    def _refuse_impossible(self, j: int, solution: Solution, gram: Array) -> None:
        """Refuse currents that no motor has: none in motion, or not rising with the torque."""
        name = self.robot.joint_names[j]
        inverse = solution.coefficients[0]
        if gram[CURRENT, CURRENT] <= _NO_CURRENT**2 * solution.samples:
            raise IdentificationError(
                f"{name}: actual_current stays zero while the joint moves; check the recorder and "
                "record again"
            )
        if -_CLEAR * solution.std[0] < inverse <= 0:
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
        """A joint from prior and solution of (1/k_t, friction parameters / k_t).

        The range of a law known before includes the temperatures that it was known for.
        """
        (law, shape), coefficients = candidate, solution.coefficients
        form = FRICTION_ERROR * np.append(0.0, coefficients[1:])
        covariance = solution.covariance + np.outer(form, form)
        std = np.sqrt(np.diag(covariance))
        constant = float(1.0 / coefficients[0])
        deviation = float(std[0] * constant**2)
        parameters, parameter_std = friction_from_coefficients(coefficients, covariance)
        seen = self._temperature[j]
        low, high = seen.tolist()
        before = (
            self._known.joints[j].friction.temperature_range
            if known and self._known
            else None
        )
        if before is not None and np.isfinite(seen).all():
            low = min(before[0], low)
            high = max(before[1], high)
        model = self.robot.friction_temperature_model[j]
        uses_model = law.name == "temperature_exponential" and bool(
            np.isfinite(model).all()
        )
        names = ("torque_constant", *law.parameters)
        sources = np.where(std < 0.5 * prior.std, "current", "prior").tolist()
        return JointEstimate(
            torque_constant=constant,
            torque_constant_std=deviation,
            friction=Friction(
                law,
                dict(zip(law.parameters, parameters.tolist(), strict=True)),
                dict(shape),
                (model[0], model[1], model[2], model[3]) if uses_model else None,
                (low, high) if np.isfinite(seen).all() else None,
            ),
            friction_std=dict(zip(law.parameters, parameter_std.tolist(), strict=True)),
            covariance=covariance,
            source=dict(zip(names, sources, strict=True)),
            residual=solution.residual,
            regressed_constant=constant,
            regressed_std=deviation,
        )


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
        recordings: each a session.
        dynamics: their setups, in the same order.
        robot: the arm, n joints.
        inertia: prior of the reflected inertias.
        friction: name of a law, or "auto".
        known: see `CurrentRegression`.
    """
    low = np.fmin.reduce([recording.warmth[:, 0] for recording in recordings])
    high = np.fmax.reduce([recording.warmth[:, 1] for recording in recordings])
    warm = bool((high - low > WARMTH).any())

    def accumulated(nominal: Array) -> CurrentRegression:
        fit = CurrentRegression(
            robot, friction, warm=warm, inertia=inertia, nominal=nominal, known=known
        )
        for recording, own in zip(recordings, dynamics, strict=True):
            fit.start_session()
            narrow = ParallelFilter(recording.cutoff)
            for motion, link_torque in own.link_torques(recording):
                fit.accumulate(motion, link_torque + nominal * motion.qdd, narrow)
        return fit

    found = accumulated(inertia.value)
    if inertia.unknown.any():
        found = accumulated(inertia_with_currents(inertia, found.fit()).value)
    return found
