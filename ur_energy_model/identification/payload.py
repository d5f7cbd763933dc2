"""The payload of an arm from its motor currents."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from scipy.linalg import block_diag

from ur_energy_model.energy.meter import CONFIDENCE
from ur_energy_model.energy.telemetry_checks import serials
from ur_energy_model.errors import IdentificationError, InputError
from ur_energy_model.identification.dynamics import RecordingDynamics, estimate_dynamics
from ur_energy_model.identification.evaluation import ANOTHER_ARM
from ur_energy_model.identification.filtered_motion import (
    NO_MOTION,
    SHORTEST_MOTION,
    FilteredMotion,
    ParallelFilter,
)
from ur_energy_model.identification.least_squares import BlockedGram
from ur_energy_model.identification.payload_columns import (
    LoadedMotion,
    PayloadColumns,
    loaded_motions,
    solve_payload,
)
from ur_energy_model.identification.physical_consistency import possible_inertia
from ur_energy_model.identification.recording import SessionData, read_recording
from ur_energy_model.identification.torque_constants import (
    ARM_SPREAD,
    JOINT_SPREAD,
    deviation_without_links,
)
from ur_energy_model.model.energy_model import CalibrationLayout, EnergyModel, PayloadCalibration
from ur_energy_model.model.friction import LOAD
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.setup import (
    COUNT,
    FIRST_MOMENT,
    MASS,
    TENSOR,
    Payload,
    point_tensor,
    tensor_of,
)
from ur_energy_model.telemetry.samples import same_serial
from ur_energy_model.typing import Array, Progress


@dataclass(frozen=True)
class PayloadEstimate:
    """The identified payload."""

    payload: Payload  # mass, centre (flange frame), physically possible inertia (uncertain)
    # Estimate without constraint [kg]; negative where the torque is lower than that of the links
    shown_mass: float
    mass_std: float  # [kg]; with correlated residuals and errors of links and torque constants
    center_std: Array  # [3], m; NaN where the mass is too small for a centre of mass
    # Residual per joint of the model with this payload and calibrated torque constants [n], N m,
    # joint side; NaN for joints that did not move
    torque_rms: Array
    # Over the residual of the model's own recordings, median of joints; NaN where it has none
    misfit: float
    # From links and payload together [n], N m/A
    torque_constants: Array
    torque_constants_std: Array
    calibration: PayloadCalibration  # posterior of links and drives after this recording
    samples: int  # number of torque samples, each joint counted
    # Mean and covariance of inertial parameters and calibration together [10 + 6 n], and the
    # prior of the calibration that they include
    joint: tuple[Array, Array]
    prior: PayloadCalibration
    gravity: Array  # in the base frame [3], m/s^2, as used
    gravity_source: str = "model"  # or "estimated", from the bag's target_moment
    controller_mass: float = float("nan")  # set there, from target_moment [kg]; NaN if unknown
    warnings: tuple[str, ...] = ()  # for the user, one line each

    @property
    def interval(self) -> tuple[float, float]:
        """95 % interval of `shown_mass` [kg]."""
        half = CONFIDENCE * self.mass_std
        return self.shown_mass - half, self.shown_mass + half


def identify_payload(
    model: EnergyModel,
    bag: str | Path,
    *,
    robot: RobotDescription | None = None,
    known_mass: float | None = None,
    empty: str | Path | None = None,
    progress: Progress | None = None,
) -> PayloadEstimate:
    """Payload from the motor currents of a bag, in the mounting that its target_moment shows.

    `model` is that of the arm, `robot` its description, by default the one named in the model. A
    known mass [kg] calibrates the drives. `empty`: bag of the same arm that defines the empty
    flange; the payload is what is added to it, so that errors of links and friction, the same in
    both runs, cancel (Machines 2024, sec. 5).

    Raises:
        UrEnergyError: a bag or the known mass cannot be used.
    """
    if known_mass is not None and not 0 < known_mass < 1000:
        raise InputError("--known-payload", f"{known_mass:g} kg", "give a mass above zero")
    described = model.description(robot)
    calibration: PayloadCalibration | None = None
    warnings: tuple[str, ...] = ()
    # Mass 0 makes a recording that of the empty flange.
    for path, mass in [*([] if empty is None else [(empty, 0.0)]), (bag, known_mass)]:
        with closing(read_recording(path, described, progress=progress)) as recording:
            recording.quality.require_usable()
            if len(recording.quality.payloads) > 1:
                masses = ", ".join(f"{mass:g}" for mass in recording.quality.payloads)
                raise IdentificationError(
                    f"{path}: the payload changes within the bag ({masses} kg by RTDE); split it "
                    "into bags with one payload each"
                )
            gravity, source, in_controller = model.setup.gravity, "model", float("nan")
            if recording.torque_reference != "none":
                setup = estimate_dynamics(recording.torque_telemetry(), described).recordings[0]
                if setup.mass_std < 0.1:
                    in_controller = setup.setup.payload.mass
                if setup.setup_source == "estimated":
                    gravity, source = setup.setup.gravity, "estimated"
            narrow, motions = ParallelFilter(recording.cutoff), recording.motions
            found = estimate_payload(
                model, described, gravity, motions, narrow, known_mass=mass, calibration=calibration
            )
            least, known = REPEATABLE * float(described.mass.sum()), serials(model, recording.info)
            compared = in_controller if mass is None else float("nan")
            warnings += tuple(_warnings(path, found, known, compared, least))
            calibration = found.calibration
    return replace(found, gravity_source=source, controller_mass=in_controller, warnings=warnings)


def with_torque_constants(model: EnergyModel, estimate: PayloadEstimate) -> EnergyModel:
    """The model with calibrated torque constants.

    Friction was identified in amperes and scales with them. The calibration of links and drives is
    kept for later payload identifications.
    """
    joints = []
    values, deviations = estimate.torque_constants.tolist(), estimate.torque_constants_std.tolist()
    for joint, value, std in zip(model.joints, values, deviations, strict=True):
        scale = value / joint.torque_constant
        parameters = {name: scale * old for name, old in joint.friction.parameters.items()}
        covariance = joint.current_covariance.copy()
        if covariance.size and covariance[0, 0] > 0:
            factor = std / value**2 / np.sqrt(covariance[0, 0])
            covariance[0] *= factor
            covariance[:, 0] *= factor
        joints.append(
            replace(
                joint,
                torque_constant=value,
                friction=replace(joint.friction, parameters=parameters),
                current_covariance=covariance,
                std={**joint.std, "torque_constant": std},
                source={**joint.source, "torque_constant": "known_payload"},
            )
        )
    calibration = estimate.calibration.with_calibrated_drives()
    return replace(model, joints=tuple(joints), payload_calibration=calibration)


def _warnings(
    bag: str | Path,
    estimate: PayloadEstimate,
    known: dict[str, str | None],
    in_controller: float,
    least: float,
) -> Iterator[str]:
    """Where the model is not of the arm or no longer fits it, or the payload is not the set one.

    `known` are the serial numbers of model and recording, `in_controller` the mass set there, NaN
    where it is not compared, and `least` the smallest difference that counts [kg].
    """
    same = same_serial(known["model"], known["recording"])
    (low, high), shown = estimate.interval, estimate.shown_mass
    interval = f"({low:.2f} to {high:.2f} kg with 95 % confidence)"
    found, set_mass = max(shown, 0.0), max(in_controller, 0.0)
    if same is False:
        yield (
            f"{bag}: the model is of arm {known['model']}, the recording of arm "
            f"{known['recording']}, so do not trust the mass; use a model of this very arm"
        )
    elif estimate.misfit > ANOTHER_ARM:
        remedy = "identify it again, from more motion" if same else "use a model of this very arm"
        yield (
            f"{bag}: the model's error is {estimate.misfit:.0f} times that in the recordings it "
            f"was identified from, so do not trust the mass; {remedy}"
        )
    elif np.isnan(in_controller):
        return
    elif high < -least:
        yield (
            f"{bag}: the currents are lower than those of the bare arm, as with {shown:.2f} kg "
            f"{interval}: mounting, robot file or model do not fit this arm; identify it again"
        )
    elif not low <= set_mass <= high and abs(found - set_mass) > least:
        yield (
            f"{bag}: the currents show {found:.2f} kg {interval}, but the controller computes with "
            f"{set_mass:.2f} kg; check the payload and set the right one in the controller "
            "(set_payload)"
        )


# The fit, and the priors of links and drives.
#
# Torque constants are identified with the links' published masses (torque_constants.py), so the
# weights of the links and of a payload are uncertain in different ways:
#
# - A drive's gain against its own links was identified in this very arm. Its error is what friction
#   and links do not repeat. Joints that lift far more than their friction determine it well, wrists
#   hardly lift their links.
# - The gain against a payload has, in addition, what links weigh beyond the published ones, common
#   to all joints (cables, covers and screws belong to no published link), and for each joint.

LINK_MASS_ERROR = 0.005
"""Relative error of a link's mass beyond what its joint's gain covers, assumed."""
LINK_CENTER_ERROR = 0.001
"""Error of a link's centre of mass [m], assumed."""
LINK_EXCESS, LINK_EXCESS_ERROR = 0.02, 0.02
"""Weight of links beyond the published one, relative and common to all joints, and its error:
cables, covers and screws add weight only. Torque constants from links and from known payloads
differed by 1 to 3 % on three arms."""
OWN_ERROR = 0.02
"""Relative error of the links' weight at each joint, beyond the common one: how much the joints of
one arm differed."""
REPEATABLE = 0.003
"""Relative change of a drive's gain between recordings, assumed. As a share of the links' mass it
is the smallest reported difference from the payload set in the controller."""
_FRICTION_SHARE = 0.015
"""Share of friction that the regression of a model assigns to the links' weight: RMS of seven
models from a minute of motion over the shoulder lift, elbow and wrist 1 of a UR10e."""
_WITH_LOAD_FRICTION = 0.3
"""Error of a torque constant over its stated deviation, that of the links' weight left out, where
the friction law has load friction: RMS of 70 lifts and elbows of a UR10e from 7 to 30 s of motion
0.26. A law without has this friction in its torque constant: 0.93 of 12 from 7 and 15 s."""
_EMPTY_FLANGE = np.array([0.3, 0.03, 0.03, 0.03])
"""Deviation of what may be mounted on an "empty" flange: mass [kg] and first moments [kg m]."""
_LEAST = 1e-9
_STATIC = slice(MASS, FIRST_MOMENT.stop)
_UNKNOWN_SHARE = 0.1
"""Deviation of the mass, relative to that of all links, from which it is not determined: 95 % are
then about half of the payload that an arm is made for."""
_ROUNDS = 6
_CONVERGED = 1e-3
"""Change of mass [kg] and first moments [kg m] between rounds at which the fit has converged."""
_ONE_SIDED_FRICTION = 0.01
"""Relative error of a torque constant that currents cannot distinguish from load friction that
depends on the direction of power flow, assumed."""
_LEAST_MASS = 0.01
_SIGNIFICANT = 3.0  # least mass for which a centre of mass is given, in standard deviations


