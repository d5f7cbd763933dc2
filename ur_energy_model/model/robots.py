"""RobotDescription: the nominal constants of an arm, read from config/robots/*.yaml."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import yaml
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from ur_energy_model.errors import RobotFileError
from ur_energy_model.model.urdf_import import robot_content
from ur_energy_model.resources import config_file

Array = NDArray[np.float64]
Convention = Literal["standard", "modified", "urdf"]


@dataclass(frozen=True)
class RobotDescription:
    """Nominal constants of a serial arm with n joints.

    Motor-side constants are arrays [n] whose unknown entries are NaN.

    Attributes:
        name: such as "ur5e".
        generation: "e-series", "cb3" or "other".
        rate: controller rate [Hz].
        joint_names: n names, as in the robot's URDF.
        convention: of the Denavit-Hartenberg parameters; "standard" is distal, "modified"
            proximal (Craig). "urdf" has no DH parameters but origins.
        d, a, alpha, theta: DH parameters [m, m, rad, rad] of all links, [links].
        origin: pose of each joint in the link frame before it [links, 4, 4]; it turns about its z
            axis. Only for "urdf".
        fixed: [links] bool; True where the link's joint does not move.
        mass: links [links], kg.
        center_of_mass: in the link's frame (DH frame, or URDF joint frame) [links, 3], m.
        inertia: about the centre of mass, axes of the same frame [links, 3, 3], kg m^2.
        max_position, max_velocity, max_acceleration, max_torque: joint side [n], rad, rad/s,
            rad/s^2, N m.
        gear_ratio: motor turns per joint turn [n].
        rotor_inertia: motor side, reducer included [n], kg m^2.
        reducer_inertia: motor side, catalogue [n], kg m^2.
        winding_resistance: [n], ohm.
        torque_constant: motor side [n], N m/A.
        back_emf_constant: motor side [n], V s/rad.
        friction_temperature_model: [n, 4], see config/robots.
        controller_gravity: magnitude the controller computes with [m/s^2].
        nominal_voltage: of the bus [V].
        standby_power: brakes released, standstill [W]; NaN if unknown.
        source: what `load_robot` finds it by again: the name of a description that comes with the
            package, or the absolute path of the user's file.
    """

    name: str
    generation: str
    rate: float
    joint_names: tuple[str, ...]
    convention: Convention
    d: Array
    a: Array
    alpha: Array
    theta: Array
    origin: Array
    fixed: NDArray[np.bool_]
    mass: Array
    center_of_mass: Array
    inertia: Array
    max_position: Array
    max_velocity: Array
    max_acceleration: Array
    max_torque: Array
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

    @property
    def dof(self) -> int:
        """Number of moving joints n."""
        return len(self.joint_names)

    @property
    def reflected_inertia(self) -> Array:
        """Nominal motor and reducer inertia, joint side [n], kg m^2 (NaN where unknown)."""
        return np.asarray(self.gear_ratio**2 * self.rotor_inertia)


def available_robots() -> tuple[str, ...]:
    """Names of the robot descriptions that come with the package."""
    return tuple(sorted(path.stem for path in config_file("robots").glob("*.yaml")))


def load_robot(name_or_file: str | Path) -> RobotDescription:
    """Robot description by name ("ur5e"), from a YAML file of the same layout or from a URDF.

    Raises:
        RobotFileError: unknown name, unreadable file, or a value that cannot be.
    """
    path = Path(name_or_file)
    if path.suffix == ".urdf":
        return _parse(path, robot_content(path))
    if path.suffix not in {".yaml", ".yml"}:
        path = config_file("robots", f"{str(name_or_file).lower()}.yaml")
        if not path.is_file() or path.parent != config_file("robots"):
            raise RobotFileError(
                str(name_or_file),
                "no such robot",
                f"use one of {', '.join(available_robots())} or the path of a robot YAML file",
            )
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise RobotFileError(path, f"cannot be read ({error})", "check the path") from error
    except yaml.YAMLError as error:
        raise RobotFileError(path, f"is not YAML ({error})", "mend the line named") from error
    if not isinstance(content, Mapping):
        raise RobotFileError(path, "is not a robot description", "see docs/adding_an_arm.md")
    return _parse(path, content)


class _Reader:
    """Values of a robot file, checked for shape and finiteness."""

    def __init__(self, path: Path, content: Mapping[str, Any]) -> None:
        self.path = path
        self.content = content

    def refuse(self, key: str, problem: str) -> RobotFileError:
        return RobotFileError(self.path, problem, "see docs/adding_an_arm.md", field=key)

    def get(self, key: str, default: Any = None) -> Any:
        node: Any = self.content
        for part in key.split("."):
            if not isinstance(node, Mapping) or part not in node:
                return default
            node = node[part]
        return default if node is None else node

    def list_of(self, key: str) -> list[Any]:
        """A list, empty where there is none."""
        value = self.get(key, [])
        if not isinstance(value, list):
            raise self.refuse(key, "must be a list")
        return value

    def number(self, key: str, default: float) -> float:
        """A positive number."""
        value = self.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
            raise self.refuse(key, "must be a positive number")
        return float(value)

    def array(
        self, key: str, shape: tuple[int, ...], default: float | None = None, *,
        partial: bool = False, positive: bool = False,
    ) -> Array:  # fmt: skip
        """Array of this shape; NaN entries (null) only with `partial`."""
        value = self.get(key)
        if value is None:
            if default is None:
                raise self.refuse(key, "is missing")
            return np.full(shape, default)
        try:
            array = np.array(value, dtype=float)
        except (TypeError, ValueError) as error:
            raise self.refuse(key, "holds something that is not a number") from error
        if array.shape != shape:
            raise self.refuse(key, f"has shape {list(array.shape)}, expected {list(shape)}")
        if np.isinf(array).any() or (not partial and np.isnan(array).any()):
            raise self.refuse(key, "is not finite")
        if positive and (array <= 0).any():
            raise self.refuse(key, "must be positive")
        return array


def _parse(path: Path, content: Mapping[str, Any]) -> RobotDescription:
    read = _Reader(path, content)
    names = read.get("joint_names")
    if not isinstance(names, list) or not names:
        raise read.refuse("joint_names", "must be a list of names")
    n = len(names)
    convention = read.get("kinematics.convention")
    if convention not in {"standard", "modified", "urdf"}:
        raise read.refuse("kinematics.convention", "must be standard, modified or urdf")
    links = len(read.list_of("kinematics.xyz" if convention == "urdf" else "kinematics.d"))
    fixed = np.zeros(links, dtype=bool)
    for link in read.list_of("kinematics.fixed"):
        if not isinstance(link, int) or not 0 <= link < links:
            raise read.refuse("kinematics.fixed", f"names link {link}, of 0 to {links - 1}")
        fixed[link] = True
    if links - int(fixed.sum()) != n:
        raise read.refuse("kinematics.d", f"describes {links - int(fixed.sum())} moving joints, "
                                          f"joint_names {n}")  # fmt: skip
    mass = read.array("links.mass", (links,))
    if (mass < 0).any():
        raise read.refuse("links.mass", "must not be negative")
    tensors = _tensors(read.array("links.inertia", (links, 6), 0.0))
    if (np.linalg.eigvalsh(tensors) < -1e-9).any():
        raise read.refuse("links.inertia", "has a negative principal moment, which no body has")
    unknown = float("nan")
    angles = 0.0 if convention == "urdf" else None
    return RobotDescription(
        name=str(read.get("name", path.stem)),
        generation=str(read.get("generation", "other")),
        rate=read.number("rate", 500.0),
        joint_names=tuple(str(name) for name in names),
        convention=convention,
        d=read.array("kinematics.d", (links,), angles),
        a=read.array("kinematics.a", (links,), angles),
        alpha=read.array("kinematics.alpha", (links,), angles),
        theta=read.array("kinematics.theta", (links,), 0.0),
        origin=_origins(read, links),
        fixed=fixed,
        mass=mass,
        center_of_mass=read.array("links.center_of_mass", (links, 3)),
        inertia=tensors,
        max_position=read.array("limits.position", (n,), 2 * np.pi, positive=True),
        max_velocity=read.array("limits.velocity", (n,), np.pi, positive=True),
        max_acceleration=read.array("limits.acceleration", (n,), 6.0, positive=True),
        max_torque=read.array("limits.torque", (n,), np.inf, positive=True),
        gear_ratio=read.array("drive.gear_ratio", (n,), 1.0, positive=True),
        rotor_inertia=read.array("drive.rotor_inertia", (n,), unknown, partial=True),
        reducer_inertia=read.array("drive.reducer_inertia", (n,), unknown, partial=True),
        winding_resistance=read.array("drive.winding_resistance", (n,), unknown, partial=True),
        torque_constant=read.array("drive.torque_constant", (n,), unknown, partial=True),
        back_emf_constant=read.array("drive.back_emf_constant", (n,), unknown, partial=True),
        friction_temperature_model=read.array(
            "drive.friction_temperature_model", (n, 4), unknown, partial=True
        ),
        controller_gravity=read.number("controller_gravity", 9.82),
        nominal_voltage=read.number("bus.nominal_voltage", 48.0),
        standby_power=read.number("bus.standby_power", unknown),
        source=path.stem if path.parent == config_file("robots") else str(path.resolve()),
    )


def _tensors(entries: Array) -> Array:
    """Symmetric tensors [k, 3, 3] from entries (xx, xy, xz, yy, yz, zz) [k, 6]."""
    order = np.array([[0, 1, 2], [1, 3, 4], [2, 4, 5]])
    return np.asarray(entries[:, order])


def _origins(read: _Reader, links: int) -> Array:
    """Joint poses [links, 4, 4] from xyz and rpy (fixed-axis roll, pitch, yaw) [links, 3]."""
    out = np.tile(np.eye(4), (links, 1, 1))
    out[:, :3, 3] = read.array("kinematics.xyz", (links, 3), 0.0)
    angles = read.array("kinematics.rpy", (links, 3), 0.0)
    out[:, :3, :3] = Rotation.from_euler("xyz", angles).as_matrix()
    return out
