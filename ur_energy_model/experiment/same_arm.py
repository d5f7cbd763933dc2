# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Whether the connected arm is the one that a motion was recorded on or planned for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ur_energy_model.arm_names import may_be, product_of_controller
from ur_energy_model.energy.recorded_motion import LONGEST
from ur_energy_model.errors import MotionRefusedError
from ur_energy_model.identification.torque_constants import expected_inertia
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.setup import Payload, Setup
from ur_energy_model.telemetry.bag.reader import iterate_bag
from ur_energy_model.telemetry.rtde.dashboard_client import ControllerIdentity
from ur_energy_model.telemetry.samples import Telemetry, concatenate, same_serial
from ur_energy_model.trajectory.kinematics import matrix_of
from ur_energy_model.typing import Array, Indices, Mask

TILT = np.deg2rad(5.0)
TOOL_ANGLE = np.deg2rad(5.0)
"""Tolerated angles between two mountings and between two tools [rad]."""
MASS = 0.05
CENTRE = 0.02
"""Tolerated difference of configured payloads [kg] and of their centres of mass [m]."""
TOOL = 0.01
"""Tolerated distance between tool centre points [m]: nominal kinematics are off by millimetres."""
# largest joint distance to the recorded cycle at which the arm stands on it [rad]
NEAR = 0.1

_TARGETS = ("target_q", "target_qd", "target_qdd", "target_moment")
_FIELDS = (*_TARGETS, "actual_q", "actual_TCP_pose", "payload", "payload_cog")
_THINNING = 25
_SAMPLES = 200
"""One of so many recorded samples is used; most samples from which mounting and tool are found."""
_GRAVITY = 9.82  # prior deviation of each component of gravity [m/s^2]: any mounting
_TORQUE_SHARE = 0.02
"""Deviation of target_moment from the nominal dynamics, share of the largest torque."""


@dataclass(frozen=True)
class KnownArm:
    """What a recording, a plan or a controller shows of its arm; None where it shows nothing.

    Attributes:
        source: bag, trajectory or address.
        robot: name of the description, n joints.
        serial: number of the arm.
        gravity: in the base frame [3], m/s^2; it shows the mounting.
        payloads: configured mass and centre of mass [k, 4], kg and m.
        tools: poses of the flange's tool centre point [k, 4, 4].
        positions: of the cycle that is run, or the present one [k, n], rad.
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
    """The arm of a recording, of which the first quarter of an hour is read.

    Args:
        bag: the recording.
        robot: type of the arm.
        positions: of the cycle that is run [k, n], rad.

    Raises:
        RecordingError: it cannot be read.
    """
    parts: list[Telemetry] = []
    start: float | None = None
    for batch in iterate_bag(bag, _FIELDS):
        if not len(batch):
            continue
        start = float(batch.time[0]) if start is None else start
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
        source: of the motion, such as the path of a trajectory.
        setup: mounting and payload that it is planned with.
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
        positions: as in `KnownArm`.
        mounting: gravity [3], m/s^2, which applies as far as the telemetry does not show it;
            None for that of the recording, or an upright arm.
    """
    info = telemetry.info
    payloads = _payloads(telemetry)
    if mounting is None:
        mounting = Setup().gravity if info.gravity is None else np.array(info.gravity)
    return KnownArm(
        source,
        robot.name,
        info.serial,
        _gravity(telemetry, robot, payloads, np.asarray(mounting, float)),
        payloads,
        _tools(telemetry, robot),
        positions,
    )


def differences(expected: KnownArm, found: KnownArm) -> list[str]:
    """How the connected arm differs from the expected one, in words, as far as both are known."""
    out = []
    if expected.robot != found.robot:
        out.append(f"it is a {found.robot}, not a {expected.robot}")
    if same_serial(expected.serial, found.serial) is False:
        out.append("the serial number is another one")
    if expected.gravity is not None and found.gravity is not None:
        first = expected.gravity
        second = found.gravity
        length = max(np.linalg.norm(first) * np.linalg.norm(second), 1e-9)
        angle = float(np.arccos(np.clip(first @ second / length, -1.0, 1.0)))
        if angle > TILT:
            out.append(
                f"its mounting is tilted by {np.rad2deg(angle):.0f} degrees from the expected one"
            )
    if expected.payloads is not None and found.payloads is not None:
        masses = expected.payloads[:, 0]
        centers = expected.payloads[:, 1:]
        now = found.payloads[-1]
        empty = np.maximum(masses, now[0]) < MASS
        near = empty | (np.linalg.norm(centers - now[1:], axis=1) < CENTRE)
        if not (near & (np.abs(masses - now[0]) < MASS)).any():
            other = expected.payloads[np.abs(masses - now[0]).argmin()]
            out.append(f"its payload is {_payload_text(now)}, not {_payload_text(other)}")
    if expected.tools is not None and found.tools is not None:
        tools = expected.tools
        here = found.tools[-1]
        ways = np.linalg.norm(tools[:, :3, 3] - here[:3, 3], axis=1)
        turn = 0.5 * (np.einsum("kij,ij->k", tools[:, :3, :3], here[:3, :3]) - 1.0)
        turns = np.arccos(np.clip(turn, -1.0, 1.0))
        if not ((ways <= TOOL) & (turns <= TOOL_ANGLE)).any():
            nearest = np.lexsort([turns, ways])[0]
            out.append(
                f"its tool centre point is {1000 * ways[nearest]:.0f} mm and "
                f"{np.rad2deg(turns[nearest]):.0f} degrees from the expected one"
            )
    if expected.positions is not None and found.positions is not None:
        away = float(np.abs(expected.positions - found.positions[-1]).max(axis=1).min())
        if away > NEAR:
            out.append(
                f"it stands {np.rad2deg(away):.0f} degrees from the nearest position of the "
                "recorded cycle (move it to the start of the cycle by the pendant)"
            )
    return out


