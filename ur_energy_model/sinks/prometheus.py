"""Prometheus: a page with the metrics of the arm, which Prometheus scrapes."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from socketserver import TCPServer
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler

import numpy as np
from prometheus_client import CollectorRegistry, make_wsgi_app
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import ThreadingWSGIServer
from prometheus_client.registry import Collector

from ur_energy_model.energy.powers import ArmState
from ur_energy_model.energy.topics import PARTS
from ur_energy_model.sinks import prometheus_metrics as metrics
from ur_energy_model.sinks.options import Address, SinkOptions, server_address
from ur_energy_model.sinks.prometheus_metrics import Kind, Metric
from ur_energy_model.sinks.sink import ArmActions, ArmReading, QueuedSink

Values = Mapping[Metric, Mapping[tuple[str, ...], float]]
"""Values by metric and by the values of its labels."""


class ArmMetrics:
    """Keeps what outlives a reading: counters of cycles and losses, and the last cycle."""

    def __init__(self) -> None:
        self._lost = 0
        self._cycles = 0
        self._last_cycle: tuple[float, float] | None = None

    def values(self, reading: ArmReading) -> Values:
        """All values that a reading states; those that are unknown are left out."""
        self._follow(reading)
        snapshot, arm = reading.snapshot, reading.arm
        channels, power, highest = snapshot.channels, snapshot.power, snapshot.highest
        columns, parts = channels.arm, channels.per_joint
        out: dict[Metric, dict[tuple[str, ...], float]] = {}

        def joints(metric: Metric, values: np.ndarray) -> None:
            rows = zip(reading.joints, values.tolist(), strict=True)
            out[metric] = {(arm, joint): value for joint, value in rows}

        def states(metric: Metric, values: Mapping[ArmState, float]) -> None:
            out[metric] = {(arm, state.name.lower()): value for state, value in values.items()}

        joints(metrics.JOINT_POWER, power[parts["electrical_power"]])
        joints(metrics.JOINT_ENERGY, highest[parts["electrical_power"]])
        joints(metrics.JOINT_MECHANICAL_ENERGY, highest[parts["mechanical_power"]])
        if snapshot.temperature is not None:
            joints(metrics.JOINT_TEMPERATURE, snapshot.temperature)
        states(metrics.STATE_POWER, channels.by_state(power, channels.state_energy))
        states(metrics.STATE_ENERGY, channels.by_state(highest, channels.state_energy))
        states(metrics.STATE_TIME, channels.by_state(highest, channels.state_time))
        of_arm: dict[Metric, float] = {
            metrics.TOTAL_POWER: float(power[columns["total"]]),
            metrics.TOTAL_POWER_STD: channels.deviations(power)[1],
            metrics.TOTAL_ENERGY: float(highest[columns["total"]]),
            metrics.STANDBY_POWER: float(power[columns["standby"]]),
            metrics.DRIVERS_POWER: float(power[columns["driver"]]),
            metrics.REGENERATION_POWER: float(power[columns["regeneration"]]),
            metrics.SAMPLES: float(snapshot.samples),
            metrics.SAMPLES_LOST: float(self._lost),
            metrics.CYCLES: float(self._cycles),
            metrics.CONNECTED: 1.0,
        }
        if snapshot.bus_measured:
            of_arm[metrics.BUS_POWER] = float(power[columns["bus"]])
            of_arm[metrics.BUS_ENERGY] = float(highest[columns["bus"]])
            of_arm[metrics.RESIDUAL_POWER] = float(power[columns["total"]] - power[columns["bus"]])
        if self._last_cycle is not None:
            of_arm[metrics.CYCLE_ENERGY], of_arm[metrics.CYCLE_DURATION] = self._last_cycle
        out |= {metric: {(arm,): value} for metric, value in of_arm.items()}
        net = snapshot.lifetime.net
        energies = dict(zip(reading.joints, net[parts["electrical_power"]].tolist(), strict=True))
        energies |= {name: float(net[columns[channel]]) for name, channel in PARTS.items()}
        out[metrics.PART_ENERGY] = {(arm, part): value for part, value in energies.items()}
        robot = "" if reading.robot is None else reading.robot.name
        out[metrics.INFO] = {(arm, robot, reading.model): 1.0}
        return out

    def _follow(self, reading: ArmReading) -> None:
        """Count losses and cycles; an estimate of losses that was too large takes none back."""
        self._lost = max(self._lost, reading.link.lost)
        for cycle in reading.cycles:
            total = cycle.reading.net[reading.snapshot.channels.arm["total"]]
            self._cycles = max(self._cycles, cycle.number)
            self._last_cycle = float(total), cycle.duration


def without_present(values: Values) -> Values:
    """What remains true when no samples arrive: counters, and that they do not arrive."""
    kept = {
        metric: samples
        for metric, samples in values.items()
        if metric.kind is Kind.COUNTER or metric is metrics.INFO
    }
    connected = dict.fromkeys(values[metrics.CONNECTED], 0.0)
    return {**kept, metrics.CONNECTED: connected}


# The server of prometheus_client, with bounded time and number of connections.

REQUEST_TIMEOUT = 5.0
"""Longest time for a client to send its request and take the answer, both together [s]."""
MOST_CONNECTIONS = 16
"""Connections at one time; for another one the oldest, which is slow, is closed."""


class _Handler(WSGIRequestHandler):
    timeout = REQUEST_TIMEOUT

    def log_message(self, format: str, *args: Any) -> None:
        """Scrapes are not worth a line each."""


class MetricsServer(ThreadingWSGIServer):
    """Serves a WSGI application in a thread of its own.

    Each connection has one deadline for its request and answer together, so that slow clients
    cannot lock scrapes out.

    Args:
        address: to listen on; port 0 takes a free one.
        application: answers each request.

    Raises:
        OSError: the address cannot be used.
    """

    block_on_close = False
    request_queue_size = 4 * MOST_CONNECTIONS

    def __init__(self, address: Address, application: Any) -> None:
        if ":" in address.host:
            self.address_family = socket.AF_INET6
        self._lock = threading.Lock()
        self._begun: dict[socket.socket, float] = {}
        """Connections and the time at which they were made [s], the oldest first."""
        super().__init__((address.host, address.port), _Handler)
        self.set_app(application)
        self._thread = threading.Thread(
            target=self.serve_forever, name="metrics server", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Stop listening; requests in progress end by themselves."""
        self.shutdown()
        self._thread.join()
        self.server_close()

    def server_bind(self) -> None:
        """Bind without the look-up of the host's full name, which may be slow."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]
        self.setup_environ()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer a connection in a thread; beyond the number, the oldest is broken off."""
        with self._lock:
            self._begun[request] = time.monotonic()
            self._break_off(list(self._begun)[:-MOST_CONNECTIONS])
        super().process_request(request, client_address)

    def service_actions(self) -> None:
        """Break off connections whose time is over; called twice a second."""
        with self._lock:
            limit = time.monotonic() - REQUEST_TIMEOUT
            self._break_off([each for each, begun in self._begun.items() if begun < limit])

    def shutdown_request(self, request: Any) -> None:
        """End a connection."""
        with self._lock:
            self._begun.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away or sends no request is no news."""

    def _break_off(self, connections: list[socket.socket]) -> None:
        for connection in connections:
            del self._begun[connection]
            with suppress(OSError):  # its thread may be closing it
                connection.shutdown(socket.SHUT_RDWR)


SILENCE = 5.0
"""Time without readings after which gauges are left out: they would be of the past [s]."""


def prometheus_sink(
    text: str, options: SinkOptions, actions: ArmActions | None = None
) -> QueuedSink:
    """A sink that serves metrics at http://ADDRESS:PORT/metrics; its text is ADDRESS:PORT."""
    return QueuedSink(MetricsPage(server_address("prometheus", text, options)))


