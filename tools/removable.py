# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Proves that each removable room can be taken out of the package.

    python -m tools.removable [ROOM ...] [--quick] [--keep-files] [--keep-copy]

Of every room, or of those named ("papers", "sinks/mqtt"; "all" takes all rooms out at once),
a copy is made of the files that git tracks. The room, the rooms that require it, their
tests and their pages are deleted from it. Then, in the copy, the imports of the package,
the list of commands, lint, types, the tests of the rest and the documentation are checked.
With all rooms out, test/test_mission.py shows that the core still records, identifies,
estimates and publishes /energy.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from test.test_floors import imported
from ur_energy_model.rooms import PACKAGE, Room, rooms

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build" / "removable"
CACHE = BUILD / "mypy_cache"
ALL = "all"
TOGETHER = (("optimization", "experiment"),)
"""Rooms that are taken out at once; each other room goes with those that require it."""
QUICK = (
    "test/test_floors.py",
    "test/test_mission.py",
    "test/test_documented_commands.py",
    "test/test_packaging.py",
    "test/test_options.py",
    "test/contracts/test_commands.py",
    "test/contracts/test_ros_surface.py",
    "test/launch",
    "test/cli/test_parameters.py",
)
"""What runs with --quick, beside the collection of all tests."""
MOST_LINES = 15
ALONE = BUILD / "alone"
"""Folder in front of the search path of modules: what Python runs there when it starts."""
WITHOUT_CHECKOUT = '''"""Modules that a copy lacks are not taken from the checkout instead."""

import sys

sys.meta_path = [each for each in sys.meta_path if "editable" not in repr(each).lower()]
'''
"""An editable installation finds modules of the checkout after all others have failed."""


@dataclass(frozen=True)
class Case:
    """Rooms that are taken out together.

    Attributes:
        name: of the case, for the output and for the folder of its copy.
        gone: the rooms that are deleted.
    """

    name: str
    gone: tuple[Room, ...]

    @property
    def copy(self) -> Path:
        """Where the checkout without these rooms stands."""
        return BUILD / self.name.replace("/", "_")

    @property
    def commands(self) -> set[str]:
        """Subcommands of `ur_energy` that go with the rooms."""
        return {
            command.name.split()[0] for room in self.gone for command in room.commands
        }

    def had(self, module: str) -> bool:
        """Whether a module, by its absolute name, was in one of the rooms."""
        packages = [f"{PACKAGE}.{room.name.replace('/', '.')}." for room in self.gone]
        return f"{module}.".startswith(tuple(packages))


def cases(names: Iterable[str]) -> list[Case]:
    """The cases with these names; without names one for each room, and one of all rooms."""
    every = rooms()
    sets = {ALL: {room.name for room in every}}
    for room in every:
        sets[room.name] = {room.name}
    for together in TOGETHER:
        for name in together:
            del sets[name]
        sets[together[0]] = set(together)
    found = []
    for name in names or [*(name for name in sets if name != ALL), ALL]:
        if name not in sets:
            raise SystemExit(f"no room {name}; rooms: {', '.join(sets)}")
        gone = sets[name]
        found.append(Case(name, tuple(room for room in every if room.name in gone)))
    return found


def make_copy(case: Case, keep_files: bool) -> None:
    """Copy what git tracks, without the rooms' folders, tests and pages."""
    shutil.rmtree(case.copy, ignore_errors=True)
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    gone = [Path(place) for room in case.gone for place in places_of(room, keep_files)]
    for name in listed.stdout.split("\0"):
        path = Path(name)
        left_out = any(path == place or place in path.parents for place in gone)
        if name and not left_out and (ROOT / path).exists():
            target = case.copy / path
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / path, target)


def places_of(room: Room, keep_files: bool) -> list[str]:
    """Folders and files of a room, from the root of the checkout."""
    places = [f"{PACKAGE}/{room.name}", *room.tests, *room.pages]
    return places if keep_files else [*places, *room.files]


def foreign_imports(case: Case) -> list[str]:
    """Imports of the rooms that are left in the package, outside of rooms that require them."""
    require = [
        f"{PACKAGE}/{room.name}/"
        for room in rooms()
        if set(room.requires) & {each.name for each in case.gone}
    ]
    found = []
    for path in sorted((case.copy / PACKAGE).rglob("*.py")):
        place = path.relative_to(case.copy).as_posix()
        if not place.startswith(tuple(require)):
            gone = [name for name in imported(path) if case.had(name)]
            found += [f"{place} imports {name}" for name in gone]
    return found


