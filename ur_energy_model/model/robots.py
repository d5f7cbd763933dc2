# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""RobotDescription: the nominal constants of an arm, read from a robot file (config/robots)."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from ur_energy_model import ranges
from ur_energy_model.arm_names import is_reported_model, product_name
from ur_energy_model.errors import InputError, RobotFileError
from ur_energy_model.files import config_file
from ur_energy_model.formats import EMPTY, UNKNOWN, Found, Key, Section, Variants
from ur_energy_model.forms import (
    UNIQUE_NAMES,
    Form,
    ListOf,
    Number,
    Numbers,
    Plain,
    Schema,
    Scope,
    one_of,
    whole_number,
)
from ur_energy_model.model.capsules import SHAPE, ArmShape
from ur_energy_model.typed_numbers import likely_form
from ur_energy_model.typing import Array, Mask
from ur_energy_model.yaml_nodes import Origin
from ur_energy_model.yaml_reader import Quantity, YamlTree, text

SCHEMA = 1
CONVENTIONS = ("standard", "modified", "urdf")
GENERATIONS = ("e-series", "cb3", "other")
MOST_LINKS = 50
"""Largest number of links of an arm, fixed links included; computing time grows with the square of
the number."""
ANY_ROBOT = "ur5e"
"""Robot with the joint names that all robots of Universal Robots have."""
_REMEDY = "see docs/generic_models.md"


@dataclass(frozen=True)
class RobotDescription:
    """Nominal constants of a serial arm with n joints.

    Constants of the drives are arrays [n]; unknown entries are NaN.

    Attributes:
        name: name of the arm, such as "ur5e".
        generation: "e-series", "cb3" or "other".
        rate: controller rate [Hz].
        joint_names: names of the n joints, as in the robot's URDF.
        convention: convention of the Denavit-Hartenberg parameters; "standard" is distal,
            "modified" proximal (Craig). "urdf" has origins instead.
        d: DH parameter of each link [links], m.
        a: DH parameter of each link [links], m.
        alpha: DH parameter of each link [links], rad.
        theta: DH parameter of each link [links], rad.
        origin: pose of each joint in the frame of the previous link [links, 4, 4]; a
            joint rotates about the z axis of its frame. Only for "urdf".
        fixed: whether the link's joint is fixed [links].
        mass: masses of the links [links], kg.
        center_of_mass: centre of mass in the link's frame (DH frame, or URDF joint frame)
            [links, 3], m.
        inertia: inertia tensors about the centre of mass, axes of the link's frame [links,
            3, 3], kg m^2.
        middle_position: middles of the ranges of the joints [n], rad; zero for a joint
            that moves as far to both sides.
        max_position: largest joint position to either side of the middle [n], rad.
        max_velocity: largest joint velocity [n], rad/s.
        max_acceleration: largest joint acceleration [n], rad/s^2.
        max_torque: rated torque, joint side [n], N m.
        max_payload: largest payload by the data sheet [kg]; NaN if it is not published.
        gear_ratio: motor turns per joint turn [n].
        rotor_inertia: inertia of rotor and reducer, motor side [n], kg m^2.
        reducer_inertia: inertia of the reducer by its catalogue, motor side [n], kg m^2.
        winding_resistance: winding resistances [n], ohm.
        torque_constant: torque constants, motor side [n], N m/A.
        back_emf_constant: back-EMF constants, motor side [n], V s/rad.
        friction_temperature_model: four coefficients of the temperature dependence of
            friction [n, 4], see `temperature_factor` in model/friction.py.
        controller_gravity: magnitude of gravity that the controller assumes [m/s^2].
        nominal_voltage: nominal voltage of the bus [V].
        standby_power: power at standstill with brakes released [W]; NaN if unknown.
        source: argument for `load_robot`: the name of a description of the package, or
            the absolute path of the user's file.
        shape: capsules that enclose the links; None where the robot file has none.
    """

    name: str
    generation: str
    rate: float
    joint_names: tuple[str, ...]
    convention: str
    d: Array
    a: Array
    alpha: Array
    theta: Array
    origin: Array
    fixed: Mask
    mass: Array
    center_of_mass: Array
    inertia: Array
    middle_position: Array
    max_position: Array
    max_velocity: Array
    max_acceleration: Array
    max_torque: Array
    max_payload: float
    gear_ratio: Array
    rotor_inertia: Array
    reducer_inertia: Array
    winding_resistance: Array
    torque_constant: Array
    back_emf_constant: Array
    friction_temperature_model: Array
    controller_gravity: float
    nominal_voltage: float
    standby_power: float
    source: str = ""
    shape: ArmShape | None = None

    @property
    def dof(self) -> int:
        """Number of moving joints n."""
        return len(self.joint_names)

    def position_shares(self, q: Array) -> Array:
        """Shares of the position limits [..., n] that positions [..., n], rad, take: at most 1."""
        return np.asarray(np.abs(q - self.middle_position) / self.max_position)

    @property
    def own_file(self) -> str:
        """Path of the user's robot file or URDF; "" for an arm of the package."""
        return self.source if Path(self.source).is_absolute() else ""

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
"""Largest payload that is accepted, relative to the payload of the data sheet. The torques of an
arm are rated to carry the payload of the data sheet at full reach together with the links; folded
up, an arm lifts up to about three times as much."""


