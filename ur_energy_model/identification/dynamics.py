# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Dynamics of arm and setups: mounting, payload, link tensors and reflected inertia.

They follow from target_moment, the controller's own inverse dynamics (Clochiatti et al.,
Robotica 2024, eq. 2 and 7-9), or from what is stated of a recording without it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from operator import attrgetter

import numpy as np

from ur_energy_model.consistency.controller_torque import TorqueColumns
from ur_energy_model.errors import IdentificationError, MissingFieldError
from ur_energy_model.identification.buffers import Buffer
from ur_energy_model.identification.filtered_motion import FilteredMotion
from ur_energy_model.identification.recording import SessionData
from ur_energy_model.identification.reflected_inertia import (
    InertiaEstimate,
    expected_inertia,
)
from ur_energy_model.identification.target_moment import (
    COUNT,
    DELAY,
    GRAVITY,
    KNOWN_GRAVITY_STD,
    MASS,
    MASS_STD,
    SetupPrior,
    TargetMomentSolver,
    TorqueInformation,
    setup_from,
)
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.energy_model import LinkTensors
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.setup import Payload, Setup, tensor_of
from ur_energy_model.telemetry.samples import RecordingInfo, Telemetry, equal_runs
from ur_energy_model.typing import Array, Mask

_IDENTIFIED = 0.05
"""Relative standard deviation below which an inertia counts as identified."""
_TILT = 1.0  # angle from the stated mounting from which a warning is due [degrees]
_LEAST_CHANGE = 0.05
"""Difference from the stated payload from which a warning is due [kg]."""
_KNOWN_MASS_STD = 0.3
"""Deviation of a payload that is known well enough for a warning [kg]."""
_SOURCE_WORDS = {"default": "assumed", "rtde": "recorded", "configured": "configured"}


@dataclass(frozen=True)
class EstimatedSetup:
    """Mounting and payload of one recording, or of its stretches with one payload.

    Attributes:
        source: bag or file.
        stated: setup as configured or recorded.
        setup: estimated mounting and payload.
        setup_source: "estimated" where target_moment determines it, else the source of
            `stated`.
        mass_std: standard deviation of the mass of the payload [kg].
        delay: delay of target_moment behind the motion it belongs to [s]. With recorded
            targets the position is older: target_moment = f(target_q - delay * target_qd,
            ...).
        reference: "target" where recorded targets were used, "actual" where the filtered
            measured motion was used.
        samples: number of samples used.
        warnings: differences from the stated setup, one line each.
    """

    source: str
    stated: SetupPrior
    setup: Setup
    setup_source: str
    mass_std: float
    delay: float
    reference: str
    samples: int
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class DynamicsEstimate:
    """Setups of the recordings and reflected inertia of the arm.

    Attributes:
        setup: mounting and payload of the recording with the most samples.
        setup_source: source of this setup, see `EstimatedSetup`.
        reflected_inertia: reflected inertia of motor and reducer, joint side [n], kg m^2.
        std: standard deviation of the inertias [n], kg m^2, correlated residuals allowed
            for; NaN for joints that did not move.
        identified: joints [n] whose inertia target_moment shows; the prior of others is
            kept.
        link_tensors: identified tensors in place of the tensors of the robot file; None
            unless requested. Reflected inertias and setups refer to them.
        recordings: setups by recording: one entry, or several where the payload changes.
        rms: torque residual per joint over all recordings [n], N m.
        warnings: warnings for the user, one line each.
    """

    setup: Setup
    setup_source: str
    reflected_inertia: Array
    std: Array
    identified: Mask
    link_tensors: LinkTensors | None
    recordings: tuple[EstimatedSetup, ...]
    rms: Array
    warnings: tuple[str, ...]


