# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The payload that was set, compared with what the motor currents show.

target_moment contains the payload set in the controller, the currents the actual one.
While an arm is identified, a wrong setting biases torque constants and friction: with 1
kg on the wrists of a UR5e and none set, their torque constants come out a third too
small. The payload is therefore identified once more from the currents, with torque
constants as uncertain as for any arm of the type and unknown friction. Motors of one size
are alike in an arm, so joints that the payload hardly loads determine the torque
constants of the loaded joints.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ur_energy_model.consistency.contradiction import Contradiction
from ur_energy_model.energy.matched_model import serials
from ur_energy_model.energy.meter import CONFIDENCE
from ur_energy_model.errors import IdentificationError, UrEnergyError
from ur_energy_model.identification.dynamics import RecordingDynamics, estimate_setups
from ur_energy_model.identification.evaluation import ANOTHER_ARM
from ur_energy_model.identification.filtered_motion import FilteredMotion, ParallelFilter
from ur_energy_model.identification.payload import ShownPayload, contradiction_of_payload
from ur_energy_model.identification.payload_columns import PayloadColumns
from ur_energy_model.identification.payload_fit import (
    OWN_ERROR,
    PayloadEstimate,
    calibration_prior,
    estimate_payload,
    possible_payload,
)
from ur_energy_model.identification.recording import (
    Recording,
    SessionData,
    read_recording,
)
from ur_energy_model.identification.torque_constants import ARM_SPREAD, JOINT_SPREAD
from ur_energy_model.model.energy_model import EnergyModel, PayloadCalibration
from ur_energy_model.model.generic import generic_model, generic_models, is_generic
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.setup import COUNT, MASS, Payload
from ur_energy_model.telemetry.samples import same_serial
from ur_energy_model.typing import Array

_LONGEST = 60.0
"""Motion of a recording that the check uses [s]; more adds hardly any information."""
_LEAST_SHARE = 0.015
"""Smallest difference that is reported, relative to the mass of all links: with free
torque constants, errors of the published links appear as a payload of this size (seen on
a UR10e)."""


_SET_ERROR = 0.05
"""Deviation of a payload from the one that was set right in the controller [kg],
assumed."""
_SET_SHARE = 0.02  # further deviation, relative to the payload, assumed
FIT_SURE = 2.6
"""Standard deviations between the payload that was set and the one that the currents
show, from which a model is identified with the payload of the currents: of a hundred right
settings, one would be replaced. Six seconds of a UR5e with 0.1 kg are 2.3 of them away."""


@dataclass(frozen=True)
class PayloadCheck:
    """Payload that a model was identified with, and the one identified from the currents.

    Attributes:
        source: the recording.
        controller_mass: mass set in the controller or given by the user [kg].
        mass: identified mass, without constraint [kg].
        std: standard deviation of the identified mass [kg].
        least: smallest difference that counts [kg].
        payload: payload as identified, physically possible.
        estimate: payload from this recording alone.
        common: prior of links and drives that all recordings share, without what changes
            from one recording to another.
    """

    source: str
    controller_mass: float
    mass: float
    std: float
    least: float
    payload: Payload
    estimate: PayloadEstimate
    common: PayloadCalibration

    @property
    def score(self) -> float:
        """Difference from the mass that was set, over what makes it a contradiction."""
        difference = abs(self.mass - self.controller_mass)
        return difference / max(FIT_SURE * self.std, self.least)

    @property
    def contradicts(self) -> bool:
        """Whether the currents contradict the payload that was set."""
        return self.score > 1.0

    def contradiction(self, *, replaced: bool) -> Contradiction:
        """The contradiction; `contradicts` is whether there is one.

        Args:
            replaced: whether the model is identified with the payload that the currents
                show.
        """
        mass = max(self.mass, 0.0)
        half = CONFIDENCE * self.std
        remedy = "torque constants and friction are biased by it: give the right one"
        if replaced:
            remedy = (
                "the model is identified with this payload instead: set the right one"
            )
        return Contradiction(
            subject="payload",
            stated=f"{self.source}: the payload that was set is {self.controller_mass:.2f} kg",
            shown=f"the motor currents show {mass:.2f} kg",
            evidence=f"{self.mass - half:.2f} to {self.mass + half:.2f} kg with 95 % confidence",
            remedy=f"{remedy} in the controller and record again, or with --payload",
        )


