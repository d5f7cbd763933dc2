# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Fit of an arm's base parameters to motion and torque, of one or more bags.

torque = W p_B with W the base columns of the regressor (`regroup`): ordinary least
squares, then least squares weighted by each joint's noise, then the nearest physically
consistent full parameters. Sources: Raviola et al., RAAD 2021, sec. 2; Machines 2024,
12(9), 595, sec. 3 and 5.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Literal

import numpy as np

from ur_energy_model.errors import IdentificationError
from ur_energy_model.identification.base_parameters import (
    BaseRegressor,
    FullRegressor,
    Regrouping,
    snapped_to_axis,
)
from ur_energy_model.identification.comparison import recorded_motions
from ur_energy_model.identification.dynamics import angle_between, estimate_dynamics
from ur_energy_model.identification.filtered_motion import FilteredMotion, ParallelFilter
from ur_energy_model.identification.least_squares import (
    BlockedGram,
    joint_gram_matrices,
    pseudo_inverse,
    solve_normal_equations,
)
from ur_energy_model.identification.physical_consistency import nearest_possible
from ur_energy_model.identification.quality import ILL_CONDITIONED
from ur_energy_model.identification.recording import (
    CURRENT,
    TORQUE,
    Recording,
    read_recording,
)
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.setup import FIRST_MOMENT, MASS, TENSOR
from ur_energy_model.typing import Array, Progress

TorqueSource = Literal["current", "target_moment", "measured_torque"]
Solution = Literal["ordinary", "weighted", "consistent"]
"""Least squares, least squares weighted with each joint's noise, or the nearest physically
possible parameters."""

_BASE = slice(0, -2)
_TORQUE = -2
_ONE = -1
"""Columns of a row: the base columns, the torque, and 1, which counts the samples."""
_FOLDS = 5  # folds of the cross-validation
_RCOND = 1e-13  # singular values below this share of the largest count as zero


@dataclass(frozen=True)
class Verification:
    """Errors of base parameters in the prediction of a motion (general-trajectory check).

    Attributes:
        torque_rms: RMS residual of the torque of each joint [n], N m.
        torque_r2: coefficient of determination of the torque of each joint [n].
        normalised_error: sqrt(e'e) / number of torque samples, of filtered torques in
            motion [N m]; publications use `NormalisedError`.
        samples: number of torque samples used, each joint counted.
    """

    torque_rms: Array
    torque_r2: Array
    normalised_error: float
    samples: int


@dataclass(frozen=True)
class BaseParameters(Verification):
    """Identified base parameters, and their errors in the prediction of the fitted data.

    The normalised error is cross-validated: each block of time is predicted by a fit to the
    other blocks.

    Attributes:
        regressor: the base columns of the fit; the values are valid for no others.
        torque_source: "current" (measured current times torque constant), "target_moment"
            or "measured_torque".
        torque_per_ampere: what turned the measured currents into torques, joint side [n],
            N m/A; 1 for torques that were measured.
        ordinary: base parameters by ordinary least squares [rank].
        values: base parameters by least squares weighted with each joint's noise [rank].
        std: standard deviations of `values` [rank], correlated residuals allowed for.
        consistent: physically possible full parameters nearest to `values` [parameters].
        condition_number: condition number of the stacked base regressor of the data.
        consistent_rms: residual per joint of `consistent` on the fitted data [n], N m.
    """

    regressor: BaseRegressor
    torque_source: TorqueSource
    torque_per_ampere: Array
    ordinary: Array
    values: Array
    std: Array
    consistent: Array
    condition_number: float
    consistent_rms: Array

    @property
    def regrouping(self) -> Regrouping:
        """Base parameters as combinations of full parameters."""
        return self.regressor.regrouping

    def torque(
        self, q: Array, qd: Array, qdd: Array, solution: Solution = "weighted"
    ) -> Array:
        """Torque of a motion in the mounting of the fit [samples, n], joint side, N m.

        Args:
            q: positions [samples, n], rad.
            qd: velocities [samples, n], rad/s.
            qdd: accelerations [samples, n], rad/s^2.
            solution: which of the three solutions predicts.
        """
        values = {
            "ordinary": self.ordinary,
            "weighted": self.values,
            "consistent": self.regrouping.combination @ self.consistent,
        }[solution]
        return self.regressor.torque(values, q, qd, qdd)


