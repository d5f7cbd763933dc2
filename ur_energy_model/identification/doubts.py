# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Doubts about an identification, as lines for the user.

These are quantities that the recordings do not determine, payloads that the currents
contradict, and held-out recordings that do not validate the model.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ur_energy_model.consistency.contradiction import Contradiction
from ur_energy_model.energy.matched_model import serials
from ur_energy_model.energy.meter import CONFIDENCE
from ur_energy_model.identification.arm_fit import ArmFit
from ur_energy_model.identification.evaluation import Metrics
from ur_energy_model.identification.mounting_search import FoundMounting
from ur_energy_model.identification.payload_check import PayloadCheck
from ur_energy_model.identification.power_structures import expected_resistance
from ur_energy_model.identification.recording import Recording
from ur_energy_model.identification.visited_path import MOTION_WORDS
from ur_energy_model.model.between_arms import LITTLE_MOTION, MOTION, motion_error
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.telemetry.samples import same_serial
from ur_energy_model.typing import Array, Mask

DOUBTS = "payload_doubts"
"""Key in the provenance of a model: payloads that currents contradict, one line each."""

_VAGUE = 0.3
"""Relative standard deviation from which a constant counts as not identifiable."""
_UNEXPLAINED = (
    0.8  # R2 of a current in motion below which the stated setup is probably wrong
)
_MOUNTINGS = {
    "default": "are assumed, upright and without payload",
    "rtde": "are assumed upright and as recorded",
    "given": "are as stated",
}
"""Where mounting and payload come from without target_moment, by the source of the setup."""
_WHOLE = 0.99
"""Share of a recording that counts as all of it: steps between its parts are not
counted."""
_LONG = 570.0  # time from which minutes are stated without decimals [s]


def payload_doubts(model: EnergyModel) -> list[str]:
    """Payloads that the currents of the model's own recordings contradict, one line each."""
    stated: Any = model.provenance.get(DOUBTS)
    return [str(line) for line in stated] if isinstance(stated, list) else []


def contradicted_payloads(
    arm: ArmFit, checks: Sequence[PayloadCheck], *, replaced: bool
) -> tuple[Contradiction, ...]:
    """Contradictions between set payloads and the currents of the fitted recordings.

    Args:
        arm: the fit of these recordings.
        checks: check of the payload in each recording.
        replaced: whether the model is identified with the payloads that the currents
            show, in place of the set ones.
    """
    found = {
        check.source: check.contradiction(replaced=replaced)
        for check in arm.contradicted.values()
    }
    for check in checks:
        if check.contradicts and check.source not in found:
            found[check.source] = check.contradiction(replaced=False)
    return tuple(found.values())


def undetermined(model: EnergyModel, arm: ArmFit) -> Iterator[str]:
    """A line for each quantity that the recordings do not determine.

    Args:
        model: model as identified, with the metrics of the fitted recordings.
        arm: fit of the arm.
    """
    robot = arm.body.robot
    if arm.body.estimate is None:
        yield _without_target_moment(model, arm.mounting)
        yield from _unexplained_currents(model)
    motion = model.provenance[MOTION]
    if model.bus.source == "bus_power" and motion_error(model) > LITTLE_MOTION:
        yield (
            f"bus power shows {motion['energy']:.0f} J of motion in {motion['seconds']:.1f} s, "
            f"known to {100 * motion_error(model):.0f} %: losses of the drives are hardly more "
            "certain than those of the type; record more motion"
        )
    yield from _inertias(model, robot)
    yield from _torque_constants(model)
    if model.bus.source != "bus_power":
        yield from _without_bus_power(robot)


def _without_target_moment(model: EnergyModel, mounting: FoundMounting | None) -> str:
    """The mounting that is used where target_moment was not recorded."""
    if mounting is None or not mounting.contradicted:
        source = model.setup_source
        return (
            "no target_moment recorded: mounting and payload "
            f"{_MOUNTINGS.get(source, source)} (others: --gravity and --payload), motor inertias "
            "come from currents or priors"
        )
    vector = ", ".join(f"{value:.2f}" for value in mounting.setup.gravity)
    used = "that is used; state it with --gravity and --payload"
    if model.setup_source == "given":
        used = (
            "the setup stated with --gravity and --payload is used all the same: check it"
        )
    return (
        "no target_moment recorded; currents show the base tilted by "
        f"{np.degrees(mounting.tilt):.0f} degrees from what was stated or assumed (gravity "
        f"{vector} m/s^2, payload {mounting.setup.payload.mass:.1f} kg); {used}"
    )


