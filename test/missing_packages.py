# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Tests that need what is not there are skipped with its name: packages, and rooms.

`colcon test` in a cell has what rosdep installs, and without ROS 2 or the extras less
than that. Under `make test` everything is installed: with `--all-packages` a missing
package is a failure. Rooms of this package may be absent in both cases.
"""

from __future__ import annotations

from collections.abc import Generator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from test.absent_rooms import absent_room, without_its_room
from ur_energy_model.errors import MissingPackageError

OWN = ("ur_energy_model", "test", "tools")


def add_option(parser: pytest.Parser) -> None:
    """The option of the command line."""
    parser.addoption(
        "--all-packages",
        action="store_true",
        help="a package that is not installed is a failure",
    )


class SkipWithoutNeeds:
    """A plugin: reports of failures whose cause is a missing package or room become skips.

    It is no conftest.py, because pytest does not call the hooks of one for folders whose
    own conftest.py cannot be imported. Hooks are written in the form that pytest 6
    (Ubuntu 22.04) has.
    """

    def __init__(self, all_packages: bool) -> None:
        self._all_packages = all_packages
        self._half_imported: dict[str, str] = {}
        """Why a conftest.py or a module of tests could not be imported, by its name: pytest
        keeps it half-imported, and modules that import from it fail with another error."""
        self._in_commands: list[str] = []
        """What commands of the package itself reported as missing, since the last report."""
        self._earlier: dict[BaseException, str] = {}
        """Reasons of earlier errors: that of a shared fixture is raised for each of its tests."""

    @pytest.hookimpl
    def pytest_configure(self) -> None:
        """Note what the package's commands report: they print it and end with an exit code."""
        if self._all_packages:
            return
        made = MissingPackageError.__init__
        found = self._in_commands

        def noted(error: MissingPackageError, package: str) -> None:
            made(error, package)
            found.append(f"the Python package {error.package!r} is not installed")

        MissingPackageError.__init__ = noted  # type: ignore[assignment,method-assign]

    @pytest.hookimpl
    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Skip tests of rooms that are not there, also those that import no room."""
        for item in items:
            reason = without_its_room(Path(str(item.fspath)))
            if reason is not None:
                item.add_marker(pytest.mark.skip(reason=reason))

    @pytest.hookimpl(hookwrapper=True)
    def pytest_make_collect_report(self, collector: Any) -> Generator[None, Any, None]:
        """Folders and modules that cannot be imported."""
        outcome = yield
        report = outcome.get_result()
        self._skip(collector, getattr(report, "call", None), report)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(
        self, item: Any, call: Any
    ) -> Generator[None, Any, None]:
        """Tests and fixtures that import something late."""
        outcome = yield
        self._skip(item, call, outcome.get_result())
        self._in_commands.clear()

    def _skip(self, node: Any, call: Any, report: Any) -> None:
        if call is None or call.excinfo is None or not report.failed:
            return
        error = call.excinfo.value
        reason = self._reason(error)
        if reason is None and self._in_commands:
            reason = self._in_commands[0]
        if reason is None:
            reason = self._earlier.get(error)
        if reason is None:
            return
        self._earlier[error] = reason
        path = getattr(error, "path", None)  # of a ConftestImportFailure
        if path is None and isinstance(node, pytest.Module):
            path = Path(node.fspath)
        if path is not None:
            parts = path.relative_to(node.config.rootpath).with_suffix("").parts
            self._half_imported[".".join(parts)] = reason
        report.outcome = "skipped"
        report.longrepr = (node.nodeid, 1, f"Skipped: {reason}")

    def _reason(self, error: BaseException | None) -> str | None:
        """The package or room whose absence caused an error; None for other errors."""
        while error is not None:
            if isinstance(error, ModuleNotFoundError) and error.name is not None:
                room = absent_room(error)
                if room is not None:
                    return room
                package = error.name.partition(".")[0]
                missing = package not in OWN and find_spec(package) is None
                if missing and not self._all_packages:
                    return f"the Python package {package!r} is not installed"
            elif isinstance(error, ImportError) and error.name in self._half_imported:
                return self._half_imported[error.name]
            error = error.__cause__ or error.__context__
        return None
