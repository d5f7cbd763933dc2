"""Paths are recognized, values chosen, and what is typed from a sheet takes what it promises."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from test.identification.exact_arm import write_bag
from test.optimization.hand_made import (
    FAST,
    HOME,
    ROBOT,
    effort,
    sampled,
    straight_down,
)
from test.optimization.typed_program import (
    lines_of,
    measured_cycle,
    program_of,
    run_program,
    vector,
)
from ur_energy_model.identification.pipeline import identify
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.robots import load_robot
from ur_energy_model.optimization.optimize import optimize_cycle
from ur_energy_model.optimization.programmed import (
    best_trapezoid,
    fit_trapezoid,
    programmed_move,
)
from ur_energy_model.simulation.kinematics import ArmKinematics
from ur_energy_model.simulation.simulated_arm import SimulatedArm, record_arm
from ur_energy_model.trajectory.motions import Trapezoid, move
from ur_energy_model.trajectory.named_motions import home_position, named_motion
from ur_energy_model.typing import Array

ARM = "ur5"
"""A CB3 arm: its controller's cycle is four times as long, and so is what the test takes."""
TIMES = 2
CB3 = load_robot(ARM)
CB3_HOME = home_position(CB3)
KINEMATICS = ArmKinematics(CB3)


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


@pytest.mark.parametrize("cycle", CYCLES.values(), ids=CYCLES)
def test_the_sheet_as_typed_gives_what_it_promises(
    cycle: tuple[str, ...], model: EnergyModel, tmp_path: Path
) -> None:
    before = run_program(program_of(cycle, TIMES), CB3_HOME, ARM)
    found = optimize_cycle(model, write_bag(tmp_path / "cell", before))
    sheet = found.as_json()["sheet"]
    assert [step["do"].lower().replace("wait", "sleep") for step in sheet] == [
        line.split("(")[0] for line in cycle
    ]
    waits = [step["wait"] for step in sheet if step["do"] == "wait"]
    assert waits == pytest.approx([float(x[6:-1]) for x in cycle if "sleep" in x], abs=0.02)
    old, _ = measured_cycle(before, TIMES)
    after = run_program(program_of(lines_of(sheet), TIMES), CB3_HOME, ARM)
    new, duration = measured_cycle(after, TIMES)
    saving = 100.0 * (1.0 - new / old)
    assert found.typed_saving_percent == pytest.approx(saving, abs=1.0)
    assert found.typed_duration == pytest.approx(duration, rel=0.01)
    assert found.typed_energy < found.energy
    assert found.ceiling is not None
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