def estimate_payload(
    model: EnergyModel,
    robot: RobotDescription,
    gravity: Array,
    motions: Iterable[FilteredMotion],
    narrow: ParallelFilter,
    *,
    known_mass: float | None = None,
    calibration: PayloadCalibration | None = None,
    free_drives: bool = False,
) -> PayloadEstimate:
    """Payload from the filtered motion of one recording.

    Friction depends on the load and thus on the payload, so the fit is repeated with the payload
    found until it converges.

    Args:
        model: of the arm, identified from recordings with known or no payload.
        robot: the arm, n joints.
        gravity: in the base frame [3], m/s^2, of this recording.
        motions: of the recording; iterated several times.
        narrow: the recording's filter, for model and measurement alike.
        known_mass: calibrates the drives [kg]; 0 where the flange counts as empty.
        calibration: from earlier recordings; None for the model's.
        free_drives: friction is as uncertain as that of an arm not yet identified; for calibrations
            with free torque constants.

    Raises:
        IdentificationError: too little motion.
    """
    columns = PayloadColumns(model, robot, gravity)
    one, bare, payload = columns.one, columns.bare, np.zeros(COUNT)
    payload[MASS] = known_mass or 0.0
    calibration = model.payload_calibration if calibration is None else calibration
    kept = list[LoadedMotion]()
    for _ in range(_ROUNDS):
        grams, temperature, count = BlockedGram(), np.zeros(columns.dof), 0
        moving, elapsed = np.zeros(columns.dof), 0.0
        for loaded in loaded_motions(columns, motions, narrow, kept):
            temperature += loaded.motion.temperature.sum(axis=0)
            count += len(loaded.motion)
            elapsed = float(loaded.motion.time[-1]) - loaded.start
            for gram, duration in loaded.gram_matrices(payload):
                grams.accumulate(gram, duration)
                moving += loaded.period * gram[:, one, one]
        joints = [int(j) for j in np.flatnonzero(moving >= SHORTEST_MOTION)]
        if not joints:
            raise IdentificationError(NO_MOTION)
        change = columns.friction_change(temperature / count)
        error_std = columns.error_std(np.ones(columns.dof) if free_drives else change, elapsed)
        total = grams.blocks.sum(axis=0)
        weight = np.sqrt(total[:, bare, bare] / np.maximum(total[:, one, one], 1.0))
        if calibration is None:
            gain = np.diag(REPEATABLE**2 + _gain_error(model) ** 2)
            prior = _prior(columns, np.ones(columns.dof), gain, empty=known_mass == 0.0)
        else:  # the gains of a calibrated arm change slightly, free ones as friction lets them
            covariance = calibration.covariance.copy()
            gains = CalibrationLayout(columns.dof).link_gain
            friction = _FRICTION_SHARE * columns.typical_friction / np.maximum(weight, _LEAST)
            own = np.hypot(REPEATABLE, np.minimum(friction, 1.0) if free_drives else 0.0)
            covariance[gains, gains] += np.diag((own * calibration.link_gain) ** 2)
            prior = replace(calibration, covariance=covariance)
        values, covariance, rms = solve_payload(
            columns, grams.blocks, joints, prior, error_std, known_mass
        )
        moved = float(np.abs(values[:COUNT] - payload)[_STATIC].max())
        payload = values[:COUNT]
        if moved < _CONVERGED:
            break
    posterior = PayloadCalibration.from_vector(values[COUNT:], covariance[COUNT:, COUNT:])
    mass, mass_std = float(payload[MASS]), float(np.sqrt(covariance[MASS, MASS]))
    if not mass_std < _UNKNOWN_SHARE * columns.masses.sum():
        raise IdentificationError(
            f"payload not determined (± {CONFIDENCE * mass_std:.1f} kg), because it hardly loads "
            "the joints that move; record a motion of all joints (ur_energy excite)"
        )
    found = _possible(payload, mass_std)
    center_std = np.full(3, np.nan)
    if found.mass > 0.0 and found.center_of_mass.any():
        slopes = np.concatenate([-found.center_of_mass[:, None], np.eye(3)], axis=1) / mass
        center_std = np.sqrt(np.diag(slopes @ covariance[_STATIC, _STATIC] @ slopes.T))
    usual = np.array([j.gear_ratio * j.torque_constant * j.current_residual for j in model.joints])
    judged = (usual > 0) & np.isfinite(rms)
    constant = columns.torque_constant / posterior.torque_gain
    relative = posterior.torque_gain_std / posterior.torque_gain
    return PayloadEstimate(
        payload=found,
        shown_mass=mass,
        mass_std=mass_std,
        center_std=center_std,
        torque_rms=rms,
        misfit=float(np.median(rms[judged] / usual[judged])) if judged.any() else float("nan"),
        torque_constants=constant,
        torque_constants_std=constant * np.hypot(relative, _ONE_SIDED_FRICTION),
        calibration=posterior,
        samples=int(total[joints, one, one].sum()),
        gravity=gravity,
        joint=(values, covariance),
        prior=prior,
    )


