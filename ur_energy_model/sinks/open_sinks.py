"""open_sinks: the sinks that a user states, each kind imported only if it is used."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing

from ur_energy_model.missing_packages import needed_here
from ur_energy_model.sinks.address import Address, listening_address
from ur_energy_model.sinks.arm_actions import ArmActions
from ur_energy_model.sinks.options import SinkOptions
from ur_energy_model.sinks.sink import Sink

FOXGLOVE_PORT = 8765
PROMETHEUS_PORT = 9464
"""Default ports: Foxglove's own, and that of OpenTelemetry's Prometheus exporters."""


def open_sinks(options: SinkOptions, actions: ArmActions | None = None) -> tuple[Sink, ...]:
    """Make all sinks of the options.

    Args:
        options: as the user states them.
        actions: what clients of a sink may ask of the estimator.

    Raises:
        InputError: an address, a URL or a file that cannot be used.
        MissingPackageError: the package of a kind is not installed.
    """
    with ExitStack() as opened:  # an error closes those made before
        sinks = tuple(opened.enter_context(closing(sink)) for sink in _made(options, actions))
        opened.pop_all()
    return sinks


def _made(options: SinkOptions, actions: ArmActions | None) -> Iterator[Sink]:
    if options.foxglove:
        with needed_here():
            from ur_energy_model.sinks.foxglove.foxglove_sink import foxglove_sink

        for text in options.foxglove:
            address = _address(options, "--foxglove", text, FOXGLOVE_PORT)
            yield foxglove_sink(address, options.foxglove_origins)
    if options.mcap:
        with needed_here():
            from ur_energy_model.sinks.foxglove.mcap_sink import mcap_sink

        for path in options.mcap:
            yield mcap_sink(path)
    if options.prometheus:
        with needed_here():
            from ur_energy_model.sinks.prometheus.prometheus_sink import prometheus_sink

        for text in options.prometheus:
            yield prometheus_sink(_address(options, "--prometheus", text, PROMETHEUS_PORT))
    if options.mqtt:
        with needed_here():
            from ur_energy_model.sinks.mqtt.mqtt_sink import mqtt_sink

        for url in options.mqtt:
            yield mqtt_sink(url, options)
    if options.opcua:
        with needed_here():
            from ur_energy_model.sinks.opcua.opcua_sink import opcua_sink

        for url in options.opcua:
            yield opcua_sink(url, options, actions)


def _address(options: SinkOptions, option: str, text: str, port: int) -> Address:
    return listening_address(option, text, port=port, allow_network=options.allow_network)
