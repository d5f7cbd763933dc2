"""Mounting and payload of a recording: as stated, and as unknowns of a fit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ur_energy_model.identification.physical_consistency import possible_inertia
from ur_energy_model.model.energy_model import LinkTensors
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.setup import Payload, Setup, entries_of, tensor_of
from ur_energy_model.telemetry.samples import RecordingInfo, Telemetry, equal_runs
from ur_energy_model.typing import Array, Mask


@dataclass(frozen=True)
class SetupPrior:
    """Stated mounting and payload: the prior of the estimate, and the reference for warnings.

    Attributes:
        setup: mounting and payload.
        source: "configured" (by the user), "rtde" (payload fields of the recording) or "default".
    """

    setup: Setup
    source: str


def stated_setup(part: Telemetry, robot: RobotDescription, configured: Setup | None) -> SetupPrior:
    """Setup stated for the first sample of a recording, see `stated_for`."""
    return stated_for(part.info, _told_payload(part), robot, configured)


def stated_for(
    info: RecordingInfo,
    told: Payload | None,
    robot: RobotDescription,
    configured: Setup | None,
    fallback: Setup | None = None,
) -> SetupPrior:
    """Setup stated for a recording.

    In order of precedence: the user, the payload told to the controller, the recording's info, the
    fallback, upright and unloaded.

    Args:
        info: of the recording.
        told: payload recorded with the samples, None where not recorded.
        robot: the arm.
        configured: mounting and payload as stated by the user.
        fallback: setup of other recordings of the same arm.
    """
    if configured is not None:
        return SetupPrior(configured, "configured")
    gravity = np.array([0.0, 0.0, -robot.controller_gravity])
    if info.gravity is not None:
        gravity = np.array(info.gravity, dtype=float)
    elif fallback is not None:
        gravity = fallback.gravity
    if told is not None:
        return SetupPrior(Setup(gravity, told), "rtde")
    if info.payload_mass is None:
        payload = Payload() if fallback is None else fallback.payload
        known = info.gravity is not None
        return SetupPrior(Setup(gravity, payload), "configured" if known else "default")
    center = info.payload_center_of_mass or (0.0, 0.0, 0.0)
    payload = Payload(info.payload_mass, np.array(center, dtype=float))
    return SetupPrior(Setup(gravity, payload), "configured")


def payload_told(row: Array) -> Payload | None:
    """Payload from mass and centre of mass told to the controller [4]; None if NaN."""
    if not np.isfinite(row[0]):
        return None
    return Payload(float(row[0]), np.nan_to_num(row[1:4]))


def constant_payloads(part: Telemetry) -> Iterator[Telemetry]:
    """Stretches with one payload as the controller was told it."""
    if "payload" not in part or not len(part):
        yield part
        return
    told = part["payload"].reshape(-1, 1)
    if "payload_cog" in part:
        told = np.concatenate([told, part["payload_cog"]], axis=1)
    for rows, _ in payload_runs(told):
        yield part.cut(rows)


def payload_runs(told: Array) -> Iterator[tuple[slice, Array]]:
    """Stretches with one payload as the controller was told it: rows, and that payload [k].

    Args:
        told: mass and possibly centre of mass told to the controller [samples, k], kg and m; NaN
            where not recorded.
    """
    rounded = np.round(told, 4)
    for rows in equal_runs(np.nan_to_num(rounded)):
        yield rows, rounded[rows.start]


def _told_payload(part: Telemetry) -> Payload | None:
    if "payload" not in part or not len(part) or not np.isfinite(part["payload"][0]):
        return None
    center, inertia = np.zeros(3), np.zeros((3, 3))
    if "payload_cog" in part and np.isfinite(part["payload_cog"][0]).all():
        center = part["payload_cog"][0].copy()
    if "payload_inertia" in part and np.isfinite(part["payload_inertia"][0]).all():
        xx, yy, zz, xy, xz, yz = part["payload_inertia"][0]
        inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    return Payload(float(part["payload"][0]), center, inertia)


# Unknowns of one setup as a vector: gravity, payload, delay of target_moment; their priors.

GRAVITY = slice(0, 3)
"""Gravity in the base frame [m/s^2]."""
MASS = 3
"""Mass of the payload [kg]."""
CENTER = slice(4, 7)
"""Centre of mass of the payload, in the flange frame [m]."""
TENSOR = slice(7, 13)
"""Entries of the payload's inertia tensor about its centre of mass [kg m^2]."""
DELAY = 13
"""Delay of target_moment beyond the nominal one [s]."""
COUNT = 14
"""Unknowns of a setup."""

GRAVITY_STD = 3.0
"""Prior of each component of gravity [m/s^2]: users often forget to state the mounting."""
MASS_STD = 2.0
"""Prior of the payload [kg]."""
_CENTER_STD = 0.3
_TENSOR_STD = 1e-3
_DELAY_STD = 0.003
_LEAST_MASS = 0.002
"""Lighter payloads count as none [kg]."""


def _prior_std() -> Array:
    std = np.empty(COUNT)
    std[GRAVITY], std[MASS], std[CENTER] = GRAVITY_STD, MASS_STD, _CENTER_STD
    std[TENSOR], std[DELAY] = _TENSOR_STD, _DELAY_STD
    return std


PRIOR_STD = _prior_std()
"""Standard deviations of the prior [COUNT]."""


def stated_unknowns(setup: Setup) -> Array:
    """Unknowns [COUNT] of a stated setup, without delay: the mean of the prior."""
    out = np.zeros(COUNT)
    out[GRAVITY], out[MASS] = setup.gravity, setup.payload.mass
    out[CENTER], out[TENSOR] = setup.payload.center_of_mass, entries_of(setup.payload.inertia)
    return out


def payload_from(unknowns: Array, mass_std: float) -> Payload:
    """Physically possible payload; none where the mass does not differ from zero."""
    mass = float(unknowns[MASS])
    if mass < max(_LEAST_MASS, 2 * mass_std):
        return Payload()
    tensor = possible_inertia(tensor_of(unknowns[TENSOR]))
    return Payload(mass, unknowns[CENTER].copy(), tensor)


# What target_moment shows of the arm and its setups.


@dataclass(frozen=True)
class SetupSolution:
    """Solution for one setup.

    Attributes:
        setup: mounting and payload.
        gravity_std, mass_std, center_std: standard deviations [3], scalar, [3].
        delay: of target_moment beyond the nominal one [s].
        squares: sum of squared torque residuals per joint [n], (N m)^2.
        spread: sum of squared deviations of the torque from its mean [n], (N m)^2.
    """

    setup: Setup
    gravity_std: Array
    mass_std: float
    center_std: Array
    delay: float
    squares: Array
    spread: Array


@dataclass(frozen=True)
class ArmSolution:
    """Solution for the arm and all its setups.

    Attributes:
        reflected_inertia, std: joint side [n], kg m^2.
        std_given_tensors: standard deviation of the inertia for given link tensors [n]. Only the
            sum of the first joint's inertia and its link's tensor shows in the motion.
        link_tensors: of the moving links, None unless requested.
        moved: joints that moved in some recording [n].
        setups: one per setup.
    """

    reflected_inertia: Array
    std: Array
    std_given_tensors: Array
    link_tensors: LinkTensors | None
    moved: Mask
    setups: tuple[SetupSolution, ...]
