# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The page of an optimized cycle: powers over time, what to type, what is saved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ur_energy_model.energy.prediction import PlanPowers
from ur_energy_model.energy.tariff import DAYS_PER_YEAR, Tariff
from ur_energy_model.energy.wall import SOURCES
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.optimization.cycle import (
    CycleEnergies,
    Stretch,
    WorkCycle,
    recorded_stretches,
)
from ur_energy_model.optimization.optimized_cycle import (
    BREAK,
    MeasuredSaving,
    OptimizedCycle,
)
from ur_energy_model.optimization.pendant import Step, typed_stretches
from ur_energy_model.optimization.power_front import PEAK_WINDOW, PowerFront
from ur_energy_model.report.chart import (
    BarChart,
    Bars,
    Line,
    LineChart,
    Panel,
    Role,
    Timeline,
)
from ur_energy_model.report.page import (
    Cell,
    Lock,
    Page,
    PageSection,
    Table,
    Tile,
    arm_name,
    items,
)
from ur_energy_model.report.verdict import Grade, ModelVerdict, Statement
from ur_energy_model.typing import Array

STEP = 0.01  # time between samples of the drawn powers [s]
SCALED_POINTS = 10  # number of points of the curve of speed scaling
_GROUP = "cycle"


@dataclass(frozen=True)
class CyclePowers(Timeline):
    """Predicted powers over one cycle, from its start.

    Attributes:
        time: times of k samples [k], s (of `Timeline`).
        breaks: none (of `Timeline`).
        qd: joint speeds [k, n], rad/s.
        standby: power of the arm without motors and drivers [k], W.
        driver: power of the drivers [k], W.
        electrical: power of the motors [k, n], W.
        total: power of the whole arm at the supply [k], W.
    """

    qd: Array
    standby: Array
    driver: Array
    electrical: Array
    total: Array


@dataclass(frozen=True)
class OptimizationReport:
    """The content of the page.

    Attributes:
        optimized: the optimized cycle.
        joint_names: names of the joints from base to tool.
        before: powers of the cycle as recorded.
        after: powers of the cycle as typed.
        scaled: cycle times [s] and energies [J] of speed scaling [k, 2]; None without the
            curve of least energy.
        tariff: price and CO2 of energy.
    """

    optimized: OptimizedCycle
    joint_names: tuple[str, ...]
    before: CyclePowers
    after: CyclePowers
    scaled: Array | None
    tariff: Tariff


def make_optimization_report(
    model: EnergyModel, optimized: OptimizedCycle, *, tariff: Tariff | None = None
) -> OptimizationReport:
    """The content of the page of an optimized cycle.

    Powers over time are predicted for the cycle as recorded and as typed, and the energy
    of the recorded moves slowed down evenly, where the curve of least energy is known.

    Args:
        model: model of the arm in the session of the recording.
        optimized: the cycle.
        tariff: price and CO2 of energy; None for neither.
    """
    cycle = optimized.cycle
    pareto = optimized.pareto
    scaled = None
    energies = CycleEnergies(model, cycle.temperature)
    if pareto is not None:
        scaled = _scaled_energies(energies, cycle, longest=float(pareto[-1, 0]))
    return OptimizationReport(
        optimized=optimized,
        joint_names=tuple(joint.name for joint in model.joints),
        before=cycle_powers(energies, recorded_stretches(cycle)),
        after=cycle_powers(energies, typed_stretches(cycle, optimized.sheet)),
        scaled=scaled,
        tariff=tariff or Tariff(),
    )


