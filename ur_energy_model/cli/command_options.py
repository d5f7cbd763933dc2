# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The tables of options of the core's subcommands of `ur_energy`.

A table is a dataclass made with `option`, one field for each option or argument of the
subcommand; the function that runs the subcommand gets an object of this dataclass.
Options that several subcommands share are in `tables`; so is the table of `identify`,
because rooms add to it. The subcommands that make, show and check recordings have their
tables in `recording_options`. Paths are as typed; an attribute that is None was not
stated.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ur_energy_model.cli.tables import (
    SavingsOptions,
    bags_option,
    json_option,
    model_option,
    model_or_robot_option,
    overwrite_option,
    payload_option,
    robot_of_model_option,
    robot_option,
    same_arm_option,
    validate_option,
    workers_option,
)
from ur_energy_model.options import option, part


@dataclass(frozen=True, kw_only=True)
class EstimateOptions:
    """Options of `ur_energy estimate`.

    Attributes:
        model: model file; None for the generic model. It is a recording where the user
            has left out the model, see `arguments.split_model`.
        robot: name of the arm for a generic model; None for the name in the recording.
        bags: recordings; the first one is in `model` where the model was left out.
        csv: file for the powers over time [W]; None for no file.
        energy_bag: bag for the topics of the estimator node; None for no bag.
        rate: messages per second in `energy_bag` [Hz].
        overwrite: whether files that exist are replaced.
        payload: mass [kg], and where it is stated the centre of mass in the flange
            frame [m].
        same_arm: whether the serial numbers of model and recording may differ.
        effort_unit: content of actual_current_as_torque, see `PowerOptions`.
        workers: processes of this machine; None for as many as save time.
        tariff: what energy costs, and the hours of a year.
        json: whether the result is printed as JSON.
    """

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
    effort_unit: Literal["auto", "ampere", "newton_metre", "without_gravity"] = option(
        "auto",
        "content of actual_current_as_torque, where motor currents were not recorded: "
        "joint torques, joint torques without gravity, or motor currents; auto decides it "
        "from the samples",
    )
    workers: int | None = workers_option()
    tariff: SavingsOptions = part(SavingsOptions, "what can be done, in a year")
    json: bool = json_option()


@dataclass(frozen=True, kw_only=True)
class ReportOptions:
    """Options of `ur_energy report`.

    Attributes:
        model: path of the model file, as in `EstimateOptions`.
        robot: name or path of the robot, as in `EstimateOptions`.
        bags: paths of the recordings, as in `EstimateOptions`.
        output: HTML file to write.
        figures: folder for the figures; None for no figures.
        format: file formats of the figures; empty for png alone.
        overwrite: whether files that exist are replaced.
        payload: mass [kg], and where it is stated the centre of mass in the flange
            frame [m].
        same_arm: whether the serial numbers of model and recordings may differ.
        tariff: what energy costs, and the hours of a year.
        cycle: event that begins a cycle of the work.
        cycle_output: digital output whose rising edge begins a cycle, for
            "digital_output".
        json: whether the result is printed as JSON.
    """

    model: Path | None = model_or_robot_option()
    robot: str | None = robot_of_model_option()
    bags: tuple[Path, ...] = bags_option("recordings of the arm")
    output: Path = option(
        help="page to write", flags=("-o", "--output", "--html"), metavar="REPORT.html"
    )
    figures: Path | None = option(
        None, "also write the figures to this folder", metavar="FOLDER"
    )
    format: tuple[Literal["png", "svg", "pdf"], ...] = option(
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
    """Options of `ur_energy profile`.

    Attributes:
        bag: recording of the running program.
        model: identified model; None for the generic model of the arm.
        robot: name of the arm; None for the name in the model or the recording.
        script: script of the program, from which its nodes get their names.
        output: folder for profile.json, profile.html and profile.folded; None for none.
        html: file for the page alone; None for the page in `output`.
        overwrite: whether files that exist are replaced.
        compare: recording of another version of the program; None for no comparison.
        compare_script: script of that version; None for `script`.
        shifts: times of day at which shifts begin, separated by commas.
        time_zone: IANA name of the zone of `shifts`.
        same_arm: whether the serial numbers of model and recordings may differ.
        json: whether the result is printed as JSON.
    """

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
class EvaluateOptions:
    """Options of `ur_energy evaluate`.

    Attributes:
        model: model file; its absence is a usage error that names the remedy, see
            `arguments.model_needed`.
        bags: recordings.
        no_anchor: whether standby power and friction stay as in the model.
        payload: mass [kg], and where it is stated the centre of mass in the flange
            frame [m]; None for the payload that was set in the controller.
        same_arm: whether the serial numbers of model and recordings may differ.
        workers: processes of this machine; None for as many as save time.
        json: whether the result is printed as JSON.
    """

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
    """Options of `ur_energy predict`.

    Attributes:
        model: identified model; None for the generic model of `robot`.
        robot: name of the arm; None for the name in `session`.
        trajectory: CSV file with the columns time [s], q_0 ... [rad], and where they are
            known qd_0 ... [rad/s] and qdd_0 ... [rad/s^2].
        payload: mass [kg], and where it is stated the centre of mass in the flange
            frame [m]; None for the payload of the model.
        session: recording from which standby power and friction are taken; None for the
            wider interval that covers any session.
        json: whether the result is printed as JSON.
    """

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
    """Options of `ur_energy payload`.

    Attributes:
        model: identified model; a generic one is refused.
        bag: recording of the loaded arm.
        known_payload: actual mass [kg], which calibrates the torque constants; None where
            the mass is what is identified.
        empty: recording of the empty arm, whose torques are subtracted.
        output: calibrated model to write; needs `known_payload`.
        overwrite: whether a file that exists is replaced.
        robot: name of the arm or path of its YAML file; None for the name in the model.
        json: whether the result is printed as JSON.
    """

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
    """Options of `ur_energy base-parameters`.

    Attributes:
        bags: recordings that are fitted together.
        robot: name of the arm or path of its YAML file; None for the name in the bags.
        validate: recordings that are predicted and not fitted.
        torque: source of the joint torques: "current" times torque constant and gear
            ratio, the controller's "target_moment", or the "measured_torque" of arms that
            measure it.
        model: model whose torque constants are used; None for the robot file.
        export: file for regressor, torques and parameters; None for no file.
        urdf: file for the arm with its physically consistent parameters; None for no file.
        overwrite: whether files that exist are replaced.
        json: whether the result is printed as JSON.
    """

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
    export: Path | None = option(
        None,
        "also write regressor W, torque tau and parameters p, with names and units, for numpy "
        "(.npz), MATLAB (.mat) or as tables (.csv)",
        metavar="FILE",
    )
    urdf: Path | None = option(
        None,
        "also write the arm with its physically consistent parameters",
        metavar="ARM.urdf",
    )
    overwrite: bool = overwrite_option()
    json: bool = json_option()


@dataclass(frozen=True, kw_only=True)
class LayoutsOptions:
    """Options of `ur_energy layouts`.

    Attributes:
        namespace: namespace of the nodes; empty for none.
        tf_prefix: parameter tf_prefix of the nodes; empty for none.
        robot: name of the arm, or path of its YAML file, for the names of the joints.
        output: folder for the files.
        overwrite: whether files that exist are replaced.
        json: whether the result is printed as JSON.
    """

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
