"""What the cases of a run share: addresses, ROS domains, and a simulated controller."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from test.running import claim_domain, fresh_host, simulator_command

if TYPE_CHECKING:
    from test.torture.watched import Watched

PATIENCE = 45.0
"""Longest wait for the start or the end of a process [s]; a bound, not an expectation."""
ROOT = Path(__file__).resolve().parents[2]


class Surroundings:
    """Started on first use, ended with the block."""

    def __init__(self) -> None:
        self._held = ExitStack()
        self.folder = Path(tempfile.mkdtemp(prefix="torture_"))
        self._held.callback(shutil.rmtree, self.folder, ignore_errors=True)
        self._lock = threading.RLock()
        self._robot: tuple[str, Watched] | None = None
        self._other: tuple[str, Watched] | None = None
        self.kept: dict[str, object] = {}
        """What the cases of a family keep for their next ones, by name."""

    def __enter__(self) -> Surroundings:
        return self

    def __exit__(self, *_: object) -> None:
        from test.torture.watched import Watched

        self._held.close()
        Watched.kill_the_rest()

    def at_end(self, action: object, *arguments: object) -> None:
        """Call `action` with arguments when the block ends."""
        self._held.callback(action, *arguments)  # type: ignore[arg-type]

    @property
    def host(self) -> str:
        """Address of a simulated controller in a process of its own, which moves its arm."""
        with self._lock:
            if self._robot is None or not self._robot[1].running:
                self._robot = self.start_robot("--motion", "trajectory_a")
            return self._robot[0]

    @property
    def other_host(self) -> str:
        """Address of another simulated controller: another arm of the same model."""
        with self._lock:
            if self._other is None or not self._other[1].running:
                self._other = self.start_robot("--motion", "trajectory_a", "--seed", "5")
            return self._other[0]

    def start_robot(self, *options: str) -> tuple[str, Watched]:
        """Start another simulated controller; returns its address and process.

        Raises:
            RuntimeError: it did not start.
        """
        from test.torture.watched import Watched

        host = fresh_host()
        robot = Watched(simulator_command(host, *options), self.folder, self.environment)
        self._held.callback(robot.end, PATIENCE)
        if not robot.wait_for(f"ready {host}", PATIENCE):
            raise RuntimeError(f"the simulated controller did not start: {robot.output}")
        return host, robot

    @property
    def environment(self) -> dict[str, str]:
        """Variables of the processes under test: this tree, one thread each."""
        paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
        return {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(paths),
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
        }

    def ros_environment(self) -> dict[str, str]:
        """Variables of ROS nodes in a domain of their own on this machine.

        Raises:
            RuntimeError: all domains are taken.
        """
        with self._lock:
            domain = claim_domain(self._held)
        if domain is None:
            raise RuntimeError("all ROS domains are taken")
        return {
            **self.environment,
            "ROS_DOMAIN_ID": str(domain),
            "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST",
            "ROS_LOG_DIR": str(self.folder / "ros_log"),
        }

    @property
    def model(self) -> Path:
        """A model file of a UR5e."""
        path = self.folder / "model.yaml"
        with self._lock:
            if not path.exists():
                from test.energy.known_arm import known_model
                from ur_energy_model.model.model_file import save_model

                save_model(known_model(), path)
        return path


def command(*arguments: str) -> list[str]:
    """Command line of `ur_energy`."""
    return [sys.executable, "-m", "ur_energy_model.cli.main", *arguments]
