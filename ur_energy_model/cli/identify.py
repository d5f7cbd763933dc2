"""`ur_energy identify`: models of arms from recordings."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from ur_energy_model.cli import arguments
from ur_energy_model.cli.arguments import (
    command,
    failed_json,
    for_each_bag,
    is_distributed,
    is_identified,
    option,
    payload_given,
    recorded_robot,
    report_failed,
)
from ur_energy_model.cli.output import note, print_json, print_table, progress, warn
from ur_energy_model.errors import InputError
from ur_energy_model.options import number

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from ur_energy_model.identification.assembly import ArmPrior
    from ur_energy_model.identification.pipeline import Identification, IdentificationOptions
    from ur_energy_model.model.energy_model import EnergyModel
    from ur_energy_model.model.robots import RobotDescription
    from ur_energy_model.model.setup import Payload, Setup
    from ur_energy_model.plant.fleet import FleetArm
    from ur_energy_model.plant.identify_arms import FleetIdentification


def _friction_laws() -> str:
    from ur_energy_model.model.friction import LAWS

    laws = {name: law.description for name, law in LAWS.items()}
    return arguments.definition_list("friction laws", laws)


@command(
    "identify",
    "identify an arm's model from bags",
    "Identify the inertia, torque constants, friction and power of an arm from bags, and write "
    "them to a model file.",
    "ur_energy identify excitation --validate task -o model.yaml\n"
    "ur_energy identify --per-arm monday/* -o arms\n"
    "ur_energy identify short --fleet arms -o new_arm.yaml",
    (arguments.add_bags, "recordings to fit, all together"),
    (arguments.add_robot, "the one that the bags name"),
    arguments.add_validate,
    (
        arguments.add_output,
        "MODEL.yaml",
        "model file to write; with --per-arm, folder of the models",
    ),
    (
        arguments.add_flag,
        "--per-arm",
        "one model per arm (serial number) into the folder OUTPUT; arms of one joint size share "
        "what the data show that they have in common",
    ),
    (
        arguments.add_path,
        "--fleet",
        "FOLDER",
        "models of other arms to start from (default with --per-arm: those already in the folder "
        "OUTPUT)",
    ),
    (
        arguments.add_text,
        "--friction",
        "LAW",
        "friction law (listed below), or auto to select one per joint by cross-validation "
        "(default: %(default)s)",
        "auto",
    ),
    (
        arguments.add_choice,
        "--power-model",
        ("physical", "ecbot", "catalogue"),
        "physical structure with priors, the 4n+1 free coefficients of EcBot, or the catalogue "
        "motors that Clochiatti et al. assume for a UR5e",
    ),
    (
        arguments.add_choice,
        "--link-tensors",
        ("file", "identify"),
        "inertia tensors of the links: from the robot file, or identified from target_moment "
        "where the file has none or wrong ones",
    ),
    option(
        "--gravity",
        nargs=3,
        type=number(float, -100, 100),
        metavar=("X", "Y", "Z"),
        help="gravity in the base frame [m/s^2], if the mounting is known (default: estimated)",
    ),
    (arguments.add_payload_option, "the controller's setting, from target_moment", True),
    arguments.add_cluster,
    arguments.add_json,
    notes=lambda: _friction_laws(),
)
def run(options: argparse.Namespace) -> None:
    """Identify, save and print."""
    from ur_energy_model.cli.energies import print_metrics
    from ur_energy_model.files import check_target
    from ur_energy_model.identification.payload import IDENTIFIED
    from ur_energy_model.identification.pipeline import identify
    from ur_energy_model.model.model_file import save_model
    from ur_energy_model.model.robots import load_robot

    if options.per_arm:
        identify_per_arm(options)
        return
    check_target(options.output)
    robot = load_robot(options.robot or recorded_robot(options.bags))
    payload = payload_given(options.payload)
    bags = len(options.bags) + len(options.validate)
    with progress("identifying") as report, ExitStack() as opened:
        each = None
        if is_distributed(options):
            each = opened.enter_context(for_each_bag(options, options.validate))
        wanted = replace(
            _options_given(options),
            setup=_given_setup(options, robot, payload),
            payload=IDENTIFIED if is_identified(options.payload) else payload,
        )
        work = partial(identify, validate=options.validate, progress=report, each=each)
        result = work(options.bags, robot, wanted)
        if options.fleet is not None:
            prior = prior_from_fleet(options.fleet, options.bags[0], result.model)
            if prior is not None:
                result = work(options.bags, robot, replace(wanted, prior=prior))
    save_model(result.model, options.output)
    warn(result.warnings)
    for line in result.notes:
        note(line)
    if options.json:
        failed = {"failed": failed_json(result.failed)} if bags > 1 else {}
        print_json({**identification_json(result), **failed})
    else:
        _print(result)
        for entry in (*result.model.fit, *result.model.validation):
            print_metrics(entry, result.model.joints)
        note(f"model written to {options.output}")
    report_failed(result.failed, bags)


def _options_given(options: argparse.Namespace) -> IdentificationOptions:
    """What is the same for one arm and for many."""
    from ur_energy_model.identification.pipeline import IdentificationOptions

    return IdentificationOptions(
        friction=options.friction,
        power_model=options.power_model,
        identify_tensors=options.link_tensors == "identify",
    )


def _given_setup(
    options: argparse.Namespace, robot: RobotDescription, payload: Payload | None
) -> Setup | None:
    """Mounting and payload as the user states them; None if neither is stated.

    Raises:
        InputError: a vector that cannot be gravity.
    """
    import numpy as np

    from ur_energy_model.model.setup import Payload, Setup
    from ur_energy_model.ranges import GRAVITY

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


def _print(result: Identification) -> None:
    from ur_energy_model.energy.meter import CONFIDENCE
    from ur_energy_model.report.layout import drive_table

    model = result.model
    print_table(
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
    print_table(*drive_table(model))
    for joint in model.joints:
        note(f"{joint.name}: {joint.friction.law.name}: {joint.friction_reason}")
    note(
        f"setup ({model.setup_source}): gravity {model.setup.gravity.round(3).tolist()}, "
        f"payload {model.setup.payload.mass:.3f} kg"
    )
    for entry in model.provenance["bags"]:
        note(
            f"{entry['path']}: {entry['rate']:.0f} Hz, filter cut-off {entry['cutoff']:.1f} Hz, "
            f"actual_q {1e3 * entry['position_delay']:.1f} ms behind target_q"
        )
    note(f"power: standby {model.bus.standby:.2f} W; {model.bus.reason}")
    sessions, spread = model.sessions, model.sessions.friction_of(model.dof)
    known = f"from {sessions.count} sessions" if sessions.count else "typical values"
    note(
        f"spread between sessions ({known}): standby ± {CONFIDENCE * sessions.standby:.1f} W, "
        f"friction ± {100 * CONFIDENCE * spread.min():.0f} to "
        f"{100 * CONFIDENCE * spread.max():.0f} %"
    )
    if "current_delay" in result.power.factors:
        delay, std = (1e3 * figure for figure in result.power.factors["current_delay"])
        note(f"power: currents {delay:.2f} ± {CONFIDENCE * std:.2f} ms behind speeds")


# JSON of an identification, as `ur_energy identify --json` prints it.

_CURVE_SPEEDS = (0.1, 0.25, 0.5, 1.0)
"""Speeds at which friction is given, besides the highest [rad/s]."""


def identification_json(result: Identification) -> Mapping[str, Any]:
    """`ur_energy identify --json`."""
    model = result.model
    payload, tensors = model.setup.payload, model.link_tensors
    return {
        "robot": model.robot,
        "setup": {
            "gravity": model.setup.gravity,
            "payload_mass": payload.mass,
            "payload_center_of_mass": payload.center_of_mass,
        },
        "setup_source": model.setup_source,
        "joints": [_joint_json(result, j) for j in range(model.dof)],
        "sessions": {
            "count": model.sessions.count,
            "friction_std": model.sessions.friction_of(model.dof),
            "standby_std": model.sessions.standby,
        },
        "link_tensors": None
        if tensors is None
        else {
            joint.name: {"value": value, "std": std}
            for joint, value, std in zip(model.joints, tensors.values, tensors.std, strict=True)
        },
        "bus_power": _bus_json(result) if model.bus.source == "bus_power" else None,
        "fit": model.fit[0] if model.fit else None,
        "fits": model.fit,
        "validation": model.validation,
        "payload_checks": [
            {
                "bag": entry.source,
                "model_mass": entry.controller_mass,
                "mass": entry.mass,
                "std": entry.std,
                "contradicts": entry.contradicts,
            }
            for entry in result.payload_checks
        ],
        "warnings": list(result.warnings),
        "notes": list(result.notes),
    }


def _joint_json(result: Identification, j: int) -> dict[str, Any]:
    """A joint; friction over speed has deviations for the fitted sessions and for any session."""
    import numpy as np

    from ur_energy_model.model.drives import motor_constant
    from ur_energy_model.model.friction import coulomb_viscous_fit
    from ur_energy_model.model.sessions import friction_curve

    model, fit, robot = result.model, result.joints[j], result.robot
    joint, fastest = model.joints[j], float(robot.max_velocity[j])
    friction = joint.friction
    direct, reverse = friction.coulomb
    spread = float(model.sessions.friction_of(model.dof)[j])
    k_t, resistance = robot.torque_constant[j], robot.winding_resistance[j]
    return {
        "name": joint.name,
        "reflected_inertia": joint.reflected_inertia,
        "torque_constant": joint.torque_constant,
        "viscous": friction.parameters.get("viscous"),
        "coulomb_direct": direct,
        "coulomb_reverse": reverse,
        "friction_law": friction.law.name,
        "friction_parameters": friction.parameters,
        "straight_line": coulomb_viscous_fit(friction, joint.gear_ratio, fastest),
        "friction_reason": joint.friction_reason,
        "friction_comparison": fit.comparison,
        "winding_resistance": joint.winding_resistance,
        "back_emf_constant": joint.back_emf_constant,
        "motor_constant": motor_constant(joint.torque_constant, joint.winding_resistance),
        "robot_file": {
            "reflected_inertia": robot.reflected_inertia[j],
            "torque_constant": k_t,
            "winding_resistance": resistance,
            "motor_constant": motor_constant(k_t, resistance),
        },
        "std": joint.std,
        "source": joint.source,
        "friction_std_this_session": fit.friction_std,
        "friction_session_std": spread,
        "friction_session_scales": fit.session_scales,
        "friction_curve": vars(friction_curve(joint, spread, np.array([*_CURVE_SPEEDS, fastest]))),
    }


def _bus_json(result: Identification) -> dict[str, Any]:
    bus = result.model.bus
    factors = result.power.factors.items()
    return {
        "kind": bus.kind,
        "standby": bus.standby,
        "standby_std": bus.std.get("standby"),
        "driver": bus.driver,
        "residual": bus.residual,
        "mode_power": bus.mode_power,
        "factors": {name: {"value": value, "std": std} for name, (value, std) in factors},
        "comparison": result.power.comparison,
        "reason": bus.reason,
    }


# `ur_energy identify --per-arm`: one model per arm, and `--fleet`: a start from other arms.

_SINGLE = ("gravity", "payload", "validate")
"""Options that state something of one arm."""


def prior_from_fleet(folder: Path, bag: Path, model: EnergyModel) -> ArmPrior | None:
    """Prior of an arm from the models of a folder, and its own first one.

    Args:
        folder: of the models.
        bag: recording of the arm.
        model: identified without the others: it shows whether the arm is like them.

    Raises:
        InputError: no such folder.
        UrEnergyError: the bag cannot be read.
    """
    from ur_energy_model.plant.fleet import Fleet
    from ur_energy_model.plant.identify_arms import fleet_arm
    from ur_energy_model.telemetry.bag.reader import read_info
    from ur_energy_model.telemetry.samples import arm_name

    own = fleet_arm(arm_name(read_info(bag)), model)
    others = [arm for arm in _read(folder) if arm.name != own.name]
    prior = Fleet([*others, own]).prior(own.robot, own.name)
    if prior is None:
        note(f"warning: {folder} has no model of another arm with joints of these sizes")
    return prior


def identify_per_arm(options: argparse.Namespace) -> None:
    """Identify the arms of all bags, save and print."""
    from ur_energy_model.plant.identify_arms import identify_arms, make_folder, save_in

    given = [f"--{name}" for name in _SINGLE if getattr(options, name)]
    if given:
        raise InputError(given[0], "states something of one arm", "leave it out with --per-arm")
    if options.output.suffix == ".yaml":
        remedy = "name a folder for one model per arm, or leave out --per-arm"
        raise InputError(options.output, "is the name of a model file", remedy)
    make_folder(options.output)
    known = _read(options.output if options.fleet is None else options.fleet)
    with progress("identifying") as report, for_each_bag(options) as each:
        result = identify_arms(
            options.bags,
            _options_given(options),
            robot=options.robot,
            known=known,
            each=each,
            progress=report,
        )
    files = {arm.name: save_in(options.output, arm.name, arm.model) for arm in result.arms}
    warn(f"{arm.name}: {warning}" for arm in result.arms for warning in arm.warnings)
    if options.json:
        print_json(_fleet_json(result, files))
    else:
        if files:
            _print_fleet(result)
        count = len(files)
        note(f"{count} model{'' if count == 1 else 's'} written to {options.output}")
    report_failed(result.failed, len(options.bags))


def _read(folder: Path) -> list[FleetArm]:
    from ur_energy_model.plant.identify_arms import read_fleet

    arms, problems = read_fleet(folder)
    warn(problems)
    return arms


def _fleet_json(result: FleetIdentification, files: dict[str, Path]) -> dict[str, Any]:
    constants = ("torque_constant", "reflected_inertia")
    return {
        "arms": [
            {
                "arm": arm.name,
                "model": files[arm.name],
                "robot": arm.model.robot_name,
                "bags": arm.bags,
                "warnings": arm.warnings,
                "joints": {
                    joint.name: {
                        **{name: joint.constants[name] for name in constants},
                        **{f"{name}_std": joint.std[name] for name in constants},
                        "torque_constant_source": joint.source["torque_constant"],
                    }
                    for joint in arm.model.joints
                },
            }
            for arm in result.arms
        ],
        "failed": failed_json(result.failed),
        "fleet": result.fleet.shared(),
    }


def _print_fleet(result: FleetIdentification) -> None:
    from ur_energy_model.energy.meter import CONFIDENCE

    def origin(source: str) -> str:
        if "fleet" in source:
            return "fleet"
        if source.startswith("current"):
            return "itself"
        return "its size" if "size" in source else source

    print_table(
        "arms: torque constant k_t [N m/A], reflected inertia J [kg m^2]",
        ["arm", "joint", "k_t", "± 95 %", "J", "± 95 %", "k_t from"],
        [
            [
                arm.name,
                joint.name,
                joint.torque_constant,
                f"{CONFIDENCE * joint.std['torque_constant']:.2g}",
                joint.reflected_inertia,
                f"{CONFIDENCE * joint.std['reflected_inertia']:.2g}",
                origin(joint.source["torque_constant"]),
            ]
            for arm in result.arms
            for joint in arm.model.joints
        ],
    )
    print_table(
        f"what arms of the fleet ({len(result.fleet.arms)}) have in common",
        ["constant", "joints", "spread [%]", "95 % below", "arms"],
        [
            [
                shared.what.replace("_", " "),
                _in_words(shared.joints),
                f"{100 * shared.spread:.1f}",
                f"{100 * shared.spread_limit:.1f}",
                shared.arms,
            ]
            for shared in result.fleet.shared()
        ],
    )


def _in_words(joints: Sequence[str]) -> str:
    """Joints by type: "ur5e: elbow_joint, wrist_1_joint"."""
    types: dict[str, list[str]] = {}
    for label in joints:
        robot, _, joint = label.partition(": ")
        types.setdefault(robot, []).append(joint)
    return "; ".join(f"{robot}: {', '.join(own)}" for robot, own in types.items())
