"""Paths are recognized, values chosen, and what is typed from a sheet takes what it promises."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from test.identification.exact_arm import write_bag
from test.optimization.hand_made import FAST, HOME, ROBOT, effort, sampled, straight_down
from ur_energy_model.identification.pipeline import identify
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.robots import load_robot
from ur_energy_model.optimization.optimize import optimize_cycle
from ur_energy_model.optimization.programmed import (
    best_trapezoid,
    fit_trapezoid,
    programmed_move,
)
from ur_energy_model.simulation.client_interfaces import ScriptSession
from ur_energy_model.simulation.commands import ProgramState
from ur_energy_model.simulation.control_box import ControlBox, SimulatedIdentity
from ur_energy_model.simulation.kinematics import ArmKinematics
from ur_energy_model.simulation.simulated_arm import SimulatedArm, record_arm
from ur_energy_model.telemetry.fields import ENERGY_FIELDS
from ur_energy_model.telemetry.samples import RecordingInfo, Telemetry
from ur_energy_model.trajectory.motions import Hold, Trapezoid, move
from ur_energy_model.trajectory.named_motions import home_position, named_motion
from ur_energy_model.typing import Array

ARM = "ur5"
"""A CB3 arm: its controller's cycle is four times as long, and so is what the test takes."""
TIMES = 2
CB3 = load_robot(ARM)
CB3_HOME = home_position(CB3)
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


AWAY = CB3_HOME + np.array([0.7, -0.3, 0.5, 0.1, 0.0, 0.8])
OVER = CB3_HOME + np.array([-0.6, -0.2, 0.4, 0.0, 0.1, -0.5])
CYCLES = {
    "waits get shorter, a slow approach stays": (
        f"movej({vector(AWAY)}, a=4, v=2)",
        f"movej({vector(beside(AWAY, z=-0.1))}, a=1.4, v=0.5)",
        "sleep(0.4)",
        f"movej({vector(OVER)}, a=4, v=2.5)",
        f"movej({vector(CB3_HOME)}, a=3, v=1.5)",
        "sleep(1.5)",
    ),
    "moveL, and a wait at the begin": (
        "sleep(1.2)",
        f"movel({vector(beside(CB3_HOME, z=-0.12))}, a=1.2, v=0.25)",
        "sleep(0.3)",
        f"movel({vector(CB3_HOME)}, a=1.2, v=0.4)",
        f"movej({vector(AWAY)}, a=2, v=1.5)",
        f"movej({vector(CB3_HOME)}, a=2, v=2)",
    ),
}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> EnergyModel:
    """Identified from another motion of the same arm."""
    folder = tmp_path_factory.mktemp("identified")
    motion = named_motion("trajectory_a", CB3)
    bag = write_bag(folder / "bag", record_arm(SimulatedArm(CB3, motion=motion, seed=3), 30.0))
    return identify([bag], ARM).model


def typed(sheet: Sequence[dict[str, Any]]) -> list[str]:
    """What a person types who reads a sheet (`--json`), and nothing else."""
    out = []
    for step in sheet:
        if step["do"] == "wait":
            out.append(f"sleep({step['new_wait']})")
            continue
        to, unit = vector(np.radians(step["waypoint"])), 1e-3
        if step["do"] == "moveJ":
            unit = np.pi / 180
        a, v = step["new_acceleration"] * unit, step["new_speed"] * unit
        out.append(f"{step['do'].lower()}({to}, a={a:.6f}, v={v:.6f})")
    return out


def run(cycle: Sequence[str]) -> tuple[Telemetry, float, float]:
    """A recording of a program, and its energy at the bus [J] and duration [s] for one cycle.

    The program has the cycle several times, as the simulated controller has no loops, on which it
    runs without sockets and clock, from a standstill of 0.3 s on.
    """
    lines = ["def typed():", *(f"  {line}" for line in (*cycle,) * TIMES), "end", ""]
    arm = SimulatedArm(CB3, motion=Hold(CB3_HOME), seed=3)
    box = ControlBox(arm, SimulatedIdentity.for_robot(CB3, arm.controller_version, 3, "hold"))
    box.stop()
    for _ in range(20):
        box.step()
    names = [name for name in ENERGY_FIELDS if name in box.values]
    rows: dict[str, list[Any]] = {name: [] for name in names}
    for k in itertools.count():
        if k == round(0.3 * box.rate):
            ScriptSession(box).receive("\n".join(lines).encode())
        elif k > round(0.3 * box.rate) and box.program_state != ProgramState.PLAYING:
            break
        box.step()
        for name in names:
            rows[name].append(np.array(box.values[name], dtype=float))
    assert not box.messages, box.messages
    columns = {name: np.array(values) for name, values in rows.items()}
    time = columns.pop("timestamp")
    info = RecordingInfo(source="typed program", robot=ARM, rate=CB3.rate, simulated=True)
    telemetry = Telemetry(time, columns, info)
    power, playing = telemetry.bus_power, np.flatnonzero(telemetry["runtime_state"] == 2)
    assert power is not None
    whole = slice(playing[0], playing[-1] + 1)
    energy, duration = np.trapezoid(power[whole], time[whole]), np.ptp(time[whole])
    return telemetry, float(energy) / TIMES, float(duration) / TIMES


