# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""An OPC UA server as a sink: its thread, users and certificate."""

from __future__ import annotations

import asyncio
import hmac
import logging
import socket
import threading
import time
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from asyncua import Server, ua
from asyncua.crypto.cert_gen import (
    dump_private_key_as_pem,
    generate_private_key,
    generate_self_signed_app_certificate,
)
from asyncua.crypto.permission_rules import SimpleRoleRuleset, User, UserRole
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID

from ur_energy_model.addresses import split_url
from ur_energy_model.errors import InputError
from ur_energy_model.files import new_file, xdg_folder
from ur_energy_model.rooms import Given
from ur_energy_model.sinks.opcua.companion_types import AddressSpace
from ur_energy_model.sinks.opcua.credentials import OpcuaCredentials, read_credentials
from ur_energy_model.sinks.opcua.nodes import MachineNodes
from ur_energy_model.sinks.opcua.room import OPCUA
from ur_energy_model.sinks.options import Address, common_options, server_address
from ur_energy_model.sinks.sink import ArmActions, ArmReading, QueuedSink, Sink

_FORM = "state opc.tcp://ADDRESS[:PORT][/PATH]"
DAYS = 3650
"""Days for which a certificate that is made here is valid: about ten years."""
LONGEST_NAME = 64
"""Most characters of a common name in a certificate (RFC 5280, ub-common-name)."""
LONGEST_START = 60.0
"""Longest time for the start of the server [s]; a loop that takes longer hangs."""
LONGEST_WRITE = 10.0
"""Longest time for the values of a reading [s]."""
MOST_CLIENTS = 20
"""Connections that are accepted at once."""
SILENCE = 5.0
"""Time without readings after which the values of an arm are marked as old [s]."""


def opcua_sink(
    place: str,
    given: Given,
    actions: ArmActions | None = None,
    state_file: Path | None = None,
) -> Sink:
    """An OPC UA server as a sink, see `SinkFactory`.

    Args:
        place: URL of the server, opc.tcp://ADDRESS[:PORT][/PATH].
        given: holds the common options: users and certificate, and whether other machines
            may connect.
        actions: what methods of the server do; None for a server without methods.
        state_file: not used: the certificate is kept in the user's state folder.

    Raises:
        InputError: the URL or the credentials cannot be used, or other machines would
            reach a server without users.
    """
    secrets = "put users into the file of credentials"
    parts = split_url(OPCUA.flag, place, ("opc.tcp",), "an OPC UA server", _FORM, secrets)
    if parts.query or parts.fragment:
        raise InputError(
            OPCUA.flag, f"'{place}' has more than an address and a path", _FORM
        )
    common = common_options(given)
    address = server_address(OPCUA, parts.netloc, common)
    credentials = read_credentials(common.credentials)
    if not (address.is_loopback or credentials.users):
        problem = f"{address} can be reached from other machines, and there are no users"
        raise InputError(
            OPCUA.flag, problem, "state opcua: users: in the file of credentials"
        )
    # Without a handler, its warnings about clients would appear between the lines of the
    # terminal.
    logging.getLogger("asyncua").addHandler(logging.NullHandler())
    path = parts.path if parts.path != "/" else ""
    certificate = server_certificate(credentials)
    return QueuedSink(
        OpcuaDelivery(address, path, credentials.users, certificate, actions)
    )