def check_payload(robot: RobotDescription, mass: float, source: str) -> tuple[str, ...]:
    """Compare a payload that a user states with what the arm can carry.

    Args:
        robot: the arm.
        mass: mass of the payload [kg].
        source: origin of the statement, such as the name of the option.

    Returns:
        A warning where the payload exceeds the payload of the data sheet; nothing
        otherwise, or where the data sheet has none.

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
        return _described(YamlTree.from_content(robot_content(path), origin))
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
        # Live checks ask for an arm every few seconds; callers may change their arrays.
        return deepcopy(_of_package(path))
    return _read(path)


@cache
def _of_package(path: Path) -> RobotDescription:
    """A description that comes with the package, read once."""
    return _read(path)


def _read(path: Path) -> RobotDescription:
    """The description in a robot file (YAML)."""
    return _described(YamlTree.read(path, RobotFileError, _REMEDY))


def _described(root: YamlTree) -> RobotDescription:
    """The description at the root of a robot file."""
    return ROBOT.read(root, Scope())


# The format of robot files.


def _name(tree: YamlTree) -> str:
    """Name of an arm, which its geometry and excitation files have as well."""
    name = text(tree)
    if not name.isprintable() or "/" in name or name.startswith(".") or len(name) > 100:
        raise tree.refuse("must be a short name without slashes")
    return name


def _bind_joints(names: list[str], scope: Scope) -> None:
    scope.sizes["n"] = len(names)


def _bind_links(values: Mapping[str, Any], scope: Scope) -> None:
    scope.sizes["links"] = len(values["fixed"])


def _chain(found: Found) -> dict[str, Any]:
    """DH parameters and poses of all links, and which of them do not move."""
    joints = found.scope.sizes["n"]
    links = found.scope.sizes["links"]
    along = "xyz" if found["convention"] == "urdf" else "d"
    if max(links, joints) > MOST_LINKS:
        raise found.refuse(
            along,
            f"describes {links} links, {joints} joints; the limit is {MOST_LINKS}",
        )
    fixed = np.zeros(links, dtype=bool)
    for place, link in enumerate(found["fixed"]):
        if link >= links or fixed[link]:
            item = found.nodes["fixed"].items()[place]
            raise item.refuse(
                f"link {link} must be 0 to {links - 1}, and be named once only"
            )
        fixed[link] = True
    moving = links - int(fixed.sum())
    if moving != joints:
        raise found.refuse(
            along, f"describes {moving} moving joints, joint_names has {joints}"
        )
    origin = np.tile(np.eye(4), (links, 1, 1))
    if found["convention"] == "urdf":
        from scipy.spatial.transform import Rotation  # slow to import

        rpy = _right_angles(found["rpy"])
        origin[:, :3, 3] = found["xyz"]
        origin[:, :3, :3] = Rotation.from_euler("xyz", rpy).as_matrix()
    return {
        "convention": found["convention"],
        "origin": origin,
        "fixed": fixed,
        "d": found.get("d", np.zeros(links)),
        "a": found.get("a", np.zeros(links)),
        "alpha": _right_angles(found.get("alpha", np.zeros(links))),
        "theta": _right_angles(found.get("theta", np.zeros(links))),
    }


_ROUNDED = 1e-5  # error of a right angle that is written as 1.5708 [rad]


def _right_angles(angles: Array) -> Array:
    """Angles [...], rad, with rounded right angles as they are meant.

    Axes that are parallel but for the rounding would have base parameters of their own,
    which no motion shows.
    """
    quarters = np.pi / 2 * np.round(angles / (np.pi / 2))
    return np.where(np.abs(angles - quarters) < _ROUNDED, quarters, angles)


_CONVENTION = Key("convention", one_of(CONVENTIONS), "of the link frames, see below")
_FIXED = Key(
    "fixed",
    ListOf(whole_number(0, MOST_LINKS), empty=True),
    "links whose joint does not move, counted from 0",
    default=(),
)
_DH = Section(
    _chain,
    (
        _CONVENTION,
        Key("d", Numbers(ranges.LENGTH, ("links",)), "Denavit-Hartenberg parameter"),
        Key("a", Numbers(ranges.LENGTH, ("links",)), "Denavit-Hartenberg parameter"),
        Key("alpha", Numbers(ranges.ANGLE, ("links",)), "Denavit-Hartenberg parameter"),
        Key(
            "theta",
            Numbers(ranges.ANGLE, ("links",), unknown=0.0),
            "Denavit-Hartenberg parameter: offset of the joint",
            default=UNKNOWN,
        ),
        _FIXED,
    ),
)
_POSES = Section(
    _chain,
    (
        _CONVENTION,
        Key(
            "xyz",
            Numbers(ranges.LENGTH, ("links", 3)),
            "of each joint in the frame of the previous link, convention urdf",
        ),
        Key(
            "rpy",
            Numbers(ranges.ANGLE, ("links", 3), unknown=0.0),
            "roll, pitch and yaw of the same",
            default=UNKNOWN,
        ),
        _FIXED,
    ),
)

_TENSOR = np.array([[0, 1, 2], [1, 3, 4], [2, 4, 5]])
"""Indices of a symmetric tensor's entries in (xx, xy, xz, yy, yz, zz)."""


