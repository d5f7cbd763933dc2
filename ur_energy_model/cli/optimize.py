# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""`ur_energy optimize`: the same work for less energy."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from ur_energy_model.cli.arguments import model_needed, tariff_given
from ur_energy_model.cli.excite import check_execution, run_recorded, surroundings_given
from ur_energy_model.cli.output import (
    WIDTH,
    note,
    picked,
    print_json,
    print_line,
    print_table,
    progress,
    warn,
)
from ur_energy_model.cli.parser import is_recording
from ur_energy_model.energy.telemetry_checks import model_of_recording
from ur_energy_model.experiment.cycle_exports import export_cycle
from ur_energy_model.experiment.cycle_proof import (
    Proof,
    measured_saving,
    require_predicted,
)
from ur_energy_model.experiment.execution import ExecutionPlan
from ur_energy_model.experiment.same_arm import arm_of_recording
from ur_energy_model.files import check_output, check_output_folder, write_text
from ur_energy_model.identification.payload_check import wrong_payload
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.robots import RobotDescription, load_robot
from ur_energy_model.model.setup import Setup
from ur_energy_model.optimization.cycle import OptimizationOptions
from ur_energy_model.optimization.optimize import in_session_of, optimize_cycle
from ur_energy_model.optimization.optimized_cycle import MeasuredSaving, OptimizedCycle
from ur_energy_model.optimization.page import energies_table, measured_table
from ur_energy_model.plant.production import Production

PAGE = "optimize.html"  # in the folder of -o
PROOF = "proof"  # recording of the run, in the folder of -o


def run(options: argparse.Namespace) -> None:
    """Optimize, prove on the arm, write files and page, and print."""
    if options.before or options.after or options.history or options.changed:
        _compare_production(options)
        return
    if options.bag is None and options.model is not None and is_recording(options.model):
        options.model, options.bag = None, options.model
    if options.bag is None:
        options.parser.error(
            "MODEL.yaml and BAG are needed, or --before BAG... --after BAG..."
        )
    check_execution(options, "FOLDER")
    if options.output is not None:
        check_output_folder(options.output, overwrite=options.overwrite)
    page: Path | None = options.report
    if page is not None:
        check_output(page, overwrite=options.overwrite)
    elif options.output is not None:
        page = options.output / PAGE
    model = model_needed(options, options.bag)
    matched = model_of_recording(model, options.bag, same_arm=options.same_arm)
    model = matched.model
    warnings = [] if matched.warning is None else [matched.warning]
    names = (
        "cycle_time keep_dwell jerk tool_speed recorded_limits power_off_after keep_slow"
    )
    wanted = OptimizationOptions(
        **picked(options, f"{names} max_speedup"),
        pareto=options.pareto or page is not None,
        keep=options.keep,
    )
    wrong = wrong_payload(model, options.bag)
    carried = None if wrong is None else wrong.shown
    with progress("optimizing the cycle") as report:
        optimized = optimize_cycle(
            model, options.bag, wanted, payload=carried, progress=report
        )
    contradictions = [] if wrong is None else [wrong.contradiction]
    doubts = [each.words() for each in contradictions]
    if wrong is not None:
        doubts.append(
            f"predicted for the {wrong.shown.mass:.2f} kg that the currents show"
        )
    optimized = replace(optimized, notes=[*doubts, *optimized.notes])
    warnings = [*doubts, *warnings]
    robot = model.description()
    if options.output is not None:
        for path, purpose in export_cycle(optimized, robot, options.output).items():
            note(f"wrote {path}: {purpose}")
    if options.execute:
        optimized = replace(
            optimized, measured=_measured(optimized, model, robot, options)
        )
        export_cycle(optimized, robot, options.output)  # with the measured saving
    if page is not None:
        from ur_energy_model.optimization.page import (
            make_optimization_report,
            optimization_page,
        )
        from ur_energy_model.report.page import render

        model = in_session_of(model, options.bag, payload=carried)
        tariff = tariff_given(options)
        made = make_optimization_report(model, optimized, tariff=tariff)
        write_text(page, render(optimization_page(made)))
        note(f"page written to {page}; open it in a browser")
    if options.json:
        found = [each.as_json() for each in contradictions]
        print_json({**optimized.as_json(), "warnings": warnings, "contradictions": found})
    else:
        warn(warnings)
        print_cycle(optimized, pareto=options.pareto)


def _measured(
    optimized: OptimizedCycle,
    model: EnergyModel,
    robot: RobotDescription,
    options: argparse.Namespace,
) -> MeasuredSaving:
    """Run the cycle as recorded and as typed in turns and measure the saving."""
    cycle = optimized.cycle
    proof = Proof.of(optimized, options.cycles)
    carried = [
        model.setup.payload if m.payload is None else m.payload for m in cycle.moves
    ]
    setup = Setup(model.setup.gravity, max(carried, key=lambda payload: payload.mass))
    limits = proof.limits(surroundings_given(options, robot, setup))
    plan = ExecutionPlan(
        proof.motion(),
        limits,
        warm_up=60.0 * options.warm_up,
        arm=arm_of_recording(options.bag, robot, proof.positions),
        another_arm=options.another_arm,
    )
    bag: Path = options.output / PROOF
    number = 2
    while bag.exists():
        bag = options.output / f"{PROOF}_{number}"
        number = number + 1
    run_recorded(plan, options.host, bag, assume_yes=options.yes)
    note(f"recorded {bag}")
    return require_predicted(measured_saving(bag, proof), optimized, bag)


# Tables for a person with the pendant in hand.


