# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Whether the connected arm is the one that a motion was recorded on or planned for."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ur_energy_model.arm_names import may_be, product_of_controller
from ur_energy_model.energy.recorded_motion import LONGEST
from ur_energy_model.errors import MotionRefusedError
from ur_energy_model.identification.reflected_inertia import expected_inertia
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.setup import Payload, Setup
from ur_energy_model.telemetry.bag.reader import iterate_bag
from ur_energy_model.telemetry.rtde.dashboard_client import ControllerIdentity
from ur_energy_model.telemetry.samples import Telemetry, concatenate, same_serial
from ur_energy_model.trajectory.kinematics import matrix_of
from ur_energy_model.typing import Array, Indices, Mask

TILT = np.deg2rad(5.0)  # tolerated angle between two mountings [rad]
TOOL_ANGLE = np.deg2rad(5.0)  # tolerated angle between two tools [rad]
MASS = 0.05  # tolerated difference of configured payloads [kg]
CENTRE = 0.02  # tolerated distance of their centres of mass [m]
TOOL = 0.01
"""Tolerated distance between tool centre points [m]: nominal kinematics are off by millimetres."""
NEAR = 0.1  # largest joint distance to the recorded cycle at which the arm stands on it [rad]

_TARGETS = ("target_q", "target_qd", "target_qdd", "target_moment")
_FIELDS = (*_TARGETS, "actual_q", "actual_TCP_pose", "payload", "payload_cog")
_THINNING = 25  # one of so many recorded samples is used
_SAMPLES = 200  # most samples from which mounting and tool are found
_GRAVITY = 9.82  # prior deviation of each component of gravity [m/s^2]: any mounting
_TORQUE_SHARE = 0.02
"""Deviation of target_moment from the nominal dynamics, share of the largest torque."""


@dataclass(frozen=True)
class KnownArm:
    """Properties of an arm that a recording, a plan or a controller shows; None where unknown.

    Attributes:
        source: bag, trajectory or address.
        robot: name of the description, n joints.
        serial: number of the arm.
        gravity: gravity in the base frame [3], m/s^2; it shows the mounting.
        payloads: configured masses and centres of mass [k, 4], kg and m.
        tools: poses of the tool centre point in the flange frame [k, 4, 4].
        positions: positions of the cycle that is run, or the present one [k, n], rad.
    """

    source: str
    robot: str
    serial: str | None = None
    gravity: Array | None = None
    payloads: Array | None = None
    tools: Array | None = None
    positions: Array | None = None


def arm_of_recording(
    bag: str | Path, robot: RobotDescription, positions: Array
) -> KnownArm:
    """The arm of a recording, from its first quarter of an hour.

    Args:
        bag: the recording.
        robot: type of the arm.
        positions: positions of the cycle that is run [k, n], rad.

    Raises:
        RecordingError: the recording cannot be read.
    """
    parts: list[Telemetry] = []
    start: float | None = None
    for batch in iterate_bag(bag, _FIELDS):
        if not len(batch):
            continue
        if start is None:
            start = float(batch.time[0])
        if batch.time[0] - start > LONGEST:
            break
        parts.append(batch.select(np.arange(len(batch)) % _THINNING == 0))
    telemetry = concatenate(parts) if parts else Telemetry(np.empty(0), {})
    return arm_in(telemetry, robot, str(bag), positions=positions)


def arm_of_plan(
    source: str, setup: Setup, robot: str, serial: str | None = None
) -> KnownArm:
    """The arm that a motion is planned for.

    Args:
        source: source of the motion, such as the path of a trajectory.
        setup: mounting and payload that the motion is planned with.
        robot: name of the description.
        serial: number of the arm; None if unknown.
    """
    payload = np.array([[setup.payload.mass, *setup.payload.center_of_mass]])
    return KnownArm(source, robot, serial, np.asarray(setup.gravity, float), payload)


def arm_in(
    telemetry: Telemetry,
    robot: RobotDescription,
    source: str,
    *,
    positions: Array | None = None,
    mounting: Array | None = None,
) -> KnownArm:
    """The arm that telemetry shows, from a bag or an address.

    Args:
        telemetry: some samples.
        robot: type of the arm.
        source: bag or address.
        positions: positions as in `KnownArm`.
        mounting: gravity [3], m/s^2, which applies as far as the telemetry does not show it;
            None for the mounting of the recording, or an upright arm.
    """
    info = telemetry.info
    payloads = _payloads(telemetry)
    if mounting is None:
        mounting = Setup().gravity if info.gravity is None else np.array(info.gravity)
    return KnownArm(
        source=source,
        robot=robot.name,
        serial=info.serial,
        gravity=_gravity(telemetry, robot, payloads, np.asarray(mounting, float)),
        payloads=payloads,
        tools=_tools(telemetry, robot),
        positions=positions,
    )


