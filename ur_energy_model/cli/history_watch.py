"""`ur_energy history watch`: bags into a history store as they are recorded."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

from ur_energy_model.cli import arguments
from ur_energy_model.cli.history import add_store
from ur_energy_model.cli.history_add import add_history_options, as_json, print_added, work_of
from ur_energy_model.cli.output import note, on_stop_signal, print_json, warn
from ur_energy_model.errors import InputError, UrEnergyError

if TYPE_CHECKING:
    import argparse


def register(subparsers: arguments.Subparsers) -> None:
    """Add the subcommand."""
    parser = arguments.add_command(
        subparsers,
        "watch",
        run,
        summary="add recordings to a history store as they appear in a folder",
        description="Look for bags in a folder again and again, and add those that are complete to "
        "a history store; of a bag that is being recorded, the files that are complete. Ends with "
        "Ctrl-C.",
        examples="ur_energy history watch plant recordings --model arm.yaml\n"
        "ur_energy history watch s3://energy/plant recordings --model arm.yaml --interval 60",
    )
    add_store(parser)
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="folder of bags, or one bag")
    add_history_options(parser)
    arguments.add_number(
        parser, "--interval", 10.0, "S", "time between two readings of the folder [s]", (0.01, 1e5)
    )
    parser.add_argument(
        "--once", action="store_true", help="add what is complete now, and end (for cron)"
    )
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object per line when bags were added"
    )


def run(options: argparse.Namespace) -> None:
    """Watch until Ctrl-C."""
    from ur_energy_model.plant.add import BagFolder

    if not options.folder.is_dir():
        raise InputError(options.folder, "is not a folder", "name the folder with the bags")
    folder, stop = BagFolder(options.folder), threading.Event()
    with on_stop_signal(stop.set):
        while not stop.is_set():
            for bag in folder.take():
                if stop.is_set() or not _add(options, bag):
                    folder.put_back(bag)
            if options.once or stop.wait(options.interval):
                return


def _add(options: argparse.Namespace, bag: Path) -> bool:
    """Add a bag; a problem is reported and does not end the command.

    Returns:
        whether that is done; False if it has to be tried again.

    Raises:
        UrEnergyError: with --once, the store cannot be written or the model cannot be used.
    """
    from ur_energy_model.plant.add import add_bags

    try:
        added = add_bags(work_of(options), [bag])
    except UrEnergyError as error:
        if options.once:
            raise
        note(str(error))
        return False
    if options.json:
        print_json({"bag": str(bag), **as_json(added)})
    elif added.records:
        print_added(added, options.store)
    warn(added.warnings)
    for result in added.failed:
        note(f"failed: {result.reason}")
    return True
