"""The console scripts, which handle Ctrl-C before they import their programs.

Imports are slow, and a Ctrl-C during an import would print a traceback. The imports of this module
take milliseconds, after the 40 ms in which Python starts.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys

INTERRUPTED = 130  # exit code of a command after Ctrl-C; that of a node is 0
NOT_INSTALLED = 1  # exit code where a package that only some commands need is not installed


def ur_energy() -> int:
    """The command `ur_energy`."""
    return _run("ur_energy_model.cli.main", INTERRUPTED)


def cell_node() -> int:
    """Logger and estimator in one process."""
    return _run("ur_energy_model.nodes.cell")


def estimator_node() -> int:
    """The live energy estimator."""
    return _run("ur_energy_model.nodes.estimator")


def identification_node() -> int:
    """Identification of a model from bags."""
    return _run("ur_energy_model.nodes.identification")


def logger_node() -> int:
    """The logger: telemetry of an arm into bags."""
    return _run("ur_energy_model.nodes.logger")


def simulated_robot_node() -> int:
    """A simulated robot controller."""
    return _run("ur_energy_model.nodes.simulated_robot")


def _run(module: str, interrupted: int = 0) -> int:
    """Exit code of a module's `main`; `interrupted` by Ctrl-C before that installs its handler."""
    exit_quietly(interrupted)
    try:
        code = importlib.import_module(module).main()
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("ur_energy_model"):
            raise
        missing = importlib.import_module("ur_energy_model.errors")
        print(missing.MissingPackageError(error.name), file=sys.stderr)
        code = NOT_INSTALLED
    finally:
        importlib.import_module("ur_energy_model.interrupts").ignore()
    return int(code or 0)


def exit_quietly(code: int) -> None:
    """Let SIGINT end the process at once, without clean-up.

    If SIGINT is ignored, as in background jobs of a shell, it remains ignored.
    """

    def end(*_: object) -> None:
        os._exit(code)

    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, end)
