# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The model for the arm of a recording: whether both are of one arm, type and session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ur_energy_model.consistency.contradiction import Contradiction
from ur_energy_model.consistency.controller_constants import fit_of_bag
from ur_energy_model.errors import ModelFileError, WrongRobotError
from ur_energy_model.model.arm_at_hand import on_another_arm, with_controller_constants
from ur_energy_model.model.controller_constants import (
    CALIBRATION_ERROR,
    ControllerConstants,
)
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.generic import is_generic
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.sessions import Session
from ur_energy_model.telemetry.bag.reader import read_info
from ur_energy_model.telemetry.samples import RecordingInfo, Telemetry, same_serial

# The type of the arm.


def check_joints(model: EnergyModel, robot: RobotDescription) -> None:
    """Check that a model has the joints of its robot.

    Raises:
        WrongRobotError: the joints differ.
    """
    if tuple(joint.name for joint in model.joints) != robot.joint_names:
        problem = f"its joints are not those of {robot.name}"
        remedy = "give a model of this robot, or identify it again"
        raise WrongRobotError(f"model of {model.robot}", problem, remedy)


def check_robot(path: str | Path, info: RecordingInfo, robot: RobotDescription) -> None:
    """Check that a recording is of a robot; one that names no robot may be of any.

    Raises:
        WrongRobotError: it names another robot.
    """
    if info.robot is not None and info.robot != robot.name:
        problem = f"was recorded on a {info.robot}, not a {robot.name}"
        remedy = f"use a model of a {info.robot} (identify: --robot {info.robot}) or another bag"
        raise WrongRobotError(path, problem, remedy, field="robot")


def serials(model: EnergyModel, info: RecordingInfo) -> dict[str, str | None]:
    """Serial numbers of the arms of a model and of a recording, as in JSON output."""
    own = model.provenance.get("serial")
    return {"model": str(own) if own else None, "recording": info.serial or None}


# The session.

SAME_DAY = 43_200.0
"""Longest time between two recordings of one session, by a clock that was not set back [s]."""
CONTINUED = 60.0
"""Longest time between two recordings of one session where the time of day is not known and the
recording is the later one [s]: the clocks of many controllers begin at each start, so that
recordings of other days have similar times."""
CLOCKS_APART = 5.0  # drift of the controller's clock from the host's within SAME_DAY [s]
_YEAR_2000 = 9.5e8  # seconds since 1970; a later time of the controller is a time of day


def is_same_session(model: EnergyModel, samples: Telemetry) -> bool:
    """Whether samples are of the session that a model's standby power was identified in.

    All recordings of the model were made in that session, and the controller was not
    started again since.
    """
    provenance = model.provenance
    same_arm = same_serial(provenance.get("serial"), samples.info.serial)
    if model.bus.source != "bus_power" or same_arm is False:
        return False
    bags = provenance.get("bags") or ()
    return bool(bags) and all(_is_of_one_session(bag, samples) for bag in bags)


def _is_of_one_session(bag: Mapping[str, Any], samples: Telemetry) -> bool:
    """Whether samples may be of the session of a recording.

    Args:
        bag: entry of the recording in the provenance of a model.
        samples: samples of another recording.
    """
    if not bag.get("controller_time"):  # models of earlier versions
        return False
    begin, end = bag["controller_time"]
    time = float(samples.time[0])
    near = bool(max(begin - time, time - end) < SAME_DAY)
    if samples.stamp is None or not bag["host_time"]:
        if time > _YEAR_2000:
            return near
        return bool(0.0 <= time - end < CONTINUED)
    # Both clocks must have advanced alike: a controller that was started again begins anew.
    host_begin = datetime.fromisoformat(bag["host_time"][0]).timestamp()
    host_passed = 1e-9 * float(samples.stamp[0]) - host_begin
    controller_passed = time - begin
    return near and bool(abs(host_passed - controller_passed) < CLOCKS_APART)


# The arm.


class MatchedModel(NamedTuple):
    """A model for the arm of a recording.

    Attributes:
        model: model with the torque constants of the arm.
        warning: warning that the model was identified on another arm, or that a part of
            the arm was exchanged; None where nothing shows that.
        decided: whether serial numbers or stated torque constants show which arm it is.
        constants: torque constants that the recording's controller states.
        same_arm: whether these are the model's; None where they cannot be compared.
        contradictions: contradictions of the units of the fields that state the
            constants.
    """

    model: EnergyModel
    warning: str | None
    decided: bool
    constants: ControllerConstants
    same_arm: bool | None
    contradictions: tuple[Contradiction, ...] = ()


def model_of_recording(
    model: EnergyModel, bag: str | Path, *, same_arm: bool = False
) -> MatchedModel:
    """`model_of_arm` for the arm of a recording, with the constants that its controller states.

    Args:
        model: generic, of the arm, or of another arm of the type.
        bag: path of the recording.
        same_arm: the arm is the same whatever serial numbers and constants are.

    Raises:
        RecordingError: no bag, or a damaged one.
    """
    fit = fit_of_bag(bag, model.description())
    matched = model_of_arm(model, read_info(bag), fit.result(), same_arm=same_arm)
    doubt = fit.contradiction()
    return matched if doubt is None else matched._replace(contradictions=(doubt,))


