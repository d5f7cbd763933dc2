# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""What other speeds, accelerations and waits save: of all moves, and of the costliest lines alone.

Both measures predict quickly what `optimize` would have typed. The saving of a line
is the saving of its values alone, and of the waits that they use up, with all other moves
as recorded. It is a part of the saving of all moves, not in addition.
"""

from __future__ import annotations

from dataclasses import replace

from ur_energy_model.energy.meter import CONFIDENCE
from ur_energy_model.energy.program_energy import ProgramEnergy
from ur_energy_model.energy.work_log import WorkLog
from ur_energy_model.errors import UrEnergyError
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.wall import WallModel
from ur_energy_model.optimization.cycle import OptimizationOptions, WorkCycle
from ur_energy_model.optimization.measures.measure import (
    LEAST_SHARE,
    Finding,
    Kind,
    Measure,
    Omitted,
    reason_of,
    saving_while_running,
)
from ur_energy_model.optimization.optimize import PredictedSaving, predicted_saving

NOTHING_TO_TYPE = "no move is a moveJ or moveL from standstill to standstill"
COSTLIEST = 3  # lines of the program for which other values are searched


def moves_measures(
    model: EnergyModel, cycle: WorkCycle, cycles: float, wall: WallModel, command: str
) -> list[Finding]:
    """The measure of other values for all moves and waits of a cycle together.

    Args:
        model: model of the arm, in the session of the recording.
        cycle: recorded cycle of the program.
        cycles: number of such cycles in the recording.
        wall: power at the mains.
        command: command that prints the values to type.
    """
    if all(move.programmed is None for move in cycle.moves):
        return [Omitted("moves", NOTHING_TO_TYPE)]
    try:
        saving = predicted_saving(model, cycle)
    except UrEnergyError as error:
        return [Omitted("moves", reason_of(error))]
    if saving.saving < LEAST_SHARE * saving.energy:
        return [Omitted("moves", "other speeds and accelerations save hardly anything")]
    title = (
        f"a cycle takes {saving.energy:.0f} J; with other speeds, accelerations and waits "
        f"{saving.energy - saving.saving:.0f} J in the same time"
    )
    action = "type the speeds, accelerations and waits that this command prints"
    return [_measure("moves", saving, cycle, cycles, wall, title, action, command)]


def line_measures(
    model: EnergyModel,
    cycle: WorkCycle,
    cycles: float,
    log: WorkLog,
    wall: WallModel,
    command: str,
) -> list[Finding]:
    """A measure for each of the costliest lines of the program that can be run for less.

    Args:
        model: model of the arm, in the session of the recording.
        cycle: recorded cycle of the program.
        cycles: number of such cycles in the recording.
        log: what the arm did, with the energy of each line.
        wall: power at the mains.
        command: command that prints the values to type; the steps to be kept are added.
    """
    moving: set[int] = set()
    for move in cycle.moves:
        moving.update(move.lines)
    if log.program is None or not moving:
        reason = "the recording does not show lines (script_control_line)"
        return [Omitted("line", reason)]
    if all(move.programmed is None for move in cycle.moves):
        return [Omitted("line", NOTHING_TO_TYPE)]
    if len(moving) < 2:
        return [Omitted("line", "one line runs all moves")]
    energies = _energies_of_lines(log.program)
    whole = sum(energies.values())
    ranked = sorted(moving & energies.keys(), key=energies.__getitem__, reverse=True)
    found: list[Finding] = []
    for line in ranked[:COSTLIEST]:
        others = _steps_of_other_lines(cycle, line)
        try:
            saving = predicted_saving(model, cycle, OptimizationOptions(keep=others))
        except UrEnergyError:  # this line has no other values
            continue
        if saving.saving < LEAST_SHARE * saving.energy:
            continue
        percent = 100.0 * energies[line] / whole
        title = f"line {line} takes {percent:.0f} % of the program's energy"
        action = f"type what this command prints for line {line} and for the waits"
        keep = ",".join(map(str, others))
        only_this = f"{command} --keep {keep}" if others else command
        measure = _measure("line", saving, cycle, cycles, wall, title, action, only_this)
        found.append(replace(measure, place=f"line {line}"))
    if found:
        return found
    lines = ", ".join(map(str, ranked[:COSTLIEST]))
    reason = f"the costliest lines ({lines}) have no better values of their own"
    return [Omitted("line", reason)]


def _measure(
    kind: Kind,
    saving: PredictedSaving,
    cycle: WorkCycle,
    cycles: float,
    wall: WallModel,
    title: str,
    action: str,
    command: str,
) -> Measure:
    """The measure of a predicted saving.

    Args:
        kind: "moves" or "line".
        saving: predicted saving of a cycle.
        cycle: recorded cycle of the program.
        cycles: number of such cycles in the recording.
        wall: power at the mains.
        title: what was found.
        action: what to type.
        command: command that prints the values to type.
    """
    low, high = saving.interval
    std = (high - low) / (2.0 * CONFIDENCE)
    power = saving.energy / cycle.duration
    conditions = ["the arm may arrive later where it waits now"]
    if kind == "line":
        conditions.append("a part of what all moves together save")
    energy = cycles * saving.saving
    return Measure(
        kind=kind,
        title=title,
        action=action,
        saving=saving_while_running(wall, energy, cycles * std, power=power),
        cycles=cycles,
        command=command,
        condition="; ".join(conditions),
    )


def _energies_of_lines(program: ProgramEnergy) -> dict[int, float]:
    """Energy of each line of the program, whole arm at the supply [J]."""
    found: dict[int, float] = {}
    for part, spent in program.spent().items():
        if part.line:
            found[part.line] = found.get(part.line, 0.0) + spent.energy
    return found


def _steps_of_other_lines(cycle: WorkCycle, line: int) -> tuple[int, ...]:
    """Numbers, from 1, of the steps of the cycle that are moves of other lines."""
    numbers: list[int] = []
    for number, (move, wait) in enumerate(cycle.program, 1):
        of_line = line in cycle.moves[move].lines
        if wait is None and not of_line:
            numbers.append(number)
    return tuple(numbers)
