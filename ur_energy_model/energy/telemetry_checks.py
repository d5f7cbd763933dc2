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

    Positions: four turns to either side (endless joints count on; arms have reported more
    than two). Speeds: twice the rated ones. Torques: five times the rated ones. Motor
    currents: five times that of the rated torque, at least 20 A; 200 A where the motor is
    unknown.
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
        **dict.fromkeys(("actual_q", "target_q"), position),
        **dict.fromkeys(("actual_qd", "target_qd"), speed),
        "target_qdd": np.maximum(ACCELERATION, 10 * robot.max_acceleration),
        **dict.fromkeys(("target_moment", "actual_current_as_torque"), torque),
        **dict.fromkeys(
            ("actual_current", "target_current", "joint_control_output"), current
        ),
    }
    supply = (np.array([-1.0]), np.array([max(80.0, 1.7 * robot.nominal_voltage)]))
    names = ("actual_joint_voltage", "actual_main_voltage", "actual_robot_voltage")
    limits = {name: (-high, high) for name, high in highest.items()}
    return {**ANY_ARM, **dict.fromkeys(names, supply), **limits}


# Operating conditions that the robot reports: payload, speed scaling, joint temperatures.

PAYLOAD: tuple[str, ...] = ("payload", "payload_cog", "payload_inertia")
"""RTDE fields of the payload that is set in the controller."""


class OperatingConditions:
    """The most recent operating conditions."""

    def __init__(self, setup: Setup) -> None:
        # mounting of the model, with the payload set in the controller once it is known
        self.setup = setup
        self.speed_scaling = 1.0  # product of slider and limiter
        # of the joints [n], degC; None where unknown
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
        """Parts of a batch with one payload each, and their setups; keeps the last one.

        Where the payload is not measured, the last one holds.
        """
        columns = batch.columns
        if "payload" not in columns or "payload_cog" not in columns:
            yield slice(0, len(batch)), self.setup
            return
        configured = np.column_stack(
            [columns[name] for name in PAYLOAD if name in columns]
        )
        configured[np.isnan(configured).any(axis=1)] = np.inf  # unknown ones are equal
        for rows in equal_runs(configured):
            self._take_payload(columns, rows.start)
            yield rows, self.setup

    def _take_payload(self, columns: Mapping[str, Array], row: int) -> None:
        """Take over the payload that is set in the controller at a sample, if it is known."""
        mass = float(columns["payload"][row])
        center = columns["payload_cog"][row]
        known = self.setup.payload
        tensor = np.zeros((3, 3))
        if mass == known.mass and (
            not mass or np.array_equal(center, known.center_of_mass)
        ):
            return
        inertia = (
            columns["payload_inertia"][row]
            if "payload_inertia" in columns
            else np.zeros(6)
        )
        if np.isnan([mass, *center, *inertia]).any():
            return
        if inertia.any():
            xx, yy, zz, xy, xz, yz = inertia
            entered = tensor_of(np.array([xx, xy, yy, xz, yz, zz]))
            # Users may enter anything; an impossible body counts as a point mass.
            tensor = entered if np.linalg.eigvalsh(entered).min() >= 0 else tensor
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


class UsableSamples:
    """Finds the samples whose values are within limits, and whose bus power is [W]."""

    def __init__(self, limits: PlausibleRanges, most_power: float) -> None:
        self._limits = limits
        self._most_power = most_power
        self._layouts: dict[
            tuple[bool, tuple[str, ...]], tuple[list[str], Array, Array, Mask]
        ] = {}

    def __call__(self, batch: Telemetry, current: Array | None) -> Mask:
        """Usable samples [samples]; without motor currents [samples, n], A, those with motion."""
        columns = batch.columns
        count = len(batch)
        key = current is None, tuple(columns)
        if key not in self._layouts:
            self._layouts[key] = self._layout(columns, current)
        names, low, high, optional = self._layouts[key]
        parts = [batch.time, *(columns[name] for name in names)]
        if current is not None:
            parts.append(current)
        # All values side by side: few operations on one matrix take a fifth of the time
        # of many on its parts, in the small batches of the live estimator.
        values = np.concatenate([part.reshape(count, -1) for part in parts], axis=1)
        inside = (values >= low) & (values <= high)  # NaN is not
        if inside.all():  # as nearly always
            good = inside[:, 0]
            bus = batch.bus_power
        else:
            good = (inside | (optional & np.isnan(values))).all(axis=1)
            with np.errstate(over="ignore", invalid="ignore"):
                bus = batch.bus_power
        return good if bus is None else good & ~(np.abs(bus) > self._most_power)

    def _layout(
        self, columns: Mapping[str, Array], current: Array | None
    ) -> tuple[list[str], Array, Array, Mask]:
        """Fields to check between time and currents; limits and optional ones of all values."""
        required = ALWAYS
        optional = (*OPTIONAL, MOTION[0])
        if current is None:
            required = (*ALWAYS, *MOTION)
            optional = OPTIONAL
        names = [name for name in (*required, *optional) if name in columns]
        widths = {"timestamp": 1, **{name: columns[name][:1].size for name in names}}
        if current is not None:
            widths["actual_current"] = current.shape[1]
        low, high = (
            np.concatenate(
                [
                    np.broadcast_to(self._limits[name][end], width)
                    for name, width in widths.items()
                ]
            )
            for end in (0, 1)
        )
        lacking = np.repeat([name in optional for name in widths], list(widths.values()))
        return names, low, high, lacking


