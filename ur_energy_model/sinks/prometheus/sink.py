# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Prometheus: a page with the metrics of the arm, which Prometheus scrapes."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from socketserver import TCPServer
from typing import Any, NamedTuple, TypeAlias
from wsgiref.simple_server import WSGIRequestHandler

from prometheus_client import CollectorRegistry, make_wsgi_app
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import ThreadingWSGIServer
from prometheus_client.registry import Collector

from ur_energy_model.energy.powers import Channels
from ur_energy_model.energy.snapshot import Snapshot
from ur_energy_model.energy.topics import PARTS
from ur_energy_model.rooms import Given
from ur_energy_model.sinks.options import Address, common_options, server_address
from ur_energy_model.sinks.prometheus.room import PROMETHEUS
from ur_energy_model.sinks.sink import ArmActions, ArmReading, QueuedSink
from ur_energy_model.typing import Array

Values: TypeAlias = Mapping[tuple[str, ...], float]
"""Values of one metric by the values of its labels; empty where they are unknown."""

SILENCE = 5.0
"""Time without readings after which gauges, whose values are old, are left out [s]."""
REQUEST_TIMEOUT = 5.0
"""Longest time for request and answer of a client together [s]."""
MOST_CONNECTIONS = 16
"""Connections at one time; for another one the oldest, which is slow, is closed."""


def prometheus_sink(
    place: str,
    given: Given,
    actions: ArmActions | None = None,
    state_file: Path | None = None,
) -> QueuedSink:
    """A server with metrics at http://ADDRESS:PORT/metrics as a sink, see `SinkFactory`.

    Args:
        place: ADDRESS:PORT.
        given: holds the common options, which permit other addresses than loopback.
        actions: not used: clients can read only.
        state_file: not used: the counters of the energies are kept by the estimator.

    Raises:
        InputError: no such address, or one that other machines reach without permission.
    """
    address = server_address(PROMETHEUS, place, common_options(given))
    return QueuedSink(MetricsPage(address))


class MetricsPage(Collector):
    """The page: values of the last reading, for every scrape; see `Delivery`.

    Attributes:
        address: address at which the server listens; a free port is known once the server
            is open.
    """

    clients = None

    def __init__(self, address: Address) -> None:
        self.address = address
        self._metrics = ArmMetrics()
        self._newest: tuple[float, Mapping[str, Values]] | None = None
        self._server: MetricsServer | None = None

    @property
    def name(self) -> str:
        """Kind and address, for users."""
        return f"prometheus {self.address}"

    def open(self) -> None:
        """Begin to listen; port 0 takes a free one."""
        registry = CollectorRegistry(auto_describe=False)
        registry.register(self)
        self._server = MetricsServer(self.address, make_wsgi_app(registry))
        self.address = replace(self.address, port=self._server.server_port)

    def deliver(self, reading: ArmReading) -> None:
        """Keep the values of a reading for the next scrape."""
        self._newest = time.monotonic(), self._metrics.values(reading)

    def close(self) -> None:
        """Stop listening; requests in progress end by themselves."""
        server = self._server
        self._server = None
        if server is not None:
            server.shutdown()
            server.server_close()

    def describe(self) -> list[GaugeMetricFamily]:
        """Nothing, so that the registry need not collect values to list the names."""
        return []

    def collect(self) -> Iterator[CounterMetricFamily | GaugeMetricFamily]:
        """The metrics of the last reading; nothing before the first."""
        if self._newest is None:
            return
        moment, values = self._newest
        if time.monotonic() - moment > SILENCE:
            values = without_present(values)
        for metric in METRICS.values():
            if metric.name in values:
                make = CounterMetricFamily if metric.is_counter else GaugeMetricFamily
                family = make(metric.name, metric.help, labels=metric.labels)
                for labels, value in values[metric.name].items():
                    family.add_metric(labels, value)
                yield family


class _Handler(WSGIRequestHandler):
    """Answers the requests of one connection."""

    def handle(self) -> None:
        """Answer with one deadline for request and answer together."""
        timer = threading.Timer(REQUEST_TIMEOUT, _break_off, [self.connection])
        timer.daemon = True
        timer.start()
        try:
            super().handle()
        finally:
            timer.cancel()

    def log_message(self, format: str, *args: Any) -> None:
        """Write nothing: a line for each scrape would fill the log."""


