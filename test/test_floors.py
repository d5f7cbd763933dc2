# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Rules about imports: floors, removable rooms, and who may import ROS.

A module imports from its own floor or lower ones. The core imports no removable room, and
a removable room imports only those that its table requires. Only nodes import ROS.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

import ur_energy_model
from test.absent_rooms import REMOVABLE
from ur_energy_model.rooms import PACKAGE, Room

ROOT = Path(ur_energy_model.__file__).parent
FLOORS = (
    "errors typing codec addresses options typed_numbers files interrupts processes arm_names "
    "yaml_nodes yaml_reader forms formats ranges robot_modes low_pass many_bags state_file "
    "topics_and_services rooms cli.tables sinks.options",
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
"""Rooms, and single modules that stand elsewhere than their room, from the ground up."""
FLOOR = {room: level for level, rooms in enumerate(FLOORS) for room in rooms.split()}
GROUND = 0
ROS_PACKAGES = {
    "rclpy",
    "std_msgs",
    "sensor_msgs",
    "diagnostic_msgs",
    "visualization_msgs",
}
OF_COMMAND_LINE = {"cli.output", "cli.arguments", "cli.tables"}
"""What removable rooms may use of the command line."""
MODULES = sorted(ROOT.glob("[!_]*.py")) + sorted(ROOT.glob("*/**/*.py"))


@cache
def imported(path: Path) -> tuple[str, ...]:
    """Absolute names of all modules that a file imports, at its top or inside functions."""
    names = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, (
                f"{path}: relative imports hide where a module belongs"
            )
            names.append(node.module or "")
    return tuple(names)


def own_imports(path: Path) -> Iterator[str]:
    """Names below the package, such as "cli.output", of the own modules that a file imports."""
    for name in imported(path):
        package, _, below = name.partition(".")
        if package == PACKAGE and below:
            yield below


def name_of(path: Path) -> str:
    """Name of a module below the package, such as "cli.output"."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(
        ".__init__"
    )


def floor_of(name: str) -> int:
    """Floor of a module by its name below the package."""
    return FLOOR[name] if name in FLOOR else FLOOR[name.partition(".")[0]]


def removable(name: str) -> str | None:
    """The removable room, such as "sinks/mqtt", that a module belongs to; None in the core."""
    parts = name.split(".")
    for room in ("/".join(parts[:1]), "/".join(parts[:2])):
        if room in REMOVABLE:
            return room
    return None


def table_of(room: str) -> Room:
    """The table of a removable room."""
    table: Room = import_module(f"{PACKAGE}.{room.replace('/', '.')}.room").ROOM
    return table


def test_imports_never_run_up() -> None:
    up = []
    for path in MODULES:
        name = name_of(path)
        for other in own_imports(path):
            rooms = {name.partition(".")[0], other.partition(".")[0]}
            apart = rooms == {"telemetry", "model"}  # these meet in arrays only
            if apart or floor_of(other) > floor_of(name):
                up.append(f"{name} imports {other}")
    assert not up


def test_nobody_imports_a_removable_room_but_rooms_that_require_it() -> None:
    wrong = []
    for path in MODULES:
        name = name_of(path)
        room = removable(name)
        allowed = {None, room}
        if room is not None:
            allowed |= set(table_of(room).requires)
        others = [other for other in own_imports(path) if removable(other) not in allowed]
        wrong += [f"{name} imports {other}" for other in others]
    assert not wrong


def test_tables_of_rooms_import_the_ground_floor_only() -> None:
    """`ur_energy --help` reads all of them."""
    slow = [
        f"{name_of(path)} imports {other}"
        for path in MODULES
        if path.name == "room.py"
        for other in own_imports(path)
        if floor_of(other) > GROUND
    ]
    assert not slow


def test_removable_rooms_use_little_of_the_command_line_and_of_nodes() -> None:
    """Output and arguments; parts of nodes only in the module with the room's own node."""
    wrong = []
    for path in MODULES:
        name = name_of(path)
        if removable(name) in {None, "demo"}:
            continue
        for other in own_imports(path):
            room = other.partition(".")[0]
            private = room == "cli" and other not in OF_COMMAND_LINE
            if private or (room == "nodes" and path.name != "node.py"):
                wrong.append(f"{name} imports {other}")
    assert not wrong


def test_only_nodes_and_the_demo_import_ros() -> None:
    with_ros = {
        name_of(path)
        for path in MODULES
        if name_of(path).partition(".")[0] not in {"nodes", "demo"}
        and path.name != "node.py"
        and {name.split(".")[0] for name in imported(path)} & ROS_PACKAGES
    }
    assert not with_ros


def test_every_room_is_listed() -> None:
    """In `REMOVABLE` and for mypy, so that the rest is checked without it, too."""
    text = (ROOT.parent / "pyproject.toml").read_text(encoding="utf-8")
    for path in MODULES:
        if path.name == "room.py":
            room = path.parent.relative_to(ROOT).as_posix()
            assert room in REMOVABLE
            assert table_of(room).name == room
            dotted = room.replace("/", ".")
            assert f'"{PACKAGE}.{dotted}.*"' in text
            assert f'"test.{dotted}.*"' in text
