# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""A simulated arm that runs a program as typed, recorded faster than real time, with its truth."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ur_energy_model.model.robots import load_robot
from ur_energy_model.model.setup import Payload, Setup
from ur_energy_model.simulation.arm_commands import RobotMode
from ur_energy_model.simulation.arm_options import ArmOptions
from ur_energy_model.simulation.client_interfaces import ScriptSession
from ur_energy_model.simulation.control_box import ControlBox, SimulatedIdentity
from ur_energy_model.simulation.simulated_arm import SimulatedArm
from ur_energy_model.telemetry.bag.writer import BagWriter
from ur_energy_model.telemetry.fields import ENERGY_FIELDS
from ur_energy_model.telemetry.samples import RecordingInfo, Telemetry
from ur_energy_model.trajectory.motions import Hold
from ur_energy_model.trajectory.named_motions import home_position, named_motion
from ur_energy_model.typing import Array

VERSION = (5, 11, 1)
PART = 2000  # samples that are written together


class Recorded(NamedTuple):
    """A recording, and the true energies during it."""

    bag: Path
    telemetry: Telemetry
    bus: Array  # at the supply since the begin of the recording [samples], J
    wall: Array  # the same at the mains [samples], J

    @property
    def energy(self) -> float:
        """Of the whole recording at the supply [J]."""
        return float(self.bus[-1])


class SimulatedCell:
    """One arm with its controller; the seed selects the arm, the session its day.

    `rate` is that of the controller [Hz], by default the rate of the arm's type.
    """

    def __init__(
        self,
        *,
        robot: str = "ur5e",
        seed: int = 5,
        session: int = 1,
        payload: Payload | None = None,
        carried: Payload | None = None,
        motion: str | None = None,
        warmth: float | None = None,
        version: tuple[int, int, int] = VERSION,
        rate: float | None = None,
    ) -> None:
        self.robot = load_robot(robot)
        if rate is not None:  # faster to compute, as a CB3 controller's 125 Hz
            self.robot = replace(self.robot, rate=rate)
        setup = Setup(payload=payload or Payload())
        hold = Hold(home_position(self.robot))
        self.arm = SimulatedArm(
            self.robot,
            motion=hold if motion is None else named_motion(motion, self.robot, setup),
            seed=seed,
            setup=setup,
            carried=carried,
            options=ArmOptions(
                session=session, warmth=warmth, controller_version=version
            ),
        )
        self.box = ControlBox(
            self.arm, SimulatedIdentity.for_robot(self.robot, version, seed, "hold")
        )
        self._session = ScriptSession(self.box)

    def run(self, program: str) -> None:
        """Start a program, which replaces the one before."""
        self._session.receive(program.encode())

    def pass_time(self, seconds: float) -> None:
        """Go on without recording."""
        for _ in range(round(seconds * self.box.rate)):
            self.box.step()

    def record(
        self,
        bag: Path,
        seconds: float,
        *,
        rate: float = 125.0,
        at: Mapping[float, Callable[[SimulatedCell], object]] | None = None,
    ) -> Recorded:
        """Record into a bag at a rate [Hz]; `at` times [s] something else is done."""
        box = self.box
        every = round(self.box.rate / rate)
        names = [
            name for name in ENERGY_FIELDS if name in box.values and name != "timestamp"
        ]
        due = sorted((round(when * box.rate), what) for when, what in (at or {}).items())
        steps = round(seconds * box.rate)
        samples = -(-steps // every)
        time = np.empty(samples)
        truth = np.empty((samples, 2))
        columns = {
            name: np.empty((samples, *np.shape(box.values[name]))) for name in names
        }
        for cycle in range(steps):
            while due and due[0][0] <= cycle:
                due.pop(0)[1](self)
            box.step()
            if cycle % every == 0:
                row = cycle // every
                time[row] = self.arm.time
                for name, column in columns.items():
                    column[row] = box.values[name]
                energies = self.arm.energies()
                truth[row] = energies.bus, energies.wall
        assert not box.messages, [message.text for message in box.messages]
        info = RecordingInfo(
            source=str(bag),
            robot=self.robot.name,
            rate=box.rate / every,
            controller_version=".".join(map(str, self.box.version)),
            serial=box.identity.serial,
            simulated=True,
        )
        telemetry = Telemetry(time, columns, info)
        with BagWriter(
            bag, info, tuple(columns), joint_names=self.robot.joint_names
        ) as writer:
            for start in range(0, len(telemetry), PART):
                writer.write(telemetry.cut(slice(start, start + PART)))
        bus, wall = truth.T
        return Recorded(bag, telemetry, bus - bus[0], wall - wall[0])

    def is_ready(self) -> bool:
        """Whether the arm is switched on, brakes released."""
        return self.arm.robot_mode is RobotMode.RUNNING


PICK = (0.6, -1.2, 1.6, -1.9, -1.5, 0.2)
ABOVE_PICK = (0.6, -1.45, 1.7, -1.8, -1.5, 0.2)
PLACE = (-0.7, -1.5, 1.7, -1.7, -1.6, -0.4)
ABOVE_PLACE = (-0.7, -1.75, 1.8, -1.6, -1.6, -0.4)
STRETCHED = (0.0, -0.9, 0.9, -1.2, -1.57, 0.0)


def movej(q: Sequence[float], speed: float = 2.5, acceleration: float = 5.0) -> str:
    """A line of a program."""
    return f"movej({list(q)}, a={acceleration:g}, v={speed:g})"


def program(*lines: str, once: Sequence[str] = ()) -> str:
    """A program that runs lines again and again, after some that it runs once."""
    inner = "".join(f"    {line}\n" for line in lines)
    first = "".join(f"  {line}\n" for line in once)
    return f"def cell():\n{first}  while (True):\n{inner}  end\nend\n"


PICK_AND_PLACE = (
    movej(PICK),
    "sleep(0.3)",
    movej(ABOVE_PICK),
    movej(ABOVE_PLACE),
    movej(PLACE),
    "sleep(0.3)",
    movej(ABOVE_PLACE),
    movej(STRETCHED),
    "sleep(4)",
    movej(ABOVE_PICK),
)
"""A cycle of 9 s that hurries, and then waits for 4 s with a stretched arm."""
