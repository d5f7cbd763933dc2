"""MetricsServer: answers scrapes over HTTP, with bounded time and number of connections."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from socketserver import TCPServer, ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from ur_energy_model.sinks.address import Address

REQUEST_TIMEOUT = 5.0
"""Longest time for a client to send its request or to take the answer [s]."""
MOST_CONNECTIONS = 16
"""Connections at one time; others are closed at once."""


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
        self._free = threading.BoundedSemaphore(MOST_CONNECTIONS)
        super().__init__((address.host, address.port), _Handler)

    def server_bind(self) -> None:
        TCPServer.server_bind(self)  # without the look-up of the host's full name: it may be slow
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]
        self.setup_environ()

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._free.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

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