def _scaled_energies(energies: CycleEnergies, cycle: WorkCycle, longest: float) -> Array:
    """Energy of a recorded cycle without slack, slowed down evenly by speed scaling.

    Args:
        energies: energies of cycles of the arm.
        cycle: recorded cycle.
        longest: cycle time up to which it is slowed down [s].

    Returns:
        Cycle times [s] and energies [J] [k, 2].
    """
    moving = sum(move.duration for move in cycle.moves)
    kept = sum(rest.kept for rest in cycle.rests)
    shortest = moving + kept
    times = np.linspace(shortest, max(longest, shortest), SCALED_POINTS)
    points = []
    for time in times.tolist():
        # A factor of exactly 1 would keep the slack.
        factor = max((time - kept) / moving, 1.0 + 1e-9)
        stretches = recorded_stretches(cycle, stretch=factor)
        points.append((time, energies.total(stretches)))
    return np.array(points)


def cycle_powers(energies: CycleEnergies, stretches: Sequence[Stretch]) -> CyclePowers:
    """Predicted powers over a cycle.

    Args:
        energies: energies of cycles of the arm.
        stretches: stretches of the cycle, in order.
    """
    powers = PlanPowers(energies.model, energies.temperature, std=False)
    start = 0.0
    rows = []
    for stretch in stretches:
        dynamics = energies.dynamics(stretch.payload)
        for motion in stretch.plan.motion(STEP):
            shifted = replace(motion, time=motion.time + start)
            split, total = powers(shifted, dynamics)
            shares = (split.standby_power, split.driver_power, split.electrical_power)
            rows.append((shifted.time, motion.qd, *shares, total))
        start += stretch.plan.duration
    time, *columns = map(np.concatenate, zip(*rows, strict=True))
    return CyclePowers(time, np.zeros(0, dtype=int), *columns)


# Charts: powers, energy over cycle time, energies of moves, joint speeds.


def power_chart(report: OptimizationReport) -> LineChart:
    """Power of standby, drivers and joints over the cycle, before and after."""
    panels = []
    for powers, title, energy in (
        (report.before, "as recorded", report.optimized.energy),
        (report.after, "as typed", report.optimized.typed_energy),
    ):
        shares = (powers.standby, powers.driver, powers.electrical)
        lines = powers.stack(*shares, report.joint_names)
        lines.append(powers.curve("total", powers.total, "truth"))
        note = f"{energy:.0f} J, peak {float(powers.total.max()):.0f} W"
        panels.append(Panel(title, lines, note=note))
    return LineChart(
        key="cycle_power",
        title="Power over the cycle",
        caption="Predicted electrical power of standby, drivers and each joint, stacked, and the "
        "total at the supply. Joints that feed power back lower the total below the top.",
        x_label="time [s]",
        y_label="power [W]",
        panels=panels,
        columns=1,
        common_y=True,
        group=_GROUP,
    )


def cycle_time_chart(report: OptimizationReport) -> LineChart | None:
    """Energy of a cycle over its duration: the optimum, speed scaling, and where the cycle is.

    None if the curve of least energy was not computed.
    """
    found = report.optimized
    scaled = report.scaled
    if found.pareto is None or scaled is None:
        return None
    fastest = (found.time_optimal_duration, found.time_optimal_energy)
    points: tuple[tuple[str, float, float, Role], ...] = (
        ("as recorded", found.cycle.duration, found.energy, "truth"),
        ("as fast as possible", *fastest, "aside"),
        ("as typed", found.typed_duration, found.typed_energy, "model"),
    )
    lines = [
        Line("least energy", found.pareto[:, 0], found.pareto[:, 1]),
        Line("speed scaling", scaled[:, 0], scaled[:, 1], "measured"),
    ]
    for name, time, energy, role in points:
        x = np.array([time])
        y = np.array([energy])
        lines.append(Line(name, x, y, role, points=True))
    return LineChart(
        key="cycle_time",
        title="Energy and cycle time",
        caption="Energy of one cycle at the supply over its duration. Speed scaling is the "
        "recorded motion slowed down evenly to the new cycle time, without waiting.",
        x_label="cycle time [s]",
        y_label="energy of a cycle [J]",
        panels=[Panel("", lines)],
    )


