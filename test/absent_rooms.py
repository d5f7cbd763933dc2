# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Tests that need a removable room which is not there are skipped with its name.

A checkout may lack rooms of the package, with their folders of tests and pages. Tests of
the rest that import such a room, or helpers from its folder of tests, are skipped. The
package itself must not import a room that is absent: that stays a failure.
"""

from __future__ import annotations

from pathlib import Path
from types import TracebackType

import pytest

from ur_energy_model.rooms import has_room, rooms

ROOT = Path(__file__).resolve().parents[1]
REMOVABLE = (
    "demo",
    "experiment",
    "learning",
    "optimization",
    "papers",
    "plant",
    "simulation",
    "sinks/foxglove",
    "sinks/mqtt",
    "sinks/opcua",
    "sinks/prometheus",
)
"""Every removable room, also of those that are not there; pyproject.toml lists them for mypy."""
_IMPORTING = ("test", "tools", "examples")
"""Folders of the checkout that may import a room by its name."""


def absent_rooms() -> set[str]:
    """Rooms that are not there, or that lack a room which they require."""
    return set(REMOVABLE) - {room.name for room in rooms()}


def needs_room(name: str) -> None:
    """Skip the test that calls it where a room is not there."""
    if not has_room(name):
        pytest.skip(_reason(name))


def absent_room(error: ModuleNotFoundError) -> str | None:
    """Why an import of an absent room skips a test; None for every other failed import.

    The import must stand in a test, a tool or an example, or in a room that is absent
    itself because it lacks the imported one.
    """
    absent = absent_rooms()
    name = _room_of((error.name or "").split(".")[1:], absent)
    if name is None:
        return None
    file = _importing_file(error.__traceback__)
    if file is None or not file.is_relative_to(ROOT):
        return None
    folder, *below = file.relative_to(ROOT).parts
    if folder in _IMPORTING or _room_of(below, absent) is not None:
        return _reason(name)
    return None


def without_its_room(tests: Path) -> str | None:
    """Why a file of tests is skipped that belongs to a room which is not there, else None.

    The room may be there as a folder and lack a room that it requires.
    """
    folder = ROOT / "test"
    if not tests.is_relative_to(folder):
        return None
    name = _room_of(list(tests.relative_to(folder).parent.parts), absent_rooms())
    return None if name is None else _reason(name)


def _room_of(parts: list[str], absent: set[str]) -> str | None:
    """The absent room that the parts of a module's name or of a path below it belong to."""
    for length in (1, 2):
        name = "/".join(parts[:length])
        if name in absent:
            return name
    return None


def _importing_file(traceback: TracebackType | None) -> Path | None:
    """The file whose import failed: the innermost one that is not part of importlib."""
    found = None
    while traceback is not None:
        name = traceback.tb_frame.f_code.co_filename
        if not name.startswith("<"):
            found = Path(name)
        traceback = traceback.tb_next
    return found


def _reason(name: str) -> str:
    return f"needs the room {name}"