def estimate_dynamics(
    recordings: Iterable[Telemetry],
    robot: RobotDescription,
    *,
    configured: Setup | None = None,
    identify_tensors: bool = False,
) -> DynamicsEstimate:
    """Gravity vector, payload and reflected inertias from target_moment.

    target_moment is the controller's own frictionless inverse dynamics, so that what the
    links do not explain of target_moment is reflected inertia times acceleration
    (Clochiatti et al. 2024, eq. 2 and 7-9).

    Parts of one recording (same `info.source`) share a setup while its payload fields do
    not change; the reflected inertias are common to all. Parts are read once and not
    kept. Without recorded targets the filter removes 0.4 s at either end of every part:
    parts should be half a minute or longer.

    Args:
        recordings: parts of recordings, in order.
        robot: the arm, n joints.
        configured: the user's mounting and payload; None takes the recorded ones, else
            upright and unloaded.
        identify_tensors: whether to find the tensors of the links, too.

    Raises:
        IdentificationError: no sample can be used.
    """
    columns = TorqueColumns(robot, identify_tensors)
    data = _by_setup(recordings, robot, configured, columns)
    useful = [entry for entry in data if entry.samples]
    if not useful:
        sources = dict.fromkeys(entry.source for entry in data)
        names = ", ".join(sources) or "no recording"
        raise IdentificationError(
            f"{names}: no sample with finite target_moment, brakes released and no freedrive; "
            "record the robot while a program moves it"
        )
    solver = TargetMomentSolver(columns, useful)
    n = robot.dof
    found = solver.solve()
    setups = found.unknowns[columns.common :].reshape(-1, COUNT)
    setups_std = found.std[columns.common :].reshape(-1, COUNT)
    entries = tuple(map(_estimated_setup, useful, setups, setups_std))
    longest = max(entries, key=attrgetter("samples"))
    squares = solver.squares(found.unknowns).sum(axis=0)
    moved = solver.moved
    inertias = slice(0, n)  # the first of the unknowns
    inertia = found.unknowns[inertias]
    is_identified = found.std[inertias] < _IDENTIFIED * np.abs(inertia)
    return DynamicsEstimate(
        setup=longest.setup,
        setup_source=longest.setup_source,
        reflected_inertia=np.where(moved, inertia, expected_inertia(robot).value),
        std=np.where(moved, found.inertia_std, np.nan),
        identified=moved & is_identified,
        link_tensors=found.tensors,
        recordings=entries,
        rms=np.sqrt(squares / sum(entry.samples for entry in useful)),
        warnings=tuple(chain.from_iterable(entry.warnings for entry in entries)),
    )


def _by_setup(
    recordings: Iterable[Telemetry],
    robot: RobotDescription,
    configured: Setup | None,
    columns: TorqueColumns,
) -> list[TorqueInformation]:
    """What target_moment shows of each setup; for the arguments see `estimate_dynamics`."""
    data: dict[tuple[object, ...], TorqueInformation] = {}
    for recording in recordings:
        for part, controller_payload in _constant_payloads(recording):
            source = part.info.source
            stated = stated_for(part.info, controller_payload, robot, configured)
            payload = stated.setup.payload
            key = (source, payload.mass, *payload.center_of_mass)
            if key not in data:
                data[key] = TorqueInformation(source, stated)
            data[key].accumulate(part, columns)
    return list(data.values())


def _estimated_setup(
    data: TorqueInformation, unknowns: Array, std: Array
) -> EstimatedSetup:
    """One setup from its unknowns and their standard deviations [14], [14]."""
    gravity_std = float(std[GRAVITY].max())
    mass_std = float(std[MASS])
    found = setup_from(unknowns, mass_std)
    stated = data.stated.setup
    source = data.stated.source
    warnings = []
    angle = np.degrees(angle_between(stated.gravity, found.gravity))
    if angle > _TILT and gravity_std < KNOWN_GRAVITY_STD:
        reference = "the configured mounting" if source == "configured" else "upright"
        vector = ", ".join(f"{value:.2f}" for value in found.gravity)
        warnings.append(
            f"{data.source}: target_moment shows the base tilted by {angle:.1f} degrees from "
            f"{reference} (gravity {vector} m/s^2); the estimate is used"
        )
    change = abs(found.payload.mass - stated.payload.mass)
    if change > max(_LEAST_CHANGE, 4 * mass_std) and mass_std < _KNOWN_MASS_STD:
        warnings.append(
            f"{data.source}: target_moment shows a payload of {found.payload.mass:.2f} kg where "
            f"{stated.payload.mass:.2f} kg is {_SOURCE_WORDS[source]}; the estimate is used"
        )
    decided = gravity_std < KNOWN_GRAVITY_STD and mass_std < 0.25 * MASS_STD
    return EstimatedSetup(
        source=data.source,
        stated=data.stated,
        setup=found,
        setup_source="estimated" if decided else source,
        mass_std=mass_std,
        delay=data.nominal_delay + float(unknowns[DELAY]),
        reference=data.kind,
        samples=data.samples,
        warnings=tuple(warnings),
    )


