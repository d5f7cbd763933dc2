# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Bags of simulated arms with serial numbers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ur_energy_model.files import config_file
from ur_energy_model.model.robots import load_robot
from ur_energy_model.simulation.arm_options import ArmOptions
from ur_energy_model.simulation.simulated_arm import SimulatedArm, record_arm
from ur_energy_model.telemetry.bag.writer import BagWriter
from ur_energy_model.trajectory.fourier import load_trajectory
from ur_energy_model.trajectory.motions import Motion
from ur_energy_model.trajectory.named_motions import Planner

ARM = "ur5e"
RATE = 125.0
FIELDS = (
    "actual_q", "actual_qd", "actual_current", "target_q", "target_qd", "target_qdd",
    "joint_temperatures", "actual_robot_voltage", "actual_robot_current", "robot_mode",
    "safety_mode", "payload", "payload_cog",
)  # fmt: skip
EXCITATION = 15.0
SHORT = 8.0
"""Length of an identification recording, and of a short one of ordinary work [s]."""


def record(
    folder: Path,
    serial: str,
    seed: int,
    session: int,
    *,
    short: bool = False,
    moment: bool = True,
) -> Path:
    """A bag of a simulated arm, named after its serial number, of a session by number.

    Arms of one seed have the same constants, but for friction and standby power of the
    session; `short` is ordinary work instead of an excitation, `moment` adds
    target_moment, from which inertias are identified.
    """
    robot = replace(load_robot(ARM), rate=RATE)
    motion: Motion = load_trajectory(config_file("excitation", f"{ARM}.yaml"))
    if short:
        planner = Planner(robot)
        motion = planner.chain_through(planner.random_points(session), rest=0.5)
    arm = SimulatedArm(
        robot, motion=motion, seed=seed, options=ArmOptions(session=session)
    )
    fields = (*FIELDS, "target_moment") if moment else FIELDS
    recording = record_arm(arm, SHORT if short else EXCITATION, fields)
    path = folder / serial
    writer = BagWriter(
        path, replace(recording.info, serial=serial), tuple(recording.columns)
    )
    writer.write(recording)
    writer.close()
    return path