def front_chart(front: PowerFront | None) -> LineChart | None:
    """Energy over peak power of the cycles of the front; in a note, of the recorded cycle.

    None without a front.
    """
    if front is None:
        return None
    ascending = [point.predicted for point in reversed(front.points)]
    peaks = np.array([each.window_peak_power for each in ascending])
    energies = np.array([each.energy for each in ascending])
    lines = [Line("front", peaks, energies)]
    for k in range(len(ascending)):  # single points are drawn as large marks
        place = slice(k, k + 1)
        lines.append(Line("point", peaks[place], energies[place], points=True))
    runs = [point.measured for point in front.points if point.measured is not None]
    for run in runs:
        peak = np.array([run.new_window_peak_power])
        energy = np.array([run.new_energy])
        lines.append(Line("measured", peak, energy, "measured", points=True))
    recorded = front.recorded
    note = f"as recorded: {recorded.energy:.0f} J, {recorded.window_peak_power:.0f} W"
    return LineChart(
        key="power_front",
        title="Energy against peak power",
        caption="Cycles of equal duration along the recorded paths, as set points: no cycle of "
        "the front has less energy and less peak power than another one. The peak is the "
        f"largest mean power at the supply over {PEAK_WINDOW:g} s.",
        x_label=f"peak power over {PEAK_WINDOW:g} s [W]",
        y_label="energy of a cycle [J]",
        panels=[Panel("", lines, note=note)],
    )


def moves_chart(report: OptimizationReport) -> BarChart:
    """Energy of each move: as recorded, as typed, and as set points."""
    moves = report.optimized.moves
    recorded = np.array([optimized.move.energy for optimized in moves])
    typed = np.array([optimized.typed_energy for optimized in moves])
    set_points = np.array([optimized.energy for optimized in moves])
    return BarChart(
        key="moves",
        title="Energy of each move",
        caption="A longer move includes standby power for longer; the waits between the moves are "
        "shorter by the same time.",
        y_label="energy [J]",
        categories=[f"move {number}" for number in range(1, len(moves) + 1)],
        joints=[None] * len(moves),
        bars=[
            Bars("as recorded", recorded, role="measured"),
            Bars("as typed", typed),
            Bars("as set points", set_points, role="aside"),
        ],
    )


def speed_chart(report: OptimizationReport) -> LineChart:
    """Joint speeds before and after."""
    kinds: tuple[tuple[str, CyclePowers, Role], ...] = (
        ("as recorded", report.before, "measured"),
        ("as typed", report.after, "model"),
    )
    panels = []
    for j, name in enumerate(report.joint_names):
        lines = []
        for label, powers, role in kinds:
            speed = np.round(powers.qd[:, j], 3) + 0.0  # flat where the joint is at rest
            lines.append(Line(label, powers.time, speed, role, j))
        panels.append(Panel(name, lines, j))
    return LineChart(
        key="joint_speeds",
        title="Joint speeds",
        caption="The path of every move stays as recorded; only its timing changes.",
        x_label="time [s]",
        y_label="speed [rad/s]",
        panels=panels,
        group=_GROUP,
    )


# Tables: what to type, and what is saved.


def sheet_table(optimized: OptimizedCycle) -> Table:
    """What to type, step by step; each move with its lock."""
    sheet = optimized.sheet
    numbered = any(step.lines for step in sheet)
    columns = ["step", "energy [J]", "speed or wait", "acceleration"]
    columns += ["lock", "kept because", "waypoint [°]"]
    if numbered:
        columns.insert(1, "line")
    rows = [
        _sheet_row(number, step, numbered=numbered)
        for number, step in enumerate(sheet, 1)
    ]
    return Table(
        "What to type",
        columns,
        rows,
        "Steps in the order of the program, as recorded → to type; all of them, and nothing else. "
        "A wait that becomes 0 s is deleted. "
        "All steps of one line of the program have the same values. "
        "The waypoint is where the move ends: its joint angles. Speed and acceleration are those "
        "of the leading joint for moveJ, of the tool for moveL; a step without values is neither "
        "straight in joint space nor at the tool and stays. Ticked moves stay exactly as recorded; "
        "after a change, compute the sheet anew with",
        "ur_energy optimize MODEL.yaml BAG --no-keep-slow",
    )