def _possible(payload: Array, mass_std: float) -> Payload:
    """Physically possible payload of inertial parameters [10]; its centre where it is known."""
    mass = float(payload[MASS])
    if mass <= max(_LEAST_MASS, _SIGNIFICANT * mass_std):
        return Payload(max(mass, 0.0))
    center = payload[FIRST_MOMENT] / mass
    inertia = possible_inertia(tensor_of(payload[TENSOR]) - point_tensor(mass, center))
    return Payload(mass, center, inertia)


def _prior(
    columns: PayloadColumns, gain: Array, covariance: Array, *, empty: bool = False
) -> PayloadCalibration:
    """Published links; link gains [n], their covariance [n, n]; correlated payload gains."""
    center = LINK_CENTER_ERROR * columns.masses
    links = np.column_stack([LINK_MASS_ERROR * columns.masses, center, center, center])
    if empty:
        links[-1] = _EMPTY_FLANGE
    own = np.diag(np.maximum(links.ravel(), _LEAST) ** 2)
    payload = LINK_EXCESS_ERROR**2 + OWN_ERROR**2 * np.eye(len(gain))
    whole = block_diag(own, covariance, payload)
    lighter = np.full(len(gain), 1.0 / (1.0 + LINK_EXCESS))
    return PayloadCalibration(np.zeros_like(links), gain, lighter, whole)


