"""The server of the simulated controller: what clients send is read, whatever else they do."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator

import pytest

from ur_energy_model.simulation.tcp_server import ClientSession, TcpServer


class KeepingSession(ClientSession):
    """Keeps what it receives."""

    def __init__(self) -> None:
        self.received = b""
        self.ended = False

    def greeting(self) -> bytes:
        return b"hello"

    def receive(self, data: bytes) -> bytes:
        self.received += data
        return b""

    def disconnected(self) -> None:
        self.ended = True


@pytest.fixture
def server() -> Iterator[TcpServer]:
    server = TcpServer()
    yield server
    server.close()


def test_what_a_client_sent_before_it_left_is_read(
    server: TcpServer, fresh_host: Callable[[], str]
) -> None:
    session, host, sent = KeepingSession(), fresh_host(), b"x" * 10_000 + b"\n"
    port = server.listen(host, 0, lambda: session)
    with socket.create_connection((host, port), 10.0) as client:
        client.sendall(sent)
    server.serve(10.0)  # accepts a client that is gone already
    for _ in range(3):  # the first of these is refused, the others fail
        for connection in server.connections:
            connection.send(b"state")
    deadline = time.monotonic() + 10.0
    while server.connections and time.monotonic() < deadline:
        server.serve(0.1)
    assert session.received == sent
    assert session.ended
