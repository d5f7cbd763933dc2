"""What an arm must not touch: its own links as capsules, table and walls as half-spaces."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray

from ur_energy_model.errors import RobotFileError
from ur_energy_model.resources import config_file

Array = NDArray[np.float64]


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
    if not path.is_file():
        raise RobotFileError(
            path, "there is no capsule geometry for this arm",
            "add one in the layout of config/geometry/ur5e.yaml",
        )  # fmt: skip
    try:
        content: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
        capsules = tuple(
            Capsule(
                int(entry["link"]),
                np.array(entry["from"], dtype=float).reshape(3),
                np.array(entry["to"], dtype=float).reshape(3),
                float(entry["radius"]),
            )
            for entry in content["capsules"]
        )
        ignored = frozenset((int(i), int(j)) for i, j in content["never_touching"])
    except (KeyError, TypeError, ValueError, yaml.YAMLError) as error:
        raise RobotFileError(path, f"is damaged ({error!r})", "restore the file") from error
    return capsules, ignored
