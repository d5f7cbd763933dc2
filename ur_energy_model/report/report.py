# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The report of recordings: evaluated with a model, in tables and charts, as a page.

`make_report` evaluates, `report_page` describes the page. Tables are numbered as in
Clochiatti et al., Robotica 2024 (S0).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from ur_energy_model.consistency.contradiction import Contradiction
from ur_energy_model.energy.advice import Advice, adviser
from ur_energy_model.energy.cycles import Trigger
from ur_energy_model.energy.meter import CONFIDENCE
from ur_energy_model.energy.recording_energy import (
    EnergySummary,
    common_serials,
)
from ur_energy_model.energy.tariff import Tariff
from ur_energy_model.energy.telemetry_checks import MatchedModel
from ur_energy_model.energy.wall import SOURCES, WallEnergy
from ur_energy_model.files import real_path
from ur_energy_model.identification.base_parameters import (
    FullRegressor,
    regroup,
    snapped_to_axis,
)
from ur_energy_model.identification.energy_advice import energy_with_advice
from ur_energy_model.identification.evaluation import POWERS, evaluate, r2_words
from ur_energy_model.identification.pipeline import payload_doubts
from ur_energy_model.identification.quality import Motion
from ur_energy_model.identification.torque_constants import split_inertia
from ur_energy_model.model.drives import (
    CATALOGUE_MOTOR_CONSTANT,
    KT_OVER_KB,
    motor_constant,
)
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.friction import PARAMETER_UNITS
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
from ur_energy_model.report.page import (
    Cell,
    Item,
    Page,
    PageSection,
    Table,
    Tile,
    arm_name,
    duration_text,
    energy_text,
    items,
    with_interval,
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
        """Warnings about the arm: contradictions, and those of metrics, or else of energies."""
        contradicted = [each.words() for each in self.energy.contradictions]
        said = {*self.repetition, *contradicted}
        about = self.metrics["warnings"], self.energy.warnings
        arm = [[line for line in each if line not in said] for each in about]
        return [*contradicted, *(arm[0] or arm[1])]

    @property
    def repetition(self) -> tuple[str, ...]:
        """Warning that samples are in the recording twice."""
        return repetition(self.energy.repeated)


@dataclass(frozen=True)
class Report:
    """The content of a report.

    Attributes:
        model: of the arm.
        bags: the recordings, evaluated.
        shift: the recordings one after another.
        tariff: price and CO2 of energy.
        verdict: on the model.
        cycles: whether the user asked for cycles, by a trigger.
    """

    model: EnergyModel
    bags: tuple[BagReport, ...]
    shift: Shift
    tariff: Tariff
    verdict: ModelVerdict
    cycles: bool

    @property
    def warnings(self) -> tuple[str, ...]:
        """For the user, one line each."""
        return tuple(
            dict.fromkeys(
                line for bag in self.bags for line in (*bag.doubts, *bag.repetition)
            )
        )

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
        return tuple(each for bag in self.bags for each in bag.energy.contradictions)

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
        model: of the arm, or generic.
        bags: recordings of the arm, at least one.
        model_path: of the model, to be named in commands to type; None for one without file.
        payload: the actual one, if the controller's setting was another; None for that
            setting.
        tariff: price and CO2 of energy; None for neither.
        trigger: what starts a cycle, see `energy.cycles`.
        output: digital output that starts a cycle, if `trigger` is an output.
        same_arm: see `model_of_arm`.
        progress: called with a fraction and a text.

    Raises:
        UrEnergyError: invalid input, with source and remedy.
    """
    stage = 0

    # every bag and the shift take equally long
    def show(fraction: float, text: str) -> None:
        if progress is not None:
            progress((stage + np.nan_to_num(fraction)) / (len(bags) + 1), text)

    names = [real_path(bag).name for bag in bags]
    generic = is_generic(model)
    reports = []
    matched: list[MatchedModel] = []
    for stage, (bag, name) in enumerate(zip(bags, names, strict=True)):
        label = name if names.count(name) == 1 else f"{name} ({stage + 1})"
        show(0.0, f"evaluating {label}")
        metrics = evaluate(model, bag, payload=payload, same_arm=same_arm).as_json()
        show(0.4, f"energy of {label}")
        found = energy_with_advice(
            model, bag, model_path=model_path, payload=payload, same_arm=same_arm
        )
        matched.append(found.matched)
        show(0.6, f"figures of {label}")
        motion: Motion = "held out" if generic else metrics["motion"]
        analysis = analyse(
            found.matched.model, bag, label=label, motion=motion, payload=payload
        )
        reports.append(BagReport(analysis, metrics, found.summary, found.advice))
    stage = len(bags)
    of_others = [each for each in matched if each.warning is not None]
    widest = of_others[0] if of_others else matched[0]
    shift = read_shift(widest.model, bags, trigger=trigger, output=output, progress=show)
    verdict = _verdict(model, reports, another_arm=widest.warning)
    cycles = trigger not in ("auto", "none")
    return Report(model, tuple(reports), shift, tariff or Tariff(), verdict, cycles)


def _verdict(
    model: EnergyModel, bags: Sequence[BagReport], *, another_arm: str | None
) -> ModelVerdict:
    """The verdict on a model by recordings of other motions, or by all without such ones.

    `another_arm`: warning if the model is of another arm than a recording.
    """
    generic = None
    if is_generic(model):
        energies = [bag.energy for bag in bags if bag.energy.model > 0]
        widths = [100 * CONFIDENCE * each.model_std / each.model for each in energies]
        words = model_words(model, None)
        generic = generic_statement(words, max(widths, default=None))
    held_out = [bag for bag in bags if bag.analysis.motion == "held out"]
    judged = held_out or bags
    doubts = [line for bag in bags for line in bag.doubts]
    return judge(
        [bag.metrics for bag in judged],
        [joint.name for joint in model.joints],
        motions={bag.analysis.motion for bag in judged},
        simulated=any(bag.analysis.info.simulated for bag in bags),
        generic=generic,
        another_arm=another_arm,
        doubts=[*doubts, *payload_doubts(model)],
        contradictions=[each for bag in bags for each in bag.energy.contradictions],
    )


T = TypeVar("T", Analysis, BagReport)

# Tables of recordings, numbered as in Clochiatti et al., Robotica 2024 (S0).


def energy_table(summary: EnergySummary, label: str) -> Table:
    """Energy and efficiency of joints and whole arm (S0 Table VIII).

    Args:
        summary: energies of a recording.
        label: its short name.
    """
    parts = (summary.mechanical, summary.electrical, summary.copper, summary.friction)
    mechanical, electrical, copper, friction = (float(each.sum()) for each in parts)

    def share(of: float) -> float | None:
        return 100 * mechanical / of if of > 0 else None

    fed_back = float(summary.regenerated.sum())
    session = summary.session
    whole: list[tuple[str, Cell, float | None]] = [
        ("drivers", summary.driver, None),
        ("standby", summary.standby, None),
        ("regeneration", summary.regeneration, None),
    ]
    if summary.total_source.name != "modelled":
        unexplained = with_interval(summary.unexplained, summary.unexplained_std)
        whole += [
            ("sum of the model", with_interval(summary.model, summary.model_std), None),
            ("unexplained", unexplained, None),
        ]
    total = with_interval(summary.supply, summary.supply_std)
    whole.append(
        (f"whole arm, {summary.total_source.name}", total, share(summary.supply))
    )
    joints = (
        summary.names,
        summary.mechanical,
        map(with_interval, summary.electrical, summary.electrical_std),
        100 * summary.efficiency,
        *(summary.copper, summary.friction, summary.regenerated),
    )
    source = summary.total_source.words(summary.explained_share)
    return Table(
        f"Energy and efficiency, {label} (Table VIII)",
        ("", "mechanical [J]", "electrical [J]", "efficiency [%]", "copper loss [J]",
         "friction [J]", "fed back [J]"),
        (
            *zip(*joints, strict=True),
            ("all motors", mechanical, electrical, share(electrical), copper, friction, fed_back),
            *((name, None, value, ratio, None, None, None) for name, value, ratio in whole),
        ),
        "Over the whole recording, ± 95 %. Mechanical energy is that at the motor shaft, "
        "friction included. Regeneration is what the supply cannot take back; with motors, drivers "
        f"and standby it is the sum of the model. Whole arm: {source}. "
        f"Standby: {session.power_words()}, {session.words()}.",
    )  # fmt: skip


_ERRORS = {
    "torque": ("Torque", "N m", "V", "The mean is that of absolute errors."),
    "current": (
        "Current",
        "A",
        "VII",
        "Filtered currents of joints that move; the mean is that of absolute errors. The paper "
        "takes every sample unfiltered and keeps the sign of the mean: ur_energy protocol s0.",
    ),
}


def error_table(
    key: str, metrics: Mapping[str, Any], names: Sequence[str], label: str
) -> Table | None:
    """Mean, largest and RMS error and R² by joint (S0 Tables V and VII).

    Args:
        key: "torque" or "current", as in METRICS.
        metrics: METRICS of a recording.
        names: of the joints.
        label: short name of the recording.

    Returns:
        The table; None where the signal was not recorded.
    """
    what, unit, number, note = _ERRORS[key]
    if (entries := metrics.get(key)) is None:
        return None
    return Table(
        f"{what} error, {label} (Table {number})",
        ("joint", f"mean [{unit}]", f"largest [{unit}]", f"RMS [{unit}]", "R²"),
        [
            (name, row["mean"], row["max"], row["rms"], r2_words(row))
            for name, row in zip(names, entries, strict=True)
        ],
        note,
    )


def joint_power_table(metrics: Mapping[str, Any], label: str) -> Table | None:
    """Modelled and measured energy of each joint, or why there is no measured one.

    Args:
        metrics: METRICS of a recording.
        label: its short name.
    """
    joints = metrics.get("joint_power")
    if not joints:
        return None
    title = f"Energy of the joints: modelled and measured, {label}"
    columns = ("joint", "modelled [J]", "measured [J]", "measured / modelled")
    rows: list[tuple[Cell, ...]]
    if "reason" in joints[0]:
        rows = [("all", None, "not measured", None)]
        return Table(title, columns, rows, f"Not measured: {joints[0]['reason']}.")
    rows = [
        (
            row["joint"],
            with_interval(row["modelled_J"], row["modelled_std_J"]),
            with_interval(row["measured_J"], row["measured_std_J"]),
            None
            if row["ratio"] is None
            else with_interval(row["ratio"], row["ratio_std"]),
        )
        for row in joints
    ]
    note = (
        "Motor and drive while the arm moves, ± 95 %; measured by the voltages at the joints and "
        "the current of the supply."
    )
    if "note" in joints[0]:
        note += f" {joints[0]['note'][0].upper()}{joints[0]['note'][1:]}."
    return Table(title, columns, rows, note)


def power_table(
    metrics: Sequence[Mapping[str, Any]], labels: Sequence[str]
) -> Table | None:
    """Errors of power and energy at the supply (EcBot, eq. 22-23).

    Args:
        metrics: METRICS of the recordings.
        labels: their short names.

    Returns:
        The table; None where power was not recorded.
    """
    rows: list[tuple[Cell, ...]] = []
    for entry, label in zip(metrics, labels, strict=True):
        for key, how in POWERS.items():
            if (power := entry.get(key)) is None:
                continue
            # Models written before the interval was stored have none.
            low = power.get("rmse_low")
            high = power.get("rmse_high")
            interval = None if low is None or high is None else f"{low:.2f} to {high:.2f}"
            figures = (power[name] for name in ("rmse_percent", "r2"))
            error = power["energy_error_percent"]
            motion = entry.get("motion_energy_error_percent")
            shown = motion if key == "power_from_motion" else None
            rows.append(
                (f"{label}, {how}", power["rmse"], error, shown, interval, *figures)
            )
    if not rows:
        return None
    return Table(
        "Power at the supply: model against measurement",
        ("recording", "RMSE [W]", "energy error [%]", "error of motion energy [%]", "95 % [W]",
         "RMSE [% of range]", "R²"),
        rows,
        "Motion energy is the energy of the supply above its power at standstill.",
    )  # fmt: skip


# Tables of the identified parameters.


def drive_table(model: EnergyModel) -> tuple[str, list[str], list[list[Any]]]:
    """Drive constants: those of the robot file, the identified ones, and S0's assumptions.

    k_m = k_t / sqrt(R) is the torque per square root of copper loss.

    Returns:
        Title, headings of the columns, and rows, one for each joint.
    """
    robot = load_robot(model.robot)
    rows: list[list[Any]] = []
    for j, joint in enumerate(model.joints):
        nominal_k_t = robot.torque_constant[j]
        nominal = robot.winding_resistance[j]
        k_t = joint.torque_constant
        resistance = joint.winding_resistance
        k_m = motor_constant(nominal_k_t, nominal), motor_constant(k_t, resistance)
        ratio = k_t / joint.back_emf_constant if joint.back_emf_constant else None
        rows.append([joint.name, nominal_k_t, k_t, nominal, resistance, *k_m, ratio])
    assumed = ", ".join(
        f"{k:.3f} (size {size})" for size, k in CATALOGUE_MOTOR_CONSTANT.items()
    )
    source = model.joints[0].source.get("winding_resistance")
    title = f"drives, R and k_b by {source}; S0: k_t/k_b {KT_OVER_KB}, k_m {assumed}"
    columns = ["joint", "k_t file", "k_t", "R file", "R", "k_m file", "k_m", "k_t/k_b"]
    return title, columns, rows


def _source(sources: Mapping[str, str], name: str) -> str:
    """The identification stage that a quantity comes from."""
    return sources.get(name, "given").replace("_", " ")


def inertia_table(model: EnergyModel) -> Table:
    """Motor and reducer inertia (S0 Table IV), identified and by catalogue."""
    robot = load_robot(model.robot)
    reflected = np.array([joint.reflected_inertia for joint in model.joints])
    motor_side, rotor = split_inertia(reflected, robot)
    columns = {
        "joint": [joint.name for joint in model.joints],
        "reflected, joint side [kg m²]": reflected,
        "± 95 %": [
            CONFIDENCE * float(joint.std.get("reflected_inertia", np.nan))
            for joint in model.joints
        ],
        "robot file [kg m²]": robot.reflected_inertia,
        "motor side [10⁻⁴ kg m²]": 1e4 * motor_side,
        "reducer, catalogue [10⁻⁴ kg m²]": 1e4 * robot.reducer_inertia,
        "motor [10⁻⁴ kg m²]": 1e4 * rotor,
        "from": [_source(joint.source, "reflected_inertia") for joint in model.joints],
    }
    rows = list(zip(*columns.values(), strict=True))
    note = "From target_moment, which includes motor inertia but no friction."
    return Table("Inertia of motors and reducers (Table IV)", tuple(columns), rows, note)


def friction_tables(model: EnergyModel) -> tuple[Table, Table]:
    """Torque constants and friction (S0 Table VI), and the reasons for the friction laws."""
    names = list(
        dict.fromkeys(n for j in model.joints for n in j.friction.law.parameters)
    )
    rows = []
    reasons = []
    for joint in model.joints:
        law = joint.friction.law
        values = joint.friction.parameters
        rows.append(
            (
                joint.name,
                with_interval(joint.torque_constant, joint.std.get("torque_constant")),
                law.name.replace("_", " "),
                *(with_interval(values[n], joint.std.get(n)) if n in values else None
                  for n in names),
                _source(joint.source, "torque_constant"),
            )
        )  # fmt: skip
        reasons.append(
            (joint.name, f"{law.description}: {joint.friction_reason or 'as requested'}")
        )
    units = (f"{n.replace('_', ' ')} [{PARAMETER_UNITS.get(n, '')}]" for n in names)
    columns = ("joint", "k_t [N m/A]", "friction law", *units, "from")
    title = "Torque constants and friction (Table VI)"
    return (
        Table(title, columns, rows, "Motor side, ± 95 %."),
        Table("Why these friction laws", ("", ""), reasons),
    )


def provenance_table(model: EnergyModel) -> Table:
    """Origin of the model: robot, software, recordings."""
    made = model.provenance
    payload = model.setup.payload
    bus = model.bus

    def known(name: str) -> str:
        return "unknown" if made.get(name) is None else str(made[name])

    center = ", ".join(f"{c:.3f}" for c in payload.center_of_mass)
    power = (
        f"{bus.kind}, from {bus.source.replace('_', ' ')}; standby {bus.standby:.2f} W"
    )
    rows = [
        ("robot", model.robot),
        *([("model", model_words(model, None))] if is_generic(model) else []),
        ("serial number", known("serial")),
        ("controller software", known("firmware")),
        ("package version", known("package_version")),
        ("made", known("date")),
        (
            "gravity in the base frame [m/s²]",
            ", ".join(f"{g:.3f}" for g in model.setup.gravity),
        ),
        ("payload", f"{payload.mass:.3f} kg at ({center}) m"),
        ("mounting and payload are", model.setup_source),
        ("bus power model", f"{power}; {bus.reason}"),
    ]
    rows += [
        (
            "fitted on",
            f"{bag.get('path')}: {bag.get('samples')} samples, {bag.get('duration', 0):.1f} s, "
            f"SHA-256 {bag.get('sha256')}",
        )
        for bag in made.get("bags") or ()
    ]
    return Table("Origin of the model", ("", ""), rows)


# The page.


def report_page(report: Report) -> Page:
    """The page of a report."""
    model = report.model
    bags = report.bags
    shown = ", ".join(f"{bag.label} ({bag.analysis.motion})" for bag in bags)
    # Serial numbers of the recordings, and of the model where that is another.
    found = sorted({text for bag in bags if (text := bag.energy.serials["recording"])})
    arms = (
        f"Serial number{'s' if found[1:] else ''} {', '.join(found)}. " if found else ""
    )
    serial = report.serials["model"]
    arms += f"Model of {serial}. " if serial and found != [serial] else ""
    return Page(
        title=f"Energy of a {arm_name(model.robot_name)}"
        + (" (generic model)" if is_generic(model) else ""),
        subtitle=f"{arms}Recordings: {shown}.",
        verdict=report.verdict,
        tiles=_tiles(report),
        joint_names=[joint.name for joint in model.joints],
        recordings=[bag.label for bag in bags],
        sections=list(_sections(report)),
    )


def _each(
    entries: Sequence[T], make: Callable[[T], Chart | Table | None]
) -> tuple[Item, ...]:
    """One chart or table per recording, if its data allow it."""
    made = [(make(entry), number) for number, entry in enumerate(entries)]
    return tuple(Item(content, number) for content, number in made if content is not None)


def _sections(report: Report) -> Iterable[PageSection]:
    yield _energy_section(report)
    yield _shift_section(report)
    yield _torque_section(report)
    yield _current_section(report)
    yield _parameter_section(report.model)
    analyses = [bag.analysis for bag in report.bags]
    motion = (*_each(analyses, charts.motion_chart), *_each(analyses, charts.path_chart))
    yield PageSection("motion", "The motion", "", motion)
    yield PageSection(
        "provenance", "Provenance", "", items(provenance_table(report.model))
    )
    advice = report.measures.section(report.tariff)
    if advice is not None:
        tables = [Table(*table) for table in advice.tables]
        yield PageSection(advice.key, advice.title, advice.text, items(*tables))


def _energy_section(report: Report) -> PageSection:
    bags = report.bags
    analyses = [bag.analysis for bag in bags]
    metrics = [bag.metrics for bag in bags]
    labels = [bag.label for bag in bags]

    def joint_energies(bag: BagReport) -> Chart | None:
        return charts.joint_power_chart(bag.metrics["joint_power"], bag.label)

    shown = (
        *_each(analyses, charts.stack_chart),
        *_each(analyses, charts.energy_split_chart),
        *_each(bags, lambda bag: energy_table(bag.energy, bag.label)),
        *_each(bags, joint_energies),
        *_each(bags, lambda bag: joint_power_table(bag.metrics, bag.label)),
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
    shift = report.shift
    text = "All recordings one after another."
    if report.cycles and not shift.cycles:
        text += " They contain no start of a cycle."
    if len(shift.kinds) > 1:
        text += f" Their cycles are of {len(shift.kinds)} kinds of work, which have no common mean."
    tables = (shift_table(shift, report.tariff, report.wall), cycle_table(shift))
    return PageSection("shift", "The shift", text, items(*shift_charts(shift), *tables))


def _torque_section(report: Report) -> PageSection:
    analyses = [bag.analysis for bag in report.bags]
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
    analyses = [bag.analysis for bag in report.bags]
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
    return _each(report.bags, lambda bag: error_table(key, bag.metrics, names, bag.label))


def _parameter_section(model: EnergyModel) -> PageSection:
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
    shift = report.shift
    tariff = report.tariff
    mean = shift.energy / shift.seconds if shift.seconds > 0 else float("nan")
    duration = duration_text(shift.seconds)
    tiles = [
        Tile(
            energy_text(shift.energy),
            f"in {duration}, ± {energy_text(shift.half_width)}, {shift.total_source.words()}",
        ),
        Tile(f"{mean:.1f} W", "mean power of the whole arm"),
        Tile(f"{100 * shift.idle_share:.0f} %", "of the energy without motion"),
    ]
    if shift.explained_share is not None:
        explained = f"{100 * shift.explained_share:.1f} %".replace("-", "−")
        tiles.append(Tile(explained, "of the measured energy explained by the model"))
    wall = report.wall
    half = energy_text(CONFIDENCE * wall.std)
    tiles.append(
        Tile(energy_text(wall.energy), f"at the wall, ± {half}, {SOURCES[wall.source]}")
    )
    paid = [
        3.6e6 * each / max(shift.seconds, 1e-9) for each in (shift.energy, wall.energy)
    ]
    cost = tariff.cost(*paid)
    emission = tariff.emission(*paid)
    if cost is not None:
        tiles.append(Tile(f"{cost:.2f} {tariff.currency}", "for 1000 hours like this"))
    if emission is not None:
        tiles.append(Tile(f"{emission:.1f} kg", "CO₂ for 1000 hours like this"))
    whole = [cycle for cycle in shift.cycles if cycle.is_whole]
    if whole and len(shift.kinds) == 1:
        mean = float(
            np.mean([c.summary(shift.channels)["total_energy_J"] for c in whole])
        )
        tiles.append(Tile(energy_text(mean), f"per cycle, over {len(whole)} cycles"))
    return tiles