def listed_commands(case: Case) -> list[str]:
    """What is wrong with the commands that `ur_energy --help` lists."""
    done = run(case, "-m", f"{PACKAGE}.cli.main", "--help")
    if done.returncode != 0:
        return tail(done)
    listed = set(
        re.findall(r"^ {2,}([a-z][a-z-]+)(?: {2,}|$)", done.stdout, re.MULTILINE)
    )
    left = [f"{name} is still listed" for name in sorted(listed & case.commands)]
    lacking = {"record", "identify", "estimate", "report"} - listed
    return [*left, *(f"{name} is not listed" for name in sorted(lacking))]


def run(case: Case, *words: str) -> subprocess.CompletedProcess[str]:
    """Run Python in the copy, which is what is imported there."""
    paths = os.pathsep.join([str(ALONE), str(case.copy)])
    environment = {**os.environ, "PYTHONPATH": paths, "TERM": "dumb"}
    return subprocess.run(
        [sys.executable, *words],
        cwd=case.copy,
        env=environment,
        capture_output=True,
        text=True,
    )


def program(*words: str) -> Callable[[Case], list[str]]:
    """A check that runs Python in the copy and that fails with its exit code."""

    def check(case: Case) -> list[str]:
        done = run(case, *words)
        return tail(done) if done.returncode != 0 else []

    return check


def tail(done: subprocess.CompletedProcess[str]) -> list[str]:
    """The tests that failed; for other programs, the last lines that they have printed."""
    printed = done.stdout.rstrip().splitlines()
    failed = [line for line in printed if line.startswith(("FAILED", "ERROR"))]
    if failed:
        return [*failed[:MOST_LINES], printed[-1]]
    lines = (done.stdout + done.stderr).rstrip().splitlines()
    return lines[-MOST_LINES:] or [f"exit code {done.returncode}"]


def checks(quick: bool, workers: str) -> dict[str, Callable[[Case], list[str]]]:
    """What must hold without a room, in order; each returns what is wrong, as lines."""
    pytest = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "--all-packages", "-n")
    found: dict[str, Callable[[Case], list[str]]] = {
        "imports": foreign_imports,
        "commands": listed_commands,
        "lint": program("-m", "ruff", "check", "--no-cache", "."),
        "types": program("-m", "mypy", "--cache-dir", str(CACHE)),
    }
    if quick:
        found["collection"] = program(*pytest, "0", "--collect-only")
        found["tests"] = program(*pytest, workers, *QUICK)
    else:
        fast = ("--dist", "worksteal", "-m", "not truth")
        found["tests"] = program(*pytest, workers, *fast)
    found["docs"] = program(
        "-m", "sphinx", "-b", "html", "-W", "-q", "docs", "build/docs"
    )
    return found


def main() -> int:
    """Check the rooms that are named; the number of failed checks decides the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rooms", nargs="*", metavar="ROOM")
    parser.add_argument("--quick", action="store_true", help="a few tests instead of all")
    parser.add_argument(
        "--keep-files", action="store_true", help="leave ROOM.files there"
    )
    parser.add_argument("--keep-copy", action="store_true", help="leave copies in build/")
    parser.add_argument("-n", default="2", metavar="N", help="processes of the tests")
    parser.add_argument("--only", action="append", help="a single check, such as types")
    given = parser.parse_args()
    failed = 0
    cache = ROOT / ".mypy_cache"
    if cache.is_dir() and not CACHE.is_dir():
        shutil.copytree(cache, CACHE)
    ALONE.mkdir(parents=True, exist_ok=True)
    (ALONE / "sitecustomize.py").write_text(WITHOUT_CHECKOUT)
    for case in cases(given.rooms):
        make_copy(case, given.keep_files)
        for name, check in checks(given.quick, given.n).items():
            if given.only and name not in given.only:
                continue
            start = time.monotonic()
            problems = check(case)
            outcome = "failed" if problems else "ok"
            print(
                f"{case.name:18} {name:10} {outcome:6} {time.monotonic() - start:6.1f} s"
            )
            for line in problems:
                print(f"    {line}")
            failed += bool(problems)
            sys.stdout.flush()
        if not given.keep_copy:
            shutil.rmtree(case.copy)
    print(f"{failed} checks failed" if failed else "every room can be taken out")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
