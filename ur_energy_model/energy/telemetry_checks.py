# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Checks of telemetry before energy is computed from it: samples, conditions, limits."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ur_energy_model.consistency.contradiction import Contradiction
from ur_energy_model.consistency.controller_constants import fit_of_bag
from ur_energy_model.errors import ModelFileError, RecordingError, WrongRobotError
from ur_energy_model.model.arm_at_hand import on_another_arm, with_controller_constants
from ur_energy_model.model.controller_constants import (
    CALIBRATION_ERROR,
    ControllerConstants,
)
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.generic import is_generic
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.sessions import Session
from ur_energy_model.model.setup import Payload, Setup, tensor_of
from ur_energy_model.telemetry.bag.reader import read_info
from ur_energy_model.telemetry.plausibility import (
    ACCELERATION,
    ANY_ARM,
    CURRENT,
    POSITION,
    TORQUE,
    PlausibleRanges,
    possible,
)
from ur_energy_model.telemetry.samples import (
    RecordingInfo,
    Telemetry,
    equal_runs,
    same_serial,
)
from ur_energy_model.typing import Array, Mask

MOST_POWER = 1.0e5  # power that no arm takes [W]: the largest ones take some kilowatts


def most_power(robot: RobotDescription) -> float:
    """Largest power that a sample of an arm can show [W].

    Three times the sum of the joints' rated torques times rated speeds, at least 2 kW;
    MOST_POWER where they are unknown. Recordings of real arms stay below an eighth of
    that sum.
    """
    rated = float((robot.max_torque * robot.max_velocity).sum())
    return max(3.0 * rated, 2000.0) if rated < MOST_POWER else MOST_POWER


def rated_limits(robot: RobotDescription) -> PlausibleRanges:
    """Lowest and highest plausible value of each RTDE field of an arm.

    Positions: four turns to either side (endless joints count on, and arms have reported
    more than two turns). Speeds: twice the rated speeds. Torques: five times the rated
    torques. Motor currents: five times the current of the rated torque, at least 20 A;
    200 A where torque constant or rated torque are unknown.
    """
    unknown = ~(np.isfinite(robot.torque_constant) & np.isfinite(robot.max_torque))
    with np.errstate(invalid="ignore"):
        current = 5.0 * robot.max_torque / (robot.gear_ratio * robot.torque_constant)
    largest = np.where(robot.gear_ratio > 1, 200.0, CURRENT)
    current = np.where(unknown, largest, np.maximum(current, 20.0))
    position = np.maximum(POSITION, 2 * robot.max_position)
    torque = np.where(unknown, TORQUE, 5.0 * robot.max_torque)
    speed = 2.0 * robot.max_velocity
    highest = {
        "actual_q": position,
        "target_q": position,
        "actual_qd": speed,
        "target_qd": speed,
        "target_qdd": np.maximum(ACCELERATION, 10 * robot.max_acceleration),
        "target_moment": torque,
        "actual_current_as_torque": torque,
        "actual_current": current,
        "target_current": current,
        "joint_control_output": current,
    }
    limits = dict(ANY_ARM)
    supply = (np.array([-1.0]), np.array([max(80.0, 1.7 * robot.nominal_voltage)]))
    for name in ("actual_joint_voltage", "actual_main_voltage", "actual_robot_voltage"):
        limits[name] = supply
    for name, high in highest.items():
        limits[name] = (-high, high)
    return limits


# Operating conditions that the robot reports: payload, speed scaling, joint temperatures.

PAYLOAD: tuple[str, ...] = ("payload", "payload_cog", "payload_inertia")
"""RTDE fields of the payload that is set in the controller."""


