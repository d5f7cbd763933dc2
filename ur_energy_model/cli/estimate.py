"""`ur_energy estimate`: energy of a recording."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ur_energy_model.cli import arguments
from ur_energy_model.cli.arguments import (
    add_cluster,
    add_payload_option,
    failed_json,
    failed_of,
    is_distributed,
    report_failed,
    results_of_bags,
    with_given_payload,
)
from ur_energy_model.cli.model_option import (
    ChosenModel,
    add_optional_model,
    chosen_model,
    split_model,
)
from ur_energy_model.cli.output import note, print_json, print_table, warn
from ur_energy_model.errors import InputError
from ur_energy_model.files import real_path

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

    from ur_energy_model.energy.recording_energy import EnergySummary
    from ur_energy_model.many_bags import BagResult
    from ur_energy_model.model.energy_model import EnergyModel
    from ur_energy_model.typing import Progress

LOWEST_RATE, HIGHEST_RATE = 1.0, 500.0
"""Of the messages in a bag [Hz], as of the node's publish_rate."""


def register(subparsers: arguments.Subparsers) -> None:
    """Add the subcommand."""
    parser = arguments.add_command(
        subparsers,
        "estimate",
        run,
        summary="compute the energy of recordings, per joint and in total",
        description="Compute the mechanical and electrical energy and the efficiency of "
        "recordings, per joint and in total, with the model of the arm or, without MODEL.yaml, "
        "with the generic model of its type, whose intervals are wider.",
        examples="ur_energy estimate task --robot ur5e\n"
        "ur_energy estimate model.yaml task --csv power.csv\n"
        "ur_energy estimate model.yaml task --bag task_energy\n"
        "ur_energy estimate model.yaml monday/* --json",
    )
    add_optional_model(parser)
    arguments.add_bags(parser, "recordings")
    parser.add_argument(
        "--csv",
        type=Path,
        metavar="FILE",
        help="also write the powers over time to this file (of a single recording)",
    )
    parser.add_argument(
        "--bag",
        dest="energy_bag",
        type=Path,
        metavar="OUT",
        help="also write the topics that the estimator node would publish to this bag, for the "
        "layouts of PlotJuggler and Foxglove (of a single recording)",
    )
    arguments.add_number(parser, "--rate", 50.0, "HZ", "messages per second of --bag, 1 to 500")
    parser.add_argument("--overwrite", action="store_true", help="replace an existing bag OUT")
    add_payload_option(parser, "the model's")
    arguments.add_same_arm(parser)
    add_cluster(parser)
    arguments.add_json(parser)


def run(options: argparse.Namespace) -> None:
    """Integrate and print."""
    from ur_energy_model.energy.recording_energy import estimate_energy

    if not LOWEST_RATE <= options.rate <= HIGHEST_RATE:
        raise InputError(
            "--rate",
            f"is {options.rate:g}",
            f"choose {LOWEST_RATE:g} to {HIGHEST_RATE:g} messages per second",
        )
    path, options.bags = split_model(options.model, options.bags)
    _refuse_files_of_many(options)
    chosen = chosen_model(path, options.robot, options.bags)
    model = with_given_payload(chosen.model, options.payload)

    def here(bag: Path, report: Progress) -> EnergySummary:
        with _new_energy_bag(options, bag) as folder:
            summary = estimate_energy(
                model, bag, series=options.csv, same_arm=options.same_arm, progress=report
            )
            if folder is not None:
                _write_bag(model, chosen, options, folder, report)
            return summary

    work = partial(estimate_energy, model, same_arm=options.same_arm)
    results = results_of_bags(options, "estimating", here, work)
    if len(results) == 1 and results[0].value is not None:
        _show_one(results[0].value, chosen, options)
    else:
        _show_many(results, chosen, options)


def _refuse_files_of_many(options: argparse.Namespace) -> None:
    """Refuse files that are written from a single recording, here.

    Raises:
        InputError: one is asked for, and there are several recordings or other workers.
    """
    for flag, wanted in (("--csv", options.csv), ("--bag", options.energy_bag)):
        if wanted is not None and is_distributed(options):
            raise InputError(
                flag,
                "is written from a single recording in this process",
                "give one BAG, without --scheduler and --workers",
            )


def _show_one(summary: EnergySummary, chosen: ChosenModel, options: argparse.Namespace) -> None:
    """Print the energy of the only recording."""
    if options.json:
        print_json({"model": chosen.entry, **summary.as_json()})
    else:
        warn(summary.warnings)
        _print(summary, chosen)
    if options.csv:
        note(f"powers over time written to {options.csv}")
    if options.energy_bag:
        note(f"energy topics written to {options.energy_bag}")


