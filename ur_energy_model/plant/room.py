# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Commands, options, parameters and extensions that the room adds to the package.

Tables of options have a class per command or subject: each field is an option with its
help text, type, default and limits. Commands and extensions name their functions as text,
so that `ur_energy --help` imports none of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ur_energy_model.cli.tables import (
    EVERYDAY,
    TariffOptions,
    bags_option,
    json_option,
    overwrite_option,
    same_arm_option,
    workers_option,
)
from ur_energy_model.options import option, part
from ur_energy_model.rooms import Command, Extension, Room

_FLEET = "many arms"
_CHANGED = "saving of a changed program, without a model"


def store_option() -> Any:
    """The positional option STORE: address of a history store."""
    return option(
        help="folder of the history store, or s3://BUCKET/PREFIX",
        positional=True,
        metavar="STORE",
    )


@dataclass(frozen=True, kw_only=True)
class StoreOptions:
    """Options of `ur_energy history health` and `history compact`."""

    store: str = store_option()
    json: bool = json_option()


@dataclass(frozen=True, kw_only=True)
class PeriodOptions:
    """Which time and which arms of a history store a command is about."""

    first: str | None = option(
        None,
        "first day, YYYY-MM-DD, or time, YYYY-MM-DDTHH:MM (default: where "
        "the store begins)",
        flags=("--from",),
        metavar="DATE",
    )
    last: str | None = option(
        None,
        "last day, included, or time at which it ends (default: where the store ends)",
        flags=("--to",),
        metavar="DATE",
    )
    time_zone: str = option(
        "UTC",
        "in which days, hours and shifts begin, such as Europe/Berlin",
        metavar="NAME",
    )
    arm: tuple[str, ...] = option(
        (), "only this arm (may be repeated; default: all)", metavar="NAME"
    )


@dataclass(frozen=True, kw_only=True)
class ArmModelOptions:
    """How recordings are added to a history store."""

    model: Path | None = option(
        None,
        "identified model of the arm (default: the generic one of its type)",
        metavar="MODEL.yaml",
        holds="model",
    )
    robot: str | None = option(
        None,
        "type of the arm, such as ur5e (default: the one of the model, or of each bag)",
        metavar="NAME",
    )
    arm: str | None = option(
        None,
        "name of the arm in the store (default: serial number in the bag, "
        "or else the type)",
        metavar="NAME",
    )
    same_arm: bool = same_arm_option()
    cycle_trigger: Literal[
        "auto", "none", "program", "digital_output", "int_register"
    ] = option(
        "auto",
        "what starts a cycle; auto: program start, digital output or "
        "repeated motion, whichever shows cycles",
    )
    cycle_output: int = option(
        0, "digital output of --cycle-trigger digital_output", metavar="N", limits=(0, 63)
    )
    script: tuple[Path, ...] = option(
        (),
        "names the nodes of a program, which else are lines (may be repeated)",
        metavar="PROGRAM.script",
    )


@dataclass(frozen=True, kw_only=True)
class HistoryAddOptions:
    """Options of `ur_energy history add`."""

    store: str = store_option()
    bags: tuple[Path, ...] = bags_option("recordings")
    arm_model: ArmModelOptions = part(ArmModelOptions)
    workers: int | None = workers_option()
    json: bool = json_option()


@dataclass(frozen=True, kw_only=True)
class HistoryWatchOptions:
    """Options of `ur_energy history watch`."""

    store: str = store_option()
    folder: Path = option(
        help="folder of bags, or one bag", positional=True, metavar="FOLDER"
    )
    arm_model: ArmModelOptions = part(ArmModelOptions)
    interval: float = option(
        10.0,
        "time between two readings of the folder [s]",
        metavar="S",
        unit="s",
        limits=(0.01, 1e5),
    )
    once: bool = option(
        False,
        "add what is complete now, and end (for cron)",
    )
    json: bool = option(
        False,
        "print one JSON object per line when bags were added",
    )


