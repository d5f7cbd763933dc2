"""A dashboard server, and an RTDE source on a peer that a test feeds."""

import socket
import threading
import time

import numpy as np

from test.telemetry.rtde.rtde_peer import START_TIME
from ur_energy_model.telemetry.rtde import source as rtde
from ur_energy_model.telemetry.rtde.source import LinkOptions, RtdeSource
from ur_energy_model.telemetry.samples import Telemetry

FIELDS = ("actual_q", "payload", "payload_cog", "robot_mode")


FIRST = range(rtde.RATE_SAMPLES)


class Dashboard:
    """Answers as a controller's dashboard server does."""

    def __init__(self, host, serial="20195500123", model="UR5"):
        self.serial, self.model = serial, model
        self.program = "Loaded program: /programs/line 1/palletize.urp"
        self._listener = socket.create_server((host, 0))
        self.port = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _serve(self):
        answers = {
            "get serial number": "serial",
            "get robot model": "model",
            "get loaded program": "program",
        }
        while True:
            try:
                client_, _ = self._listener.accept()
            except OSError:
                return
            with client_, client_.makefile("rw") as lines:
                lines.write("Connected: Universal Robots Dashboard Server\n")
                lines.flush()
                for line in lines:
                    lines.write(getattr(self, answers.get(line.strip(), ""), "?") + "\n")
                    lines.flush()


def closed_port(host="127.0.10.1"):
    with socket.create_server((host, 0)) as listener:
        return listener.getsockname()[1]


def source_of(peer, **options):
    link = LinkOptions(
        peer.port,
        options.pop("dashboard_port", None) or closed_port(),
        options.pop("silence", LinkOptions.silence),
    )
    return RtdeSource(peer.host, link=link, **{"batch_seconds": 0.0, "fields": FIELDS, **options})


def read(source, count, timeout=10.0):
    """Batches with that many samples."""
    batches: list[Telemetry] = []
    deadline = time.monotonic() + timeout
    while sum(map(len, batches)) < count:
        assert time.monotonic() < deadline, f"only {sum(map(len, batches))} of {count} samples"
        batch = source.read(0.1)
        if batch is not None:
            batches.append(batch)
    return batches


def ticks_of(batches):
    times = np.concatenate([batch.time for batch in batches])
    return np.rint((times - START_TIME) * 500.0).astype(int).tolist()


class Fed:
    """Feeds the first packets as soon as the client starts, for entering waits for them."""

    def __init__(self, peer, ticks=FIRST):
        self._thread = threading.Thread(target=peer.send_ticks, args=(ticks,), daemon=True)

    def __enter__(self):
        self._thread.start()

    def __exit__(self, *_):
        self._thread.join(10.0)
