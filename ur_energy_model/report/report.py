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
    """One recording evaluated with the model.

    Attributes:
        analysis: arrays for the figures.
        metrics: METRICS of the whole recording.
        energy: energies of the whole recording.
    """

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
    """The content of a report.

    Attributes:
        model: identified model.
        bags: recordings, in the given order.
        shift: energy over all recordings.
        tariff: cost of energy.
        verdict: whether the model is reliable.
        cycles: whether cycles were requested.
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
    """Evaluate recordings with a model.

    Args:
        model: identified model.
        bags: recordings of the arm; those that the model was fitted to are recognised by hash, and
            those that repeat their motion by its path.
        payload: the actual payload, if the controller's setting was another one.
        tariff: cost of energy.
        trigger: what starts a cycle, see `energy.live.cycles`.
        output: number of the digital output for that trigger.
        same_arm: see `model_of_arm`.
        progress: called with fraction and text.

    Raises:
        UrEnergyError: invalid input, with source and remedy.
    """
    labels = _labels(bags)
    reports = []
    for number, (bag, label) in enumerate(zip(bags, labels, strict=True)):
        stage = _stage(progress, number, len(bags) + 1)
        reports.append(_bag_report(model, Path(bag), label, same_arm, stage, payload))
    stage = _stage(progress, len(bags), len(bags) + 1)
    infos = [bag.analysis.info for bag in reports]
    matched = [model_of_arm(model, info, same_arm=same_arm) for info in infos]
    widest, another = next((each for each in matched if each[1] is not None), (model, None))
    shift = read_shift(widest, bags, trigger=trigger, output=output, progress=stage)
    held_out = [bag for bag in reports if bag.analysis.motion == "held out"]
    verdict = judge(
        [bag.metrics for bag in held_out or reports],
        [joint.name for joint in model.joints],
        motions={bag.analysis.motion for bag in held_out or reports},
        simulated=any(bag.analysis.info.simulated for bag in reports),
        generic=_generic_statement(model, reports),
        another_arm=another,
        doubts=[line for bag in reports for line in bag.doubts],
    )
    return Report(
        model,
        tuple(reports),
        shift,
        tariff or Tariff(),
        verdict,
        cycles=trigger not in ("auto", "none"),
    )


def _bag_report(
    model: EnergyModel,
    bag: Path,
    label: str,
    same_arm: bool,
    stage: Progress,
    payload: Payload | None,
) -> BagReport:
    stage(0.0, f"evaluating {label}")
    metrics = evaluate(model, bag, payload=payload, same_arm=same_arm).as_json()
    stage(0.4, f"energy of {label}")
    energy = estimate_energy(model, bag, same_arm=same_arm)
    stage(0.6, f"figures of {label}")
    motion: Motion = "held out" if is_generic(model) else metrics["motion"]
    model, _ = model_of_arm(model, read_info(bag), same_arm=same_arm)
    analysis = analyse(model, bag, label=label, motion=motion, payload=payload)
    return BagReport(analysis, metrics, energy)


def _generic_statement(model: EnergyModel, bags: Sequence[BagReport]) -> str | None:
    if not is_generic(model):
        return None
    widths = [
        100 * CONFIDENCE * bag.energy.supply_std / bag.energy.supply
        for bag in bags
        if bag.energy.supply > 0
    ]
    return generic_statement(model_words(model, None), max(widths, default=None))


def _labels(bags: Sequence[str | Path]) -> list[str]:
    """Unique short names of bags."""
    names = [real_path(bag).name for bag in bags]
    return [
        name if names.count(name) == 1 else f"{name} ({number + 1})"
        for number, name in enumerate(names)
    ]


def _stage(progress: Progress | None, number: int, stages: int) -> Progress:
    """Progress of one of several stages that take equally long."""

    def report(fraction: float, text: str) -> None:
        if progress is not None:
            progress((number + (0.0 if np.isnan(fraction) else fraction)) / stages, text)

    return report
