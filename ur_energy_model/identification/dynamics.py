"""Dynamics of arm and setups: mounting, payload, link tensors and reflected inertia."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ur_energy_model.errors import IdentificationError, MissingFieldError
from ur_energy_model.identification.filtered_motion import FilteredMotion
from ur_energy_model.identification.recording import Recording
from ur_energy_model.identification.reflected_inertia import InertiaEstimate, expected_inertia
from ur_energy_model.identification.setup_prior import (
    SetupPrior,
    constant_payloads,
    payload_runs,
    payload_told,
    stated_for,
    stated_setup,
)
from ur_energy_model.identification.target_moment_data import (
    TorqueColumns,
    TorqueInformation,
    reference_blocks,
)
from ur_energy_model.identification.target_moment_solver import (
    CENTER,
    DELAY,
    GRAVITY,
    GRAVITY_STD,
    MASS,
    MASS_STD,
    TargetMomentSolver,
    setup_from,
)
from ur_energy_model.identification.torque_constants import JointEstimate, reflected_inertia
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.energy_model import LinkTensors
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.setup import Payload, Setup
from ur_energy_model.telemetry.samples import RecordingInfo, Telemetry
from ur_energy_model.typing import Array, Mask

_IDENTIFIED = 0.05
"""Relative standard deviation below which an inertia counts as identified."""

_SOURCE_WORDS = {"default": "assumed", "rtde": "recorded", "configured": "configured"}


@dataclass(frozen=True)
class EstimatedSetup:
    """Mounting and payload of one recording, or of its stretches with one payload.

    Attributes:
        source: bag or file.
        stated: as configured or recorded.
        setup: estimate.
        setup_source: "estimated" where target_moment determines it, else the source of `stated`.
        gravity_std, mass_std, center_std: standard deviations [3] m/s^2, kg, [3] m.
        delay: of target_moment behind the motion it belongs to [s]. With recorded targets the
            position is older: target_moment = f(target_q - delay * target_qd, ...).
        reference: "target" where recorded targets were used, "actual" where filtered measurement.
        rms: torque residual per joint [n], N m.
        r2: coefficient of determination per joint [n]; NaN for a torque that never changes.
        samples: number of samples used.
        warnings: differences from the stated setup, one line each.
    """

    source: str
    stated: SetupPrior
    setup: Setup
    setup_source: str
    gravity_std: Array
    mass_std: float
    center_std: Array
    delay: float
    reference: str
    rms: Array
    r2: Array
    samples: int
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class DynamicsEstimate:
    """Setups of the recordings and reflected inertia of the arm.

    Attributes:
        setup, setup_source: of the recording with the most samples.
        reflected_inertia: motor and reducer, joint side [n], kg m^2.
        std: standard deviation [n], correlated residuals allowed for.
        identified: [n]; False where the joint hardly moved and its prior is kept.
        link_tensors: identified instead of the robot file's, None unless requested. Reflected
            inertias and setups refer to them.
        recordings: one entry per recording, or several where its payload changes.
        rms: torque residual per joint over all recordings [n], N m.
        r2: coefficient of determination per joint [n].
        warnings: for the user, one line each.
    """

    setup: Setup
    setup_source: str
    reflected_inertia: Array
    std: Array
    identified: Mask
    link_tensors: LinkTensors | None
    recordings: tuple[EstimatedSetup, ...]
    rms: Array
    r2: Array
    warnings: tuple[str, ...]


def estimate_dynamics(
    recordings: Iterable[Telemetry],
    robot: RobotDescription,
    *,
    configured: Setup | None = None,
    identify_tensors: bool = False,
) -> DynamicsEstimate:
    """Gravity vector, payload and reflected inertias from target_moment.

    Parts of one recording (same `info.source`) share a setup while its payload fields do not
    change; the reflected inertias are common to all. Parts are read once and not kept, so memory
    does not grow with their number. Without recorded targets the filter removes 0.4 s at either
    end of every part: parts should be half a minute or longer.

    Args:
        recordings: recordings or consecutive parts of them.
        robot: the arm, n joints.
        configured: mounting and payload as stated by the user; None takes the recorded ones
            (payload, payload_cog, info), else upright and unloaded.
        identify_tensors: also estimate the link tensors.

    Raises:
        MissingFieldError: a recording lacks target_moment or position and speed.
        IdentificationError: no usable sample.
    """
    columns = TorqueColumns(robot, identify_tensors)
    data: dict[tuple[object, ...], TorqueInformation] = {}
    for recording in recordings:
        for part in constant_payloads(recording):
            stated = stated_setup(part, robot, configured)
            payload = stated.setup.payload
            key = (part.info.source, payload.mass, *payload.center_of_mass)
            entry = data.setdefault(key, TorqueInformation(part.info.source, stated))
            for block in reference_blocks(part, columns):
                entry.accumulate(block)
    useful = [entry for entry in data.values() if entry.samples]
    if not useful:
        names = ", ".join(dict.fromkeys(e.source for e in data.values())) or "no recording"
        raise IdentificationError(
            f"{names}: no sample with finite target_moment, brakes released and no freedrive; "
            "record the robot while a program moves it"
        )
    solution = TargetMomentSolver(columns, useful).solve()
    found = zip(useful, solution.setups, solution.setups_std, solution.squares, strict=True)
    entries = tuple(_recording(*each) for each in found)
    longest = max(entries, key=lambda entry: entry.samples)
    nominal = expected_inertia(robot).value
    reliable = solution.std_given_tensors < _IDENTIFIED * np.abs(solution.reflected_inertia)
    identified = solution.moved & reliable
    squares = solution.squares.sum(axis=0)
    spread = np.sum([entry.torque_spread for entry in useful], axis=0)
    return DynamicsEstimate(
        setup=longest.setup,
        setup_source=longest.setup_source,
        reflected_inertia=np.where(solution.moved, solution.reflected_inertia, nominal),
        std=np.where(solution.moved, solution.std, np.nan),
        identified=identified,
        link_tensors=solution.link_tensors,
        recordings=entries,
        rms=np.sqrt(squares / sum(entry.samples for entry in useful)),
        r2=_r2(squares, spread),
        warnings=tuple(line for entry in entries for line in entry.warnings),
    )


def _recording(
    data: TorqueInformation, unknowns: Array, std: Array, squares: Array
) -> EstimatedSetup:
    """One setup from its unknowns and their standard deviations [14], and its squares [n]."""
    mass_std = float(std[MASS])
    decided = std[GRAVITY].max() < 0.1 * GRAVITY_STD and mass_std < 0.25 * MASS_STD
    setup = setup_from(unknowns, mass_std)
    return EstimatedSetup(
        source=data.source,
        stated=data.stated,
        setup=setup,
        setup_source="estimated" if decided else data.stated.source,
        gravity_std=std[GRAVITY],
        mass_std=mass_std,
        center_std=std[CENTER],
        delay=data.nominal_delay + float(unknowns[DELAY]),
        reference=data.kind,
        rms=np.sqrt(squares / data.samples),
        r2=_r2(squares, data.torque_spread),
        samples=data.samples,
        warnings=tuple(_disagreements(data, setup, float(std[GRAVITY].max()), mass_std)),
    )


def angle_between(first: Array, second: Array) -> float:
    """Angle between two vectors [3], rad."""
    cosine = first @ second / (np.linalg.norm(first) * np.linalg.norm(second))
    return float(np.arccos(np.clip(cosine, -1.0, 1.0)))


def _r2(squares: Array, spread: Array) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(spread > 1e-9, 1 - squares / spread, np.nan))


def _disagreements(
    data: TorqueInformation, seen: Setup, gravity_std: float, mass_std: float
) -> Iterable[str]:
    """Lines where the estimate contradicts the configured or recorded setup."""
    stated = data.stated.setup
    angle = np.degrees(angle_between(stated.gravity, seen.gravity))
    if angle > 1.0 and gravity_std < 0.3:
        reference = "the configured mounting" if data.stated.source == "configured" else "upright"
        vector = ", ".join(f"{value:.2f}" for value in seen.gravity)
        yield (
            f"{data.source}: target_moment shows the base tilted by {angle:.1f} degrees from "
            f"{reference} (gravity {vector} m/s^2); the estimate is used"
        )
    change = seen.payload.mass - stated.payload.mass
    if abs(change) > max(0.05, 4 * mass_std) and mass_std < 0.3:
        yield (
            f"{data.source}: target_moment shows a payload of {seen.payload.mass:.2f} kg where "
            f"{stated.payload.mass:.2f} kg is {_SOURCE_WORDS[data.stated.source]}; the estimate is "
            "used"
        )


# Identification stage of mounting, payload, link tensors and reflected inertia.

MEASURED_MOTION_ERROR = 0.003
"""Relative error of an inertia from filtered measured motion instead of recorded targets, from
recordings of a UR10e without targets."""


def estimate_setups(
    recordings: Sequence[Recording],
    fitted: Sequence[Recording],
    robot: RobotDescription,
    setup: Setup | None,
    identify_tensors: bool = False,
) -> tuple[RobotDescription, DynamicsEstimate | None]:
    """Setups of all recordings from target_moment, and the arm with identified link tensors.

    Inertias and tensors come from the fitted recordings alone.

    Args:
        recordings: all, held-out ones included.
        fitted: those to fit.
        robot: the arm.
        setup: mounting and payload as stated by the user.
        identify_tensors: identify the link tensors too.

    Returns:
        The arm, and the estimate; None if no fitted recording has target_moment.

    Raises:
        MissingFieldError: link tensors requested without target_moment.
    """
    usable = [r for r in recordings if r.torque_reference != "none"]
    if not any(recording in usable for recording in fitted):
        if identify_tensors:
            raise MissingFieldError(
                fitted[0].path,
                "was not recorded, but link tensors can only be identified from it",
                "record it or use the robot file's tensors",
                field="target_moment",
            )
        return robot, None
    estimate = estimate_dynamics(
        _torques(fitted), robot, configured=setup, identify_tensors=identify_tensors
    )
    if estimate.link_tensors is not None:
        robot = estimate.link_tensors.applied_to(robot)
    others = [r for r in usable if r not in fitted]
    if not others:
        return robot, estimate
    entries = list(estimate.recordings)
    for recording in others:
        entries.extend(estimate_dynamics(_torques([recording]), robot, configured=setup).recordings)
    return robot, replace(estimate, recordings=tuple(entries))


def inertia_from_torque(
    robot: RobotDescription,
    estimate: DynamicsEstimate | None,
    prior: InertiaEstimate | None = None,
) -> InertiaEstimate:
    """Reflected inertias from target_moment, priors for the others.

    Args:
        robot: the arm.
        estimate: from target_moment; None without.
        prior: from other arms; None for that of the robot file.
    """
    expected = expected_inertia(robot) if prior is None else prior
    if estimate is None:
        return expected
    seen = np.isfinite(estimate.std)
    exact = any(entry.reference == "target" for entry in estimate.recordings)
    left_out = 0.0 if exact else MEASURED_MOTION_ERROR
    return InertiaEstimate(
        np.where(seen, estimate.reflected_inertia, expected.value),
        np.where(seen, np.hypot(estimate.std, left_out * estimate.reflected_inertia), expected.std),
        tuple("target_moment" if told else "prior" for told in estimate.identified),
    )


def inertia_with_currents(
    before: InertiaEstimate, joints: Sequence[JointEstimate]
) -> InertiaEstimate:
    """Reflected inertias with those unknown before updated by the currents.

    An inertia counts as identified from currents if they halve its standard deviation.
    """
    value, std, source = before.value.copy(), before.std.copy(), list(before.source)
    for j, joint in enumerate(joints):
        told = reflected_inertia(joint, float(before.value[j]), float(before.std[j]))
        if told is not None:
            value[j], std[j] = told
            source[j] = "current" if std[j] < 0.5 * before.std[j] else "prior"
    return InertiaEstimate(value, std, tuple(source))


def _torques(recordings: Sequence[Recording]) -> Iterator[Telemetry]:
    for recording in recordings:
        if recording.torque_reference != "none":
            yield from recording.torque_telemetry()


# Arm dynamics of one recording, with the setup that belongs to each payload.

_SAME_PAYLOAD = 2e-3
"""Payloads that differ by less are the same [kg and m]."""


@dataclass(frozen=True)
class RecordingDynamics:
    """Arm dynamics of one recording, with the setup that belongs to each payload.

    Attributes:
        robot: the arm.
        info: of the recording.
        estimate: setups estimated from target_moment, None without.
        configured: mounting and payload as stated by the user.
        fallback: setup of other recordings of the same arm, for values this one lacks.
        carried: payload actually on the flange, if the controller was told another one:
            target_moment contains the told payload, the currents the carried one.
    """

    robot: RobotDescription
    info: RecordingInfo
    estimate: DynamicsEstimate | None
    configured: Setup | None
    fallback: Setup | None = None
    carried: Payload | None = None

    def alone(self) -> RecordingDynamics:
        """The same without the setups of other recordings."""
        if self.estimate is None:
            return self
        own = tuple(e for e in self.estimate.recordings if e.source == self.info.source)
        return replace(self, estimate=replace(self.estimate, recordings=own))

    def parts(self, motion: FilteredMotion) -> Iterator[tuple[FilteredMotion, ArmDynamics]]:
        """Parts of a motion with one payload each, and the dynamics that belong to it."""
        for rows, told in payload_runs(motion.payload):
            yield motion.cut(rows), ArmDynamics(self.robot, self.actual_setup(told))

    def actual_setup(self, told: Array) -> Setup:
        """Setup with the carried payload; `told` is the one told to the controller [4]."""
        setup = self.setup_and_delay(told)[0]
        return setup if self.carried is None else replace(setup, payload=self.carried)

    def controller_load(self, motion: FilteredMotion, load: Array) -> Array:
        """Load as the controller computes it [samples, n], N m, joint side.

        Args:
            motion: with one payload.
            load: with the carried payload.
        """
        if self.carried is None:
            return load
        setup = self.setup_and_delay(motion.payload[0])[0]
        motions = motion.q, motion.qd, motion.qdd
        carried = ArmDynamics(self.robot, replace(setup, payload=self.carried))
        told = ArmDynamics(self.robot, setup)
        difference = told.inverse_dynamics(*motions) - carried.inverse_dynamics(*motions)
        return np.asarray(load + difference)

    def delay(self, motion: FilteredMotion) -> float:
        """Delay of target_moment behind the measured motion [s]."""
        return self.setup_and_delay(motion.payload[0])[1]

    def setup_and_delay(self, told: Array) -> tuple[Setup, float]:
        """Setup and torque delay [s] for a payload told to the controller [4], NaN without."""
        source = self.info.source
        entries = (
            []
            if self.estimate is None
            else [e for e in self.estimate.recordings if e.source == source]
        )
        if not entries:
            return self.stated(told).setup, 0.0
        known, told = bool(np.isfinite(told[0])), np.nan_to_num(told)

        def distance(index: int) -> tuple[float, int]:
            payload = entries[index].stated.setup.payload
            stated = np.array([payload.mass, *payload.center_of_mass])
            return float(np.abs(stated - told).max()), -entries[index].samples

        nearest = min(range(len(entries)), key=distance)
        if known and distance(nearest)[0] > _SAME_PAYLOAD:  # none was estimated with this payload
            return self.stated(told).setup, entries[nearest].delay
        return entries[nearest].setup, entries[nearest].delay

    def stated(self, told: Array) -> SetupPrior:
        """Stated setup for a payload told to the controller [4]."""
        payload = payload_told(told)
        return stated_for(self.info, payload, self.robot, self.configured, self.fallback)
