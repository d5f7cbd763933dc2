"""What an arm must not touch: its own links as capsules, table and walls as half-spaces."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ur_energy_model.errors import RobotFileError
from ur_energy_model.model.ranges import LENGTH
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
        link: 0 is the base, i the body moved by joint i.
        start, end: ends of the segment [3], m, in the link's DH frame (base frame for link 0).
        radius: m.
    """

    link: int
    start: Array
    end: Array
    radius: float


@dataclass(frozen=True)
class Wall:
    """A half-space the arm must keep out of: all points with normal . x < offset (base frame).

    Attributes:
        name: such as "table".
        normal: unit vector that points to the free side [3].
        offset: m.
    """

    name: str
    normal: Array
    offset: float


TABLE = Wall("table", np.array([0.0, 0.0, 1.0]), 0.0)
"""The plane of the base flange; a pedestal is a table of negative offset."""


def load_capsules(robot: str) -> tuple[tuple[Capsule, ...], frozenset[tuple[int, int]]]:
    """Capsules of an arm that comes with the package, and the pairs of links left unchecked.

    Raises:
        RobotFileError: there is no geometry for this arm, or the file is damaged.
    """
    path = config_file("geometry", f"{robot}.yaml")
    if not path.is_file() or path.parent != config_file("geometry"):
        raise RobotFileError(
            path,
            "there is no capsule geometry for this arm",
            "add one in the layout of config/geometry/ur5e.yaml",
        )
    return read_capsules(path, robot)


def read_capsules(path: Path, robot: str) -> tuple[tuple[Capsule, ...], frozenset[tuple[int, int]]]:
    """Capsules of a geometry file, and the pairs of links left unchecked.

    Args:
        path: of the file.
        robot: name of the arm it must be of.

    Raises:
        RobotFileError: the file is damaged; names its line.
    """
    root = YamlTree.read(path, RobotFileError, "mend the line or restore the file")
    with Record(root) as keys:
        keys.schema(SCHEMA)
        name = keys["robot"]
        if name.text() != robot:
            raise name.refuse(f"'{excerpt(name.text())}' must be {robot}, as the file is called")
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
