"""Report: recordings evaluated with a model, before they are laid out as a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ur_energy_model.energy.cycles import Trigger
from ur_energy_model.energy.meter import CONFIDENCE
from ur_energy_model.energy.recording_energy import EnergySummary, common_serials, estimate_energy
from ur_energy_model.energy.telemetry_checks import model_of_arm
from ur_energy_model.files import real_path
from ur_energy_model.identification.evaluation import evaluate
from ur_energy_model.identification.quality import Motion
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.generic import is_generic, model_words
from ur_energy_model.model.setup import Payload
from ur_energy_model.report.analysis import Analysis, analyse
from ur_energy_model.report.shift import Shift, read_shift
from ur_energy_model.report.tariff import Tariff
from ur_energy_model.report.verdict import ModelVerdict, generic_statement, judge
from ur_energy_model.telemetry.bag.reader import read_info
from ur_energy_model.telemetry.samples import repetition
from ur_energy_model.typing import Progress


@dataclass(frozen=True)
class BagReport:
    """One recording evaluated with the model: arrays for figures, METRICS, and energies."""

    analysis: Analysis
    metrics: Mapping[str, Any]
    energy: EnergySummary

    @property
    def label(self) -> str:
        """Short name."""
        return self.analysis.label

    @property
    def doubts(self) -> Sequence[str]:
        """Warnings about the arm: those of the metrics, or else those of the energies."""
        about = self.metrics["warnings"], self.energy.warnings
        arm = [[line for line in each if line not in self.repetition] for each in about]
        return arm[0] or arm[1]

    @property
    def repetition(self) -> tuple[str, ...]:
        """Warning that samples are in the recording twice."""
        return repetition(self.energy.repeated)


@dataclass(frozen=True)
class Report:
    """The content of a report; `cycles` is whether cycles were requested."""

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
            dict.fromkeys(line for bag in self.bags for line in (*bag.doubts, *bag.repetition))
        )

    @property
    def serials(self) -> dict[str, str | None]:
        """Serial numbers of the arms of model and recordings; None where these differ."""
        return common_serials([bag.energy.serials for bag in self.bags])


def make_report(
    model: EnergyModel,
    bags: Sequence[str | Path],
    *,
    payload: Payload | None = None,
    tariff: Tariff | None = None,
    trigger: Trigger = "auto",
    output: int = 0,
    same_arm: bool = False,
    progress: Progress | None = None,
) -> Report:
    """Evaluate recordings of an arm with a model.

    Those that the model was fitted to are recognised by hash, and those that repeat their motion by
    its path. `payload` is the actual one, if the controller's setting was another; `trigger` and
    `output` are what starts a cycle, see `energy.cycles`; `same_arm`: see `model_of_arm`.

    Raises:
        UrEnergyError: invalid input, with source and remedy.
    """
    stage = 0

    def show(fraction: float, text: str) -> None:  # every bag and the shift take equally long
        if progress is not None:
            progress((stage + (0.0 if np.isnan(fraction) else fraction)) / (len(bags) + 1), text)

    names = [real_path(bag).name for bag in bags]
    generic = is_generic(model)
    reports, matched = [], []
    for stage, (bag, name) in enumerate(zip(bags, names, strict=True)):
        label = name if names.count(name) == 1 else f"{name} ({stage + 1})"
        show(0.0, f"evaluating {label}")
        metrics = evaluate(model, bag, payload=payload, same_arm=same_arm).as_json()
        show(0.4, f"energy of {label}")
        energy = estimate_energy(model, bag, same_arm=same_arm)
        show(0.6, f"figures of {label}")
        matched.append(model_of_arm(model, read_info(bag), same_arm=same_arm))
        motion: Motion = "held out" if generic else metrics["motion"]
        analysis = analyse(matched[-1][0], bag, label=label, motion=motion, payload=payload)
        reports.append(BagReport(analysis, metrics, energy))
    stage = len(bags)
    widest, another = next((each for each in matched if each[1] is not None), (model, None))
    shift = read_shift(widest, bags, trigger=trigger, output=output, progress=show)
    statement = None
    if generic:
        energies = [bag.energy for bag in reports if bag.energy.supply > 0]
        widths = [100 * CONFIDENCE * each.supply_std / each.supply for each in energies]
        statement = generic_statement(model_words(model, None), max(widths, default=None))
    judged = [bag for bag in reports if bag.analysis.motion == "held out"] or reports
    verdict = judge(
        [bag.metrics for bag in judged],
        [joint.name for joint in model.joints],
        motions={bag.analysis.motion for bag in judged},
        simulated=any(bag.analysis.info.simulated for bag in reports),
        generic=statement,
        another_arm=another,
        doubts=[line for bag in reports for line in bag.doubts],
    )
    cycles = trigger not in ("auto", "none")
    return Report(model, tuple(reports), shift, tariff or Tariff(), verdict, cycles)