def unknown(expected: KnownArm, found: KnownArm) -> list[str]:
    """What cannot be compared, in words."""
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
    """Refuse an arm of another model; shape and limits of the checks would be wrong for it.

    A UR5 and a UR5e may have the same name on the dashboard; the controller's version,
    where given, distinguishes them.

    Raises:
        MotionRefusedError: it is another model.
    """
    major = (version or "").partition(".")[0]
    software = int(major) if major.isdecimal() else None
    other = None
    if identity.model is not None and not may_be(
        expected.robot, identity.model, software
    ):
        other = identity.model
        if software is not None:
            other = product_of_controller(identity.model, software)
    if other is not None:
        text = _both_arms(expected, KnownArm(host, other, identity.serial))
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
        MotionRefusedError: it differs, and another arm is not allowed; with both serial
            numbers.
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
    return f"{both}: {'; '.join(problems)}" if problems else "", remarks


def _both_arms(expected: KnownArm, found: KnownArm) -> str:
    """Expected and connected arm, with serial numbers."""
    first, second = (
        f"the {arm.robot} "
        + (
            "of unknown serial number"
            if arm.serial is None
            else f"with serial number {arm.serial}"
        )
        for arm in (expected, found)
    )
    return f"the motion is for {first}, connected is {second}"


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
    """Gravity [3], m/s^2, in target_moment, the controller's own inverse dynamics.

    Directions that the positions do not show are those of the prior.
    """
    if any(name not in telemetry for name in _TARGETS):
        return None
    payload = Payload()
    used = np.ones(len(telemetry), dtype=bool)
    if payloads is not None:
        payload = Payload(payloads[-1, 0], payloads[-1, 1:])
        used = np.abs(telemetry["payload"] - payload.mass) < MASS
    some = _some(*(telemetry[name] for name in _TARGETS), used=used)
    if not len(some):
        return None
    q, qd, qdd, torque = (telemetry[name][some] for name in _TARGETS)
    arm = ArmDynamics(robot, Setup(np.zeros(3), payload))
    torque = (
        torque - arm.inverse_dynamics(q, qd, qdd) - expected_inertia(robot).value * qdd
    )
    std = _TORQUE_SHARE * np.where(np.isfinite(robot.max_torque), robot.max_torque, 100.0)
    rows = (arm.gravity_regressor(q) / std[:, None]).reshape(-1, 3)
    rest = (torque / std).ravel() - rows @ prior
    change = np.linalg.solve(rows.T @ rows + np.eye(3) / _GRAVITY**2, rows.T @ rest)
    return np.asarray(prior + change)


def _tools(telemetry: Telemetry, robot: RobotDescription) -> Array | None:
    """Poses of the tool centre point in the flange frame [k, 4, 4]."""
    q, poses = (telemetry.columns.get(name) for name in ("actual_q", "actual_TCP_pose"))
    if q is None or poses is None:
        return None
    some = _some(q, poses)
    if not len(some):
        return None
    flange = np.linalg.inv(ArmDynamics(robot).flange_pose(q[some]))
    return np.asarray(flange @ np.stack([matrix_of(pose) for pose in poses[some]]))


def _some(*columns: Array, used: Mask | bool = True) -> Indices:
    """Indices of some samples whose values are all known, the last one among them."""
    found = np.flatnonzero(used & np.isfinite(np.hstack(columns)).all(axis=1))
    return found[:: -max(1, -(-len(found) // _SAMPLES))][::-1]


def _payload_text(payload: Array) -> str:
    """As `--payload` takes it, with its unit."""
    centre = (
        ""
        if payload[0] < MASS
        else " at " + ", ".join(f"{each:.3g}" for each in payload[1:])
    )
    return f"{payload[0]:.3g} kg{centre}"
