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

from prometheus_client import CollectorRegistry, make_wsgi_app
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import ThreadingWSGIServer
from prometheus_client.registry import Collector

from ur_energy_model.sinks.options import Address, SinkOptions, server_address
from ur_energy_model.sinks.prometheus_metrics import METRICS, ArmMetrics, Values, without_present
from ur_energy_model.sinks.sink import ArmActions, ArmReading, QueuedSink

SILENCE = 5.0
"""Time without readings after which gauges are left out: they would be of the past [s]."""
REQUEST_TIMEOUT = 5.0
"""Longest time for a client to send its request and take the answer, both together [s]."""
MOST_CONNECTIONS = 16
"""Connections at one time; for another one the oldest, which is slow, is closed."""


def prometheus_sink(
    text: str, options: SinkOptions, actions: ArmActions | None = None
) -> QueuedSink:
    """A sink that serves metrics at http://ADDRESS:PORT/metrics; its text is ADDRESS:PORT."""
    return QueuedSink(MetricsPage(server_address("prometheus", text, options)))


class MetricsPage(Collector):
    """The page: values of the last reading, for every scrape; see sink.Delivery."""

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
        server, self._server = self._server, None
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
    def handle(self) -> None:
        """Answer, with one deadline for request and answer, however slowly a client sends."""
        timer = threading.Timer(REQUEST_TIMEOUT, _break_off, [self.connection])
        timer.daemon = True
        timer.start()
        try:
            super().handle()
        finally:
            timer.cancel()

    def log_message(self, format: str, *args: Any) -> None:
        """Scrapes are not worth a line each."""


def _break_off(connection: socket.socket) -> None:
    with suppress(OSError):  # its thread may be closing it
        connection.shutdown(socket.SHUT_RDWR)


class MetricsServer(ThreadingWSGIServer):
    """Serves a WSGI application in a thread of its own, each connection in another one.

    Raises:
        OSError: the address cannot be used.
    """

    block_on_close = False
    request_queue_size = 4 * MOST_CONNECTIONS

    def __init__(self, address: Address, application: Any) -> None:
        if ":" in address.host:
            self.address_family = socket.AF_INET6
        super().__init__((address.host, address.port), _Handler)
        self.set_app(application)
        self._open: dict[socket.socket, None] = {}  # connections, the oldest first
        threading.Thread(target=self.serve_forever, name="metrics server", daemon=True).start()

    def server_bind(self) -> None:
        """Bind without the look-up of the host's full name, which may be slow."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]
        self.setup_environ()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer a connection in a thread; beyond the number, the oldest is broken off."""
        self._open[request] = None
        for slow in list(self._open)[:-MOST_CONNECTIONS]:
            _break_off(slow)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """End a connection."""
        self._open.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away or sends no request is no news."""
