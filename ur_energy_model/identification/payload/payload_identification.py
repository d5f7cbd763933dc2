"""Payload identification from bags: mounting from target_moment, payload from motor currents."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ur_energy_model.energy.recording_checks import serials
from ur_energy_model.errors import IdentificationError
from ur_energy_model.identification.dynamics.dynamics_estimate import estimate_dynamics
from ur_energy_model.identification.evaluation.evaluation import ANOTHER_ARM
from ur_energy_model.identification.payload.payload_estimate import PayloadEstimate
from ur_energy_model.identification.payload.payload_fit import PayloadFit
from ur_energy_model.identification.payload.payload_priors import REPEATABLE
from ur_energy_model.identification.recording import Recording
from ur_energy_model.identification.recording_reader import read_recording
from ur_energy_model.identification.regression.narrow_filter import NarrowFilter
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.payload_calibration import PayloadCalibration
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.telemetry.arm_identity import same_serial
from ur_energy_model.typing import Array, Progress


@dataclass(frozen=True)
class IdentifiedPayload:
    """Result of a payload identification from a bag.

    Attributes:
        estimate: from the motor currents.
        gravity: in the base frame [3], m/s^2, as used.
        gravity_source: "estimated" from the bag's target_moment, or "model".
        told_mass: payload set in the controller, from target_moment [kg]; NaN where unknown.
        warnings: for the user, one line each.
    """

    estimate: PayloadEstimate
    gravity: Array
    gravity_source: str
    told_mass: float
    warnings: tuple[str, ...]


def identify_payload(
    model: EnergyModel,
    bag: str | Path,
    *,
    robot: RobotDescription | None = None,
    known_mass: float | None = None,
    empty: str | Path | None = None,
    progress: Progress | None = None,
) -> IdentifiedPayload:
    """Payload identification from the motor currents of a bag.

    Args:
        model: of the same arm.
        bag: rosbag2 directory.
        robot: description of the arm, by default the one named in the model.
        known_mass: where it is known [kg]; calibrates the drives.
        empty: bag of the same arm that defines the empty flange; the payload is what is added
            to it.
        progress: called with fraction and text.

    Raises:
        UrEnergyError: a bag or the known mass cannot be used.
    """
    description = model.description(robot)
    calibration: PayloadCalibration | None = None
    warnings: tuple[str, ...] = ()
    if empty is not None:
        without = _identified(model, empty, description, empty=True, progress=progress)
        calibration = without.estimate.calibration
        warnings = without.warnings
    found = _identified(
        model, bag, description, known_mass=known_mass, calibration=calibration, progress=progress
    )
    return replace(found, warnings=(*warnings, *found.warnings))


def _identified(
    model: EnergyModel,
    bag: str | Path,
    description: RobotDescription,
    *,
    known_mass: float | None = None,
    empty: bool = False,
    calibration: PayloadCalibration | None = None,
    progress: Progress | None = None,
) -> IdentifiedPayload:
    with closing(read_recording(bag, description, progress=progress)) as recording:
        recording.quality.require_usable()
        if len(recording.quality.payloads) > 1:
            masses = ", ".join(f"{mass:g}" for mass in recording.quality.payloads)
            raise IdentificationError(
                f"{bag}: the payload changes within the bag ({masses} kg by RTDE); split it into "
                "bags with one payload each"
            )
        gravity, source, told = _mounting(recording, description, model)
        fit = PayloadFit(
            model, description, gravity, known_mass=known_mass, empty=empty, calibration=calibration
        )
        estimate = fit.estimate(recording.motions(), NarrowFilter(recording.cutoff))
        known = serials(model, recording.info)
        warnings = [*_arm_warnings(bag, estimate.misfit, known["model"], known["recording"])]
        if not warnings and known_mass is None and not empty and np.isfinite(told):
            least = REPEATABLE * float(description.mass.sum())
            warnings += _payload_warnings(bag, estimate, told, least)
        return IdentifiedPayload(estimate, gravity, source, told, tuple(warnings))


def _arm_warnings(
    bag: str | Path, misfit: float, model: str | None, recorded: str | None
) -> Iterator[str]:
    """Where the model is not one of the arm, or no longer fits it."""
    same = same_serial(model, recorded)
    if same is False:
        yield (
            f"{bag}: the model is of arm {model}, the recording of arm {recorded}, so do not trust "
            "the mass; use a model of this very arm"
        )
    elif misfit > ANOTHER_ARM:
        remedy = "identify it again, from more motion" if same else "use a model of this very arm"
        yield (
            f"{bag}: the model's error is {misfit:.0f} times that in the recordings it was "
            f"identified from, so do not trust the mass; {remedy}"
        )


def _payload_warnings(
    bag: str | Path, estimate: PayloadEstimate, told: float, least: float
) -> Iterator[str]:
    """Where the currents contradict the payload set in the controller.

    Args:
        bag: recording.
        estimate: of its payload.
        told: mass set in the controller [kg]; NaN where unknown.
        least: smallest difference that counts [kg].
    """
    (low, high), told = estimate.interval, max(told, 0.0)
    interval = f"({low:.2f} to {high:.2f} kg with 95 % confidence)"
    found = max(estimate.shown_mass, 0.0)
    if high < -least:
        yield (
            f"{bag}: the currents are lower than those of the bare arm, as with "
            f"{estimate.shown_mass:.2f} kg {interval}: mounting, robot file or model do not fit "
            "this arm; identify it again"
        )
    elif not low <= told <= high and abs(found - told) > least:
        yield (
            f"{bag}: the currents show {found:.2f} kg {interval}, but the controller computes with "
            f"{told:.2f} kg; check the payload and set the right one in the controller "
            "(set_payload)"
        )


def payload_difference(
    model: EnergyModel,
    loaded: str | Path,
    unloaded: str | Path,
    *,
    progress: Progress | None = None,
) -> tuple[float, float]:
    """Mass added to the flange between two runs of one trajectory (Machines 2024, sec. 5).

    Model errors of links and friction are the same in both runs and cancel.

    Args:
        model: of the same arm.
        loaded: bag with the mass on the flange.
        unloaded: bag of the same motion without it.
        progress: called with fraction and text.

    Returns:
        mass and standard deviation [kg].

    Raises:
        UrEnergyError: a bag cannot be used.
    """
    found = identify_payload(model, loaded, empty=unloaded, progress=progress).estimate
    return found.shown_mass, found.mass_std


def _mounting(
    recording: Recording, robot: RobotDescription, model: EnergyModel
) -> tuple[Array, str, float]:
    """Gravity [3], m/s^2, its source, and the payload mass in target_moment [kg] (NaN: unknown)."""
    if recording.torque_reference == "none":
        return model.setup.gravity, "model", float("nan")
    found = estimate_dynamics(recording.torque_telemetry(), robot, configured=None).recordings[0]
    told = found.setup.payload.mass if found.mass_std < 0.1 else float("nan")
    if found.setup_source != "estimated":
        return model.setup.gravity, "model", told
    return found.setup.gravity, "estimated", told
