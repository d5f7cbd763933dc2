"""Gate: a TCP relay on loopback that a test closes, opens or stalls."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress

from test.sinks.servers import free_port


class Gate:
    """Passes connections on to a port; a context manager."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._listener: socket.socket | None = None
        self._passing = threading.Event()
        self._passing.set()
        self._sockets: list[socket.socket] = []
        self.port = free_port()

    def open(self) -> None:
        """Accept connections."""
        self._passing.set()
        self._listener = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def close(self) -> None:
        """Cut all connections and refuse new ones."""
        if self._listener is not None:
            with suppress(OSError):  # wakes the thread that accepts
                self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()
            self._listener = None
        for sock in self._sockets:
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        self._sockets.clear()

    def stall(self) -> None:
        """Keep connections open and pass nothing on."""
        self._passing.clear()

    def __enter__(self) -> Gate:
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        self._passing.set()
        self.close()

    def _accept(self, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                ours, _ = listener.accept()
                with suppress(OSError):
                    theirs = socket.create_connection(("127.0.0.1", self._target))
                    self._sockets += [ours, theirs]
                    for sock in (ours, theirs):
                        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    for pair in ((ours, theirs), (theirs, ours)):
                        threading.Thread(target=self._pass_on, args=pair, daemon=True).start()

    def _pass_on(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                self._passing.wait(60)
                target.sendall(data)
        for sock in (source, target):
            with suppress(OSError):
                sock.close()
