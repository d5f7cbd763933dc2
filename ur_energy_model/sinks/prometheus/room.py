# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""What the room adds to the package: a page of metrics for Prometheus."""

from __future__ import annotations

from dataclasses import dataclass

from ur_energy_model.options import option
from ur_energy_model.rooms import Extension, Room
from ur_energy_model.sinks.options import SUBJECT, SinkKind, SinkOptions


@dataclass(frozen=True)
class PrometheusOptions:
    """Options of the servers for Prometheus.

    Attributes:
        prometheus: ADDRESS:PORT of each server.
    """

    # fmt: off
    prometheus: tuple[str, ...] = option(
        (), "addresses of metrics servers for Prometheus, such as 127.0.0.1:9464",
        metavar="A:P", launch=True,
    )
    # fmt: on


PROMETHEUS_PORT = 9464
"""Default port of the Prometheus exporters of OpenTelemetry."""
PROMETHEUS = SinkKind(
    "prometheus",
    "Prometheus",
    PrometheusOptions,
    "ur_energy_model.sinks.prometheus.sink:prometheus_sink",
    default_port=PROMETHEUS_PORT,
)
ROOM = Room(
    name="sinks/prometheus",
    purpose="metrics for Prometheus",
    extensions=(
        Extension(
            SUBJECT,
            "ur_energy_model.sinks.prometheus.room:PROMETHEUS",
            options=PrometheusOptions,
            shared=SinkOptions,
        ),
    ),
    tests=("test/sinks/prometheus",),
    pages=("docs/sinks/prometheus",),
)
