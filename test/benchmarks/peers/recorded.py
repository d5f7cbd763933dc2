"""Recordings as every method of the comparison sees them: the same filters, setups and samples."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import numpy as np

from ur_energy_model.identification.dynamics import RecordingDynamics, estimate_setups
from ur_energy_model.identification.filtered_motion import (
    MOVING_SPEED,
    FilteredMotion,
    ParallelFilter,
)
from ur_energy_model.identification.power_structures import STANDSTILL_SPEED, PowerRows, power_rows
from ur_energy_model.identification.recording_reader import read_recording
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.robots import RobotDescription, load_robot
from ur_energy_model.model.setup import Setup
from ur_energy_model.telemetry.bag.reader import iterate_bag
from ur_energy_model.telemetry.samples import concatenate
from ur_energy_model.typing import Array, Mask


@dataclass(frozen=True)
class Part:
    """An uninterrupted stretch with one payload.

    Attributes:
        motion: through the wide filter.
        loaded, bare: dynamics with the payload that the controller was told of, and without.
    """

    motion: FilteredMotion
    loaded: ArmDynamics
    bare: ArmDynamics

    @property
    def link_torque(self) -> Array:
        """Of links and payload, joint side [samples, n], N m."""
        return self.loaded.inverse_dynamics(self.motion.q, self.motion.qd, self.motion.qdd)

    @property
    def payload_torque(self) -> Array:
        """Of the payload alone, joint side [samples, n], N m."""
        motion = self.motion
        return self.link_torque - self.bare.inverse_dynamics(motion.q, motion.qd, motion.qdd)


class Recorded:
    """One bag, read once; mounting and payload are estimated from its target_moment.

    Args:
        bag: rosbag2 directory.
        robot: of the arm, n joints.
    """

    def __init__(self, bag: Path, robot: RobotDescription) -> None:
        self.bag, self.robot = bag, robot
        with closing(read_recording(bag, robot)) as recording:
            _, estimate = estimate_setups([recording], [recording], robot, None)
            setups = RecordingDynamics(robot, recording.info, estimate, None)
            self.narrow = ParallelFilter(recording.cutoff)
            self.gravity = setups.setup_and_delay(np.zeros(4))[0].gravity
            bare = ArmDynamics(robot, Setup(gravity=self.gravity))
            self.parts = [
                Part(part, loaded, bare)
                for motion in recording.motions()
                for part, loaded in setups.parts(motion)
                if len(part.time[self.narrow.inside(part)])
            ]

    def filtered(self, columns: Callable[[Part], Array]) -> Array:
        """Columns [samples, ...] of all parts through the narrow filter, without the ends."""
        return np.concatenate(
            [
                self.narrow(part.motion, columns(part))[self.narrow.inside(part.motion)]
                for part in self.parts
            ]
        )

    @cached_property
    def current(self) -> Array:
        """Measured [samples, n], A."""
        return self.filtered(lambda part: part.motion.current)

    @cached_property
    def moving(self) -> Mask:
        """Joints that move clear of standstill [samples, n]."""
        return np.concatenate(
            [
                self.narrow.moving(part.motion, MOVING_SPEED)[self.narrow.inside(part.motion)]
                for part in self.parts
            ]
        )

    @cached_property
    def supply(self) -> PowerRows | None:
        """Speeds, currents and power at the supply as recorded; None without bus power."""
        return power_rows(concatenate(list(iterate_bag(self.bag))))


@cache
def recorded(bag: Path, robot: str) -> Recorded:
    """A bag, read on first use."""
    return Recorded(bag, load_robot(robot))


def still(rows: PowerRows) -> Mask:
    """Samples at which no joint moves [samples]."""
    return np.asarray((np.abs(rows.qd) < STANDSTILL_SPEED).all(axis=1))
