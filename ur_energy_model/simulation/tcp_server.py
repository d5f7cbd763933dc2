# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Non-blocking TCP server for one thread; all buffers are bounded."""

from __future__ import annotations

import contextlib
import select
import socket
from collections.abc import Callable

from ur_energy_model.errors import ControllerError

RECEIVE_SIZE = 4096
"""Bytes read from a client at a time: long input must not delay a cycle of the arm."""
KERNEL_BUFFER = 1 << 18  # size of the kernel's buffer for a client [bytes]
LARGEST_BACKLOG = 1 << 18
"""Unsent bytes beyond KERNEL_BUFFER from which on the connection of a client is closed."""
MAX_CONNECTIONS = 64
WAITING_CLIENTS = 16  # clients of a port that may wait until they are accepted
SELECTABLE = 1024  # select() does not support file descriptors from this number on
MAX_LINE = 4096  # longest line of a client [bytes]


class ClientSession:
    """Protocol of one connection: bytes in, bytes out, no I/O."""

    finished = False  # whether to close the connection after sending the answer

    def greeting(self) -> bytes:
        """Bytes to send when the connection opens."""
        return b""

    def receive(self, data: bytes) -> bytes:
        """Answer to received bytes.

        Args:
            data: the next bytes of the connection.

        Returns:
            Bytes to send.

        Raises:
            ControllerError: invalid data; the connection is closed.
        """
        raise NotImplementedError

    def disconnected(self) -> None:
        """Release the resources of the connection."""


class LineSession(ClientSession):
    """Answers each line with one line; over-long lines are dropped."""

    _buffer = b""

    def receive(self, data: bytes) -> bytes:
        """Answers to the completed lines."""
        *lines, rest = (self._buffer + data).split(b"\n")
        self._buffer = b"" if len(rest) > MAX_LINE else rest
        answers = [self.answer(line.decode(errors="replace").strip()) for line in lines]
        return "".join(f"{answer}\n" for answer in answers).encode()

    def answer(self, line: str) -> str:
        """Answer to one line."""
        raise NotImplementedError


class ClientConnection:
    """One accepted client.

    Args:
        sock: socket of the client, not blocking.
        session: session that answers the client.
    """

    def __init__(self, sock: socket.socket, session: ClientSession) -> None:
        self.session = session
        self._socket = sock
        self._pending = bytearray()
        self._takes_bytes = True  # whether the client still receives
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, KERNEL_BUFFER)
        self.send(session.greeting())

    def fileno(self) -> int:
        """File descriptor, for select; negative once closed."""
        return self._socket.fileno()

    @property
    def congested(self) -> bool:
        """Whether bytes are waiting to be sent."""
        return bool(self._pending)

    def send(self, data: bytes) -> None:
        """Send without blocking.

        Args:
            data: bytes to send; the connection is closed if too many bytes are waiting.
        """
        if not data or not self._takes_bytes or self.fileno() < 0:
            return
        waited = self.congested
        self._pending += data
        if not waited:
            self.flush()
        elif len(self._pending) > LARGEST_BACKLOG:
            self.close()

    def flush(self) -> None:
        """Send waiting bytes as far as the client accepts them."""
        try:
            sent = self._socket.send(self._pending)
        except BlockingIOError:
            return
        except (
            OSError
        ):  # the client has gone; bytes that it sent before are still to be read
            self._takes_bytes = False
            sent = len(self._pending)
        del self._pending[:sent]

    def read(self) -> None:
        """Pass received bytes to the session and send its answer."""
        try:
            data = self._socket.recv(RECEIVE_SIZE)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        try:
            if data:
                self.send(self.session.receive(data))
        except ControllerError:  # not the protocol of this port
            data = b""
        if not data or self.session.finished:
            self.close()

    def close(self) -> None:
        """Close the connection; closing twice does nothing."""
        if self.fileno() >= 0:
            self._socket.close()
            self.session.disconnected()


class TcpServer:
    """Listening ports and connections of a server; used by one thread.

    select() is used because its timeout has microsecond resolution; poll() and epoll()
    round to milliseconds. The number of connections is bounded accordingly.
    """

    def __init__(self) -> None:
        self._listeners: dict[socket.socket, Callable[[], ClientSession]] = {}
        self.connections: list[ClientConnection] = []

    def listen(
        self, host: str, port: int, make_session: Callable[[], ClientSession]
    ) -> int:
        """Open a port.

        Args:
            host: address to listen on.
            port: 0 for one that the system chooses.
            make_session: called for each client.

        Returns:
            The number of the port.

        Raises:
            ControllerError: the port cannot be opened.
        """
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((host, port))
            listener.listen(WAITING_CLIENTS)
        except OSError as error:
            listener.close()
            problem = f"port {port} cannot be opened ({error.strerror})"
            remedy = "choose a free address such as 127.0.0.2 with --host"
            raise ControllerError(host, problem, remedy) from error
        listener.setblocking(False)
        self._listeners[listener] = make_session
        return int(listener.getsockname()[1])

    def serve(self, timeout: float) -> None:
        """Wait for clients, and serve them.

        Args:
            timeout: longest time to wait for clients [s].
        """
        writing = [connection for connection in self.connections if connection.congested]
        reading: list[socket.socket | ClientConnection] = [
            *self._listeners,
            *self.connections,
        ]
        readable, writable, _ = select.select(reading, writing, [], timeout)
        for item in readable:
            if isinstance(item, ClientConnection):
                item.read()
            else:
                with contextlib.suppress(OSError):
                    self._accept(item)
        for connection in writable:
            if connection.fileno() >= 0:
                connection.flush()
        if readable or writable:
            self.sweep()

    def _accept(self, listener: socket.socket) -> None:
        """Accept a client.

        Raises:
            OSError: the client has gone already.
        """
        sock, _ = listener.accept()
        if sock.fileno() >= SELECTABLE:
            sock.close()
            return
        session = self._listeners[listener]()
        self.connections.append(ClientConnection(sock, session))

    def sweep(self) -> None:
        """Remove closed connections, and refuse clients beyond the limit."""
        self.connections = [each for each in self.connections if each.fileno() >= 0]
        for connection in self.connections[MAX_CONNECTIONS:]:
            connection.close()

    def close(self) -> None:
        """Close everything."""
        for connection in self.connections:
            with contextlib.suppress(OSError):
                connection.close()
        for listener in self._listeners:
            listener.close()
        self.connections = []
        self._listeners = {}
