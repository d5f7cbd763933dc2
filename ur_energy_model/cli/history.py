"""`ur_energy history`: the energy of many arms over months."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from ur_energy_model.cli import arguments

if TYPE_CHECKING:
    import argparse

QUESTIONS: tuple[str, ...] = (
    "add",
    "watch",
    "summary",
    "report",
    "health",
    "export",
    "sql",
    "compact",
)
"""Modules `history_<name>` with `register(subparsers)`, in the order of the help."""


def register(subparsers: arguments.Subparsers) -> None:
    """Add the subcommand and its own subcommands."""
    parser = arguments.add_command(
        subparsers,
        "history",
        None,
        summary="store and query the energy of many arms over months",
        description="Store the energy of many arms per second and per cycle in a folder of Parquet "
        "files, and query it.",
        examples="ur_energy history add plant monday tuesday --model arm.yaml\n"
        "ur_energy history watch plant recordings --model arm.yaml\n"
        "ur_energy history summary plant --by day --tariff 0.25\n"
        "ur_energy history report plant -o plant.html",
    )
    own = parser.add_subparsers(
        dest="history_command", metavar="COMMAND", required=True, help="(see COMMAND --help)"
    )
    for name in QUESTIONS:
        importlib.import_module(f"ur_energy_model.cli.history_{name}").register(own)


def add_store(parser: argparse.ArgumentParser) -> None:
    """STORE."""
    parser.add_argument(
        "store", metavar="STORE", help="folder of the history store, or s3://BUCKET/PREFIX"
    )
