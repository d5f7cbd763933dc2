"""Regression of current on load and friction: torque constant and friction of every joint."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ur_energy_model.errors import IdentificationError
from ur_energy_model.identification.filtered_motion import (
    MOVING_SPEED,
    FilteredMotion,
    ParallelFilter,
)
from ur_energy_model.identification.friction_data import (
    ACCELERATION,
    AUTO,
    CURRENT,
    LOAD_COLUMN,
    CurrentColumns,
    CurrentData,
    FrictionCandidate,
    KnownFriction,
    SessionBlocks,
    candidates,
    choose,
    clearly_better,
    current_prior,
    session_scales,
)
from ur_energy_model.identification.least_squares import (
    MAX_BLOCKS,
    Prior,
    Solution,
    cross_validate,
    prior_alone,
    solve,
)
from ur_energy_model.identification.reflected_inertia import InertiaEstimate
from ur_energy_model.identification.torque_constants import (
    InertiaFromCurrent,
    JointEstimate,
    friction_from_coefficients,
)
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.friction import Friction, OperatingPoint
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.typing import Array

SHORTEST_MOTION = 1.0  # A joint that moves for less time keeps the robot file's constants [s]
FRICTION_ERROR = 0.015
"""Model error of a joint's friction, relative: form of the law, and a delay of a millisecond or two
between currents and speeds (from simulated arms with such delays)."""
_FILTER_MEMORY = 6.0
"""Samples over which the narrow filter correlates white noise, at the rate kept after filtering."""
_WHITE_TIME = 0.75
"""The same in periods of the cut-off, for recordings sampled too slowly for that rate."""
_FRICTION_FORM = 0.005
"""Assumed model error of friction hidden by noise, as a share of the current; matters for wrists,
whose links load them little."""
_NO_CURRENT = 1e-6  # A moving motor has more current than this (RMS) [A]
_CLEAR = 3.0  # standard deviations beyond which a wrong sign is not chance
_SCALING_ROUNDS = 8


class _Scored(NamedTuple):
    """A law of one joint, its Gram matrices in the sessions, prior and held-out errors [folds]."""

    candidate: FrictionCandidate
    sessions: list[SessionBlocks]
    prior: Prior
    errors: Array


class CurrentRegression:
    """Accumulates motions of any number of recordings and fits all joints.

    Where target_moment does not determine a reflected inertia J, the current needed for
    acceleration, J / k_t * qdd / N, has a coefficient of its own with a prior on J: (J - nominal) /
    k_t, the last one; 1/k_t is the first. Of `inertia` the unknown ones are fitted (None: all are
    known), and loads were computed with `nominal` [n], kg m^2, by default its values. `known` is a
    model known before, whose friction laws and values are tried too; for `warm` see `candidates`.
    """

    def __init__(
        self,
        robot: RobotDescription,
        friction: str = AUTO,
        *,
        warm: bool = False,
        inertia: InertiaEstimate | None = None,
        nominal: Array | None = None,
        most_blocks: int = MAX_BLOCKS,
        known: EnergyModel | None = None,
    ) -> None:
        self.robot = robot
        self.friction = friction
        self.candidates = candidates(friction, warm=warm)
        self._warm = warm
        self._inertia = inertia
        self._nominal = inertia.value if inertia is not None and nominal is None else nominal
        self._known = None if known is None else KnownFriction(known)
        fits_inertia = inertia is not None and bool(inertia.unknown.any())
        self._columns = CurrentColumns(self.candidates, fits_inertia, self._known)
        n = robot.dof
        self.data = CurrentData(np.full((n, 2), np.nan), np.zeros(n), _FILTER_MEMORY, most_blocks)

    def start_session(self) -> None:
        """Start another session, with its own friction level."""
        self.data.start_session()

    def accumulate(self, motion: FilteredMotion, load: Array, narrow: ParallelFilter) -> None:
        """Add a motion to the current session.

        `load`: its torque without friction, joint side [samples, n], N m. `narrow`: filter for
        columns and currents.
        """
        inside = narrow.inside(motion)
        time = motion.time[inside]
        if len(time) < 2:
            return
        model = self.robot.friction_temperature_model.T
        point = OperatingPoint(
            motion.qd,
            load,
            self.robot.gear_ratio,
            motion.known_temperature,
            model if np.isfinite(model).all() else None,
        )
        moving = narrow.moving(motion, MOVING_SPEED)[inside]
        rows = narrow(motion, self._columns.columns(point, motion))[inside] * moving[:, :, None]
        white = _WHITE_TIME / (narrow.cutoff * float(time[1] - time[0]))
        self.data.memory = max(1.0, min(self.data.memory, white))
        self.data.add(time, rows, moving, motion.temperature_range)

    def rebased(self, inertia: InertiaEstimate, *, warm: bool) -> CurrentRegression:
        """The same data for other inertias, with or without laws that use temperatures.

        Needs a regression made with unknown inertias, for their columns, and warm.
        """
        assert self._nominal is not None
        out = copy(self)
        out.data = self.data.with_inertia_changed(inertia.value - self._nominal)
        out._inertia, out._nominal, out._warm = inertia, inertia.value, warm
        return out

    def fit(self) -> tuple[JointEstimate, ...]:
        """Results per joint.

        Raises:
            IdentificationError: no joint moves, a joint that hardly moves has no constants in the
                robot file, or currents contradict the torque.
        """
        if self.data.moving_time.max(initial=0.0) < SHORTEST_MOTION:
            raise IdentificationError(
                f"no joint moves for {SHORTEST_MOTION:g} s or more, brakes released and no "
                "freedrive; record the robot while a program moves it"
            )
        return tuple(
            self._from_prior(j) if moved < SHORTEST_MOTION else self._from_currents(j)
            for j, moved in enumerate(self.data.moving_time)
        )

    def from_priors(self) -> tuple[JointEstimate, ...]:
        """The robot file's constants and typical friction of all joints.

        Raises:
            IdentificationError: the robot file has no torque constant for a joint.
        """
        return tuple(self._from_prior(j) for j in range(self.robot.dof))

    def _from_prior(self, j: int) -> JointEstimate:
        """A joint that hardly moved: as known before, else robot file and typical friction."""
        temperature = self.data.temperature[j]
        reason = f"joint moved for less than {SHORTEST_MOTION:g} s: "
        if self._known is not None:
            prior, candidate = self._known.prior(j), self._known.candidate(j)
            temperature = self._known.temperature_range(j, temperature)
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
        found = _estimate(self.robot, j, candidate, prior, prior_alone(prior), temperature)
        return replace(found, reason=reason)

    def _from_currents(self, j: int) -> JointEstimate:
        """One joint, by the law chosen for it."""
        moved = self.data.of_joint(j)
        sessions = list(moved.values())
        best: dict[str, _Scored] = {}
        without_temperature = self.friction == AUTO and not self._warm
        for index, candidate in enumerate(self.candidates):
            if candidate.law.uses_temperature and without_temperature:  # see `rebased`
                continue
            scored = self._score(index, j, sessions)
            name = candidate.law.name
            if name not in best or scored.errors.mean() < best[name].errors.mean():
                best[name] = scored
        chosen, reason = choose({name: entry.errors for name, entry in best.items()})
        comparison = {name: float(np.sqrt(e.errors.mean())) for name, e in best.items()}
        if len(self.candidates) == 1:
            comparison, reason = {}, "chosen by --friction"
        found, temperature = best[chosen], self.data.temperature[j]
        if self._known is not None:
            before = self._score(None, j, sessions)
            if not clearly_better(found.errors, before.errors):
                found, reason = before, "law of the model known before; no other is clearly better"
                temperature = self._known.temperature_range(j, temperature)
        # Session scales enter unless the law explains differences by temperature.
        which, prior = found.candidate.scaled(len(found.prior.mean)), found.prior
        applied = not found.candidate.law.uses_temperature
        scales, blocks = session_scales(found.sessions, prior, which, applied=applied)
        solution = solve(blocks, prior, np.concatenate([session.counts for session in sessions]))
        gram = blocks.sum(axis=0)
        _refuse_impossible(self.robot.joint_names[j], solution, gram)
        memory, inertia = self.data.memory, self._fitted_inertia(j)
        # Residuals correlated for longer than filtered white noise would be are systematic.
        share = 1.0 - memory * solution.effective_samples / solution.samples
        systematic = float(solution.residual * np.sqrt(max(share, 0.0)))
        # The current that determines the scale of the load.
        scale = solution.coefficients[0] / np.sqrt(solution.samples)
        fitted = None
        if inertia is not None:
            value, std, nominal = inertia
            if memory < _FILTER_MEMORY:  # sampled so slowly that systematic errors look white
                systematic = solution.residual
            else:
                hidden = _FRICTION_FORM * np.sqrt(gram[CURRENT, CURRENT] / solution.samples)
                systematic = max(systematic, float(hidden))
        ratio = float(systematic / max(scale * np.sqrt(gram[LOAD_COLUMN, LOAD_COLUMN]), 1e-9))
        if inertia is not None:
            # The scale follows from the load that acceleration does not explain, or from the prior
            # of the inertia, whichever is more exact.
            accelerated = gram[ACCELERATION, ACCELERATION]
            shared = gram[LOAD_COLUMN, ACCELERATION] ** 2 / max(accelerated, 1e-30)
            own = scale * np.sqrt(max(gram[LOAD_COLUMN, LOAD_COLUMN] - shared, 0.0))
            ratio = min(float(systematic / max(own, 1e-9)), float(np.hypot(ratio, std / value)))
            # What the load shares with acceleration is in the slope, and certain where k_t is.
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
            solution = replace(solution, coefficients=coefficients, covariance=covariance[:-1, :-1])
            prior = Prior(prior.mean[:-1], prior.std[:-1])
        return replace(
            _estimate(self.robot, j, found.candidate, prior, solution, temperature),
            reason=reason,
            comparison=comparison,
            unexplained_over_load=ratio,
            session_scales=scales,
            sessions=tuple(moved),
            inertia=fitted,
        )

    def _fitted_inertia(self, j: int) -> tuple[float, float, float] | None:
        """Prior of a joint's inertia, its deviation, and the one in the loads, if it is fitted."""
        if self._inertia is None or self._nominal is None or not self._inertia.unknown[j]:
            return None
        value, std = self._inertia.value[j], self._inertia.std[j]
        return float(value), float(std), float(self._nominal[j])

    def _score(self, index: int | None, j: int, sessions: Sequence[SessionBlocks]) -> _Scored:
        """A candidate of a joint, or the law known before where `index` is None."""
        inertia = self._fitted_inertia(j)
        if index is None:
            assert self._known is not None
            candidate, prior = self._known.candidate(j), self._known.prior(j)
        else:
            candidate = self.candidates[index]
            prior = current_prior(self.robot, candidate.law, j)
        columns = self._columns.of_law(index, j, inertia is not None)
        own = [SessionBlocks(s.blocks[:, columns][:, :, columns], s.counts) for s in sessions]
        counts = np.concatenate([session.counts for session in own])
        if inertia is not None:
            value, std, nominal = inertia
            whole = np.concatenate([session.blocks for session in own])
            # Without a k_t in the robot file, the one that agrees with the inertia's prior sets the
            # scale of its coefficient.
            if not prior.mean[0] > 0:
                others = [*range(len(prior.mean)), -1]
                solution = solve(whole[:, others][:, :, others], prior, counts)
                for _ in range(_SCALING_ROUNDS):
                    inverse = max(float(solution.coefficients[0]), 1e-9)
                    extended = prior.extended((value - nominal) * inverse, std * inverse)
                    solution = solve(whole, extended, counts)
                inverse = max(float(solution.coefficients[0]), 1e-9)
            else:
                inverse = float(prior.mean[0])
            prior = prior.extended((value - nominal) * inverse, std * inverse)
        errors = np.zeros(1)
        if len(self.candidates) > 1 or self._known is not None:
            # Scales would hide temperature effects, so that warm recordings are scored without.
            which = candidate.scaled(len(prior.mean))
            _, blocks = session_scales(own, prior, which, applied=not self._warm)
            errors = cross_validate(blocks, prior, counts)
        return _Scored(candidate, own, prior, errors)