def _gain_error(model: EnergyModel) -> Array:
    """Relative error of the gains against the arm's own links [n]."""
    share = [
        _WITH_LOAD_FRICTION if LOAD in joint.friction.parameters else 1.0 for joint in model.joints
    ]
    return np.array([deviation_without_links(joint) for joint in model.joints]) * share


# Check of the payload set in the controller while the arm was identified.
#
# target_moment contains the payload set in the controller, the currents the actual one. A wrong
# setting biases torque constants and friction: with 1 kg on the wrists of a UR5e and none set,
# their torque constants come out a third too small. The payload is therefore identified once more
# from the currents, with torque constants as uncertain as those of the arm's type and unknown
# friction. Motors of one size are alike in an arm, so joints that the payload hardly loads
# determine the torque constants of those that it loads.

_LONGEST = 60.0  # motion of a recording that the check uses [s]; more adds hardly any information
_LEAST_SHARE = 0.015
"""Smallest difference that is reported, relative to the mass of all links: with free torque
constants, errors of the published links appear as a payload of this size (seen on a UR10e)."""


_SET_ERROR, _SET_SHARE = 0.05, 0.02
"""Deviation of a payload from the right one set in the controller [kg], and relative, assumed."""


@dataclass(frozen=True)
class PayloadCheck:
    """Payload that a model was identified with, and the one identified from the currents."""

    source: str  # the recording
    controller_mass: float  # set in the controller or given by the user [kg]
    # Identified, without constraint [kg]
    mass: float
    std: float
    least: float  # smallest difference that counts [kg]
    payload: Payload  # identified, physically possible
    estimate: PayloadEstimate  # from this recording alone
    common: PayloadCalibration  # its prior, without what the recording alone has of it

    @property
    def score(self) -> float:
        """Difference from the mass that was set, over what makes it a contradiction."""
        return abs(self.mass - self.controller_mass) / max(CONFIDENCE * self.std, self.least)

    @property
    def contradicts(self) -> bool:
        """Whether the currents contradict the payload that was set."""
        return self.score > 1.0

    @property
    def warning(self) -> str:
        """The contradiction in one line for the user."""
        half = CONFIDENCE * self.std
        return (
            f"{self.source}: the currents show a payload of {max(self.mass, 0.0):.2f} kg "
            f"({self.mass - half:.2f} to {self.mass + half:.2f} kg with 95 % confidence) where the "
            f"model was identified with {self.controller_mass:.2f} kg; torque constants and "
            "friction are then biased: give the right mass with --payload, or none"
        )


