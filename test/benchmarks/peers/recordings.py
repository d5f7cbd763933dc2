# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""What is compared, as every method gets it: real and simulated recordings, filtered alike."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from itertools import permutations
from pathlib import Path
from typing import TypeVar

import numpy as np

from test.identification.exact_arm import write_bag
from ur_energy_model.identification.dynamics import RecordingDynamics, estimate_setups
from ur_energy_model.identification.filtered_motion import (
    MOVING_SPEED,
    FilteredMotion,
    ParallelFilter,
)
from ur_energy_model.identification.power_structures import (
    STANDSTILL_SPEED,
    PowerRows,
    power_rows,
)
from ur_energy_model.identification.recording import read_recording
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.robots import RobotDescription, load_robot
from ur_energy_model.model.setup import Payload, Setup
from ur_energy_model.simulation.arm_commands import ProgramCommand
from ur_energy_model.simulation.arm_options import ArmOptions
from ur_energy_model.simulation.simulated_arm import SimulatedArm, record_arm
from ur_energy_model.telemetry.bag.reader import iterate_bag
from ur_energy_model.telemetry.csv.reader import read_csv
from ur_energy_model.telemetry.samples import concatenate
from ur_energy_model.trajectory.named_motions import named_motion
from ur_energy_model.typing import Array, Mask

Values = TypeVar("Values", Array, Mask)

FRICTION_SPEED = 0.5  # joint speed at which frictions are compared [rad/s]
ARMS = (("ur5e", 1), ("ur5e", 2), ("ur5e", 4), ("ur10e", 3), ("ur10e", 5))
# sessions
TRAIN = 1
JUDGE = (2, 3, 4)
WEIGHED = 5
REST = 4.0
FITTED = 30.0
JUDGED = 15.0
"""Length of standstill before every motion, of the motion fitted and of the one judged [s]."""
CARRIED = 1.5  # payload of the session that is weighed, unknown to the controller [kg]
REAL = (
    ("ur10e_excitation_50s", "A", "?"),
    ("ur10e_point_to_point_57s", "A", "?"),
    ("ur10e_excitation_unloaded_56s", "A", "?"),
    ("ur10e_excitation_loaded_2.805kg_56s", "A", "?"),
    ("ur10e_other_days_2019_10_01", "A", "2019-10-01"),
    ("ur10e_other_days_2019_12_23", "A", "2019-12-23"),
    ("ur10e_other_days_2020_02_05", "A", "2020-02-05"),
    ("ur10e_other_days_2020_02_06", "A", "2020-02-06"),
    ("ur5e_pick_place_50hz_24s", "B", "1"),
    ("ur5e_other_day_10hz_21s", "B", "2"),
    ("ur5e_streamed_move_500hz_6s", "C", "1"),
    ("ur5e_other_arm_125hz_11s", "D", "1"),
    ("ur3e_moves_payload_1.07kg_25hz_36s", "E", "1"),
)
"""Recordings of real arms: file, arm, and day where it is known to be another."""
UNDECLARED = {"ur10e_excitation_loaded_2.805kg_56s": 2.805}
"""Payloads unknown to the controller [kg]."""
ANOTHER_REAL = "real, another arm"
ANOTHER_SIMULATED = "simulated, another arm"
"""Groups of pairs of recordings of two arms."""
HALVED = ("ur3e_moves_payload_1.07kg_25hz_36s",)
"""The only recording of its type: one half is judged by the other."""


@dataclass(frozen=True)
class Truth:
    """Of a simulated session; no-load friction is at FRICTION_SPEED, mean of both directions."""

    torque_constant: Array  # motor side [n], N m/A
    friction: Array  # motor side [n], N m
    temperature: Array  # mean of the recording [n], degC


@dataclass(frozen=True)
class Bag:
    """A recording: name for the tables, bag, robot file, which arm and which day of it.

    `payload` is the mass on the flange where it is known for sure [kg], `declared`
    whether the controller had it, `truth` that of a simulated arm.
    """

    name: str
    path: Path
    robot: str
    arm: str
    day: str
    payload: float | None = None
    declared: bool = True
    truth: Truth | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Pair:
    """A recording to fit and one to judge by."""

    train: Bag
    judged: Bag

    @property
    def group(self) -> str:
        """What the judged recording is to the fitted one."""
        simulated = self.train.truth is not None
        if self.train.arm != self.judged.arm:
            return ANOTHER_SIMULATED if simulated else ANOTHER_REAL
        if simulated:
            return "simulated, other sessions"
        return (
            f"real, another {'recording' if self.train.day == self.judged.day else 'day'}"
        )


def pairs(bags: list[Bag]) -> Iterator[Pair]:
    """Every recording with every other one of an arm of its type, in both orders.

    Of simulated arms the session TRAIN is fitted, and judged by their own other sessions,
    and by the first of these of other arms. Recordings with an undeclared payload are not
    among them.
    """
    for train, judged in permutations([bag for bag in bags if bag.declared], 2):
        simulated = train.truth is not None
        if train.robot != judged.robot or simulated != (judged.truth is not None):
            continue
        if not simulated:
            yield Pair(train, judged)
            continue
        judges = train.arm == judged.arm or judged.day == str(JUDGE[0])
        if train.day == str(TRAIN) and judges:
            yield Pair(train, judged)


def weighings(bags: list[Bag], train: Bag) -> list[Bag]:
    """Recordings of the same arm with an undeclared payload."""
    arm = (train.robot, train.arm)
    return [bag for bag in bags if (bag.robot, bag.arm) == arm and not bag.declared]


