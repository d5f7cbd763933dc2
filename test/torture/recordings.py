"""`ur_energy record` under test, and what it left behind."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from test.torture.surroundings import Surroundings, command
from test.torture.watched import Watched
from ur_energy_model.errors import UrEnergyError
from ur_energy_model.telemetry.bag.reader import read_bag
from ur_energy_model.telemetry.bag.recovery import recover_bag
from ur_energy_model.typing import Array

FIELDS = "actual_q,actual_qd,actual_current,actual_robot_voltage,actual_robot_current,robot_mode"


def start_recording(around: Surroundings, host: str, folder: Path, *options: str) -> Watched:
    """Start `ur_energy record` into the folder's `bag`."""
    arguments = ["--host", host, "--robot", "ur5e", "--fields", FIELDS, "-o", "bag", "--json"]
    return Watched(command("record", *arguments, *options), folder, around.environment)


def summary(output: str) -> dict[str, Any] | None:
    """The JSON object that a command printed, None without one."""
    for line in reversed(output.splitlines()):
        if line.startswith("{"):
            return dict(json.loads(line))
    return None


def readable_times(bag: Path, *, recover: bool = False) -> Array:
    """Controller timestamps of a bag [samples], s; empty if nothing can be read.

    Args:
        bag: rosbag2 directory.
        recover: whether to repair it first, as a user does after a kill.
    """
    try:
        if recover:
            recover_bag(bag)
        return read_bag(bag).time
    except UrEnergyError:
        return np.zeros(0)
