"""The layout of a report as a page: tiles, and sections with their charts and tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import numpy as np

from ur_energy_model.identification.dynamics.base_parameters import snapped_to_axis
from ur_energy_model.identification.dynamics.regrouping import FullRegressor, regroup
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.generic import is_generic, model_words
from ur_energy_model.model.robots import RobotDescription, load_robot
from ur_energy_model.report.analysis import DRAWN_SECONDS, Analysis
from ur_energy_model.report.charts import motion, power, torque_and_current
from ur_energy_model.report.charts.chart import Chart
from ur_energy_model.report.charts.parameters import (
    interval_chart,
    singular_value_charts,
    temperature_law_chart,
)
from ur_energy_model.report.charts.shift import shift_charts
from ur_energy_model.report.page.page import Item, Page, Section, Tile
from ur_energy_model.report.report import BagReport, Report
from ur_energy_model.report.tables.energy import energy_table
from ur_energy_model.report.tables.errors import error_table, power_table
from ur_energy_model.report.tables.parameters import (
    drives_table,
    friction_choice_table,
    friction_table,
    inertia_table,
    provenance_table,
)
from ur_energy_model.report.tables.shift import cycle_table, shift_table
from ur_energy_model.report.tables.table import Table

T = TypeVar("T", Analysis, BagReport)


def report_page(report: Report) -> Page:
    """The page of a report."""
    model, bags = report.model, report.bags
    labels = tuple(bag.label for bag in bags)
    shown = ", ".join(f"{bag.label} ({bag.analysis.motion})" for bag in bags)
    return Page(
        title=f"Energy of a {arm_name(model.robot_name)}"
        + (" (generic model)" if is_generic(model) else ""),
        subtitle=f"{_arms(report)}Recordings: {shown}.",
        verdict=report.verdict,
        tiles=_tiles(report),
        joint_names=tuple(joint.name for joint in model.joints),
        recordings=labels,
        sections=tuple(section for section in _sections(report) if section.items),
    )


def _arms(report: Report) -> str:
    """Serial numbers of the recordings, and of the model where that is another."""
    recorded = {bag.energy.serials["recording"] for bag in report.bags}
    found = sorted(filter(None, recorded))
    model = report.serials["model"]
    text = f"Serial number{'s' if found[1:] else ''} {', '.join(found)}. " if found else ""
    return text + (f"Model of {model}. " if model and found != [model] else "")


def _sections(report: Report) -> Iterable[Section]:
    model, bags = report.model, report.bags
    robot = load_robot(model.robot)
    analyses = [bag.analysis for bag in bags]
    metrics = [bag.metrics for bag in bags]
    labels = [bag.label for bag in bags]
    names = [joint.name for joint in model.joints]
    cut = any(analysis.cut for analysis in analyses)
    yield Section(
        "energy",
        "Energy",
        f"Curves show the first {DRAWN_SECONDS / 60:.0f} minutes." if cut else "",
        (
            *_each(analyses, power.stack_chart),
            *_each(analyses, power.energy_split_chart),
            *_each(bags, lambda b: energy_table(b.energy, b.label)),
            *_each(analyses, power.bus_chart),
            *_all(power_table(metrics, labels)),
            *_each(analyses, power.power_chart),
            *_each(analyses, power.energy_chart),
        ),
    )
    yield _shift_section(report)
    yield Section(
        "torque",
        "Torque and inertia",
        "How well the rigid-body model and the motors' inertia reproduce the controller's torque.",
        (
            *_each(analyses, torque_and_current.torque_chart),
            *_all(torque_and_current.torque_error_chart(analyses)),
            *_each(bags, lambda b: error_table("torque", b.metrics, names, b.label)),
            *_all(inertia_table(model)),
        ),
    )
    yield Section(
        "current",
        "Current and friction",
        "How well torque constants and friction reproduce the measured motor currents.",
        (
            *_each(analyses, torque_and_current.current_chart),
            *_all(torque_and_current.current_error_chart(analyses)),
            *_each(bags, lambda b: error_table("current", b.metrics, names, b.label)),
            *_all(friction_table(model), friction_choice_table(model)),
            *_each(analyses, torque_and_current.friction_chart),
            *_all(temperature_law_chart(model)),
            *_each(analyses, motion.temperature_chart),
        ),
    )
    yield Section(
        "parameters",
        "Parameters of the arm type" if is_generic(model) else "Identified parameters",
        f"Of a {model_words(model, None)}." if is_generic(model) else "",
        _all(
            interval_chart(model, robot),
            drives_table(model),
            *_singular_values(model, robot),
        ),
    )
    yield Section(
        "motion",
        "The motion",
        "",
        (*_each(analyses, motion.motion_chart), *_each(analyses, motion.path_chart)),
    )
    yield Section("provenance", "Provenance", "", _all(provenance_table(model)))


def _shift_section(report: Report) -> Section:
    shift = report.shift
    return Section(
        "shift",
        "The shift",
        "All recordings one after another."
        + (" They contain no start of a cycle." if report.cycles and not shift.cycles else ""),
        _all(*shift_charts(shift), shift_table(shift, report.tariff), cycle_table(shift)),
    )


def _singular_values(model: EnergyModel, robot: RobotDescription) -> Sequence[Chart]:
    found = regroup(FullRegressor(robot, snapped_to_axis(model.setup.gravity)))
    return singular_value_charts(found.singular_values, found.rank)


def _each(entries: Sequence[T], make: Callable[[T], Chart | Table | None]) -> tuple[Item, ...]:
    """One chart or table per recording, if its data allow it."""
    made = [(make(entry), number) for number, entry in enumerate(entries)]
    return tuple(Item(content, number) for content, number in made if content is not None)


def _all(*content: Chart | Table | None) -> tuple[Item, ...]:
    """Charts and tables about all recordings."""
    return tuple(Item(item) for item in content if item is not None)


def _tiles(report: Report) -> tuple[Tile, ...]:
    shift, tariff = report.shift, report.tariff
    mean = shift.energy / shift.seconds if shift.seconds > 0 else float("nan")
    tiles = [
        Tile(
            energy_text(shift.energy),
            f"in {duration_text(shift.seconds)}, ± {energy_text(shift.half_width)}",
        ),
        Tile(f"{mean:.1f} W", "mean power of the whole arm"),
        Tile(f"{100 * shift.idle_share:.0f} %", "of the energy without motion"),
    ]
    if shift.bus_energy:
        error = 100 * (shift.energy - shift.bus_energy) / shift.bus_energy
        tiles.append(Tile(f"{error:+.1f} %".replace("-", "−"), "model against measured bus energy"))
    rate = mean * 1000 * 3600
    cost, emission = tariff.cost(rate), tariff.emission(rate)
    if cost is not None:
        tiles.append(Tile(f"{cost:.2f} {tariff.currency}", "for 1000 hours like this"))
    if emission is not None:
        tiles.append(Tile(f"{emission:.1f} kg", "CO₂ for 1000 hours like this"))
    if shift.cycles:
        mean = float(np.mean([c.summary(shift.channels)["total_energy"] for c in shift.cycles]))
        tiles.append(Tile(energy_text(mean), f"per cycle, over {len(shift.cycles)} cycles"))
    return tuple(tiles)


def arm_name(robot: str) -> str:
    """A robot's name for headings: "ur5e" becomes "UR5e"."""
    return "UR" + robot[2:] if robot.startswith("ur") else robot.capitalize()


def energy_text(joules: float) -> str:
    """An energy in J, Wh, kWh or MWh, depending on its size."""
    if joules >= 3.6e10:
        return f"{joules / 3.6e9:.2f} MWh"
    if joules >= 3.6e5:
        return f"{joules / 3.6e6:.{3 if joules < 3.6e7 else 1}f} kWh"
    return f"{joules / 3600:.2f} Wh" if joules >= 3.6e4 else f"{joules:.0f} J"


def duration_text(seconds: float) -> str:
    """A duration in s, min or h, depending on its length."""
    if seconds >= 3600:
        return f"{seconds / 3600:,.{1 if seconds < 3.6e6 else 0}f} h"
    return f"{seconds / 60:.1f} min" if seconds >= 120 else f"{seconds:.0f} s"
