"""The house's rules about imports: no import runs up a floor, and only nodes/ knows ROS."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import ur_energy_model

ROOT = Path(ur_energy_model.__file__).parent
FLOOR = {
    "errors": 0, "typing": 0, "resources": 0, "files": 0, "plain": 0, "interrupts": 0,
    "low_pass": 0, "temporary_files": 0, "diagnostic_status": 0, "terminal_text": 0,
    "missing_packages": 0, "many_bags": 0, "topics_and_services": 0,
    "reading": 0, "robot_modes": 0,
    "telemetry": 1, "model": 1,
    "trajectory": 2,
    "energy": 3,
    "identification": 4, "simulation": 4, "energy_topics": 4,
    "learning": 5, "optimization": 5, "plant": 5, "sinks": 5,
    "experiment": 6, "report": 6,
    "layouts": 7, "nodes": 7, "cli": 7, "demo": 7, "scripts": 7,
}  # fmt: skip
ROS_PACKAGES = {"rclpy", "std_msgs", "sensor_msgs", "diagnostic_msgs", "visualization_msgs"}


def imported(path: Path) -> Iterator[str]:
    """Absolute names of all modules that a file imports, at its top or inside functions."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports hide where a module belongs"
            yield node.module or ""


def room_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


MODULES = [path for path in sorted(ROOT.rglob("*.py")) if room_of(path) in FLOOR]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_never_run_up(path: Path) -> None:
    room = room_of(path)
    for name in imported(path):
        parts = name.split(".")
        if parts[0] != "ur_energy_model" or len(parts) < 2:
            continue
        assert FLOOR[parts[1]] <= FLOOR[room], f"{room} must not import {name}"
        if {room, parts[1]} == {"telemetry", "model"}:
            pytest.fail("telemetry and model know each other through arrays only")


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_only_nodes_and_the_demo_know_ros(path: Path) -> None:
    if room_of(path) in {"nodes", "demo"}:
        return
    assert not {name.split(".")[0] for name in imported(path)} & ROS_PACKAGES


def test_every_room_stands_on_a_floor() -> None:
    rooms = {path.name for path in ROOT.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert rooms <= set(FLOOR)