@dataclass(frozen=True)
class NormalisedError:
    """Error of predicted torques as Raviola et al. 2021, sec. 3.1, define it.

    Attributes:
        value: (1/N) sqrt(e'e) with the errors e of all joints at N points [N m].
        points: N, points of the motion as recorded; each has one row per joint.
        rate: rate of the points [Hz].
    """

    value: float
    points: int
    rate: float


BaseChoice = Callable[[FullRegressor], Sequence[str]]
"""Names the base columns of a regressor."""


class BaseParameterFit:
    """Accumulates motion for a base parameter fit, in constant memory.

    The torque is linear in the base parameters (Raviola et al. 2021, sec. 2; Machines
    2024, 12(9), 595, sec. 3): least squares over all rows gives them, with standard
    deviations.

    Args:
        robot: the arm, n joints.
        gravity: gravity in the base frame [3], m/s^2.
        torque_source: source of the torque; with "measured_torque" the motions carry the
            torque, joint side, N m, in place of their current.
        torque_constant: motor side [n], N m/A, for "current"; None for the robot file's.
        choose: names the base columns; None for the usual ones.
    """

    def __init__(
        self,
        robot: RobotDescription,
        gravity: Array,
        *,
        torque_source: TorqueSource = "current",
        torque_constant: Array | None = None,
        choose: BaseChoice | None = None,
    ) -> None:
        self.robot = robot
        self.torque_source = torque_source
        constant = robot.torque_constant if torque_constant is None else torque_constant
        self._torque_per_ampere = robot.gear_ratio * constant
        if torque_source == "measured_torque":
            self._torque_per_ampere = np.ones(robot.dof)
        if torque_source == "current" and not np.isfinite(self._torque_per_ampere).all():
            raise IdentificationError(
                f"{robot.name}: the robot file has no torque constants; identify a model first and "
                "give it with --model, or take the torque with --from target_moment or "
                "measured_torque"
            )
        full = FullRegressor(
            robot, snapped_to_axis(gravity), friction=torque_source != "target_moment"
        )
        base_names = None if choose is None else choose(full)
        self.regressor = BaseRegressor.of(full, base_names)
        self._grams = BlockedGram()

    def accumulate(
        self, motion: FilteredMotion, narrow: ParallelFilter | None = None
    ) -> None:
        """Add a motion; one without the torque is ignored.

        Args:
            motion: motion of the arm in the stated mounting.
            narrow: filter of the recording for regressor and torque; None for no filter.
        """
        measured = self.torque_source != "target_moment"
        torque = motion.current * self._torque_per_ampere if measured else motion.moment
        if not np.isfinite(torque).all():
            return
        columns = self.regressor(motion.q, motion.qd, motion.qdd)
        rows = np.concatenate([columns, torque[:, :, None]], axis=2)
        found = joint_gram_matrices(motion, rows, narrow, moving_only=measured)
        for gram, duration in found:
            self._grams.accumulate(gram, duration)

    def solve(self) -> BaseParameters:
        """Fit the accumulated motion.

        Raises:
            IdentificationError: too little motion for the number of base parameters.
        """
        regrouping = self.regressor.regrouping
        rank = regrouping.rank
        n = self.robot.dof
        blocks = self._grams.blocks
        if not len(blocks):
            blocks = np.zeros((0, n, rank + 2, rank + 2))
        counts = blocks[:, :, _ONE, _ONE].sum(axis=0)
        if counts.sum() < 2 * rank or (counts < 2).any():
            raise IdentificationError(
                f"{int(counts.sum())} torque samples of moving joints cannot give {rank} base "
                "parameters; record an exciting motion of all joints (ur_energy excite)"
            )
        total = blocks.sum(axis=0)
        ordinary = _solve(total, np.ones(n))
        noise = np.sqrt(_squares(total, ordinary) / counts)
        values = _solve(total, 1 / np.maximum(noise, 1e-9) ** 2)
        covariance = _covariance(blocks, values)
        consistent = self._consistent(values, covariance)
        fitted = self._verified(values)
        base_gram = total[:, _BASE, _BASE].sum(axis=0)
        return BaseParameters(
            torque_rms=fitted.torque_rms,
            torque_r2=fitted.torque_r2,
            normalised_error=np.sqrt(_held_out_squares(blocks)) / counts.sum(),
            samples=fitted.samples,
            regressor=self.regressor,
            torque_source=self.torque_source,
            torque_per_ampere=self._torque_per_ampere,
            ordinary=ordinary,
            values=values,
            std=np.sqrt(np.diag(covariance)),
            consistent=consistent,
            condition_number=float(np.sqrt(np.linalg.cond(base_gram))),
            consistent_rms=np.sqrt(
                _squares(total, regrouping.combination @ consistent) / counts
            ),
        )

    def _consistent(self, values: Array, covariance: Array) -> Array:
        """Physically possible full parameters [parameters] nearest to base parameters.

        Full parameters deviate from the robot file by half a link's mass plus 1 kg, by
        first moments and tensors of this mass at 0.1 m and 0.2 m, and almost without limit
        in the drives.

        Args:
            values: base parameters [rank].
            covariance: covariance of the base parameters [rank, rank].
        """
        n = self.robot.dof
        nominal = self.regressor.full.nominal()
        mass = 0.5 * nominal.reshape(n, -1)[:, MASS] + 1.0
        spread = np.full((n, len(nominal) // n), 10.0)
        spread[:, MASS] = mass
        spread[:, FIRST_MOMENT] = 0.1 * mass[:, None]
        spread[:, TENSOR] = 0.04 * mass[:, None]
        return nearest_possible(
            pseudo_inverse(covariance, _RCOND),
            self.regressor.regrouping.combination,
            values,
            nominal,
            spread.ravel(),
            n,
        )

    def verify(self, parameters: BaseParameters) -> Verification:
        """Prediction of the accumulated motion by base parameters of another fit.

        Args:
            parameters: base parameters, fitted to the same base columns.

        Raises:
            ValueError: the base columns are others.
        """
        if parameters.regressor.names != self.regressor.names:
            raise ValueError("base parameters of other columns than those of this fit")
        return self._verified(parameters.values)

    def _verified(self, values: Array) -> Verification:
        """Prediction of the accumulated motion by values of the own base columns [rank]."""
        total = self._grams.blocks.sum(axis=0)
        counts = total[:, _ONE, _ONE]
        squares = _squares(total, values)
        sums = total[:, _TORQUE, _ONE]
        variation = total[:, _TORQUE, _TORQUE] - sums**2 / np.maximum(counts, 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            return Verification(
                torque_rms=np.sqrt(squares / counts),
                torque_r2=np.asarray(1 - squares / variation),
                normalised_error=float(np.sqrt(squares.sum()) / counts.sum()),
                samples=int(counts.sum()),
            )


def published_error(
    parameters: BaseParameters, recordings: Sequence[Recording]
) -> NormalisedError | None:
    """Error of the ordinary solution at every recorded point, of torques from currents.

    Args:
        parameters: base parameters of the arm.
        recordings: recordings of the arm in the stated mounting.

    Returns:
        The error; None for other torques, and without motion.
    """
    if parameters.torque_source != "current":
        return None
    squares = 0.0
    points = 0
    seconds = 0.0
    steps = 0
    for recording in recordings:
        for motion in recorded_motions(recording.path, recording.cutoff):
            predicted = parameters.torque(motion.q, motion.qd, motion.qdd, "ordinary")
            error = predicted - motion.current * parameters.torque_per_ampere
            squares += float(np.square(error).sum())
            points += len(motion)
            steps += len(motion) - 1
            seconds += float(motion.time[-1] - motion.time[0])
    if not points:
        return None
    rate = steps / seconds if seconds > 0 else float("nan")
    return NormalisedError(float(np.sqrt(squares)) / points, points, rate)


def _solve(gram: Array, weights: Array) -> Array:
    """Weighted least squares [rank] from Gram matrices [n, rank + 2, rank + 2]."""
    weighted = np.einsum("j,jrc->rc", weights, gram)
    return solve_normal_equations(
        weighted[_BASE, _BASE], weighted[_BASE, _TORQUE], _RCOND
    )


def _squares(gram: Array, values: Array) -> Array:
    """Sum of squared residuals per joint [n]; rows are [base columns, torque, 1]."""
    full = np.append(-values, [1.0, 0.0])
    return np.asarray(np.maximum(np.einsum("r,jrc,c->j", full, gram, full), 0.0))


def _covariance(blocks: Array, values: Array) -> Array:
    """Covariance [rank, rank] of base parameters, correlated residuals allowed for.

    Correlated residuals inflate the covariance: with independent ones the variance of
    block scores would equal the information; the mean ratio is the number of samples that
    count as one.

    Args:
        blocks: Gram matrices per block of time [blocks, n, rank + 2, rank + 2].
        values: base parameters by weighted least squares [rank].
    """
    total = blocks.sum(axis=0)
    squares = _squares(total, values)
    counts = total[:, _ONE, _ONE]
    weights = counts / np.maximum(squares, 1e-12)
    residual = np.append(-values, [1.0, 0.0])
    scores = np.einsum("j,bjrc,c->br", weights, blocks, residual)[:, _BASE]
    information = np.einsum("j,jrc->rc", weights, total)[_BASE, _BASE]
    scatter = ((scores - scores.mean(axis=0)) ** 2).sum(axis=0)
    inflation = max(1.0, float(np.mean(scatter / np.diag(information))))
    return np.asarray(inflation * pseudo_inverse(information, _RCOND))


def _held_out_squares(blocks: Array) -> float:
    """Sum of squared torque errors [(N m)^2] of blocks that are predicted from the others.

    Args:
        blocks: Gram matrices per block of time [blocks, n, rank + 2, rank + 2].
    """
    total = blocks.sum(axis=0)
    equal_weights = np.ones(len(total))
    squares = 0.0
    for part in np.array_split(np.arange(len(blocks)), min(_FOLDS, len(blocks))):
        fold = blocks[part].sum(axis=0)
        others = total if len(part) == len(blocks) else total - fold
        squares += float(_squares(fold, _solve(others, equal_weights)).sum())
    return squares


# Bags: mounting first, then one pass over the filtered motion of each.

_SAME_MOUNTING = np.radians(1.0)  # largest angle between bags of one mounting [rad]
_SAME_PAYLOAD = 0.05  # largest difference of the payloads of bags [kg]


@dataclass(frozen=True)
class BagBaseParameters:
    """Base parameters of an arm from bags.

    Attributes:
        parameters: the identified base parameters.
        gravity: gravity in the base frame [3], m/s^2, as used.
        gravity_source: "estimated", "configured" or "default".
        verification: prediction of the held-out bags, None without any.
        published_error: published error of the torques from currents as Raviola et al.
            2021 define it, on the held-out bags or, without any, on the fitted ones; None
            for target_moment.
        cutoff: cut-off frequency of the filter, lowest over the bags [Hz].
        warnings: warnings for the user, one line each.
    """

    parameters: BaseParameters
    gravity: Array
    gravity_source: str
    verification: Verification | None
    published_error: NormalisedError | None
    cutoff: float
    warnings: tuple[str, ...]

    @property
    def normalised_error(self) -> float:
        """Normalised error on the held-out bags [N m]; without any, cross-validated."""
        if self.verification is not None:
            return self.verification.normalised_error
        return self.parameters.normalised_error


def identify_base_parameters(
    bags: Sequence[str | Path],
    robot: RobotDescription,
    *,
    validate: Sequence[str | Path] = (),
    torque_source: TorqueSource = "current",
    torque_constant: Array | None = None,
    choose: BaseChoice | None = None,
    progress: Progress | None = None,
) -> BagBaseParameters:
    """Base parameters from bags of one mounting and payload, and their prediction of held-out ones.

    Args:
        bags: recordings to fit.
        robot: the arm.
        validate: recordings that are held out, for errors only.
        torque_source: "current" (measured, times the torque constant), "target_moment"
            (the controller's own model) or "measured_torque" (actual_current_as_torque,
            for arms that measure joint torque).
        torque_constant: motor side [n], N m/A; None for the robot file's.
        choose: names the base columns; None for the usual ones.
        progress: called with the finished share and the current step.

    Raises:
        UrEnergyError: unusable bag or too little motion.
    """
    effort = TORQUE if torque_source == "measured_torque" else CURRENT
    with ExitStack() as stack:
        recordings = []
        for path in [*bags, *validate]:
            recording = read_recording(path, robot, effort=effort, progress=progress)
            recordings.append(stack.enter_context(closing(recording)))
        for recording in recordings:
            recording.quality.require_usable()
            if torque_source == "target_moment" and recording.torque_reference == "none":
                raise IdentificationError(
                    f"{recording.path}: target_moment was not recorded; use --from current"
                )
        warnings: list[str] = []
        gravity, source = _gravity(recordings, robot, warnings)
        fits = []
        for chosen in (recordings[: len(bags)], recordings[len(bags) :]):
            fit = BaseParameterFit(
                robot,
                gravity,
                torque_source=torque_source,
                torque_constant=torque_constant,
                choose=choose,
            )
            for recording in chosen:
                narrow = ParallelFilter(recording.cutoff)
                for motion in recording.motions:
                    fit.accumulate(motion, narrow)
            fits.append(fit)
        parameters = fits[0].solve()
        if parameters.condition_number > ILL_CONDITIONED:
            warnings.append(
                f"condition number {parameters.condition_number:.0f}: the motion does not "
                "determine all base parameters; record one made by ur_energy excite"
            )
        return BagBaseParameters(
            parameters=parameters,
            gravity=gravity,
            gravity_source=source,
            verification=fits[1].verify(parameters) if validate else None,
            published_error=published_error(
                parameters, recordings[len(bags) :] or recordings
            ),
            cutoff=min(recording.cutoff for recording in recordings),
            warnings=tuple(warnings),
        )


def _gravity(
    recordings: Sequence[Recording], robot: RobotDescription, warnings: list[str]
) -> tuple[Array, str]:
    """Gravity common to all recordings, and its source: from target_moment, else as recorded.

    Args:
        recordings: recordings of the arm.
        robot: the arm.
        warnings: warnings for the user, to which further ones are appended.

    Raises:
        IdentificationError: the mounting changes between recordings.
    """
    with_torque = [each for each in recordings if each.torque_reference != "none"]
    if not with_torque:
        stated = recordings[0].info.gravity
        if stated is not None:
            return np.array(stated), "configured"
        warnings.append("without target_moment the mounting is assumed upright")
        return np.array([0.0, 0.0, -robot.controller_gravity]), "default"
    parts = chain.from_iterable(each.torque_telemetry() for each in with_torque)
    estimate = estimate_dynamics(parts, robot)
    first = estimate.recordings[0].setup
    for entry in estimate.recordings[1:]:
        if angle_between(first.gravity, entry.setup.gravity) > _SAME_MOUNTING:
            raise IdentificationError(
                f"{entry.source}: the mounting differs from {estimate.recordings[0].source}; "
                "base parameters of different mountings cannot be combined; identify them apart"
            )
        if abs(first.payload.mass - entry.setup.payload.mass) > _SAME_PAYLOAD:
            warnings.append(
                f"{entry.source}: payload {entry.setup.payload.mass:.2f} kg, but "
                f"{first.payload.mass:.2f} kg in {estimate.recordings[0].source}; the last link's "
                "parameters are a mixture"
            )
    return estimate.setup.gravity, estimate.setup_source
