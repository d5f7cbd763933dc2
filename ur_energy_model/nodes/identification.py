# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""identification_node: identifies a model from bags on request.

Identification takes minutes: it runs in the thread of the service's callback (or in one
of its own at the start), while the executor's other thread reports its progress.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus

from ur_energy_model.errors import InputError, UrEnergyError, counted
from ur_energy_model.identification.arm_fit import IdentificationOptions
from ur_energy_model.identification.pipeline import Identification, identify
from ur_energy_model.model.model_file import save_model
from ur_energy_model.nodes import lines
from ur_energy_model.nodes.managed_node import ManagedNode
from ur_energy_model.nodes.parameters import IdentificationParameters
from ur_energy_model.nodes.process import run_nodes
from ur_energy_model.nodes.ros import ERROR, OK, Part, diagnostic_array, status
from ur_energy_model.telemetry.bag.reader import recorded_robot
from ur_energy_model.topics_and_services import IDENTIFICATION_RESULT, IDENTIFY


class IdentificationNode(ManagedNode):
    """Identifies a model when ~/identify is called; one identification at a time.

    Args:
        options: further arguments of rclpy's node.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__("identification", **options)
        self._busy = threading.Lock()
        self._stopping = threading.Event()

    @property
    def parameters(self) -> IdentificationParameters:
        """Values of the node's own parameters."""
        return self.given.of(IdentificationParameters)

    def open(self) -> None:
        """Make topics and services."""
        self._exit_code: int | None = None
        self._state: Part = (OK, "idle", {"progress": 0.0})
        self._result = self.add_publisher(DiagnosticArray, IDENTIFICATION_RESULT)
        self.add_service(IDENTIFY, self._identify, concurrent=True)
        self.add_report(self._report)

    def start(self) -> None:
        """Identify once if `identify_on_start` is true."""
        self._stopping.clear()
        if self.parameters.identify_on_start:
            threading.Thread(
                target=self._identify_on_start, name="identification"
            ).start()

    def stop(self) -> None:
        """Stop a running identification at its next step, and wait for its end."""
        self._stopping.set()
        with self._busy:  # which the identification holds
            pass

    def _identify_on_start(self) -> None:
        """Identify once, and note the exit code for `exit_when_done` (in a thread)."""
        code = 1
        try:
            self._identify()
            code = 0
        except UrEnergyError as error:
            level = lines.INFO if self._stopping.is_set() else lines.ERROR
            self.log(level, self.words(error))
        finally:
            self._exit_code = code

    def _identify(self) -> str:
        """Identify, save the model and publish the result.

        Returns:
            The line about it, for the response of the service.

        Raises:
            UrEnergyError: unusable input, or another identification is running.
        """
        if not self._busy.acquire(blocking=False):
            raise UrEnergyError("another identification is running; wait for its result")
        given = self.parameters
        try:
            if not given.bags:
                remedy = "name the bags to identify from"
                raise InputError(self.get_name(), "is empty", remedy, field="bags")
            self.log(
                lines.INFO, f"identifying a model from {', '.join(map(str, given.bags))}"
            )
            result = identify(
                given.bags,
                given.robot_model or recorded_robot(given.bags),
                IdentificationOptions(
                    friction=given.friction, power_model=given.power_model
                ),
                validate=given.validation_bags,
                progress=self._on_progress,
            )
            save_model(result.model, given.output)
        except UrEnergyError as error:
            self._state = ERROR, self.words(error), {"progress": 0.0}
            raise
        finally:
            self._busy.release()
        text = f"{given.output}: identified from {counted(len(given.bags), 'bag')}"
        figures = {"progress": 1.0, "model_file": given.output, **bus_figures(result)}
        self._state = OK, text, figures
        stamp = self.get_clock().now().to_msg()
        self._result.publish(diagnostic_array(stamp, result_statuses(result)))
        for warning in result.warnings:
            self.log(lines.WARN, warning)
        model = result.model
        for kind, entries in (("fit of", model.fit), ("held out:", model.validation)):
            for entry in entries:
                self.log(lines.INFO, f"{kind} {errors_of(entry)}")
        self.log(lines.INFO, text)
        return text

    def _on_progress(self, fraction: float, text: str | None = None) -> None:
        """Note how far the identification is, and end it if the node is to stop.

        Args:
            fraction: share of the work that is done, 0 to 1.
            text: what is being done; None for the same as before.

        Raises:
            UrEnergyError: the node is to stop.
        """
        if self._stopping.is_set():
            raise UrEnergyError(
                "the identification was stopped; no model file was written"
            )
        _, before, values = self._state
        self._state = OK, text or before, {**values, "progress": fraction}

    def _report(self) -> None:
        """Publish the state on /diagnostics; end the process when all is done."""
        if self._exit_code is not None and self.parameters.exit_when_done:
            self.finish(self._exit_code)
        self.publish_parts({"result": self._state})


CONSTANTS = (
    "reflected_inertia",
    "torque_constant",
    "winding_resistance",
    "back_emf_constant",
)
"""Attributes of a joint's model that the result has, with standard deviations."""


def result_statuses(result: Identification) -> list[DiagnosticStatus]:
    """The topic of the result: a status of each joint, and one of the whole arm.

    Args:
        result: result of the identification.

    Returns:
        Constants of each joint with standard deviations, as in the model file, and the
        power errors of all recordings.
    """
    out: list[DiagnosticStatus] = []
    for joint in result.model.joints:
        values: dict[str, object] = {}
        for name in CONSTANTS:
            values |= {name: getattr(joint, name), f"{name}_std": joint.std.get(name)}
        values["friction_law"] = joint.friction.law.name
        out.append(status(f"model: {joint.name}", (OK, joint.friction_reason, values)))
    out.append(status("model: arm", (OK, result.model.robot, bus_figures(result))))
    return out


def errors_of(entry: Mapping[str, Any]) -> str:
    """Errors of a recording in one line: torque, current and power.

    Args:
        entry: entry `fit` or `validation` of a model file.
    """
    parts: list[str] = []
    for name, unit in (("torque", "N m"), ("current", "A")):
        if entry.get(name) is not None:
            rms = ", ".join(f"{joint['rms']:.3g}" for joint in entry[name])
            parts.append(f"{name} RMS error {rms} {unit} (joints from the base)")
    power = entry.get("power")
    if power is not None:
        text = f"power RMS error {power['rmse']:.3g} W"
        if power["energy_error_percent"] is not None:
            text += f", energy error {power['energy_error_percent']:.2g} %"
        parts.append(text)
    return f"{entry['bag']}: {'; '.join(parts) or 'nothing to compare'}"


def bus_figures(result: Identification) -> dict[str, object]:
    """Standby power [W], and power errors of fit and validation by name of the bag."""
    model = result.model
    figures: dict[str, object] = {"standby_W": model.bus.standby}
    for kind, entries in (("fit", model.fit), ("validation", model.validation)):
        for entry in entries:
            power = entry.get("power")
            if power is not None:
                bag = Path(str(entry.get("bag", ""))).name
                title = f"{kind} {bag}"
                figures[f"{title} power_rmse_W"] = power["rmse"]
                figures[f"{title} energy_error_percent"] = power["energy_error_percent"]
    return figures


def main() -> int:
    """Console script."""
    return run_nodes(lambda: [IdentificationNode()], threads=2)