def check_payload(
    model: EnergyModel,
    robot: RobotDescription,
    recording: SessionData,
    own: RecordingDynamics,
) -> tuple[PayloadCheck, ...]:
    """Identified payload of a recording and the one that its torques were computed with.

    There is none for recordings with a changing payload or too little motion, and for arms
    without torque constants in the robot file.

    Args:
        model: model that was identified from the recording, perhaps with others; its
            friction counts where the arm's type has no generic model.
        robot: the arm.
        recording: recording with its currents.
        own: setups of the recording as used for the currents.
    """
    motions = _first_motions(recording)
    if robot.source in generic_models():
        # Friction that was identified with a wrong payload would explain that payload.
        model = replace(generic_model(robot), setup=model.setup)
    usual = robot.torque_constant
    if not np.isfinite(usual).all() or not motions or len(recording.payloads) > 1:
        return ()
    columns = PayloadColumns(model, robot, model.setup.gravity)
    gain = columns.torque_constant / usual
    each = JOINT_SPREAD**2 + OWN_ERROR**2
    alike = ARM_SPREAD**2 * (usual[:, None] == usual) + each * np.eye(len(usual))
    prior = calibration_prior(columns, gain, np.outer(gain, gain) * alike)
    setup, _ = own.setup_and_delay(motions[0].payload[0])
    narrow = ParallelFilter(recording.cutoff)
    try:
        found = estimate_payload(
            model,
            robot,
            setup.gravity,
            motions,
            narrow,
            calibration=prior,
            free_drives=True,
        )
    except IdentificationError:
        return ()
    carried = own.carried or setup.payload
    check = PayloadCheck(
        source=str(recording.path),
        controller_mass=carried.mass,
        mass=found.shown_mass,
        std=found.mass_std,
        least=_LEAST_SHARE * float(columns.masses.sum()),
        payload=found.payload,
        estimate=found,
        common=prior,
    )
    return (check,)


def _first_motions(recording: SessionData) -> list[FilteredMotion]:
    """Motions of the first minute of a recording, which the check uses."""
    motions = []
    lasted = 0.0
    for motion in recording.motions:
        motions.append(motion)
        lasted += float(motion.time[-1] - motion.time[0])
        if lasted > _LONGEST:
            break
    return motions


def check_together(
    checks: Sequence[PayloadCheck], identified: Collection[str] = ()
) -> list[PayloadCheck]:
    """The checks of recordings of one arm, whose links and drives are the same in all of them.

    The payload of each recording is free, given the payloads of the other recordings. These
    are as set where nothing contradicts that, and free where their own currents contradict
    it or where they were identified before. Where recordings contradict each other, the
    payload of that recording becomes free for which all currents together show another
    one most clearly.

    The distributions are normal and multiplied in information form. Of each recording's
    gains, what friction alone changes belongs to this recording.

    Args:
        checks: checks of each recording alone.
        identified: sources of the recordings whose payloads were identified before.
    """
    if len(checks) < 2:
        return list(checks)
    evidence = [_Evidence(check) for check in checks]
    free = [_given_others(evidence, k, ()).score for k in range(len(checks))]
    trusted = set()
    for k, check in enumerate(checks):
        if check.source not in identified and not check.contradicts:
            trusted.add(k)
    while True:
        found = [_given_others(evidence, k, trusted) for k in range(len(checks))]
        contradicted = [k for k in trusted if found[k].contradicts]
        if not contradicted:
            return found
        scores = [(free[k], found[k].score, k) for k in contradicted]
        _, _, worst = max(scores)
        trusted.remove(worst)


