"""The console scripts: each takes care of Ctrl-C before it imports what it runs.

Imports take longer than a hasty Ctrl-C, and end in a traceback under Python's own handler. What
this module imports takes milliseconds; before it, for some 40 ms, Python itself starts.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys

INTERRUPTED = 130
"""Exit code of a command that Ctrl-C has ended; a node's is 0."""
NOT_INSTALLED = 1
"""Exit code where a package that only some commands need is not installed."""
EXTRAS = {
    "numba": "simulation",
    "rtde_control": "motion",
    "rtde_receive": "motion",
    "rclpy": "ros",
}
"""Extra of pyproject.toml that installs a module; `all` for others."""


def ur_energy() -> int:
    """The command."""
    return _run("ur_energy_model.cli.main", INTERRUPTED)


def cell_node() -> int:
    """Logger and estimator in one process."""
    return _run("ur_energy_model.nodes.cell")


def estimator_node() -> int:
    """Live energy of an arm."""
    return _run("ur_energy_model.nodes.estimator")


def identification_node() -> int:
    """A model from bags."""
    return _run("ur_energy_model.nodes.identification")


def logger_node() -> int:
    """An arm's telemetry in a bag."""
    return _run("ur_energy_model.nodes.logger")


def simulated_robot_node() -> int:
    """A controller without a robot."""
    return _run("ur_energy_model.nodes.simulated_robot")


def _run(module: str, interrupted: int = 0) -> int:
    """Import a module, run its `main`, and return the exit code.

    Args:
        module: its full name.
        interrupted: exit code where Ctrl-C comes before the module has taken it over.
    """
    exit_quietly(interrupted)
    try:
        code = importlib.import_module(module).main()
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("ur_energy_model"):
            raise
        print(_not_installed(error.name), file=sys.stderr)
        code = NOT_INSTALLED
    finally:
        importlib.import_module("ur_energy_model.interrupts").ignore()
    return int(code or 0)


def _not_installed(module: str) -> str:
    """One line that says which package is missing and how to install it."""
    package = module.partition(".")[0]
    extra = EXTRAS.get(package, "all")
    remedy = f"pip install 'ur_energy_model[{extra}]'"
    if extra == "ros":
        remedy = f"source the setup file of ROS 2, or {remedy}"
    return f"the Python package {package!r} is not installed: {remedy}"


def exit_quietly(code: int) -> None:
    """From now on SIGINT ends the process at once; nothing is cleaned up.

    Where SIGINT is ignored, as a shell's background jobs have it, it stays so.
    """

    def end(*_: object) -> None:
        os._exit(code)

    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, end)
