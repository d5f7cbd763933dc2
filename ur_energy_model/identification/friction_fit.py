"""Regression of current on load and friction: torque constant and friction of every joint."""

from __future__ import annotations

from copy import copy
from dataclasses import replace

import numpy as np

from ur_energy_model.errors import IdentificationError
from ur_energy_model.identification.filtered_motion import (
    MOVING_SPEED,
    FilteredMotion,
    ParallelFilter,
)
from ur_energy_model.identification.friction_data import (
    AUTO,
    CURRENT,
    CurrentColumns,
    CurrentData,
    FrictionCandidate,
    KnownFriction,
    ScoredLaw,
    SessionBlocks,
    best_shapes,
    candidates,
    choose,
    clearly_better,
    current_prior,
    scaled_coefficients,
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
    InertiaPrior,
    JointEstimate,
    estimate_joint,
    load_share_unexplained,
    refuse_impossible,
    separate_inertia,
    systematic_rms,
)
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.friction import LAWS, OperatingPoint
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.typing import Array

# Torque constant and friction of a joint that hardly moved: from priors.

SHORTEST_MOTION = 1.0
"""A joint that moves for less time keeps the robot file's constants [s]."""


def joint_from_robot_file(
    robot: RobotDescription, j: int, friction: str, temperature: Array
) -> JointEstimate:
    """The robot file's constants and typical friction.

    Args:
        robot: the arm.
        j: index of the joint.
        friction: law name, or "auto" for Coulomb and viscous friction.
        temperature: lowest and highest in the recordings [2], degC; NaN where not recorded.

    Raises:
        IdentificationError: the robot file has no torque constant for the joint.
    """
    name = friction if friction != AUTO else "coulomb_viscous"
    prior = current_prior(robot, LAWS[name], j)
    if not np.isfinite(prior.std).all():
        raise IdentificationError(
            f"{robot.joint_names[j]} moved for less than {SHORTEST_MOTION:g} s and the "
            f"robot file {robot.name} has no torque constant for it; record a motion of "
            "all joints or add drive.torque_constant to the robot file"
        )
    candidate = next(c for c in candidates(name, warm=True))
    found = estimate_joint(robot, j, candidate, prior, prior_alone(prior), temperature)
    reason = f"joint moved for less than {SHORTEST_MOTION:g} s: robot file and typical friction"
    return replace(found, reason=reason)


def joint_known_before(
    robot: RobotDescription, j: int, known: KnownFriction, temperature: Array
) -> JointEstimate:
    """The friction of a model known before; the torque constant has only a weak prior.

    Args:
        robot: the arm.
        j: index of the joint.
        known: from the model known before.
        temperature: lowest and highest in the recordings [2], degC; NaN where not recorded.
    """
    prior = known.prior(j)
    seen = known.temperature_range(j, temperature)
    found = estimate_joint(robot, j, known.candidate(j), prior, prior_alone(prior), seen)
    return replace(
        found, reason=f"joint moved for less than {SHORTEST_MOTION:g} s: as known before"
    )


_FILTER_MEMORY = 6.0
"""Samples over which the narrow filter correlates white noise, at the rate kept after filtering."""
_WHITE_TIME = 0.75
"""The same in periods of the cut-off, for recordings sampled too slowly for that rate."""
_FRICTION_FORM = 0.005
"""Assumed model error of friction hidden by noise, as a share of the current; matters for wrists,
whose links load them little."""


