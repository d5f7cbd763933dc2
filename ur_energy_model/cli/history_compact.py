"""`ur_energy history compact`: fewer files in a history store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ur_energy_model.cli import arguments
from ur_energy_model.cli.history import add_store
from ur_energy_model.cli.history_options import store_given
from ur_energy_model.cli.output import note, print_json, progress, warn
from ur_energy_model.codec import plain

if TYPE_CHECKING:
    import argparse


def register(subparsers: arguments.Subparsers) -> None:
    """Add the subcommand."""
    parser = arguments.add_command(
        subparsers,
        "compact",
        run,
        summary="write one file per arm and day in place of many",
        description="Write one file per arm and day in place of those of many recordings, and "
        "remove files that were replaced more than a day ago. No row changes. history add does it "
        "by itself where a day has many files.",
        examples="ur_energy history compact plant",
    )
    add_store(parser)
    arguments.add_json(parser)


def run(options: argparse.Namespace) -> None:
    """Compact."""
    store = store_given(options)
    with progress("compacting"):
        found = store.compact()
    warn(store.notes)
    if options.json:
        print_json(plain(found))
    else:
        note(
            f"{options.store}: {found.files_before} files are {found.files_after} now, "
            f"{found.removed} old ones removed"
        )
