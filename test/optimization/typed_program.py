"""Programs as they are typed: run on the simulated controller, without its sockets and clock."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from ur_energy_model.model.robots import load_robot
from ur_energy_model.simulation.client_interfaces import ScriptSession
from ur_energy_model.simulation.commands import ProgramState
from ur_energy_model.simulation.control_box import ControlBox, SimulatedIdentity
from ur_energy_model.simulation.simulated_arm import SimulatedArm
from ur_energy_model.telemetry.fields import ENERGY_FIELDS
from ur_energy_model.telemetry.samples import RecordingInfo, Telemetry
from ur_energy_model.trajectory.motions import Hold
from ur_energy_model.typing import Array

Lines = Sequence[str]


def vector(q: Array) -> str:
    """Joint positions as an argument."""
    return "[" + ", ".join(f"{value:.6f}" for value in q) + "]"


def program_of(cycle: Lines, times: int) -> str:
    """A cycle written out several times, as the simulated controller has no loops."""
    return "\n".join(["def typed():", *(f"  {line}" for line in (*cycle,) * times), "end", ""])


def lines_of(sheet: Sequence[dict[str, Any]]) -> list[str]:
    """What a person types who reads a sheet (`--json`), and nothing else."""
    out = []
    for step in sheet:
        if step["do"] == "wait":
            out.append(f"sleep({step['new_wait']})")
            continue
        assert step["do"] in ("moveJ", "moveL")
        to = vector(np.radians(step["waypoint"]))
        unit = np.pi / 180 if step["do"] == "moveJ" else 1e-3
        a, v = step["new_acceleration"] * unit, step["new_speed"] * unit
        out.append(f"{step['do'].lower()}({to}, a={a:.6f}, v={v:.6f})")
    return out


def run_program(text: str, start: Array, robot: str) -> Telemetry:
    """What is recorded of a program that runs to its end, from a standstill of 0.3 s on."""
    description = load_robot(robot)
    arm = SimulatedArm(description, motion=Hold(start), seed=3)
    box = ControlBox(
        arm, SimulatedIdentity.for_robot(description, arm.controller_version, 3, "hold")
    )
    box.stop()
    for _ in range(20):
        box.step()
    names = [name for name in ENERGY_FIELDS if name in box.values and name != "timestamp"]
    times: list[float] = []
    rows: dict[str, list[Any]] = {name: [] for name in names}
    for k in itertools.count():
        if k == round(0.3 * box.rate):
            ScriptSession(box).receive(text.encode())
        elif k > round(0.3 * box.rate) and box.program_state != ProgramState.PLAYING:
            break
        box.step()
        times.append(float(box.values["timestamp"]))
        for name in names:
            rows[name].append(np.array(box.values[name], dtype=float))
    assert not box.messages, box.messages
    columns = {name: np.array(values) for name, values in rows.items()}
    info = RecordingInfo(source="typed program", robot=robot, rate=description.rate, simulated=True)
    return Telemetry(np.array(times), columns, info)


def measured_cycle(telemetry: Telemetry, times: int) -> tuple[float, float]:
    """Energy at the bus [J] and duration [s] of a cycle, of a program that has it several times.

    Between the starts of the first and of the last one, so that the first and last halves of waits
    make one cycle.
    """
    playing = np.flatnonzero(telemetry["runtime_state"] == 2)
    power, time = telemetry.bus_power, telemetry.time
    assert power is not None
    rows = slice(playing[0], playing[-1] + 1)
    return (
        float(np.trapezoid(power[rows], time[rows])) / times,
        float(time[rows][-1] - time[rows][0]) / times,
    )
