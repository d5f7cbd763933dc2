"""Checks of a recording and a model before energy is computed from them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ur_energy_model.errors import ModelFileError, RecordingError, WrongRobotError
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.generic import is_generic, on_another_arm
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.sessions import Session
from ur_energy_model.telemetry.arm_identity import same_serial
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


UNLIKELY_FRICTION = 2.0
"""Friction of a session beyond the model's, in spreads between sessions and RMS over the joints,
that indicates another arm: up to 1.3 for a UR10e over months, 2 to 4 for another UR5e."""


def serials(model: EnergyModel, info: RecordingInfo) -> dict[str, str | None]:
    """Serial numbers of the arms of a model and of a recording, as in JSON output."""
    own = model.provenance.get("serial")
    return {"model": str(own) if own else None, "recording": info.serial or None}


def model_of_arm(
    model: EnergyModel, info: RecordingInfo, *, same_arm: bool = False
) -> tuple[EnergyModel, str | None]:
    """A model for the arm of a recording, and a warning where it was identified on another one.

    The intervals of a model of another serial number contain the spread between arms.

    Args:
        model: as it was identified.
        info: of the recording.
        same_arm: the arm is the same whatever the serial numbers are, as after an exchange of its
            control box.
    """
    known = serials(model, info)
    if same_arm or same_serial(*known.values()) is not False:
        return model, None
    try:
        model = on_another_arm(model)
        intervals = "intervals are widened to the spread between arms"
    except ModelFileError:
        intervals = "its intervals do not contain the spread between arms"
    return model, (
        f"the model is of arm {known['model']}, the recording of arm {known['recording']}: "
        f"{intervals}; --same-arm if it is one arm, as with an exchanged control box"
    )


def doubt_about_arm(
    model: EnergyModel, info: RecordingInfo, session: Session, misfits: Sequence[str] = ()
) -> str | None:
    """A warning where serial numbers do not say it, but friction or misfit show another arm.

    Args:
        model: of the arm, not widened.
        info: of the recording.
        session: of the recording.
        misfits: what else contradicts the model, in words.
    """
    if is_generic(model) or same_serial(*serials(model, info).values()) is not None:
        return None
    found, spread = list(misfits), model.sessions.friction_of(model.dof)
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
