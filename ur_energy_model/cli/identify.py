"""`ur_energy identify` and `ur_energy evaluate`."""

from __future__ import annotations

import argparse
import math
import textwrap
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ur_energy_model.cli import output
from ur_energy_model.cli.payload_option import add_payload_option, is_identified, payload_given
from ur_energy_model.model.friction.law import LAWS

if TYPE_CHECKING:
    from ur_energy_model.identification.pipeline import Identification
    from ur_energy_model.model.robots import RobotDescription
    from ur_energy_model.model.setup import Payload, Setup


_IDENTIFY_EXAMPLE = """example:
  ur_energy identify excitation --robot ur5e --validate task -o model.yaml

friction laws:
"""


def register(subparsers: Any) -> None:
    """Add the subcommands."""
    identify = subparsers.add_parser(
        "identify",
        help="identify an arm's model from bags",
        description="Identify inertia, torque constants, friction and power of an arm from bags.",
        epilog=_IDENTIFY_EXAMPLE + _law_lines(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    identify.add_argument("bags", nargs="+", metavar="BAG", help="recordings to fit, together")
    identify.add_argument("--robot", required=True, help="name or YAML file of the robot")
    identify.add_argument(
        "--validate", action="append", default=[], metavar="BAG", help="recording held out"
    )
    identify.add_argument("-o", "--output", required=True, metavar="MODEL.yaml")
    identify.add_argument(
        "--friction",
        default="auto",
        metavar="LAW",
        help="one of those below, or auto to choose per joint by cross-validation (default)",
    )
    identify.add_argument(
        "--power-model",
        default="physical",
        choices=("physical", "ecbot"),
        help="physical structure with priors, or EcBot's 4n+1 free coefficients",
    )
    identify.add_argument(
        "--link-tensors",
        default="file",
        choices=("file", "identify"),
        help="inertia tensors of the links: the robot file's (default), or identified from "
        "target_moment where the file has none or wrong ones",
    )
    identify.add_argument(
        "--gravity",
        nargs=3,
        type=float,
        metavar=("X", "Y", "Z"),
        help="gravity in the base frame [m/s^2], where you know the mounting",
    )
    add_payload_option(
        identify,
        identified=True,
        purpose="by default what target_moment says the controller was told",
    )
    output.add_json_option(identify)
    identify.set_defaults(run=run_identify)

    evaluate = subparsers.add_parser(
        "evaluate",
        help="compare a model with recordings",
        description="Torque, current and power of a model against recordings.",
        epilog="example: ur_energy evaluate model.yaml task --json",
    )
    evaluate.add_argument("model", metavar="MODEL.yaml")
    evaluate.add_argument("bags", nargs="+", metavar="BAG")
    evaluate.add_argument(
        "--no-anchor",
        action="store_true",
        help="compare with standby power and friction as the model has them, not as the "
        "recording's own standstill and first seconds of motion show them",
    )
    add_payload_option(evaluate, purpose="by default what target_moment says")
    output.add_json_option(evaluate)
    evaluate.set_defaults(run=run_evaluate)


def _law_lines() -> str:
    """Names and descriptions of the friction laws, side by side."""
    column = 4 + max(map(len, LAWS))
    return "\n".join(
        textwrap.fill(
            f"  {name}".ljust(column) + law.description,
            output.WIDTH,
            subsequent_indent=" " * column,
            break_on_hyphens=False,
        )
        for name, law in LAWS.items()
    )


def run_identify(options: argparse.Namespace) -> int:
    """Identify and save."""
    from ur_energy_model.identification.identification_json import identification_json
    from ur_energy_model.identification.payload.payload_check import IDENTIFIED
    from ur_energy_model.identification.pipeline import identify
    from ur_energy_model.model.file.model_file import save_model
    from ur_energy_model.model.robots import load_robot

    robot = load_robot(options.robot)
    payload = payload_given(options.payload)
    with output.progress("identifying") as report:
        result = identify(
            options.bags,
            robot,
            validate=options.validate,
            friction=options.friction,
            power_model=options.power_model,
            setup=_given_setup(options, robot, payload),
            payload=IDENTIFIED if is_identified(options.payload) else payload,
            identify_tensors=options.link_tensors == "identify",
            progress=_shown(report),
        )
    save_model(result.model, options.output)
    for warning in result.warnings:
        output.note(f"warning: {warning}")
    if options.json:
        output.print_json(identification_json(result))
    else:
        _print_identification(result)
        for entry in (*result.model.fit, *result.model.validation):
            print_metrics(entry)
        output.note(f"model written to {options.output}")
    return 0


def _given_setup(
    options: argparse.Namespace, robot: RobotDescription, payload: Payload | None
) -> Setup | None:
    """Mounting and payload as the user states them, None where nothing was said."""
    import numpy as np

    from ur_energy_model.errors import InputError
    from ur_energy_model.model.setup import Payload, Setup
    from ur_energy_model.reading.ranges import GRAVITY

    if options.gravity is None and payload is None:
        return None
    gravity = options.gravity or [0.0, 0.0, -robot.controller_gravity]
    magnitude = float(np.linalg.norm(gravity))
    if not GRAVITY.low <= magnitude <= GRAVITY.high:
        raise InputError(
            "--gravity",
            f"has the magnitude {magnitude:g}, not that of gravity",
            "give X Y Z in m/s^2",
        )
    return Setup(np.array(gravity), Payload() if payload is None else payload)


def run_evaluate(options: argparse.Namespace) -> int:
    """Compare a model with recordings."""
    from ur_energy_model.identification.evaluation.evaluation import evaluate
    from ur_energy_model.model.file.model_file import load_model

    model, payload = load_model(options.model), payload_given(options.payload)
    with output.progress("evaluating") as report:
        results = [
            evaluate(
                model,
                bag,
                payload=payload,
                anchor=not options.no_anchor,
                progress=_shown(report),
            ).as_json()
            for bag in options.bags
        ]
    if options.json:
        output.print_json({"model": options.model, "robot": model.robot, "results": results})
    else:
        for entry in results:
            print_metrics(entry)
    return 0


def print_metrics(entry: Mapping[str, Any]) -> None:
    """METRICS as tables: torque, current while moving and at all times, power."""
    for key, title in (
        ("torque", "torque error [N m]"),
        ("current", "current error while moving [A]"),
        ("current_all", "current error, standstill included [A]"),
    ):
        if entry[key] is not None:
            output.print_table(
                f"{entry['bag']}: {title}",
                ["joint", "mean", "max", "rms", "R2"],
                [
                    [str(j), row["mean"], row["max"], row["rms"], row["r2"]]
                    for j, row in enumerate(entry[key])
                ],
            )
    session = entry.get("session")
    if session is not None:
        output.note(f"{entry['bag']}: {_session_line(session)}")
    power = entry["power"]
    if power is not None:
        output.print_table(
            f"{entry['bag']}: power at the supply",
            ["", "RMSE [W]", "RMSE [%]", "R2", "energy error [%]"],
            [
                [
                    "",
                    power["rmse"],
                    power["rmse_percent"],
                    power["r2"],
                    power["energy_error_percent"],
                ]
            ],
        )


def _session_line(session: Mapping[str, Any]) -> str:
    """What was known of a recording's session."""
    if not session["anchored"]:
        return "standby power and friction as the model has them"
    scales = ", ".join(f"{scale:.2f}" for scale in session["friction_scale"])
    return (
        f"anchored on {session['moving_seconds']:.1f} s of motion and "
        f"{session['still_seconds']:.1f} s of standstill: friction x {scales}; "
        f"standby {session['standby']:.1f} W"
    )


def _print_identification(result: Identification) -> None:
    from ur_energy_model.energy.meter import CONFIDENCE
    from ur_energy_model.identification.report_tables import drive_table

    model = result.model
    output.print_table(
        f"{model.robot_name}: identified constants (joint side inertia, motor side the rest)",
        ["joint", "inertia", "k_t", "± 95 %", "friction law", "source of k_t"],
        [
            [
                joint.name,
                joint.reflected_inertia,
                joint.torque_constant,
                CONFIDENCE * joint.std["torque_constant"],
                joint.friction.law.name,
                joint.source["torque_constant"],
            ]
            for joint in model.joints
        ],
    )
    output.print_table(*drive_table(model))
    for joint in model.joints:
        output.note(f"{joint.name}: {joint.friction.law.name}: {joint.friction_reason}")
    output.note(
        f"setup ({model.setup_source}): gravity {model.setup.gravity.round(3).tolist()}, "
        f"payload {model.setup.payload.mass:.3f} kg"
    )
    for entry in model.provenance["bags"]:
        output.note(
            f"{entry['path']}: {entry['rate']:.0f} Hz, filter cut-off {entry['cutoff']:.1f} Hz, "
            f"actual_q {1e3 * entry['position_delay']:.1f} ms behind target_q"
        )
    output.note(f"power: standby {model.bus.standby:.2f} W; {model.bus.reason}")
    sessions, spread = model.sessions, model.sessions.friction_of(model.dof)
    known = f"{sessions.count} sessions compared" if sessions.count else "typical values"
    output.note(
        f"another session ({known}): standby ± {CONFIDENCE * sessions.standby:.1f} W, friction ± "
        f"{100 * CONFIDENCE * spread.min():.0f} to {100 * CONFIDENCE * spread.max():.0f} %"
    )
    if "current_delay" in result.power.factors:
        delay, std = (1e3 * figure for figure in result.power.factors["current_delay"])
        output.note(f"power: currents {delay:.2f} ± {CONFIDENCE * std:.2f} ms behind speeds")


def _shown(report: output.ProgressReport) -> Callable[[float, str], None]:
    """Progress whose fraction may be unknown."""

    def show(fraction: float, text: str) -> None:
        report(0.0 if math.isnan(fraction) else fraction, text)

    return show