@dataclass(frozen=True, kw_only=True)
class HistorySummaryOptions:
    """Options of `ur_energy history summary`."""

    store: str = store_option()
    by: tuple[
        Literal[
            "arm", "hour", "shift", "day", "week", "month", "program", "node", "joint"
        ],
        ...,
    ] = option(
        (),
        "what the rows are (default: arm; may be repeated)",
    )
    period: PeriodOptions = part(PeriodOptions)
    shifts: str | None = option(
        None, "when the shifts of a day begin, such as 06:00,14:00,22:00", metavar="TIMES"
    )
    tariff: TariffOptions = part(TariffOptions, "cost")
    json: bool = json_option()


@dataclass(frozen=True, kw_only=True)
class HistoryReportOptions:
    """Options of `ur_energy history report`."""

    store: str = store_option()
    output: Path = option(
        help="page to write", flags=("-o", "--output", "--html"), metavar="FILE.html"
    )
    overwrite: bool = overwrite_option()
    period: PeriodOptions = part(PeriodOptions)
    tariff: TariffOptions = part(TariffOptions, "cost")
    json: bool = json_option()


@dataclass(frozen=True, kw_only=True)
class HistoryExportOptions:
    """Options of `ur_energy history export`."""

    store: str = store_option()
    output: Path = option(
        help="file to write", flags=("-o", "--output"), metavar="FILE.csv"
    )
    overwrite: bool = overwrite_option()
    table: Literal["seconds", "cycles"] = option(
        "seconds",
        "what to write",
    )
    period: PeriodOptions = part(PeriodOptions)
    json: bool = json_option()


@dataclass(frozen=True, kw_only=True)
class HistorySqlOptions:
    """Options of `ur_energy history sql`."""

    store: str = store_option()
    sql: str = option(help="SELECT statement", positional=True, metavar="SQL")
    period: PeriodOptions = part(PeriodOptions)
    limit: int = option(
        100, "rows to print; --json prints all", metavar="N", limits=(1, 1_000_000)
    )
    timeout: float = option(
        60.0,
        "end the query after S seconds of computation",
        metavar="S",
        unit="s",
        limits=(0.1, 1e9),
    )
    json: bool = json_option()


@dataclass(frozen=True, kw_only=True)
class ClusterOptions:
    """Work on many bags on a Dask cluster."""

    scheduler: str | None = option(
        None,
        "work on the bags on a running Dask cluster, such as tcp://10.0.0.5:8786 "
        "(default: on the cores of this machine)",
        metavar="URL",
    )


@dataclass(frozen=True, kw_only=True)
class FleetOptions:
    """What `ur_energy identify` does with the arms of a fleet."""

    per_arm: bool = option(
        False,
        "one model per arm (serial number) into the folder OUTPUT; arms of one joint "
        "size share what the data show that they have in common",
        heading=_FLEET,
    )
    fleet: Path | None = option(
        None,
        "models of other arms to start from (default with --per-arm: those already in "
        "the folder OUTPUT)",
        metavar="FOLDER",
        heading=_FLEET,
    )


@dataclass(frozen=True, kw_only=True)
class ChangedProgramOptions:
    """The saving of a changed program, for `ur_energy optimize`."""

    before: tuple[Path, ...] = option(
        (),
        "recordings of ordinary production before the program was changed",
        metavar="BAG",
        several=True,
        holds="recording",
        heading=_CHANGED,
    )
    after: tuple[Path, ...] = option(
        (),
        "recordings of ordinary production after the program was changed",
        metavar="BAG",
        several=True,
        holds="recording",
        heading=_CHANGED,
    )
    history: str | None = option(
        None,
        "take the cycles of a history store instead, before and after --changed",
        metavar="STORE",
        heading=_CHANGED,
    )
    changed: str | None = option(
        None,
        "when the program was changed, YYYY-MM-DD[THH:MM] in UTC",
        metavar="DATE",
        heading=_CHANGED,
    )
    arm: str | None = option(
        None, "of which arm of the store", metavar="NAME", heading=_CHANGED
    )