class OpcuaDelivery:
    """A server, in a thread with an event loop of its own; see `Delivery`.

    On loopback, anonymous clients may read, also unencrypted. Elsewhere all clients need
    a user and encryption.

    Attributes:
        name: URL of the server.
    """

    def __init__(
        self,
        address: Address,
        path: str,
        users: Mapping[str, str],
        certificate: tuple[Path, Path],
        actions: ArmActions | None,
    ) -> None:
        """A server that does not listen yet.

        Args:
            address: address at which the server listens.
            path: path of the URL of the server; "" for none.
            users: passwords by user name.
            certificate: files of its certificate and private key.
            actions: what its methods do; None for a server without methods.
        """
        self.name = f"opc.tcp://{address}{path}"
        self._address = address
        self._certificate = certificate
        self._actions = actions
        self._passwords = {name: word.encode() for name, word in users.items()}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._server: Server | None = None
        self._machines: dict[str, MachineNodes] = {}  # by name of the arm
        # Monotonic time of the last reading of each arm that is not lost [s], by name.
        self._seen: dict[str, float] = {}

    @property
    def clients(self) -> int | None:
        """Number of connections."""
        server = self._server
        if server is None or server.bserver is None:
            return None
        return len(server.bserver.clients)

    def open(self) -> None:
        """Start the server; a port in use is found before the types are loaded."""
        self._address.listener().close()
        loop = asyncio.new_event_loop()
        self._loop = loop
        name = f"{self.name} loop"
        self._thread = threading.Thread(target=loop.run_forever, name=name, daemon=True)
        self._thread.start()
        self._run(self._start(), LONGEST_START)

    def deliver(self, reading: ArmReading) -> None:
        """Write the values of a reading, or mark them as old where the arm is lost."""
        self._run(self._take(reading), LONGEST_WRITE)

    def close(self) -> None:
        """Stop the server and its thread."""
        loop = self._loop
        if loop is None:
            return
        with suppress(Exception):  # the server may not have started
            self._run(self._stop(), LONGEST_WRITE)
        loop.call_soon_threadsafe(loop.stop)
        self._thread.join(LONGEST_WRITE)
        if not self._thread.is_alive():
            loop.close()
        self._loop = None
        self._server = None
        self._machines.clear()
        self._seen.clear()

    def get_user(
        self,
        iserver: Any,
        username: str | None = None,
        password: str | None = None,
        certificate: Any = None,
    ) -> User | None:
        """The user of a client; asyncua calls this object as its user manager.

        Args:
            iserver: the server of asyncua; not used.
            username: name of the user; None for an anonymous client.
            password: password of the user.
            certificate: certificate of the client; not used.

        Returns:
            None to refuse the client.
        """
        if username is None:
            return User(UserRole.Anonymous) if self._address.is_loopback else None
        expected = self._passwords.get(username)
        # The password of an unknown user is compared, too, so that the time of the answer
        # does not reveal which users exist.
        right = hmac.compare_digest((password or "").encode(), expected or b"\0")
        if expected is None or not right:
            return None
        return User(UserRole.User, username)

    def _run(self, work: Coroutine[Any, Any, None], longest: float) -> None:
        """Run a coroutine in the loop, and wait until it has ended.

        Args:
            work: the coroutine; its errors are raised here.
            longest: longest time to wait [s].

        Raises:
            TimeoutError: the coroutine has not ended in this time.
        """
        assert self._loop is not None
        asyncio.run_coroutine_threadsafe(work, self._loop).result(longest)

    async def _start(self) -> None:
        """Start the server: security, types, then listening."""
        server = Server(user_manager=self)
        await server.init()
        await server.set_application_uri(application_uri())
        server.set_server_name("ur_energy")
        server.application_type = ua.ApplicationType.Server
        server.iserver.max_connections = MOST_CLIENTS
        server.set_endpoint(self.name)
        certificate, key = self._certificate
        await server.load_certificate(certificate)
        await server.load_private_key(key)
        secure = ua.SecurityPolicyType
        policies = [secure.Basic256Sha256_SignAndEncrypt, secure.Basic256Sha256_Sign]
        tokens = [ua.UserNameIdentityToken]
        if self._address.is_loopback:
            policies.append(secure.NoSecurity)
            tokens.append(ua.AnonymousIdentityToken)
        # Anonymous clients may do what users may do, except requests that change something.
        # The ruleset of asyncua has no public way to state that.
        rules = SimpleRoleRuleset()
        changing = (
            ua.ObjectIds.WriteRequest_Encoding_DefaultBinary,
            ua.ObjectIds.CallRequest_Encoding_DefaultBinary,
        )
        allowed = rules._permission_dict
        allowed[UserRole.Anonymous] = allowed[UserRole.User] - {*map(ua.NodeId, changing)}
        server.set_security_policy(policies, rules)
        server.set_identity_tokens(tokens)
        self._space = AddressSpace(server)
        await self._space.add_types()
        await server.start()
        self._server = server
        self._watch = asyncio.create_task(self._watch_arms())

    async def _stop(self) -> None:
        """Stop the server and all tasks of the loop."""
        try:
            if self._server is not None:
                await self._server.stop()
        finally:  # the task of `_watch_arms`, and tasks that the library leaves behind
            left = asyncio.all_tasks() - {asyncio.current_task()}
            for task in left:
                task.cancel()
            await asyncio.gather(*left, return_exceptions=True)

    async def _take(self, reading: ArmReading) -> None:
        """Write a reading; the first one of an arm adds its nodes."""
        machine = self._machines.get(reading.arm)
        if machine is None:
            machine = MachineNodes(self._space, reading.arm)
            await machine.add(reading, self._actions)
            self._machines[reading.arm] = machine
        await machine.write(reading)
        if reading.is_live:
            self._seen[reading.arm] = time.monotonic()
        else:
            self._seen.pop(reading.arm, None)
            await machine.lose()

    async def _watch_arms(self) -> None:
        """Mark the values of arms that send nothing."""
        while True:
            await asyncio.sleep(1.0)
            limit = time.monotonic() - SILENCE
            silent = [arm for arm, seen in self._seen.items() if seen < limit]
            for arm in silent:
                del self._seen[arm]
                await self._machines[arm].lose()