def _show_many(
    results: Sequence[BagResult[EnergySummary]], chosen: ChosenModel, options: argparse.Namespace
) -> None:
    """Print the energies of several recordings and their sums."""
    from ur_energy_model.energy.recording_energy import totals_json

    good = [(str(r.bag), r.value) for r in results if r.value is not None]
    failed = failed_of(results)
    warnings = [f"{bag}: {text}" for bag, summary in good for text in summary.warnings]
    total = totals_json([summary for _, summary in good]) if good else {}
    if options.json:
        entries = [{"bag": bag, **summary.as_json()} for bag, summary in good]
        print_json(
            {
                "model": chosen.entry,
                **total,
                "warnings": warnings,
                "results": entries,
                "failed": failed_json(failed),
            }
        )
    elif good:
        warn(warnings)
        _print_many(good, total, chosen)
    report_failed(failed, len(results))


def _print_many(
    good: Sequence[tuple[str, EnergySummary]], total: Mapping[str, Any], chosen: ChosenModel
) -> None:
    """A row per recording, and one of the sums."""
    from ur_energy_model.energy.meter import CONFIDENCE

    rows = [(bag, summary.as_json()) for bag, summary in good]
    print_table(
        f"energy of {len(good)} recordings [J]",
        ["bag", "time [s]", "electrical", "supply", "± 95 %", "measured"],
        [
            [
                Path(name).name,
                content["duration"],
                content["total"]["electrical_energy"],
                content["total"]["supply_energy"],
                CONFIDENCE * content["total"]["supply_energy_std"],
                content["bus_energy"],
            ]
            for name, content in (*rows, ("all recordings", total))
        ],
    )
    note(f"model: {chosen.words}")


def _new_energy_bag(options: argparse.Namespace, bag: Path) -> AbstractContextManager[Path | None]:
    """Temporary directory of the bag OUT, None if no bag is wanted."""
    from ur_energy_model.telemetry.bag.files import new_bag

    if options.energy_bag is None:
        return nullcontext()
    if real_path(options.energy_bag) == real_path(bag):
        raise InputError(options.energy_bag, "is the recording itself", "name another bag OUT")
    return new_bag(options.energy_bag, overwrite=options.overwrite)


def _write_bag(
    model: EnergyModel,
    chosen: ChosenModel,
    options: argparse.Namespace,
    folder: Path,
    progress: Progress,
) -> None:
    from ur_energy_model.energy.energy_bag import write_energy_bag

    write_energy_bag(
        model,
        options.bags[0],
        folder,
        name=real_path(options.energy_bag).name,
        model_path=chosen.words,
        rate=options.rate,
        same_arm=options.same_arm,
        progress=progress,
    )


def _print(summary: EnergySummary, chosen: ChosenModel) -> None:
    from ur_energy_model.energy.meter import CONFIDENCE

    content = summary.as_json()
    print_table(
        f"energy over {summary.duration:.1f} s [J]",
        ["joint", "mechanical", "electrical", "± 95 %", "efficiency", "regenerated"],
        [
            [
                row["name"],
                row["mechanical_energy"],
                row["electrical_energy"],
                CONFIDENCE * row["electrical_energy_std"],
                row["efficiency"],
                row.get("regenerated_energy"),
            ]
            for row in (*content["joints"], {"name": "all joints", **content["total"]})
        ],
    )
    note(f"model: {chosen.words}")
    measured = "not recorded" if summary.bus is None else f"{summary.bus:.1f} J"
    note(
        f"at the supply: {summary.supply:.1f} ± {CONFIDENCE * summary.supply_std:.1f} J modelled "
        f"(standby {summary.standby:.1f} J, drivers {summary.driver:.1f} J, "
        f"regeneration {summary.regeneration:.1f} J), measured: {measured}"
    )
    session = summary.session
    power = f"{session.power:.1f} ± {CONFIDENCE * session.std:.1f} W"
    if session.anchored:
        note(
            f"standby power of this session: {power}, measured over {session.still_seconds:.1f} s "
            "of standstill"
        )
    else:
        note(
            f"standby power is the model's, {power}: this recording has no standstill with "
            "measured bus power (one second is enough)"
        )
    if summary.refused:
        note(f"{summary.refused} samples with values not finite or impossible are left out")
    if summary.unaccounted:
        note(f"gaps of {summary.unaccounted:.2f} s in total are not included in these energies")
