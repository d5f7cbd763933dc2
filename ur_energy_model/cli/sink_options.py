"""Options of subcommands that feed sinks: Foxglove, Prometheus, MQTT, OPC UA."""

from __future__ import annotations

import argparse
import errno
import os
import socket
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ur_energy_model.sinks.options import SinkOptions

OPCUA_PORT = 4840
"""Default port of OPC UA."""


def add_sink_options(parser: argparse.ArgumentParser) -> None:
    """Options that name sinks; each sink may be repeated."""
    group = parser.add_argument_group("where else the energies go (each may be repeated)")
    group.add_argument(
        "--foxglove",
        nargs="?",
        const="",
        action="append",
        default=[],
        metavar="A:P",
        help="server for Foxglove and Lichtblick (default: 127.0.0.1:8765)",
    )
    group.add_argument(
        "--foxglove-origin",
        action="append",
        default=[],
        metavar="ORIGIN",
        help="site whose pages may connect to --foxglove too, such as http://dashboards.example "
        "(default: those of this machine and of Foxglove)",
    )
    group.add_argument(
        "--mcap",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="MCAP file with what the Foxglove server sends",
    )
    group.add_argument(
        "--prometheus",
        action="append",
        default=[],
        metavar="A:P",
        help="metrics for Prometheus at http://A:P/metrics, such as 127.0.0.1:9464",
    )
    group.add_argument(
        "--mqtt",
        action="append",
        default=[],
        metavar="URL",
        help="MQTT broker for Sparkplug B, such as mqtt://127.0.0.1:1883 or mqtts://broker:8883",
    )
    group.add_argument(
        "--opcua",
        action="append",
        default=[],
        metavar="URL",
        help="OPC UA server, such as opc.tcp://127.0.0.1:4840",
    )
    group.add_argument(
        "--mqtt-group", default="ur_energy", metavar="NAME", help="group of Sparkplug topics"
    )
    group.add_argument(
        "--mqtt-node", default="estimator", metavar="NAME", help="edge node of Sparkplug topics"
    )
    group.add_argument("--mqtt-json", action="store_true", help="also publish plain JSON topics")
    group.add_argument(
        "--credentials",
        type=Path,
        metavar="FILE",
        help="YAML file with user names, passwords and certificates of brokers and servers "
        "(default: from the environment)",
    )
    group.add_argument(
        "--allow-network",
        action="store_true",
        help="allow addresses that other machines reach",
    )


def sink_options(options: argparse.Namespace) -> SinkOptions:
    """The sinks that the user stated."""
    from ur_energy_model.sinks.options import SinkOptions

    return SinkOptions(
        foxglove=tuple(options.foxglove),
        foxglove_origins=tuple(options.foxglove_origin),
        mcap=tuple(options.mcap),
        prometheus=tuple(options.prometheus),
        mqtt=tuple(options.mqtt),
        opcua=tuple(options.opcua),
        allow_network=options.allow_network,
        credentials=options.credentials,
        mqtt_group=options.mqtt_group,
        mqtt_node=options.mqtt_node,
        mqtt_json=options.mqtt_json,
    )


def check_ports(stated: SinkOptions) -> None:
    """Refuse servers whose address another program has.

    Raises:
        InputError: it is in use, or this machine does not have it.
    """
    from ur_energy_model.errors import InputError
    from ur_energy_model.sinks.address import listening_address
    from ur_energy_model.sinks.open_sinks import FOXGLOVE_PORT, PROMETHEUS_PORT

    urls = (url.removeprefix("opc.tcp://").partition("/")[0] for url in stated.opcua)
    kinds = (
        ("--foxglove", stated.foxglove, FOXGLOVE_PORT),
        ("--prometheus", stated.prometheus, PROMETHEUS_PORT),
        ("--opcua", urls, OPCUA_PORT),
    )
    with ExitStack() as held:  # each until all are checked: two sinks cannot share one
        for flag, texts, port in kinds:
            for text in texts:
                address = listening_address(
                    flag, text, port=port, allow_network=stated.allow_network
                )
                family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
                try:
                    held.enter_context(
                        socket.create_server((address.host, address.port), family=family)
                    )
                except OSError as error:
                    raise InputError(
                        flag,
                        f"{address} cannot be used ({os.strerror(error.errno or errno.EINVAL)})",
                        "end the program that has this port, or name another port",
                    ) from None
