"""Addresses on which sinks listen: loopback unless the user opens them."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

from ur_energy_model.errors import InputError


@dataclass(frozen=True)
class Address:
    """Where a server listens.

    Attributes:
        host: IPv4 or IPv6 address, or localhost.
        port: 0 for a free one.
    """

    host: str
    port: int

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine reaches it."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def listening_address(
    option: str, text: str, *, port: int, allow_network: bool, host: str = "127.0.0.1"
) -> Address:
    """The address that a user states for a server.

    Args:
        option: that states it, for messages.
        text: ADDRESS:PORT, :PORT, ADDRESS or nothing.
        port: default.
        allow_network: whether addresses other than loopback may be used.
        host: default.

    Raises:
        InputError: no such address or port, or not a loopback one without allow_network.
    """
    name, colon, digits = text.rpartition(":")
    if not colon or text.endswith("]"):
        name, digits = text, ""
    name = name.removeprefix("[").removesuffix("]") or host
    if digits and not (digits.isdecimal() and int(digits) <= 65535):
        raise InputError(option, f"'{text}' has no valid port", "state ADDRESS:PORT, 0 to 65535")
    if name != "localhost":
        try:
            ipaddress.ip_address(name)
        except ValueError:
            raise InputError(
                option, f"'{name}' is not an IP address", "state ADDRESS:PORT"
            ) from None
    address = Address(name, int(digits) if digits else port)
    if not (address.is_loopback or allow_network):
        raise InputError(
            option,
            f"{address} can be reached from other machines",
            "use 127.0.0.1, or permit it with --allow-network",
        )
    return address