def check_payload(
    model: EnergyModel, robot: RobotDescription, recording: SessionData, own: RecordingDynamics
) -> tuple[PayloadCheck, ...]:
    """Identified payload of a recording and the one that its torques were computed with.

    Nothing for recordings with a changing payload or too little motion, and for arms without
    torque constants in the robot file. `model` was identified from the recording, perhaps with
    others; `own` are its setups as used for the currents.
    """
    motions, lasted = list[FilteredMotion](), 0.0
    for motion in recording.motions:
        motions.append(motion)
        lasted += float(motion.time[-1] - motion.time[0])
        if lasted > _LONGEST:
            break
    usual = robot.torque_constant
    if not np.isfinite(usual).all() or not motions or len(recording.payloads) > 1:
        return ()
    columns = PayloadColumns(model, robot, model.setup.gravity)
    gain = columns.torque_constant / usual
    each = JOINT_SPREAD**2 + OWN_ERROR**2
    alike = ARM_SPREAD**2 * (usual[:, None] == usual) + each * np.eye(len(usual))
    prior = _prior(columns, gain, np.outer(gain, gain) * alike)
    setup, _ = own.setup_and_delay(motions[0].payload[0])
    narrow = ParallelFilter(recording.cutoff)
    try:
        found = estimate_payload(
            model, robot, setup.gravity, motions, narrow, calibration=prior, free_drives=True
        )
    except IdentificationError:
        return ()
    carried, source = own.carried or setup.payload, str(recording.path)
    least, std = _LEAST_SHARE * float(columns.masses.sum()), found.mass_std
    values = carried.mass, found.shown_mass, std, least, found.payload
    return (PayloadCheck(source, *values, found, prior),)