class CurrentRegression:
    """Accumulates motions of any number of recordings and fits all joints.

    Args:
        robot: the arm, n joints; source of the priors.
        friction: law name or "auto".
        warm: see `candidates`.
        inertia: reflected inertias before the fit; unknown ones are fitted too. None if all are
            known.
        nominal: reflected inertias in the loads [n], kg m^2; None for those of `inertia`.
        most_blocks: of each session.
        known: model known before, whose friction laws and values are tried too.
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
        self._left_out: set[int] = set()
        """Candidates that are not tried."""
        self._inertia = inertia
        self._nominal = inertia.value if inertia is not None and nominal is None else nominal
        self._known = None if known is None else KnownFriction(known)
        self._columns = CurrentColumns(
            self.candidates, inertia is not None and bool(inertia.unknown.any()), self._known
        )
        n = robot.dof
        self.data = CurrentData(np.full((n, 2), np.nan), np.zeros(n), _FILTER_MEMORY, most_blocks)

    def start_session(self) -> None:
        """Start another session, with its own friction level."""
        self.data.start_session()

    def accumulate(self, motion: FilteredMotion, load: Array, narrow: ParallelFilter) -> None:
        """Add a motion to the current session.

        Args:
            motion: [samples, n].
            load: its torque without friction, joint side [samples, n], N m.
            narrow: filter for columns and currents.
        """
        inside = narrow.inside(motion)
        time = motion.time[inside]
        if len(time) < 2:
            return
        moving = narrow.moving(motion, MOVING_SPEED)[inside]
        rows = narrow(motion, self._columns.columns(self._operating_point(motion, load), motion))
        rows = rows[inside] * moving[:, :, None]
        period = float(time[1] - time[0])
        memory = max(1.0, min(self.data.memory, _WHITE_TIME / (narrow.cutoff * period)))
        self.data.memory = memory
        self.data.add(time, rows, moving, motion.temperature_range)

    def rebased(self, inertia: InertiaEstimate, *, warm: bool) -> CurrentRegression:
        """The same data for other inertias, with or without laws that use temperatures.

        Needs a regression made with unknown inertias, for their columns, and warm.
        """
        assert self._nominal is not None
        out = copy(self)
        out.data = self.data.with_inertia_changed(inertia.value - self._nominal)
        out._inertia, out._nominal, out._warm = inertia, inertia.value, warm
        out._left_out = {
            index
            for index, candidate in enumerate(self.candidates)
            if candidate.law.uses_temperature and not warm
        }
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

    def _operating_point(self, motion: FilteredMotion, load: Array) -> OperatingPoint:
        model = self.robot.friction_temperature_model.T
        return OperatingPoint(
            motion.qd,
            load,
            self.robot.gear_ratio,
            motion.known_temperature,
            model if np.isfinite(model).all() else None,
        )

    def _from_currents(self, j: int) -> JointEstimate:
        """One joint, by the law chosen for it."""
        sessions = self.data.of_joint(j)
        counts = np.concatenate([session.counts for session in sessions])
        inertia = self._inertia_prior(j)
        tried = [index for index in range(len(self.candidates)) if index not in self._left_out]
        scored = [self._score(index, j, sessions, inertia) for index in tried]
        best = best_shapes(scored)
        chosen, reason = choose({name: entry.errors for name, entry in best.items()})
        comparison = {name: float(np.sqrt(e.errors.mean())) for name, e in best.items()}
        if len(self.candidates) == 1:
            comparison, reason = {}, "chosen by --friction"
        found, temperature = best[chosen], self.data.temperature[j]
        if self._known is not None:
            before = self._score_known(self._known, j, sessions, inertia)
            if not clearly_better(found.errors, before.errors):
                found, reason = before, "law of the model known before; no other is clearly better"
                temperature = self._known.temperature_range(j, temperature)
        found = found.with_final_scales()
        prior, gram = found.prior, found.blocks.sum(axis=0)
        solution = solve(found.blocks, prior, counts)
        refuse_impossible(self.robot.joint_names[j], solution, gram)
        systematic = self._systematic(solution, gram, fits_inertia=inertia is not None)
        spread = None if inertia is None else inertia.std / inertia.value
        ratio = load_share_unexplained(solution, gram, systematic, spread)
        fitted = None
        if inertia is not None:
            solution, fitted = separate_inertia(solution, gram, inertia.nominal, systematic)
            prior = Prior(prior.mean[:-1], prior.std[:-1])
        return replace(
            estimate_joint(self.robot, j, found.candidate, prior, solution, temperature),
            reason=reason,
            comparison=comparison,
            unexplained_over_load=ratio,
            session_scales=found.scales,
            sessions=self.data.moved(j),
            inertia=fitted,
        )

    def _inertia_prior(self, j: int) -> InertiaPrior | None:
        """Prior of a joint's inertia if it is fitted."""
        if self._inertia is None or self._nominal is None or not self._inertia.unknown[j]:
            return None
        return InertiaPrior(
            float(self._inertia.value[j]), float(self._inertia.std[j]), float(self._nominal[j])
        )

    def _score(
        self, index: int, j: int, sessions: list[SessionBlocks], inertia: InertiaPrior | None
    ) -> ScoredLaw:
        """One candidate of a joint with its session scales and held-out errors."""
        candidate = self.candidates[index]
        columns = self._columns.of_candidate(index, inertia is not None)
        prior = current_prior(self.robot, candidate.law, j)
        return self._score_law(candidate, columns, prior, sessions, inertia)

    def _score_known(
        self,
        known: KnownFriction,
        j: int,
        sessions: list[SessionBlocks],
        inertia: InertiaPrior | None,
    ) -> ScoredLaw:
        """The law of the model known before, with that model as its prior."""
        columns = self._columns.of_known(j, inertia is not None)
        return self._score_law(known.candidate(j), columns, known.prior(j), sessions, inertia)

    def _score_law(
        self,
        candidate: FrictionCandidate,
        columns: list[int],
        prior: Prior,
        sessions: list[SessionBlocks],
        inertia: InertiaPrior | None,
    ) -> ScoredLaw:
        own = [SessionBlocks(s.blocks[:, columns][:, :, columns], s.counts) for s in sessions]
        counts = np.concatenate([session.counts for session in own])
        if inertia is not None:
            whole = np.concatenate([session.blocks for session in own])
            prior = inertia.with_coefficient(prior, whole, counts)
        # Session scales would hide temperature effects, so that warm recordings are scored without.
        which = scaled_coefficients(candidate, len(prior.mean))
        scales, blocks = session_scales(own, prior, which, applied=not self._warm)
        several = len(self.candidates) > 1 or self._known is not None
        errors = cross_validate(blocks, prior, counts) if several else np.zeros(1)
        return ScoredLaw(candidate, own, blocks, prior, errors, scales)

    def _systematic(self, solution: Solution, gram: Array, *, fits_inertia: bool) -> float:
        """RMS of the residual's systematic part [A]."""
        if not fits_inertia:
            return systematic_rms(solution, self.data.memory)
        if self.data.memory < _FILTER_MEMORY:  # sampled so slowly that systematic errors look white
            return solution.residual
        hidden = _FRICTION_FORM * np.sqrt(gram[CURRENT, CURRENT] / solution.samples)
        return max(systematic_rms(solution, self.data.memory), float(hidden))

    def _from_prior(self, j: int) -> JointEstimate:
        """A joint that hardly moved."""
        temperature = self.data.temperature[j]
        if self._known is not None:
            return joint_known_before(self.robot, j, self._known, temperature)
        return joint_from_robot_file(self.robot, j, self.friction, temperature)