class MetricsPage(Collector):
    """The page: values of the last reading, for every scrape.

    Args:
        address: to listen on.
    """

    clients = None

    def __init__(self, address: Address) -> None:
        self._address = address
        self._metrics = ArmMetrics()
        self._newest: tuple[float, Values] | None = None
        self._server: MetricsServer | None = None

    @property
    def address(self) -> Address:
        """Where it listens, with the port that was taken for port 0."""
        server = self._server
        return self._address if server is None else replace(self._address, port=server.server_port)

    @property
    def name(self) -> str:
        """Kind and address, for users."""
        return f"prometheus {self.address}"

    def open(self) -> None:
        """Begin to listen."""
        registry = CollectorRegistry(auto_describe=False)
        registry.register(self)
        self._server = MetricsServer(self._address, make_wsgi_app(registry))

    def deliver(self, reading: ArmReading) -> None:
        """Keep the values of a reading for the next scrape."""
        self._newest = time.monotonic(), self._metrics.values(reading)

    def close(self) -> None:
        """Stop listening."""
        server, self._server = self._server, None
        if server is not None:
            server.close()

    def describe(self) -> list[GaugeMetricFamily]:
        """Nothing, so that the registry need not collect to know the names."""
        return []

    def collect(self) -> Iterator[CounterMetricFamily | GaugeMetricFamily]:
        """The metrics of the last reading; nothing before the first."""
        newest = self._newest
        if newest is None:
            return
        moment, values = newest
        if time.monotonic() - moment > SILENCE:
            values = without_present(values)
        for metric in metrics.METRICS:
            counter = metric.kind is Kind.COUNTER
            family = (CounterMetricFamily if counter else GaugeMetricFamily)(
                metric.name, metric.help, labels=metric.labels
            )
            for labels, value in values.get(metric, {}).items():
                family.add_metric(labels, value)
            if family.samples:
                yield family
