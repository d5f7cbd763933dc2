"""ArmReading: what every sink gets of an arm at one moment."""

from __future__ import annotations

from dataclasses import dataclass

from ur_energy_model.energy.live.cycles import Cycle
from ur_energy_model.energy.live.snapshot import Snapshot
from ur_energy_model.energy_topics.numbers import other_numbers, total_numbers
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.telemetry.source import LinkStatus
from ur_energy_model.typing import Array


@dataclass(frozen=True)
class ArmReading:
    """State of one arm at one moment.

    Attributes:
        arm: name of the arm (arm_identity.py), the label of everything a sink publishes.
        stamp: host time of the last sample [ns since 1970, UTC].
        joints: names of the joints, prefix included, n.
        snapshot: powers, energies and states; powers are means since the previous reading.
        link: state of the connection, with lost samples.
        positions: joint origins in the base frame [n, 3], m; None where joint angles are unknown.
        cycles: completed since the previous reading.
        model: the model in use, in words.
        robot: description of the arm; None where a source of readings does not know it.
    """

    arm: str
    stamp: int
    joints: tuple[str, ...]
    snapshot: Snapshot
    link: LinkStatus
    positions: Array | None = None
    cycles: tuple[Cycle, ...] = ()
    model: str = ""
    robot: RobotDescription | None = None

    def numbers(self) -> dict[str, float]:
        """Values of the energy topics by name, the same as the ROS topics'; W and J."""
        return {**total_numbers(self.snapshot), **other_numbers(self.snapshot, self.joints)}
