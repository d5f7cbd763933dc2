# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Checks of telemetry before energy is computed from it: limits of an arm, and usable samples."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ur_energy_model.energy.operating_conditions import PAYLOAD
from ur_energy_model.errors import RecordingError
from ur_energy_model.model.robots import RobotDescription
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
    Telemetry,
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
    if not rated < MOST_POWER:  # unknown torques are infinite or NaN
        return MOST_POWER
    return max(3.0 * rated, 2000.0)


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
    # Of an arm with unknown gears, currents may be given per turn of the joint.
    of_any_arm = np.where(robot.gear_ratio > 1, 200.0, CURRENT)
    current = np.where(unknown, of_any_arm, np.maximum(current, 20.0))
    farthest = np.abs(robot.middle_position) + robot.max_position
    position = np.maximum(POSITION, 2 * farthest)
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
        if current is None:
            required = (*ALWAYS, *MOTION)
            optional = OPTIONAL
        else:
            # Powers follow from currents and speeds; positions are only shown.
            required = ALWAYS
            optional = (*OPTIONAL, "actual_q")
        names = [name for name in (*required, *optional) if name in columns]
        # Number of values of each field in a sample.
        widths = {"timestamp": 1, **{name: columns[name][:1].size for name in names}}
        if current is not None:
            widths["actual_current"] = current.shape[1]
        lows = []
        highs = []
        may_lack = []
        for name, width in widths.items():
            low, high = self._limits[name]
            lows.append(np.broadcast_to(low, width))
            highs.append(np.broadcast_to(high, width))
            may_lack.append(np.full(width, name in optional))
        return _Checked(
            names=names,
            low=np.concatenate(lows),
            high=np.concatenate(highs),
            optional=np.concatenate(may_lack),
        )


# Checks of a batch of a recording.


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
