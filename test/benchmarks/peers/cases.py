"""What is compared: recordings of real arms, and simulated arms in several sessions."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import permutations
from pathlib import Path

import numpy as np

from test.identification.exact_arm import write_bag
from ur_energy_model.model.robots import load_robot
from ur_energy_model.model.setup import Payload
from ur_energy_model.simulation.arm_options import ArmOptions
from ur_energy_model.simulation.commands import ProgramCommand
from ur_energy_model.simulation.simulated_arm import SimulatedArm, record_arm
from ur_energy_model.telemetry.csv.reader import read_csv
from ur_energy_model.telemetry.samples import concatenate
from ur_energy_model.trajectory.named_motions import named_motion
from ur_energy_model.typing import Array

FRICTION_SPEED = 0.5
"""Joint speed at which frictions are compared [rad/s]."""
ARMS = (("ur5e", 1), ("ur5e", 2), ("ur10e", 3))
TRAIN, JUDGE, WEIGHED = 1, (2, 3, 4), 5
"""Sessions."""
REST, FITTED, JUDGED = 4.0, 30.0, 15.0
"""Length of standstill before every motion, of the motion fitted and of the one judged [s]."""
CARRIED = 1.5
"""Payload of the session that is weighed, of which the controller was not told [kg]."""


@dataclass(frozen=True)
class Truth:
    """Of a simulated session.

    Attributes:
        torque_constant: motor side [n], N m/A.
        friction: no-load friction at FRICTION_SPEED and the session's temperatures, mean of both
            directions, motor side [n], N m.
        temperature: mean of the recording [n], degC.
    """

    torque_constant: Array
    friction: Array
    temperature: Array


@dataclass(frozen=True)
class Bag:
    """A recording.

    Attributes:
        name: for the tables.
        path: rosbag2 directory.
        robot: name of the robot file.
        arm, day: which arm and which day of it, in any words.
        payload: mass on the flange where it is known for sure [kg], else None.
        told: whether the controller knew it.
        truth: of a simulated arm.
    """

    name: str
    path: Path
    robot: str
    arm: str
    day: str
    payload: float | None = None
    told: bool = True
    truth: Truth | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Pair:
    """A recording to fit and one to judge by."""

    train: Bag
    judged: Bag

    @property
    def group(self) -> str:
        """What the judged recording is to the fitted one."""
        if self.train.truth is not None:
            return "simulated, other sessions"
        if self.train.arm != self.judged.arm:
            return "real, another arm"
        if self.train.day != self.judged.day:
            return "real, another day"
        return "real, another recording"


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
UNTOLD = {"ur10e_excitation_loaded_2.805kg_56s": 2.805}
"""Payloads that the controller was not told of [kg]."""
HALVED = ("ur3e_moves_payload_1.07kg_25hz_36s",)
"""The only recording of its type: one half is judged by the other."""


def real_bags(data: Path, folder: Path) -> list[Bag]:
    """Recordings of real arms as bags; those that are not in the folder `data` are left out."""
    bags = []
    for name, arm, day in REAL:
        file, robot = data / f"{name}.csv.gz", name.split("_")[0]
        if not file.exists():
            continue
        halves = _halves(file, folder) if name in HALVED else {name: file}
        for part, source in halves.items():
            path = write_bag(folder / part, read_csv([source], robot))
            payload = UNTOLD.get(name)
            bags.append(Bag(part, path, robot, arm, day, payload, told=payload is None))
    return bags


def simulated_bags(folder: Path) -> list[Bag]:
    """Simulated arms: the session to fit, those to judge by, and one with a payload to weigh."""
    return [
        _simulate(robot, seed, session, folder)
        for robot, seed in ARMS
        for session in (TRAIN, *JUDGE, WEIGHED)
    ]


def pairs(bags: list[Bag]) -> Iterator[Pair]:
    """Every recording with every other one of an arm of its type, in both orders.

    Of simulated arms the session TRAIN is fitted, and only their own sessions are judged by it.
    Recordings with a payload that the controller was not told of are not among them.
    """
    plain = [bag for bag in bags if bag.told]
    for train, judged in permutations(plain, 2):
        simulated = train.truth is not None
        if train.robot != judged.robot or simulated != (judged.truth is not None):
            continue
        if not simulated or (train.arm == judged.arm and train.day == str(TRAIN)):
            yield Pair(train, judged)


def weighings(bags: list[Bag], train: Bag) -> list[Bag]:
    """Recordings of the same arm with a payload that the controller was not told of."""
    same = [bag for bag in bags if (bag.robot, bag.arm) == (train.robot, train.arm)]
    return [bag for bag in same if not bag.told]


def _halves(file: Path, folder: Path) -> dict[str, Path]:
    """The two halves of a CSV recording."""
    with gzip.open(file, "rt") as stream:
        header, *rows = stream.readlines()
    out, middle = {}, len(rows) // 2
    for number, part in enumerate((rows[:middle], rows[middle:]), 1):
        name = f"{file.name.removesuffix('.csv.gz')}_half_{number}"
        out[name] = folder / f"{name}.csv"
        out[name].write_text(header + "".join(part))
    return out


def _simulate(robot: str, seed: int, session: int, folder: Path) -> Bag:
    """A session at rest for a while and then in motion, as a bag."""
    described = load_robot(robot)
    name = f"{robot}_seed_{seed}_session_{session}"
    path, truth = folder / name, folder / f"{name}.json"
    motion = "trajectory_a" if session == TRAIN else "trajectory_b"
    weighed = session == WEIGHED
    arm = SimulatedArm(
        described,
        motion=named_motion(motion, described),
        seed=seed,
        options=ArmOptions(session=session),
        carried=Payload(CARRIED, np.array([0.0, 0.0, 0.05])) if weighed else None,
        truth=truth,
    )
    arm.command(ProgramCommand.PAUSE)
    rest = record_arm(arm, REST)
    arm.command(ProgramCommand.PLAY)
    moving = record_arm(arm, FITTED if session == TRAIN else JUDGED)
    arm.close()
    write_bag(path, concatenate([rest, moving]))
    temperature = np.array(json.loads(truth.read_text())["mean_temperature"])
    payload = CARRIED if weighed else None
    return Bag(
        name,
        path,
        robot,
        f"{robot} {seed}",
        str(session),
        payload,
        not weighed,
        _truth(arm, temperature),
    )


def _truth(arm: SimulatedArm, temperature: Array) -> Truth:
    p = arm.parameters
    speed, factor = np.full(arm.robot.dof, FRICTION_SPEED), p.friction_factor(temperature)
    both = p.friction.torque(speed, factor) - p.friction.torque(-speed, factor)
    whole = 0.5 * both + p.flex_spline_coulomb + p.flex_spline_viscous * speed
    return Truth(p.torque_constant, whole / p.gear_ratio, temperature)
