# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The subcommands of the core of `ur_energy`: the tables of their options, and COMMANDS.

What a command does is in the other modules of this folder, which are imported when it
runs; the commands of rooms are in their `room` modules.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ur_energy_model.cli.tables import (
    EVERYDAY,
    FILES,
    MODELS,
    RECORDINGS,
    IdentifyOptions,
    SavingsOptions,
    bag_option,
    bags_option,
    json_option,
    model_option,
    model_or_robot_option,
    overwrite_option,
    payload_option,
    robot_of_model_option,
    robot_option,
    same_arm_option,
    text_list,
    validate_option,
    workers_option,
)
from ur_energy_model.options import option, part
from ur_energy_model.rooms import Command, loaded

# Words that the completion of a shell offers, found when they are needed.


def _csv_layouts() -> tuple[str, ...]:
    return tuple(loaded("ur_energy_model.telemetry.csv.columns:LAYOUTS"))


@dataclass(frozen=True, kw_only=True)
class RecordOptions:
    """Options of `ur_energy record`."""

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
    """Options of `ur_energy live`."""

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
class EstimateOptions:
    """Options of `ur_energy estimate`."""

    model: Path | None = model_or_robot_option()
    robot: str | None = robot_of_model_option()
    bags: tuple[Path, ...] = bags_option("recordings")
    csv: Path | None = option(
        None,
        "also write the powers over time to this file (of a single recording)",
        metavar="FILE",
    )
    energy_bag: Path | None = option(
        None,
        "also write the topics that the estimator node would publish to "
        "this bag, for the layouts of PlotJuggler and Foxglove (of a single "
        "recording)",
        flags=("--bag",),
        metavar="OUT",
    )
    rate: float = option(
        50.0,
        "messages per second of --bag, 1 to 500",
        metavar="HZ",
        unit="Hz",
        limits=(1, 500),
    )
    overwrite: bool = overwrite_option()
    payload: tuple[float, ...] | None = payload_option("the model's")
    same_arm: bool = same_arm_option()
    workers: int | None = workers_option()
    tariff: SavingsOptions = part(SavingsOptions, "what can be done, in a year")
    json: bool = json_option()


@dataclass(frozen=True, kw_only=True)
class ReportOptions:
    """Options of `ur_energy report`."""

    model: Path | None = model_or_robot_option()
    robot: str | None = robot_of_model_option()
    bags: tuple[Path, ...] = bags_option("recordings of the arm")
    output: Path = option(
        help="page to write", flags=("-o", "--output", "--html"), metavar="REPORT.html"
    )
    figures: Path | None = option(
        None, "also write the figures to this folder", metavar="FOLDER"
    )
    format: tuple[Literal["png", "svg"], ...] = option(
        (),
        "file format of --figures (default: png; may be repeated)",
    )
    overwrite: bool = overwrite_option()
    payload: tuple[float, ...] | None = payload_option("the model's")
    same_arm: bool = same_arm_option()
    tariff: SavingsOptions = part(SavingsOptions, "energy of a shift")
    cycle: Literal["auto", "none", "program", "digital_output", "int_register"] = option(
        "auto",
        "what starts a cycle: program start, edge of a digital output, or "
        "change of output_int_register_0; auto: program start, digital "
        "output or repeated motion, whichever shows cycles",
        heading="energy of a shift",
    )
    cycle_output: int = option(
        0,
        "number of the digital output for --cycle digital_output",
        heading="energy of a shift",
        metavar="N",
    )
    json: bool = json_option()