def angle_between(first: Array, second: Array) -> float:
    """Angle between two vectors [3], rad."""
    cosine = first @ second / (np.linalg.norm(first) * np.linalg.norm(second))
    return float(np.arccos(np.clip(cosine, -1.0, 1.0)))


# Identification stage of mounting, payload, link tensors and reflected inertia.

EXACT_MOTION_ERROR = 3e-5
"""Relative error of inertias from noise-free targets: rounding, and the delay between
them. Inertias of 18 simulated arms are wrong by 2e-5 (RMS)."""
MEASURED_MOTION_ERROR = 0.003
"""Relative error of an inertia from filtered measured motion instead of recorded targets,
from recordings of a UR10e without targets."""


def estimate_setups(
    recordings: Sequence[SessionData],
    fitted: Sequence[SessionData],
    robot: RobotDescription,
    setup: Setup | None,
    identify_tensors: bool = False,
) -> tuple[RobotDescription, DynamicsEstimate | None]:
    """Setups of all recordings, and the arm with link tensors if these are identified.

    Inertias and tensors come from the fitted recordings alone.

    Args:
        recordings: all recordings.
        fitted: recordings that are fitted.
        robot: the arm as its robot file describes it.
        setup: the one stated by the user; None without.
        identify_tensors: whether to find the tensors of the links, too.

    Returns:
        The arm, and the estimate; None without target_moment in a fitted recording.
    """
    usable = [
        recording for recording in recordings if recording.torque_reference != "none"
    ]
    own = [recording for recording in fitted if recording in usable]
    if not own:
        if not identify_tensors:
            return robot, None
        raise MissingFieldError(
            fitted[0].path,
            "was not recorded, but link tensors can only be identified from it",
            "record it or use the robot file's tensors",
            field="target_moment",
        )
    parts = chain.from_iterable(recording.torque_telemetry() for recording in own)
    estimate = estimate_dynamics(
        parts, robot, configured=setup, identify_tensors=identify_tensors
    )
    if estimate.link_tensors is not None:
        robot = estimate.link_tensors.applied_to(robot)
    entries = list(estimate.recordings)
    for recording in usable:
        if recording not in fitted:
            held_out = estimate_dynamics(
                recording.torque_telemetry(), robot, configured=setup
            )
            entries.extend(held_out.recordings)
    return robot, replace(estimate, recordings=tuple(entries))


def inertia_from_torque(
    robot: RobotDescription,
    estimate: DynamicsEstimate | None,
    prior: InertiaEstimate | None = None,
) -> InertiaEstimate:
    """Reflected inertias from target_moment, priors for the others.

    Args:
        robot: the arm, n joints.
        estimate: estimate from target_moment; None without.
        prior: prior from other arms; None for the robot file's.
    """
    expected = expected_inertia(robot) if prior is None else prior
    if estimate is None:
        return expected
    seen = np.isfinite(estimate.std)
    exact = any(entry.reference == "target" for entry in estimate.recordings)
    left_out = EXACT_MOTION_ERROR if exact else MEASURED_MOTION_ERROR
    found = estimate.reflected_inertia
    std = np.hypot(estimate.std, left_out * found)
    source = np.where(estimate.identified, "target_moment", "prior")
    return InertiaEstimate(
        value=np.where(seen, found, expected.value),
        std=np.where(seen, std, expected.std),
        source=tuple(source.tolist()),
    )


# Setups as stated: mounting and payload from the user, the controller or the recording.