def check_together(
    checks: Sequence[PayloadCheck], identified: Collection[str] = ()
) -> list[PayloadCheck]:
    """The checks of recordings of one arm, whose links and drives are the same in all of them.

    Each payload is free, given those of the other recordings: as set where nothing contradicts
    that, else free as well, like those that alone contradict it and of `identified` sources. Of
    recordings that contradict each other, the one is doubted whose payload all currents together
    show to be another one. Products of normal distributions in information form; of each
    recording's gains, what friction alone changes is its own.
    """
    if len(checks) < 2:
        return list(checks)
    evidence = [_Evidence(each) for each in checks]
    free = [_given_others(evidence, k, ()).score for k in range(len(checks))]
    believed = {
        k
        for k, check in enumerate(checks)
        if check.source not in identified and not check.contradicts
    }
    while True:
        found = [_given_others(evidence, k, believed) for k in range(len(checks))]
        doubted = [k for k in believed if found[k].contradicts]
        if not doubted:
            return found
        believed.remove(max(doubted, key=lambda k: (free[k], found[k].score)))


class _Evidence:
    """What one recording shows of its payload and of the arm, without priors of the arm.

    In units of the arm's prior and of the payload's deviation, so that the matrices are well
    conditioned.
    """

    def __init__(self, check: PayloadCheck) -> None:
        self.check, common, prior = check, check.common, check.estimate.prior
        values, covariance = check.estimate.joint
        arm = np.sqrt(np.diag(common.covariance))
        self.unit = np.concatenate([np.sqrt(np.diag(covariance)[:COUNT]), arm])
        self.middle = common.vector  # of the arm; deviations from it are normal about zero
        self.prior = common.covariance / np.outer(arm, arm)
        self.own = (prior.covariance - common.covariance) / np.outer(arm, arm)
        self.information = np.linalg.inv(covariance / np.outer(self.unit, self.unit))
        mean = (values - np.concatenate([np.zeros(COUNT), self.middle])) / self.unit
        self.weighted = self.information @ mean
        self.information[COUNT:, COUNT:] -= np.linalg.inv(self.prior + self.own)

    def of_arm(self, *, believed: bool) -> tuple[Array, Array]:
        """Information about the arm, and the product with its mean; `believed`: payload as set."""
        information, weighted = self.information.copy(), self.weighted.copy()
        if believed:
            mass = self.check.controller_mass
            precision = (self.unit[MASS] / np.hypot(_SET_ERROR, _SET_SHARE * mass)) ** 2
            information[MASS, MASS] += precision
            weighted[MASS] += precision * mass / self.unit[MASS]
        load, arm = slice(0, COUNT), slice(COUNT, None)
        gain = np.linalg.solve(information[load, load], information[load, arm]).T
        shown = information[arm, arm] - gain @ information[load, arm]
        product = weighted[arm] - gain @ weighted[load]
        kept = np.linalg.inv(np.eye(len(shown)) + shown @ self.own)
        return kept @ shown, kept @ product


def _given_others(
    evidence: Sequence[_Evidence], index: int, believed: Collection[int]
) -> PayloadCheck:
    """The check of one recording with what the others show of the arm."""
    one, arm = evidence[index], slice(COUNT, None)
    information, product = np.linalg.inv(one.prior), np.zeros(len(one.prior))
    for k, other in enumerate(evidence):
        if k != index:
            shown = other.of_arm(believed=k in believed)
            information, product = information + shown[0], product + shown[1]
    covariance = np.linalg.inv(information)
    precision = np.linalg.inv(covariance + one.own)
    whole, weighted = one.information.copy(), one.weighted.copy()
    whole[arm, arm] += precision
    weighted[arm] += precision @ covariance @ product
    covariance = np.linalg.inv(whole)
    payload, std = one.unit[:COUNT] * (covariance @ weighted)[:COUNT], np.sqrt(covariance[0, 0])
    mass, std, alone = float(payload[MASS]), float(std * one.unit[MASS]), one.check
    # Where the others and the recording itself disagree by more than they state, both err by as
    # much more (the ratio of Birge). A third of the own deviation: rounding is no disagreement.
    differs = np.sqrt(max(alone.std**2 - std**2, (alone.std / 3.0) ** 2))
    std *= max(1.0, abs(mass - alone.mass) / float(differs))
    return replace(alone, mass=mass, std=std, payload=_possible(payload, std))
