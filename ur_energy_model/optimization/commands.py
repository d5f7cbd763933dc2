# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""`ur_energy optimize`: the same work for less energy."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from ur_energy_model.cli.arguments import model_needed, tariff_of
from ur_energy_model.cli.output import (
    WIDTH,
    note,
    print_json,
    print_line,
    print_table,
    progress,
    warn,
)
from ur_energy_model.consistency.contradiction import Contradiction
from ur_energy_model.energy.matched_model import model_of_recording
from ur_energy_model.files import (
    check_output,
    check_output_folder,
    is_recording,
    write_text,
)
from ur_energy_model.identification.payload_check import wrong_payload
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.robots import load_robot
from ur_energy_model.model.setup import Payload
from ur_energy_model.optimization.cycle import OptimizationOptions
from ur_energy_model.optimization.optimize import in_session_of, optimize_cycle
from ur_energy_model.optimization.optimized_cycle import OptimizedCycle
from ur_energy_model.optimization.page import (
    energies_table,
    front_table,
    make_optimization_report,
    measured_front_table,
    measured_table,
    optimization_page,
)
from ur_energy_model.optimization.room import OptimizeOptions
from ur_energy_model.options import options_of
from ur_energy_model.report.render import render
from ur_energy_model.rooms import Given, extensions

PAGE = "optimize.html"
"""The page in the folder of -o."""
ALTERNATIVES = "optimize"
"""Subject of what rooms can do in place of an optimisation, each an `Alternative`."""
CYCLE_EXECUTION = "cycle execution"
"""Subject of the rooms' extensions that use an optimised cycle, each a `CycleExecution`."""


class Alternative(Protocol):
    """A function of another room that can run in place of an optimisation."""

    def __call__(self, given: Given) -> bool:
        """Run if the options of the extension ask for it; whether they do."""
        ...


class CycleExecution(Protocol):
    """Work of a room on an optimised cycle: programs for the arm, and a run on the arm."""

    def check(self, given: Given, output: Path | None) -> None:
        """Refuse options of the extension that contradict each other, as usage errors.

        Args:
            given: options of the command.
            output: the folder of -o.
        """
        ...

    def exported(self, optimized: OptimizedCycle, output: Path) -> Mapping[Path, str]:
        """Write the cycle to files for people and controllers.

        Args:
            optimized: the cycle.
            output: folder for the files.

        Returns:
            The purpose of each file, by its path.
        """
        ...

    def proved(
        self,
        given: Given,
        optimized: OptimizedCycle,
        model: EnergyModel,
        bag: Path,
        output: Path | None,
    ) -> OptimizedCycle:
        """The cycle with the saving that was measured on the arm, if that is asked for.

        Args:
            given: options of the command.
            optimized: the cycle.
            model: model of the arm.
            bag: recording of the cycle, by which the arm is recognised.
            output: the folder of -o, in which the run is recorded.

        Raises:
            UrEnergyError: the arm does not move, or is another one.
        """
        ...


def optimize(given: Given) -> None:
    """Optimize, prove on the arm, write files and page, and print.

    Raises:
        UrEnergyError: the recording, the model or an option cannot be used, or the proof
            on the arm fails.
    """
    alternatives: list[Alternative] = [each.load() for each in extensions(ALTERNATIVES)]
    if any(alternative(given) for alternative in alternatives):
        return
    options = given.of(OptimizeOptions)
    path, bag = _model_and_bag(given, options)
    executions: list[CycleExecution] = [
        each.load() for each in extensions(CYCLE_EXECUTION)
    ]
    for execution in executions:
        execution.check(given, options.output)
    page = _checked_page(options)
    model = model_needed(given, path, bag)
    matched = model_of_recording(model, bag, same_arm=options.same_arm)
    model = matched.model
    wrong = wrong_payload(model, bag)
    carried = None if wrong is None else wrong.shown
    with progress("optimizing the cycle") as report:
        limits = _optimization(options, pareto=page is not None)
        optimized = optimize_cycle(model, bag, limits, payload=carried, progress=report)
    doubts: list[str] = []
    contradictions: list[Contradiction] = []
    if wrong is not None:
        contradictions.append(wrong.contradiction)
        doubts.append(wrong.contradiction.words())
        doubts.append(
            f"predicted for the {wrong.shown.mass:.2f} kg that the currents show"
        )
    optimized = replace(optimized, notes=[*doubts, *optimized.notes])
    for execution in executions:
        optimized = _executed(execution, given, optimized, model, bag)
    if page is not None:
        _write_page(page, options, optimized, model, bag, carried)
    warnings = list(doubts)
    if matched.warning is not None:
        warnings.append(matched.warning)
    if options.json:
        found = [each.as_json() for each in contradictions]
        print_json({**optimized.as_json(), "warnings": warnings, "contradictions": found})
    else:
        warn(warnings)
        print_cycle(optimized, pareto=options.pareto)


def _model_and_bag(given: Given, options: OptimizeOptions) -> tuple[Path | None, Path]:
    """MODEL.yaml and BAG; a usage error without a recording."""
    if options.bag is not None:
        return options.model, options.bag
    if options.model is not None and is_recording(options.model):
        return None, options.model
    others = ""
    for extension in extensions(ALTERNATIVES):
        if extension.options is not None:
            first = options_of(extension.options)[0]
            others += f", or {first.label} {first.placeholder}..."
    given.refuse(f"MODEL.yaml and BAG are needed{others}")


