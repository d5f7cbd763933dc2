# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The console scripts, which handle signals before they import their programs.

Imports are slow, and a Ctrl-C during an import would print a traceback. The imports of
this module take milliseconds, after the 40 ms in which Python starts.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable
from pathlib import Path

from ur_energy_model import interrupts

NODE_ENDED = 0  # exit code of a node after a signal
# exit code where a package that only some commands need is not installed
NOT_INSTALLED = 1


def ur_energy() -> int:
    """The command `ur_energy`."""
    return _run(lambda: "ur_energy_model.cli.main:main")


def cell_node() -> int:
    """Logger and estimator in one process."""
    return _run(lambda: "ur_energy_model.nodes.cell:main", NODE_ENDED)


def estimator_node() -> int:
    """The live energy estimator."""
    return _run(lambda: "ur_energy_model.nodes.estimator:main", NODE_ENDED)


def identification_node() -> int:
    """Identification of a model from bags."""
    return _run(lambda: "ur_energy_model.nodes.identification:main", NODE_ENDED)


def logger_node() -> int:
    """The logger: telemetry of an arm into bags."""
    return _run(lambda: "ur_energy_model.nodes.logger:main", NODE_ENDED)


def simulated_robot_node() -> int:
    """A simulated robot controller, where the package has its simulation."""
    return _run(lambda: _main_of_room("simulated_robot"), NODE_ENDED)


def _main_of_room(node: str) -> str | None:
    """Where the main function of a node of a room is; None without the room."""
    rooms = importlib.import_module("ur_energy_model.rooms").rooms()
    for room in rooms:
        for each in room.nodes:
            if each.name == node:
                return str(each.main)
    return None


def _run(program: Callable[[], str | None], interrupted: int | None = None) -> int:
    """Exit code of a program.

    Args:
        program: returns its main function as "module:function"; None where the package
            lacks the room that has it. Called once signals are handled.
        interrupted: exit code after a signal that arrives before the program has its own
            handlers; None for 128 plus the number of the signal.
    """
    interrupts.exit_at_once(interrupted)
    try:
        if interrupts.PARENT in os.environ:  # the import takes 40 ms
            processes = importlib.import_module("ur_energy_model.processes")
            processes.end_with_parent_of_environment()
        place = program()
        if place is None:
            name = Path(sys.argv[0]).name
            print(
                f"{name}: this package is without the room that has it", file=sys.stderr
            )
            return NOT_INSTALLED
        module, _, function = place.partition(":")
        code = getattr(importlib.import_module(module), function)()
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("ur_energy_model"):
            raise
        missing = importlib.import_module("ur_energy_model.errors")
        print(missing.MissingPackageError(error.name), file=sys.stderr)
        code = NOT_INSTALLED
    finally:
        interrupts.ignore()
    return int(code or 0)
