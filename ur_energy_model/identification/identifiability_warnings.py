"""Warnings about what the recordings do not determine: priors used in place of data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ur_energy_model.energy.meter import CONFIDENCE
from ur_energy_model.identification.dynamics.mounting_search import FoundMounting
from ur_energy_model.identification.power.power_structures import expected_resistance
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.typing import Mask

_VAGUE = 0.3
"""Relative standard deviation from which a constant counts as not identifiable."""
_UNEXPLAINED = 0.8
"""R2 of a current in motion below which the stated setup is probably wrong."""
_MOUNTINGS = {
    "default": "are assumed, upright and without payload",
    "rtde": "are assumed upright and as recorded",
    "given": "are as stated",
}


def identifiability_warnings(
    model: EnergyModel, robot: RobotDescription, *, torque: bool, mounting: FoundMounting | None
) -> Iterator[str]:
    """Lines for the user, one for each quantity that these recordings do not determine.

    Args:
        model: with the metrics of the fitted recordings.
        robot: its arm.
        torque: whether target_moment was recorded.
        mounting: searched in the currents; None where it was not.
    """
    if mounting is not None and mounting.contradicted:
        vector = ", ".join(f"{value:.2f}" for value in mounting.setup.gravity)
        yield (
            "no target_moment recorded; currents show the base tilted by "
            f"{np.degrees(mounting.tilt):.0f} degrees from what was stated or assumed (gravity "
            f"{vector} m/s^2, payload {mounting.setup.payload.mass:.1f} kg); "
            + (
                "the setup stated with --gravity and --payload is used all the same: check it"
                if model.setup_source == "given"
                else "that is used; state what you know with --gravity and --payload"
            )
        )
    elif not torque:
        yield (
            "no target_moment recorded: mounting and payload "
            f"{_MOUNTINGS.get(model.setup_source, model.setup_source)} (others: --gravity and "
            "--payload), motor inertias come from currents or priors"
        )
    if not torque:
        yield from _poor_fits(model)
    yield from _inertias(model, robot)
    vague = np.array([j.std["torque_constant"] > _VAGUE * j.torque_constant for j in model.joints])
    if vague.any():
        yield (
            f"{_names(model, vague)}: torque constant not identifiable from these recordings (the "
            "links need too little torque); record target_moment or add it to the robot file"
        )
    if model.bus.source != "bus_power":
        yield from _supply(robot)


def _inertias(model: EnergyModel, robot: RobotDescription) -> Iterator[str]:
    prior = np.array([joint.source["reflected_inertia"] == "prior" for joint in model.joints])
    nominal = np.isfinite(robot.reflected_inertia)
    if (prior & nominal).any():
        yield (
            f"{_names(model, prior & nominal)}: motor inertia not identifiable; the robot "
            f"file's value is used, {_intervals(model, prior & nominal)}"
        )
    if (prior & ~nominal).any():
        yield (
            f"{_names(model, prior & ~nominal)}: motor inertia not identifiable and not in the "
            f"robot file; a typical one is used, {_intervals(model, prior & ~nominal)}"
        )


def _supply(robot: RobotDescription) -> Iterator[str]:
    yield (
        "no bus power recorded: winding resistances, driver losses and standby power are priors "
        "(source prior), so electrical energy has wide intervals"
    )
    missing = ~np.isfinite(robot.winding_resistance)
    if missing.any():
        value, spread = expected_resistance(robot)
        share = 100 * CONFIDENCE * float((spread / value)[missing].max())
        yield (
            f"robot file {robot.name} has no winding resistance: typical ones are used, "
            f"± {share:.0f} %"
        )


def _poor_fits(model: EnergyModel) -> Iterator[str]:
    for entry in model.fit:
        rows = entry["current"] or []
        poor = np.array([row["r2"] is not None and row["r2"] < _UNEXPLAINED for row in rows])
        if poor.any():
            yield (
                f"{entry['bag']}: {_names(model, poor)}: the model explains little of the current; "
                "is the arm mounted and loaded as assumed? State both with --gravity and --payload"
            )


def _names(model: EnergyModel, which: Mask | Sequence[bool]) -> str:
    return ", ".join(j.name for j, named in zip(model.joints, which, strict=True) if named)


def _intervals(model: EnergyModel, which: Mask) -> str:
    shares = [
        100 * CONFIDENCE * joint.std["reflected_inertia"] / max(joint.reflected_inertia, 1e-9)
        for joint, named in zip(model.joints, which, strict=True)
        if named
    ]
    low, high = min(shares), max(shares)
    return f"± {high:.0f} %" if high - low < 1 else f"± {low:.0f} to {high:.0f} %"
