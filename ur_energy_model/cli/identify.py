# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""`ur_energy identify`: models of arms from recordings.

What is identified, and how, is in `identification.pipeline`; here are the options of the
command, what rooms add to it, the tables for people and the JSON for programs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

import numpy as np

from ur_energy_model.cli.arguments import (
    CommandBags,
    failed_json,
    report_failed,
    stated_payload,
)
from ur_energy_model.cli.evaluate import print_metrics
from ur_energy_model.cli.output import (
    note,
    picked,
    print_json,
    print_line,
    print_objects,
    print_table,
    progress,
    warn,
)
from ur_energy_model.cli.tables import PAYLOAD, IdentifyOptions
from ur_energy_model.energy.meter import CONFIDENCE
from ur_energy_model.errors import InputError
from ur_energy_model.files import check_output
from ur_energy_model.identification.arm_fit import IdentificationOptions
from ur_energy_model.identification.assembly import ArmPrior
from ur_energy_model.identification.pipeline import Identification, identify
from ur_energy_model.model.drives import motor_constant
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.friction import coulomb_viscous_fit
from ur_energy_model.model.model_file import save_model
from ur_energy_model.model.robots import RobotDescription, check_payload, load_robot
from ur_energy_model.model.sessions import friction_curve
from ur_energy_model.model.setup import Payload, Setup
from ur_energy_model.model.wall import STATES, WallModel
from ur_energy_model.ranges import GRAVITY
from ur_energy_model.report.model_tables import drive_table
from ur_energy_model.rooms import Given, extensions
from ur_energy_model.telemetry.bag.reader import recorded_robot

IDENTIFICATION = "identify"
"""Subject of the rooms' extensions for `ur_energy identify`, each an `Addition`."""


class Addition(Protocol):
    """What a room adds to `ur_energy identify`."""

    def instead(self, given: Given, options: IdentificationOptions) -> bool:
        """Do something in place of the identification of one arm, if it is asked for.

        Args:
            given: options of the command, and of the extension.
            options: options of the identification, without setup and payload of an arm.

        Returns:
            Whether it was asked for, and is done.
        """
        ...

    def improved(
        self,
        given: Given,
        result: Identification,
        again: Callable[[ArmPrior], Identification],
    ) -> Identification:
        """The identification with a prior of the room if it is asked for, else the result.

        Args:
            given: options of the command.
            result: identification by the recordings alone.
            again: repeats the identification with a prior.
        """
        ...


def run(given: Given) -> None:
    """`ur_energy identify`: identify, save and print.

    Raises:
        UrEnergyError: a recording, the robot or an option cannot be used, or recordings
            failed; the model of the others is saved before.
    """
    options = given.of(IdentifyOptions)
    additions: list[Addition] = [each.load() for each in extensions(IDENTIFICATION)]
    common = _common_options(options)
    for addition in additions:
        if addition.instead(given, common):
            return
    check_output(options.output, overwrite=options.overwrite)
    robot = load_robot(options.robot or recorded_robot(options.bags))
    payload = None
    if not isinstance(options.payload, str):
        payload = stated_payload(options.payload)
    if payload is not None:
        warn(check_payload(robot, payload.mass, PAYLOAD))
    wanted = replace(
        common,
        setup=_given_setup(options, robot, payload),
        payload=payload,
    )
    all_bags = (*options.bags, *options.validate)
    work_on = CommandBags(given, options.bags, options.workers)
    with progress("identifying") as report, ExitStack() as opened:
        each = None
        if work_on.is_distributed:
            executor = replace(work_on, bags=all_bags).executor()
            each = opened.enter_context(executor)
        work = partial(
            identify,
            options.bags,
            robot,
            validate=options.validate,
            progress=report,
            each=each,
        )
        result = work(wanted)

        def again(prior: ArmPrior) -> Identification:
            """The identification of the same recordings, with a prior."""
            return work(replace(wanted, prior=prior))

        for addition in additions:
            result = addition.improved(given, result, again)
    save_model(result.model, options.output)
    warn(result.warnings)
    for line in result.notes:
        note(line)
    if options.json:
        several = len(all_bags) > 1
        failed = {"failed": failed_json(result.failed)} if several else {}
        print_json({**identification_json(result), **failed})
    else:
        _print(result)
        for entry in (*result.model.fit, *result.model.validation):
            print_metrics(entry, result.model.joints)
        note(f"model written to {options.output}")
    report_failed(result.failed, len(all_bags))


def _common_options(options: IdentifyOptions) -> IdentificationOptions:
    """Settings of an identification that are the same for one arm and for many.

    Setup and payload belong to one arm, see `_given_setup`.
    """
    return IdentificationOptions(
        friction=options.friction,
        power_model=options.power_model,
        identify_tensors=options.link_tensors == "identify",
        same_arm=options.same_arm,
    )


