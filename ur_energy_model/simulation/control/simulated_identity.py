"""Identity that a simulated controller reports."""

from __future__ import annotations

from dataclasses import dataclass

from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.telemetry.rtde.dashboard_client import SIMULATED_SERIAL_PREFIX

Version = tuple[int, int, int, int]
"""Software version: major, minor, bugfix, build."""


@dataclass(frozen=True)
class SimulatedIdentity:
    """Identity that a simulated controller reports.

    Attributes:
        version: software version and build.
        serial: serial number; simulated ones begin with SIMULATED_SERIAL_PREFIX.
        model: robot model as the dashboard server names it, such as "UR5".
        motion: name of the built-in motion, which is the initially loaded program.
    """

    version: Version
    serial: str
    model: str
    motion: str

    @classmethod
    def for_robot(
        cls, robot: RobotDescription, version: tuple[int, ...], seed: int, motion: str
    ) -> SimulatedIdentity:
        """Identity of the simulated arm with this version and seed."""
        major, minor, bugfix, build = (*version, 0, 0, 0)[:4]
        return cls(
            version=(major, minor, bugfix, build),
            serial=f"{SIMULATED_SERIAL_PREFIX}{seed % 10000:04d}",
            model=robot.name.upper().removesuffix("E"),
            motion=motion,
        )
