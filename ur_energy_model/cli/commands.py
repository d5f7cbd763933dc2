# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The subcommands of the core of `ur_energy`: what their help states, and what runs them.

The options of a subcommand are in `command_options` and `recording_options`; what it does
is in the other modules of this folder, which are imported when it runs. The subcommands of
rooms are in their `room` modules.
"""

from __future__ import annotations

from collections.abc import Sequence

from ur_energy_model.cli.command_options import (
    BaseParametersOptions,
    CompletionOptions,
    EstimateOptions,
    EvaluateOptions,
    LayoutsOptions,
    PayloadOptions,
    PredictOptions,
    ProfileOptions,
    ReportOptions,
)
from ur_energy_model.cli.recording_options import (
    ImportOptions,
    InspectOptions,
    LiveViewOptions,
    RecordOptions,
    RecoverOptions,
)
from ur_energy_model.cli.tables import (
    EVERYDAY,
    FILES,
    MODELS,
    RECORDINGS,
    IdentifyOptions,
)
from ur_energy_model.rooms import Command
from ur_energy_model.sinks.options import SUBJECT as SINKS
from ur_energy_model.sinks.options import SinkKind, sink_kinds


def live_command(kinds: Sequence[SinkKind]) -> Command:
    """The subcommand `live`, whose help names the sinks that it can feed.

    Args:
        kinds: kinds of sinks, of the rooms that are there; without any, the help mentions
            none.
    """
    summary = "show live power and energy of an arm"
    notes = "q or Ctrl-C quits. The robot is only read, never commanded."
    examples = ["ur_energy live --host 192.168.0.10 --model model.yaml"]
    if kinds:
        titles = ", ".join(kind.title for kind in kinds)
        summary += f"; feed {titles}"
    servers = [
        f"{kind.flag} 127.0.0.1:{kind.default_port}" for kind in kinds if kind.listens
    ]
    if servers:
        notes += "\nServers listen on this machine only unless --allow-network is given."
        lines = [
            "ur_energy live --host 192.168.0.10",
            *servers,
            "--state-file energy.db",
        ]
        examples.append(" \\\n    ".join(lines))
    examples.append("ur_energy live --bag monday --json")
    return Command(
        name="live",
        options=LiveViewOptions,
        run="ur_energy_model.cli.live:run",
        summary=summary,
        description="Show power and energy of an arm while it works: each joint, the "
        "whole arm beside the measured bus, standby, cycles and losses of "
        "the connection. In a terminal it fills the screen; elsewhere it "
        "prints one line a second, and one a minute while no samples come. "
        "Without --model it uses the generic model of the arm's type, whose "
        "intervals are wider. It ends with what can be done for less "
        "energy, ranked. ROS is not needed.",
        examples=tuple(examples),
        notes=notes,
        group=EVERYDAY,
        subjects=(SINKS,),
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
    live_command(sink_kinds()),
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
            "ur_energy base-parameters excitation --export fit.npz --urdf arm.urdf",
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
"""Subcommands of the core, in the order of the help within their groups."""
