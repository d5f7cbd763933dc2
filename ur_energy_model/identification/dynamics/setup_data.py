"""What the estimation of setup and inertia gathers from one recording before it solves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from ur_energy_model.identification.dynamics.reference_motion import ReferenceBlock
from ur_energy_model.identification.regression.blocked_gram import BlockedGram
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.setup import Payload, Setup
from ur_energy_model.telemetry.samples import RecordingInfo, Telemetry
from ur_energy_model.typing import Array, Mask

_STEADY = 0.01
"""Joints whose position spans less do not identify an inertia [rad]."""


@dataclass(frozen=True)
class StatedSetup:
    """Mounting and payload as somebody stated them: the estimate's prior, and what it is compared with.

    Attributes:
        setup: the statement.
        source: "configured" (by the user), "rtde" (payload fields of the recording) or "default".
    """  # noqa: E501

    setup: Setup
    source: str


def stated_setup(part: Telemetry, robot: RobotDescription, configured: Setup | None) -> StatedSetup:
    """Setup stated for (the first sample of) a recording, see `stated_for`."""
    return stated_for(part.info, _told_payload(part), robot, configured)


def stated_for(
    info: RecordingInfo,
    told: Payload | None,
    robot: RobotDescription,
    configured: Setup | None,
    fallback: Setup | None = None,
) -> StatedSetup:
    """Setup stated for a recording.

    The user's word comes first, then the payload told to the controller and the recording's info,
    then the fallback, then upright and unloaded.

    Args:
        info: of the recording.
        told: payload recorded with the samples, None where it was not.
        robot: the arm.
        configured: mounting and payload as the user states them.
        fallback: setup of other recordings of the same arm.
    """
    if configured is not None:
        return StatedSetup(configured, "configured")
    gravity = np.array([0.0, 0.0, -robot.controller_gravity])
    if info.gravity is not None:
        gravity = np.array(info.gravity, dtype=float)
    elif fallback is not None:
        gravity = fallback.gravity
    if told is not None:
        return StatedSetup(Setup(gravity, told), "rtde")
    if info.payload_mass is None:
        payload = Payload() if fallback is None else fallback.payload
        known = info.gravity is not None
        return StatedSetup(Setup(gravity, payload), "configured" if known else "default")
    center = info.payload_center_of_mass or (0.0, 0.0, 0.0)
    payload = Payload(info.payload_mass, np.array(center, dtype=float))
    return StatedSetup(Setup(gravity, payload), "configured")


def payload_told(row: Array) -> Payload | None:
    """Payload from the mass and centre of mass told to the controller [4]; None where NaN."""
    if not np.isfinite(row[0]):
        return None
    return Payload(float(row[0]), np.nan_to_num(row[1:4]))


def constant_payloads(part: Telemetry) -> Iterator[Telemetry]:
    """Stretches over which the payload told to the controller does not change."""
    if "payload" not in part or not len(part):
        yield part
        return
    told = part["payload"].reshape(-1, 1)
    if "payload_cog" in part:
        told = np.concatenate([told, part["payload_cog"]], axis=1)
    rounded = np.round(np.nan_to_num(told), 4)
    changes = np.flatnonzero((np.diff(rounded, axis=0) != 0).any(axis=1)) + 1
    for start, stop in zip([0, *changes], [*changes, len(part)], strict=True):
        yield part.cut(slice(int(start), int(stop)))


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


@dataclass
class SetupData:
    """Gram matrices of the stretches that share one setup, per block of time.

    The Gram matrix of a joint has the columns of a ReferenceBlock, their slopes, the torque with
    its slope and curve, and a constant.
    """

    source: str
    stated: StatedSetup
    kind: str = "target"
    nominal_delay: float = 0.0
    samples: int = 0
    grams: BlockedGram = field(default_factory=BlockedGram)
    _low: Array | None = None
    _high: Array | None = None
    _total: Array | None = None

    def add(self, block: ReferenceBlock) -> None:
        """Take in a block of samples."""
        if not len(block.torque):
            return
        torque = np.stack([block.torque, block.torque_slope, block.torque_curve], axis=2)
        ones = np.ones((*block.torque.shape, 1))
        rows = np.concatenate([block.columns, block.column_slopes, torque, ones], axis=2)
        by_joint = np.ascontiguousarray(np.swapaxes(rows, 0, 1))
        self.grams.add(np.swapaxes(by_joint, 1, 2) @ by_joint, block.duration)
        self.kind, self.nominal_delay = block.kind, block.nominal_delay
        self.samples += len(block.torque)
        low, high = block.position.min(axis=0), block.position.max(axis=0)
        self._low = low if self._low is None else np.minimum(self._low, low)
        self._high = high if self._high is None else np.maximum(self._high, high)
        self._total = None

    @property
    def gram(self) -> Array:
        """Sum over all blocks [n, k, k]."""
        if self._total is None:
            self._total = np.asarray(self.grams.blocks.sum(axis=0))
        return self._total

    @property
    def moved(self) -> Mask:
        """Joints [n] that moved."""
        if self._low is None or self._high is None:
            raise ValueError("no samples yet")
        return np.asarray(self._high - self._low > _STEADY)
