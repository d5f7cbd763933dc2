"""What recordings leave open, in words: every prior that stands where data would tell more."""

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
"""Relative deviation from which a constant counts as not identifiable."""
_UNEXPLAINED = 0.8
"""R2 of a current while moving below which something stated is probably wrong."""
_MOUNTINGS = {
    "default": "are assumed, upright and without payload",
    "rtde": "are assumed upright and as recorded",
    "given": "are those stated",
}


def identifiability_warnings(
    model: EnergyModel, robot: RobotDescription, *, torque: bool, mounting: FoundMounting | None
) -> Iterator[str]:
    """Lines for the user, one for each thing that these recordings do not tell.

    Args:
        model: with the metrics of the recordings fitted.
        robot: its arm.
        torque: whether target_moment was recorded.
        mounting: as currents show it; None where they were not asked.
    """
    if mounting is not None and mounting.contradicted:
        vector = ", ".join(f"{value:.2f}" for value in mounting.setup.gravity)
        yield (
            "no target_moment recorded; currents show the base tilted by "
            f"{np.degrees(mounting.tilt):.0f} degrees from what was stated or assumed (gravity "
            f"{vector} m/s^2, payload {mounting.setup.payload.mass:.1f} kg); "
            + (
                "what --gravity and --payload state is used all the same: check it"
                if model.setup_source == "given"
                else "that is used, --gravity and --payload state what you know"
            )
        )
    elif not torque:
        yield (
            "no target_moment recorded: mounting and payload "
            f"{_MOUNTINGS.get(model.setup_source, model.setup_source)} (--gravity and --payload "
            "state others), motor inertias come from currents or are believed"
        )
    if not torque:
        yield from _misfit(model)
    yield from _inertias(model, robot)
    vague = np.array([j.std["torque_constant"] > _VAGUE * j.torque_constant for j in model.joints])
    if vague.any():
        yield (
            f"{_names(model, vague)}: torque constant not identifiable from these recordings (the "
            "links ask for too little torque); record target_moment or state it in the robot file"
        )
    if model.bus.source != "bus_power":
        yield from _supply(robot)


def _inertias(model: EnergyModel, robot: RobotDescription) -> Iterator[str]:
    believed = np.array([joint.source["reflected_inertia"] == "prior" for joint in model.joints])
    nominal = np.isfinite(robot.reflected_inertia)
    if (believed & nominal).any():
        yield (
            f"{_names(model, believed & nominal)}: motor inertia not told by the recordings; the "
            f"robot file's value stands, {_widths(model, believed & nominal)}"
        )
    if (believed & ~nominal).any():
        yield (
            f"{_names(model, believed & ~nominal)}: motor inertia not identifiable and not in the "
            f"robot file; a typical one stands, {_widths(model, believed & ~nominal)}"
        )


def _supply(robot: RobotDescription) -> Iterator[str]:
    yield (
        "no bus power recorded: winding resistances, driver losses and standby power are priors "
        "(source prior), so electrical energy is known to their wide intervals only"
    )
    silent = ~np.isfinite(robot.winding_resistance)
    if silent.any():
        value, spread = expected_resistance(robot)
        share = 100 * CONFIDENCE * float((spread / value)[silent].max())
        yield (
            f"robot file {robot.name} has no winding resistance: typical ones stand, "
            f"± {share:.0f} %"
        )


def _misfit(model: EnergyModel) -> Iterator[str]:
    for entry in model.fit:
        rows = entry["current"] or []
        poor = np.array([row["r2"] is not None and row["r2"] < _UNEXPLAINED for row in rows])
        if poor.any():
            yield (
                f"{entry['bag']}: {_names(model, poor)}: the model explains little of the current; "
                "is the arm mounted and loaded as assumed? State it with --gravity and --payload"
            )


def _names(model: EnergyModel, which: Mask | Sequence[bool]) -> str:
    return ", ".join(j.name for j, named in zip(model.joints, which, strict=True) if named)


def _widths(model: EnergyModel, which: Mask) -> str:
    shares = [
        100 * CONFIDENCE * joint.std["reflected_inertia"] / max(joint.reflected_inertia, 1e-9)
        for joint, named in zip(model.joints, which, strict=True)
        if named
    ]
    low, high = min(shares), max(shares)
    return f"± {high:.0f} %" if high - low < 1 else f"± {low:.0f} to {high:.0f} %"
