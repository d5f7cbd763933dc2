"""Servers and clients of other projects, and what tests need to talk to them."""

from __future__ import annotations

import os
import shutil
import socket
import threading
import time
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

ROOT = Path(__file__).resolve().parents[2]
NODE_PACKAGES = ROOT / "build" / "npm" / "node_modules"
"""Packages of npm, apart from everything else."""
_PATH = os.environ.get("PATH", "") + ":/usr/sbin"  # where Debian puts daemons


def program(name: str) -> str | None:
    """Path of a program such as mosquitto or prometheus; None if it is not installed."""
    return shutil.which(name, path=_PATH)


def node_package(name: str) -> Path | None:
    """Folder of a package of npm; None if it or Node.js is not installed."""
    folder = NODE_PACKAGES / name
    return folder if folder.is_dir() and program("node") is not None else None


def needs_program(name: str) -> pytest.MarkDecorator:
    """Skips a test, with the reason, where a program is not installed."""
    reason = f"{name} is not installed: make servers"
    return pytest.mark.skipif(program(name) is None, reason=reason)


def needs_node_package(name: str) -> pytest.MarkDecorator:
    """Skips a test, with the reason, where Node.js or a package of npm is not installed."""
    reason = f"the npm package {name} is not in {NODE_PACKAGES}: make servers"
    return pytest.mark.skipif(node_package(name) is None, reason=reason)


def free_port() -> int:
    """A port of 127.0.0.1 that is free now, for servers that cannot choose one themselves."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def until(condition: Callable[[], object], seconds: float = 20.0) -> None:
    """Wait for a condition; the limit is far beyond what a busy machine needs."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "timed out"
        time.sleep(0.005)


Series = dict[tuple[str, frozenset[tuple[str, str]]], float]
"""Values by name and labels."""


def fetched(address: object, path: str = "/metrics") -> str:
    with urllib.request.urlopen(f"http://{address}{path}", timeout=20) as answer:
        text: str = answer.read().decode()
        return text


def series(page: str) -> Series:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(page)
        for sample in family.samples
    }


def value(found: Series, name: str, **labels: str) -> float:
    return found[name, frozenset(labels.items())]


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