def _given_setup(
    options: IdentifyOptions, robot: RobotDescription, payload: Payload | None
) -> Setup | None:
    """Mounting and payload as the user states them.

    Args:
        options: options of the command.
        robot: description of the arm.
        payload: payload that the user states; None if the user states none.

    Returns:
        None if neither is stated: both are then estimated.

    Raises:
        InputError: --gravity does not have the magnitude of gravity.
    """
    if options.gravity is None and payload is None:
        return None
    gravity = options.gravity or (0.0, 0.0, -robot.controller_gravity)
    magnitude = float(np.linalg.norm(gravity))
    if not GRAVITY.low <= magnitude <= GRAVITY.high:
        problem = f"has the magnitude {magnitude:g}, not that of gravity"
        raise InputError("--gravity", problem, "give X Y Z in m/s^2")
    return Setup(np.array(gravity), Payload() if payload is None else payload)


def _print(result: Identification) -> None:
    """Print the constants with 95 % intervals, and how they were found.

    Inertia [kg m^2] is on the joint side, torque constants [N m/A] are on the motor side.
    """
    model = result.model
    print_objects(
        f"{model.robot_name}: identified constants (joint side inertia, motor side the rest)",
        model.joints,
        {
            "joint": "name",
            "inertia": "reflected_inertia",
            "k_t": "torque_constant",
            "± 95 %": lambda joint: CONFIDENCE * joint.std["torque_constant"],
            "friction law": lambda joint: joint.friction.law.name,
            "source of k_t": lambda joint: joint.source["torque_constant"],
        },
    )
    print_table(*drive_table(model))
    for joint in model.joints:
        print_line(f"{joint.name}: {joint.friction.law.name}: {joint.friction_reason}")
    print_line(
        f"setup ({model.setup_source}): gravity {model.setup.gravity.round(3).tolist()}, "
        f"payload {model.setup.payload.mass:.3f} kg"
    )
    for entry in model.provenance["bags"]:
        delay = 1e3 * entry["position_delay"]
        print_line(
            f"{entry['path']}: {entry['rate']:.0f} Hz, filter cut-off "
            f"{entry['cutoff']:.1f} Hz, actual_q {delay:.1f} ms behind target_q"
        )
    print_line(f"power: standby {model.bus.standby:.2f} W; {model.bus.reason}")
    if model.wall is not None:
        print_line(f"wall: {_wall_words(model.wall)}")
    print_line(f"spread between sessions {_spread_words(model)}")
    if "current_delay" in result.power.factors:
        delay, std = result.power.factors["current_delay"]
        half_width = 1e3 * CONFIDENCE * std
        print_line(
            f"power: currents {1e3 * delay:.2f} ± {half_width:.2f} ms behind speeds"
        )


_WALL_PARAMETERS = (*STATES, "proportional_std", "quadratic_std")
"""Names of the entries of `WallModel.std`: states of the control box, then losses."""


def _wall_words(wall: WallModel) -> str:
    """Control box and supply in words, with 95 % intervals.

    Args:
        wall: model of box and supply that a power meter at the mains has shown.
    """
    std = dict(zip(_WALL_PARAMETERS, wall.std, strict=True))
    box = wall.box["running"]
    box_half = CONFIDENCE * std["running"]
    proportional_half = CONFIDENCE * std["proportional_std"]
    return (
        f"control box {box:.1f} ± {box_half:.1f} W while running, "
        f"{wall.proportional:.3f} ± {proportional_half:.3f} W per W at the bus; energy of "
        f"times held out within {wall.held_out_error_percent:.2g} %; meter "
        f"{wall.delay:.1f} s behind"
    )


def _spread_words(model: EnergyModel) -> str:
    """Spread of standby [W] and friction [%] between sessions, with 95 % confidence.

    Without sessions of this arm, the values are those that are typical of others.
    """
    sessions = model.sessions
    known = "typical values"
    if sessions.count:
        known = f"from {sessions.count} sessions"
    friction = 100 * CONFIDENCE * sessions.friction_of(model.dof)
    return (
        f"({known}): standby ± {CONFIDENCE * sessions.standby:.1f} W, friction ± "
        f"{friction.min():.0f} to {friction.max():.0f} %"
    )


# JSON of an identification.

_CURVE_SPEEDS = (0.1, 0.25, 0.5, 1.0)
"""Joint speeds at which friction is given, besides the highest [rad/s]."""
_CONSTANTS = "torque_constant reflected_inertia winding_resistance back_emf_constant"
"""Attributes of a joint's model that the JSON has under the same names."""


