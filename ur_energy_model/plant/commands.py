# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Filling a history store: `ur_energy history add`, `watch` and `compact`.

A store has the energy of many arms over months, see `HistoryStore`.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

from ur_energy_model.cli.arguments import (
    CommandBags,
    chosen_model,
    failed_json,
    report_failed,
)
from ur_energy_model.cli.output import note, print_json, progress, warn
from ur_energy_model.errors import InputError, UrEnergyError, span
from ur_energy_model.files import user_path
from ur_energy_model.interrupts import on_stop_signal
from ur_energy_model.plant.room import (
    ArmModelOptions,
    HistoryAddOptions,
    HistoryWatchOptions,
    StoreOptions,
)
from ur_energy_model.plant.schema import model_key
from ur_energy_model.plant.store import HistoryStore
from ur_energy_model.plant.store_files import StoreError
from ur_energy_model.rooms import Given
from ur_energy_model.telemetry.samples import RecordingInfo, arm_name

if TYPE_CHECKING:  # needs packages that `ur_energy --help` does not
    from ur_energy_model.plant.add import Added, BagWork


LEAST_LEFT_OUT = 0.05
"""Time of a recording that others cover from which it is reported [s]."""


def opened_store(address: str) -> HistoryStore:
    """A store to be read; unlike `HistoryStore`, a folder that is not there is refused.

    Args:
        address: folder, or s3://BUCKET/PREFIX.

    Raises:
        StoreError: there is no such folder.
    """
    store = HistoryStore(address)
    if "://" not in address and not user_path(address).is_dir():
        raise StoreError(
            address, "is not there", "make a store with ur_energy history add"
        )
    return store


def _work_of(store: str, options: ArmModelOptions) -> BagWork:
    """The work on each bag that is added to a store.

    Args:
        store: address of the store.
        options: model and name of the arm, and what starts its cycles.

    Raises:
        UrEnergyError: the model or a script cannot be read.
    """
    from ur_energy_model.energy.program import read_script
    from ur_energy_model.plant.add import BagWork

    model = None
    if options.model is not None or options.robot is not None:
        model = chosen_model(options.model, options.robot).model
    arm = None
    if options.arm is not None:
        arm = arm_name(RecordingInfo(serial=options.arm))
    return BagWork(
        store,
        model,
        model_key(options.model),
        arm=arm,
        path=options.model,
        scripts=tuple(map(read_script, options.script)),
        script_files=tuple(options.script),
        cycle_trigger=options.cycle_trigger,
        cycle_output=options.cycle_output,
        same_arm=options.same_arm,
    )


def add(given: Given) -> None:
    """`ur_energy history add`: add recordings to a store.

    Raises:
        UrEnergyError: the store, the model or an option cannot be used, or recordings
            failed; the others are added before.
    """
    from ur_energy_model.plant.add import add_bags

    options = given.of(HistoryAddOptions)
    work = _work_of(options.store, options.arm_model)
    work_on = CommandBags(given, options.bags, options.workers)
    with progress("adding") as report, work_on.executor() as each:
        added = add_bags(work, options.bags, each, report)
    done = len(added.records) + len(added.skipped)
    if options.json or done:
        _print_added(added, options.store, as_json=options.json)
    warn(added.warnings)
    report_failed(added.failed, done + len(added.failed))


def _print_added(added: Added, store: str, *, as_json: bool, **further: object) -> None:
    """Print how many recordings and how much energy were added, in J.

    Args:
        added: the result.
        store: address of the store.
        as_json: whether to print JSON.
        further: other entries of the JSON.
    """
    count = len(added.records)
    joules = added.sum("energy")
    if as_json:
        content: dict[str, object] = {
            "added": count,
            "skipped": len(added.skipped),
            "failed": failed_json(added.failed),
            "seconds": sum(record.rows["seconds"] for record in added.records),
            "energy": joules,
            "left_out": added.sum("left_out"),
            "warnings": added.warnings,
        }
        print_json(further | content)
        return
    note(
        f"{store}: {count} bag{'' if count == 1 else 's'} added "
        f"({span(added.sum('accounted'))}, {joules:.1f} J), "
        f"{len(added.skipped)} were there already, {len(added.failed)} failed"
    )
    for record in added.records:
        if record.left_out >= LEAST_LEFT_OUT:
            note(
                f"{record.bag}: {record.left_out:.1f} s are already in the store, left out"
            )
        if not record.host_time:
            note(
                f"{record.bag}: has no time of day; its rows are in 1970, by its own clock"
            )


def watch(given: Given) -> None:
    """`ur_energy history watch`: add recordings as they appear, until Ctrl-C.

    Raises:
        UrEnergyError: the folder is not there; with --once, a recording failed.
    """
    from ur_energy_model.plant.add import BagFolder

    options = given.of(HistoryWatchOptions)
    if not options.folder.is_dir():
        raise InputError(
            options.folder, "is not a folder", "name the folder with the bags"
        )
    folder = BagFolder(options.folder)
    stop = threading.Event()
    with on_stop_signal(stop.set):
        while not stop.is_set():
            for bag in folder.take():
                if stop.is_set() or not _add_watched(options, bag):
                    folder.put_back(bag)
            if options.once or stop.wait(options.interval):
                return


def _add_watched(options: HistoryWatchOptions, bag: Path) -> bool:
    """Add a bag that has appeared in the watched folder.

    Returns:
        False if it has to be tried again later.

    Raises:
        UrEnergyError: a problem, with --once; otherwise it is printed.
    """
    from ur_energy_model.plant.add import add_bags

    try:
        added = add_bags(_work_of(options.store, options.arm_model), [bag])
    except UrEnergyError as error:
        if options.once:
            raise
        note(str(error))
        return False
    if options.json or added.records:
        _print_added(added, options.store, as_json=options.json, bag=str(bag))
    warn(added.warnings)
    for result in added.failed:
        note(f"failed: {result.reason}")
    return True


def compact(given: Given) -> None:
    """`ur_energy history compact`: write one file per arm and day.

    Raises:
        StoreError: the store is not there, or damaged.
    """
    options = given.of(StoreOptions)
    store = opened_store(options.store)
    with progress("compacting"):
        found = store.compact()
    warn(store.notes)
    if options.json:
        print_json(found)
    else:
        note(
            f"{options.store}: {found['files_before']} files are {found['files_after']} "
            f"now, {found['removed']} old ones removed"
        )