def _sheet_row(number: int, step: Step, *, numbered: bool) -> tuple[Cell, ...]:
    """A step of the sheet; with the lines of the program where they are known."""
    row: list[Cell] = [f"{number} {step.do}"]
    if numbered:
        row.append(step.line)
    row.append(step.text("energy"))
    if step.do == "wait":
        row += [step.text("wait"), "", "kept" if step.kept else ""]
    else:
        row += [step.text("speed"), step.text("acceleration"), Lock(number, step.kept)]
    row.append(step.reason)
    angles = [f"{angle:.2f}" for angle in step.waypoint or ()]
    row.append("  ".join(angles))
    return tuple(row)


def saving_table(optimized: OptimizedCycle, tariff: Tariff) -> Table:
    """Saving of one cycle, one day and one year."""
    measured = optimized.measured
    saved = optimized.energy - optimized.typed_energy
    if measured is not None:
        saved = measured.energy - measured.new_energy
    hours = tariff.hours_per_year / DAYS_PER_YEAR  # hours of work in a day
    daily = 3600.0 * hours / optimized.duration
    wall = optimized.ceiling.wall
    slope = float(wall.slope(optimized.energy / optimized.duration))
    rows = []
    yearly = DAYS_PER_YEAR * daily
    for name, cycles in (("one cycle", 1.0), ("one day", daily), ("one year", yearly)):
        at_supply = cycles * saved
        at_wall = slope * at_supply
        text = f"{tariff.kwh(at_supply, at_wall):.2f} kWh"
        if name == "one cycle":
            text = f"{saved:.1f} J"
        paid = [f"{amount:.4g}" for amount in tariff.amounts(at_supply, at_wall)]
        rows.append((name, f"{cycles:.0f}", text, *paid))
    source = "predicted" if measured is None else "measured"
    return Table(
        "What is saved",
        ("", "cycles", "energy", *tariff.columns()),
        rows,
        f"From the {source} saving, for a machine that "
        f"runs {hours:.3g} hours a day and {DAYS_PER_YEAR:.0f} days a year. The cycle's energy is "
        f"that of the robot bus, kWh are at the wall. {tariff.note(SOURCES[wall.energy_source])}",
    )


def energies_table(optimized: OptimizedCycle) -> Table:
    """Energies of the cycle: recorded, new, and those it is compared with."""
    cycle = optimized.cycle
    new = optimized.duration
    fastest = (optimized.time_optimal_duration, optimized.time_optimal_energy)
    rows = []
    for name, duration, energy in (
        ("as recorded", cycle.duration, optimized.energy),
        ("as recorded, measured", cycle.duration, cycle.measured_energy),
        ("as typed", optimized.typed_duration, optimized.typed_energy),
        ("as set points", new, optimized.new_energy),
        ("slowed by speed scaling", new, optimized.scaled_energy),
        ("as fast as the limits allow", *fastest),
    ):
        if energy is not None:
            percent = f"{100.0 * (energy / optimized.energy - 1.0):+.1f}"
            difference = percent.replace("-", "−")
            rows.append((name, f"{duration:.2f}", f"{energy:.1f}", difference))
    return Table(
        "Energy of one cycle",
        ("", "duration [s]", "energy [J]", "difference [%]"),
        rows,
        "Of the whole arm at the supply, from the model where not stated otherwise. As typed is "
        "the sheet; as set points is the motion of servoj.csv and joint_trajectory.yaml, which is "
        "not bound to trapezoids of speed.",
    )


