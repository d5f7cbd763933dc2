# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Work cycles of a made-up UR5e as recordings, and its model."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np

from test.identification.exact_arm import write_bag
from ur_energy_model.model.drives import BusModel, JointModel
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.friction import LAWS, Friction
from ur_energy_model.model.robots import load_robot
from ur_energy_model.model.setup import Setup
from ur_energy_model.telemetry.samples import RecordingInfo, Telemetry
from ur_energy_model.trajectory.motions import Chain, move

ROBOT = load_robot("ur5e")
STANDBY = 30.0
PICK = np.array([0.6, -1.2, 1.6, -1.9, -1.5, 0.2])
PLACE = np.array([-0.7, -1.5, 1.7, -1.7, -1.6, -0.4])
LIFT = np.array([0.0, -0.25, 0.1, 0.1, 0.0, 0.0])


def arm_model(capacitor: float = 3.0) -> EnergyModel:
    """The nominal drives of a UR5e with friction like that of simulated arms."""
    law = LAWS["coulomb_viscous"]
    size = ROBOT.max_torque / 150.0
    joints = tuple(
        JointModel(
            name,
            gear_ratio=float(ROBOT.gear_ratio[j]),
            reflected_inertia=float(ROBOT.reflected_inertia[j]),
            torque_constant=float(ROBOT.torque_constant[j]),
            winding_resistance=float(ROBOT.winding_resistance[j]),
            back_emf_constant=float(ROBOT.torque_constant[j]),
            friction=Friction(
                law,
                {"viscous": 6e-4 * size[j], "coulomb": 0.06 * size[j]},
                law.default_shape,
            ),
            std={"winding_resistance": 0.01},
        )
        for j, name in enumerate(ROBOT.joint_names)
    )
    bus = BusModel(
        "physical", STANDBY, np.full(6, 0.28), np.zeros(6), capacitor_energy=capacitor
    )
    return EnergyModel("ur5e", Setup(), "given", joints, bus)


def pick_and_place(
    speed: float = 2.5,
    acceleration: float = 5.0,
    *,
    short: float = 0.3,
    wait: float = 3.0,
) -> Chain:
    """Six moves that close: down, grip, up and over, down, release, up, wait for the next part."""
    points = [PICK + LIFT, PICK, PICK + LIFT, PLACE + LIFT, PLACE, PLACE + LIFT]
    rests = [short, 0.0, 0.0, short, 0.0, wait]
    ends = [*points[1:], points[0]]
    return Chain(
        [
            move(start, end, speed, acceleration, rest)
            for start, end, rest in zip(points, ends, rests, strict=True)
        ]
    )


def palletising(pitch: float, places: int = 4, *, grip: float = 0.4) -> Chain:
    """From one point to each of several places in a row, a pitch apart [rad], and back."""
    points = [PICK + LIFT]
    rests = []
    for place in range(places):
        at = PLACE + pitch * place * np.array([1.0, 0.0, 0.0, 0.0, 0.0, -1.0])
        points += [PICK, PICK + LIFT, at + LIFT, at, at + LIFT, PICK + LIFT]
        rests += [grip, 0.0, 0.0, grip, 0.0, 0.0]
    moves = [
        move(start, end, 2.5, 5.0, rest)
        for (start, end), rest in zip(pairwise(points), rests, strict=True)
    ]
    return Chain(moves)


def recorded(
    motion: Chain,
    seconds: float,
    rate: float = 500.0,
    *,
    lead: float = 0.4,
    begin: float = 0.0,
) -> Telemetry:
    """The targets of a motion that repeats, as a controller reports them."""
    time = np.arange(round(seconds * rate)) / rate
    inside = np.maximum(time - lead, 0.0) + begin
    q, qd, qdd = motion.sample(np.mod(inside, motion.duration))
    started = (time >= lead)[:, None]
    columns = {
        "target_q": q,
        "target_qd": qd * started,
        "target_qdd": qdd * started,
        "actual_q": q,
        "actual_qd": qd * started,
        "joint_temperatures": np.full(q.shape, 32.0),
        "robot_mode": np.full(len(time), 7.0),
    }
    info = RecordingInfo(source="made up", robot="ur5e", rate=rate, simulated=True)
    return Telemetry(60.0 + time, columns, info)


def bag_of(folder: Path, telemetry: Telemetry, **columns: np.ndarray) -> Path:
    """A recording as a bag, with further columns."""
    whole = Telemetry(telemetry.time, {**telemetry.columns, **columns}, telemetry.info)
    return write_bag(folder / "bag", whole)