def differences(expected: KnownArm, found: KnownArm) -> list[str]:
    """How the connected arm differs from the expected one, in words, as far as both are known.

    Args:
        expected: the arm that the motion is for.
        found: the connected arm.
    """
    texts = []
    if expected.robot != found.robot:
        texts.append(f"it is a {found.robot}, not a {expected.robot}")
    if same_serial(expected.serial, found.serial) is False:
        texts.append("the serial number is another one")
    if expected.gravity is not None and found.gravity is not None:
        texts += _other_mounting(expected.gravity, found.gravity)
    if expected.payloads is not None and found.payloads is not None:
        texts += _other_payload(expected.payloads, found.payloads[-1])
    if expected.tools is not None and found.tools is not None:
        texts += _other_tool(expected.tools, found.tools[-1])
    if expected.positions is not None and found.positions is not None:
        distances = np.abs(expected.positions - found.positions[-1]).max(axis=1)
        nearest = float(distances.min())
        if nearest > NEAR:
            texts.append(
                f"it stands {np.rad2deg(nearest):.0f} degrees from the nearest position of the "
                "recorded cycle (move it to the start of the cycle by the pendant)"
            )
    return texts


def _other_mounting(expected: Array, found: Array) -> list[str]:
    """The difference between two directions of gravity [3] in words, if it is large."""
    length = max(np.linalg.norm(expected) * np.linalg.norm(found), 1e-9)
    angle = float(np.arccos(np.clip(expected @ found / length, -1.0, 1.0)))
    if angle <= TILT:
        return []
    degrees = np.rad2deg(angle)
    return [f"its mounting is tilted by {degrees:.0f} degrees from the expected one"]


def _other_payload(expected: Array, found: Array) -> list[str]:
    """The difference from the nearest expected payload in words, if it is large.

    Args:
        expected: configured payloads, mass and centre of mass [k, 4], kg and m.
        found: the present one [4].
    """
    mass_errors = np.abs(expected[:, 0] - found[0])
    center_errors = np.linalg.norm(expected[:, 1:] - found[1:], axis=1)
    both_empty = np.maximum(expected[:, 0], found[0]) < MASS
    alike = (mass_errors < MASS) & (both_empty | (center_errors < CENTRE))
    if alike.any():
        return []
    nearest = expected[mass_errors.argmin()]
    return [f"its payload is {_payload_text(found)}, not {_payload_text(nearest)}"]


def _other_tool(expected: Array, found: Array) -> list[str]:
    """The difference from the nearest expected tool centre point in words, if it is large.

    Args:
        expected: poses in the flange frame [k, 4, 4].
        found: the present pose [4, 4].
    """
    distances = np.linalg.norm(expected[:, :3, 3] - found[:3, 3], axis=1)
    traces = np.einsum("kij,ij->k", expected[:, :3, :3], found[:3, :3])
    angles = np.arccos(np.clip(0.5 * (traces - 1.0), -1.0, 1.0))
    if ((distances <= TOOL) & (angles <= TOOL_ANGLE)).any():
        return []
    nearest = np.lexsort([angles, distances])[0]
    return [
        f"its tool centre point is {1000 * distances[nearest]:.0f} mm and "
        f"{np.rad2deg(angles[nearest]):.0f} degrees from the expected one"
    ]


def unknown(expected: KnownArm, found: KnownArm) -> list[str]:
    """Properties that cannot be compared, because one of the arms does not show them."""
    named = (
        ("serial number", expected.serial, found.serial),
        ("mounting", expected.gravity, found.gravity),
        ("payload", expected.payloads, found.payloads),
        ("tool centre point", expected.tools, found.tools),
    )
    return [name for name, first, second in named if first is None or second is None]


def check_model(
    expected: KnownArm,
    host: str,
    identity: ControllerIdentity,
    version: str | None = None,
) -> None:
    """Refuse an arm of another model, whose shape and limits the checks do not have.

    Args:
        expected: the arm that the motion is for.
        host: address of the controller.
        identity: model and serial number by the controller's dashboard.
        version: version of the controller's software. A UR5 and a UR5e may have the same
            name on the dashboard: the version distinguishes them.

    Raises:
        MotionRefusedError: the connected arm is another model.
    """
    name = identity.model
    major = (version or "").partition(".")[0]
    software = int(major) if major.isdecimal() else None
    if name is None or may_be(expected.robot, name, software):
        return
    if software is not None:
        name = product_of_controller(name, software)
    text = _both_arms(expected, KnownArm(host, name, identity.serial))
    raise MotionRefusedError(
        f"{host}: {text}; connect the right one: a motion is never run on another model"
    )