def model_of_arm(
    model: EnergyModel,
    info: RecordingInfo,
    constants: ControllerConstants | None = None,
    *,
    same_arm: bool = False,
) -> MatchedModel:
    """A model for the arm of a recording, which may have been identified on another one.

    Serial numbers decide; where one is unknown, the torque constants that the controllers
    state (the arm's fingerprint) do. The model of another arm becomes one between this
    model and the model of its type, with the spread between arms. The torque constants
    are the constants of the arm at hand, wherever its controller states them. Where they
    differ on one arm, by its serial number or with `same_arm`, a joint or the control box
    was exchanged: only the constants are replaced.

    Args:
        model: generic, of the arm, or of another arm of the type.
        info: metadata of the recording.
        constants: constants that the recording states; None where they are not known yet.
        same_arm: the arm is the same whatever serial numbers and constants are, as after
            an exchange of its control box or of a joint.
    """
    if constants is None:
        constants = ControllerConstants.unknown(model.dof)
    numbers = serials(model, info)
    same_number = same_serial(numbers["model"], numbers["recording"])
    same_constants = _same_constants(model, constants)
    same = same_constants if same_number is None else same_number
    difference = _difference(model, constants) if same_constants is False else None
    warning = None
    if same is False and not same_arm:
        reasons = ["the recording is of another arm than the model"]
        if same_number is False:
            arms = f"arm {numbers['model']}, the recording of arm {numbers['recording']}"
            reasons = [f"the model is of {arms}"]
        if difference is not None:
            reasons.append(difference)
        elif same_constants:
            reasons.append(
                "although its controller has the torque constants of the model's"
            )
        intervals = "intervals are widened to the spread between arms"
        try:
            model = on_another_arm(model)
        except ModelFileError:  # the type has no generic model
            intervals = "its intervals do not contain the spread between arms"
        warning = (
            f"{', '.join(reasons)}: {intervals}; --same-arm if it is one arm, as with an "
            "exchanged control box or joint"
        )
    elif difference is not None:
        warning = (
            f"as after the exchange of a joint or of the control box, {difference}: those of "
            "the recording are used"
        )
    return MatchedModel(
        model=with_controller_constants(model, constants),
        warning=warning,
        decided=same_arm or same is not None,
        constants=constants,
        same_arm=same_constants,
    )


IDENTIFIED_CONSTANT_ERROR = 2.0
"""Error of an identified torque constant over its stated deviation, where no constant stated by
the controller of the model's arm is known, and the identified one must be compared instead."""


def _same_constants(model: EnergyModel, constants: ControllerConstants) -> bool | None:
    """Whether stated torque constants belong to the model's arm; None where it is not known.

    Identified constants are too uncertain to show that two arms are the same, but may
    show that they differ.
    """
    if is_generic(model):
        return None
    same = _constants_of(model).same_arm(constants)
    only_identified = model.controller_constants is None
    return None if same and only_identified else same


def _constants_of(model: EnergyModel) -> ControllerConstants:
    """Torque constants of the model's arm, as its controller stated them, else as identified.

    Constants that come from the type of the arm count as unknown. So do the constants of a
    model that was learned while the arm worked, perhaps on the present arm.

    Returns:
        Torque per ampere of each joint, joint side [n], N m/A, and its deviation.
    """
    if model.controller_constants is not None:
        return model.controller_constants
    if "learned" in model.provenance:
        return ControllerConstants.unknown(model.dof)
    ratio = np.array([joint.gear_ratio for joint in model.joints])
    constant = np.array([joint.torque_constant for joint in model.joints])
    stds = [joint.std.get("torque_constant", np.inf) for joint in model.joints]
    of_identification = IDENTIFIED_CONSTANT_ERROR * np.array(stds)
    deviation = np.hypot(of_identification, CALIBRATION_ERROR * constant)
    sources = [str(joint.source.get("torque_constant", "")) for joint in model.joints]
    of_currents = np.array([source.startswith("current") for source in sources])
    known = of_currents & np.isfinite(deviation)
    return ControllerConstants(
        np.where(known, ratio * constant, np.nan),
        np.where(known, ratio * deviation, np.inf),
    )


def _difference(model: EnergyModel, constants: ControllerConstants) -> str:
    """The clearest difference of stated torque constants from the model's, in words."""
    own = _constants_of(model)
    relative, deviation = constants.difference(own)
    clearest = int(np.nanargmax(np.abs(relative) / deviation))
    stated = f"{constants.torque_per_ampere[clearest]:.4g} N m/A"
    of_model = f"{own.torque_per_ampere[clearest]:.4g}"
    percent = f"{100.0 * relative[clearest]:+.1f} %"
    joint = model.joints[clearest].name
    return f"its controller has {stated} for {joint}, that of the model {of_model} ({percent})"


UNLIKELY_FRICTION = 2.0
"""Difference of the friction of a session from the model's that indicates another arm, in spreads
between sessions and RMS over the joints: up to 1.3 for a UR10e over months, 2 to 4 for
another UR5e."""


def doubt_about_arm(
    model: EnergyModel, session: Session, misfits: Sequence[str] = ()
) -> str | None:
    """A warning where friction or a misfit shows another arm than the model's; else None.

    It is for recordings of which `model_of_arm` did not decide the arm. The model is not
    widened.

    Args:
        model: model of the arm, or generic, which fits every arm of its type.
        session: session as the recording has shown it.
        misfits: what else contradicts the model, in words.
    """
    if is_generic(model):
        return None
    reasons = list(misfits)
    spread = model.sessions.friction_of(model.dof)
    moved = session.friction_std < spread
    if session.moving_seconds > 0 and moved.any():
        differences = (session.friction_scale[moved] - 1.0) / spread[moved]
        if np.sqrt(np.square(differences).mean()) > UNLIKELY_FRICTION:
            scales = ", ".join(f"{scale:.2f}" for scale in session.friction_scale)
            reasons.insert(0, f"friction is {scales} times the model's")
    if not reasons:
        return None
    return (
        "this may be another arm than the model's (or another payload or mounting): "
        f"{'; '.join(reasons)}; intervals do not contain the spread between arms"
    )