def _links(found: Found) -> dict[str, Any]:
    """Masses, centres of mass and tensors of the links."""
    tensors = found["inertia"][:, _TENSOR]
    if "inertia" in found.nodes:
        items = found.nodes["inertia"].items()
        for item, tensor, mass in zip(items, tensors, found["mass"], strict=True):
            ranges.check_tensor(item, tensor, mass)
    return {**found, "inertia": tensors}


_LINKS = Section(
    _links,
    (
        Key("mass", Numbers(ranges.MASS, ("links",)), "of each link"),
        Key(
            "center_of_mass",
            Numbers(ranges.LENGTH, ("links", 3)),
            "in the link's frame: DH frame, or joint frame of the URDF",
        ),
        Key(
            "inertia",
            Numbers(ranges.INERTIA_ENTRY, ("links", 6), unknown=0.0),
            "xx, xy, xz, yy, yz, zz about the centre of mass, axes of the same frame",
            default=UNKNOWN,
        ),
    ),
)


def _of_joints(
    name: str,
    quantity: Quantity,
    meaning: str,
    unknown: float = np.nan,
    attribute: str = "",
) -> Key:
    """A constant of the n joints, with what stands for entries that are not known."""
    form = Numbers(quantity, ("n",), unknown=unknown)
    return Key(name, form, meaning, default=UNKNOWN, attribute=attribute)