def compared(
    expected: KnownArm, found: KnownArm, *, another_arm: bool
) -> tuple[str, tuple[str, ...]]:
    """How the connected arm differs from the expected one.

    Args:
        expected: the arm that the motion is for.
        found: the connected arm.
        another_arm: whether another arm is allowed.

    Returns:
        The differences in words, empty without any, and remarks on what is unknown.

    Raises:
        MotionRefusedError: the arm differs, and another arm is not allowed; the message has
            both serial numbers.
    """
    both = _both_arms(expected, found)
    problems = differences(expected, found)
    if problems and not another_arm:
        remedy = f"connect the arm of {expected.source} as it was then"
        if expected.positions is None:  # a plan
            remedy = (
                "connect the arm that is meant, or set its payload (excite: --payload)"
            )
        raise MotionRefusedError(
            f"{found.source}: {both}: {'; '.join(problems)}; {remedy}, or insist with --another-arm"
        )
    missing = ", ".join(unknown(expected, found))
    remarks = (f"{both}; not compared: {missing}",) if missing else ()
    if not problems:
        return "", remarks
    return f"{both}: {'; '.join(problems)}", remarks


def _both_arms(expected: KnownArm, found: KnownArm) -> str:
    """Expected and connected arm in words."""
    return f"the motion is for {_arm_text(expected)}, connected is {_arm_text(found)}"


def _arm_text(arm: KnownArm) -> str:
    """The model of an arm and its serial number in words."""
    if arm.serial is None:
        return f"the {arm.robot} of unknown serial number"
    return f"the {arm.robot} with serial number {arm.serial}"


def _payloads(telemetry: Telemetry) -> Array | None:
    """Distinct configured payloads [k, 4], in order of their first sample."""
    if "payload" not in telemetry or not len(telemetry):
        return None
    mass = telemetry["payload"].reshape(-1, 1)
    centre = telemetry.columns.get("payload_cog", np.zeros((len(mass), 3)))
    rows = np.hstack([mass, centre])
    rows = rows[np.isfinite(rows).all(axis=1)]
    if not len(rows):
        return None
    _, first = np.unique(rows.round(3), axis=0, return_index=True)
    return np.asarray(rows[np.sort(first)])


def _gravity(
    telemetry: Telemetry, robot: RobotDescription, payloads: Array | None, prior: Array
) -> Array | None:
    """Gravity in target_moment, the controller's own inverse dynamics.

    Args:
        telemetry: some samples.
        robot: type of the arm.
        payloads: configured ones [k, 4], kg and m; samples with the last one are used.
        prior: gravity in directions that the positions do not show [3], m/s^2.

    Returns:
        Gravity in the base frame [3], m/s^2; None without target_moment.
    """
    if any(name not in telemetry for name in _TARGETS):
        return None
    payload = Payload()
    used = np.ones(len(telemetry), dtype=bool)
    if payloads is not None:
        payload = Payload(payloads[-1, 0], payloads[-1, 1:])
        used = np.abs(telemetry["payload"] - payload.mass) < MASS
    targets = [telemetry[name] for name in _TARGETS]
    some = _some(*targets, used=used)
    if not len(some):
        return None
    q, qd, qdd, torque = (values[some] for values in targets)
    arm = ArmDynamics(robot, Setup(np.zeros(3), payload))
    of_motion = arm.inverse_dynamics(q, qd, qdd) + expected_inertia(robot).value * qdd
    of_gravity = torque - of_motion
    std = _TORQUE_SHARE * np.where(np.isfinite(robot.max_torque), robot.max_torque, 100.0)
    rows = (arm.gravity_regressor(q) / std[:, None]).reshape(-1, 3)
    rest = (of_gravity / std).ravel() - rows @ prior
    change = np.linalg.solve(rows.T @ rows + np.eye(3) / _GRAVITY**2, rows.T @ rest)
    return np.asarray(prior + change)


def _tools(telemetry: Telemetry, robot: RobotDescription) -> Array | None:
    """Poses of the tool centre point in the flange frame [k, 4, 4]."""
    q = telemetry.columns.get("actual_q")
    poses = telemetry.columns.get("actual_TCP_pose")
    if q is None or poses is None:
        return None
    some = _some(q, poses)
    if not len(some):
        return None
    flange = np.linalg.inv(ArmDynamics(robot).flange_pose(q[some]))
    tools = np.stack([matrix_of(pose) for pose in poses[some]])
    return np.asarray(flange @ tools)


def _some(*columns: Array, used: Mask | bool = True) -> Indices:
    """Indices of at most `_SAMPLES` samples whose values are all known, the last one included."""
    found = np.flatnonzero(used & np.isfinite(np.hstack(columns)).all(axis=1))
    step = max(1, math.ceil(len(found) / _SAMPLES))
    return found[::-step][::-1]


def _payload_text(payload: Array) -> str:
    """A payload [4] in words, with its centre of mass as `--payload` takes it."""
    mass, *center = payload.tolist()
    text = f"{mass:.3g} kg"
    if mass >= MASS:
        text += f" at {', '.join(f'{value:.3g}' for value in center)}"
    return text