# Checks of a recording and a model before energy is computed from them.


def check_joints(model: EnergyModel, robot: RobotDescription) -> None:
    """Raise WrongRobotError for a model whose joints are not those of its robot."""
    if tuple(joint.name for joint in model.joints) != robot.joint_names:
        problem = f"its joints are not those of {robot.name}"
        remedy = "give a model of this robot, or identify it again"
        raise WrongRobotError(f"model of {model.robot}", problem, remedy)


def check_robot(path: str | Path, info: RecordingInfo, robot: RobotDescription) -> None:
    """Raise WrongRobotError for a recording that names another robot."""
    if info.robot is not None and info.robot != robot.name:
        problem = f"was recorded on a {info.robot}, not a {robot.name}"
        remedy = f"use a model of a {info.robot} (identify: --robot {info.robot}) or another bag"
        raise WrongRobotError(path, problem, remedy, field="robot")


UNLIKELY_FRICTION = 2.0
"""Friction of a session beyond the model's, in spreads between sessions and RMS over the joints,
that indicates another arm: up to 1.3 for a UR10e over months, 2 to 4 for another UR5e."""


def serials(model: EnergyModel, info: RecordingInfo) -> dict[str, str | None]:
    """Serial numbers of the arms of a model and of a recording, as in JSON output."""
    own = model.provenance.get("serial")
    return {"model": str(own) if own else None, "recording": info.serial or None}


SAME_DAY = 43_200.0
"""Time between two recordings that may be of one session, by a clock that ran on [s]."""
CONTINUED = 60.0
"""The same where the time of day is not known, the recording being the later one [s]: many
controllers' clocks begin with each start, so that other days have similar times."""
CLOCKS_APART = 5.0  # drift of the controller's clock from the host's within SAME_DAY [s]
_YEAR_2000 = 9.5e8


def is_same_session(model: EnergyModel, samples: Telemetry) -> bool:
    """Whether samples are of the session that a model's standby power was identified in.

    In it all of its recordings were made, and the controller was not started again since.
    """
    made = model.provenance
    if (
        model.bus.source != "bus_power"
        or same_serial(made.get("serial"), samples.info.serial) is False
    ):
        return False
    time = float(samples.time[0])
    stamp = samples.stamp
    bags = made.get("bags") or ()

    def follows(bag: Mapping[str, Any]) -> bool:
        if not bag.get("controller_time"):  # models of earlier versions
            return False
        begin, end = bag["controller_time"]
        near = max(begin - time, time - end) < SAME_DAY
        if stamp is None or not bag["host_time"]:
            return bool(near if time > _YEAR_2000 else 0.0 <= time - end < CONTINUED)
        passed = (
            1e-9 * float(stamp[0])
            - datetime.fromisoformat(bag["host_time"][0]).timestamp()
        )
        return bool(near and abs(passed - (time - begin)) < CLOCKS_APART)

    return bool(bags) and all(map(follows, bags))