def front_table(front: PowerFront | None) -> Table | None:
    """Energy and peak powers of the cycles of the front; None without a front."""
    if front is None:
        return None
    window = f"over {PEAK_WINDOW:g} s [W]"
    columns = ["", "energy [J]", "saving [%]", "peak [W]", window, "95 % interval"]
    named = [("as recorded", front.recorded)]
    for number, point in enumerate(front.points, 1):
        named.append((f"point {number}", point.predicted))
    rows = []
    for name, found in named:
        saving = front.saving_percent(found)
        low, high = found.window_peak_power_interval
        row = (
            name,
            f"{found.energy:.1f}",
            f"{saving:.1f}".replace("-", "−"),
            f"{found.peak_power:.1f}",
            f"{found.window_peak_power:.1f}",
            f"{low:.1f} to {high:.1f}",
        )
        rows.append(row)
    return Table(
        "Energy against peak power",
        columns,
        rows,
        "Cycles of equal duration along the recorded paths, as set points (power_front/), "
        "predicted: the largest power of a sample, and the largest mean over a window.",
    )


def measured_front_table(front: PowerFront | None) -> Table | None:
    """Energies and peak powers of the points that were run; None where none was."""
    rows = []
    for number, point in enumerate(() if front is None else front.points, 1):
        run = point.measured
        if run is None:
            continue
        low, high = run.saving_percent_interval
        rows += [
            ("as recorded", f"{run.energy:.1f}", "", f"{run.window_peak_power:.1f}"),
            (
                f"point {number}",
                f"{run.new_energy:.1f}",
                f"{run.saving_percent:.2f} ({low:.2f} to {high:.2f})",
                f"{run.new_window_peak_power:.1f}",
            ),
        ]
    if not rows:
        return None
    peak = f"largest peak over {PEAK_WINDOW:g} s [W]"
    return Table(
        "Measured on the arm, a point of the front",
        ("", "energy [J]", "saving [%]", peak),
        rows,
        "The cycle as recorded and the point of the front were run in turns. Bus voltage times "
        "current; the interval comes from the scatter of the pairs of cycles.",
    )


def ceiling_table(optimized: OptimizedCycle) -> Table:
    """What can be saved at all, and what speed costs the arm."""
    ceiling = optimized.ceiling
    loads = optimized.loads
    now, typed, fast = loads
    second = "it cannot be shorter"
    if ceiling.joules_per_second is not None:
        second = f"{ceiling.joules_per_second:.0f} J"
    torques = ", ".join(f"{100 * load.torque_share:.0f} %" for load in loads)
    powers = ", ".join(f"{load.power:.0f} W" for load in loads)
    typed_effective = typed.torque_rms / now.torque_rms
    fast_effective = fast.torque_rms / now.torque_rms
    return Table(
        "What can be saved at all",
        ("", "value"),
        (
            ("standby, part of this cycle; with the control box, at the wall",
             f"{100 * ceiling.standby_share:.0f} %, {100 * ceiling.wall_standby_share:.0f} %"),
            ("most that can be saved at this cycle time; at the wall",
             f"{ceiling.most_saving_percent:.1f} %, {ceiling.wall_most_saving_percent:.1f} %"),
            ("saved at the wall by a cycle that is a second shorter", second),
            (f"switched off in a break of {BREAK:.0f} min a day, saved in a year at the wall",
             f"{ceiling.break_kwh:.0f} kWh"),
            ("largest torque, share of the limit: now, as typed, as fast as possible", torques),
            ("effective torque (gears, motors): as typed and as fast as possible, over now",
             f"{typed_effective:.2f}, {fast_effective:.2f}"),
            ("peak power: now, as typed, as fast as possible", powers),
        ),
        "Predicted, at the robot bus. The most that can be saved is that of the optimum with every "
        "move and every wait free, on the same paths.",
    )  # fmt: skip


