"""OpcuaServer: a sink with a server on a free port, and what clients asked of the estimator."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from asyncua import Client

from test.sinks.servers import free_port
from test.sinks.waiting import until
from ur_energy_model.sinks.opcua import opcua_sink
from ur_energy_model.sinks.options import SinkOptions
from ur_energy_model.sinks.sink import ArmActions, ArmReading, Sink

INTERVAL = {"accounted_s": 2.0, "unaccounted_s": 0.0, "total_J": 5.0, "bus_J": None, "joints": {}}


class OpcuaServer:
    """A running server.

    Args:
        credentials: file to write, with the user plc.
        allow_network: as stated by the user.

    Attributes:
        resets: reasons of the resets that clients asked for.
    """

    def __init__(self, credentials: Path, *, allow_network: bool = False) -> None:
        credentials.write_text("opcua: {users: {plc: secret}}")
        self.url = f"opc.tcp://127.0.0.1:{free_port()}"
        self.resets: list[str] = []
        options = SinkOptions(credentials=credentials, allow_network=allow_network)
        actions = ArmActions(self.resets.append, lambda: INTERVAL)
        self.sink: Sink = opcua_sink(self.url, options, actions)
        until(lambda: self.sink.status.problem is None, 60)

    def offer(self, reading: ArmReading) -> None:
        """Offer a reading and wait until clients see it."""
        delivered = self.sink.status.delivered
        self.sink.offer(reading)
        until(lambda: self.sink.status.delivered > delivered)

    def ask(
        self, question: Callable[[Client], Awaitable[Any]], user: str = "", password: str = ""
    ) -> Any:
        """Ask something as a client, anonymous or as a user."""

        async def run() -> Any:
            client = Client(self.url)
            if user:
                client.set_user(user)
                client.set_password(password)
            async with client:
                return await question(client)

        return asyncio.run(run())