def print_cycle(optimized: OptimizedCycle, *, pareto: bool) -> None:
    """The result; with `pareto`, also the least energy over the cycle time."""
    cycle = optimized.cycle
    sheet = optimized.sheet
    numbered = any(step.lines for step in sheet)
    line_heading = ["line"] if numbered else []
    _print_text(optimized.ceiling.text())
    many = "1 cycle" if cycle.count == 1 else f"{cycle.count} cycles"
    print_table(
        f"What to type, now → new ({Path(cycle.source).name}: {many} of {cycle.duration:.2f} s, "
        f"{len(cycle.moves)} moves, {cycle.slack:.2f} s of slack)",
        ["step", *line_heading, "speed or wait", "acceleration", "energy [J]"],
        [
            [
                f"{number} {step.do}{', kept' if step.kept else ''}",
                *([step.line] if numbered else []),
                step.text("wait" if step.do == "wait" else "speed"),
                "" if step.do == "wait" else step.text("acceleration"),
                step.text("energy"),
            ]
            for number, step in enumerate(sheet, 1)
        ],
    )
    print_table(
        "Which step that is: where the move ends, joint angles in degrees",
        ["step", *line_heading, *load_robot(cycle.robot).joint_names],
        [
            [
                str(number),
                *([step.line] if numbered else []),
                *(f"{angle:.2f}" for angle in step.waypoint),
            ]
            for number, step in enumerate(sheet, 1)
            if step.waypoint
        ],
    )
    energies = energies_table(optimized)
    print_table(f"{energies.title} at the supply", energies.columns, energies.rows)
    low, high = optimized.typed_interval
    _print_text(
        f"Saving as typed: {optimized.typed_saving_percent:.1f} % ({low:.1f} to {high:.1f} % "
        f"with 95 % confidence){_unproven(low > 0.0)}."
    )
    _print_text(optimized.copy_advice)
    now, _, fast = optimized.loads
    _print_text(
        f"As fast as possible costs the arm {100 * fast.torque_share:.0f} % of the largest "
        f"torque ({fast.joint}; now {100 * now.torque_share:.0f} %), "
        f"{fast.torque_rms / now.torque_rms:.1f} times the effective torque, and "
        f"{fast.power:.0f} W at its peak (now {now.power:.0f} W)."
    )
    if cycle.measured_energy is not None:
        print_line(
            f"measured in the recording: {cycle.measured_energy:.1f} J per cycle, scatter "
            f"{cycle.measured_energy_std:.1f} J"
        )
    if (measured := measured_table(optimized.measured)) is not None:
        print_table(measured.title, measured.columns, measured.rows)
    if pareto and optimized.pareto is not None:
        print_table(
            "Least energy over the cycle time",
            ["cycle time [s]", "energy [J]"],
            [
                (f"{time:.2f}", f"{energy:.1f}")
                for time, energy in optimized.pareto.tolist()
            ],
        )
    for text in optimized.notes:
        print_line(f"- {text}")


def _unproven(proven: bool) -> str:
    return "" if proven else ", not proven"


def _print_text(text: str) -> None:
    for line in textwrap.wrap(text, WIDTH):
        print_line(line)


# The saving of a changed program, from ordinary production.


def _compare_production(options: argparse.Namespace) -> None:
    """Print the saving of a changed program."""
    from ur_energy_model.plant.before_after import compare
    from ur_energy_model.plant.production import (
        recorded_productions,
        stored_productions,
    )

    if options.model is not None or options.execute or options.output or options.report:
        options.parser.error(
            "--before, --after and --changed need no model, and write no files"
        )
    if options.history is not None or options.changed is not None:
        if (
            options.history is None
            or options.changed is None
            or options.before
            or options.after
        ):
            options.parser.error(
                "--history STORE and --changed DATE belong together, alone"
            )
        from ur_energy_model.cli.history import store_given
        from ur_energy_model.plant.database import HistoryDatabase, instant

        changed = instant(options.changed, "--changed")
        options.store = options.history
        arms = () if options.arm is None else (options.arm,)
        stored = HistoryDatabase(store_given(options), arms=arms)
        before, after = stored_productions(stored, changed)
    else:
        if not options.before or not options.after:
            options.parser.error("--before BAG... and --after BAG... belong together")
        with progress("finding the cycles") as report:
            before, after = recorded_productions(
                options.before, options.after, progress=report
            )
    comparison = compare(before, after)
    if options.json:
        print_json(comparison.as_json())
        return
    source = "measured at the bus" if comparison.is_measured else "from the model"
    print_table(
        f"Cycles of ordinary production, {source}",
        [
            "",
            "recordings",
            "cycles",
            "cycle [s]",
            "energy [J]",
            "scatter [J]",
            "at rest [W]",
        ],
        [_side_row("before", before), _side_row("after", after)],
    )
    percent = 100.0 / comparison.energy
    low, high = (end * percent for end in comparison.interval)
    found = f"Saving per cycle: {comparison.saving:.1f} J, {comparison.saving * percent:.1f} %"
    if np.isfinite(low):
        interval = f"({low:.1f} to {high:.1f} % with 95 % confidence)"
        _print_text(f"{found} {interval}{_unproven(comparison.proven)}.")
    else:
        _print_text(f"{found}, not proven: its interval is unknown.")
    for text in (*comparison.notes, *comparison.differences):
        print_line(f"- {text}")


def _side_row(name: str, side: Sequence[Production]) -> list[str | float | None]:
    """The cycles before or after in a row of the table."""
    energy = np.concatenate([each.energy for each in side])
    idle = [each.idle for each in side if each.idle is not None]
    return [
        name,
        len(side),
        len(energy),
        float(np.mean(np.concatenate([each.duration for each in side]))),
        float(np.mean([each.energy.mean() for each in side])),
        float(energy.std(ddof=1)) if len(energy) > 1 else None,
        float(np.mean(idle)) if len(idle) == len(side) else None,
    ]