class _Evidence:
    """What one recording shows of its payload and of the arm, without priors of the arm.

    The unknowns are the payload [10] and the arm's links and drives. They are in units of
    the payload's deviation and of the arm's prior, so that the matrices are well
    conditioned.

    Args:
        check: check of the recording alone.

    Attributes:
        check: check as given.
        unit: units of the unknowns.
        prior: covariance of the arm's unknowns before any recording.
        own: covariance of what changes from one recording to another.
        information: inverse covariance of the unknowns by this recording.
        weighted: product of the information with the mean of the unknowns.
    """

    def __init__(self, check: PayloadCheck) -> None:
        self.check = check
        common = check.common
        prior = check.estimate.prior
        values, covariance = check.estimate.joint
        arm = np.sqrt(np.diag(common.covariance))
        self.unit = np.concatenate([np.sqrt(np.diag(covariance)[:COUNT]), arm])
        # The unknowns of the arm are deviations from this vector.
        middle = common.vector
        self.prior = common.covariance / np.outer(arm, arm)
        self.own = (prior.covariance - common.covariance) / np.outer(arm, arm)
        self.information = np.linalg.inv(covariance / np.outer(self.unit, self.unit))
        mean = (values - np.concatenate([np.zeros(COUNT), middle])) / self.unit
        self.weighted = self.information @ mean
        self.information[COUNT:, COUNT:] -= np.linalg.inv(self.prior + self.own)

    def of_arm(self, *, believed: bool) -> tuple[Array, Array]:
        """Information about the arm, and its product with the mean.

        Args:
            believed: whether the payload is taken to be the one that was set.
        """
        information = self.information.copy()
        weighted = self.weighted.copy()
        if believed:
            mass = self.check.controller_mass
            precision = (self.unit[MASS] / np.hypot(_SET_ERROR, _SET_SHARE * mass)) ** 2
            information[MASS, MASS] += precision
            weighted[MASS] += precision * mass / self.unit[MASS]
        load = slice(0, COUNT)
        arm = slice(COUNT, None)
        gain = np.linalg.solve(information[load, load], information[load, arm]).T
        shown = information[arm, arm] - gain @ information[load, arm]
        product = weighted[arm] - gain @ weighted[load]
        kept = np.linalg.inv(np.eye(len(shown)) + shown @ self.own)
        return kept @ shown, kept @ product


def _given_others(
    evidence: Sequence[_Evidence], index: int, believed: Collection[int]
) -> PayloadCheck:
    """The check of one recording with what the others show of the arm.

    Args:
        evidence: evidence of all recordings.
        index: index of this recording.
        believed: indices of the recordings whose payload is taken to be as set.
    """
    one = evidence[index]
    arm = slice(COUNT, None)
    information = np.linalg.inv(one.prior)
    product = np.zeros(len(one.prior))
    for k, other in enumerate(evidence):
        if k != index:
            shown, shown_product = other.of_arm(believed=k in believed)
            information = information + shown
            product = product + shown_product
    # What the others show of the arm, and what this recording may differ from it.
    covariance = np.linalg.inv(information)
    precision = np.linalg.inv(covariance + one.own)
    whole = one.information.copy()
    weighted = one.weighted.copy()
    whole[arm, arm] += precision
    weighted[arm] += precision @ covariance @ product
    posterior = np.linalg.inv(whole)
    payload = one.unit[:COUNT] * (posterior @ weighted)[:COUNT]
    mass = float(payload[MASS])
    std = float(np.sqrt(posterior[MASS, MASS]) * one.unit[MASS])
    alone = one.check
    # Where the others and the recording itself disagree by more than they state, both err
    # by as much more (the ratio of Birge). A third of the own deviation: rounding is no
    # disagreement.
    differs = np.sqrt(max(alone.std**2 - std**2, (alone.std / 3.0) ** 2))
    std *= max(1.0, abs(mass - alone.mass) / float(differs))
    return replace(alone, mass=mass, std=std, payload=possible_payload(payload, std))


# The payload of one recording, for every command that uses it: quick, and rarely wrong.

_SURE = 3.3
"""Standard deviations between the payload that was set and the one that the currents
show, from which the one that was set is contradicted: of a thousand right ones, one would
be."""
_LEAST_DIFFERENCE = 0.1
"""Smallest difference that is reported if the model is of the recorded arm [kg]: errors of
links and friction that the deviation of the payload does not include. Models of one UR10e
that were identified with an undeclared payload were 0.14 kg off."""
_LEAST_OF_LINKS = 0.006
"""Smallest difference that is reported, relative to the mass of all links, if that is more."""


class WrongPayload(NamedTuple):
    """A payload that was set in the controller, or stated by the user, and the actual one.

    Attributes:
        contradiction: the contradiction in words, with what the user can do.
        shown: what the currents show.
    """

    contradiction: Contradiction
    shown: Payload


def payload_contradictions(
    model: EnergyModel, bag: str | Path, *, stated: Payload | None = None
) -> tuple[Contradiction, ...]:
    """The contradiction of `wrong_payload`, if there is one.

    Args:
        model: model of the arm, or generic.
        bag: folder of a bag, or an .mcap file.
        stated: payload that the user states; None for the one set in the controller.

    Returns:
        One contradiction or none.
    """
    found = wrong_payload(model, bag, stated=stated)
    return () if found is None else (found.contradiction,)


