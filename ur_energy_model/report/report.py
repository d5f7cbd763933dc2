# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The report of recordings: evaluated with a model, in tables and charts, as a page.

`make_report` evaluates the recordings, `report_page` describes the page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from ur_energy_model.consistency.contradiction import Contradiction
from ur_energy_model.energy.advice import Advice, adviser
from ur_energy_model.energy.cycles import Trigger
from ur_energy_model.energy.energy_summary import EnergySummary, common_serials
from ur_energy_model.energy.matched_model import MatchedModel, model_of_recording
from ur_energy_model.energy.meter import CONFIDENCE
from ur_energy_model.energy.tariff import Tariff
from ur_energy_model.energy.wall import SOURCES, WallEnergy
from ur_energy_model.files import real_path
from ur_energy_model.identification.base_parameters import (
    FullRegressor,
    regroup,
    snapped_to_axis,
)
from ur_energy_model.identification.doubts import payload_doubts
from ur_energy_model.identification.energy_advice import energy_with_advice
from ur_energy_model.identification.evaluation import evaluate
from ur_energy_model.identification.visited_path import Motion
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.generic import is_generic, model_words
from ur_energy_model.model.robots import load_robot
from ur_energy_model.model.setup import Payload
from ur_energy_model.report import recording_charts as charts
from ur_energy_model.report.analysis import DRAWN_SECONDS, Analysis, analyse
from ur_energy_model.report.chart import Chart
from ur_energy_model.report.model_charts import (
    interval_chart,
    singular_value_charts,
    temperature_law_chart,
)
from ur_energy_model.report.model_tables import (
    drive_table,
    friction_tables,
    inertia_table,
    provenance_table,
)
from ur_energy_model.report.page import (
    Item,
    Page,
    PageSection,
    Table,
    Tile,
    arm_name,
    duration_text,
    energy_text,
    items,
)
from ur_energy_model.report.recording_tables import (
    energy_table,
    error_table,
    joint_power_table,
    power_table,
)
from ur_energy_model.report.shift import (
    Shift,
    cycle_table,
    read_shift,
    shift_charts,
    shift_table,
)
from ur_energy_model.report.verdict import ModelVerdict, generic_statement, judge
from ur_energy_model.telemetry.samples import repetition
from ur_energy_model.typing import Progress

_THOUSAND_HOURS = 3.6e6  # [s]


@dataclass(frozen=True)
class BagReport:
    """One recording evaluated with the model.

    Attributes:
        analysis: arrays for the figures.
        metrics: METRICS of the model on the recording, see `identification.evaluation`.
        energy: energies of the recording.
        measures: what can be done for less energy.
    """

    analysis: Analysis
    metrics: Mapping[str, Any]
    energy: EnergySummary
    measures: Advice

    @property
    def label(self) -> str:
        """Short name."""
        return self.analysis.label

    @property
    def doubts(self) -> Sequence[str]:
        """Warnings about the arm: contradictions, and further warnings.

        These are the warnings of the metrics, or, where there are none, of the energies.
        """
        contradicted = [each.words() for each in self.energy.contradictions]
        stated = {*self.repetition, *contradicted}
        for warnings in (self.metrics["warnings"], self.energy.warnings):
            further = [line for line in warnings if line not in stated]
            if further:
                return [*contradicted, *further]
        return contradicted

    @property
    def repetition(self) -> tuple[str, ...]:
        """Warning that samples are in the recording twice."""
        return repetition(self.energy.repeated)


