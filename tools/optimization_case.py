# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Makes the worked case of docs/optimization/optimization.md: a cycle of a simulated UR5e.

    python -m tools.optimization_case

Records the cycle and a motion for identification, optimizes the cycle, runs both cycles
in turns on the same arm, writes the figures into the page and draws the pictures.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tools.documentation_images import DOCS, SEED, record
from ur_energy_model.experiment.cycle_proof import Proof, measured_saving
from ur_energy_model.identification.pipeline import identify
from ur_energy_model.model.robots import load_robot
from ur_energy_model.optimization.commands import print_cycle
from ur_energy_model.optimization.cycle import OptimizationOptions
from ur_energy_model.optimization.optimize import in_session_of, optimize_cycle
from ur_energy_model.optimization.page import (
    cycle_time_chart,
    front_chart,
    front_table,
    make_optimization_report,
    power_chart,
)
from ur_energy_model.report.figures import save_chart
from ur_energy_model.simulation.simulated_arm import SimulatedArm, record_arm
from ur_energy_model.telemetry.bag.writer import BagWriter
from ur_energy_model.trajectory.kinematics import ArmKinematics, LinePlanner, StraightLine
from ur_energy_model.trajectory.motions import Chain, Motion, move
from ur_energy_model.trajectory.named_motions import home_position

if TYPE_CHECKING:
    from ur_energy_model.optimization.optimized_cycle import OptimizedCycle
    from ur_energy_model.typing import Array

ROBOT = load_robot("ur5e")
JOINT_SPEED = np.radians(150.0)
JOINT_ACCELERATION = np.radians(320.0)
"""Of the moveJs [rad/s, rad/s^2]."""
# of the moveLs [m/s, m/s^2]
TOOL_SPEED = 0.5
TOOL_ACCELERATION = 2.0
GRIP = 0.4  # wait of the gripper [s]
SLACK = 0.4  # share of the cycle in which the arm only waits
DEPTH = 0.15  # way down to part and place [m]
CYCLES = 6
FRONT_POINTS = 6
FOLDER = DOCS / "optimization"
PAGE = FOLDER / "optimization.md"
# around the figures in the page
BEGIN = "<!-- case -->\n"
END = "<!-- end of case -->\n"


def main() -> None:
    """Make figures and pictures."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model = identify([record("trajectory_a", 60.0, folder)], "ur5e").model
        cell = folder / "cell"
        program = pick_and_place()
        write(cell, program, 4.2 * program.duration)
        options = OptimizationOptions(pareto=True, front_points=FRONT_POINTS)
        found = optimize_cycle(model, cell, options)
        proof = Proof.of(found, CYCLES)
        write(folder / "proof", proof.motion(), proof.motion().duration + 1.0)
        found = replace(found, measured=measured_saving(folder / "proof", proof))
        print_cycle(found, pareto=True)
        PAGE.write_text(with_figures(PAGE.read_text("utf-8"), found), "utf-8")
        report = make_optimization_report(in_session_of(model, cell), found)
        charts = (power_chart(report), cycle_time_chart(report))
        for chart in (*charts, front_chart(found.power_front)):
            assert chart is not None
            print(*save_chart(chart, FOLDER, name=f"optimization_{chart.key}"))


def with_figures(page: str, found: OptimizedCycle) -> str:
    """The page with the figures of the case."""
    lines = [
        "| step | speed | acceleration | wait | energy [J] |",
        "|---|---|---|---|---|",
    ]
    for number, step in enumerate(found.sheet, 1):
        texts = ("", "", step.text("wait")) if step.do == "wait" else (
            step.text("speed"), step.text("acceleration"), "",
        )  # fmt: skip
        kept = ", kept" if step.kept else ""
        cells = " | ".join((*texts, step.text("energy")))
        lines.append(f"| {number} {step.do}{kept} | {cells} |")
    duration = f"{found.duration:.2f} s"
    lines += ["", f"| cycle of {duration} | energy [J] | saving |", "|---|---|---|"]
    compared = {
        "as recorded": found.energy,
        "as typed above": found.typed_energy,
        "as set points": found.new_energy,
        "slowed by speed scaling": found.scaled_energy,
        f"as fast as possible ({found.time_optimal_duration:.2f} s)": found.time_optimal_energy,
    }
    for name, energy in compared.items():
        lines.append(
            f"| {name} | {energy:.1f} | {100 * (1 - energy / found.energy):.1f} % |"
        )
    low, high = found.typed_interval
    measured = found.measured
    assert measured is not None
    lines += [
        "",
        f"Predicted saving as typed: {found.typed_saving_percent:.1f} % ({low:.1f} to "
        f"{high:.1f} %), as set points {found.saving_percent:.1f} %.",
        f"Measured as typed over {measured.cycles} cycles of each kind: "
        f"{measured.saving_percent:.1f} %",
        "({:.2f} to {:.2f} %), from {:.1f} J to {:.1f} J.".format(
            *measured.interval, measured.energy, measured.new_energy
        ),
        "",
    ]
    front = front_table(found.power_front)
    assert front is not None
    rule = "|" + "---|" * len(front.columns)
    lines += ["| " + " | ".join(front.columns) + " |", rule]
    lines += ["| " + " | ".join(map(str, row)) + " |" for row in front.rows]
    lines.append("")
    before, rest = page.split(BEGIN)
    return before + BEGIN + "\n" + "\n".join(lines) + "\n" + END + rest.split(END)[1]


def pick_and_place() -> Chain:
    """Home, down to a part and up, over to its place, down and up, home, and waiting."""
    home = home_position(ROBOT)
    part = home + np.array([1.1, -0.3, 0.4, -0.1, 0.0, 0.8])
    place = home + np.array([-0.9, -0.2, 0.3, -0.1, 0.0, -0.6])
    parts: list[tuple[Motion, float]] = [(_joint_move(home, part), 0.0)]
    for point, after in ((part, place), (place, home)):
        down = _straight(point, -DEPTH)
        bottom = _end(down)
        up = _straight(bottom, DEPTH)
        parts += [(down, GRIP), (up, 0.0), (_joint_move(_end(up), after), 0.0)]
    ends = np.cumsum([motion.duration + wait for motion, wait in parts])
    return Chain(
        [m for m, _ in parts], [0.0, *ends[:-1]], float(ends[-1]) / (1.0 - SLACK)
    )


def write(path: Path, motion: Motion, seconds: float) -> None:
    """Record the arm of the case along a motion."""
    telemetry = record_arm(SimulatedArm(ROBOT, motion=motion, seed=SEED), seconds)
    with BagWriter(path, telemetry.info, tuple(telemetry.columns), name=path.name) as bag:
        bag.write(telemetry)


def _joint_move(start: Array, end: Array) -> Motion:
    return move(start, end, JOINT_SPEED, JOINT_ACCELERATION)


def _straight(start: Array, way: float) -> StraightLine:
    """A moveL straight up, or down where the way is negative [m]."""
    kinematics = ArmKinematics(ROBOT)
    tool = np.zeros(6)
    goal = kinematics.forward(start, tool).copy()
    goal[2] += way
    planner = LinePlanner(
        kinematics, start, goal, tool, TOOL_SPEED, TOOL_ACCELERATION, ROBOT.max_velocity
    )
    while (line := planner.advance()) is None:
        pass
    return line


def _end(motion: Motion) -> Array:
    return np.asarray(motion.sample(np.array([motion.duration]))[0][0])


if __name__ == "__main__":
    main()