def application_uri() -> str:
    """Name of the server as an application, also in its certificate (OPC 10000-6, 6.2)."""
    return f"urn:{socket.gethostname()}:ur_energy_model"


def server_certificate(credentials: OpcuaCredentials) -> tuple[Path, Path]:
    """Files of the server's certificate (DER or PEM) and its private key (PEM).

    Where the credentials state no certificate, one is made once, in ur_energy/opcua of the
    user's state folder ($XDG_STATE_HOME or ~/.local/state).

    Raises:
        InputError: the folder cannot be written.
    """
    if credentials.certificate is not None and credentials.key is not None:
        return credentials.certificate, credentials.key
    folder = xdg_folder("XDG_STATE_HOME", "~/.local/state") / "opcua"
    certificate_file = folder / "certificate.der"
    key_file = folder / "key.pem"
    if not (certificate_file.is_file() and key_file.is_file()):
        _make_certificate(certificate_file, key_file)
    return certificate_file, key_file


def _make_certificate(certificate_file: Path, key_file: Path) -> None:
    """Make a self-signed certificate for this machine, valid for DAYS.

    Args:
        certificate_file: path of the certificate to write, DER.
        key_file: path of the private key to write, PEM, which only its owner may read.

    Raises:
        InputError: the folder cannot be written.
    """
    folder = key_file.parent
    host = socket.gethostname()
    key = generate_private_key()
    names = x509.UniformResourceIdentifier(application_uri()), x509.DNSName(host)
    certificate = generate_self_signed_app_certificate(
        key,
        f"ur_energy on {host}"[:LONGEST_NAME],
        {},
        [*names, x509.DNSName("localhost")],
        [ExtendedKeyUsageOID.SERVER_AUTH],
        DAYS,
    )
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with new_file(key_file, "wb") as file:
            file.write(dump_private_key_as_pem(key))
        key_file.chmod(0o600)
        with new_file(certificate_file, "wb") as file:
            file.write(certificate.public_bytes(Encoding.DER))
    except OSError as error:
        problem = f"no certificate can be made in {folder} ({error.strerror})"
        remedy = "state certificate and key of opcua in the file of credentials"
        raise InputError(OPCUA.flag, problem, remedy) from error