def _unexplained_currents(model: EnergyModel) -> Iterator[str]:
    """Fitted recordings with joints whose currents in motion the model hardly explains."""
    for entry in model.fit:
        r2 = np.array([row["r2"] for row in entry["current"] or []], dtype=float)
        poor = r2 < _UNEXPLAINED
        if poor.any():
            yield (
                f"{entry['bag']}: {_names(model, poor)}: the model explains little of the "
                "current; is the arm mounted and loaded as assumed? State both with --gravity and "
                "--payload"
            )


def _inertias(model: EnergyModel, robot: RobotDescription) -> Iterator[str]:
    """Joints whose inertia is only a prior, with its interval."""
    joints = model.joints
    prior = np.array([joint.source["reflected_inertia"] == "prior" for joint in joints])
    value = np.array([joint.reflected_inertia for joint in joints])
    std = np.array([joint.std["reflected_inertia"] for joint in joints])
    relative = std / np.maximum(value, 1e-9)
    nominal = np.isfinite(robot.reflected_inertia)
    kinds = (
        (prior & nominal, "; the robot file's value is used"),
        (prior & ~nominal, " and not in the robot file; a typical one is used"),
    )
    for which, words in kinds:
        if which.any():
            yield (
                f"{_names(model, which)}: motor inertia not identifiable{words}, "
                f"± {_range_of_intervals(relative[which])} %"
            )


def _range_of_intervals(relative: Array) -> str:
    """Half widths of 95 % intervals [%] from relative deviations: one number, or a range."""
    low = 100 * CONFIDENCE * relative.min()
    high = 100 * CONFIDENCE * relative.max()
    if high - low < 1:
        return f"{high:.0f}"
    return f"{low:.0f} to {high:.0f}"


def _torque_constants(model: EnergyModel) -> Iterator[str]:
    """Joints whose torque constant the recordings hardly show."""
    constant = np.array([joint.torque_constant for joint in model.joints])
    std = np.array([joint.std["torque_constant"] for joint in model.joints])
    vague = std > _VAGUE * constant
    if vague.any():
        yield (
            f"{_names(model, vague)}: torque constant not identifiable from these recordings (the "
            "links need too little torque); record target_moment or add it to the robot file"
        )


def _without_bus_power(robot: RobotDescription) -> Iterator[str]:
    """Priors that are used where bus power was not recorded."""
    yield (
        "no bus power recorded: winding resistances, driver losses and standby power are "
        "priors (source prior), so electrical energy has wide intervals"
    )
    missing = ~np.isfinite(robot.winding_resistance)
    if missing.any():
        value, spread = expected_resistance(robot)
        share = 100 * CONFIDENCE * float((spread / value)[missing].max())
        yield (
            f"robot file {robot.name} has no winding resistance: typical ones are used, "
            f"± {share:.0f} %"
        )


def _names(model: EnergyModel, which: Mask) -> str:
    """Names of some of the joints [n], separated by commas."""
    names = np.array([joint.name for joint in model.joints])
    return ", ".join(names[which].tolist())


def not_validating(
    model: EnergyModel, held_out: Sequence[Recording], validation: Sequence[Metrics]
) -> Iterator[str]:
    """A line for each held-out recording that does not validate the model.

    Args:
        model: model as identified.
        held_out: recordings that were not fitted.
        validation: metrics of the held-out recordings.
    """
    for recording in held_out:
        known = serials(model, recording.info)
        if same_serial(known["model"], known["recording"]) is False:
            yield (
                f"{recording.path} is of arm {known['recording']}, the fitted recordings of "
                f"arm {known['model']}: it does not validate the model"
            )
    for metrics in validation:
        if metrics.motion in ("fitted", "same motion again"):
            yield f"{metrics.bag}: {MOTION_WORDS[metrics.motion]}"


def note_of_used_time(recording: Recording) -> Iterator[str]:
    """A line for a recording of which the fits use only a part; none for others."""
    kept = recording.kept
    whole = recording.duration
    if kept is not None and kept.samples < _WHOLE * whole:
        yield (
            f"{recording.path}: uses {_minutes(kept.motions)} of {_minutes(whole)} minutes for "
            f"torque constants and friction, {_minutes(kept.samples)} for the bus capacitor "
            "and the errors of the fit: parts spread over the recording and those with the "
            "most varied motion and temperature; standby and winding losses use all of it"
        )


def _minutes(seconds: float) -> str:
    """A time [s] in minutes, with a decimal if it is short."""
    digits = 0 if seconds >= _LONG else 1
    return f"{seconds / 60.0:.{digits}f}"