def _break_off(connection: socket.socket) -> None:
    """End a connection, whatever its thread does with it."""
    with suppress(OSError):  # its thread may be closing it
        connection.shutdown(socket.SHUT_RDWR)


class MetricsServer(ThreadingWSGIServer):
    """Serves a WSGI application in a thread of its own, each connection in another one.

    Beyond MOST_CONNECTIONS, the oldest connection is closed: it is a slow client's.
    """

    block_on_close = False
    request_queue_size = 4 * MOST_CONNECTIONS

    def __init__(self, address: Address, application: Any) -> None:
        """Begin to serve.

        Args:
            address: address at which the server listens.
            application: a WSGI application.

        Raises:
            OSError: the address cannot be used.
        """
        if ":" in address.host:
            self.address_family = socket.AF_INET6
        super().__init__((address.host, address.port), _Handler)
        self.set_app(application)
        self._open: dict[socket.socket, None] = {}  # connections, the oldest first
        threading.Thread(
            target=self.serve_forever, name="metrics server", daemon=True
        ).start()

    def server_bind(self) -> None:
        """Bind without the look-up of the host's full name, which may be slow."""
        TCPServer.server_bind(self)
        self.server_name = str(self.server_address[0])
        self.server_port = self.server_address[1]
        self.setup_environ()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer a connection in a thread; the oldest is ended if there are too many."""
        self._open[request] = None
        for slow in list(self._open)[:-MOST_CONNECTIONS]:
            _break_off(slow)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """End a connection."""
        self._open.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Write nothing about a client that goes away or sends no request."""


# The metrics: name, labels, HELP and values of each; the page and dashboards use this
# table. Names follow Prometheus' conventions: base units, the unit as suffix, and
# `_total` for counters.


class CycleFigures(NamedTuple):
    """Figures of a completed cycle.

    Attributes:
        energy: energy of the whole arm [J].
        duration: duration of the cycle [s].
        unaccounted: time of the cycle without samples [s].
    """

    energy: float
    duration: float
    unaccounted: float


class ArmMetrics:
    """The values of all metrics of one arm.

    The functions of the table call its methods. Each method returns the values of one
    metric by the values of its labels, without the label of the arm.

    Attributes:
        reading: the last reading.
        snapshot: snapshot of the last reading.
        columns: indexes of the channels in arrays of the snapshot.
        last_cycle: values of the last completed cycle, which outlive its reading; None
            before the first cycle.
    """

    reading: ArmReading
    snapshot: Snapshot
    columns: Channels
    last_cycle: CycleFigures | None = None

    def values(self, reading: ArmReading) -> dict[str, Values]:
        """Values by name of the metric; metrics without a known value are left out.

        Args:
            reading: reading of the arm.
        """
        self.reading = reading
        self.snapshot = reading.snapshot
        self.columns = self.snapshot.channels
        if reading.cycles:
            last = reading.cycles[-1]
            energy = reading.energy_of(last)
            self.last_cycle = CycleFigures(energy, last.duration, last.unaccounted)
        found: dict[str, Values] = {}
        for name, metric in METRICS.items():
            values = metric.values(self)
            if values:
                found[name] = {
                    (reading.arm, *labels): float(value)
                    for labels, value in values.items()
                }
        return found

    def joint_values(self, values: Array | None) -> Values:
        """Values [n] by the names of the joints; empty for None."""
        if values is None:
            return {}
        rows = zip(self.reading.joints, values, strict=True)
        return {(joint,): value for joint, value in rows}

    def joint_parts(self, array: Array, part: str) -> Values:
        """A part of the power of each joint, such as "mechanical_power"."""
        return self.joint_values(array[self.columns.per_joint[part]])

    def channel(self, array: Array, channel: str) -> Values:
        """A channel of the whole arm; empty for a bus that is not measured."""
        if channel == "bus" and not self.snapshot.bus_measured:
            return {}
        return {(): array[self.columns.arm[channel]]}

    def states(self, array: Array, part: int) -> Values:
        """Powers, energies or times of the whole arm by its state.

        Args:
            array: values of all channels.
            part: part of the channels, `columns.state_energy` or `columns.state_time`.
        """
        values = self.columns.by_state(array, part)
        return {(state.name.lower(),): value for state, value in values.items()}

    def part_energies(self) -> Values:
        """Net energies of joints and other parts, which sum to the arm's [J]."""
        net = self.snapshot.lifetime.net
        found = dict(self.joint_parts(net, "electrical_power"))
        for name, channel in PARTS.items():
            found[name,] = net[self.columns.arm[channel]]
        return found

    def wall(self, array: Array) -> Values:
        """A power or energy at the mains."""
        return {(): float(self.columns.value_at_wall(array))}

    def total_power_std(self) -> Values:
        """Standard uncertainty of the power of the whole arm [W]."""
        now = self.snapshot
        return {(): float(self.columns.deviations_of_total(now.power, now.seconds))}

    def model_power_std(self) -> Values:
        """Standard uncertainty of the sum of the modelled parts [W]."""
        now = self.snapshot
        return {(): float(self.columns.deviations_of_model(now.power, now.seconds))}

    def cycle_figure(self, name: str) -> Values:
        """A field of CycleFigures of the last cycle; empty before the first cycle."""
        if self.last_cycle is None:
            return {}
        return {(): getattr(self.last_cycle, name)}

    def source(self) -> Values:
        """1 for the source of the total energy, 0 for the other sources."""
        now = self.snapshot.total_source_ever.name
        return {(name,): float(name == now) for name in SOURCE_NAMES}

    def info(self) -> Values:
        """Always 1, with type and model of the arm as labels."""
        robot = self.reading.robot
        name = "" if robot is None else robot.name
        return {(name, self.reading.model): 1.0}