class OperatingConditions:
    """The most recent operating conditions.

    Args:
        setup: mounting and payload of the model.

    Attributes:
        setup: mounting of the model, with the payload that is set in the controller once
            it is known.
        speed_scaling: product of speed slider and limiter, 0 to 1.
        temperature: temperatures of the joints [n], degC; None where unknown.
    """

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.speed_scaling = 1.0
        self.temperature: Array | None = None
        self._payload_known = False

    def continue_from(self, earlier: OperatingConditions) -> None:
        """Take over the conditions of another model of the same arm."""
        self.speed_scaling = earlier.speed_scaling
        self.temperature = earlier.temperature
        if earlier._payload_known:
            self.setup = Setup(self.setup.gravity, earlier.setup.payload)
            self._payload_known = True

    def update(self, batch: Telemetry) -> None:
        """Take over the last values of a batch."""
        columns = batch.columns
        if "joint_temperatures" in columns:
            self.temperature = columns["joint_temperatures"][-1]
        if "speed_scaling" in columns:
            scaling = float(columns["speed_scaling"][-1])
            if "target_speed_fraction" in columns:
                scaling *= float(columns["target_speed_fraction"][-1])
            if not math.isnan(scaling):
                self.speed_scaling = scaling
        if "payload" in columns and "payload_cog" in columns:
            self._take_payload(columns, -1)

    def parts(self, batch: Telemetry) -> Iterator[tuple[slice, Setup]]:
        """Parts of a batch with one payload each, and their setups.

        The last setup is kept. Where the payload was not recorded, the setup before holds.
        """
        columns = batch.columns
        if "payload" not in columns or "payload_cog" not in columns:
            yield slice(0, len(batch)), self.setup
            return
        configured = np.column_stack(
            [columns[name] for name in PAYLOAD if name in columns]
        )
        # NaN differs from NaN: rows with an unknown payload must count as equal.
        configured[np.isnan(configured).any(axis=1)] = np.inf
        for rows in equal_runs(configured):
            self._take_payload(columns, rows.start)
            yield rows, self.setup

    def _take_payload(self, columns: Mapping[str, Array], row: int) -> None:
        """Take over the payload that is set in the controller at a sample, if it is known."""
        mass = float(columns["payload"][row])
        center = columns["payload_cog"][row]
        known = self.setup.payload
        same_center = not mass or np.array_equal(center, known.center_of_mass)
        if mass == known.mass and same_center:
            return
        inertia = np.zeros(6)
        if "payload_inertia" in columns:
            inertia = columns["payload_inertia"][row]
        tensor = np.zeros((3, 3))
        if np.isnan([mass, *center, *inertia]).any():
            return
        if inertia.any():
            xx, yy, zz, xy, xz, yz = inertia
            entered = tensor_of(np.array([xx, xy, yy, xz, yz, zz]))
            # Users may enter anything; an impossible body counts as a point mass.
            if np.linalg.eigvalsh(entered).min() >= 0:
                tensor = entered
        self.setup = Setup(self.setup.gravity, Payload(mass, np.array(center), tensor))
        self._payload_known = True


# Samples that energy can be computed from: values that are finite and possible for the
# arm.

ALWAYS: tuple[str, ...] = ("actual_qd", "joint_temperatures")
"""Fields whose values must be finite, where the source has them."""
MOTION: tuple[str, ...] = ("actual_q", "target_q", "target_qd", "target_qdd")
"""Fields whose values must be finite too where powers are computed from the motion."""
OPTIONAL: tuple[str, ...] = (
    "actual_robot_voltage",
    "actual_robot_current",
    "robot_mode",
    "safety_mode",
    *PAYLOAD,
    "speed_scaling",
    "target_speed_fraction",
)
"""Fields that a sample may lack: NaN stands for not measured."""


class _Checked(NamedTuple):
    """Values of a sample that are checked, side by side.

    Attributes:
        names: names of the fields between time and motor currents.
        low: lowest possible value of each value [values].
        high: highest possible value of each value [values].
        optional: whether each value may be NaN [values].
    """

    names: list[str]
    low: Array
    high: Array
    optional: Mask


