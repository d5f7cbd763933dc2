"""Non-blocking TCP server for one thread; all buffers are bounded."""

from __future__ import annotations

import contextlib
import select
import socket
from collections.abc import Callable
from typing import Protocol

from ur_energy_model.errors import ControllerError

RECEIVE_SIZE = 4096
"""Bytes read from a client at a time: what it sends must not delay a cycle of the arm."""
KERNEL_BUFFER = 1 << 18
MAX_CONNECTIONS = 64
SELECTABLE = 1024
"""select() does not support file descriptors from this number on."""


class ClientSession(Protocol):
    """Protocol of one connection: bytes in, bytes out, no I/O."""

    def greeting(self) -> bytes:
        """Bytes to send when the connection opens."""
        ...

    def receive(self, data: bytes) -> bytes:
        """Answer to received bytes.

        Raises:
            ControllerError: invalid data; the connection is closed.
        """
        ...

    @property
    def finished(self) -> bool:
        """Whether to close the connection after sending the answer."""
        ...

    def disconnected(self) -> None:
        """Release the resources of the connection."""
        ...


class Connection:
    """One accepted client.

    Attributes:
        session: protocol of the connection.
        muted: True if nothing is read or sent any more (a half-open connection).
    """

    def __init__(self, sock: socket.socket, session: ClientSession, limit: int) -> None:
        self.session = session
        self.muted = False
        self._socket = sock
        self._limit = limit
        self._pending = bytearray()
        self._listening = True
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, KERNEL_BUFFER)

    def fileno(self) -> int:
        """File descriptor, for select."""
        return self._socket.fileno()

    @property
    def open(self) -> bool:
        """Whether the connection is open."""
        return self._socket.fileno() >= 0

    @property
    def congested(self) -> bool:
        """Whether bytes are waiting to be sent."""
        return bool(self._pending)

    def send(self, data: bytes) -> None:
        """Send without blocking; closes the connection if too many bytes are waiting."""
        if not data or self.muted or not self._listening or not self.open:
            return
        if self._pending:
            self._pending += data
            if len(self._pending) > self._limit:
                self.close()
            return
        try:
            sent = self._socket.send(data)
        except BlockingIOError:
            sent = 0
        except OSError:
            self._stop_sending()
            return
        if sent < len(data):
            self._pending += data[sent:]

    def flush(self) -> None:
        """Send waiting bytes as far as the client accepts them."""
        try:
            sent = self._socket.send(self._pending)
        except BlockingIOError:
            return
        except OSError:
            self._stop_sending()
            return
        del self._pending[:sent]

    def _stop_sending(self) -> None:
        """The client has gone; what it sent before is still to be read."""
        self._listening = False
        self._pending.clear()

    def read(self) -> None:
        """Pass received bytes to the session and send its answer."""
        try:
            data = self._socket.recv(RECEIVE_SIZE)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.close()
            return
        try:
            self.send(self.session.receive(data))
        except ControllerError:  # not the protocol of this port
            self.close()
        else:
            if self.session.finished:
                self.close()

    def close(self) -> None:
        """Close the connection; closing twice does nothing."""
        if self.open:
            self._socket.close()
            self.session.disconnected()


class Listener:
    """A listening port.

    Args:
        address: host and port; port 0 selects a free one.
        make_session: called for each client.
        limit: bytes that may wait for a client before its connection is closed.

    Raises:
        ControllerError: the port cannot be opened.
    """

    def __init__(
        self,
        address: tuple[str, int],
        make_session: Callable[[], ClientSession],
        limit: int = 1 << 18,
    ) -> None:
        self._make_session = make_session
        self._limit = limit
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._socket.bind(address)
            self._socket.listen(16)
        except OSError as error:
            self._socket.close()
            raise ControllerError(
                address[0],
                f"port {address[1]} cannot be opened ({error.strerror})",
                "choose a free address such as 127.0.0.2 with --host",
            ) from error
        self._socket.setblocking(False)

    @property
    def port(self) -> int:
        """Port number."""
        return int(self._socket.getsockname()[1])

    def fileno(self) -> int:
        """File descriptor, for select."""
        return self._socket.fileno()

    def accept(self) -> Connection | None:
        """Accept a waiting client; None if there is none."""
        try:
            sock, _ = self._socket.accept()
        except OSError:
            return None
        if sock.fileno() >= SELECTABLE:
            sock.close()
            return None
        connection = Connection(sock, self._make_session(), self._limit)
        connection.send(connection.session.greeting())
        return connection

    def close(self) -> None:
        """Stop listening."""
        self._socket.close()


class TcpServer:
    """Listeners and connections of a server; used by one thread.

    select() is used because its timeout has microsecond resolution; poll() and epoll() round to
    milliseconds. The number of connections is bounded accordingly.
    """

    def __init__(self) -> None:
        self._listeners: list[Listener] = []
        self._connections: list[Connection] = []

    def listen(self, listener: Listener) -> None:
        """Serve a listener from now on."""
        self._listeners.append(listener)

    @property
    def connections(self) -> list[Connection]:
        """Open connections."""
        return self._connections

    def serve(self, timeout: float) -> None:
        """Wait at most `timeout` s for clients, and serve them."""
        live = [connection for connection in self._connections if not connection.muted]
        writing = [connection for connection in live if connection.congested]
        reading: list[Listener | Connection] = [*self._listeners, *live]
        readable, writable, _ = select.select(reading, writing, [], timeout)
        for item in readable:
            if isinstance(item, Listener):
                connection = item.accept()
                if connection is not None:
                    self._connections.append(connection)
            else:
                item.read()
        for connection in writable:
            if connection.open:
                connection.flush()
        if readable or writable:
            self.sweep()

    def sweep(self) -> None:
        """Remove closed connections, and refuse clients beyond the limit."""
        self._connections = [connection for connection in self._connections if connection.open]
        for connection in self._connections[MAX_CONNECTIONS:]:
            connection.close()

    def close(self) -> None:
        """Close everything."""
        for connection in self._connections:
            with contextlib.suppress(OSError):
                connection.close()
        for listener in self._listeners:
            listener.close()
        self._connections, self._listeners = [], []
