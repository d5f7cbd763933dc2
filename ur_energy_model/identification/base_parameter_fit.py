# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Fit of an arm's base parameters to motion and torque, of one or more bags.

torque = W p_B with W the base columns of the regressor (`regroup`): the fit of torques
(torque_fit.py), then the nearest physically consistent full parameters. Sources: Raviola et
al., RAAD 2021, sec. 2; Machines 2024, 12(9), 595, sec. 3 and 5.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
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
from ur_energy_model.identification.least_squares import pseudo_inverse
from ur_energy_model.identification.physical_consistency import nearest_possible
from ur_energy_model.identification.quality import ILL_CONDITIONED
from ur_energy_model.identification.recording import (
    CURRENT,
    TORQUE,
    Recording,
    read_recording,
)
from ur_energy_model.identification.torque_fit import (
    RCOND,
    TorqueFit,
    TorqueRegression,
    TorqueRows,
    Verification,
    torque_rows,
)
from ur_energy_model.model.regressor import MOTOR_INERTIA
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.setup import FIRST_MOMENT, MASS, TENSOR
from ur_energy_model.typing import Array, Progress

TorqueSource = Literal["current", "target_moment", "measured_torque"]
Solution = Literal["ordinary", "weighted", "consistent"]
"""Least squares, least squares weighted with each joint's noise, or the nearest physically
possible parameters."""


@dataclass(frozen=True)
class BaseParameters(TorqueFit):
    """Identified base parameters, and their errors in the prediction of the fitted data.

    Attributes:
        regressor: the base columns of the fit; the values are valid for no others.
        torque_source: "current" (measured current times torque constant), "target_moment"
            or "measured_torque".
        torque_per_ampere: what turned the measured currents into torques, joint side [n],
            N m/A; 1 for torques that were measured.
        consistent: physically possible full parameters nearest to `values` [parameters].
        consistent_rms: residual per joint of `consistent` on the fitted data [n], N m.
        consistent_difference: RMS difference of the torques by `consistent` and by `values`
            on the fitted data [n], N m.
        rigid_difference: the same without the motor inertias of `consistent`, which formats
            such as URDF do not have [n], N m.
    """

    regressor: BaseRegressor
    torque_source: TorqueSource
    torque_per_ampere: Array
    consistent: Array
    consistent_rms: Array
    consistent_difference: Array
    rigid_difference: Array

    @property
    def regrouping(self) -> Regrouping:
        """Base parameters as combinations of full parameters."""
        return self.regressor.regrouping

    @property
    def standard(self) -> dict[str, float]:
        """The physically consistent parameters of links and drives by name, such as "m_2"."""
        names = self.regressor.full.names
        return dict(zip(names, self.consistent.tolist(), strict=True))

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
        self._regression = TorqueRegression(
            self.regressor.names, self.regressor.units, robot.dof
        )

    def accumulate(
        self, motion: FilteredMotion, narrow: ParallelFilter | None = None
    ) -> None:
        """Add a motion; one without the torque is ignored.

        Args:
            motion: motion of the arm in the stated mounting.
            narrow: filter of the recording for regressor and torque; None for no filter.
        """
        rows = self.rows(motion, narrow)
        if rows is not None:
            self.add(rows)

    def rows(
        self, motion: FilteredMotion, narrow: ParallelFilter | None = None
    ) -> TorqueRows | None:
        """Torques and base columns of a motion; None for one without the torque.

        The arguments are those of `accumulate`.
        """
        measured = self.torque_source != "target_moment"
        torque = motion.current * self._torque_per_ampere if measured else motion.moment
        if not np.isfinite(torque).all():
            return None
        columns = self.regressor(motion.q, motion.qd, motion.qdd)
        return torque_rows(motion, columns, torque, narrow, moving_only=measured)

    def add(self, rows: TorqueRows) -> None:
        """Add the rows of a motion."""
        self._regression.accumulate(rows)

    def solve(self) -> BaseParameters:
        """Fit the accumulated motion.

        Raises:
            IdentificationError: too little motion for the number of base parameters.
        """
        regression = self._regression
        found = regression.solve()
        consistent = self._consistent(found.values, found.covariance)
        combination = self.regressor.regrouping.combination
        base_values = combination @ consistent
        full_names = self.regressor.full.names
        is_motor = np.array([name.startswith(MOTOR_INERTIA) for name in full_names])
        rigid_values = combination @ np.where(is_motor, 0.0, consistent)
        return BaseParameters(
            **vars(found),
            regressor=self.regressor,
            torque_source=self.torque_source,
            torque_per_ampere=self._torque_per_ampere,
            consistent=consistent,
            consistent_rms=regression.verify(base_values).torque_rms,
            consistent_difference=regression.difference(base_values, found.values),
            rigid_difference=regression.difference(rigid_values, found.values),
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
            pseudo_inverse(covariance, RCOND),
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
        return self._regression.verify(parameters.values)


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


# Bags: mounting first, then one pass over the filtered motion of each.

_SAME_MOUNTING = np.radians(1.0)  # largest angle between bags of one mounting [rad]
_SAME_PAYLOAD = 0.05  # largest difference of the payloads of bags [kg]
_MOST_KEPT = 50_000_000
"""Numbers of a regressor that is kept: 0.4 GB, an hour of motion of a six-axis arm."""


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
        rows: torques and base columns of the fitted bags; none unless they were asked for.
    """

    parameters: BaseParameters
    gravity: Array
    gravity_source: str
    verification: Verification | None
    published_error: NormalisedError | None
    cutoff: float
    warnings: tuple[str, ...]
    rows: tuple[TorqueRows, ...] = field(default=(), repr=False)

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
    keep_rows: bool = False,
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
        keep_rows: whether the result has the torques and base columns of the fitted bags,
            0.1 MB for each second of motion of a six-axis arm.
        progress: called with the finished share and the current step.

    Raises:
        UrEnergyError: unusable bag, too little motion, or too much to keep its rows.
    """
    effort = TORQUE if torque_source == "measured_torque" else CURRENT
    with ExitStack() as stack:
        recordings = []
        for path in [*bags, *validate]:
            recording = read_recording(path, robot, effort=effort, progress=progress)
            recordings.append(stack.enter_context(recording))
        for recording in recordings:
            recording.quality.require_usable()
            if torque_source == "target_moment" and recording.torque_reference == "none":
                raise IdentificationError(
                    f"{recording.path}: target_moment was not recorded; use --from current"
                )
        warnings: list[str] = []
        gravity, source = _gravity(recordings, robot, warnings)
        fits: list[BaseParameterFit] = []
        kept = _KeptRows()
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
                    rows = fit.rows(motion, narrow)
                    if rows is None:
                        continue
                    fit.add(rows)
                    if keep_rows and not fits:
                        kept.append(rows)
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
            rows=tuple(kept.rows),
        )


class _KeptRows:
    """Rows of the fitted bags, up to a limit.

    Attributes:
        rows: the rows, in order.
    """

    def __init__(self) -> None:
        self.rows: list[TorqueRows] = []
        self._numbers = 0

    def append(self, rows: TorqueRows) -> None:
        """Append rows.

        Raises:
            IdentificationError: there are too many.
        """
        self._numbers += rows.regressor.values.size
        if self._numbers > _MOST_KEPT:
            raise IdentificationError(
                f"the regressor of these bags has more than {_MOST_KEPT / 1e6:g} million "
                "numbers; export fewer or shorter bags"
            )
        self.rows.append(rows)


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