class UsableSamples:
    """Finds the samples from which energy can be computed.

    Args:
        limits: lowest and highest value of each field.
        most_power: highest power of the robot bus [W].
    """

    def __init__(self, limits: PlausibleRanges, most_power: float) -> None:
        self._limits = limits
        self._most_power = most_power
        self._layouts: dict[tuple[bool, tuple[str, ...]], _Checked] = {}

    def __call__(self, batch: Telemetry, current: Array | None) -> Mask:
        """Whether each sample is usable [samples].

        Args:
            batch: samples of one layout of columns.
            current: motor currents [samples, n], A, from which powers are computed; None
                to compute them from the motion, which must be finite then.
        """
        columns = batch.columns
        count = len(batch)
        key = current is None, tuple(columns)
        if key not in self._layouts:
            self._layouts[key] = self._layout(columns, current)
        checked = self._layouts[key]
        parts = [batch.time, *(columns[name] for name in checked.names)]
        if current is not None:
            parts.append(current)
        # All values side by side: few operations on one matrix take a fifth of the time
        # of many on its parts, in the small batches of the live estimator.
        values = np.concatenate([part.reshape(count, -1) for part in parts], axis=1)
        inside = (values >= checked.low) & (values <= checked.high)  # False for NaN
        if inside.all():  # the usual case
            good = inside[:, 0]  # any column: all are true
            bus = batch.bus_power
        else:
            lacking = checked.optional & np.isnan(values)
            good = (inside | lacking).all(axis=1)
            with np.errstate(over="ignore", invalid="ignore"):
                bus = batch.bus_power
        return good if bus is None else good & ~(np.abs(bus) > self._most_power)

    def _layout(self, columns: Mapping[str, Array], current: Array | None) -> _Checked:
        """What is checked of samples with these columns.

        Args:
            columns: columns of a batch by field.
            current: motor currents of the batch [samples, n], A; None if the powers are
                computed from the motion.
        """
        required = ALWAYS
        optional = (*OPTIONAL, MOTION[0])
        if current is None:
            required = (*ALWAYS, *MOTION)
            optional = OPTIONAL
        names = [name for name in (*required, *optional) if name in columns]
        widths = {"timestamp": 1, **{name: columns[name][:1].size for name in names}}
        if current is not None:
            widths["actual_current"] = current.shape[1]
        lows = []
        highs = []
        for name, width in widths.items():
            low, high = self._limits[name]
            lows.append(np.broadcast_to(low, width))
            highs.append(np.broadcast_to(high, width))
        is_optional = [name in optional for name in widths]
        return _Checked(
            names=names,
            low=np.concatenate(lows),
            high=np.concatenate(highs),
            optional=np.repeat(is_optional, list(widths.values())),
        )


# Checks of a recording and a model before energy is computed from them.


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


UNLIKELY_FRICTION = 2.0
"""Difference of the friction of a session from the model's that indicates another arm, in spreads
between sessions and RMS over the joints: up to 1.3 for a UR10e over months, 2 to 4 for
another UR5e."""


def serials(model: EnergyModel, info: RecordingInfo) -> dict[str, str | None]:
    """Serial numbers of the arms of a model and of a recording, as in JSON output."""
    own = model.provenance.get("serial")
    return {"model": str(own) if own else None, "recording": info.serial or None}


SAME_DAY = 43_200.0
"""Longest time between two recordings of one session, by a clock that was not set back [s]."""
CONTINUED = 60.0
"""The same where the time of day is not known and the recording is the later one [s]: the clocks of
many controllers begin at each start, so that recordings of other days have similar times."""
CLOCKS_APART = 5.0  # drift of the controller's clock from the host's within SAME_DAY [s]
_YEAR_2000 = 9.5e8  # seconds since 1970; a later time of the controller is a time of day


def is_same_session(model: EnergyModel, samples: Telemetry) -> bool:
    """Whether samples are of the session that a model's standby power was identified in.

    All recordings of the model were made in that session, and the controller was not
    started again since.
    """
    made = model.provenance
    same_arm = same_serial(made.get("serial"), samples.info.serial)
    if model.bus.source != "bus_power" or same_arm is False:
        return False
    bags = made.get("bags") or ()
    return bool(bags) and all(_is_of_one_session(bag, samples) for bag in bags)