_FIGURES = """what the figures are:
  kWh          at the supply of the arm: measured where the controller states bus
               voltage and current, else by the model; --json has J, and which
               (total_source)
  standby      the part of the energy that the arm takes at all times, also in motion
  idle         the energy while no joint moves, standby included
  motion       the energy while a joint moves, standby included; idle and motion are
               all of it
  outside      what no complete cycle contains
  hours, W     time that the store accounts for, of all arms; mean power"""
_TABLES = """tables:
  seconds        one row per arm and second; columns: docs/plant/history.md, or ask
                 DESCRIBE seconds
  cycles         one row per program cycle
  health         one row per minute of work: friction, torque constants, standby
  program_nodes  one row per minute and node of the program: count, seconds, joules
  joint_seconds  the energies of seconds, one row per joint
  models         one row per model: hash, serial number, date, path
Energies are in J, times in s, powers in W. The store is only read; a query
has no access to files and networks, at most 2 GB of memory, and a minute of
computation (--timeout)."""


@dataclass(frozen=True)
class HistoryParameters:
    """Parameters that the room adds to the node `estimator`."""

    history_store: str = option(
        "",
        "folder or s3:// address of the history, for energies per second and per cycle, "
        "and health per minute; empty for none",
        launch=True,
    )
    script: Path | None = option(
        None,
        "script of the robot program, whose nodes the history then names; empty for none",
        launch=True,
    )


