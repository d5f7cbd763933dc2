"""Checks of a recording and a model before energy is computed from them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ur_energy_model.errors import RecordingError, WrongRobotError
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.telemetry.plausibility import possible
from ur_energy_model.telemetry.samples import RecordingInfo, Telemetry


def check_joints(model: EnergyModel, robot: RobotDescription) -> None:
    """Refuse a model whose joints are not those of its robot.

    Raises:
        WrongRobotError: names both.
    """
    if tuple(joint.name for joint in model.joints) != robot.joint_names:
        raise WrongRobotError(
            f"model of {model.robot}",
            f"its joints are not those of {robot.name}",
            "give a model of this robot, or identify it again",
        )


def check_robot(path: str | Path, info: RecordingInfo, robot: RobotDescription) -> None:
    """Refuse a recording of another robot.

    Raises:
        WrongRobotError: the recording names another robot.
    """
    if info.robot is not None and info.robot != robot.name:
        raise WrongRobotError(
            path,
            f"was recorded on a {info.robot}, not a {robot.name}",
            f"use a model of a {info.robot} (identify: --robot {info.robot}) or another bag",
            field="robot",
        )


def check_width(path: str | Path, batch: Telemetry, names: tuple[str, ...], dof: int) -> None:
    """Refuse a batch without these fields, or of another number of joints.

    Raises:
        MissingFieldError, RecordingError: with the field at fault.
    """
    batch.require(*names, purpose="identification")
    for name in names:
        values = batch[name]
        if values.ndim == 2 and values.shape[1] != dof:
            raise RecordingError(
                path,
                f"has {values.shape[1]} joints, the robot {dof}",
                "use the robot, or a model of the robot, that was recorded",
                field=name,
            )


def check_batch(path: str | Path, batch: Telemetry, names: tuple[str, ...], dof: int) -> None:
    """Refuse a batch without these fields, with another number of joints, or impossible values.

    Values of these fields must be finite, those of all fields within what any arm can have.

    Raises:
        MissingFieldError, RecordingError: with the field at fault.
    """
    check_width(path, batch, names, dof)
    for name in names:
        values = batch[name]
        if not np.isfinite(values).all():
            row = int(np.argmin(np.isfinite(values).reshape(len(values), -1).all(axis=1)))
            raise RecordingError(
                path,
                f"value at t = {batch.time[row]:.3f} s is not a finite number",
                "remove that part of the recording, or record again",
                field=name,
            )
    first = possible(batch)[2]
    if first is not None:
        raise RecordingError(
            path,
            f"value {first.value:.4g} at t = {batch.time[first.row]:.3f} s is impossible for "
            "any arm",
            "import the recording again, or remove that part",
            field=first.field,
        )
