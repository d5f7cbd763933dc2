# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Sinks of energies besides ROS: their kinds, common options and addresses.

Each kind of sink is a room that adds to the subject "sinks": a `SinkKind`, and a table of
its options. Commands and nodes with that subject make the sinks that the user has stated
with `sink.open_sinks`; without such rooms there are none, and no options for them.

The chapter imports only the ground floor, so that the tables of these rooms may use it.
"""

from __future__ import annotations

import errno
import ipaddress
import os
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ur_energy_model.addresses import is_loopback
from ur_energy_model.errors import InputError
from ur_energy_model.options import option
from ur_energy_model.rooms import Given, extensions

if TYPE_CHECKING:
    import socket

SUBJECT = "sinks"
"""Subject to which the rooms of sinks add extensions."""


@dataclass(frozen=True)
class SinkOptions:
    """Options that all kinds of sinks have in common.

    Attributes:
        sink_rate: how often each sink gets a reading [Hz].
        allow_network: whether servers may listen where other machines reach them, and
            clients may connect to other machines without encryption.
        credentials: file with user names, passwords and certificates, see
            `sinks.credentials`; None for the environment.
    """

    # fmt: off
    sink_rate: float = option(
        10.0, "rate of readings for all sinks", unit="Hz", limits=(0.1, 50.0), flags=(),
    )
    allow_network: bool = option(
        False, "allow addresses of sinks that other machines reach", launch=True,
    )
    credentials: Path | None = option(
        None, "YAML file with user names, passwords and certificates of sinks; empty for the "
        "environment", metavar="FILE", launch=True,
    )
    # fmt: on


@dataclass(frozen=True)
class SinkKind:
    """A kind of sink, as its room describes it; reading it imports no package.

    Attributes:
        name: name of the option with an address, URL or file for each sink of this kind.
        title: title by which the help of commands names what these sinks feed.
        options: table that has this option, and further options of the kind.
        factory: "module:function" of its `sink.SinkFactory`.
        default_port: port on which a sink listens if the user states none; None for a kind
            that does not listen.
        secrets: section of the kind in the file of credentials; None for a kind without
            secrets.
    """

    name: str
    title: str
    options: type
    factory: str
    default_port: int | None = None
    secrets: str | None = None

    @property
    def flag(self) -> str:
        """The option on the command line."""
        return f"--{self.name}"

    @property
    def listens(self) -> bool:
        """Whether it is a server, which needs a port of this machine."""
        return self.default_port is not None

    def places(self, given: Given) -> tuple[str, ...]:
        """Address, URL or file of each sink that the user has stated."""
        stated = getattr(given.of(self.options), self.name)
        return tuple(map(str, stated))


def sink_kinds() -> tuple[SinkKind, ...]:
    """The kinds of all rooms that are there, in order of the rooms' names."""
    return tuple(extension.load() for extension in extensions(SUBJECT))


def common_options(given: Given) -> SinkOptions:
    """The options that all kinds have in common; their defaults without any kind."""
    return given.of(SinkOptions) if sink_kinds() else SinkOptions()


def check_ports(given: Given) -> None:
    """Refuse servers that cannot listen where the user has stated.

    A sink tries its port again and again, as the program that has the port may end; a
    user at a terminal is better served by an error at once.

    Raises:
        InputError: no valid address, the port is in use, also by another sink of the same
            command, or this machine does not have the address.
    """
    with ExitStack() as held:  # all ports until the last is checked
        for kind in sink_kinds():
            if kind.listens:
                for place in kind.places(given):
                    address = server_address(kind, place, common_options(given))
                    held.enter_context(_listener(kind, address))


def _listener(kind: SinkKind, address: Address) -> socket.socket:
    """A socket that listens where a sink is to listen; InputError where that fails."""
    try:
        return address.listener()
    except OSError as error:
        reason = os.strerror(error.errno or errno.EINVAL)
        problem = f"{address} cannot be used ({reason})"
        remedy = "end the program that has this port, or name another port"
        raise InputError(kind.flag, problem, remedy) from None


@dataclass(frozen=True)
class Address:
    """Host name or IP address, and port; a server with port 0 takes a free port."""

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
        import socket  # takes 5 ms, which a list of commands does without

        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        return socket.create_server((self.host, self.port), family=family)

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def server_address(kind: SinkKind, text: str, options: SinkOptions) -> Address:
    """Where a sink listens: loopback unless the user allows more.

    Args:
        kind: kind of the sink; its default port is used where the text has none.
        text: ADDRESS:PORT, ADDRESS, :PORT or nothing, or a URL with one of them;
            127.0.0.1 where it has no address.
        options: whether other addresses than loopback are allowed.

    Raises:
        InputError: no such address or port, or not a loopback one without allow_network.
    """
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
    address = Address(name, int(digits or kind.default_port or 0))
    if not (address.is_loopback or options.allow_network):
        problem = f"{address} can be reached from other machines"
        raise InputError(
            kind.flag,
            problem,
            "use 127.0.0.1, or permit it with --allow-network",
            options=("--allow-network",),
        )
    return address
