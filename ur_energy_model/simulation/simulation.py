"""Options of a simulated controller, and how it is built from them."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ur_energy_model.errors import ControllerError, InputError
from ur_energy_model.model.robots import RobotDescription, load_robot
from ur_energy_model.model.setup import Payload, Setup
from ur_energy_model.simulation.arm_options import ArmOptions, DriveSet, default_version
from ur_energy_model.simulation.control_box import SimulatedIdentity
from ur_energy_model.simulation.faults import Faults
from ur_energy_model.simulation.joint_controller import ControllerKind
from ur_energy_model.simulation.simulated_arm import SimulatedArm
from ur_energy_model.simulation.simulated_controller import SimulatedController
from ur_energy_model.trajectory.named_motions import named_motion


@dataclass(frozen=True)
class Simulation:
    """Options of a simulated controller.

    Attributes:
        robot: name of a robot model, or a robot YAML file.
        host: address to listen on.
        motion: name of a motion or a trajectory file.
        version: software version; None for the default of the robot's generation.
        seed: selects the individual arm and its noise.
        ambient: ambient temperature [degC].
        speed: factor on real time.
        faults: injected faults, see `parse_fault`.
        truth: file for the true energies, None for no file.
        setup: mounting and payload as configured.
        carried: payload that is really mounted, None for the configured one.
        controller: kind of joint controller.
        allow_network: accept addresses that other machines can reach.
        session: number of the arm's session, 0 for the arm as drawn.
        drive_set: constants of the gears, see drive_sets.py.
    """

    robot: str
    host: str = "127.0.0.1"
    motion: str = "trajectory_a"
    version: tuple[int, ...] | None = None
    seed: int = 0
    ambient: float = 25.0
    speed: float = 1.0
    faults: Sequence[str] = ()
    truth: Path | None = None
    setup: Setup | None = None
    carried: Payload | None = None
    controller: ControllerKind = "feedforward"
    allow_network: bool = False
    session: int = 0
    drive_set: DriveSet = "typical"

    def build(
        self, report: Callable[[str], None] = lambda text: None
    ) -> tuple[SimulatedArm, SimulatedController]:
        """Build arm and controller; closing the arm at the end writes the true energies.

        Args:
            report: called with every message for users.

        Raises:
            InputError: an option cannot be simulated.
            ControllerError: the address cannot be used, or other machines can reach it.
        """
        robot = load_robot(self.robot)
        version = self.version or default_version(robot)
        self._check(robot, version)
        faults = Faults.parse(self.faults)
        arm = SimulatedArm(
            robot,
            motion=named_motion(self.motion, robot, self.setup),
            seed=self.seed,
            setup=self.setup,
            carried=self.carried,
            truth=self.truth,
            options=ArmOptions(
                self.session, self.ambient, self.controller, version, drive_set=self.drive_set
            ),
        )
        arm.tick()  # compiles and loads what is used first, before the clock starts
        identity = SimulatedIdentity.for_robot(robot, version, self.seed, Path(self.motion).stem)
        server = SimulatedController(
            arm, self.host, identity, faults=faults, speed=self.speed, report=report
        )
        return arm, server

    def _check(self, robot: RobotDescription, version: tuple[int, ...]) -> None:
        if not self.allow_network and not is_loopback(self.host):
            raise ControllerError(
                self.host,
                "is not a loopback address: other machines could mistake it for a robot",
                "use 127.0.0.1, 127.0.0.2, ... or add --allow-network",
            )
        if robot.dof != 6:
            raise InputError(
                robot.name,
                f"has {robot.dof} joints, but RTDE has six",
                "simulate an arm with six joints",
            )
        if (robot.generation == "cb3") != (version[0] < 5):
            raise InputError(
                "--controller-version",
                f"{'.'.join(map(str, version))} does not run {robot.name}",
                "CB3 arms have 3.x, e-Series arms 5.x or 10.x",
            )
        if not self.speed >= 1e-3:
            raise InputError(
                "--speed", f"is {self.speed:g}", "give a positive factor of 0.001 or more"
            )
        if self.truth is not None and not self.truth.absolute().parent.is_dir():
            raise InputError(
                self.truth, "is in a folder that does not exist", "create the folder first"
            )
        if self.truth is not None and (not self.truth.name or self.truth.is_dir()):
            raise InputError(self.truth, "is a folder", "name a .json file")


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
