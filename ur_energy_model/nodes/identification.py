"""identification_node: identifies a model from bags on request."""

from __future__ import annotations

import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus

from ur_energy_model.cli.arguments import recorded_robot
from ur_energy_model.errors import InputError, UrEnergyError
from ur_energy_model.identification.pipeline import Identification, IdentificationOptions, identify
from ur_energy_model.model.model_file import save_model
from ur_energy_model.nodes.lines import Level, Line
from ur_energy_model.nodes.managed_node import ManagedNode
from ur_energy_model.nodes.node_process import run_nodes
from ur_energy_model.nodes.parameters import IdentificationParameters
from ur_energy_model.nodes.ros import ERROR, OK, diagnostic_array, status
from ur_energy_model.topics_and_services import IDENTIFICATION_RESULT, IDENTIFY


class IdentificationNode(ManagedNode):
    """Identifies a model when ~/identify is called; one identification at a time.

    Args:
        options: further arguments of rclpy's node.
    """

    parameters: IdentificationParameters

    def __init__(self, **options: Any) -> None:
        super().__init__("identification", **options)
        self._busy = threading.Lock()
        self._stopping = threading.Event()

    def open(self) -> None:
        """Make topics and services."""
        self._progress = (0.0, "idle")
        self._exit_code: int | None = None
        self._level = OK
        self._figures: dict[str, object] = {}
        self._result = self.add_publisher(DiagnosticArray, IDENTIFICATION_RESULT)
        self.add_service(IDENTIFY, self._identify, concurrent=True)
        self.add_report(self._report)

    def start(self) -> None:
        """Identify once if `identify_on_start` is true."""
        self._stopping.clear()
        if self.parameters.identify_on_start:
            threading.Thread(target=self._identify_on_start, name="identification").start()

    def stop(self) -> None:
        """Stop a running identification at its next step."""
        self._stopping.set()
        with self._busy:
            pass

    def _identify_on_start(self) -> None:
        code = 1
        try:
            self._identify()
            code = 0
        except UrEnergyError as error:
            level = Level.INFO if self._stopping.is_set() else Level.ERROR
            self.log_lines([Line(level, self.explain(error))])
        finally:
            self._exit_code = code

    def _identify(self) -> str:
        """Identify, save the model and publish the result; returns a line of text.

        Raises:
            UrEnergyError: unusable input, or another identification is running.
        """
        if not self._busy.acquire(blocking=False):
            raise UrEnergyError("another identification is running; wait for its result")
        try:
            bags = self.parameters.bags
            if not bags:
                raise InputError(
                    self.get_name(), "is empty", "name the bags to identify from", field="bags"
                )
            output = self.parameters.output
            self.log_lines(
                [Line(Level.INFO, f"identifying a model from {', '.join(map(str, bags))}")]
            )
            result = identify(
                bags,
                self.parameters.robot_model or recorded_robot(bags),
                IdentificationOptions(
                    friction=self.parameters.friction, power_model=self.parameters.power_model
                ),
                validate=self.parameters.validation_bags,
                progress=self._on_progress,
            )
            save_model(result.model, output)
        except UrEnergyError as error:
            self._level, self._progress, self._figures = ERROR, (0.0, self.explain(error)), {}
            raise
        finally:
            self._busy.release()
        text = f"{output}: identified from {len(bags)} bag{'s' if len(bags) > 1 else ''}"
        self._level, self._progress = OK, (1.0, text)
        self._figures = {"model_file": output, **bus_figures(result)}
        self._result.publish(
            diagnostic_array(self.get_clock().now().to_msg(), result_statuses(result))
        )
        lines = [f"fit of {line}" for line in map(errors_of, result.model.fit)]
        lines += [f"held out: {line}" for line in map(errors_of, result.model.validation)]
        warned = [Line(Level.WARN, warning) for warning in result.warnings]
        self.log_lines([*warned, *(Line(Level.INFO, line) for line in [*lines, text])])
        return text

    def _on_progress(self, fraction: float, text: str | None = None) -> None:
        if self._stopping.is_set():
            raise UrEnergyError("the identification was stopped; no model file was written")
        self._level = OK
        self._progress = (fraction, text or self._progress[1])

    def _report(self) -> None:
        if self._exit_code is not None and self.parameters.exit_when_done:
            self.finish(self._exit_code)
        fraction, text = self._progress
        values = {"progress": fraction, **self._figures}
        self.publish_diagnostics([status(f"{self.full_name}: result", self._level, text, values)])


def result_statuses(result: Identification) -> list[DiagnosticStatus]:
    """Identified constants of each joint with standard deviations; errors of the whole arm."""
    out = []
    for joint in result.model.joints:
        constants = {
            "reflected_inertia": joint.reflected_inertia,
            "torque_constant": joint.torque_constant,
            "winding_resistance": joint.winding_resistance,
            "back_emf_constant": joint.back_emf_constant,
        }
        values: dict[str, object] = {}
        for name, value in constants.items():
            values |= {name: value, f"{name}_std": joint.std.get(name)}
        values["friction_law"] = joint.friction.law.name
        out.append(status(f"model: {joint.name}", OK, joint.friction_reason, values))
    out.append(status("model: arm", OK, result.model.robot, bus_figures(result)))
    return out


def errors_of(entry: Mapping[str, Any]) -> str:
    """METRICS of a bag in a line: errors of torque, current and power."""
    parts = []
    for key, name, unit in (("torque", "torque", "N m"), ("current", "current", "A")):
        if entry.get(key) is not None:
            rms = ", ".join(f"{joint['rms']:.3g}" for joint in entry[key])
            parts.append(f"{name} RMS error {rms} {unit} (joints from the base)")
    if (power := entry.get("power")) is not None:
        text = f"power RMS error {power['rmse']:.3g} W"
        if power["energy_error_percent"] is not None:
            text += f", energy error {power['energy_error_percent']:.2g} %"
        parts.append(text)
    return f"{entry['bag']}: {'; '.join(parts) or 'nothing to compare'}"


def bus_figures(result: Identification) -> dict[str, object]:
    """Standby power, and the power errors of fit and validation."""
    figures: dict[str, object] = {"standby_W": result.model.bus.standby}
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
