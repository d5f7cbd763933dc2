"""Mounting and payload of a recording: as stated, and as unknowns of a fit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.setup import Payload, Setup
from ur_energy_model.telemetry.samples import RecordingInfo, Telemetry, equal_runs
from ur_energy_model.typing import Array


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
