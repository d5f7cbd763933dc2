"""Results of the demo: the tables of the paper with the true values of the simulated arm."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ur_energy_model.cli.output import note, print_table
from ur_energy_model.demo.true_energy import TrueEnergy, true_energy
from ur_energy_model.energy.energy_summary import EnergySummary
from ur_energy_model.energy.recording_energy import estimate_energy
from ur_energy_model.files import write_text
from ur_energy_model.identification.evaluation.evaluation import Metrics, evaluate
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.plain import plain
from ur_energy_model.report.figures.figures import save_figures
from ur_energy_model.report.page.html import render
from ur_energy_model.report.page.layout import report_page
from ur_energy_model.report.report import make_report
from ur_energy_model.telemetry.bag.reader import read_bag
from ur_energy_model.topics_and_services import BUS_ENERGY, TOTAL_ENERGY


@dataclass(frozen=True)
class DemoResult:
    """Estimated and true energies over the recording of trajectory B.

    Attributes:
        energy: estimated from the recording.
        truth: true energies over the same time.
        metrics: accuracy of the model on this held-out recording.
        figures: created figure files.
        lost: number of lost samples.
        seconds: duration of the recording.
    """

    energy: EnergySummary
    truth: TrueEnergy
    metrics: Metrics
    figures: tuple[Path, ...]
    lost: int
    seconds: float


def evaluate_run(model: EnergyModel, bag: Path, truth_file: Path, folder: Path) -> DemoResult:
    """Evaluate the model on a recording with known true energies; write figures and numbers."""
    recording = read_bag(bag)
    truth = true_energy(truth_file, float(recording.time[0]), float(recording.time[-1]))
    result = DemoResult(
        energy=estimate_energy(model, bag),
        truth=truth,
        metrics=evaluate(model, bag),
        figures=tuple(save_figures(model, bag, folder / "figures", truth.as_truth())),
        lost=recording.lost,
        seconds=recording.duration,
    )
    content = {
        "estimate": result.energy.as_json(),
        "truth": {
            "mechanical_energy": truth.mechanical,
            "electrical_energy": truth.electrical,
            "bus_energy": truth.bus,
        },
        "metrics": result.metrics.as_json(),
    }
    write_text(folder / "result.json", json.dumps(plain(content), indent=1) + "\n")
    write_text(folder / "report.html", render(report_page(make_report(model, [bag]))))
    return result


def print_result(result: DemoResult, live: Mapping[str, float]) -> None:
    """Print tables: energies (Table VIII), torque (Table V) and current (Table VII) errors."""
    energy, truth, metrics = result.energy, result.truth, result.metrics
    names = energy.names
    print_table(
        f"Energy over {result.seconds:.1f} s of trajectory B [J] (Table VIII)",
        ["joint", "E mech", "true", "E elec", "true", "error %", "efficiency"],
        [
            *(
                _energy_row(
                    names[j],
                    energy.mechanical[j],
                    truth.mechanical[j],
                    energy.electrical[j],
                    truth.electrical[j],
                )
                for j in range(len(names))
            ),
            _energy_row(
                "whole arm",
                energy.mechanical.sum(),
                truth.mechanical.sum(),
                energy.electrical.sum(),
                truth.electrical.sum(),
            ),
        ],
    )
    print_table(
        "Energy at the supply, standby included [J]",
        ["whole arm", "energy", "error %"],
        [
            ["true", truth.bus, None],
            ["measured, voltage x current", energy.bus, _percent(energy.bus, truth.bus)],
            ["model", energy.supply, _percent(energy.supply, truth.bus)],
        ],
    )
    for title, entries in (
        ("Torque error, trajectory B [N m] (Table V)", metrics.torque),
        ("Current error, trajectory B [A] (Table VII)", metrics.current),
    ):
        if entries is not None:
            print_table(
                title,
                ["joint", "mean", "max", "RMS", "R2"],
                [
                    [name, *(entry[key] for key in ("mean", "max", "rms", "r2"))]
                    for name, entry in zip(names, entries, strict=True)
                ],
            )
    if metrics.power is not None:
        power = metrics.power
        note(
            f"bus power: RMSE {power['rmse']:.2f} W ({power['rmse_percent']:.1f} % of range), "
            f"energy error {power['energy_error_percent']:+.2f} %"
        )
    note(
        "the model was fitted to trajectory A alone; the tables are those of Clochiatti et al. 2024"
    )
    note(f"samples lost by the logger: {result.lost}")
    total, bus = TOTAL_ENERGY, BUS_ENERGY
    if total.name in live:
        note(
            f"live {total.absolute_name} ended at {live[total.name]:.0f} J, "
            f"{bus.absolute_name} at {live.get(bus.name, float('nan')):.0f} J "
            f"({live['messages']:.0f} messages received)"
        )


def _energy_row(name: str, mech: float, true_mech: float, elec: float, true: float) -> list[Any]:
    return [
        name,
        *(round(float(x), 1) for x in (mech, true_mech, elec, true)),
        _percent(elec, true),
        f"{mech / elec:.3f}" if elec > 0 else None,
    ]


def _percent(value: float | None, truth: float) -> str | None:
    return None if value is None or not np.isfinite(truth) else f"{100 * (value / truth - 1):+.2f}"
