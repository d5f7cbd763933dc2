"""`ur_energy history`: a store of the energy of many arms over months, and what fills it."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

from ur_energy_model.cli.arguments import chosen_model, failed_json, for_each_bag, report_failed
from ur_energy_model.cli.output import note, on_stop_signal, print_json, progress, warn
from ur_energy_model.errors import InputError, UrEnergyError, span
from ur_energy_model.files import user_path
from ur_energy_model.plant.add import Added, BagFolder, BagWork, add_bags
from ur_energy_model.plant.schema import model_key
from ur_energy_model.plant.store import HistoryStore
from ur_energy_model.plant.store_files import StoreError
from ur_energy_model.telemetry.samples import RecordingInfo, arm_name

if TYPE_CHECKING:
    import argparse


def store_given(options: argparse.Namespace) -> HistoryStore:
    """STORE, to be read.

    Raises:
        UrEnergyError: it is no folder, or cannot be read.
    """
    store = HistoryStore(options.store)
    if "://" not in options.store and not user_path(options.store).is_dir():
        raise StoreError(options.store, "is not there", "make a store with ur_energy history add")
    return store


def _work_of(options: argparse.Namespace) -> BagWork:
    """The work on each bag that the options describe.

    Raises:
        InputError: no such model or robot.
    """
    model = None
    if options.model is not None or options.robot is not None:
        model = chosen_model(options.model, options.robot).model
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


def add(options: argparse.Namespace) -> None:
    """`ur_energy history add`."""
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


def watch(options: argparse.Namespace) -> None:
    """`ur_energy history watch`."""
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


def compact(options: argparse.Namespace) -> None:
    """`ur_energy history compact`."""
    store = store_given(options)
    with progress("compacting"):
        found = store.compact()
    warn(store.notes)
    if options.json:
        print_json(found)
    else:
        note(
            f"{options.store}: {found['files_before']} files are {found['files_after']} now, "
            f"{found['removed']} old ones removed"
        )
