# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""`ur_energy estimate`: the energy of recordings, and what can be done for less."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ur_energy_model.cli.arguments import (
    ChosenModel,
    CommandBags,
    chosen_model,
    failed_json,
    failed_of,
    report_failed,
    split_model,
    stated_payload,
    tariff_of,
    with_payload,
)
from ur_energy_model.cli.command_options import EstimateOptions
from ur_energy_model.cli.measures import print_measures
from ur_energy_model.cli.output import (
    note,
    print_json,
    print_line,
    print_objects,
    warn,
)
from ur_energy_model.energy.advice import Advice, adviser
from ur_energy_model.energy.energy_bag import write_energy_bag
from ur_energy_model.energy.energy_summary import EnergySummary, totals_json
from ur_energy_model.energy.meter import CONFIDENCE
from ur_energy_model.energy.powers import PowerOptions, TotalSource
from ur_energy_model.energy.tariff import Tariff
from ur_energy_model.errors import InputError
from ur_energy_model.files import check_output, real_path
from ur_energy_model.identification.energy_advice import energy_with_advice
from ur_energy_model.many_bags import BagResult
from ur_energy_model.rooms import Given
from ur_energy_model.telemetry.bag.files import new_bag
from ur_energy_model.typing import Progress

if TYPE_CHECKING:
    from ur_energy_model.model.energy_model import EnergyModel
    from ur_energy_model.model.setup import Payload


class Estimate(NamedTuple):
    """Results of the command for a recording; it can be pickled.

    Attributes:
        summary: energies of the joints and of the arm.
        measures: what can be done for less.
    """

    summary: EnergySummary
    measures: Advice

    def as_json(self, tariff: Tariff) -> dict[str, Any]:
        """The content of `ur_energy estimate --json` of a single recording.

        Args:
            tariff: tariff by which savings are stated.
        """
        return {**self.summary.as_json(), **self.measures.as_json(tariff)}


def estimate(given: Given) -> None:
    """Compute the energies, write the files that are asked for, and print.

    Raises:
        UrEnergyError: a recording, the model or an option cannot be used, or recordings
            failed; the others are printed before.
    """
    options = given.of(EstimateOptions)
    path, bags = split_model(options.model, options.bags)
    work_on = CommandBags(given, bags, options.workers)
    _check_outputs(options, work_on)
    tariff = tariff_of(options.tariff)
    payload = stated_payload(options.payload)
    chosen = chosen_model(path, options.robot, bags)
    model = with_payload(chosen.model, payload)
    work = partial(
        _estimated,
        model,
        model_path=chosen.path,
        payload=payload,
        same_arm=options.same_arm,
        options=PowerOptions(effort_unit=options.effort_unit),
    )

    def here(bag: Path, report: Progress) -> Estimate:
        """The energies of the only recording, with the files that are asked for."""
        if options.energy_bag is None:
            return work(bag, series=options.csv, progress=report)
        return _with_energy_bag(
            options, options.energy_bag, chosen, model, bag, report, work
        )

    results = work_on.results("estimating", here, work)
    found = results[0].value
    if len(results) > 1 or found is None:
        _print_many(results, chosen, tariff, as_json=options.json)
        return
    if options.json:
        print_json({"model": chosen.entry, **found.as_json(tariff)})
    else:
        warn(found.summary.warnings)
        _print_energy(found.summary, chosen)
        print_measures(found.measures, tariff)
    if options.csv is not None:
        note(f"powers over time written to {options.csv}")
    if options.energy_bag is not None:
        note(f"energy topics written to {options.energy_bag}")


def _check_outputs(options: EstimateOptions, work_on: CommandBags) -> None:
    """Refuse outputs before anything is computed.

    Args:
        options: options of the command.
        work_on: the recordings.

    Raises:
        InputError: --csv or --bag with several recordings, or a table that exists.
    """
    for flag, wanted in (("--csv", options.csv), ("--bag", options.energy_bag)):
        if wanted is not None and work_on.is_distributed:
            problem = "is written from a single recording in this process"
            raise InputError(flag, problem, "give one BAG, and leave out --workers")
    if options.csv is not None:
        check_output(options.csv, overwrite=options.overwrite)


def _with_energy_bag(
    options: EstimateOptions,
    out: Path,
    chosen: ChosenModel,
    model: EnergyModel,
    bag: Path,
    report: Progress,
    work: partial[Estimate],
) -> Estimate:
    """The energies of a recording, and a bag with the topics of the estimator node.

    Args:
        options: options of the command.
        out: the bag to write.
        chosen: the model as the user has named it.
        model: the chosen model, with the payload that the user states.
        bag: the recording.
        report: takes the progress.
        work: computes the energies.

    Raises:
        InputError: `out` is the recording itself, or exists.
    """
    if real_path(out) == real_path(bag):
        raise InputError(out, "is the recording itself", "name another bag OUT")
    with new_bag(out, overwrite=options.overwrite) as folder:
        found = work(bag, series=options.csv, progress=report)
        write_energy_bag(
            model,
            bag,
            folder,
            name=real_path(out).name,
            model_path=chosen.words,
            rate=options.rate,
            same_arm=options.same_arm,
            effort_unit=options.effort_unit,
            progress=report,
        )
        return found