@dataclass(frozen=True, kw_only=True)
class ProfileOptions:
    """Options of `ur_energy profile`."""

    bag: Path = option(
        help="recording of the running program (a rosbag2 directory)",
        positional=True,
        metavar="BAG",
        holds="recording",
    )
    model: Path | None = option(
        None,
        "identified model of the arm (default: the generic one of its type)",
        metavar="MODEL.yaml",
        holds="model",
    )
    robot: str | None = option(
        None,
        "name of the robot, such as ur5e (default: the one of the model, or of the bag)",
        metavar="NAME",
    )
    script: Path | None = option(
        None, "what PolyScope saves beside the .urp file", metavar="PROGRAM.script"
    )
    output: Path | None = option(
        None,
        "write profile.json, profile.html and profile.folded (stacks for "
        "flame graph viewers) to this folder",
        flags=("-o", "--output"),
        metavar="FOLDER",
    )
    html: Path | None = option(
        None, "write the page, which opens offline, to this file", metavar="FILE"
    )
    overwrite: bool = overwrite_option()
    compare: Path | None = option(
        None,
        "recording of another version of the program",
        metavar="BAG",
        holds="recording",
    )
    compare_script: Path | None = option(
        None, "its script (default: that of --script)", metavar="PROGRAM.script"
    )
    shifts: str | None = option(
        None, "when the shifts of a day begin, such as 06:00,14:00,22:00", metavar="TIMES"
    )
    time_zone: str = option("UTC", "of the shifts, such as Europe/Berlin", metavar="ZONE")
    same_arm: bool = same_arm_option()
    json: bool = json_option()


@dataclass(frozen=True, kw_only=True)
class ImportOptions:
    """Options of `ur_energy import`."""

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
    """Options of `ur_energy inspect`."""

    bag: Path = bag_option()
    robot: str | None = robot_option(
        "the one named in the bag; needed for the condition number"
    )
    json: bool = json_option()


@dataclass(frozen=True, kw_only=True)
class EvaluateOptions:
    """Options of `ur_energy evaluate`."""

    model: Path | None = model_option()
    bags: tuple[Path, ...] = bags_option("recordings to compare with")
    no_anchor: bool = option(
        False,
        "use the model's standby power and friction, without adapting them "
        "to the recording's standstill and first seconds of motion",
    )
    payload: tuple[float, ...] | None = payload_option(
        "the controller's setting, from target_moment"
    )
    same_arm: bool = same_arm_option()
    workers: int | None = workers_option()
    json: bool = json_option()


@dataclass(frozen=True, kw_only=True)
class PredictOptions:
    """Options of `ur_energy predict`."""

    model: Path | None = model_or_robot_option()
    robot: str | None = robot_of_model_option()
    trajectory: Path = option(
        help="planned motion of the joints",
        positional=True,
        metavar="TRAJECTORY.csv",
        holds="trajectory",
    )
    payload: tuple[float, ...] | None = payload_option("the model's")
    session: Path | None = option(
        None,
        "recording of the same day, to take standby power (from standstill) "
        "and friction (from the first seconds of motion) from; without it "
        "the interval is wider, to cover their spread between sessions",
        metavar="BAG",
        holds="recording",
    )
    json: bool = json_option()


@dataclass(frozen=True, kw_only=True)
class PayloadOptions:
    """Options of `ur_energy payload`."""

    model: Path | None = model_option()
    bag: Path = option(
        help="recording with the payload (a rosbag2 directory)",
        positional=True,
        metavar="BAG",
        holds="recording",
    )
    known_payload: float | None = option(
        None,
        "actual mass, to calibrate with",
        metavar="KG",
        unit="kg",
        limits=(-1000, 1000),
    )
    empty: Path | None = option(
        None,
        "recording of the same arm with an empty flange; the payload is the difference",
        metavar="BAG",
        holds="recording",
    )
    output: Path | None = option(
        None,
        "calibrated model to write (needs --known-payload)",
        flags=("-o", "--output"),
        metavar="MODEL.yaml",
    )
    overwrite: bool = overwrite_option()
    robot: str | None = robot_option("the one named in the model")
    json: bool = json_option()


