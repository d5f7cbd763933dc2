"""OpcuaDelivery: an OPC UA server in a thread with an event loop of its own."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from asyncua import Server, ua

from ur_energy_model.sinks.address import Address
from ur_energy_model.sinks.arm_actions import ArmActions
from ur_energy_model.sinks.arm_reading import ArmReading
from ur_energy_model.sinks.opcua.certificate import Certificate, application_uri
from ur_energy_model.sinks.opcua.companion_types import CompanionTypes
from ur_energy_model.sinks.opcua.machine_nodes import MachineNodes
from ur_energy_model.sinks.opcua.users import ReadingForAnonymous, Users

LONGEST_START, LONGEST_WRITE = 60.0, 10.0
"""Longest times for the start and for a reading [s]; a loop that takes longer hangs."""
MOST_CLIENTS = 20
"""Connections that are accepted at once."""
SILENCE = 5.0
"""Time without readings after which the values of an arm are marked as old [s]."""
SIGNED = [
    ua.SecurityPolicyType.Basic256Sha256_SignAndEncrypt,
    ua.SecurityPolicyType.Basic256Sha256_Sign,
]
T = TypeVar("T")


class OpcuaDelivery:
    """A Delivery that is a server.

    Args:
        address: where it listens; on loopback anonymous clients may read, also unencrypted.
        path: of its URL.
        users: passwords by name.
        certificate: of the server.
        actions: what clients may ask of the estimator, None for nothing.
    """

    def __init__(
        self,
        address: Address,
        path: str,
        users: dict[str, str],
        certificate: Certificate,
        actions: ArmActions | None,
    ) -> None:
        self.name = f"opc.tcp://{address}{path}"
        self._address, self._users, self._certificate = address, users, certificate
        self._actions = actions
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._server: Server | None = None
        self._types: CompanionTypes | None = None
        self._machines: dict[str, MachineNodes] = {}
        self._seen: dict[str, float] = {}
        self._watch: asyncio.Task[None] | None = None

    @property
    def clients(self) -> int | None:
        """Number of connections."""
        server = self._server
        if server is None or server.bserver is None:
            return None
        return len(server.bserver.clients)

    def open(self) -> None:
        """Start the server."""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name=f"{self.name} loop", daemon=True
        )
        self._thread.start()
        self._run(self._start(), LONGEST_START)

    def deliver(self, reading: ArmReading) -> None:
        """Write the values of a reading, or mark them as old where the arm is lost."""
        self._run(self._take(reading), LONGEST_WRITE)

    def close(self) -> None:
        """Stop the server and its thread."""
        loop, thread = self._loop, self._thread
        if loop is None or thread is None:
            return
        try:
            with suppress(Exception):  # it may not have started
                self._run(self._stop(), LONGEST_WRITE)
        finally:
            loop.call_soon_threadsafe(loop.stop)
            thread.join(LONGEST_WRITE)
            if not thread.is_alive():
                loop.close()
            self._loop = self._thread = self._server = None
            self._machines.clear()
            self._seen.clear()

    def _run(self, work: Coroutine[Any, Any, T], longest: float) -> T:
        assert self._loop is not None
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(longest)

    async def _start(self) -> None:
        server = Server(user_manager=Users(self._users, anonymous=self._address.is_loopback))
        await server.init()
        await server.set_application_uri(application_uri())
        server.set_server_name("ur_energy")
        server.application_type = ua.ApplicationType.Server
        server.iserver.max_connections = MOST_CLIENTS
        server.set_endpoint(self.name)
        await server.load_certificate(self._certificate.certificate)
        await server.load_private_key(self._certificate.key)
        policies, tokens = list(SIGNED), [ua.UserNameIdentityToken]
        if self._address.is_loopback:
            policies.append(ua.SecurityPolicyType.NoSecurity)
            tokens.append(ua.AnonymousIdentityToken)
        server.set_security_policy(policies, ReadingForAnonymous())
        server.set_identity_tokens(tokens)
        self._types = CompanionTypes(server)
        await self._types.add()
        await server.start()
        self._server = server
        self._watch = asyncio.create_task(self._watch_arms())

    async def _stop(self) -> None:
        if self._watch is not None:
            self._watch.cancel()
        try:
            if self._server is not None:
                await self._server.stop()
        finally:  # the library leaves tasks of subscriptions behind
            left = asyncio.all_tasks() - {asyncio.current_task()}
            for task in left:
                task.cancel()
            await asyncio.gather(*left, return_exceptions=True)

    async def _take(self, reading: ArmReading) -> None:
        assert self._server is not None
        assert self._types is not None
        machine = self._machines.get(reading.arm)
        if machine is None:
            machine = MachineNodes(self._server, self._types, reading.arm)
            await machine.add(reading, self._actions)
            self._machines[reading.arm] = machine
        await machine.write(reading)
        if reading.link.connected and reading.link.problem is None:
            self._seen[reading.arm] = time.monotonic()
        else:
            self._seen.pop(reading.arm, None)
            await machine.lose()

    async def _watch_arms(self) -> None:
        """Mark the values of arms that send nothing."""
        while True:
            await asyncio.sleep(1.0)
            limit = time.monotonic() - SILENCE
            for arm in [arm for arm, seen in self._seen.items() if seen < limit]:
                del self._seen[arm]
                await self._machines[arm].lose()