class _PositionRanges(Form[Array]):
    """Lowest and highest position of each joint [n, 2], rad: a number, a pair, or null.

    A number is the limit in both directions, and null one turn.
    """

    quantity = ranges.POSITION_LIMIT

    def _read(self, tree: YamlTree, scope: Scope) -> Array:
        values = np.zeros((scope.sizes["n"], 2))
        for joint, item in enumerate(tree.items(scope.sizes["n"])):
            if item.is_null:
                values[joint] = (-_ONE_TURN, _ONE_TURN)
            elif item.is_scalar:
                limit = self.quantity(item)
                values[joint] = (-limit, limit)
            else:
                ends = item.items(2)
                low = ranges.POSITION_END(ends[0])
                high = ranges.POSITION_END(ends[1])
                if not low < high:
                    raise item.refuse("must be the lowest, then the highest position")
                values[joint] = (low, high)
        return values

    def _words(self) -> str:
        return "[n] numbers or pairs of numbers, rad"


_ONE_TURN = 2 * np.pi  # limit of a joint whose robot file has none [rad]


def _limits(found: Found) -> dict[str, Any]:
    """Limits of the joints, with the middles of their ranges."""
    low, high = found.pop("position").T
    if "position" not in found.nodes:
        high = np.full(found.scope.sizes["n"], _ONE_TURN)
        low = -high
    return {
        **found,
        "middle_position": (low + high) / 2,
        "max_position": (high - low) / 2,
    }


_LIMITS = Section(
    _limits,
    (
        Key(
            "position",
            _PositionRanges(),
            "in both directions, or the pair of lowest and highest; else one turn",
            default=np.zeros((0, 2)),
        ),
        _of_joints(
            "velocity", ranges.SPEED, "joint side; else pi", np.pi, "max_velocity"
        ),
        _of_joints(
            "acceleration",
            ranges.ACCELERATION,
            "joint side; else 6",
            6.0,
            "max_acceleration",
        ),
        _of_joints("torque", ranges.TORQUE, "rated, joint side", np.inf, "max_torque"),
        Key(
            "payload",
            Number(replace(ranges.PAYLOAD_MASS, positive=True)),
            "largest by the data sheet",
            default=float("nan"),
            attribute="max_payload",
        ),
    ),
)


class _TemperatureModels(Form[Array]):
    """a, b, c, d of each joint [n, 4]; NaN where a joint, or all its numbers, are null."""

    def _read(self, tree: YamlTree, scope: Scope) -> Array:
        joints = tree.items(scope.sizes["n"])
        values = np.full((len(joints), 4), np.nan)
        for j, item in enumerate(joints):
            unknown = item.is_null or all(entry.is_null for entry in item.items(4))
            if not unknown:
                values[j] = ranges.temperature_model(item)
        return values

    def _words(self) -> str:
        return "[n, 4] numbers"


def _drive(found: Found) -> dict[str, Any]:
    """Constants of the motors; the size of the joints only documents the file."""
    if found["friction_temperature_model"] is None:
        found["friction_temperature_model"] = np.full((found.scope.sizes["n"], 4), np.nan)
    del found["joint_size"]
    return found