@dataclass(frozen=True, kw_only=True)
class BaseParametersOptions:
    """Options of `ur_energy base-parameters`."""

    bags: tuple[Path, ...] = bags_option("recordings to fit, all together")
    robot: str | None = robot_option("the one that the bags name")
    validate: tuple[Path, ...] = validate_option()
    torque: Literal["current", "target_moment", "measured_torque"] = option(
        "current", "source of the torque", flags=("--from",)
    )
    model: Path | None = option(
        None,
        "use the torque constants of this model (default: those of the robot file)",
        metavar="MODEL.yaml",
        holds="model",
    )
    json: bool = json_option()


@dataclass(frozen=True, kw_only=True)
class LayoutsOptions:
    """Options of `ur_energy layouts`."""

    namespace: str = option("", "namespace of the nodes (default: none)", metavar="NAME")
    tf_prefix: str = option(
        "", "parameter tf_prefix of the nodes (default: none)", metavar="PREFIX"
    )
    robot: str | None = robot_option("ur5e")
    output: Path = option(
        help="folder for the files", flags=("-o", "--output"), metavar="DIR"
    )
    overwrite: bool = overwrite_option()
    json: bool = json_option()


@dataclass(frozen=True, kw_only=True)
class CompletionOptions:
    """Options of `ur_energy completion`."""

    shell: Literal["bash", "zsh", "fish"] = option(
        help="shell to complete in", positional=True
    )


