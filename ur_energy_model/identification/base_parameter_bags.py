"""Base parameters from bags: mounting first, then one pass over the filtered motion of each bag."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ur_energy_model.errors import IdentificationError
from ur_energy_model.identification.base_parameters import (
    BaseParameterFit,
    BaseParameters,
    TorqueSource,
    Verification,
)
from ur_energy_model.identification.comparison import recorded_motions
from ur_energy_model.identification.dynamics import angle_between, estimate_dynamics
from ur_energy_model.identification.filtered_motion import ParallelFilter
from ur_energy_model.identification.quality import ILL_CONDITIONED
from ur_energy_model.identification.recording import CURRENT, TORQUE, Recording, read_recording
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.telemetry.samples import slices_between
from ur_energy_model.typing import Array, Progress


@dataclass(frozen=True)
class NormalisedError:
    """Error of predicted torques as Raviola et al. 2021, sec. 3.1, define it."""

    value: float  # (1/N) sqrt(e'e) with the errors e of all joints at N points [N m]
    points: int  # N, points of the motion as recorded; each has one row per joint
    rate: float  # of the points [Hz]


_SAME_MOUNTING = np.radians(1.0)
_POINTS = 1000  # points whose regressor is computed at a time


@dataclass(frozen=True)
class BagBaseParameters:
    """Base parameters of an arm from bags."""

    parameters: BaseParameters  # identified ones
    gravity: Array  # in the base frame [3], m/s^2, as used
    gravity_source: str  # "estimated", "configured" or "default"
    verification: Verification | None  # prediction of the held-out bags, None without any
    # Of the torques from currents as Raviola et al. 2021 define it, on the held-out bags or,
    # without any, on the fitted ones; None for target_moment
    published_error: NormalisedError | None
    cutoff: float  # of the filter, lowest over the bags [Hz]
    warnings: tuple[str, ...]  # for the user, one line each

    @property
    def normalised_error(self) -> float:
        """On the held-out bags; without any, cross-validated over blocks of time."""
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
    progress: Progress | None = None,
) -> BagBaseParameters:
    """Base parameters from bags of one mounting and payload, and their prediction of held-out ones.

    The torque is "current" (measured, times `torque_constant`, motor side [n], N m/A, by default
    the robot file's), "target_moment" (the controller's own model) or "measured_torque"
    (actual_current_as_torque, for arms that measure joint torque).

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
                robot, gravity, torque_source=torque_source, torque_constant=torque_constant
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
            verification=fits[1].verify(parameters.values) if validate else None,
            published_error=_published_error(
                fits[0], parameters.ordinary, recordings[len(bags) :] or recordings
            ),
            cutoff=min(recording.cutoff for recording in recordings),
            warnings=tuple(warnings),
        )


def _published_error(
    fit: BaseParameterFit, values: Array, recordings: Sequence[Recording]
) -> NormalisedError | None:
    """Error at every recorded point of these recordings, of an ordinary least-squares fit."""
    if fit.torque_source != "current":
        return None
    squares, points, seconds, steps = 0.0, 0, 0.0, 0
    for recording in recordings:
        for part in recorded_motions(recording.path, recording.cutoff):
            for rows in slices_between(range(_POINTS, len(part), _POINTS), len(part)):
                motion = (part.q[rows], part.qd[rows], part.qdd[rows], part.current[rows])
                squares += float(np.square(fit.torque_error(values, *motion)).sum())
                time = part.time[rows]
                points, steps = points + len(time), steps + len(time) - 1
                seconds += float(time[-1] - time[0])
    if not points:
        return None
    rate = steps / seconds if seconds > 0 else float("nan")
    return NormalisedError(float(np.sqrt(squares)) / points, points, rate)


def _gravity(
    recordings: Sequence[Recording], robot: RobotDescription, warnings: list[str]
) -> tuple[Array, str]:
    """Gravity common to all recordings, and its source: from target_moment, else as recorded.

    Raises:
        IdentificationError: the mounting changes between recordings.
    """
    with_torque = [recording for recording in recordings if recording.torque_reference != "none"]
    if not with_torque:
        stated = recordings[0].info.gravity
        if stated is not None:
            return np.array(stated), "configured"
        warnings.append("without target_moment the mounting is assumed upright")
        return np.array([0.0, 0.0, -robot.controller_gravity]), "default"
    estimate = estimate_dynamics(
        (part for recording in with_torque for part in recording.torque_telemetry()), robot
    )
    first = estimate.recordings[0].setup
    for entry in estimate.recordings[1:]:
        if angle_between(first.gravity, entry.setup.gravity) > _SAME_MOUNTING:
            raise IdentificationError(
                f"{entry.source}: the mounting differs from {estimate.recordings[0].source}; "
                "base parameters of different mountings cannot be combined; identify them apart"
            )
        if abs(first.payload.mass - entry.setup.payload.mass) > 0.05:
            warnings.append(
                f"{entry.source}: payload {entry.setup.payload.mass:.2f} kg, but "
                f"{first.payload.mass:.2f} kg in {estimate.recordings[0].source}; the last link's "
                "parameters are a mixture"
            )
    return estimate.setup.gravity, estimate.setup_source