def stated_for(
    info: RecordingInfo,
    controller_payload: Payload | None,
    robot: RobotDescription,
    configured: Setup | None,
    fallback: Setup | None = None,
) -> SetupPrior:
    """Setup stated for a recording.

    In order of precedence: by the user, by the payload set in the controller, by the info
    of the recording, by other recordings of the arm; else upright and unloaded.

    Args:
        info: mounting and payload in the metadata of the recording, as far as they are
            there.
        controller_payload: payload as set in the controller; None where not
            recorded.
        robot: the arm.
        configured: setup that the user states; None without.
        fallback: setup of other recordings; None without.
    """
    if configured is not None:
        return SetupPrior(configured, "configured")
    gravity = np.array([0.0, 0.0, -robot.controller_gravity])
    if info.gravity is not None:
        gravity = np.array(info.gravity, dtype=float)
    elif fallback is not None:
        gravity = fallback.gravity
    if controller_payload is not None:
        return SetupPrior(Setup(gravity, controller_payload), "rtde")
    if info.payload_mass is not None:
        center = np.array(info.payload_center_of_mass or (0.0, 0.0, 0.0), dtype=float)
        return SetupPrior(
            Setup(gravity, Payload(info.payload_mass, center)), "configured"
        )
    payload = Payload() if fallback is None else fallback.payload
    return SetupPrior(
        Setup(gravity, payload), "default" if info.gravity is None else "configured"
    )


def payload_of_row(row: Array) -> Payload | None:
    """Payload from mass and centre of mass set in the controller [4]; None if NaN."""
    if not np.isfinite(row[0]):
        return None
    return Payload(float(row[0]), np.nan_to_num(row[1:4]))


def payload_runs(payload: Array) -> Iterator[tuple[slice, Array]]:
    """Stretches with one payload as set in the controller: rows, and that payload [k].

    Args:
        payload: mass and possibly centre of mass set in the controller [samples, k], kg
            and m; NaN where not recorded.
    """
    rounded = np.round(payload, 4)
    for rows in equal_runs(np.nan_to_num(rounded)):
        yield rows, rounded[rows.start]


def _constant_payloads(part: Telemetry) -> Iterator[tuple[Telemetry, Payload | None]]:
    """Stretches with one payload set in the controller, and that payload; None if unknown."""
    if "payload" not in part:
        yield part, None
        return
    count = len(part)
    center = part["payload_cog"] if "payload_cog" in part else np.zeros((count, 3))
    inertia = np.zeros((count, 6))
    if "payload_inertia" in part:
        inertia = part["payload_inertia"]
    mass_and_center = np.column_stack([part["payload"], center])
    for rows, _ in payload_runs(mass_and_center):
        payload = payload_of_row(mass_and_center[rows.start])
        if payload is not None:
            xx, yy, zz, xy, xz, yz = np.nan_to_num(inertia[rows.start])
            tensor = tensor_of(np.array([xx, xy, yy, xz, yz, zz]))
            payload = replace(payload, inertia=tensor)
        yield part.cut(rows), payload


# Arm dynamics of one recording, with the setup that belongs to each payload.

_SAME_PAYLOAD = 2e-3  # payloads that differ by less are the same [kg and m]


