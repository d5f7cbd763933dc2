# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The payload of an arm from the motor currents of a bag, and doubts about the one that was set."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ur_energy_model.consistency.contradiction import Contradiction
from ur_energy_model.energy.matched_model import serials
from ur_energy_model.energy.meter import CONFIDENCE
from ur_energy_model.errors import IdentificationError, InputError
from ur_energy_model.identification.dynamics import estimate_dynamics
from ur_energy_model.identification.evaluation import ANOTHER_ARM
from ur_energy_model.identification.filtered_motion import ParallelFilter
from ur_energy_model.identification.payload_fit import (
    REPEATABLE,
    PayloadEstimate,
    estimate_payload,
)
from ur_energy_model.identification.recording import Recording, read_recording
from ur_energy_model.model.drive_errors import LOAD_COEFFICIENT
from ur_energy_model.model.energy_model import (
    EnergyModel,
    PayloadCalibration,
)
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.setup import Payload
from ur_energy_model.telemetry.samples import same_serial
from ur_energy_model.typing import Array, Progress

_KNOWN_MASS = 0.1
"""Standard deviation of a mass from target_moment below which the set mass is known [kg]."""


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

    Args:
        model: model of the arm.
        bag: folder of a bag, or an .mcap file.
        robot: description of the arm; None for the arm named in the model.
        known_mass: mass of the payload [kg], which calibrates the drives; None where it
            is not known.
        empty: bag of the same arm that defines the empty flange; the payload is what is
            added to it, so that errors of links and friction, the same in both runs,
            cancel (Machines 2024, sec. 5).
        progress: called with the finished share and the current step.

    Raises:
        UrEnergyError: a bag or the known mass cannot be used.
    """
    if known_mass is not None and not 0 < known_mass < 1000:
        raise InputError(
            "--known-payload", f"{known_mass:g} kg", "give a mass above zero"
        )
    described = model.description(robot)
    runs: list[tuple[str | Path, float | None]] = [(bag, known_mass)]
    if empty is not None:
        runs.insert(0, (empty, 0.0))  # a mass of 0 stands for an empty flange
    calibration: PayloadCalibration | None = None
    warnings = list[str]()
    contradictions = list[Contradiction]()
    for path, mass in runs:
        with read_recording(path, described, progress=progress) as recording:
            _require_one_payload(recording)
            mounting = _mounting(model, described, recording)
            found = estimate_payload(
                model,
                described,
                mounting.gravity,
                recording.motions,
                ParallelFilter(recording.cutoff),
                known_mass=mass,
                calibration=calibration,
            )
            calibration = found.calibration
            least = REPEATABLE * float(described.mass.sum())
            known = serials(model, recording.info)
            # The mass of an empty or a known payload need not be set in the controller.
            compared = mounting.controller_mass if mass is None else float("nan")
            for doubt in _doubts(path, found, known, compared, least):
                if isinstance(doubt, Contradiction):
                    contradictions.append(doubt)
                    warnings.append(doubt.words())
                else:
                    warnings.append(doubt)
    return replace(
        found,
        gravity_source=mounting.source,
        controller_mass=mounting.controller_mass,
        warnings=tuple(warnings),
        contradictions=tuple(contradictions),
    )


def _require_one_payload(recording: Recording) -> None:
    """Refuse a recording that cannot be used, or whose payload changes.

    Raises:
        IdentificationError: the recording cannot be used, or its payload changes.
    """
    recording.quality.require_usable()
    if len(recording.quality.payloads) > 1:
        masses = ", ".join(f"{mass:g}" for mass in recording.quality.payloads)
        raise IdentificationError(
            f"{recording.path}: the payload changes within the bag ({masses} kg by RTDE); split it "
            "into bags with one payload each"
        )


class _Mounting(NamedTuple):
    """Mounting of a recording, and the payload that its controller computes with.

    Attributes:
        gravity: gravity in the base frame [3], m/s^2.
        source: "estimated" from target_moment, or "model".
        controller_mass: payload set in the controller [kg]; NaN if unknown.
    """

    gravity: Array
    source: str
    controller_mass: float


def _mounting(
    model: EnergyModel, robot: RobotDescription, recording: Recording
) -> _Mounting:
    """The mounting that target_moment shows, else the model's mounting."""
    gravity = model.setup.gravity
    source = "model"
    controller_mass = float("nan")
    if recording.torque_reference != "none":
        estimate = estimate_dynamics(recording.torque_telemetry(), robot)
        found = estimate.recordings[0]
        if found.mass_std < _KNOWN_MASS:
            controller_mass = found.setup.payload.mass
        if found.setup_source == "estimated":
            gravity = found.setup.gravity
            source = "estimated"
    return _Mounting(gravity, source, controller_mass)