class MetricFamily(NamedTuple):
    """One metric.

    Attributes:
        name: name of the metric, with its unit as suffix.
        labels: names of the labels, the arm's first.
        help: one sentence, the HELP of the page.
        values: values of the last reading, by the values of all labels but the arm.
    """

    name: str
    labels: tuple[str, ...]
    help: str
    values: Callable[[ArmMetrics], Values]

    @property
    def is_counter(self) -> bool:
        """Whether the metric never decreases."""
        return self.name.endswith("_total")


_ARM = ("arm",)
_JOINT = ("arm", "joint")
_STATE = ("arm", "state")
_PART = ("arm", "part")
_SOURCE = ("arm", "source")
SOURCE_NAMES = ("measured", "modelled", "mixed")
"""All names of a TotalSource."""
_HIGHEST = (
    "since the state file was made: the highest value so far, so that it never decreases; what is "
    "given back is deducted from later gains"
)
# fmt: off
_TABLE: tuple[tuple[str, tuple[str, ...], str, Callable[[ArmMetrics], Values]], ...] = (
    ("joint_power_watts", _JOINT, "Electrical power of the joint.",
     lambda arm: arm.joint_parts(arm.snapshot.power, "electrical_power")),
    ("joint_energy_joules_total", _JOINT, f"Electrical energy of the joint {_HIGHEST}.",
     lambda arm: arm.joint_parts(arm.snapshot.highest, "electrical_power")),
    ("joint_mechanical_energy_joules_total", _JOINT,
     f"Mechanical energy of the joint {_HIGHEST}.",
     lambda arm: arm.joint_parts(arm.snapshot.highest, "mechanical_power")),
    ("joint_temperature_celsius", _JOINT, "Temperature of the joint.",
     lambda arm: arm.joint_values(arm.snapshot.temperature)),
    ("total_power_watts", _ARM, "Power of the whole arm, standby and drivers included: measured "
     "where the bus power is, else modelled.",
     lambda arm: arm.channel(arm.snapshot.power, "total")),
    ("total_power_std_watts", _ARM, "Standard uncertainty of the power of the whole arm.",
     ArmMetrics.total_power_std),
    ("total_energy_joules_total", _ARM, f"Energy of the whole arm {_HIGHEST}.",
     lambda arm: arm.channel(arm.snapshot.highest, "total")),
    ("bus_power_watts", _ARM, "Measured bus voltage times current.",
     lambda arm: arm.channel(arm.snapshot.power, "bus")),
    ("bus_energy_joules_total", _ARM, f"Measured energy of the bus {_HIGHEST}.",
     lambda arm: arm.channel(arm.snapshot.highest, "bus")),
    ("wall_power_watts", _ARM, "Power at the mains, by the model of control box and supply.",
     lambda arm: arm.wall(arm.snapshot.power)),
    ("wall_energy_joules_total", _ARM, f"Energy at the mains {_HIGHEST}.",
     lambda arm: arm.wall(arm.snapshot.highest)),
    ("standby_power_watts", _ARM, "Standby power.",
     lambda arm: arm.channel(arm.snapshot.power, "standby")),
    ("drivers_power_watts", _ARM, "Power lost in the drivers.",
     lambda arm: arm.channel(arm.snapshot.power, "driver")),
    ("regeneration_power_watts", _ARM, "What the supply cannot take back.",
     lambda arm: arm.channel(arm.snapshot.power, "regeneration")),
    ("unexplained_power_watts", _ARM, "Total less model, 0 where the total is modelled; joints, "
     "standby, drivers, regeneration and this sum to the total power.",
     lambda arm: arm.channel(arm.snapshot.power, "unexplained")),
    ("part_energy_joules", _PART, "Energy since the state file was made, what was given back "
     "deducted, of each joint, standby, drivers, regeneration and what is unexplained; they sum to "
     "ur_energy_total_energy_joules_total.", ArmMetrics.part_energies),
    ("model_power_watts", _ARM, "Sum of the modelled parts: joints, standby, drivers and "
     "regeneration.", lambda arm: arm.channel(arm.snapshot.power, "model")),
    ("model_power_std_watts", _ARM, "Standard uncertainty of the sum of the modelled parts.",
     ArmMetrics.model_power_std),
    ("model_energy_joules_total", _ARM, f"Energy of the modelled parts {_HIGHEST}.",
     lambda arm: arm.channel(arm.snapshot.highest, "model")),
    ("total_source", _SOURCE, "1 for where ur_energy_total_energy_joules_total comes from "
     "(measured, modelled or mixed), 0 for the others.", ArmMetrics.source),
    ("total_measured_ratio", _ARM, "Share of the counted time in which that energy is measured, 0 "
     "to 1.", lambda arm: {(): arm.snapshot.total_source_ever.share}),
    ("state_power_watts", _STATE, "Power of the whole arm while in this state, 0 in any other.",
     lambda arm: arm.states(arm.snapshot.power, arm.columns.state_energy)),
    ("state_energy_joules_total", _STATE, f"Energy of the whole arm in this state {_HIGHEST}.",
     lambda arm: arm.states(arm.snapshot.highest, arm.columns.state_energy)),
    ("state_seconds_total", _STATE, "Time in this state since the state file was made.",
     lambda arm: arm.states(arm.snapshot.highest, arm.columns.state_time)),
    ("cycles_total", _ARM, "Cycles completed since the state file was made.",
     lambda arm: {(): arm.snapshot.cycles}),
    ("cycle_energy_joules", _ARM, "Energy of the last completed cycle.",
     lambda arm: arm.cycle_figure("energy")),
    ("cycle_duration_seconds", _ARM, "Duration of the last completed cycle.",
     lambda arm: arm.cycle_figure("duration")),
    ("cycle_unaccounted_seconds", _ARM, "Time of the last completed cycle without samples: above "
     "0, its energy is not that of the whole cycle.", lambda arm: arm.cycle_figure("unaccounted")),
    ("samples_total", _ARM, "Samples used since the estimator started.",
     lambda arm: {(): arm.snapshot.samples}),
    ("samples_lost_total", _ARM, "Samples of the controller lost since the estimator started.",
     lambda arm: {(): arm.reading.link.losses.samples}),
    ("connected", _ARM, "1 while samples of the arm arrive, 0 otherwise.", lambda arm: {(): 1.0}),
    ("info", (*_ARM, "robot", "model"), "Always 1; the labels describe the arm.", ArmMetrics.info),
)
# fmt: on
METRICS: dict[str, MetricFamily] = {
    f"ur_energy_{name}": MetricFamily(f"ur_energy_{name}", labels, words, values)
    for name, labels, words, values in _TABLE
}
"""All metrics by name, in the order of the page."""
INFO = "ur_energy_info"
CONNECTED = "ur_energy_connected"


def without_present(values: Mapping[str, Values]) -> dict[str, Values]:
    """The values that hold while no samples arrive: counters, INFO, and CONNECTED as 0.

    Args:
        values: values of the last reading, by name of the metric.
    """
    lasting = [name for name in values if METRICS[name].is_counter or name == INFO]
    kept = {name: values[name] for name in lasting}
    kept[CONNECTED] = dict.fromkeys(values[CONNECTED], 0.0)
    return kept