def wrong_payload(
    model: EnergyModel, bag: str | Path, *, stated: Payload | None = None
) -> WrongPayload | None:
    """The payload that was set in the controller, or stated by the user, against the currents.

    With a model of the recorded arm its torque constants are known; else, as with a
    generic model, they are as uncertain as for any arm of the type, and target_moment
    must show the mounting. The first minute of motion decides, so that a long recording
    takes no longer than a short one.

    Args:
        model: model of the arm, or generic.
        bag: recording.
        stated: payload that the user states; None for the one set in the controller.

    Returns:
        The contradiction; None where both agree, and where the recording does not show the
        payload: too little motion, a payload that changes, no currents, or a model that
        does not fit.
    """
    try:
        recording = read_recording(bag, model.description(), enough=_LONGEST)
        with recording:
            return _contradicted(model, recording, stated)
    except UrEnergyError:  # what the recording lacks is reported by what needs it
        return None


def _contradicted(
    model: EnergyModel, recording: Recording, stated: Payload | None
) -> WrongPayload | None:
    """`wrong_payload` of a recording that was read."""
    if len(recording.payloads) > 1:
        return None
    robot = model.description()
    _, setups = estimate_setups([recording], [recording], robot, None)
    dynamics = RecordingDynamics(robot, recording.info, setups, None, model.setup, stated)
    setup, _ = dynamics.setup_and_delay(recording.controller_payload)
    serial = serials(model, recording.info)
    same_arm = same_serial(serial["model"], serial["recording"])
    mass = setup.payload.mass if stated is None else stated.mass
    # Where no serial number shows whether the arm is the model's, both the type and the
    # model must contradict the payload, and the model's payload is reported.
    shown: ShownPayload | None = None
    is_measured = recording.torque_reference != "none"
    if is_measured and (is_generic(model) or same_arm is not True):
        shown = _shown_by_type(model, recording, dynamics)
        if shown is None or not _contradicts(shown, mass):
            return None
    if not is_generic(model) and same_arm is not False:
        is_sure = same_arm is True
        shown = _shown_by_own_arm(model, recording, setup.gravity, sure=is_sure)
    if shown is None or not _contradicts(shown, mass):
        return None
    contradiction = contradiction_of_payload(mass, shown, by_user=stated is not None)
    return WrongPayload(contradiction, shown.payload)


def _contradicts(shown: ShownPayload, mass: float) -> bool:
    """Whether the arm carries another payload than this one [kg].

    A mass that is certainly below zero is none: mounting, arm or model are others.
    """
    margin = _SURE * shown.std
    return abs(shown.mass - mass) > max(margin, shown.least) and shown.mass + margin > 0.0


def _shown_by_type(
    model: EnergyModel, recording: Recording, dynamics: RecordingDynamics
) -> ShownPayload | None:
    """The payload of a recording by what is known of the arm's type."""
    checks = check_payload(model, model.description(), recording, dynamics)
    if not checks:
        return None
    (check,) = checks
    return ShownPayload(check.mass, check.std, check.least, check.payload)


def _shown_by_own_arm(
    model: EnergyModel, recording: Recording, gravity: Array, *, sure: bool
) -> ShownPayload | None:
    """The payload of a recording by the model of its arm; None where the model does not fit.

    Args:
        model: model of the arm.
        recording: recording as it was read.
        gravity: gravity in the base frame [3], m/s^2.
        sure: whether serial numbers show that the arm is the model's; currents that the
            model does not explain, for instance by another friction, then make the
            payload less certain.
    """
    narrow = ParallelFilter(recording.cutoff)
    try:
        found = estimate_payload(
            model, model.description(), gravity, list(recording.motions), narrow
        )
    except IdentificationError:  # too little motion
        return None
    # unknown without residuals
    unexplained = float(np.nan_to_num(found.misfit)) / ANOTHER_ARM
    if unexplained > 1.0 and not sure:
        return None
    least = max(
        _LEAST_DIFFERENCE, _LEAST_OF_LINKS * float(model.description().mass.sum())
    )
    std = found.mass_std * max(unexplained, 1.0)
    return ShownPayload(found.shown_mass, std, least, found.payload)
