"""Estimate of mounting, payload and reflected motor inertia from target_moment.

target_moment is the controller's own inverse dynamics, mounting and configured payload included
(Clochiatti et al. 2024, eq. 2 and 7-9), so gravity vector, payload and reflected inertias follow
from it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ur_energy_model.errors import IdentificationError
from ur_energy_model.identification.dynamics.arm_solution import SetupSolution
from ur_energy_model.identification.dynamics.reference_blocks import reference_blocks
from ur_energy_model.identification.dynamics.reflected_inertia import expected_inertia
from ur_energy_model.identification.dynamics.setup_unknowns import GRAVITY_STD, MASS_STD
from ur_energy_model.identification.dynamics.stated_setup import (
    StatedSetup,
    constant_payloads,
    stated_setup,
)
from ur_energy_model.identification.dynamics.target_moment_solver import TargetMomentSolver
from ur_energy_model.identification.dynamics.torque_columns import TorqueColumns
from ur_energy_model.identification.dynamics.torque_information import TorqueInformation
from ur_energy_model.model.link_tensors import LinkTensors
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.setup import Setup
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.typing import Array, Mask

_IDENTIFIED = 0.05
"""Relative standard deviation below which an inertia counts as identified."""

_SOURCE_WORDS = {"default": "assumed", "rtde": "recorded", "configured": "configured"}


@dataclass(frozen=True)
class EstimatedSetup:
    """Mounting and payload of one recording, or of its stretches with one payload.

    Attributes:
        source: bag or file.
        stated: as configured or recorded.
        setup: estimate.
        setup_source: "estimated" where target_moment determines it, else the source of `stated`.
        gravity_std, mass_std, center_std: standard deviations [3] m/s^2, kg, [3] m.
        delay: of target_moment behind the motion it belongs to [s]. With recorded targets the
            position is older: target_moment = f(target_q - delay * target_qd, ...).
        reference: "target" where recorded targets were used, "actual" where filtered measurement.
        rms: torque residual per joint [n], N m.
        r2: coefficient of determination per joint [n]; NaN for a torque that never changes.
        samples: number of samples used.
        warnings: differences from the stated setup, one line each.
    """

    source: str
    stated: StatedSetup
    setup: Setup
    setup_source: str
    gravity_std: Array
    mass_std: float
    center_std: Array
    delay: float
    reference: str
    rms: Array
    r2: Array
    samples: int
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class DynamicsEstimate:
    """Setups of the recordings and reflected inertia of the arm.

    Attributes:
        setup, setup_source: of the recording with the most samples.
        reflected_inertia: motor and reducer, joint side [n], kg m^2.
        std: standard deviation [n], correlated residuals allowed for.
        identified: [n]; False where the joint hardly moved and its prior is kept.
        link_tensors: identified instead of the robot file's, None unless requested. Reflected
            inertias and setups refer to them.
        recordings: one entry per recording, or several where its payload changes.
        rms: torque residual per joint over all recordings [n], N m.
        r2: coefficient of determination per joint [n].
        warnings: for the user, one line each.
    """

    setup: Setup
    setup_source: str
    reflected_inertia: Array
    std: Array
    identified: Mask
    link_tensors: LinkTensors | None
    recordings: tuple[EstimatedSetup, ...]
    rms: Array
    r2: Array
    warnings: tuple[str, ...]


def estimate_dynamics(
    recordings: Iterable[Telemetry],
    robot: RobotDescription,
    *,
    configured: Setup | None = None,
    identify_tensors: bool = False,
) -> DynamicsEstimate:
    """Gravity vector, payload and reflected inertias from target_moment.

    Parts of one recording (same `info.source`) share a setup while its payload fields do not
    change; the reflected inertias are common to all. Parts are read once and not kept, so memory
    does not grow with their number. Without recorded targets the filter removes 0.4 s at either
    end of every part: parts should be half a minute or longer.

    Args:
        recordings: recordings or consecutive parts of them.
        robot: the arm, n joints.
        configured: mounting and payload as stated by the user; None takes the recorded ones
            (payload, payload_cog, info), else upright and unloaded.
        identify_tensors: also estimate the link tensors.

    Raises:
        MissingFieldError: a recording lacks target_moment or position and speed.
        IdentificationError: no usable sample.
    """
    columns = TorqueColumns(robot, identify_tensors)
    data: dict[tuple[object, ...], TorqueInformation] = {}
    for recording in recordings:
        for part in constant_payloads(recording):
            stated = stated_setup(part, robot, configured)
            payload = stated.setup.payload
            key = (part.info.source, payload.mass, *payload.center_of_mass)
            entry = data.setdefault(key, TorqueInformation(part.info.source, stated))
            for block in reference_blocks(part, columns):
                entry.accumulate(block)
    useful = [entry for entry in data.values() if entry.samples]
    if not useful:
        names = ", ".join(dict.fromkeys(e.source for e in data.values())) or "no recording"
        raise IdentificationError(
            f"{names}: no sample with finite target_moment, brakes released and no freedrive; "
            "record the robot while a program moves it"
        )
    solution = TargetMomentSolver(columns, useful).solve()
    entries = tuple(map(_recording, useful, solution.setups))
    longest = max(entries, key=lambda entry: entry.samples)
    nominal = expected_inertia(robot).value
    reliable = solution.std_given_tensors < _IDENTIFIED * np.abs(solution.reflected_inertia)
    identified = solution.moved & reliable
    squares = np.sum([local.squares for local in solution.setups], axis=0)
    spread = np.sum([local.spread for local in solution.setups], axis=0)
    return DynamicsEstimate(
        setup=longest.setup,
        setup_source=longest.setup_source,
        reflected_inertia=np.where(solution.moved, solution.reflected_inertia, nominal),
        std=np.where(solution.moved, solution.std, np.nan),
        identified=identified,
        link_tensors=solution.link_tensors,
        recordings=entries,
        rms=np.sqrt(squares / sum(entry.samples for entry in useful)),
        r2=_r2(squares, spread),
        warnings=tuple(line for entry in entries for line in entry.warnings),
    )


def _recording(data: TorqueInformation, found: SetupSolution) -> EstimatedSetup:
    decided = found.gravity_std.max() < 0.1 * GRAVITY_STD and found.mass_std < 0.25 * MASS_STD
    return EstimatedSetup(
        source=data.source,
        stated=data.stated,
        setup=found.setup,
        setup_source="estimated" if decided else data.stated.source,
        gravity_std=found.gravity_std,
        mass_std=found.mass_std,
        center_std=found.center_std,
        delay=data.nominal_delay + found.delay,
        reference=data.kind,
        rms=np.sqrt(found.squares / data.samples),
        r2=_r2(found.squares, found.spread),
        samples=data.samples,
        warnings=tuple(_disagreements(data, found)),
    )


def angle_between(first: Array, second: Array) -> float:
    """Angle between two vectors [3], rad."""
    cosine = first @ second / (np.linalg.norm(first) * np.linalg.norm(second))
    return float(np.arccos(np.clip(cosine, -1.0, 1.0)))


def _r2(squares: Array, spread: Array) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(spread > 1e-9, 1 - squares / spread, np.nan))


def _disagreements(data: TorqueInformation, found: SetupSolution) -> Iterable[str]:
    """Lines where the estimate contradicts the configured or recorded setup."""
    stated, seen = data.stated.setup, found.setup
    angle = np.degrees(angle_between(stated.gravity, seen.gravity))
    if angle > 1.0 and found.gravity_std.max() < 0.3:
        reference = "the configured mounting" if data.stated.source == "configured" else "upright"
        vector = ", ".join(f"{value:.2f}" for value in seen.gravity)
        yield (
            f"{data.source}: target_moment shows the base tilted by {angle:.1f} degrees from "
            f"{reference} (gravity {vector} m/s^2); the estimate is used"
        )
    change = seen.payload.mass - stated.payload.mass
    if abs(change) > max(0.05, 4 * found.mass_std) and found.mass_std < 0.3:
        yield (
            f"{data.source}: target_moment shows a payload of {seen.payload.mass:.2f} kg where "
            f"{stated.payload.mass:.2f} kg is {_SOURCE_WORDS[data.stated.source]}; the estimate is "
            "used"
        )
