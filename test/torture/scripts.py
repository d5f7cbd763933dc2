"""Hostile scripts and packets on every port of a simulated controller."""

from __future__ import annotations

import random
import socket
import struct
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress

from test.torture.case import Case, Family, Verdict
from test.torture.hostile_packets import PORTS, junk
from test.torture.hostile_scripts import ONE_LINERS, hostile_script
from test.torture.package_count import Cutter, is_data
from test.torture.surroundings import PATIENCE, Surroundings
from test.torture.watched import Watched

SCRIPT_PORTS = (30001, 30002, 30003)
PACKAGES = 25
SILENCE = 5.0
"""Longest time for which the stream of data packages may stop [s]."""
_RESET = struct.pack("ii", 1, 0)


def run(case: Case) -> Verdict:
    """Some scripts or packets at once; then another client gets its data packages."""
    host, robot = _robot(case.around)
    draw = case.random
    if case.number < len(ONE_LINERS):
        line = ONE_LINERS[case.number]
        verdict = Verdict(f"script {line[:60]!a}")
        sent = [(draw.choice(SCRIPT_PORTS), line.encode() + b"\n")]
    elif draw.random() < 0.6:
        verdict = Verdict("fuzzed scripts")
        sent = [(draw.choice(SCRIPT_PORTS), hostile_script(draw)) for _ in range(5)]
    else:
        verdict = Verdict("junk on a port")
        sent = [(draw.choice(PORTS), data) for data in draw.sample([*junk(draw)], 5)]
    began = time.monotonic()
    for action in draw.sample([_whole, _split, _cut_off], 1):
        _send(host, sent, action, draw)
    with suppress(OSError):
        _say(host, 29998, b"clear\nquit\n")
        _say(host, 29999, b"unlock protective stop\nquit\n")
    packages = _packages(host)
    verdict.seconds = time.monotonic() - began
    verdict.expect(packages >= PACKAGES, f"{packages} data packages within {SILENCE:g} s after it")
    if not verdict.expect(robot.running, "the simulated controller ended"):
        robot.judge(verdict)
        case.around.kept.pop("scripts: robot")
    verdict.weigh(robot.memory)
    return verdict


def _robot(around: Surroundings) -> tuple[str, Watched]:
    found = around.kept.get("scripts: robot")
    if not isinstance(found, tuple):
        found = around.kept["scripts: robot"] = around.start_robot("--motion", "hold")
    return found


Send = Callable[[socket.socket, bytes, random.Random], None]


def _whole(client: socket.socket, data: bytes, draw: random.Random) -> None:
    client.sendall(data)


def _split(client: socket.socket, data: bytes, draw: random.Random) -> None:
    cut = draw.randrange(len(data) + 1)
    client.sendall(data[:cut])
    time.sleep(0.01)
    client.sendall(data[cut:])


def _cut_off(client: socket.socket, data: bytes, draw: random.Random) -> None:
    client.sendall(data[: draw.randrange(len(data) + 1)])
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)


def _send(host: str, sent: list[tuple[int, bytes]], send: Send, draw: random.Random) -> None:
    """Send all at once, each on a connection of its own; the controller may close them."""
    with ExitStack() as opened:
        for port, data in sent:
            with suppress(OSError):
                client = opened.enter_context(socket.create_connection((host, port), SILENCE))
                send(client, data, draw)
        time.sleep(0.1)


def _say(host: str, port: int, data: bytes) -> None:
    """Send lines and wait for the end of the answers."""
    with socket.create_connection((host, port), SILENCE) as client:
        client.sendall(data)
        while client.recv(65536):
            pass


def _packages(host: str) -> int:
    """Data packages that a new client gets within a while, at most `PACKAGES`."""
    setup = struct.pack(">d", 500.0) + b"timestamp"
    requests = ((ord("V"), struct.pack(">H", 2)), (ord("O"), setup), (ord("S"), b""))
    count, cutter, end = 0, Cutter(), time.monotonic() + SILENCE
    with suppress(OSError), socket.create_connection((host, 30004), SILENCE) as client:
        for kind, payload in requests:
            client.sendall(struct.pack(">HB", 3 + len(payload), kind) + payload)
        while count < PACKAGES and time.monotonic() < end:
            data = client.recv(65536)
            if not data:
                break
            count += sum(map(is_data, cutter.feed(data)))
    return count


def finish(around: Surroundings) -> Verdict:
    """The simulated controller ends as it should, and has complained about nothing."""
    verdict = Verdict("the end of the simulated controller")
    found = around.kept.pop("scripts: robot", None)
    if isinstance(found, tuple):
        found[1].end(PATIENCE)
        found[1].judge(verdict, (0,))
        verdict.expect("\x1b" not in found[1].output, "escape sequences reached the terminal")
    return verdict


FAMILY = Family("scripts", 1.5, run, finish=finish)
