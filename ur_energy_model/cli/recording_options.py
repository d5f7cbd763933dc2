# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The tables of options of the core's subcommands that make, show and check recordings.

See `command_options` for what a table is.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ur_energy_model.cli.tables import (
    SavingsOptions,
    bag_option,
    json_option,
    overwrite_option,
    robot_option,
    same_arm_option,
    text_list,
)
from ur_energy_model.options import option, part
from ur_energy_model.rooms import loaded


def _csv_layouts() -> tuple[str, ...]:
    """Names of the known column orders, which the completion of a shell offers."""
    return tuple(loaded("ur_energy_model.telemetry.csv.columns:LAYOUTS"))


@dataclass(frozen=True, kw_only=True)
class RecordOptions:
    """Options of `ur_energy record`.

    Attributes:
        host: address of the robot controller.
        robot: name of the arm or path of its YAML file; None for the name that the
            controller states.
        output: the bag to create; it must not exist.
        fields: names of RTDE fields; None for `telemetry.fields.ENERGY_FIELDS`.
        duration: recorded time, by the controller's clock [s]; None for no end.
        rate: samples per second [Hz]; None for every cycle of the controller.
        split_minutes: time after which a new file begins [min]; None for no limit.
        split_mb: size after which a new file begins [MB]; None for no limit.
        wait: time for which a connection that fails is tried again [s].
        meter: URL of a power meter at the mains; None for none.
        json: whether the result is printed as JSON.
    """

    host: str = option(
        help="address of the robot controller", metavar="ADDRESS", address=True
    )
    robot: str | None = robot_option("the one that the controller names")
    output: Path = option(
        help="directory to create", flags=("-o", "--output"), metavar="BAG"
    )
    fields: tuple[str, ...] | None = option(
        None,
        "RTDE fields to record (default: all that energy models need)",
        metavar="NAME,...",
        parse=text_list(r".*[^ ,].*", "a list of field names"),
    )
    duration: float | None = option(
        None,
        "stop after S seconds (default: on Ctrl-C)",
        metavar="S",
        unit="s",
        limits=(0.001, 1e9),
    )
    rate: float | None = option(
        None,
        "samples per second (default: every cycle of the controller)",
        metavar="HZ",
        unit="Hz",
        limits=(0.001, 1e9),
    )
    split_minutes: float | None = option(
        None,
        "start a new file every M minutes",
        metavar="MIN",
        unit="min",
        limits=(0.001, 1e9),
    )
    split_mb: float | None = option(
        None,
        "start a new file every M megabytes",
        metavar="MB",
        unit="MB",
        limits=(0.001, 1e9),
    )
    wait: float = option(
        0.0,
        "retry the connection for up to S seconds (default: try once)",
        metavar="S",
        unit="s",
        limits=(0.001, 1e9),
    )
    meter: str | None = option(
        None,
        "also record the readings of a power meter at the mains: "
        "http://HOST/rpc/METHOD?id=N (Shelly), "
        "mqtt://HOST/TOPIC#path.in.json or modbus://HOST/UNIT?profile=NAME",
        metavar="URL",
    )
    json: bool = json_option()


@dataclass(frozen=True, kw_only=True)
class LiveViewOptions:
    """Options of `ur_energy live`.

    Exactly one of `host` and `bag` is stated.

    Attributes:
        host: address of the robot controller.
        bag: recording that is played in real time.
        model: identified model; None for the generic model of the arm.
        robot: name of the arm; None for what the model, the recording or the controller
            states.
        same_arm: whether the serial numbers of model and arm may differ.
        state_file: file of the counters; None for counters that begin at zero.
        script: script of the running program, from which its nodes get their names.
        duration: time after which the command ends [s]; None for no end.
        json: whether a JSON object is printed every second.
        tariff: what energy costs, and the hours of a year.
    """

    host: str | None = option(
        None,
        "address of the robot controller",
        metavar="ADDRESS",
        address=True,
        one_of="source",
        needed=True,
    )
    bag: Path | None = option(
        None,
        "play a recording at the speed it was made",
        one_of="source",
        needed=True,
        metavar="BAG",
        holds="recording",
    )
    model: Path | None = option(
        None, "identified model (default: generic)", metavar="MODEL.yaml", holds="model"
    )
    robot: str | None = option(
        None,
        "name of the robot, such as ur5e (default: from controller, model or bag)",
        metavar="NAME",
    )
    same_arm: bool = same_arm_option()
    state_file: Path | None = option(
        None,
        "file that keeps the counters over restarts (default: they begin at zero)",
        metavar="FILE",
    )
    script: Path | None = option(
        None,
        "script of the running program, whose nodes are named",
        metavar="PROGRAM.script",
    )
    duration: float | None = option(
        None,
        "stop after S seconds (default: when the user quits)",
        metavar="S",
        unit="s",
        limits=(0.1, 1e9),
    )
    json: bool = option(
        False,
        "print one JSON object a second, each on a line",
    )
    tariff: SavingsOptions = part(SavingsOptions, "what can be done, in a year")


@dataclass(frozen=True, kw_only=True)
class ImportOptions:
    """Options of `ur_energy import`.

    Attributes:
        csv: CSV files, in order of time; they become one recording.
        robot: name of the arm or path of its YAML file. None is refused, with the arms
            that the samples fit.
        output: the bag to create.
        columns: names of the columns, separated by commas; None for a header line.
        layout: name of a known column order, in place of `columns`.
        rate: samples per second [Hz]; None for the times in the file.
        time_unit: unit of the time column, or "auto".
        overwrite: whether a bag that exists is replaced.
        json: whether the result is printed as JSON.
    """

    csv: tuple[Path, ...] = option(
        help="recordings, in order of time", positional=True, metavar="CSV", holds="csv"
    )
    robot: str | None = robot_option("none: CSV files do not name the arm")
    output: Path = option(
        help="directory to create", flags=("-o", "--output"), metavar="BAG"
    )
    columns: str | None = option(
        None,
        "column names, separated by commas, for files without a header "
        "line: actual_q or actual_q[6] names six columns, '-' skips one and "
        "'-[3]' three",
        metavar="NAMES",
    )
    layout: str | None = option(
        None,
        "column order of a known kind of file (listed below)",
        metavar="LAYOUT",
        offered=_csv_layouts,
    )
    rate: float | None = option(
        None,
        "samples per second, for files without a time column or with equal times",
        metavar="HZ",
        unit="Hz",
        limits=(0.001, 2000),
    )
    time_unit: Literal["auto", "s", "ms", "us", "ns", "min", "h", "d"] = option(
        "auto",
        "unit of the time column; auto: as its name states, else by the "
        "size of its numbers, their steps, and the motion of the arm",
    )
    overwrite: bool = overwrite_option()
    json: bool = json_option()


@dataclass(frozen=True, kw_only=True)
class RecoverOptions:
    """Options of `ur_energy recover`."""

    bag: Path = option(
        help="recording to repair in place (a rosbag2 directory)",
        positional=True,
        metavar="BAG",
        holds="recording",
    )
    json: bool = json_option()


@dataclass(frozen=True, kw_only=True)
class InspectOptions:
    """Options of `ur_energy inspect`.

    Attributes:
        bag: recording.
        robot: name of the arm or path of its YAML file; None for the name in the bag.
            Without either there is no condition number.
        json: whether the result is printed as JSON.
    """

    bag: Path = bag_option()
    robot: str | None = robot_option(
        "the one named in the bag; needed for the condition number"
    )
    json: bool = json_option()
