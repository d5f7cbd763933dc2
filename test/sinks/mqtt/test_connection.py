"""Connections to programs that are no MQTT brokers."""

from __future__ import annotations

import socket
import threading

import pytest

from ur_energy_model.sinks.credentials import MqttCredentials
from ur_energy_model.sinks.mqtt import Connection, broker_of
from ur_energy_model.sinks.sparkplug import Message

ANSWERS = [
    b"HTTP/1.1 400 Bad Request\r\n\r\n",
    b"SSH-2.0-OpenSSH_9.6\r\n",
    b"\xff" * 64,
    b"\x00" * 9,
    b"",
]


@pytest.mark.parametrize("answer", ANSWERS, ids=lambda each: repr(each[:8]))
def test_what_is_no_broker_is_a_problem_of_the_connection(answer: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            client, _ = server.accept()
            with client:
                client.recv(1024)
                client.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        broker = broker_of(
            "mqtt", f"mqtt://127.0.0.1:{server.getsockname()[1]}", allow_network=False
        )
        with pytest.raises(OSError, match=r"\w"):
            Connection(broker, MqttCredentials(), Message("will", b""), ["topic"], print)
        thread.join()
