"""`ur_energy history add`: bags into a history store."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ur_energy_model.cli import arguments
from ur_energy_model.cli.arguments import (
    add_cluster,
    chosen_model,
    failed_json,
    for_each_bag,
    report_failed,
)
from ur_energy_model.cli.history import add_store
from ur_energy_model.cli.output import note, print_json, progress, warn
from ur_energy_model.errors import span

if TYPE_CHECKING:
    import argparse

    from ur_energy_model.plant.add import Added, BagWork

TRIGGERS = ("auto", "none", "program", "digital_output", "int_register")


def register(subparsers: arguments.Subparsers) -> None:
    """Add the subcommand."""
    parser = arguments.add_command(
        subparsers,
        "add",
        run,
        summary="add the energy of recordings to a history store",
        description="Compute the energy of recordings per second and per cycle, and add it to a "
        "history store. A bag that the store has already is skipped; time of an arm that the store "
        "has from another recording is left out. Interrupted, it can be repeated.",
        examples="ur_energy history add plant task_1 task_2 --model arm.yaml\n"
        "ur_energy history add s3://energy/plant bags/* --model arm.yaml",
    )
    add_store(parser)
    arguments.add_bags(parser, "recordings")
    add_history_options(parser)
    add_cluster(parser)
    arguments.add_json(parser)


def add_history_options(parser: argparse.ArgumentParser) -> None:
    """Options of how the history of bags is made: model, arm, cycles."""
    parser.add_argument(
        "--model",
        type=Path,
        metavar="MODEL.yaml",
        help="identified model of the arm (default: the generic one of its type)",
    )
    parser.add_argument(
        "--robot",
        metavar="NAME",
        help="type of the arm, such as ur5e (default: the one of the model, or of each bag)",
    )
    parser.add_argument(
        "--arm",
        metavar="NAME",
        help="name of the arm in the store (default: serial number in the bag, or else the type)",
    )
    arguments.add_same_arm(parser)
    arguments.add_choice(
        parser,
        "--cycle-trigger",
        TRIGGERS,
        "what starts a cycle; auto: program start, digital output or repeated motion, whichever "
        "shows cycles",
    )
    parser.add_argument(
        "--cycle-output",
        type=arguments.number(int, 0, 63),
        default=0,
        metavar="N",
        help="digital output of --cycle-trigger digital_output (default: %(default)s)",
    )


def work_of(options: argparse.Namespace) -> BagWork:
    """The work on each bag that the options describe.

    Raises:
        InputError: no such model or robot.
    """
    from ur_energy_model.plant.add import BagWork, HistoryOptions
    from ur_energy_model.plant.schema import model_key
    from ur_energy_model.telemetry.samples import RecordingInfo, arm_name

    each_its_own = options.model is None and options.robot is None
    chosen = None if each_its_own else chosen_model(options.model, options.robot)
    arm = None if options.arm is None else arm_name(RecordingInfo(serial=options.arm))
    return BagWork(
        options.store,
        None if chosen is None else chosen.model,
        model_key(options.model),
        HistoryOptions(arm, options.cycle_trigger, options.cycle_output),
        same_arm=options.same_arm,
        path=options.model,
    )


def run(options: argparse.Namespace) -> None:
    """Add and print."""
    from ur_energy_model.plant.add import add_bags

    work = work_of(options)
    with progress("adding") as report, for_each_bag(options) as each:
        added = add_bags(work, options.bags, each, report)
    done = len(added.records) + len(added.skipped)
    if options.json:
        print_json(as_json(added))
    elif done:
        print_added(added, options.store)
    warn(added.warnings)
    report_failed(added.failed, done + len(added.failed))


def as_json(added: Added) -> dict[str, object]:
    """The content of `--json`."""
    return {
        "added": len(added.records),
        "skipped": len(added.skipped),
        "failed": failed_json(added.failed),
        "seconds": added.seconds,
        "energy": added.sum("energy"),
        "left_out": added.sum("left_out"),
        "warnings": added.warnings,
    }


def print_added(added: Added, store: str) -> None:
    """Say what was added."""
    count = len(added.records)
    energy = f"{span(added.sum('accounted'))}, {added.sum('energy'):.1f} J"
    note(
        f"{store}: {count} bag{'' if count == 1 else 's'} added ({energy}), "
        f"{len(added.skipped)} were there already, {len(added.failed)} failed"
    )
    for record in added.records:
        if record.left_out >= 0.05:
            note(f"{record.bag}: {record.left_out:.1f} s are already in the store, left out")
        if not record.host_time:
            note(f"{record.bag}: has no time of day; its rows are in 1970, by its own clock")