def real_bags(data: Path, folder: Path) -> list[Bag]:
    """Recordings of real arms as bags; those that are not in the folder `data` are left out.

    The arms have serial numbers, as in recordings of this package; the published logs
    have none.
    """
    bags = []
    for name, arm, day in REAL:
        file = data / f"{name}.csv.gz"
        robot = name.split("_")[0]
        if not file.exists():
            continue
        sources = {name: file}
        if name in HALVED:
            with gzip.open(file, "rt") as stream:
                header, *rows = stream.readlines()
            sources = {}
            middle = len(rows) // 2
            for number, lines in enumerate((rows[:middle], rows[middle:]), 1):
                sources[f"{name}_half_{number}"] = half = (
                    folder / f"{name}_half_{number}.csv"
                )
                half.write_text(header + "".join(lines))
        payload = UNDECLARED.get(name)
        for part, source in sources.items():
            recorded = read_csv([source], robot)
            info = replace(recorded.info, serial=f"{robot}{arm}")
            path = write_bag(folder / part, replace(recorded, info=info))
            bags.append(
                Bag(part, path, robot, arm, day, payload, declared=payload is None)
            )
    return bags


def simulated_bags(folder: Path) -> list[Bag]:
    """Simulated arms: the session to fit, those to judge by, and one with a payload to weigh."""
    return [
        _simulate(robot, seed, session, folder)
        for robot, seed in ARMS
        for session in (TRAIN, *JUDGE, WEIGHED)
    ]


def _simulate(robot: str, seed: int, session: int, folder: Path) -> Bag:
    """A session at rest for a while and then in motion, as a bag."""
    described = load_robot(robot)
    name = f"{robot}_seed_{seed}_session_{session}"
    file = folder / f"{name}.json"
    weighed = session == WEIGHED
    arm = SimulatedArm(
        described,
        motion=named_motion(
            "trajectory_a" if session == TRAIN else "trajectory_b", described
        ),
        seed=seed,
        options=ArmOptions(session=session),
        carried=Payload(CARRIED, np.array([0.0, 0.0, 0.05])) if weighed else None,
        truth=file,
    )
    arm.command(ProgramCommand.PAUSE)
    rest = record_arm(arm, REST)
    arm.command(ProgramCommand.PLAY)
    moving = record_arm(arm, FITTED if session == TRAIN else JUDGED)
    arm.close()
    path = write_bag(folder / name, concatenate([rest, moving]))
    temperature = np.array(json.loads(file.read_text())["mean_temperature"])
    p = arm.parameters
    speed = np.full(described.dof, FRICTION_SPEED)
    factor = p.friction_factor(temperature)
    both = p.friction.torque(speed, factor) - p.friction.torque(-speed, factor)
    friction = 0.5 * both + p.flex_spline_coulomb + p.flex_spline_viscous * speed
    truth = Truth(p.torque_constant, friction / p.gear_ratio, temperature)
    payload = CARRIED if weighed else None
    own = f"{robot} {seed}", str(session)
    return Bag(name, path, robot, *own, payload, not weighed, truth)


@dataclass(frozen=True)
class Part:
    """An uninterrupted stretch with one payload."""

    motion: FilteredMotion  # through the wide filter
    loaded: ArmDynamics  # with the payload set in the controller
    bare: ArmDynamics

    @property
    def link_torque(self) -> Array:
        """Of links and payload, joint side [samples, n], N m."""
        return self.loaded.inverse_dynamics(
            self.motion.q, self.motion.qd, self.motion.qdd
        )

    @property
    def payload_torque(self) -> Array:
        """Of the payload alone, joint side [samples, n], N m."""
        motion = self.motion
        return self.link_torque - self.bare.inverse_dynamics(
            motion.q, motion.qd, motion.qdd
        )


class Recorded:
    """One bag, read once; mounting and payload are estimated from its target_moment."""

    def __init__(self, bag: Path, robot: RobotDescription) -> None:
        self.bag = bag
        self.robot = robot
        with closing(read_recording(bag, robot)) as recording:
            _, estimate = estimate_setups([recording], [recording], robot, None)
            setups = RecordingDynamics(robot, recording.info, estimate, None)
            self.narrow = ParallelFilter(recording.cutoff)
            self.gravity = setups.setup_and_delay(np.zeros(4))[0].gravity
            bare = ArmDynamics(robot, Setup(gravity=self.gravity))
            self.parts = [
                Part(part, loaded, bare)
                for motion in recording.motions
                for part, loaded in setups.parts(motion)
                if len(part.time[self.narrow.inside(part)])
            ]

    def inside(self, values: Callable[[Part], Values]) -> Values:
        """Values [samples, ...] of all parts, without their ends."""
        found = [values(part)[self.narrow.inside(part.motion)] for part in self.parts]
        return np.concatenate(found)

    def filtered(self, columns: Callable[[Part], Array]) -> Array:
        """Columns [samples, ...] of all parts through the narrow filter, without the ends."""
        return self.inside(lambda part: self.narrow(part.motion, columns(part)))

    @cached_property
    def current(self) -> Array:
        """Measured [samples, n], A."""
        return self.filtered(lambda part: part.motion.current)

    @cached_property
    def moving(self) -> Mask:
        """Joints that move clear of standstill [samples, n]."""
        return self.inside(lambda part: self.narrow.moving(part.motion, MOVING_SPEED))

    @cached_property
    def supply(self) -> PowerRows | None:
        """Speeds, currents and power at the supply as recorded; None without bus power."""
        return power_rows(concatenate(list(iterate_bag(self.bag))))


@cache
def recorded(bag: Bag) -> Recorded:
    """A bag, read on first use."""
    return Recorded(bag.path, load_robot(bag.robot))


def still(rows: PowerRows) -> Mask:
    """Samples at which no joint moves [samples]."""
    return np.asarray((np.abs(rows.qd) < STANDSTILL_SPEED).all(axis=1))