def measured_table(measured: MeasuredSaving | None) -> Table | None:
    """The measured saving; None if it was not measured."""
    if measured is None:
        return None
    rows = [
        ("energy of a cycle as recorded [J]", f"{measured.energy:.1f}"),
        ("energy of a cycle as typed [J]", f"{measured.new_energy:.1f}"),
        ("saving [%]", f"{measured.saving_percent:.2f}"),
        ("its 95 % interval [%]", measured.interval_text),
        ("cycles of each kind", f"{measured.cycles}"),
    ]
    if measured.temperature is not None:
        for name, values in zip(("recorded", "typed"), measured.temperature, strict=True):
            text = ", ".join(f"{value:.1f}" for value in values)
            rows.append((f"joint temperatures, {name} cycles [°C]", text))
    return Table(
        "Measured on the arm",
        ("", "value"),
        rows,
        "The cycles as recorded and as typed were run in turns. Both energies are measured totals: "
        "bus voltage times current, integrated over each whole cycle. The interval comes from the "
        "scatter of the differences of neighbouring cycles.",
    )


# The layout of the page.


def optimization_page(report: OptimizationReport) -> Page:
    """The page of an optimized cycle: the saving in a sentence, what it rests on, and the rest."""
    found = report.optimized
    cycle = found.cycle
    measured = found.measured
    before = float(report.before.total.max())
    after = float(report.after.total.max())
    tiles = [
        Tile(f"{found.typed_saving_percent:.1f} %", "saving as typed, predicted"),
        Tile(
            f"{found.typed_energy:.0f} J",
            f"per cycle, predicted; now {found.energy:.0f} J",
        ),
        Tile(f"{found.typed_duration:.2f} s", f"cycle time; now {cycle.duration:.2f} s"),
        Tile(f"{cycle.slack:.1f} s", "of waiting that need not stay"),
        Tile(f"{after:.0f} W", f"peak power; now {before:.0f} W"),
    ]
    if measured is not None:
        tiles.insert(1, Tile(f"{measured.saving_percent:.1f} %", "saving, measured"))
    program = items(sheet_table(found), moves_chart(report), speed_chart(report))
    energies = items(energies_table(found), measured_table(measured))
    energies += items(power_chart(report), cycle_time_chart(report))
    front = found.power_front
    energies += items(front_table(front), measured_front_table(front), front_chart(front))
    energies += items(saving_table(found, report.tariff))
    many = "1 cycle" if cycle.count == 1 else f"{cycle.count} cycles"
    return Page(
        title=f"Less energy for a cycle of a {arm_name(cycle.robot)}",
        subtitle=f"Recording: {cycle.source}, {many} of {cycle.duration:.2f} s with "
        f"{len(cycle.moves)} moves.",
        verdict=_verdict(found),
        tiles=tiles,
        joint_names=report.joint_names,
        recordings=(),
        sections=(
            PageSection("ceiling", "The ceiling", "", items(ceiling_table(found))),
            PageSection("moves", "The program", "", program),
            PageSection("energy", "Energy", "", energies),
        ),
    )


def _verdict(found: OptimizedCycle) -> ModelVerdict:
    """The saving in a sentence, graded, with what it rests on."""
    measured = found.measured
    saving = found.typed_saving_percent
    low, high = found.typed_interval
    source = "predicted as typed"
    if measured is not None:
        saving = measured.saving_percent
        low, high = measured.interval
        source = "measured"
    grade: Grade = "fair" if saving > 0 else "poor"
    confidence = f"{low:.1f} to {high:.1f} % with 95 % confidence"
    if found.proven:
        grade = "good"
    else:
        confidence += ": not proven"
    if not np.isfinite(low):
        confidence = "one pair of cycles proves nothing"
    statements = [Statement("good", found.ceiling.text())]
    if found.copy_advice:
        statements.append(Statement("fair", found.copy_advice))
    statements += [Statement("fair", note) for note in found.notes]
    sentence = f"{saving:.1f} % less energy per cycle, {source} ({confidence})."
    return ModelVerdict(grade, sentence, tuple(statements))
