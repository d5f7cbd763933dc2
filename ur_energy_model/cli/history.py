"""`ur_energy history`: a store of the energy of many arms over months, and what fills it."""

from __future__ import annotations

import importlib
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from ur_energy_model.cli import arguments
from ur_energy_model.cli.arguments import failed_json, for_each_bag, report_failed
from ur_energy_model.cli.output import note, on_stop_signal, print_json, progress, warn
from ur_energy_model.errors import InputError, UrEnergyError, span
from ur_energy_model.options import number

if TYPE_CHECKING:
    import argparse

    from ur_energy_model.plant.add import Added, BagWork
    from ur_energy_model.plant.store import HistoryStore

TRIGGERS = ("auto", "none", "program", "digital_output", "int_register")


def _add_commands(parser: argparse.ArgumentParser) -> None:
    importlib.import_module("ur_energy_model.cli.history_questions")
    commands = parser.add_subparsers(
        dest="history_command", metavar="COMMAND", required=True, help="(see COMMAND --help)"
    )
    for name in ("add", "watch", "summary", "report", "health", "export", "sql", "compact"):
        arguments.REGISTERED[f"history {name}"](commands)


arguments.command(
    "history",
    "store and query the energy of many arms over months",
    "Store the energy of many arms per second and per cycle in a folder of Parquet "
    "files, and query it.",
    "ur_energy history add plant monday tuesday --model arm.yaml\n"
    "ur_energy history watch plant recordings --model arm.yaml\n"
    "ur_energy history summary plant --by day --tariff 0.25\n"
    "ur_energy history report plant -o plant.html",
    _add_commands,
)(None)


def add_store(parser: argparse.ArgumentParser) -> None:
    """STORE."""
    parser.add_argument(
        "store", metavar="STORE", help="folder of the history store, or s3://BUCKET/PREFIX"
    )


def store_given(options: argparse.Namespace) -> HistoryStore:
    """STORE, to be read.

    Raises:
        UrEnergyError: it is no folder, or cannot be read.
    """
    from ur_energy_model.files import user_path
    from ur_energy_model.plant.store import HistoryStore
    from ur_energy_model.plant.store_files import StoreError

    store = HistoryStore(options.store)
    if "://" not in options.store and not user_path(options.store).is_dir():
        raise StoreError(options.store, "is not there", "make a store with ur_energy history add")
    return store


# history add


def _add_history_options(parser: argparse.ArgumentParser) -> None:
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
        type=number(int, 0, 63),
        default=0,
        metavar="N",
        help="digital output of --cycle-trigger digital_output (default: %(default)s)",
    )


def _work_of(options: argparse.Namespace) -> BagWork:
    """The work on each bag that the options describe.

    Raises:
        InputError: no such model or robot.
    """
    from ur_energy_model.plant.add import BagWork
    from ur_energy_model.plant.schema import model_key
    from ur_energy_model.telemetry.samples import RecordingInfo, arm_name

    model = None
    if options.model is not None or options.robot is not None:
        model = arguments.chosen_model(options.model, options.robot).model
    return BagWork(
        options.store,
        model,
        model_key(options.model),
        arm=None if options.arm is None else arm_name(RecordingInfo(serial=options.arm)),
        cycle_trigger=options.cycle_trigger,
        cycle_output=options.cycle_output,
        same_arm=options.same_arm,
        path=options.model,
    )


@arguments.command(
    "history add",
    "add the energy of recordings to a history store",
    "Compute the energy of recordings per second and per cycle, and add it to a "
    "history store. A bag that the store has already is skipped; time of an arm that the store "
    "has from another recording is left out. Interrupted, it can be repeated.",
    "ur_energy history add plant task_1 task_2 --model arm.yaml\n"
    "ur_energy history add s3://energy/plant bags/* --model arm.yaml",
    add_store,
    (arguments.add_bags, "recordings"),
    _add_history_options,
    arguments.add_cluster,
    arguments.add_json,
)
def _add(options: argparse.Namespace) -> None:
    from ur_energy_model.plant.add import add_bags

    work = _work_of(options)
    with progress("adding") as report, for_each_bag(options) as each:
        added = add_bags(work, options.bags, each, report)
    done = len(added.records) + len(added.skipped)
    if options.json:
        print_json(_added_json(added))
    elif done:
        _print_added(added, options.store)
    warn(added.warnings)
    report_failed(added.failed, done + len(added.failed))


def _added_json(added: Added) -> dict[str, object]:
    return {
        "added": len(added.records),
        "skipped": len(added.skipped),
        "failed": failed_json(added.failed),
        "seconds": sum(record.rows["seconds"] for record in added.records),
        "energy": added.sum("energy"),
        "left_out": added.sum("left_out"),
        "warnings": added.warnings,
    }


def _print_added(added: Added, store: str) -> None:
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


# history watch


@arguments.command(
    "history watch",
    "add recordings to a history store as they appear in a folder",
    "Look for bags in a folder again and again, and add those that are complete to "
    "a history store; of a bag that is being recorded, the files that are complete. Ends with "
    "Ctrl-C.",
    "ur_energy history watch plant recordings --model arm.yaml\n"
    "ur_energy history watch s3://energy/plant recordings --model arm.yaml --interval 60",
    add_store,
    arguments.option("folder", type=Path, metavar="FOLDER", help="folder of bags, or one bag"),
    _add_history_options,
    (
        arguments.add_number,
        "--interval",
        10.0,
        "S",
        "time between two readings of the folder [s]",
        (0.01, 1e5),
    ),
    arguments.option(
        "--once", action="store_true", help="add what is complete now, and end (for cron)"
    ),
    arguments.option(
        "--json", action="store_true", help="print one JSON object per line when bags were added"
    ),
)
def _watch(options: argparse.Namespace) -> None:
    from ur_energy_model.plant.add import BagFolder

    if not options.folder.is_dir():
        raise InputError(options.folder, "is not a folder", "name the folder with the bags")
    folder, stop = BagFolder(options.folder), threading.Event()
    with on_stop_signal(stop.set):
        while not stop.is_set():
            for bag in folder.take():
                if stop.is_set() or not _add_watched(options, bag):
                    folder.put_back(bag)
            if options.once or stop.wait(options.interval):
                return


def _add_watched(options: argparse.Namespace, bag: Path) -> bool:
    """Add a bag; False if it has to be tried again. With --once, a problem ends the command."""
    from ur_energy_model.plant.add import add_bags

    try:
        added = add_bags(_work_of(options), [bag])
    except UrEnergyError as error:
        if options.once:
            raise
        note(str(error))
        return False
    if options.json:
        print_json({"bag": str(bag), **_added_json(added)})
    elif added.records:
        _print_added(added, options.store)
    warn(added.warnings)
    for result in added.failed:
        note(f"failed: {result.reason}")
    return True


# history compact


@arguments.command(
    "history compact",
    "write one file per arm and day in place of many",
    "Write one file per arm and day in place of those of many recordings, and "
    "remove files that were replaced more than a day ago. No row changes. history add does it "
    "by itself where a day has many files.",
    "ur_energy history compact plant",
    add_store,
    arguments.add_json,
)
def _compact(options: argparse.Namespace) -> None:
    store = store_given(options)
    with progress("compacting"):
        found = store.compact()
    warn(store.notes)
    if options.json:
        print_json(found)
    else:
        note(
            f"{options.store}: {found.files_before} files are {found.files_after} now, "
            f"{found.removed} old ones removed"
        )
