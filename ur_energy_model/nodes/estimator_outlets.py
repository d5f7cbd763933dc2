"""EstimatorOutlets: the sinks of the estimator node, by its parameters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from diagnostic_msgs.msg import DiagnosticStatus

from ur_energy_model.energy.live.cycles import Cycle
from ur_energy_model.energy.live.source_reader import SourceReader
from ur_energy_model.files import user_path
from ur_energy_model.nodes.diagnostics import OK, WARN, status
from ur_energy_model.nodes.estimated_arm import EstimatedArm
from ur_energy_model.nodes.terminal.line import Level, Line
from ur_energy_model.nodes.terminal.problem_lines import ProblemLines
from ur_energy_model.sinks.arm_actions import ArmActions
from ur_energy_model.sinks.arm_reading import ArmReading
from ur_energy_model.sinks.estimator_reading import About, estimator_reading
from ur_energy_model.sinks.open_sinks import open_sinks
from ur_energy_model.sinks.options import SinkOptions
from ur_energy_model.sinks.outlets import Outlets
from ur_energy_model.sinks.sink import NOT_OPEN, SinkStatus
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.telemetry.source import LinkStatus


def options_of_sinks(value: Callable[[str], Any]) -> SinkOptions:
    """Sinks by the parameters of the node.

    Args:
        value: returns the value of a parameter by its name.
    """

    def texts(name: str) -> tuple[str, ...]:
        return tuple(text for text in value(name) if text)

    return SinkOptions(
        foxglove=texts("foxglove"),
        foxglove_origins=texts("foxglove_origins"),
        mcap=tuple(user_path(text) for text in texts("mcap")),
        prometheus=texts("prometheus"),
        mqtt=texts("mqtt"),
        opcua=texts("opcua"),
        rate=value("sink_rate"),
        allow_network=value("allow_network"),
        credentials=user_path(value("credentials")) if value("credentials") else None,
        mqtt_group=value("mqtt_group"),
        mqtt_node=value("mqtt_node"),
        mqtt_json=value("mqtt_json"),
    )


class EstimatorOutlets:
    """Updates the sinks and reports their status.

    Args:
        node: full name of the node.
        joints: names of the joints, prefix included.
        value: returns the value of a parameter by its name.
        actions: what their clients may ask of the estimator.

    Raises:
        InputError: an address, a URL or a file that cannot be used.
        MissingPackageError: the package of a sink is not installed.
    """

    def __init__(
        self,
        node: str,
        joints: tuple[str, ...],
        value: Callable[[str], Any],
        actions: ArmActions,
    ) -> None:
        self._node, self._joints = node, joints
        options = options_of_sinks(value)
        self._outlets = Outlets(open_sinks(options, actions), options.rate)
        self._lines = {
            each.name: ProblemLines(f"{each.name} works again", Level.WARN)
            for each in self._outlets.statuses
        }
        self._worked: set[str] = set()
        self._cycles: list[Cycle] = []
        self._make: Callable[[], ArmReading | None] = lambda: None

    def note_cycle(self, cycle: Cycle) -> None:
        """Keep a completed cycle for the next reading."""
        if self._lines:
            self._cycles.append(cycle)

    def offer(self, arm: EstimatedArm, batch: Telemetry, reader: SourceReader | None) -> None:
        """Offer a reading to the sinks if one is due; the estimator's lock is held.

        Args:
            arm: of the estimator.
            batch: last samples.
            reader: that they come from.
        """
        self._make = partial(self._reading, arm, batch, reader)
        self._outlets.offer(float(batch.time[-1]), self._make)

    def offer_last(self) -> None:
        """Offer a reading after the last samples of a recording; the estimator's lock is held."""
        self._outlets.offer_at_once(self._make)

    def _reading(
        self, arm: EstimatedArm, batch: Telemetry, reader: SourceReader | None
    ) -> ArmReading | None:
        link = LinkStatus() if reader is None else reader.link
        about = About(batch, link, arm.model_words, self._joints)
        made = estimator_reading(arm.estimator, "sinks", about)
        if made is None:
            return None
        made = replace(made, cycles=tuple(self._cycles))
        self._cycles.clear()
        return made

    def lines(self) -> list[Line]:
        """Lines due now: sinks that begin to work, fail, and work again."""
        lines = list[Line]()
        for each in self._outlets.statuses:
            if each.problem is None and each.name not in self._worked:
                self._worked.add(each.name)
                lines.append(Line(Level.INFO, f"energies go to {each.name}"))
            problem = None if each.problem is None else f"{each.name}: {each.problem}"
            if each.name in self._worked or each.problem != NOT_OPEN:
                lines += self._lines[each.name].update(problem)
        return lines

    def statuses(self) -> list[DiagnosticStatus]:
        """One status for each sink."""
        return [self._status(each) for each in self._outlets.statuses]

    def _status(self, sink: SinkStatus) -> DiagnosticStatus:
        values: dict[str, object] = {
            "delivered": sink.delivered,
            "dropped": sink.dropped,
            "waiting": sink.waiting,
            "clients": sink.clients,
        }
        level = OK if sink.problem is None else WARN
        return status(f"{self._node}: sink {sink.name}", level, sink.problem or "works", values)

    def close(self) -> None:
        """Close the sinks."""
        self._outlets.close()
