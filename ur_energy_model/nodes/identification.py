"""identification_node: from bags to a model file, on demand."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from std_srvs.srv import Trigger

from ur_energy_model.errors import InputError, UrEnergyError
from ur_energy_model.identification.pipeline import Identification, identify
from ur_energy_model.nodes import conversions as convert
from ur_energy_model.nodes.managed_node import LATCHED, LIVE, ManagedNode
from ur_energy_model.nodes.node_process import run_nodes

REPORT_PERIOD = 1.0
"""Of /diagnostics [s]."""


class IdentificationNode(ManagedNode):
    """Identifies when asked by the service ~/identify, one at a time.

    Args:
        options: further arguments of rclpy's node.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__("identification", **options)
        self._busy = threading.Lock()

    def open(self) -> None:
        """Make topics and services."""
        self._progress = (0.0, "idle")
        self._exit_code: int | None = None
        self._level = convert.OK
        self._figures: dict[str, Any] = {}
        self._diagnostics = self.publish_on(DiagnosticArray, "/diagnostics", LIVE)
        self._result = self.publish_on(DiagnosticArray, "~/result", LATCHED)
        self.serve(Trigger, "~/identify", self._on_identify, apart=True)
        self.every(REPORT_PERIOD, self._report)

    def start(self) -> None:
        """Identify once, where `identify_on_start` says so."""
        if self.value("identify_on_start"):
            threading.Thread(target=self._identify_alone, name="identification").start()

    def stop(self) -> None:
        """Wait for an identification that is under way."""
        with self._busy:
            pass

    def _on_identify(self, request: Any, response: Any) -> Any:
        try:
            response.message, response.success = self._identify(), True
        except UrEnergyError as error:
            response.message, response.success = str(error), False
        return response

    def _identify_alone(self) -> None:
        code = 1
        try:
            self._identify()
            code = 0
        except UrEnergyError as error:
            self.get_logger().error(str(error))
        finally:
            self._exit_code = code

    def _identify(self) -> str:
        """Identify, save the model, publish the result; one line for people.

        Raises:
            UrEnergyError: refused input, or another identification is under way.
        """
        if not self._busy.acquire(blocking=False):
            raise UrEnergyError("an identification is under way; wait for its result")
        try:
            bags = self.texts("bags")
            if not bags:
                raise InputError(
                    self.get_name(), "is empty", "name the bags to identify from", field="bags"
                )
            output = Path(self.value("output")).expanduser()
            result = identify(
                bags,
                self.value("robot_model"),
                validate=self.texts("validation_bags"),
                friction=self.value("friction"),
                power_model=self.value("power_model"),
                progress=self._on_progress,
            )
            result.model.save(output)
        except UrEnergyError as error:
            self._level, self._progress, self._figures = convert.ERROR, (0.0, str(error)), {}
            raise
        finally:
            self._busy.release()
        text = f"{output}: identified from {len(bags)} bag{'s' if len(bags) > 1 else ''}"
        self._level, self._progress = convert.OK, (1.0, text)
        self._figures = {"model_file": output, **bus_figures(result)}
        self._result.publish(
            convert.diagnostics(self.get_clock().now().to_msg(), result_statuses(result))
        )
        self.get_logger().info(text)
        return text

    def _on_progress(self, fraction: float, text: str | None = None) -> None:
        self._level = convert.OK
        self._progress = (fraction, text or self._progress[1])

    def _report(self) -> None:
        if self._exit_code is not None and self.value("exit_when_done"):
            self.finish(self._exit_code)
        fraction, text = self._progress
        name = self.get_fully_qualified_name().lstrip("/")
        values = {"progress": fraction, **self._figures}
        self._diagnostics.publish(
            convert.diagnostics(
                self.get_clock().now().to_msg(),
                [convert.status(f"{name}: result", self._level, text, values)],
            )
        )


def result_statuses(result: Identification) -> list[DiagnosticStatus]:
    """Identified constants of each joint with deviations, and the whole arm's fit."""
    out = []
    for joint in result.model.joints:
        values: dict[str, Any] = {}
        for name in (
            "reflected_inertia",
            "torque_constant",
            "winding_resistance",
            "back_emf_constant",
        ):
            values[name] = getattr(joint, name)
            values[f"{name}_std"] = joint.std.get(name)
        values |= {"friction_law": joint.friction.law.name}
        out.append(
            convert.status(f"model: {joint.name}", convert.OK, joint.friction_reason, values)
        )
    out.append(convert.status("model: arm", convert.OK, result.model.robot, bus_figures(result)))
    return out


def bus_figures(result: Identification) -> dict[str, Any]:
    """Standby, and the power metrics of fit and validation."""
    figures: dict[str, Any] = {"standby_W": result.model.bus.standby}
    for name, entries in (("fit", result.model.fit), ("validation", result.model.validation)):
        for entry in entries:
            power = entry.get("power")
            if power is not None:
                bag = Path(str(entry.get("bag", ""))).name
                figures[f"{name} {bag} power_rmse_W"] = power["rmse"]
                figures[f"{name} {bag} energy_error_percent"] = power["energy_error_percent"]
    return figures


def main() -> None:
    """Console script."""
    sys.exit(run_nodes(lambda: [IdentificationNode()], threads=2))


if __name__ == "__main__":
    main()
