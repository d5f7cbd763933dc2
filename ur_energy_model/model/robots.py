# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""RobotDescription: the nominal constants of an arm, read from a robot file (config/robots)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ur_energy_model import ranges
from ur_energy_model.arm_names import is_reported_model, product_name
from ur_energy_model.errors import InputError, RobotFileError
from ur_energy_model.files import config_file
from ur_energy_model.typed_numbers import likely_form
from ur_energy_model.typing import Array, Mask
from ur_energy_model.yaml_reader import (
    Origin,
    Quantity,
    Record,
    YamlTree,
    array,
    choice,
    text,
    unique_names,
)

SCHEMA = 1
CONVENTIONS = ("standard", "modified", "urdf")
GENERATIONS = ("e-series", "cb3", "other")
MOST_LINKS = 50
"""Most links of an arm, fixed ones included; computing time grows with their square."""
ANY_ROBOT = "ur5e"
"""Robot whose joint names all robots of the maker share."""
_REMEDY = "see docs/generic_models.md"
_TENSOR = np.array([[0, 1, 2], [1, 3, 4], [2, 4, 5]])
"""Indices of a symmetric tensor's entries in (xx, xy, xz, yy, yz, zz)."""
_SIZE = Quantity("1", 0, 20)
_LIMITS = (
    ("position", ranges.POSITION_LIMIT, 2 * np.pi),
    ("velocity", ranges.SPEED, np.pi),
    ("acceleration", ranges.ACCELERATION, 6.0),
    ("torque", ranges.TORQUE, np.inf),
)
"""Keys of the limits, their ranges and defaults."""
_DRIVE = {
    "rotor_inertia": ranges.DRIVE_INERTIA,
    "reducer_inertia": ranges.DRIVE_INERTIA,
    "winding_resistance": replace(ranges.RESISTANCE, positive=True),
    "torque_constant": ranges.TORQUE_CONSTANT,
    "back_emf_constant": replace(ranges.BACK_EMF, positive=True),
}
"""Constants of the motors, which are NaN where unknown."""


@dataclass(frozen=True)
class RobotDescription:
    """Nominal constants of a serial arm with n joints.

    Constants of the drives are arrays [n]; unknown entries are NaN.
    """

    name: str  #: such as "ur5e"
    generation: str  #: "e-series", "cb3" or "other"
    rate: float  #: controller rate [Hz]
    joint_names: tuple[str, ...]  #: n names, as in the robot's URDF
    # : of the Denavit-Hartenberg parameters; "standard" is distal, "modified" proximal
    # (Craig). : "urdf" has origins instead
    convention: str
    #: d, a, alpha, theta: DH parameters [m, m, rad, rad] of all links, [links]
    d: Array
    a: Array
    alpha: Array
    theta: Array
    # : pose of each joint in the frame of the previous link [links, 4, 4]; it rotates
    # about its z : axis. Only for "urdf"
    origin: Array
    fixed: Mask  #: whether the link's joint is fixed [links]
    mass: Array  #: links [links], kg
    # : in the link's frame (DH frame, or URDF joint frame) [links, 3], m
    center_of_mass: Array
    # : about the centre of mass, axes of the same frame [links, 3, 3], kg m^2
    inertia: Array
    # : max_position, max_velocity, max_acceleration, max_torque: joint side [n], rad,
    # rad/s, : rad/s^2, N m
    max_position: Array
    max_velocity: Array
    max_acceleration: Array
    max_torque: Array
    max_payload: float  #: by the data sheet [kg]; NaN if it is not published
    gear_ratio: Array  #: motor turns per joint turn [n]
    rotor_inertia: Array  #: motor side, reducer included [n], kg m^2
    reducer_inertia: Array  #: motor side, catalogue [n], kg m^2
    winding_resistance: Array  #: [n], ohm
    torque_constant: Array  #: motor side [n], N m/A
    back_emf_constant: Array  #: motor side [n], V s/rad
    friction_temperature_model: Array  #: [n, 4], see config/robots
    controller_gravity: float  #: magnitude that the controller assumes [m/s^2]
    nominal_voltage: float  #: of the bus [V]
    standby_power: float  #: brakes released, standstill [W]; NaN if unknown
    # : argument for `load_robot`: the name of a description of the package, or the
    # absolute path of : the user's file
    source: str = ""

    @property
    def dof(self) -> int:
        """Number of moving joints n."""
        return len(self.joint_names)

    @property
    def reflected_inertia(self) -> Array:
        """Nominal motor and reducer inertia, joint side [n], kg m^2 (NaN where unknown)."""
        return np.asarray(self.gear_ratio**2 * self.rotor_inertia)

    @property
    def rated_torque(self) -> Array:
        """Rated torque of each joint, joint side [n], N m; UNRATED_TORQUE where it is unknown."""
        return np.where(np.isfinite(self.max_torque), self.max_torque, UNRATED_TORQUE)