def _is_of_one_session(bag: Mapping[str, Any], samples: Telemetry) -> bool:
    """Whether samples may be of the session of a recording, from the provenance of a model."""
    if not bag.get("controller_time"):  # models of earlier versions
        return False
    begin, end = bag["controller_time"]
    time = float(samples.time[0])
    near = max(begin - time, time - end) < SAME_DAY
    if samples.stamp is None or not bag["host_time"]:
        if time > _YEAR_2000:
            return bool(near)
        return bool(0.0 <= time - end < CONTINUED)
    host_begin = datetime.fromisoformat(bag["host_time"][0]).timestamp()
    host_passed = 1e-9 * float(samples.stamp[0]) - host_begin
    return bool(near and abs(host_passed - (time - begin)) < CLOCKS_APART)


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
    """`model_of_arm` for the arm of a recording, with the constants that it states.

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
    same_number = same_serial(*numbers.values())
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
        try:
            model = on_another_arm(model)
            intervals = "intervals are widened to the spread between arms"
        except ModelFileError:
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
    return None if same and model.controller_constants is None else same


def _constants_of(model: EnergyModel) -> ControllerConstants:
    """Torque constants of the model's arm: those that its controller stated, else as identified.

    Constants that come from the type of the arm count as unknown. So do the constants of a
    model that was learned while the arm worked, perhaps on the present arm.
    """
    if model.controller_constants is not None:
        return model.controller_constants
    if "learned" in model.provenance:
        return ControllerConstants.unknown(model.dof)
    ratio = np.array([joint.gear_ratio for joint in model.joints])
    constant = np.array([joint.torque_constant for joint in model.joints])
    deviation = np.array(
        [joint.std.get("torque_constant", np.inf) for joint in model.joints]
    )
    deviation = np.hypot(
        IDENTIFIED_CONSTANT_ERROR * deviation, CALIBRATION_ERROR * constant
    )
    of_currents = [
        str(joint.source.get("torque_constant", "")).startswith("current")
        for joint in model.joints
    ]
    known = np.array(of_currents) & np.isfinite(deviation)
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
        differences = (session.friction_scale - 1.0) / np.where(moved, spread, np.inf)
        if np.sqrt(np.square(differences).sum() / moved.sum()) > UNLIKELY_FRICTION:
            scales = ", ".join(f"{scale:.2f}" for scale in session.friction_scale)
            reasons.insert(0, f"friction is {scales} times the model's")
    if not reasons:
        return None
    return (
        "this may be another arm than the model's (or another payload or mounting): "
        f"{'; '.join(reasons)}; intervals do not contain the spread between arms"
    )


def check_width(
    path: str | Path, batch: Telemetry, names: tuple[str, ...], dof: int
) -> None:
    """Check that a batch has these fields, and that fields of joints have a column per joint.

    Args:
        path: path of the recording, for messages.
        batch: samples of the recording.
        names: names of the fields.
        dof: number of joints of the robot.

    Raises:
        MissingFieldError: a field is missing.
        RecordingError: a field has another number of joints.
    """
    batch.require(*names, purpose="identification")
    for name in names:
        values = batch[name]
        if values.ndim == 2 and values.shape[1] != dof:
            problem = f"has {values.shape[1]} joints, the robot {dof}"
            remedy = "use the robot, or a model of the robot, that was recorded"
            raise RecordingError(path, problem, remedy, field=name)


def check_batch(
    path: str | Path, batch: Telemetry, names: tuple[str, ...], dof: int
) -> None:
    """Check the fields of a batch as `check_width` does, and their values.

    Values of these fields must be finite, and values of all fields possible for some arm.

    Args:
        path: path of the recording, for messages.
        batch: samples of the recording.
        names: names of the fields that must be there.
        dof: number of joints of the robot.

    Raises:
        MissingFieldError: a field is missing.
        RecordingError: a field has another number of joints, or an impossible value.
    """
    check_width(path, batch, names, dof)
    for name in names:
        finite = np.isfinite(batch[name])
        if not finite.all():
            row = int(np.argmin(finite.reshape(len(finite), -1).all(axis=1)))
            problem = f"value at t = {batch.time[row]:.3f} s is not a finite number"
            remedy = "remove that part of the recording, or record again"
            raise RecordingError(path, problem, remedy, field=name)
    first = possible(batch)[2]
    if first is not None:
        when = f"t = {batch.time[first.row]:.3f} s"
        problem = f"value {first.value:.4g} at {when} is impossible for any arm"
        remedy = "import the recording again, or remove that part"
        raise RecordingError(path, problem, remedy, field=first.field)
