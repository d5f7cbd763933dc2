# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The connected arm is the recorded one, or the motion is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ur_energy_model.experiment.same_arm import (
    KnownArm,
    arm_in,
    differences,
    unknown,
)
from ur_energy_model.model.robots import load_robot
from ur_energy_model.model.setup import Payload, Setup, gravity_of_mounting
from ur_energy_model.simulation.simulated_arm import SimulatedArm, record_arm
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.trajectory.kinematics import compose
from ur_energy_model.trajectory.motions import Hold
from ur_energy_model.trajectory.named_motions import home_position, named_motion
from ur_energy_model.typing import Array

ROBOT = load_robot("ur5e")
MINE = "20195500123"
OTHER = "20195500124"
PAYLOAD = Payload(1.5, np.array([0.0, 0.0, 0.06]))


def telemetry(
    *,
    serial: str | None = MINE,
    tilt: float = 0.0,
    payload: Payload = PAYLOAD,
    tool: tuple[float, ...] = (0.0, 0.0, 0.12, 0.0, 0.0, 0.0),
    at: Array | None = None,
    seconds: float = 0.05,
) -> Telemetry:
    """A simulated arm, as an arm or its recording shows itself."""
    setup = Setup(gravity_of_mounting(np.deg2rad(tilt), 0.3), payload)
    motion = named_motion("pick_and_place", ROBOT, setup) if at is None else Hold(at)
    seen = record_arm(SimulatedArm(ROBOT, motion=motion, seed=3, setup=setup), seconds)
    poses = np.stack([compose(pose, np.array(tool)) for pose in seen["actual_TCP_pose"]])
    info = replace(seen.info, serial=serial, gravity=None)
    return replace(seen, info=info, columns={**seen.columns, "actual_TCP_pose": poses})


@pytest.fixture(scope="module")
def recorded() -> KnownArm:
    seen = telemetry(seconds=6.0)
    return arm_in(seen, ROBOT, "monday", positions=seen["target_q"])


AWAY = home_position(ROBOT) + np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0])
CASES = {
    "same arm later in its cycle": ({"seconds": 2.5}, ""),
    "serial": ({"serial": OTHER}, "serial"),
    "slope": ({"tilt": 15.0}, "mounting"),
    "mass": ({"payload": Payload(3.0, PAYLOAD.center_of_mass)}, "payload"),
    "centre": ({"payload": Payload(1.5, np.array([0.05, 0.0, 0.06]))}, "payload"),
    "longer tool": ({"tool": (0.0, 0.0, 0.16, 0.0, 0.0, 0.0)}, "tool"),
    "pose": ({"at": AWAY}, "stands"),
}


@pytest.mark.parametrize("case", CASES)
def test_each_difference_is_seen_alone(recorded: KnownArm, case: str) -> None:
    options, word = CASES[case]
    live = telemetry(**options)  # type: ignore[arg-type]
    here = live["actual_q"][-1:]
    found = arm_in(live, ROBOT, "cell", positions=here, mounting=recorded.gravity)
    problems = differences(recorded, found)
    assert len(problems) == bool(word), problems
    assert all(word in problem for problem in problems)
    assert unknown(recorded, found) == []