UNRATED_TORQUE = 54.0  # rated torque of a joint whose robot file has none [N m]

OVERLOAD = 3.0
"""Largest payload that is believed, relative to that of the data sheet. The torques of an arm are
rated to carry that payload at full reach together with its own links; folded up, an arm
lifts up to some three times as much."""


def check_payload(robot: RobotDescription, mass: float, source: str) -> tuple[str, ...]:
    """Compare a payload that a user states with what the arm can carry.

    Args:
        robot: the arm.
        mass: of the payload [kg].
        source: who states it, such as the name of the option.

    Returns:
        A warning where it is more than the data sheet of the arm allows; nothing
        otherwise, or where that is not published.

    Raises:
        InputError: the arm cannot carry it.
    """
    if not mass > robot.max_payload:  # False where it is NaN
        return ()
    allowed = f"{robot.max_payload:g} kg, the largest payload of a {robot.name}"
    if mass <= OVERLOAD * robot.max_payload:
        return (f"{source}: {mass:g} kg is more than {allowed}",)
    meant = likely_form(mass, "kg", 0.0, OVERLOAD * robot.max_payload)
    remedy = "give the mass in kg" if meant is None else f"give the mass in kg: {meant}"
    raise InputError(source, f"{mass:g} kg is far more than {allowed}", remedy)


def available_robots() -> tuple[str, ...]:
    """Names of the robot descriptions that come with the package."""
    return tuple(sorted(path.stem for path in config_file("robots").glob("*.yaml")))


def load_robot(name_or_file: str | Path) -> RobotDescription:
    """Robot description by name ("ur5e", "UR7"), or from a robot file (YAML) or a URDF.

    Raises:
        RobotFileError: unknown name, unreadable file, or an impossible value.
    """
    path = Path(name_or_file)
    if path.suffix == ".urdf":
        from ur_energy_model.model.urdf_import import robot_content  # slow to import

        origin = Origin(path, RobotFileError, _REMEDY)
        return _parse(path, YamlTree.from_content(robot_content(path), origin))
    if path.suffix not in {".yaml", ".yml"}:
        path = config_file("robots", f"{product_name(str(name_or_file))}.yaml")
        if not path.is_file() or path.parent != config_file("robots"):
            if is_reported_model(str(name_or_file)):
                problem = "is an arm type that this package has no constants of"
                remedy = (
                    "write a robot file of it (docs/generic_models.md, Another arm), identify a "
                    "model with --robot FILE.yaml, and give that"
                )
                raise RobotFileError(str(name_or_file), problem, remedy)
            remedy = f"use one of {', '.join(available_robots())} or the path of a robot YAML file"
            raise RobotFileError(str(name_or_file), "no such robot", remedy)
    return _parse(path, YamlTree.read(path, RobotFileError, _REMEDY))


def _parse(path: Path, root: YamlTree) -> RobotDescription:
    with Record(root) as keys:

        def section(name: str) -> Record:
            """An optional section; without keys if it is missing or null."""
            return Record(keys.get(name) or YamlTree.from_content({}, root.origin))

        keys.schema(SCHEMA, default=SCHEMA)
        name = keys.read("name", _name, path.stem)
        generation = keys.read("generation", choice(GENERATIONS), "other")
        rate = keys.read("rate", ranges.RATE, 500.0)
        names = unique_names(keys["joint_names"])
        gravity = keys.read("controller_gravity", ranges.GRAVITY, 9.82)
        with Record(keys["kinematics"]) as part:
            values = _chain(part, len(names))
        links = len(values["fixed"])
        n = len(names)
        with Record(keys["links"]) as part:
            values["mass"] = array(ranges.MASS, links)(part["mass"])
            values["center_of_mass"] = array(ranges.LENGTH, links, 3)(
                part["center_of_mass"]
            )
            values["inertia"] = tensors = np.zeros((links, 3, 3))
            node = part.get("inertia")
            for k, item in enumerate([] if node is None else node.items(links)):
                tensors[k] = array(ranges.INERTIA_ENTRY, 6)(item)[_TENSOR]
                ranges.check_tensor(item, tensors[k], values["mass"][k])
        with section("limits") as part:
            for key, quantity, default in _LIMITS:
                values[f"max_{key}"] = _each(part, key, quantity, n, default)
            rated = replace(ranges.PAYLOAD_MASS, positive=True)
            values["max_payload"] = part.read("payload", rated, float("nan"))
        with section("drive") as part:
            _each(part, "joint_size", _SIZE, n, np.nan)  # documents the file only
            values["gear_ratio"] = _each(part, "gear_ratio", ranges.GEAR_RATIO, n, 1.0)
            for key, quantity in _DRIVE.items():
                values[key] = _each(part, key, quantity, n, np.nan)
            values["friction_temperature_model"] = warmth = np.full((n, 4), np.nan)
            node = part.get("friction_temperature_model")
            for j, item in enumerate([] if node is None else node.items(n)):
                if not (item.is_null or all(entry.is_null for entry in item.items(4))):
                    warmth[j] = ranges.temperature_model(item)
        with section("bus") as part:
            voltage = part.read("nominal_voltage", ranges.VOLTAGE, 48.0)
            standby = part.read("standby_power", ranges.POWER, float("nan"))
    return RobotDescription(
        name=name,
        generation=generation,
        rate=rate,
        joint_names=tuple(names),
        controller_gravity=gravity,
        nominal_voltage=voltage,
        standby_power=standby,
        source=path.stem if path.parent == config_file("robots") else str(path.resolve()),
        **values,
    )