@pytest.mark.parametrize("cycle", CYCLES.values(), ids=CYCLES)
def test_the_sheet_as_typed_gives_what_it_promises(
    cycle: tuple[str, ...], model: EnergyModel, tmp_path: Path
) -> None:
    before, old, _ = run(cycle)
    found = optimize_cycle(model, write_bag(tmp_path / "cell", before))
    sheet = found.as_json()["sheet"]
    assert [step["do"].lower().replace("wait", "sleep") for step in sheet] == [
        line.split("(")[0] for line in cycle
    ]
    waits = [step["wait"] for step in sheet if step["do"] == "wait"]
    assert waits == pytest.approx([float(x[6:-1]) for x in cycle if "sleep" in x], abs=0.02)
    _, new, duration = run(typed(sheet))
    assert found.typed_saving_percent == pytest.approx(100.0 * (1.0 - new / old), abs=1.0)
    assert found.typed_duration == pytest.approx(duration, rel=0.01)
    assert found.typed_energy < found.energy
    assert found.typed_saving_percent <= found.ceiling.most_saving_percent
    for step in sheet:
        if step["kept"] and step["do"] != "wait":
            assert step["new_speed"] == step["speed"]
            assert step["new_acceleration"] == step["acceleration"]


STEP = np.array([0.2, -0.5, 0.9, 0.0, 0.1, -0.3])


@pytest.mark.parametrize(("speed", "acceleration", "late"), [(1.5, 3.0, 0.0), (3.0, 2.0, 0.0013)])
def test_a_trapezoid_is_recovered(speed: float, acceleration: float, late: float) -> None:
    """Also where the move starts between two samples, and where it never reaches its speed."""
    truth = Trapezoid(0.9, speed, acceleration)
    time = np.arange(0.0, truth.duration + 0.004, 0.002)
    _, speed, found = fit_trapezoid(time, truth.sample(time - late)[0])
    assert speed == pytest.approx(truth.peak, rel=2e-3)
    assert found == pytest.approx(acceleration, rel=5e-3)


def test_the_best_trapezoid_fills_its_slot_and_is_never_longer() -> None:
    """Its energy is that of the best one, found by trying many."""
    time, q, _, _ = sampled(move(HOME, HOME + STEP, *FAST))
    slot, programmed = 2.0, programmed_move(time, q, ROBOT)
    assert programmed is not None
    best = best_trapezoid(programmed, slot, effort, (np.pi / 180.0, np.pi / 180.0))
    assert best is not None
    assert 0.97 * slot < best.duration <= slot
    others = []
    for ratio in np.linspace(1.02, 2.0, 200):
        speed = ratio * 0.9 / slot
        others.append(effort(move(HOME, HOME + STEP, speed, speed / (slot - 0.9 / speed))))
    assert best.energy <= 1.01 * min(others)


def test_a_straight_tool_is_a_movel_with_its_length() -> None:
    time, q, _, _ = sampled(straight_down(HOME, 0.2))
    line = programmed_move(time, q, ROBOT)
    assert line is not None
    assert (line.kind, line.distance) == ("moveL", pytest.approx(0.2, abs=1e-6))
    slow = line.motion(0.05, 0.3)
    assert slow.duration == pytest.approx(0.2 / 0.05 + 0.05 / 0.3)
    end = slow.sample(np.array([slow.duration]))[0][0]
    np.testing.assert_allclose(end, q[-1], atol=1e-5)
    after, beyond, _, _ = sampled(move(q[-1], q[-1] + STEP, *FAST))
    corner = np.concatenate([q, beyond])
    assert programmed_move(np.append(time, time[-1] + 0.002 + after), corner, ROBOT) is None