ROOM = Room(
    name="plant",
    purpose="energy of many arms over months: history, health, fleet, many bags on Dask",
    requires=(),
    commands=(
        Command(
            name="history",
            summary="store and query the energy of many arms over months",
            description="Store the energy of many arms per second and per cycle in a folder "
            "of Parquet files, and query it.",
            examples=(
                "ur_energy history add plant monday tuesday --model arm.yaml",
                "ur_energy history watch plant recordings --model arm.yaml",
                "ur_energy history summary plant --by day --tariff 0.25",
                "ur_energy history report plant -o plant.html",
            ),
            group=EVERYDAY,
        ),
        Command(
            name="history add",
            options=HistoryAddOptions,
            run="ur_energy_model.plant.commands:add",
            summary="add the energy of recordings to a history store",
            description="Compute the energy of recordings per second and per cycle, and add "
            "it to a history store. A bag that the store has already is "
            "skipped; time of an arm that the store has from another recording "
            "is left out. Interrupted, it can be repeated.",
            examples=(
                "ur_energy history add plant task_1 task_2 --model arm.yaml",
                "ur_energy history add s3://energy/plant bags/* --model arm.yaml",
            ),
            group=EVERYDAY,
            subjects=("executor",),
        ),
        Command(
            name="history watch",
            options=HistoryWatchOptions,
            run="ur_energy_model.plant.commands:watch",
            summary="add recordings to a history store as they appear in a folder",
            description="Look for bags in a folder again and again, and add those that are "
            "complete to a history store; of a bag that is being recorded, the "
            "files that are complete. Ends with Ctrl-C.",
            examples=(
                "ur_energy history watch plant recordings --model arm.yaml",
                "ur_energy history watch s3://energy/plant recordings --model arm.yaml \\\n"
                "    --interval 60",
            ),
            group=EVERYDAY,
        ),
        Command(
            name="history summary",
            options=HistorySummaryOptions,
            run="ur_energy_model.plant.questions:summary",
            summary="sum up the energy by arm, calendar, program or joint",
            description="Sum up the energy in a history store by arm, hour, shift, day, "
            "week, month, program, node of the program or joint, with the "
            "shares of standby, idle and motion, and its cost and CO2.",
            examples=(
                "ur_energy history summary plant",
                "ur_energy history summary plant --by month --tariff 0.25 --co2 0.38",
                "ur_energy history summary plant --by shift --shifts 06:00,14:00,22:00 \\\n"
                "    --time-zone Europe/Berlin",
                "ur_energy history summary plant --by arm --by joint --from 2026-05-01 \\\n"
                "    --to 2026-05-31",
            ),
            notes=_FIGURES,
            group=EVERYDAY,
        ),
        Command(
            name="history report",
            options=HistoryReportOptions,
            run="ur_energy_model.plant.questions:report",
            summary="write one HTML page about all arms",
            description="Write one HTML page that needs no network: energy of the fleet by "
            "day, hour of the week and arm, cycles over time, days on which an "
            "arm was unlike itself, and cost and CO2.",
            examples=(
                "ur_energy history report plant -o plant.html --tariff 0.25 --co2 0.38",
                "ur_energy history report plant -o may.html --from 2026-05-01 --to 2026-05-31 \\\n"
                "    --time-zone Europe/Berlin",
            ),
            group=EVERYDAY,
        ),
        Command(
            name="history health",
            options=StoreOptions,
            run="ur_energy_model.plant.questions:health",
            summary="friction, torque constants and standby power over days",
            description="Follow the friction and the torque constant of each joint and the "
            "standby power of each arm over days, at equal temperature. Changes "
            "that are larger than their uncertainty are given in words.",
            examples=(
                "ur_energy history health plant",
                "ur_energy history health s3://plant/history --json",
            ),
            group=EVERYDAY,
        ),
        Command(
            name="history export",
            options=HistoryExportOptions,
            run="ur_energy_model.plant.questions:export",
            summary="write seconds or cycles to a CSV file",
            description="Write the rows of a table to a CSV file, in order of arm and time, "
            "with one column per joint. Other programs can also read the "
            "Parquet files of the store directly.",
            examples=(
                "ur_energy history export plant -o may.csv --from 2026-05-01 --to 2026-05-31",
                "ur_energy history export plant -o cycles.csv --table cycles --arm 20225500123",
            ),
            group=EVERYDAY,
        ),
        Command(
            name="history sql",
            options=HistorySqlOptions,
            run="ur_energy_model.plant.questions:sql",
            summary="query with SQL",
            description="Run one SELECT statement of DuckDB's SQL on a history store and "
            "print its result.",
            examples=(
                'ur_energy history sql plant "SELECT arm, max(peak_power) FROM seconds \\\n'
                '    GROUP BY arm"',
                'ur_energy history sql plant "SELECT day, sum(energy) FROM joint_seconds \\\n'
                "    WHERE joint = 'elbow_joint' GROUP BY day ORDER BY day\" --json",
            ),
            notes=_TABLES,
            group=EVERYDAY,
        ),
        Command(
            name="history compact",
            options=StoreOptions,
            run="ur_energy_model.plant.commands:compact",
            summary="write one file per arm and day in place of many",
            description="Write one file per arm and day in place of those of many "
            "recordings, and remove files that were replaced more than a day "
            "ago. No row changes. history add does it by itself where a day has "
            "many files.",
            examples=("ur_energy history compact plant",),
            group=EVERYDAY,
        ),
    ),
    extensions=(
        Extension(
            subject="estimator",
            provides="ur_energy_model.plant.node:HistoryCompanion",
            options=HistoryParameters,
        ),
        Extension(
            subject="executor",
            provides="ur_energy_model.plant.cluster:cluster_given",
            options=ClusterOptions,
        ),
        Extension(
            subject="identify",
            provides="ur_energy_model.plant.identify_fleet:FLEET",
            options=FleetOptions,
        ),
        Extension(
            subject="optimize",
            provides="ur_energy_model.plant.changed_program:compare_production",
            options=ChangedProgramOptions,
        ),
    ),
    tests=("test/plant",),
    pages=("docs/plant",),
)