COMMANDS = (
    Command(
        name="record",
        options=RecordOptions,
        run="ur_energy_model.cli.record:record",
        summary="record a robot's telemetry into a bag",
        description="Record the telemetry of a robot (RTDE, port 30004) into a rosbag2 "
        "directory without losing a sample. Connection losses are bridged "
        "and recorded as gaps.",
        examples=(
            "ur_energy record --host 192.168.0.10 --duration 60 -o monday",
            "ur_energy record --host 192.168.0.10 -o monday \\\n"
            '    --meter "http://192.168.0.20/rpc/Switch.GetStatus?id=0"',
        ),
        notes="Ctrl-C finishes the bag. The robot is only read, never commanded. Exit "
        "code 3:\nless is in the bag than was asked for, because the robot was away at the "
        "end,\nthe disk was full, or files of the bag were deleted or changed; what is "
        "missing\nis counted as lost.",
        group=EVERYDAY,
    ),
    Command(
        name="live",
        options=LiveViewOptions,
        run="ur_energy_model.cli.live:run",
        summary="show live power and energy of an arm; feed Foxglove, Prometheus, MQTT, OPC UA",
        description="Show power and energy of an arm while it works: each joint, the "
        "whole arm beside the measured bus, standby, cycles and losses of "
        "the connection. In a terminal it fills the screen; elsewhere it "
        "prints one line a second, and one a minute while no samples come. "
        "Without --model it uses the generic model of the arm's type, whose "
        "intervals are wider. It ends with what can be done for less "
        "energy, ranked. ROS is not needed.",
        examples=(
            "ur_energy live --host 192.168.0.10 --model model.yaml",
            "ur_energy live --host 192.168.0.10 --prometheus 127.0.0.1:9464 --foxglove \\\n"
            "    --state-file energy.db",
            "ur_energy live --bag monday --json",
        ),
        notes="q or Ctrl-C quits. The robot is only read, never commanded. Servers listen "
        "on this\nmachine only unless --allow-network is given.",
        group=EVERYDAY,
        subjects=("sinks",),
    ),
    Command(
        name="estimate",
        options=EstimateOptions,
        run="ur_energy_model.cli.estimate:estimate",
        summary="compute the energy of recordings, per joint and in total",
        description="Compute the mechanical and electrical energy and the efficiency of "
        "recordings, per joint and in total, with the model of the arm or, "
        "without MODEL.yaml, with the generic model of its type, whose "
        "intervals are wider; and what can be done for less energy, ranked.",
        examples=(
            "ur_energy estimate task --robot ur5e",
            "ur_energy estimate model.yaml task --csv power.csv",
            "ur_energy estimate model.yaml task --bag task_energy",
            "ur_energy estimate model.yaml monday/* --json",
            "ur_energy estimate task --tariff 0.28 --hours-per-year 4000",
        ),
        group=EVERYDAY,
        subjects=("executor",),
    ),
    Command(
        name="identify",
        options=IdentifyOptions,
        run="ur_energy_model.cli.identify:run",
        summary="identify an arm's model from bags",
        description="Identify the inertia, torque constants, friction and power of an "
        "arm from bags, and write them to a model file.",
        examples=("ur_energy identify excitation --validate task -o model.yaml",),
        notes="ur_energy_model.cli.notes:friction_laws",
        group=EVERYDAY,
        subjects=("executor", "identify"),
    ),
    Command(
        name="report",
        options=ReportOptions,
        run="ur_energy_model.cli.report:report",
        summary="write an HTML report of a model and recordings",
        description="Write one HTML file that opens offline in any browser: a verdict "
        "in plain words, measured and modelled torque, current, power and "
        "energy, the identified parameters with their intervals, and the "
        "energy of a shift with its cost, and what can be done for less.",
        examples=(
            "ur_energy report model.yaml my_bag another_bag -o report.html",
            "ur_energy report my_bag --robot ur5e -o report.html",
            "ur_energy report model.yaml monday_shift -o shift.html \\\n"
            "    --tariff 0.28 --co2 0.38",
        ),
        group=EVERYDAY,
    ),
    Command(
        name="profile",
        options=ProfileOptions,
        run="ur_energy_model.cli.profile:run",
        summary="attribute the energy to the lines and nodes of the robot program",
        description="Attribute the energy of a recording to the lines of the robot "
        "program, as script_control_line shows them, and with --script to "
        'its nodes (the `$ n "label"` comments of PolyScope). All parts sum '
        "to the energy of `estimate`.",
        examples=(
            "ur_energy profile bags/cell --script palletising.script",
            "ur_energy profile bags/cell --model model.yaml --script palletising.script \\\n"
            "    -o profile",
            "ur_energy profile before --script old.script --compare after \\\n"
            "    --compare-script new.script",
        ),
        group=EVERYDAY,
    ),
    Command(
        name="import",
        options=ImportOptions,
        run="ur_energy_model.cli.import_csv:import_csv",
        summary="turn CSV recordings into a bag",
        description="Turn CSV recordings of RTDE data into a bag. Values are separated "
        "by commas, semicolons, tabs or blanks; files may be gzipped. "
        "Columns have RTDE field names (actual_q_0 ...), as written by "
        "ur_rtde's recorder and Universal Robots' Python client; a unit in "
        "brackets may follow. Files without a header line need --columns or "
        "--layout. Rows that cannot be samples of this arm are reported and "
        "left out; a file with more than 1 % of them is refused. See "
        "docs/recording.md.",
        examples=(
            "ur_energy import pick_place.csv.gz --robot ur5e -o pick_place",
            "ur_energy import log.txt --robot ur5e -o log \\\n"
            "    --columns timestamp,actual_q,actual_qd,-",
        ),
        notes="ur_energy_model.cli.notes:csv_layouts",
        group=RECORDINGS,
    ),
    Command(
        name="recover",
        options=RecoverOptions,
        run="ur_energy_model.cli.recordings:recover",
        summary="repair an interrupted or damaged bag",
        description="Rebuild the index and metadata.yaml of a bag that is damaged or "
        "whose recording was killed. Everything intact is kept; what is "
        "lost is reported.",
        examples=("ur_energy recover night_shift",),
        group=RECORDINGS,
    ),
    Command(
        name="inspect",
        options=InspectOptions,
        run="ur_energy_model.cli.recordings:inspect",
        summary="assess the quality of a recording",
        description="Assess a recording: rate, gaps, excitation, speed and torque of "
        "each joint, condition number, frozen or clipped channels, "
        "freedrive, temperatures, simulated data. The exit code is 0 even "
        "if the verdict is bad; identify refuses such a bag.",
        examples=("ur_energy inspect night_shift",),
        group=RECORDINGS,
    ),
    Command(
        name="evaluate",
        options=EvaluateOptions,
        run="ur_energy_model.cli.evaluate:evaluate",
        summary="compare a model with recordings",
        description="Compare the torque, current and power of a model with recordings.",
        examples=("ur_energy evaluate model.yaml task --json",),
        group=MODELS,
        subjects=("executor",),
    ),
    Command(
        name="predict",
        options=PredictOptions,
        run="ur_energy_model.cli.predict:predict",
        summary="predict the energy of a trajectory before the robot moves",
        description="Predict the energy of a planned trajectory, per joint and in "
        "total. The CSV file has a header line with the columns time [s], "
        "q_0 ... [rad] and, where known, qd_0 ... and qdd_0 ... Measured "
        "positions (actual_q_0 ...) are smoothed and jittered times spaced "
        "evenly first, with a warning.",
        examples=(
            "ur_energy predict model.yaml trajectory.csv",
            "ur_energy predict trajectory.csv --robot ur5e",
        ),
        group=MODELS,
    ),
    Command(
        name="payload",
        options=PayloadOptions,
        run="ur_energy_model.cli.parameters:payload",
        summary="identify the payload from motor currents",
        description="Identify the mass and the centre of mass (flange frame, m) of the "
        "payload in a bag from the motor currents, independent of the "
        "controller's payload setting. With a known payload, calibrate the "
        "drives instead, preferably together with a recording of the empty "
        "arm; the calibrated model then identifies other payloads more "
        "accurately.",
        examples=(
            "ur_energy payload model.yaml loaded_motion",
            "ur_energy payload model.yaml loaded_motion --empty empty_motion",
            "ur_energy payload model.yaml loaded_motion --known-payload 2.805 \\\n"
            "    --empty empty_motion -o calibrated.yaml",
        ),
        group=MODELS,
    ),
    Command(
        name="base-parameters",
        options=BaseParametersOptions,
        run="ur_energy_model.cli.parameters:base_parameters",
        summary="identify an arm's base parameters",
        description="Identify the base parameters of an arm: rank, regrouping, weighted "
        "least squares with standard deviations, and the nearest physically "
        "consistent parameters. Torque is measured current times torque "
        "constant and gear ratio; --from target_moment uses the "
        "controller's torque instead (without friction), --from "
        "measured_torque the joint torque that an arm measures itself "
        "(actual_current_as_torque), for arms without known torque "
        "constants. Units: kg, m, N m; friction on the joint side.",
        examples=(
            "ur_energy base-parameters excitation --robot ur5e --validate other_motion",
        ),
        group=MODELS,
    ),
    Command(
        name="layouts",
        options=LayoutsOptions,
        run="ur_energy_model.cli.desk:layouts",
        summary="write layouts of PlotJuggler, Foxglove, rviz and Grafana for an arm",
        description="Write layouts of PlotJuggler (live topics and bags), Foxglove and "
        "rviz for the energy topics of an arm, with the namespace and the "
        "tf_prefix of its nodes, and a dashboard of Grafana with a "
        "configuration of Prometheus. Those without namespace and prefix "
        "are in the package's config folder.",
        examples=("ur_energy layouts --namespace cell1 --tf-prefix left_ -o layouts",),
        group=FILES,
    ),
    Command(
        name="completion",
        options=CompletionOptions,
        run="ur_energy_model.cli.desk:completion",
        summary="print a completion script for bash, zsh or fish",
        description="Print a script that completes subcommands, options, their values "
        "and file names in a shell. Needs the Python package shtab.",
        examples=(
            "ur_energy completion bash > ~/.local/share/bash-completion/completions/ur_energy",
            "ur_energy completion zsh > ~/.zfunc/_ur_energy       # a folder of your $fpath",
            "ur_energy completion fish > ~/.config/fish/completions/ur_energy.fish",
        ),
        group=FILES,
    ),
)
