"""Collision bodies: the links of an arm as capsules, table and walls as half-spaces."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ur_energy_model.errors import RobotFileError
from ur_energy_model.reading.ranges import LENGTH
from ur_energy_model.reading.readers import Quantity, array, integer, list_of, mapping_of
from ur_energy_model.reading.record import Record
from ur_energy_model.reading.yaml_tree import YamlTree, excerpt
from ur_energy_model.resources import config_file
from ur_energy_model.typing import Array

SCHEMA = 1
_CAPSULE = mapping_of(
    {
        "link": integer(0, 100),
        "from": array(LENGTH, 3),
        "to": array(LENGTH, 3),
        "radius": Quantity("m", 0, 2, positive=True),
    }
)


@dataclass(frozen=True)
class Capsule:
    """All points within `radius` of a segment, fixed to a link.

    Attributes:
        link: 0 is the base, i the link that joint i moves.
        start, end: ends of the segment [3], m, in the link's DH frame (base frame for link 0).
        radius: m.
    """

    link: int
    start: Array
    end: Array
    radius: float


@dataclass(frozen=True)
class Wall:
    """A half-space that the arm must not enter: all points with normal . x < offset (base frame).

    Attributes:
        name: such as "table".
        normal: unit vector towards the free side [3].
        offset: m.
    """

    name: str
    normal: Array
    offset: float


TABLE = Wall("table", np.array([0.0, 0.0, 1.0]), 0.0)
"""The plane of the base flange; a pedestal is a table with a negative offset."""


def load_capsules(robot: str) -> tuple[tuple[Capsule, ...], frozenset[tuple[int, int]]]:
    """Capsules of an arm that comes with the package, and the pairs of links not to check.

    Raises:
        RobotFileError: the arm has no geometry file, or the file is damaged.
    """
    path = config_file("geometry", f"{robot}.yaml")
    if not path.is_file() or path.parent != config_file("geometry"):
        raise RobotFileError(
            path,
            "this arm has no capsule geometry",
            "write one like config/geometry/ur5e.yaml",
        )
    return read_capsules(path, robot)


def read_capsules(path: Path, robot: str) -> tuple[tuple[Capsule, ...], frozenset[tuple[int, int]]]:
    """Capsules of a geometry file, and the pairs of links not to check.

    Args:
        path: of the file.
        robot: name of the arm that the file must describe.

    Raises:
        RobotFileError: the file is damaged; names the line.
    """
    root = YamlTree.read(path, RobotFileError, "correct the line or restore the file")
    with Record(root) as keys:
        keys.schema(SCHEMA)
        name = keys["robot"]
        if name.text() != robot:
            raise name.refuse(f"'{excerpt(name.text())}' must be {robot}, like the file name")
        capsules = tuple(_capsule(**entry) for entry in list_of(_CAPSULE)(keys["capsules"]))
        last = max(capsule.link for capsule in capsules)
        pair = list_of(integer(0, last), 2)
        ignored = set()
        for item in keys["never_touching"].items():
            low, high = sorted(pair(item))
            if low == high:
                raise item.refuse("must name two links")
            ignored.add((low, high))
    return capsules, frozenset(ignored)


def _capsule(link: int, radius: float, **ends: Array) -> Capsule:
    return Capsule(link, ends["from"], ends["to"], radius)