def identification_json(result: Identification) -> Mapping[str, Any]:
    """The JSON of `ur_energy identify`.

    Inertia and friction are of the joint side, torque constants, resistances and voltages
    of the motor side; each "std" is a standard deviation.

    Args:
        result: result of the identification.
    """
    model = result.model
    sessions = model.sessions
    setup = model.setup
    return {
        "robot": model.robot,
        "setup": {
            "gravity": setup.gravity,
            "payload_mass": setup.payload.mass,
            "payload_center_of_mass": setup.payload.center_of_mass,
        },
        "setup_source": model.setup_source,
        "controller_constants": model.controller_constants,
        "joints": [_joint_json(result, j) for j in range(model.dof)],
        "sessions": {
            "count": sessions.count,
            "friction_std": sessions.friction_of(model.dof),
            "standby_std": sessions.standby,
        },
        "link_tensors": _tensors_json(model),
        "bus_power": _bus_json(result),
        "wall": _wall_json(model.wall),
        "fit": model.fit[0] if model.fit else None,
        "fits": model.fit,
        "validation": model.validation,
        "payload_checks": [
            picked(each, "bag=source model_mass=controller_mass mass std contradicts")
            for each in result.payload_checks
        ],
        **picked(result, "warnings notes"),
        "contradictions": [each.as_json() for each in result.contradictions],
    }


def _tensors_json(model: EnergyModel) -> dict[str, Any] | None:
    """Identified inertia tensors of the links [kg m^2]; None for the robot file's."""
    tensors = model.link_tensors
    if tensors is None:
        return None
    rows = zip(model.joints, tensors.values, tensors.std, strict=True)
    return {joint.name: {"value": value, "std": std} for joint, value, std in rows}


def _bus_json(result: Identification) -> dict[str, Any] | None:
    """Power at the bus and the factors of its model, as JSON.

    Args:
        result: result of the identification.

    Returns:
        Powers in W; None where no recording has the bus power.
    """
    bus = result.model.bus
    if bus.source != "bus_power":
        return None
    factors: dict[str, Any] = {}
    for name, (value, std) in result.power.factors.items():
        factors[name] = {"value": value, "std": std}
    return {
        **picked(bus, "kind standby driver residual mode_power"),
        "standby_std": bus.std.get("standby"),
        "factors": factors,
        "comparison": result.power.comparison,
        "reason": bus.reason,
    }


def _wall_json(wall: WallModel | None) -> dict[str, Any] | None:
    """Control box and efficiency as a power meter showed them, as JSON.

    Args:
        wall: model of box and supply; None without a meter.

    Returns:
        Powers of the box in W, efficiency in W per W at the bus; None without a meter.
    """
    if wall is None:
        return None
    std = dict(zip(_WALL_PARAMETERS, wall.std, strict=True))
    return {
        "box": wall.box,
        "box_std": {state: std.pop(state) for state in wall.box},
        "efficiency": {**picked(wall, "proportional quadratic"), **std},
        "held_out_error_percent": wall.held_out_error_percent,
        "meter": picked(wall, "delay averaging resolution"),
    }


def _joint_json(result: Identification, j: int) -> dict[str, Any]:
    """The constants of a joint, with the constants of the robot file for comparison.

    Friction over speed has standard deviations for the fitted sessions and for any
    session.

    Args:
        result: result of the identification.
        j: index of the joint.
    """
    model = result.model
    robot = result.robot
    joint = model.joints[j]
    fastest = float(robot.max_velocity[j])
    friction = joint.friction
    direct, reverse = friction.coulomb
    spread = float(model.sessions.friction_of(model.dof)[j])
    of_file = {
        "reflected_inertia": robot.reflected_inertia[j],
        "torque_constant": robot.torque_constant[j],
        "winding_resistance": robot.winding_resistance[j],
        "motor_constant": motor_constant(
            robot.torque_constant[j], robot.winding_resistance[j]
        ),
    }
    return {
        **picked(joint, f"name {_CONSTANTS} friction_reason std source"),
        "viscous": friction.parameters.get("viscous"),
        "coulomb_direct": direct,
        "coulomb_reverse": reverse,
        "friction_law": friction.law.name,
        "friction_parameters": friction.parameters,
        "friction_shape": friction.all_shape,
        "straight_line": coulomb_viscous_fit(friction, joint.gear_ratio, fastest),
        "motor_constant": motor_constant(joint.torque_constant, joint.winding_resistance),
        "robot_file": of_file,
        **picked(
            result.joints[j],
            "friction_comparison=comparison friction_std_this_session=friction_std "
            "friction_session_scales=session_scales friction_shape_std=shape_std",
        ),
        "friction_session_std": spread,
        "friction_curve": friction_curve(
            joint, spread, np.array([*_CURVE_SPEEDS, fastest])
        ),
    }