def _checked_page(options: OptimizeOptions) -> Path | None:
    """The page to write; None for none.

    Raises:
        InputError: an output exists, and may not be overwritten.
    """
    if options.output is not None:
        check_output_folder(options.output, overwrite=options.overwrite)
    if options.report is not None:
        check_output(options.report, overwrite=options.overwrite)
        return options.report
    return None if options.output is None else options.output / PAGE


def _optimization(options: OptimizeOptions, *, pareto: bool) -> OptimizationOptions:
    """Options of the optimization; `pareto`: the page shows the energies over the cycle time."""
    return OptimizationOptions(
        cycle_time=options.cycle_time,
        keep_dwell=options.keep_dwell,
        jerk=options.jerk,
        tool_speed=options.tool_speed,
        recorded_limits=options.recorded_limits,
        power_off_after=options.power_off_after,
        keep_slow=options.keep_slow,
        max_speedup=options.max_speedup,
        pareto=options.pareto or pareto,
        front_points=options.pareto_points if options.pareto else 0,
        keep=options.keep,
    )


def _executed(
    execution: CycleExecution,
    given: Given,
    optimized: OptimizedCycle,
    model: EnergyModel,
    bag: Path,
) -> OptimizedCycle:
    """The cycle, exported to the folder of -o, and proved on the arm if that is asked for."""
    output = given.of(OptimizeOptions).output
    if output is not None:
        for path, purpose in execution.exported(optimized, output).items():
            note(f"wrote {path}: {purpose}")
    proved = execution.proved(given, optimized, model, bag, output)
    if output is not None and proved is not optimized:
        execution.exported(proved, output)  # with the measured saving
    return proved


def _write_page(
    page: Path,
    options: OptimizeOptions,
    optimized: OptimizedCycle,
    model: EnergyModel,
    bag: Path,
    carried: Payload | None,
) -> None:
    """Write the page of an optimised cycle; `carried` is the payload that was predicted for."""
    in_session = in_session_of(model, bag, payload=carried)
    tariff = tariff_of(options.tariff)
    made = make_optimization_report(in_session, optimized, tariff=tariff)
    write_text(page, render(optimization_page(made)))
    note(f"page written to {page}; open it in a browser")


# Tables for a person with the pendant in hand.


def print_cycle(optimized: OptimizedCycle, *, pareto: bool) -> None:
    """Print what to type into the pendant, the energies, and how sure the saving is.

    Args:
        optimized: the cycle.
        pareto: whether to print the least energy over the cycle time, too.
    """
    cycle = optimized.cycle
    print_text(optimized.ceiling.text())
    _print_sheet(optimized)
    energies = energies_table(optimized)
    print_table(f"{energies.title} at the supply", energies.columns, energies.rows)
    low, high = optimized.typed_interval
    doubt = "" if low > 0.0 else ", not proven"
    print_text(
        f"Saving as typed: {optimized.typed_saving_percent:.1f} % ({low:.1f} to {high:.1f} % "
        f"with 95 % confidence){doubt}."
    )
    print_text(optimized.copy_advice)
    now, _, fast = optimized.loads
    print_text(
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
    measured = measured_table(optimized.measured)
    if measured is not None:
        print_table(measured.title, measured.columns, measured.rows)
    if pareto and optimized.pareto is not None:
        times, curve = optimized.pareto.T.tolist()
        print_table(
            "Least energy over the cycle time",
            ["cycle time [s]", "energy [J]"],
            [(f"{x:.2f}", f"{y:.1f}") for x, y in zip(times, curve, strict=True)],
        )
    front = front_table(optimized.power_front)
    if front is not None:
        print_table(f"{front.title} at the supply", front.columns, front.rows)
    run = measured_front_table(optimized.power_front)
    if run is not None:
        print_table(run.title, run.columns, run.rows)
    for text in optimized.notes:
        print_line(f"- {text}")


def _print_sheet(optimized: OptimizedCycle) -> None:
    """Print the steps of the sheet, and below them where each move ends."""
    cycle = optimized.cycle
    sheet = optimized.sheet
    numbered = any(step.lines for step in sheet)
    line_heading = ["line"] if numbered else []
    values = []
    waypoints = []
    for number, step in enumerate(sheet, 1):
        line = [step.line] if numbered else []
        name = f"{number} {step.do}"
        if step.kept:
            name += ", kept"
        if step.do == "wait":
            changes = [step.text("wait"), ""]
        else:
            changes = [step.text("speed"), step.text("acceleration")]
        values.append([name, *line, *changes, step.text("energy")])
        if step.waypoint:
            angles = [f"{angle:.2f}" for angle in step.waypoint]
            waypoints.append([str(number), *line, *angles])
    many = "1 cycle" if cycle.count == 1 else f"{cycle.count} cycles"
    print_table(
        f"What to type, now → new ({Path(cycle.source).name}: {many} of {cycle.duration:.2f} s, "
        f"{len(cycle.moves)} moves, {cycle.slack:.2f} s of slack)",
        ["step", *line_heading, "speed or wait", "acceleration", "energy [J]"],
        values,
    )
    print_table(
        "Which step that is: where the move ends, joint angles in degrees",
        ["step", *line_heading, *load_robot(cycle.robot).joint_names],
        waypoints,
    )


def print_text(text: str) -> None:
    """Print sentences, wrapped to the width of the terminal."""
    for line in textwrap.wrap(text, WIDTH):
        print_line(line)
