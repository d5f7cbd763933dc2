# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Programs of the simulated controller, run as they are and with a sheet typed into their lines."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ur_energy_model.model.robots import load_robot
from ur_energy_model.simulation.client_interfaces import ScriptSession
from ur_energy_model.simulation.control_box import ControlBox, SimulatedIdentity
from ur_energy_model.simulation.simulated_arm import SimulatedArm
from ur_energy_model.telemetry.fields import ENERGY_FIELDS
from ur_energy_model.telemetry.samples import RecordingInfo, Telemetry
from ur_energy_model.trajectory.kinematics import ArmKinematics
from ur_energy_model.trajectory.motions import Hold
from ur_energy_model.trajectory.named_motions import home_position
from ur_energy_model.typing import Array

ARM = "ur5"
"""A CB3 arm: its controller's cycle is four times as long, and so is what a test takes."""
CB3 = load_robot(ARM)
CB3_HOME = home_position(CB3)
SEED = 3
LONGEST = 300.0  # of a run [s]
MARK = 7  # digital output that rises where the loop of a program begins
KINEMATICS = ArmKinematics(CB3)


def vector(q: Array) -> str:
    """Joint positions as an argument."""
    return "[" + ", ".join(f"{value:.6f}" for value in q) + "]"


def beside(q: Array, x: float = 0.0, z: float = 0.0) -> Array:
    """Joint positions at a distance of the flange [m]."""
    pose = KINEMATICS.forward(q, np.zeros(6)).copy()
    pose[[0, 2]] += [x, z]
    found = KINEMATICS.inverse(pose, q, np.zeros(6))
    assert found is not None
    return found


def program(
    loop: Sequence[str], functions: dict[str, Sequence[str]] | None = None
) -> str:
    """A program with an endless loop, after the functions that it calls."""
    lines = ["def cell():"]
    for name, body in (functions or {}).items():
        lines += [f" def {name}():", *(f"  {line}" for line in body), " end"]
    on, off = (f"set_digital_out({MARK}, {state})" for state in (True, False))
    half = len(loop) // 2
    marked = [on, *loop[:half], off, *loop[half:]]
    lines += [" while (True):", *(f"  {line}" for line in marked), " end", "end"]
    return "\n".join([*lines, ""])


class Run(NamedTuple):
    """A run of a program: what was recorded, and energies [J] and durations [s] of its loops."""

    recorded: Telemetry
    energy: Array
    duration: Array


def run(script: str, loops: float = 3.3) -> Run:
    """Run a program for so many of its loops, without sockets and clock.

    From a standstill of 0.3 s on. The first loop, which begins at home, is not measured.
    """
    arm = SimulatedArm(CB3, motion=Hold(CB3_HOME), seed=SEED)
    box = ControlBox(
        arm, SimulatedIdentity.for_robot(CB3, arm.controller_version, SEED, "hold")
    )
    box.stop()
    names = [name for name in ENERGY_FIELDS if name in box.values]
    rows: dict[str, list[Any]] = {name: [] for name in names}
    begins: list[int] = []
    end = np.inf
    for k in itertools.count():
        if k == round(0.3 * box.rate):
            ScriptSession(box).receive(script.encode())
        before = int(box.values["actual_digital_output_bits"]) >> MARK & 1
        box.step()
        if int(box.values["actual_digital_output_bits"]) >> MARK & 1 > before:
            begins.append(k)
            if len(begins) == int(loops) + 1:
                end = k + (loops % 1.0) * (begins[-1] - begins[-2])
        for name in names:
            rows[name].append(np.array(box.values[name], dtype=float))
        if k >= end:
            break
        assert k < LONGEST * box.rate, "the program does not come back to its loop"
    assert not box.messages, box.messages
    columns = {name: np.array(values) for name, values in rows.items()}
    time = columns.pop("timestamp")
    info = RecordingInfo(source="typed program", robot=ARM, rate=CB3.rate, simulated=True)
    telemetry = Telemetry(time, columns, info)
    power = telemetry.bus_power
    assert power is not None
    spent = np.concatenate(
        [[0.0], np.cumsum(0.5 * (power[1:] + power[:-1]) * np.diff(time))]
    )
    return Run(telemetry, np.diff(spent[begins])[1:], np.diff(time[begins])[1:])


def typed_into(script: str, sheet: Sequence[dict[str, Any]]) -> str:
    """The program after somebody typed a sheet (`--json`) into it, and nothing else.

    Every line of a move or a wait gets what its step says.
    """
    lines = script.split("\n")
    for step in sheet:
        for number in step["lines"]:
            text = lines[number - 1]
            if step["do"] == "wait":
                text = re.sub(r"sleep\(.*\)", f"sleep({step['new_wait']})", text)
            else:
                assert step["do"].lower() in text
                unit = np.pi / 180 if step["do"] == "moveJ" else 1e-3
                text = re.sub(r"v=[\d.]+", f"v={step['new_speed'] * unit:.6f}", text)
                text = re.sub(
                    r"a=[\d.]+", f"a={step['new_acceleration'] * unit:.6f}", text
                )
            lines[number - 1] = text
    return "\n".join(lines)