def _estimated(
    model: EnergyModel,
    bag: Path,
    *,
    model_path: Path | None,
    payload: Payload | None,
    same_arm: bool,
    **how: Any,
) -> Estimate:
    """Energies of a recording, with its payload, and what can be done for less.

    Args:
        model: model with the payload that the user states.
        bag: the recording.
        model_path: path of the model file; None for a generic model.
        payload: payload that the user states; None for the payload set in the controller.
        same_arm: whether serial numbers do not matter.
        how: further arguments of `estimate_energy`.
    """
    found = energy_with_advice(
        model,
        bag,
        model_path=model_path,
        payload=payload,
        same_arm=same_arm,
        **how,
    )
    return Estimate(found.summary, found.advice)


# Many recordings: a row for each, and their sums.


def _print_many(
    results: Sequence[BagResult[Estimate]],
    chosen: ChosenModel,
    tariff: Tariff,
    *,
    as_json: bool,
) -> None:
    """Print the energies of several recordings and their sums.

    Args:
        results: results of all recordings, with or without energies.
        chosen: the model as the user has named it.
        tariff: tariff by which savings are stated.
        as_json: whether JSON is printed, in place of a table.

    Raises:
        UrEnergyError: recordings failed; the others are printed before.
    """
    failed = failed_of(results)
    estimates: list[Estimate] = []
    entries: list[dict[str, Any]] = []
    warnings: list[str] = []
    for result in results:
        if result.value is not None:
            estimates.append(result.value)
            entries.append({"bag": result.bag, **result.value.as_json(tariff)})
            doubts = result.value.summary.warnings
            warnings += [f"{result.bag}: {text}" for text in doubts]
    measures = adviser().together([found.measures for found in estimates])
    total: dict[str, Any] = {}
    if estimates:
        total.update(totals_json([found.summary for found in estimates]))
        total.update(measures.as_json(tariff))
    if as_json:
        content = {
            "model": chosen.entry,
            **total,
            "warnings": warnings,
            "results": entries,
            "failed": failed_json(failed),
        }
        print_json(content)
    elif estimates:
        warn(warnings)
        _print_rows([*entries, {"bag": Path("all recordings"), **total}])
        source = TotalSource(total["total_source"], total["total_measured_share"])
        print_line(f"total: {source.words(total['explained_share'])}")
        print_line(f"model: {chosen.words}")
        print_measures(measures, tariff, named=True)
    report_failed(failed, len(results))


def _print_rows(entries: Sequence[dict[str, Any]]) -> None:
    """Print the table of many recordings, a row for each.

    Args:
        entries: JSON of the recordings, with the recording as "bag"; the last entry
            has the sums of all recordings.
    """
    print_objects(
        f"energy of {len(entries) - 1} recordings [J]",
        entries,
        {
            "bag": lambda entry: entry["bag"].name,
            "time [s]": "duration",
            "electrical": lambda entry: entry["total"]["electrical_energy"],
            "supply": lambda entry: entry["total"]["supply_energy"],
            "± 95 %": lambda entry: CONFIDENCE * entry["total"]["supply_energy_std"],
            "source": "total_source",
            "model": lambda entry: entry["total"]["model_energy"],
            "unexplained": lambda entry: entry["total"]["unexplained_energy"],
            "wall": "wall_energy",
        },
    )


# A single recording.


def _print_arm(summary: EnergySummary) -> None:
    """Print the energy at the supply with its 95 % interval, and what it consists of."""
    half_width = CONFIDENCE * summary.supply_std
    source = summary.total_source.words(summary.explained_share)
    print_line(f"at the supply: {summary.supply:.1f} ± {half_width:.1f} J, {source}")
    parts = (
        f"motors {summary.electrical.sum():.1f} J, standby {summary.standby:.1f} J, "
        f"drivers {summary.driver:.1f} J, regeneration {summary.regeneration:.1f} J"
    )
    if summary.total_source.name == "modelled":
        print_line(f"of these {parts}; bus power was not recorded")
        return
    half_width = CONFIDENCE * summary.model_std
    print_line(
        f"by the model: {summary.model:.1f} ± {half_width:.1f} J ({parts}); "
        f"unexplained: {summary.unexplained:+.1f} J"
    )


def _print_energy(summary: EnergySummary, chosen: ChosenModel) -> None:
    """Print the energy of one recording: the whole arm first, then its joints.

    Args:
        summary: energies of the recording.
        chosen: the model as the user has named it.
    """
    _print_arm(summary)
    content = summary.as_json()
    print_line(f"at the wall: {summary.wall.words()}")
    print_line(f"model: {chosen.words}")
    print_objects(
        f"energy over {summary.duration:.1f} s [J]",
        (*content["joints"], {"name": "all joints", **content["total"]}),
        {
            "joint": "name",
            "mechanical": "mechanical_energy",
            "electrical": "electrical_energy",
            "± 95 %": lambda row: CONFIDENCE * row["electrical_energy_std"],
            "efficiency": "efficiency",
            "regenerated": lambda row: row.get("regenerated_energy"),
        },
    )
    session = summary.session
    print_line(
        f"standby power of this session: {session.power_words()}, {session.words()}"
    )
    if summary.refused:
        problem = "with values not finite or impossible are left out"
        print_line(f"{summary.refused} samples {problem}")
    if summary.unaccounted:
        gaps = f"gaps of {summary.unaccounted:.2f} s in total"
        print_line(f"{gaps} are not included in these energies")
