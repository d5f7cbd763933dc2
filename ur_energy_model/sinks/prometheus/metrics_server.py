"""MetricsServer: answers scrapes over HTTP, with bounded time and number of connections."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from socketserver import TCPServer, ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from ur_energy_model.sinks.address import Address

REQUEST_TIMEOUT = 5.0
"""Longest time for a client to send its request and take the answer, both together [s]."""
MOST_CONNECTIONS = 16
"""Connections at one time; for another one the oldest, which is slow, is closed."""


class _Handler(WSGIRequestHandler):
    timeout = REQUEST_TIMEOUT

    def log_message(self, format: str, *args: Any) -> None:
        """Scrapes are not worth a line each."""


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 4 * MOST_CONNECTIONS

    def __init__(self, address: Address) -> None:
        if ":" in address.host:
            self.address_family = socket.AF_INET6
        self._lock = threading.Lock()
        self._begun: dict[socket.socket, float] = {}
        """Connections and the time at which they were made [s], the oldest first."""
        super().__init__((address.host, address.port), _Handler)

    def server_bind(self) -> None:
        TCPServer.server_bind(self)  # without the look-up of the host's full name: it may be slow
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]
        self.setup_environ()

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            self._begun[request] = time.monotonic()
        self._end(older_than=float("-inf"), most=MOST_CONNECTIONS)
        super().process_request(request, client_address)

    def service_actions(self) -> None:
        """End requests whose time is over; called twice a second."""
        super().service_actions()
        self._end(older_than=time.monotonic() - REQUEST_TIMEOUT, most=MOST_CONNECTIONS)

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._begun.pop(request, None)
        super().shutdown_request(request)

    def _end(self, *, older_than: float, most: int) -> None:
        """Break off connections made before a time, and the oldest beyond a number."""
        with self._lock:
            each = list(self._begun.items())
            late = [
                connection
                for place, (connection, begun) in enumerate(each)
                if begun < older_than or place < len(each) - most
            ]
            for connection in late:
                del self._begun[connection]
                with suppress(OSError):  # its thread may be closing it
                    connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away or sends no request is no news."""


class MetricsServer:
    """Serves a WSGI application in a thread of its own.

    Args:
        address: to listen on; port 0 takes a free one.
        application: answers each request.

    Raises:
        OSError: the address cannot be used.
    """

    def __init__(self, address: Address, application: Callable[..., Any]) -> None:
        self._server = _Server(address)
        self._server.set_app(application)
        self._thread = threading.Thread(
            target=self._server.serve_forever, name="metrics server", daemon=True
        )
        self._thread.start()

    @property
    def port(self) -> int:
        """Port that it listens on."""
        return int(self._server.server_address[1])

    def close(self) -> None:
        """Stop listening; requests in progress end by themselves."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
