# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Rules about imports: none runs up a floor, and only nodes and the demo import ROS."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import ur_energy_model

ROOT = Path(ur_energy_model.__file__).parent
FLOORS = (
    "errors typing codec options typed_numbers files interrupts processes arm_names yaml_reader "
    "ranges robot_modes low_pass many_bags state_file topics_and_services rooms",
    "telemetry model",
    "trajectory",
    "consistency",
    "energy",
    "identification",
    "report",
    "sinks",
    "cli nodes layouts scripts",
    "simulation",
    "learning optimization plant",
    "experiment",
    "papers demo",
)
"""Rooms from the ground up."""
FLOOR = {room: level for level, rooms in enumerate(FLOORS) for room in rooms.split()}
ROS_PACKAGES = {
    "rclpy",
    "std_msgs",
    "sensor_msgs",
    "diagnostic_msgs",
    "visualization_msgs",
}


def imported(path: Path) -> Iterator[str]:
    """Absolute names of all modules that a file imports, at its top or inside functions."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, (
                f"{path}: relative imports hide where a module belongs"
            )
            yield node.module or ""


def room_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


MODULES = {
    path: room_of(path) for path in sorted(ROOT.rglob("*.py")) if path.parent != ROOT
}
MODULES |= {path: room_of(path) for path in ROOT.glob("[!_]*.py")}


def test_imports_never_run_up() -> None:
    up = []
    for path, room in MODULES.items():
        for name in imported(path):
            package, _, module = name.partition(".")
            to = module.partition(".")[0]
            if package == "ur_energy_model" and module:
                apart = {room, to} == {"telemetry", "model"}  # these meet in arrays only
                if apart or FLOOR[to] > FLOOR[room]:
                    up.append(f"{path.relative_to(ROOT)} imports {name}")
    assert not up


def test_only_nodes_and_the_demo_import_ros() -> None:
    with_ros = {
        str(path.relative_to(ROOT))
        for path, room in MODULES.items()
        if room not in {"nodes", "demo"}
        and {name.split(".")[0] for name in imported(path)} & ROS_PACKAGES
    }
    assert not with_ros