@dataclass(frozen=True)
class Report:
    """The content of a report.

    Attributes:
        model: model of the arm.
        bags: the recordings, evaluated.
        shift: the recordings one after another.
        tariff: price and CO2 of energy.
        verdict: verdict on the model.
        cycles: whether the user asked for cycles, by a trigger.
    """

    model: EnergyModel
    bags: tuple[BagReport, ...]
    shift: Shift
    tariff: Tariff
    verdict: ModelVerdict
    cycles: bool

    @property
    def analyses(self) -> list[Analysis]:
        """Arrays for the figures of each recording."""
        return [bag.analysis for bag in self.bags]

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about all recordings for the user, one line each."""
        lines: list[str] = []
        for bag in self.bags:
            lines += bag.doubts
            lines += bag.repetition
        return tuple(dict.fromkeys(lines))

    @property
    def wall(self) -> WallEnergy:
        """Energy at the mains of all recordings."""
        return WallEnergy.summed([bag.energy.wall for bag in self.bags])

    @property
    def measures(self) -> Advice:
        """What can be done for less energy, of all recordings."""
        return adviser().together([bag.measures for bag in self.bags])

    @property
    def contradictions(self) -> tuple[Contradiction, ...]:
        """Statements about the recordings that they do not agree with."""
        found: list[Contradiction] = []
        for bag in self.bags:
            found += bag.energy.contradictions
        return tuple(found)

    @property
    def serials(self) -> dict[str, str | None]:
        """Serial numbers of the arms of model and recordings; None where these differ."""
        return common_serials([bag.energy.serials for bag in self.bags])


def make_report(
    model: EnergyModel,
    bags: Sequence[str | Path],
    *,
    model_path: Path | None = None,
    payload: Payload | None = None,
    tariff: Tariff | None = None,
    trigger: Trigger = "auto",
    output: int = 0,
    same_arm: bool = False,
    progress: Progress | None = None,
) -> Report:
    """Evaluate recordings of an arm with a model.

    Recordings that the model was fitted to are recognised by hash, and those that repeat their
    motion by its path.

    Args:
        model: model of the arm, or generic.
        bags: recordings of the arm, at least one.
        model_path: path of the model, to be named in commands to type; None for one
            without file.
        payload: the actual one, if the controller's setting was another; None for that
            setting.
        tariff: price and CO2 of energy; None for neither.
        trigger: what starts a cycle, see `energy.cycles`.
        output: digital output that starts a cycle, if `trigger` is an output.
        same_arm: whether the recording is of the arm of the model, whatever serial
            numbers and constants are (see `model_of_arm`).
        progress: called with a fraction and a text.

    Raises:
        UrEnergyError: invalid input, with source and remedy.
    """
    labels = _labels(bags)
    matched: list[MatchedModel] = []
    reports: list[BagReport] = []

    def show(fraction: float, text: str) -> None:
        """Report progress; every bag and the shift take equally long."""
        if progress is not None:
            stage = len(reports)
            progress((stage + np.nan_to_num(fraction)) / (len(bags) + 1), text)

    for bag, label in zip(bags, labels, strict=True):
        show(0.0, f"evaluating {label}")
        own = model_of_recording(model, bag, same_arm=same_arm)
        matched.append(own)
        metrics = evaluate(model, bag, payload=payload, matched=own).as_json()
        show(0.4, f"energy of {label}")
        found = energy_with_advice(
            model, bag, model_path=model_path, payload=payload, matched=own
        )
        show(0.6, f"figures of {label}")
        motion: Motion = "held out" if is_generic(model) else metrics["motion"]
        analysis = analyse(own.model, bag, label=label, motion=motion, payload=payload)
        reports.append(BagReport(analysis, metrics, found.summary, found.advice))
    of_others = [each for each in matched if each.warning is not None]
    widest = of_others[0] if of_others else matched[0]
    shift = read_shift(
        widest.model,
        bags,
        constants=[each.constants for each in matched],
        trigger=trigger,
        output=output,
        progress=show,
    )
    return Report(
        model=model,
        bags=tuple(reports),
        shift=shift,
        tariff=tariff or Tariff(),
        verdict=_verdict(model, reports, another_arm=widest.warning),
        cycles=trigger not in ("auto", "none"),
    )


def _labels(bags: Sequence[str | Path]) -> list[str]:
    """Short names of recordings: names of their folders, numbered where several are equal."""
    names = [real_path(bag).name for bag in bags]
    labels = []
    for number, name in enumerate(names, start=1):
        is_unique = names.count(name) == 1
        labels.append(name if is_unique else f"{name} ({number})")
    return labels


def _verdict(
    model: EnergyModel, bags: Sequence[BagReport], *, another_arm: str | None
) -> ModelVerdict:
    """The verdict on a model by recordings of other motions, or by all without such ones.

    Args:
        model: model of the arm, or generic.
        bags: the recordings.
        another_arm: warning if the model is of another arm than a recording.
    """
    generic = None
    if is_generic(model):
        half_widths = []
        for bag in bags:
            energy = bag.energy
            if energy.model > 0:
                half_widths.append(100 * CONFIDENCE * energy.model_std / energy.model)
        words = model_words(model, None)
        generic = generic_statement(words, max(half_widths, default=None))
    held_out = [bag for bag in bags if bag.analysis.motion == "held out"]
    judged = held_out or bags
    doubts: list[str] = []
    contradictions: list[Contradiction] = []
    for bag in bags:
        doubts += bag.doubts
        contradictions += bag.energy.contradictions
    doubts += payload_doubts(model)
    return judge(
        [bag.metrics for bag in judged],
        [joint.name for joint in model.joints],
        motions={bag.analysis.motion for bag in judged},
        simulated=any(bag.analysis.info.simulated for bag in bags),
        generic=generic,
        another_arm=another_arm,
        doubts=doubts,
        contradictions=contradictions,
    )


T = TypeVar("T", Analysis, BagReport)

# The page.


def report_page(report: Report) -> Page:
    """The page of a report.

    Args:
        report: report of one or more recordings.
    """
    model = report.model
    title = f"Energy of a {arm_name(model.robot_name)}"
    if is_generic(model):
        title += " (generic model)"
    shown = ", ".join(f"{bag.label} ({bag.analysis.motion})" for bag in report.bags)
    return Page(
        title=title,
        subtitle=f"{_arms(report)}Recordings: {shown}.",
        verdict=report.verdict,
        tiles=_tiles(report),
        joint_names=[joint.name for joint in model.joints],
        recordings=[bag.label for bag in report.bags],
        sections=list(_sections(report)),
    )


def _arms(report: Report) -> str:
    """Serial numbers of the recordings, and of the model where that is another; or nothing."""
    numbers = {bag.energy.serials["recording"] for bag in report.bags}
    found = sorted(number for number in numbers if number)
    text = ""
    if found:
        plural = "s" if len(found) > 1 else ""
        text = f"Serial number{plural} {', '.join(found)}. "
    of_model = report.serials["model"]
    if of_model and found != [of_model]:
        text += f"Model of {of_model}. "
    return text


def _each(
    entries: Sequence[T], make: Callable[[T], Chart | Table | None]
) -> tuple[Item, ...]:
    """One chart or table per recording, if its data allow it."""
    made = []
    for number, entry in enumerate(entries):
        content = make(entry)
        if content is not None:
            made.append(Item(content, number))
    return tuple(made)


def _sections(report: Report) -> Iterator[PageSection]:
    """The sections of the page in their order."""
    yield _energy_section(report)
    yield _shift_section(report)
    yield _torque_section(report)
    yield _current_section(report)
    yield _parameter_section(report.model)
    analyses = report.analyses
    motion = (*_each(analyses, charts.motion_chart), *_each(analyses, charts.path_chart))
    yield PageSection("motion", "The motion", "", motion)
    origin = items(provenance_table(report.model))
    yield PageSection("provenance", "Provenance", "", origin)
    advice = report.measures.section(report.tariff)
    if advice is not None:
        tables = [Table(*table) for table in advice.tables]
        yield PageSection(advice.key, advice.title, advice.text, items(*tables))


def _energy_section(report: Report) -> PageSection:
    """Energies of joints and whole arm, and errors of the power."""
    bags = report.bags
    analyses = report.analyses
    metrics = [bag.metrics for bag in bags]
    labels = [bag.label for bag in bags]

    def energies(bag: BagReport) -> Table:
        return energy_table(bag.energy, bag.label)

    def joint_energies(bag: BagReport) -> Chart | None:
        return charts.joint_power_chart(bag.metrics["joint_power"], bag.label)

    def joint_energy_table(bag: BagReport) -> Table | None:
        return joint_power_table(bag.metrics, bag.label)

    shown = (
        *_each(analyses, charts.stack_chart),
        *_each(analyses, charts.energy_split_chart),
        *_each(bags, energies),
        *_each(bags, joint_energies),
        *_each(bags, joint_energy_table),
        *_each(analyses, charts.bus_chart),
        *items(power_table(metrics, labels)),
        *_each(analyses, charts.power_chart),
        *_each(analyses, charts.energy_chart),
    )
    text = ""
    if any(analysis.cut for analysis in analyses):
        text = f"Curves show the first {DRAWN_SECONDS / 60:.0f} minutes."
    return PageSection("energy", "Energy", text, shown)


def _shift_section(report: Report) -> PageSection:
    """Energy over all recordings, by state of the arm and per cycle."""
    shift = report.shift
    text = "All recordings one after another."
    if report.cycles and not shift.cycles:
        text += " They contain no start of a cycle."
    if len(shift.kinds) > 1:
        text += f" Their cycles are of {len(shift.kinds)} kinds of work, which have no common mean."
    tables = (shift_table(shift, report.tariff, report.wall), cycle_table(shift))
    return PageSection("shift", "The shift", text, items(*shift_charts(shift), *tables))


def _torque_section(report: Report) -> PageSection:
    """Recorded and modelled torques, and inertias of the motors."""
    analyses = report.analyses
    shown = (
        *_each(analyses, charts.torque_chart),
        *items(charts.torque_error_chart(analyses)),
        *_errors(report, "torque"),
        *items(inertia_table(report.model)),
    )
    text = (
        "How well the rigid-body model and the motors' inertia reproduce the controller's "
        "torque."
    )
    return PageSection("torque", "Torque and inertia", text, shown)


def _current_section(report: Report) -> PageSection:
    """Measured and modelled currents, friction, and temperatures of the joints."""
    analyses = report.analyses
    shown = (
        *_each(analyses, charts.current_chart),
        *items(charts.current_error_chart(analyses)),
        *_errors(report, "current"),
        *items(*friction_tables(report.model)),
        *_each(analyses, charts.friction_chart),
        *items(temperature_law_chart(report.model)),
        *_each(analyses, charts.temperature_chart),
    )
    text = "How well torque constants and friction reproduce the measured motor currents."
    return PageSection("current", "Current and friction", text, shown)


def _errors(report: Report, key: str) -> tuple[Item, ...]:
    """The table of errors of "torque" or "current" of each recording."""
    names = [joint.name for joint in report.model.joints]

    def table(bag: BagReport) -> Table | None:
        return error_table(key, bag.metrics, names, bag.label)

    return _each(report.bags, table)


def _parameter_section(model: EnergyModel) -> PageSection:
    """Constants of the drives with their intervals, and the number of base parameters."""
    robot = load_robot(model.robot)
    title, columns, rows = drive_table(model)
    drives = Table(title[0].upper() + title[1:], columns, rows)
    base = regroup(FullRegressor(robot, snapped_to_axis(model.setup.gravity)))
    values = singular_value_charts(base.singular_values, base.rank)
    shown = items(interval_chart(model, robot), drives, *values)
    if is_generic(model):
        text = f"Of a {model_words(model, None)}."
        return PageSection("parameters", "Parameters of the arm type", text, shown)
    return PageSection("parameters", "Identified parameters", "", shown)


def _tiles(report: Report) -> list[Tile]:
    """Key figures: energies and mean power, cost and CO2, and the mean energy of a cycle."""
    shift = report.shift
    half_width = energy_text(shift.half_width)
    source = shift.total_source.words()
    mean = shift.energy / shift.seconds if shift.seconds > 0 else float("nan")
    tiles = [
        Tile(
            energy_text(shift.energy),
            f"in {duration_text(shift.seconds)}, ± {half_width}, {source}",
        ),
        Tile(f"{mean:.1f} W", "mean power of the whole arm"),
        Tile(f"{100 * shift.idle_share:.0f} %", "of the energy without motion"),
    ]
    if shift.explained_share is not None:
        explained = f"{100 * shift.explained_share:.1f} %".replace("-", "−")
        tiles.append(Tile(explained, "of the measured energy explained by the model"))
    wall = report.wall
    of_wall = energy_text(CONFIDENCE * wall.std)
    tiles.append(
        Tile(
            energy_text(wall.energy), f"at the wall, ± {of_wall}, {SOURCES[wall.source]}"
        )
    )
    tiles += _cost_tiles(report)
    whole = [cycle for cycle in shift.cycles if cycle.is_whole]
    if whole and len(shift.kinds) == 1:
        energies = [cycle.summary(shift.channels)["total_energy_J"] for cycle in whole]
        text = f"per cycle, over {len(whole)} cycles"
        tiles.append(Tile(energy_text(float(np.mean(energies))), text))
    return tiles


def _cost_tiles(report: Report) -> list[Tile]:
    """Cost and CO2 of 1000 hours of such work, as far as the tariff has them."""
    shift = report.shift
    tariff = report.tariff
    # energy [J] of 1000 hours, from the mean powers at the supply and at the wall
    seconds = max(shift.seconds, 1e-9)
    supply = _THOUSAND_HOURS * shift.energy / seconds
    wall = _THOUSAND_HOURS * report.wall.energy / seconds
    cost = tariff.cost(supply, wall)
    emission = tariff.emission(supply, wall)
    tiles = []
    if cost is not None:
        tiles.append(Tile(f"{cost:.2f} {tariff.currency}", "for 1000 hours like this"))
    if emission is not None:
        tiles.append(Tile(f"{emission:.1f} kg", "CO₂ for 1000 hours like this"))
    return tiles