def with_torque_constants(model: EnergyModel, estimate: PayloadEstimate) -> EnergyModel:
    """The model with the torque constants of a payload estimate.

    Friction was identified in amperes and scales with them. The calibration of links and
    drives is kept for later payload identifications.
    """
    joints = []
    values = estimate.torque_constants.tolist()
    deviations = estimate.torque_constants_std.tolist()
    for joint, value, std in zip(model.joints, values, deviations, strict=True):
        scale = value / joint.torque_constant
        parameters = {
            name: scale * old for name, old in joint.friction.parameters.items()
        }
        covariance = joint.current_covariance.copy()
        if joint.load_variance > 0:
            factor = std / value**2 / np.sqrt(joint.load_variance)
            covariance[LOAD_COEFFICIENT] *= factor
            covariance[:, LOAD_COEFFICIENT] *= factor
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


class ShownPayload(NamedTuple):
    """The payload that the currents of a recording show.

    Attributes:
        mass: mass without constraint [kg]; below zero by errors, and of a wrong mounting
            or arm.
        std: standard deviation of the mass [kg].
        least: smallest difference of two masses that counts [kg].
        payload: payload that is physically possible, with its centre of mass.
    """

    mass: float
    std: float
    least: float
    payload: Payload = Payload()

    @property
    def interval(self) -> tuple[float, float]:
        """95 % interval of the mass [kg]."""
        half = CONFIDENCE * self.std
        return self.mass - half, self.mass + half


def contradiction_of_payload(
    stated: float, shown: ShownPayload, *, by_user: bool = False, source: str | Path = ""
) -> Contradiction:
    """The contradiction between the payload that was set, or stated by the user, and the currents.

    Args:
        stated: mass that was set or stated [kg].
        shown: what the currents show.
        by_user: whether the user stated the mass, not the controller.
        source: recording that the contradiction names; empty to name none.
    """
    mass = max(shown.mass, 0.0)
    low, high = shown.interval
    who = "the controller computes with"
    remedy = (
        f"set {mass:.2f} kg in the controller (set_payload) and record again; until then "
        "energies that follow from the motion, as those of optimize and predict, are off"
    )
    if by_user:
        who = "--payload states"
        remedy = f"give --payload {mass:.2f}, or none"
    if source:
        who = f"{source}: {who}"
    return Contradiction(
        subject="payload",
        stated=f"{who} a payload of {max(stated, 0.0):.2f} kg",
        shown=f"the motor currents show {mass:.2f} kg",
        evidence=f"{low:.2f} to {high:.2f} kg with 95 % confidence",
        remedy=remedy,
    )


def _doubts(
    bag: str | Path,
    estimate: PayloadEstimate,
    known: dict[str, str | None],
    in_controller: float,
    least: float,
) -> Iterator[str | Contradiction]:
    """Whether the model is of another arm or does not fit, or another payload was set.

    Args:
        bag: the recording.
        estimate: estimated payload.
        known: serial numbers of model and recording.
        in_controller: mass set in the controller [kg]; NaN where it is not compared.
        least: smallest difference that counts [kg].
    """
    same = same_serial(known["model"], known["recording"])
    unexplained = float(np.nan_to_num(estimate.misfit)) / ANOTHER_ARM
    if same is False:
        yield (
            f"{bag}: the model is of arm {known['model']}, the recording of arm "
            f"{known['recording']}, so do not trust the mass; use a model of this very arm"
        )
        return
    # What the model does not explain of its own arm makes the payload as much less
    # certain.
    shown = ShownPayload(
        estimate.shown_mass,
        estimate.mass_std * max(unexplained, 1.0),
        least,
        estimate.payload,
    )
    low, high = shown.interval
    found = max(shown.mass, 0.0)
    set_mass = max(in_controller, 0.0)
    compared = not np.isnan(in_controller) and (same is True or unexplained <= 1.0)
    if compared and high < -least:
        yield (
            f"{bag}: the currents are lower than those of the bare arm, as with {shown.mass:.2f} "
            f"kg ({low:.2f} to {high:.2f} kg with 95 % confidence): mounting, robot file or model "
            "do not fit this arm; identify it again"
        )
    elif compared and not low <= set_mass <= high and abs(found - set_mass) > least:
        yield contradiction_of_payload(set_mass, shown, source=bag)
    if unexplained > 1.0:
        remedy = "use a model of this very arm"
        if same:
            remedy = "identify it again, from more motion"
        yield (
            f"{bag}: the model's error is {estimate.misfit:.0f} times that in the recordings it "
            f"was identified from, so do not trust the mass; {remedy}"
        )
