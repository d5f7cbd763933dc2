"""Prometheus: a page with the metrics of the arm, which Prometheus scrapes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

from prometheus_client import CollectorRegistry, make_wsgi_app
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from ur_energy_model.sinks.address import Address
from ur_energy_model.sinks.arm_reading import ArmReading
from ur_energy_model.sinks.prometheus.arm_metrics import (
    ArmMetrics,
    Values,
    in_order,
    without_present,
)
from ur_energy_model.sinks.prometheus.metrics import Kind
from ur_energy_model.sinks.prometheus.metrics_server import MetricsServer
from ur_energy_model.sinks.queued_sink import QueuedSink

SILENCE = 5.0
"""Time without readings after which gauges are left out: they would be of the past [s]."""


def prometheus_sink(address: Address) -> QueuedSink:
    """A sink that serves metrics at http://address/metrics."""
    return QueuedSink(MetricsPage(address))


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
        return self._address if server is None else replace(self._address, port=server.port)

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
        for metric, samples in in_order(values):
            counter = metric.kind is Kind.COUNTER
            family = (CounterMetricFamily if counter else GaugeMetricFamily)(
                metric.name, metric.help, labels=metric.labels
            )
            for labels, value in samples.items():
                family.add_metric(labels, value)
            yield family