class MatchedModel(NamedTuple):
    """A model for the arm of a recording."""

    model: EnergyModel
    # that it was identified on another arm; None where nothing shows that
    warning: str | None
    # whether serial numbers or stated torque constants show which arm it is
    decided: bool
    constants: ControllerConstants  # that the recording's controller states
    # whether these are the model's; None where they cannot be compared
    same_arm: bool | None
    # of the units of the fields that state them
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
    state (the arm's fingerprint) do. Another arm's model becomes one between its type's
    and its own, with the spread between arms. The torque constants are those of the arm
    at hand, wherever its controller states them. Where they differ on one arm, by its
    serial number or with `same_arm`, a joint or the control box was exchanged: only the
    constants are replaced.

    Args:
        model: generic, of the arm, or of another arm of the type.
        info: of the recording.
        constants: that the recording states; None where they are not known yet.
        same_arm: the arm is the same whatever serial numbers and constants are, as after
            an exchange of its control box or of a joint.
    """
    if constants is None:
        constants = ControllerConstants.unknown(model.dof)
    numbers = serials(model, info)
    of_serials = same_serial(*numbers.values())
    of_constants = _same_constants(model, constants)
    same = of_constants if of_serials is None else of_serials
    differing = _difference(model, constants) if of_constants is False else None
    warning = None
    if same is False and not same_arm:
        found = ["the recording is of another arm than the model"]
        if of_serials is False:
            arms = f"arm {numbers['model']}, the recording of arm {numbers['recording']}"
            found = [f"the model is of {arms}"]
        if differing is not None:
            found.append(differing)
        elif of_constants:
            found.append(
                "although its controller has the torque constants of the model's"
            )
        try:
            model = on_another_arm(model)
            intervals = "intervals are widened to the spread between arms"
        except ModelFileError:
            intervals = "its intervals do not contain the spread between arms"
        warning = (
            f"{', '.join(found)}: {intervals}; --same-arm if it is one arm, as with an exchanged "
            "control box or joint"
        )
    elif differing is not None:
        warning = (
            f"as after the exchange of a joint or of the control box, {differing}: those of the "
            "recording are used"
        )
    return MatchedModel(
        with_controller_constants(model, constants),
        warning,
        same_arm or same is not None,
        constants,
        of_constants,
    )


IDENTIFIED_CONSTANT_ERROR = 2.0
"""Error of an identified torque constant over its stated deviation, where it is the only one with
which that of a controller can be compared."""


def _same_constants(model: EnergyModel, constants: ControllerConstants) -> bool | None:
    """Whether stated torque constants are those of the model's arm; None where that is open.

    Identified constants are too uncertain to show that they are, but may show that they
    are not.
    """
    if is_generic(model):
        return None
    same = _constants_of(model).same_arm(constants)
    return None if same and model.controller_constants is None else same


def _constants_of(model: EnergyModel) -> ControllerConstants:
    """Torque constants of the model's arm: that its controller stated, else as identified [n].

    Unknown are those that come from the type, and those of a model that was learned while
    the arm of the present worked.
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
    return (
        f"its controller has {constants.torque_per_ampere[clearest]:.4g} N m/A for "
        f"{model.joints[clearest].name}, that of the model {own.torque_per_ampere[clearest]:.4g} "
        f"({100.0 * relative[clearest]:+.1f} %)"
    )


def doubt_about_arm(
    model: EnergyModel, session: Session, misfits: Sequence[str] = ()
) -> str | None:
    """A warning where friction or misfit show another arm; for what `model_of_arm` left undecided.

    The model is not widened; `misfits` are what else contradicts it, in words.
    """
    if is_generic(model):
        return None
    found = list(misfits)
    spread = model.sessions.friction_of(model.dof)
    moved = session.friction_std < spread
    if session.moving_seconds > 0 and moved.any():
        off = (session.friction_scale - 1.0) / np.where(moved, spread, np.inf)
        if np.sqrt(np.square(off).sum() / moved.sum()) > UNLIKELY_FRICTION:
            scales = ", ".join(f"{scale:.2f}" for scale in session.friction_scale)
            found.insert(0, f"friction is {scales} times the model's")
    if not found:
        return None
    return (
        f"this may be another arm than the model's (or another payload or mounting): "
        f"{'; '.join(found)}; intervals do not contain the spread between arms"
    )


def check_width(
    path: str | Path, batch: Telemetry, names: tuple[str, ...], dof: int
) -> None:
    """Raise MissingFieldError or RecordingError for a lacking field or another number of joints."""
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
    """Refuse a batch without these fields, with another number of joints, or impossible values.

    Values of these fields must be finite, those of all fields within what any arm can
    have.

    Raises:
        MissingFieldError, RecordingError: with the field at fault.
    """
    check_width(path, batch, names, dof)
    for name in names:
        values = batch[name]
        if not np.isfinite(values).all():
            row = int(np.argmin(np.isfinite(values).reshape(len(values), -1).all(axis=1)))
            problem = f"value at t = {batch.time[row]:.3f} s is not a finite number"
            remedy = "remove that part of the recording, or record again"
            raise RecordingError(path, problem, remedy, field=name)
    first = possible(batch)[2]
    if first is not None:
        raise RecordingError(
            path,
            f"value {first.value:.4g} at t = {batch.time[first.row]:.3f} s is impossible for "
            "any arm",
            "import the recording again, or remove that part",
            field=first.field,
        )