_DRIVE = Section(
    _drive,
    (
        _of_joints("joint_size", Quantity("1", 0, 20), "of the maker, for people only"),
        _of_joints("gear_ratio", ranges.GEAR_RATIO, "motor turns per joint turn", 1.0),
        _of_joints("rotor_inertia", ranges.DRIVE_INERTIA, "motor side, reducer included"),
        _of_joints("reducer_inertia", ranges.DRIVE_INERTIA, "motor side, catalogue"),
        _of_joints(
            "winding_resistance",
            replace(ranges.RESISTANCE, positive=True),
            "of the motor",
        ),
        _of_joints("torque_constant", ranges.TORQUE_CONSTANT, "motor side"),
        _of_joints(
            "back_emf_constant", replace(ranges.BACK_EMF, positive=True), "motor side"
        ),
        Key(
            "friction_temperature_model",
            _TemperatureModels(),
            "a, b, c, d of friction in proportion to a exp(b T) + c exp(d T), T in degC",
            default=None,
        ),
    ),
)
_BUS = Section(
    dict,
    (
        Key("nominal_voltage", Number(ranges.VOLTAGE), "of the supply", default=48.0),
        Key(
            "standby_power",
            Number(ranges.POWER),
            "at standstill, brakes released",
            default=float("nan"),
        ),
    ),
)


def _robot(found: Found) -> RobotDescription:
    file = found.tree.origin.file
    of_package = file.parent == config_file("robots")
    values: dict[str, Any] = {}
    for section in ("kinematics", "links", "limits", "drive"):
        values |= found.pop(section)
    return RobotDescription(
        name=found["name"] or file.stem,
        generation=found["generation"],
        rate=found["rate"],
        joint_names=tuple(found["joint_names"]),
        controller_gravity=found["controller_gravity"],
        shape=found["shape"],
        source=file.stem if of_package else str(file.resolve()),
        **found["bus"],
        **values,
    )


ROBOT = Section(
    _robot,
    (
        Key("schema", Schema(SCHEMA), "version of the format", default=None),
        Key(
            "name",
            Plain(_name, "text"),
            "of the arm; else that of the file",
            default="",
        ),
        Key("generation", one_of(GENERATIONS), "of the controller", default="other"),
        Key("rate", Number(ranges.RATE), "of the controller", default=500.0),
        Key(
            "joint_names",
            UNIQUE_NAMES,
            "of the n joints, as in the robot's URDF",
            binds=_bind_joints,
        ),
        Key(
            "controller_gravity",
            Number(ranges.GRAVITY),
            "magnitude that the controller computes with",
            default=9.82,
        ),
        Key(
            "kinematics",
            Variants("convention", {"standard": _DH, "modified": _DH, "urdf": _POSES}),
            "where the joints are",
            binds=_bind_links,
        ),
        Key("links", _LINKS, "bodies that the joints move, fixed ones included"),
        Key("limits", _LIMITS, "of the joints, joint side", default=EMPTY),
        Key("drive", _DRIVE, "motors and reducers; null where unknown", default=EMPTY),
        Key("bus", _BUS, "supply of the arm", default=EMPTY),
        Key(
            "geometry",
            SHAPE,
            "shape of the links, for motions that the package plans",
            default=None,
            attribute="shape",
        ),
    ),
)
"""The format of robot files."""


def link_transforms(
    robot: RobotDescription, link: int
) -> tuple[list[Array], list[Array]]:
    """Consecutive transforms of a link.

    Args:
        robot: the arm.
        link: number of the link, from 0.

    Returns:
        Transforms [4, 4] in front of the rotation of the link's joint, and behind it.
    """
    if robot.convention == "urdf":
        return [robot.origin[link]], []
    along = np.eye(4)
    along[2, 3] = robot.d[link]
    across = np.eye(4)
    across[0, 3] = robot.a[link]
    across[1:3, 1:3] = _turn(robot.alpha[link])
    offset = np.eye(4)
    offset[:2, :2] = _turn(robot.theta[link])
    if robot.convention == "standard":
        return [], [offset, along, across]
    return [across], [offset, along]


def _turn(angle: float) -> Array:
    """Rotation in a plane by an angle [rad]: [2, 2]."""
    cos = np.cos(angle)
    sin = np.sin(angle)
    return np.array([[cos, -sin], [sin, cos]])
