# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Where energies go besides ROS: SinkOptions, their table, and SINKS, the kinds of sinks."""

from __future__ import annotations

import ipaddress
import socket
from contextlib import ExitStack, closing
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ur_energy_model.errors import InputError, optional_import
from ur_energy_model.options import is_loopback, option

if TYPE_CHECKING:
    from ur_energy_model.sinks.sink import ArmActions, Sink


@dataclass(frozen=True)
class SinkOptions:
    """Sinks as the user states them: options of `ur_energy live`, parameters of the estimator."""

    # fmt: off
    foxglove: tuple[str, ...] = option(
        (), "addresses of servers for Foxglove and Lichtblick, such as 127.0.0.1:8765",
        metavar="A:P", bare="", launch=True,
    )
    foxglove_origins: tuple[str, ...] = option(
        (), "no effect any more: pages of all sites may connect to a server for Foxglove, where a "
        "browser reaches its address",
        flags=("--foxglove-origin",), metavar="ORIGIN", launch=True,
    )
    mcap: tuple[Path, ...] = option(
        (), "MCAP files that get what a Foxglove server sends", metavar="FILE", launch=True
    )
    prometheus: tuple[str, ...] = option(
        (), "addresses of metrics servers for Prometheus, such as 127.0.0.1:9464",
        metavar="A:P", launch=True,
    )
    mqtt: tuple[str, ...] = option(
        (), "URLs of MQTT brokers for Sparkplug B, such as mqtt://127.0.0.1:1883 or "
        "mqtts://broker:8883", metavar="URL", launch=True,
    )
    opcua: tuple[str, ...] = option(
        (), "URLs of OPC UA servers, such as opc.tcp://127.0.0.1:4840", metavar="URL", launch=True
    )
    sink_rate: float = option(
        10.0, "rate of readings for foxglove, mcap, prometheus, mqtt and opcua", unit="Hz",
        limits=(0.1, 50.0), flags=(),
    )
    allow_network: bool = option(
        False, "allow addresses of foxglove, prometheus and opcua that other machines reach",
        launch=True,
    )
    credentials: Path | None = option(
        None, "YAML file with user names, passwords and certificates of mqtt and opcua; empty for "
        "the environment", metavar="FILE", launch=True,
    )
    mqtt_group: str = option("ur_energy", "group of Sparkplug topics", metavar="NAME")
    mqtt_node: str = option("estimator", "edge node of Sparkplug topics", metavar="NAME")
    mqtt_json: bool = option(False, "also publish plain JSON topics")
    # fmt: on


class SinkKind(NamedTuple):
    """A kind of sink."""

    option: str  # of SinkOptions, with an address, URL or file for each sink
    module: str  # of this room; imported when used, as its package may not be installed
    # its function that makes a sink from that text, the options and the actions
    factory: str
    # default port of a kind that listens, None for one that does not
    port: int | None = None
    # whether the function takes a state file, beside which the sink keeps what restarts
    # need
    keeps_state: bool = False

    @property
    def flag(self) -> str:
        """The option on the command line."""
        return f"--{self.option}"

    def stated(self, options: SinkOptions) -> tuple[str, ...]:
        """Address, URL or file of each sink."""
        return tuple(map(str, getattr(options, self.option)))


FOXGLOVE_PORT = 8765
PROMETHEUS_PORT = 9464
OPCUA_PORT = 4840
"""Default ports: Foxglove's own, of OpenTelemetry's Prometheus exporters, IANA's of OPC UA."""
SINKS = (
    SinkKind("foxglove", "foxglove", "foxglove_sink", FOXGLOVE_PORT),
    SinkKind("mcap", "foxglove", "mcap_sink"),
    SinkKind("prometheus", "prometheus", "prometheus_sink", PROMETHEUS_PORT),
    SinkKind("mqtt", "mqtt", "mqtt_sink", keeps_state=True),
    SinkKind("opcua", "opcua", "opcua_sink", OPCUA_PORT),
)
"""Every kind; a new one is a line here, its options above, and a module of its own."""


def open_sinks(
    options: SinkOptions,
    actions: ArmActions | None = None,
    state_file: Path | None = None,
) -> tuple[Sink, ...]:
    """Make all sinks of the options; clients of some may request the actions.

    Beside `state_file`, that of the energy counters, sinks keep what restarts need.

    Raises:
        InputError: an address, a URL or a file that cannot be used.
        MissingPackageError: the package of a kind is not installed.
    """
    sinks: list[Sink] = []
    with ExitStack() as opened:  # an error closes those made before
        for kind in SINKS:
            for text in kind.stated(options):
                with optional_import("sinks"):
                    module = import_module(f"ur_energy_model.sinks.{kind.module}.sink")
                make = getattr(module, kind.factory)
                state = (state_file,) if kind.keeps_state else ()
                sink = make(text, options, actions, *state)
                sinks.append(opened.enter_context(closing(sink)))
        opened.pop_all()
    return tuple(sinks)


@dataclass(frozen=True)
class Address:
    """Host name or IP address, and port; where a server listens, port 0 takes a free one."""

    host: str
    port: int

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine reaches it."""
        return is_loopback(self.host)

    def listener(self) -> socket.socket:
        """A socket that listens there.

        Raises:
            OSError: another program has the port, or this machine does not have the
                address.
        """
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        return socket.create_server((self.host, self.port), family=family)

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def server_address(option: str, text: str, options: SinkOptions) -> Address:
    """Where a sink of an option listens: loopback unless the user allows more.

    The text is ADDRESS:PORT, ADDRESS, :PORT or nothing, which take the default port, or a
    URL.

    Raises:
        InputError: no such address or port, or not a loopback one without allow_network.
    """
    kind = next(each for each in SINKS if each.option == option)
    place = text.rpartition("://")[2].partition("/")[0]
    name, colon, digits = place.rpartition(":")
    if not colon or place.endswith("]"):
        name = place
        digits = ""
    name = name.removeprefix("[").removesuffix("]") or "127.0.0.1"
    if digits and not (digits.isdecimal() and int(digits) <= 65535):
        remedy = "state ADDRESS:PORT, 0 to 65535"
        raise InputError(kind.flag, f"'{place}' has no valid port", remedy)
    try:
        ipaddress.ip_address("127.0.0.1" if name == "localhost" else name)
    except ValueError:
        problem = f"'{name}' is not an IP address"
        raise InputError(kind.flag, problem, "state ADDRESS:PORT") from None
    address = Address(name, int(digits or kind.port or 0))
    if not (address.is_loopback or options.allow_network):
        problem = f"{address} can be reached from other machines"
        raise InputError(
            kind.flag, problem, "use 127.0.0.1, or permit it with --allow-network"
        )
    return address