@dataclass(frozen=True)
class RecordingDynamics:
    """Arm dynamics of one recording, with the setup that belongs to each payload.

    Attributes:
        robot: the arm.
        info: metadata of the recording.
        estimate: setups estimated from target_moment, None without.
        configured: mounting and payload as stated by the user.
        fallback: setup of other recordings of the same arm, for values this one lacks.
        carried: payload actually on the flange, if another one is set in the controller:
            target_moment contains the set payload, the currents the carried one.
    """

    robot: RobotDescription
    info: RecordingInfo
    estimate: DynamicsEstimate | None
    configured: Setup | None
    fallback: Setup | None = None
    carried: Payload | None = None

    @property
    def _entries(self) -> tuple[EstimatedSetup, ...]:
        """Setups estimated for this recording."""
        entries = () if self.estimate is None else self.estimate.recordings
        return tuple(entry for entry in entries if entry.source == self.info.source)

    def alone(self) -> RecordingDynamics:
        """These dynamics without the setups of other recordings."""
        if self.estimate is None:
            return self
        return replace(self, estimate=replace(self.estimate, recordings=self._entries))

    def parts(
        self, motion: FilteredMotion
    ) -> Iterator[tuple[FilteredMotion, ArmDynamics]]:
        """Parts of a motion with one payload each, and the dynamics that belong to it."""
        for rows, controller_payload in payload_runs(motion.payload):
            yield (
                motion.cut(rows),
                ArmDynamics(self.robot, self.actual_setup(controller_payload)),
            )

    def link_torques(
        self, recording: SessionData
    ) -> Iterator[tuple[FilteredMotion, Array]]:
        """Motions with one payload each, and torque of the links [samples, n], N m, joint side.

        Where parts of a recording are kept, a first pass stores the torques for the next
        ones with the same payload.

        Args:
            recording: recording with its filtered motions.
        """
        key: tuple[float, ...] = ()
        if self.carried is not None:
            own = self.carried
            key = (own.mass, *own.center_of_mass, *own.inertia.ravel())
        stored = recording.link_torques.get(key)
        if stored is not None:
            torques = iter(stored)
            for motion in recording.motions:
                for rows, _ in payload_runs(motion.payload):
                    yield motion.cut(rows), next(torques)
            return
        is_kept = recording.kept is not None
        computed = Buffer[Array](recording.motions.most)
        for motion in recording.motions:
            for part, arm in self.parts(motion):
                torque = arm.inverse_dynamics(part.q, part.qd, part.qdd)
                if is_kept:
                    computed.append(torque)
                yield part, torque
        if is_kept:
            for buffer in recording.link_torques.values():
                buffer.close()
            recording.link_torques.clear()
            recording.link_torques[key] = computed

    def actual_setup(self, controller_payload: Array) -> Setup:
        """Mounting and carried payload.

        Args:
            controller_payload: mass and centre set in the controller [4], kg and m, or
                NaN; it is carried where no other payload is known to be.
        """
        setup, _ = self.setup_and_delay(controller_payload)
        if self.carried is None:
            return setup
        return replace(setup, payload=self.carried)

    def controller_load(self, motion: FilteredMotion, load: Array) -> Array:
        """Load with the payload set in the controller [samples, n], N m, joint side.

        Args:
            motion: motion with one payload.
            load: load with the payload that the arm carries [samples, n], N m.
        """
        if self.carried is None:
            return load
        state = (motion.q, motion.qd, motion.qdd)
        stated_setup, _ = self.setup_and_delay(motion.payload[0])
        actual_setup = self.actual_setup(motion.payload[0])
        stated = ArmDynamics(self.robot, stated_setup).inverse_dynamics(*state)
        actual = ArmDynamics(self.robot, actual_setup).inverse_dynamics(*state)
        return np.asarray(load + (stated - actual))

    def setup_and_delay(self, controller_payload: Array) -> tuple[Setup, float]:
        """Setup for a payload set in the controller, and delay of target_moment [s].

        The payload of the recording that is nearest to it decides, and the longest stretch
        among equally near payloads.

        Args:
            controller_payload: mass and centre set in the controller [4], kg and m, or
                NaN.
        """
        entries = self._entries
        if not entries:
            return self.stated(controller_payload).setup, 0.0
        known = []
        for entry in entries:
            payload = entry.stated.setup.payload
            known.append([payload.mass, *payload.center_of_mass])
        set_payload = np.nan_to_num(controller_payload)
        distance = np.abs(np.array(known) - set_payload).max(axis=1)
        fewer_samples = [-entry.samples for entry in entries]
        first = int(np.lexsort([fewer_samples, distance])[0])
        nearest = entries[first]
        if np.isfinite(controller_payload[0]) and distance[first] > _SAME_PAYLOAD:
            return self.stated(set_payload).setup, nearest.delay
        return nearest.setup, nearest.delay

    def stated(self, controller_payload: Array) -> SetupPrior:
        """Stated setup for a payload set in the controller [4], kg and m, or NaN."""
        payload = payload_of_row(controller_payload)
        return stated_for(self.info, payload, self.robot, self.configured, self.fallback)
