"""opcua_sink: an OPC UA server as a sink."""

from __future__ import annotations

import logging
from urllib.parse import urlsplit

from ur_energy_model.errors import InputError
from ur_energy_model.sinks.address import Address, listening_address
from ur_energy_model.sinks.arm_actions import ArmActions
from ur_energy_model.sinks.credentials import read_credentials
from ur_energy_model.sinks.opcua.certificate import server_certificate
from ur_energy_model.sinks.opcua.opcua_delivery import OpcuaDelivery
from ur_energy_model.sinks.options import SinkOptions
from ur_energy_model.sinks.queued_sink import QueuedSink
from ur_energy_model.sinks.sink import Sink

OPTION = "--opcua"
PORT = 4840
"""Registered with IANA for OPC UA."""
_FORM = "state opc.tcp://ADDRESS[:PORT][/PATH]"


def opcua_sink(url: str, options: SinkOptions, actions: ArmActions | None = None) -> Sink:
    """The sink of a server.

    Args:
        url: opc.tcp://ADDRESS[:PORT][/PATH].
        options: credentials and allow_network.
        actions: what clients may ask of the estimator, None for nothing.

    Raises:
        InputError: the URL or the credentials cannot be used, or other machines would reach a
            server without users.
        MissingPackageError: asyncua is not installed.
    """
    address, path = _address(url, allow_network=options.allow_network)
    credentials = read_credentials(options.credentials).opcua
    if not (address.is_loopback or credentials.users):
        raise InputError(
            OPTION,
            f"{address} can be reached from other machines, and there are no users",
            "state opcua: users: in the file of --credentials",
        )
    # Without a handler, its warnings about clients would appear between the lines of the terminal.
    logging.getLogger("asyncua").addHandler(logging.NullHandler())
    certificate = server_certificate(credentials, option=OPTION)
    users = dict(credentials.users)
    return QueuedSink(OpcuaDelivery(address, path, users, certificate, actions))


def _address(url: str, *, allow_network: bool) -> tuple[Address, str]:
    """Where the server listens, and the path of its URL."""
    if "@" in url:
        raise InputError(
            OPTION,
            "a URL must not hold a user name or password, which all users of this machine can read",
            "put users into the file of --credentials",
        )
    parts = urlsplit(url)
    if parts.scheme != "opc.tcp" or not parts.netloc or parts.query or parts.fragment:
        raise InputError(OPTION, f"'{url}' is not the URL of an OPC UA server", _FORM)
    address = listening_address(OPTION, parts.netloc, port=PORT, allow_network=allow_network)
    return address, "" if parts.path == "/" else parts.path
