# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""simulated_robot_node: a simulated arm behind the ports of a UR controller.

The node is a lifecycle around `Simulation`: while it is active, a thread serves RTDE,
dashboard and scripts at the address in `host`; /diagnostics states how punctual it is.
"""

from __future__ import annotations

import threading
from typing import Any

from ur_energy_model.errors import UrEnergyError
from ur_energy_model.nodes.lines import INFO
from ur_energy_model.nodes.managed_node import ManagedNode
from ur_energy_model.nodes.process import run_nodes
from ur_energy_model.nodes.ros import OK
from ur_energy_model.simulation.room import SimulatedRobotParameters
from ur_energy_model.simulation.simulated_controller import Simulation


class SimulatedRobotNode(ManagedNode):
    """Runs the simulated controller while active; deactivation writes the truth file."""

    def __init__(self, **options: Any) -> None:
        super().__init__("simulated_robot", **options)

    @property
    def parameters(self) -> SimulatedRobotParameters:
        """Values of the node's own parameters."""
        return self.given.of(SimulatedRobotParameters)

    def open(self) -> None:
        """Report on /diagnostics."""
        self.add_report(self._report)

    def start(self) -> None:
        """Start the simulated arm and its servers."""
        given = self.parameters
        self._arm, self._controller = Simulation(
            robot=given.robot_model,
            host=given.host,
            motion=given.motion,
            seed=given.seed,
            session=given.session,
            ambient=given.ambient,
            truth=given.truth_file,
        ).build()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._serve, name="simulated controller")
        self._thread.start()
        self._over_reported = False
        self.log(INFO, f"simulating a {given.robot_model} at {given.host}")

    def stop(self) -> None:
        """Stop the servers and write the truth file."""
        self._controller.stop()
        self._thread.join()
        self._arm.close()

    def _serve(self) -> None:
        """Serve until the duration is over or `stop` is called (in the thread)."""
        try:
            self._controller.run(self.parameters.duration or None)
        except BaseException as error:
            self._failure = error

    def _report(self) -> None:
        """Publish ticks and modes on /diagnostics; end the process if the thread failed."""
        if isinstance(self._failure, UrEnergyError):
            self.finish(1, f"the simulation failed: {self.words(self._failure)}")
            return
        if self._failure is not None:
            self.on_unexpected(self._failure, f"thread {self._thread.name!r}")
            return
        ticker = self._controller.ticker
        values = {
            "host": self.parameters.host,
            "motion": self.parameters.motion,
            "ticks": ticker.ticks,
            "rate_Hz": ticker.rate,
            "lateness_p99_ms": 1e3 * ticker.lateness(0.99),
            "robot_mode": self._arm.robot_mode.name.lower(),
            "safety_mode": self._arm.safety_mode.name.lower(),
        }
        text = "serving" if self._thread.is_alive() else "the duration is over"
        if not self._thread.is_alive() and not self._over_reported:
            self._over_reported = True
            self.log(INFO, "the duration is over; the servers are closed")
        self.publish_parts({"controller": (OK, text, values)})


def main() -> int:
    """Console script."""
    return run_nodes(lambda: [SimulatedRobotNode()])
