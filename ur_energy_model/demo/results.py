# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Results of the demo: estimated and true energies, errors of the model, and figures."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ur_energy_model.cli.output import note, print_table
from ur_energy_model.codec import plain
from ur_energy_model.energy.energy_summary import EnergySummary
from ur_energy_model.energy.recording_energy import estimate_energy
from ur_energy_model.files import write_text
from ur_energy_model.identification.evaluation import Metrics, evaluate, r2_words
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.report.analysis import analyse
from ur_energy_model.report.figures import save_chart
from ur_energy_model.report.recording_charts import recording_charts
from ur_energy_model.report.render import render
from ur_energy_model.report.report import make_report, report_page
from ur_energy_model.telemetry.bag.reader import read_bag
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.typing import Array


@dataclass(frozen=True)
class Evaluated:
    """The evaluation of a model on a held-out recording of the simulated arm.

    Attributes:
        energy: energies that the model estimates from the recording.
        truth: true energies of the same time, see `true_energy`.
        metrics: errors of torque, current and power.
        figures: files of the charts.
        recording: samples of the recording.
    """

    energy: EnergySummary
    truth: dict[str, Any]
    metrics: Metrics
    figures: tuple[Path, ...]
    recording: Telemetry


def evaluate_run(
    model: EnergyModel, bag: Path, truth_file: Path, folder: Path
) -> Evaluated:
    """Evaluate a model on a held-out recording; write figures, numbers and the report.

    Args:
        model: model that was identified from another recording.
        bag: the recording.
        truth_file: file with the true energies of the simulated arm, for the same motion.
        folder: folder for figures/, result.json and report.html.

    Raises:
        UrEnergyError: the recording cannot be used.
    """
    recording = read_bag(bag)
    truth = true_energy(truth_file, float(recording.time[0]), float(recording.time[-1]))
    energy = estimate_energy(model, bag)
    metrics = evaluate(model, bag)
    charts = recording_charts(analyse(model, bag), true_energy=truth["electrical_energy"])
    figures: list[Path] = []
    for chart in charts:
        figures += save_chart(chart, folder / "figures")
    content = {"estimate": energy.as_json(), "truth": truth, "metrics": metrics.as_json()}
    write_text(folder / "result.json", json.dumps(plain(content), indent=1) + "\n")
    write_text(folder / "report.html", render(report_page(make_report(model, [bag]))))
    return Evaluated(energy, truth, metrics, tuple(figures), recording)


def print_tables(evaluated: Evaluated) -> None:
    """Print energies (Table VIII), torque (Table V) and current (Table VII) errors.

    The tables have the form of the tables of Clochiatti et al. 2024, with true values
    beside estimated ones.
    """
    _print_energies(evaluated)
    names = evaluated.energy.names
    metrics = evaluated.metrics
    torque = "Torque error, trajectory B [N m] (Table V)"
    current = "Current error, trajectory B [A] (Table VII)"
    _print_errors(torque, names, metrics.torque)
    _print_errors(current, names, metrics.current)
    power = metrics.power
    if power is not None:
        note(
            f"bus power: RMSE {power['rmse']:.2f} W ({power['rmse_percent']:.1f} % of range), "
            f"energy error {power['energy_error_percent']:+.2f} %"
        )


def _print_energies(evaluated: Evaluated) -> None:
    """Print the energies of the joints at the motors, and the energy at the supply."""
    energy = evaluated.energy
    truth = evaluated.truth
    columns = (
        energy.mechanical,
        truth["mechanical_energy"],
        energy.electrical,
        truth["electrical_energy"],
    )
    table: list[list[Any]] = []
    for name, *values in zip(energy.names, *columns, strict=True):
        table.append(_energy_row(name, *values))
    table.append(_energy_row("whole arm", *[column.sum() for column in columns]))
    print_table(
        f"Energy over {evaluated.recording.duration:.1f} s of trajectory B [J] (Table VIII)",
        ["joint", "E mech", "true", "E elec", "true", "error %", "efficiency"],
        table,
    )
    bus = truth["bus_energy"]
    print_table(
        "Energy at the supply, standby included [J]",
        ["whole arm", "energy", "error %"],
        [
            ["true", bus, None],
            ["measured, voltage x current", energy.bus, _percent(energy.bus, bus)],
            ["model", energy.model, _percent(energy.model, bus)],
        ],
    )


def _energy_row(
    name: str,
    mechanical: float,
    true_mechanical: float,
    electrical: float,
    true_electrical: float,
) -> list[Any]:
    """A row of the table of energies [J], with the error [%] and the efficiency."""
    efficiency = None
    if electrical > 0:
        efficiency = f"{mechanical / electrical:.3f}"
    return [
        name,
        round(float(mechanical), 1),
        round(float(true_mechanical), 1),
        round(float(electrical), 1),
        round(float(true_electrical), 1),
        _percent(electrical, true_electrical),
        efficiency,
    ]


def _print_errors(
    title: str, names: Sequence[str], entries: Sequence[Mapping[str, Any]] | None
) -> None:
    """Print the errors of each joint, if they are known.

    Args:
        title: line above the table.
        names: names of the joints.
        entries: statistics of the errors of each joint; None where they are unknown.
    """
    if entries is None:
        return
    table: list[list[Any]] = []
    for name, entry in zip(names, entries, strict=True):
        table.append([name, entry["mean"], entry["max"], entry["rms"], r2_words(entry)])
    print_table(title, ["joint", "mean", "max", "RMS", "R2"], table)


def _percent(value: float | None, true: float) -> str | None:
    """Error of a value in percent of the true one; None where one is unknown."""
    if value is None or not np.isfinite(true):
        return None
    return f"{100 * (value / true - 1):+.2f}"


def true_energy(truth_file: Path, start: float, end: float) -> dict[str, Any]:
    """True energies of a simulated arm over a time.

    Args:
        truth_file: JSON file that the simulated arm wrote; it names a file of arrays.
        start: controller time at which the time begins [s].
        end: controller time at which it ends [s].

    Returns:
        `mechanical_energy` and `electrical_energy` of the joints at the motor [n], and
        `bus_energy` that the supply delivers to the whole arm, standby included; all in
        J.
    """
    content = json.loads(truth_file.read_text(encoding="utf-8"))
    with np.load(truth_file.with_name(content["arrays"])) as rows:
        time = rows["timestamp"]

        def between(name: str) -> Array:
            """Increase of each counter of an array from `start` to `end` [J]."""
            counters = rows[name].reshape(len(time), -1).T
            gains: list[float] = []
            for counter in counters:
                first, last = np.interp([start, end], time, counter)
                gains.append(last - first)
            return np.array(gains)

        (bus,) = between("bus_energy")
        return {
            "mechanical_energy": between("mechanical_energy"),
            "electrical_energy": between("electrical_energy"),
            "bus_energy": float(bus),
        }