def _name(tree: YamlTree) -> str:
    """Name of an arm, which is also that of its geometry and excitation files."""
    name = text(tree)
    if not name.isprintable() or "/" in name or name.startswith(".") or len(name) > 100:
        raise tree.refuse("must be a short name without slashes")
    return name


def _each(keys: Record, name: str, quantity: Quantity, n: int, default: float) -> Array:
    """Optional values of n joints; the default where they are unknown."""
    values = keys.read(name, array(quantity, n, unknown=True), np.full(n, np.nan))
    return np.where(np.isnan(values), default, values)


def _chain(keys: Record, joints: int) -> dict[str, Any]:
    """DH parameters, or joint poses, of all links."""
    convention = choice(CONVENTIONS)(keys["convention"])
    along = keys["xyz" if convention == "urdf" else "d"]
    links = len(along.items())
    if max(links, joints) > MOST_LINKS:
        raise along.refuse(
            f"describes {links} links, {joints} joints; the limit is {MOST_LINKS}"
        )
    fixed = np.zeros(links, dtype=bool)
    node = keys.get("fixed")
    for item in [] if node is None else node.items():
        link = item.integer()
        if not 0 <= link < links or fixed[link]:
            raise item.refuse(
                f"link {link} must be 0 to {links - 1}, and be named once only"
            )
        fixed[link] = True
    moving = links - int(fixed.sum())
    if moving != joints:
        raise along.refuse(f"describes {moving} moving joints, joint_names has {joints}")
    out: dict[str, Any] = dict.fromkeys(("d", "a", "alpha", "theta"), np.zeros(links))
    origin = np.tile(np.eye(4), (links, 1, 1))
    if convention == "urdf":
        from scipy.spatial.transform import Rotation  # slow to import

        origin[:, :3, 3] = array(ranges.LENGTH, links, 3)(along)
        turns = keys.read("rpy", array(ranges.ANGLE, links, 3), np.zeros((links, 3)))
        origin[:, :3, :3] = Rotation.from_euler("xyz", turns).as_matrix()
    else:
        lengths = array(ranges.LENGTH, links)
        angles = array(ranges.ANGLE, links)
        out |= {
            "d": lengths(along),
            "a": lengths(keys["a"]),
            "alpha": angles(keys["alpha"]),
        }
        out["theta"] = keys.read("theta", angles, out["theta"])
    return out | {"convention": convention, "origin": origin, "fixed": fixed}


def link_transforms(
    robot: RobotDescription, link: int
) -> tuple[list[Array], list[Array]]:
    """Consecutive transforms [4, 4] in front of the rotation of a link's joint, and behind it."""
    if robot.convention == "urdf":
        return [robot.origin[link]], []
    along = np.eye(4)
    across = np.eye(4)
    offset = np.eye(4)
    along[2, 3] = robot.d[link]
    across[0, 3] = robot.a[link]
    for out, first, angle in (
        (across, 1, robot.alpha[link]),
        (offset, 0, robot.theta[link]),
    ):
        cos = np.cos(angle)
        sin = np.sin(angle)
        out[first : first + 2, first : first + 2] = [[cos, -sin], [sin, cos]]
    standard = robot.convention == "standard"
    return ([], [offset, along, across]) if standard else ([across], [offset, along])