def _refuse_impossible(name: str, solution: Solution, gram: Array) -> None:
    """Refuse currents that no motor has: none in motion, or one that does not rise with torque."""
    if gram[CURRENT, CURRENT] <= _NO_CURRENT**2 * solution.samples:
        raise IdentificationError(
            f"{name}: actual_current stays zero while the joint moves; check the recorder and "
            "record again"
        )
    if -_CLEAR * solution.std[0] < solution.coefficients[0] <= 0:
        raise IdentificationError(
            f"{name}: its currents do not show a torque constant; check that actual_current is "
            "this robot's, and record longer with faster starts and stops of this joint, or add "
            "drive.torque_constant to the robot file if it has none"
        )
    if not solution.coefficients[0] > 0:
        raise IdentificationError(
            f"{name}: current falls as torque rises; check that the recording is of this "
            "robot, mounted and loaded as stated (--gravity, --payload)"
        )


def _estimate(
    robot: RobotDescription,
    j: int,
    candidate: FrictionCandidate,
    prior: Prior,
    solution: Solution,
    temperature: Array,
) -> JointEstimate:
    """Torque constant and friction of a joint from the solution of its regression.

    Prior and solution are of (1/k_t, friction parameters / k_t); temperature is the lowest and
    highest in the recordings [2], degC, NaN where not recorded.
    """
    law, coefficients = candidate.law, solution.coefficients
    form = FRICTION_ERROR * np.append(0.0, coefficients[1:])
    covariance = solution.covariance + np.outer(form, form)
    std = np.sqrt(np.diag(covariance))
    constant = float(1.0 / coefficients[0])
    deviation = float(std[0] * constant**2)
    parameters, parameter_std = friction_from_coefficients(coefficients, covariance)
    low, high = temperature.tolist()
    model = robot.friction_temperature_model[j]
    uses_model = law.name == "temperature_exponential" and bool(np.isfinite(model).all())
    names = ("torque_constant", *law.parameters)
    sources = np.where(std < 0.5 * prior.std, "current", "prior").tolist()
    return JointEstimate(
        torque_constant=constant,
        torque_constant_std=deviation,
        friction=Friction(
            law,
            dict(zip(law.parameters, parameters.tolist(), strict=True)),
            dict(candidate.shape),
            (model[0], model[1], model[2], model[3]) if uses_model else None,
            (low, high) if np.isfinite(temperature).all() else None,
        ),
        friction_std=dict(zip(law.parameters, parameter_std.tolist(), strict=True)),
        covariance=covariance,
        source=dict(zip(names, sources, strict=True)),
        residual=solution.residual,
        effective_samples=solution.effective_samples,
        regressed_constant=constant,
        regressed_std=deviation,
    )
