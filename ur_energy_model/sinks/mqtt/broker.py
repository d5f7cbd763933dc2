"""Broker: where an MQTT broker is, from its URL."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from ur_energy_model.errors import InputError
from ur_energy_model.sinks.address import Address

PORTS = {"mqtt": 1883, "mqtts": 8883}
"""Default port by scheme (registered with IANA)."""
_FORM = "state mqtt://HOST[:PORT] or mqtts://HOST[:PORT]"


@dataclass(frozen=True)
class Broker:
    """An MQTT broker.

    Attributes:
        address: host name or IP address, and port.
        tls: whether the connection is encrypted and the broker's certificate is checked.
    """

    address: Address
    tls: bool

    def __str__(self) -> str:
        return f"mqtt{'s' if self.tls else ''}://{self.address}"


def broker_of(option: str, url: str, *, allow_network: bool) -> Broker:
    """The broker of a URL.

    Args:
        option: that states it, for messages.
        url: mqtt://HOST[:PORT], or mqtts://HOST[:PORT] for TLS.
        allow_network: whether readings and passwords may travel unencrypted to other machines.

    Raises:
        InputError: not such a URL, one with credentials, or an unencrypted one to another machine
            without allow_network. The message never repeats a password.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise InputError(option, "the URL is not valid", _FORM) from None
    if "@" in url:
        raise InputError(
            option,
            "a URL must not hold a user name or password, which all users of this machine can read",
            "put them into the file of --credentials or into UR_ENERGY_MQTT_USERNAME and "
            "UR_ENERGY_MQTT_PASSWORD",
        )
    if parts.scheme not in PORTS or not host:
        raise InputError(option, f"'{url}' is not the URL of an MQTT broker", _FORM)
    if parts.path.strip("/") or parts.query or parts.fragment:
        raise InputError(option, f"'{url}' has more than a host and a port", _FORM)
    address = Address(host, PORTS[parts.scheme] if port is None else port)
    tls = parts.scheme == "mqtts"
    if not (tls or address.is_loopback or allow_network):
        raise InputError(
            option,
            f"{address} is on another machine and the connection is not encrypted",
            "use mqtts://, or permit it with --allow-network",
        )
    return Broker(address, tls)
