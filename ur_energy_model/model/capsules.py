# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Capsules that enclose the links of an arm, and their format in files.

A robot file has them in its section `geometry`, a geometry file (config/geometry, or
--geometry FILE) has the same keys at its top. `arm_shape` finds the capsules of an arm.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ur_energy_model.errors import RobotFileError
from ur_energy_model.formats import Found, Key, Section
from ur_energy_model.forms import (
    TEXT,
    ListOf,
    Number,
    Numbers,
    Schema,
    Scope,
    whole_number,
)
from ur_energy_model.ranges import LENGTH
from ur_energy_model.typing import Array
from ur_energy_model.yaml_nodes import excerpt
from ur_energy_model.yaml_reader import Quantity, YamlTree

SCHEMA = 1
_MOST_LINKS = 100
_LINK = whole_number(0, _MOST_LINKS)


@dataclass(frozen=True)
class Capsule:
    """All points within `radius` of a segment, fixed to a link.

    Attributes:
        link: 0 is the base, i the link that joint i moves.
        start: one end of the segment [3], m, in the link's DH frame (base frame for link
            0).
        end: the other end [3], m.
        radius: radius around the segment [m].
    """

    link: int
    start: Array
    end: Array
    radius: float


LinkPairs = frozenset[tuple[int, int]]
"""Pairs of links (lower number, higher number)."""


@dataclass(frozen=True)
class ArmShape:
    """The shape of an arm for clearance checks.

    Attributes:
        capsules: capsules that enclose the links.
        never_touching: pairs of links that need no check; None where nobody stated them.
        source: origin of the capsules in words, such as the path of a file.
        remarks: what the user has to bear in mind, one sentence each.
    """

    capsules: tuple[Capsule, ...]
    never_touching: LinkPairs | None = None
    source: str = ""
    remarks: tuple[str, ...] = ()


# The format.


CAPSULE = Section(
    Capsule,
    (
        Key("link", _LINK, "that it is fixed to: 0 is the base, i moves with joint i"),
        Key(
            "from",
            Numbers(LENGTH, (3,)),
            "one end of its axis, in the link's DH frame",
            attribute="start",
        ),
        Key("to", Numbers(LENGTH, (3,)), "the other end", attribute="end"),
        Key("radius", Number(Quantity("m", 0, 2, positive=True)), "around the axis"),
    ),
)

_CAPSULES = Key("capsules", ListOf(CAPSULE), "that enclose the links")
_NEVER_TOUCHING = Key(
    "never_touching",
    ListOf(ListOf(_LINK), empty=True),
    "pairs of links that need no check; else neighbours, and pairs that always touch",
    default=None,
)


def _shape(found: Found) -> ArmShape:
    """The shape in a file; links beyond the last one are refused."""
    capsules = tuple(found["capsules"])
    last = max(capsule.link for capsule in capsules)
    if "n" in found.scope.sizes:
        joints = found.scope.sizes["n"]
        for capsule, item in zip(capsules, found.nodes["capsules"].items(), strict=True):
            if capsule.link > joints:
                raise item.refuse(f"link {capsule.link} must be 0 to {joints}")
        last = joints
    source = str(found.tree.origin.file)
    if found["never_touching"] is None:
        return ArmShape(capsules, source=source)
    pairs = set[tuple[int, int]]()
    for place, pair in enumerate(found["never_touching"]):
        item = found.nodes["never_touching"].items()[place]
        if len(pair) != 2 or pair[0] == pair[1]:
            raise item.refuse("must name two links")
        if max(pair) > last:
            raise item.refuse(f"{max(pair)} must be 0 to {last}")
        low, high = sorted(pair)
        pairs.add((low, high))
    return ArmShape(capsules, frozenset(pairs), source)


def _parts(shape: ArmShape) -> dict[str, Any]:
    """The values of a shape for writing."""
    pairs = shape.never_touching
    return {
        "capsules": shape.capsules,
        "never_touching": None if pairs is None else sorted(map(list, pairs)),
    }


SHAPE = Section(_shape, (_CAPSULES, _NEVER_TOUCHING), _parts)
"""The format of the section `geometry` of robot files."""

GEOMETRY = Section(
    _shape,
    (
        Key("schema", Schema(SCHEMA), "version of the format"),
        Key("robot", TEXT, "name of the arm, like that of its robot file"),
        _CAPSULES,
        _NEVER_TOUCHING,
    ),
)
"""The format of geometry files."""


def load_shape(path: str | Path, robot: str, joints: int | None = None) -> ArmShape:
    """The shape in a geometry file.

    Args:
        path: path of the file.
        robot: name of the arm, which the file must have, too.
        joints: number of joints of the arm; None for any.

    Raises:
        RobotFileError: unreadable file, another arm, or an impossible value (names the
            line).
    """
    root = YamlTree.read(path, RobotFileError, "correct the line or restore the file")
    scope = Scope()
    if joints is not None:
        scope.sizes["n"] = joints
    shape = GEOMETRY.read(root, scope)
    name = root.mapping()["robot"]
    if name.text() != robot:
        raise name.refuse(
            f"'{excerpt(name.text())}' must be {robot}, the name of the arm"
        )
    return shape


# Distances.


def closest_points(a0: Array, a1: Array, b0: Array, b1: Array) -> tuple[Array, Array]:
    """Closest points of segments a0-a1 and b0-b1, all [..., 3]; a segment may be a point.

    The points are a0 + s (a1 - a0) and b0 + t (b1 - b0) with s and t between 0 and 1.
    """
    u = a1 - a0
    v = b1 - b0
    w = a0 - b0
    uu = np.sum(u * u, axis=-1)
    uv = np.sum(u * v, axis=-1)
    vv = np.sum(v * v, axis=-1)
    uw = np.sum(u * w, axis=-1)
    vw = np.sum(v * w, axis=-1)
    tiny = 1e-12
    denominator = uu * vv - uv * uv
    crossing = denominator > tiny  # else the segments are parallel
    on_line = (uv * vw - vv * uw) / np.where(crossing, denominator, 1)
    s = np.clip(np.where(crossing, on_line, 0.5), 0, 1)
    t = np.clip((uv * s + vw) / np.maximum(vv, tiny), 0, 1)
    s = np.clip((uv * t - uw) / np.maximum(uu, tiny), 0, 1)
    return a0 + s[..., None] * u, b0 + t[..., None] * v


def own_ends(capsules: Sequence[Capsule]) -> Array:
    """Ends of capsules in the frames of their links [capsules, 2, 3], m."""
    return np.array([[capsule.start, capsule.end] for capsule in capsules])


def segment_ends(own: Array, carriers: Array) -> Array:
    """Ends of capsules in the base frame [samples, capsules, 2, 3], m.

    Args:
        own: ends in the frames of the links, of `own_ends` [capsules, 2, 3], m.
        carriers: poses of the link of each capsule [samples, capsules, 4, 4].
    """
    turns = carriers[..., :3, :3].swapaxes(-1, -2)
    return np.asarray(own @ turns + carriers[..., None, :3, 3])
