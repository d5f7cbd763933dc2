# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Mosquitto: the real broker on a free port of loopback."""

from __future__ import annotations

import signal
import socket
import subprocess
from pathlib import Path

from test.sinks.peers import free_port, program, until


class Mosquitto:
    """A broker; a context manager. Lines of its configuration are besides the listener."""

    def __init__(self, folder: Path, *lines: str) -> None:
        self.port = free_port()
        self._file = folder / "mosquitto.conf"
        text = (f"listener {self.port} 127.0.0.1", "user root", *lines)
        self._file.write_text("\n".join(text) + "\n")
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        found = program("mosquitto")
        assert found is not None
        self._process = subprocess.Popen(
            [found, "-c", str(self._file)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        until(self._listens)

    def send(self, number: signal.Signals) -> None:
        """SIGSTOP makes it silent; SIGKILL ends it as a power failure does."""
        if self._process is not None:
            self._process.send_signal(number)

    def kill(self) -> None:
        self.send(signal.SIGKILL)
        if self._process is not None:
            self._process.wait(10)
            self._process = None

    def __enter__(self) -> Mosquitto:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def _listens(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), 1.0).close()
        except OSError:
            return False
        return True


def with_password(folder: Path, user: str, password: str) -> tuple[Mosquitto, Path]:
    """A broker with TLS and a single user, and the file of its certificate."""
    key = folder / "key.pem"
    certificate = folder / "certificate.pem"
    names = ("-subj", "/CN=localhost", "-addext")
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1"),
            *(*names, "subjectAltName=DNS:localhost,IP:127.0.0.1"),
            *("-keyout", key, "-out", certificate),
        ],
        capture_output=True,
        check=True,
    )
    passwords = folder / "passwords"
    passwords.touch()
    command = [str(program("mosquitto_passwd")), "-b", str(passwords), user, password]
    subprocess.run(command, check=True, capture_output=True)
    lines = (f"certfile {certificate}", f"keyfile {key}", f"password_file {passwords}")
    return Mosquitto(folder, *lines, "allow_anonymous false"), certificate
