# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Simulated production: pick and place with varied points, rests and payload."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ur_energy_model.identification.recording import FIELDS
from ur_energy_model.model.robots import load_robot
from ur_energy_model.model.setup import Payload, Setup
from ur_energy_model.simulation import arm_commands
from ur_energy_model.simulation.simulated_arm import SimulatedArm, record_arm
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.trajectory.motions import Chain, Hold, MoveSegment
from ur_energy_model.trajectory.named_motions import (
    MotionLimits,
    Planner,
    home_position,
    straight_line,
)
from ur_energy_model.typing import Array

GRIPPER = Payload(1.0, np.array([0.0, 0.0, 0.05]))
PART_MASS = (0.3, 1.5)  # mass of the parts [kg]
STANDSTILL = 2.5  # rest before the program starts [s]
PIECE = 5.0  # the payload changes at the ends of pieces of this length [s]


class Piece(NamedTuple):
    """Consecutive samples, with the true electrical energies of the joints in them [n], J."""

    samples: Telemetry
    electrical: Array
    bus: float


def cycle(robot_name: str, seed: int, moves: int = 24) -> Chain:
    """Moves between trays on either side of the arm, each to a point of its own."""
    robot = load_robot(robot_name)
    random = np.random.default_rng([seed, 1616])
    speed = float(random.uniform(0.8, 1.8))
    limits = MotionLimits.for_robot(robot, speed, float(random.uniform(1.5, 4.0)))
    planner = Planner(robot, Setup(payload=GRIPPER), limits=limits)
    home = home_position(robot)
    points = [home]
    while len(points) < moves:
        side = 0.6 if len(points) % 2 else -0.7
        turn = np.array([side, -0.25, 0.25, 0.0, 0.0, side])
        spread = np.array([0.35, 0.2, 0.25, 0.35, 0.25, 0.6])
        point = (
            home
            + turn[: robot.dof]
            + spread[: robot.dof] * random.uniform(-1, 1, robot.dof)
        )
        if planner.is_clear(straight_line(points[-1], point)):
            points.append(point)
    segments: list[MoveSegment] = []
    for start, end in zip(points, np.roll(points, -1, axis=0), strict=True):
        segments.append(planner.move(start, end, float(random.uniform(0.1, 0.8))))
    return Chain(segments)


def production(robot_name: str, seed: int, seconds: float) -> Iterator[Piece]:
    """Samples of an arm that starts with a standstill and then works for some seconds in all."""
    robot = load_robot(robot_name)
    work = cycle(robot_name, seed)
    random = np.random.default_rng([seed, 1617, 0])
    hold = Hold(work.sample(np.zeros(1))[0][0])
    arm = SimulatedArm(robot, motion=hold, seed=seed, setup=Setup(payload=GRIPPER))
    done = 0.0
    loaded = False
    while done < seconds:
        length = STANDSTILL if not done else min(PIECE, seconds - done)
        if done:
            if not arm.busy:
                arm.command(arm_commands.Follow(work))
            loaded = bool(random.random() < 0.5) if random.random() < 0.6 else loaded
            part = float(random.uniform(*PART_MASS)) if loaded else 0.0
            mass = GRIPPER.mass + part
            # carried, and stated to the controller
            if abs(mass - arm.setup.payload.mass) > 1e-9:
                center = np.array([0.0, 0.0, (0.05 * GRIPPER.mass + 0.1 * part) / mass])
                arm.command(arm_commands.SetPayload(mass, center))
                arm.carry(Payload(mass, center))
        before = arm.energies()
        samples = record_arm(arm, length, FIELDS)
        after = arm.energies()
        electrical = after.mechanical + after.copper - before.mechanical - before.copper
        info = replace(samples.info, source=f"{robot_name}-{seed}", serial=str(seed))
        yield Piece(replace(samples, info=info), electrical, after.bus - before.bus)
        done += length
