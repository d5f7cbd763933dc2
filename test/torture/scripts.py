# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Hostile scripts and packets on every port of a simulated controller."""

from __future__ import annotations

import random
import re
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress

from test.torture.harness import Case, Family, Surroundings, Verdict
from test.torture.network import DATA, RESET, packets
from ur_energy_model.telemetry.fields import FIELDS
from ur_energy_model.telemetry.rtde.protocol import (
    MAX_FRAME,
    PacketType,
    encode_output_setup,
    frame,
)

ONE_LINERS = (
    *(f"sleep({each})" for each in ("1+" * 3000 + "1", "-" * 5000 + "1", "9" * 5000, '"nan"')),
    *(f"sleep({a * 5000}{b}{c * 5000})" for a, b, c in (("(", "1", ")"), ("[", "", "]"))),
    'popup("' + "x" * 300_000 + '")',
    "textmsg(" + ",".join(["1"] * 10_000) + ")",
    "digital_out[99999999999]=True",
    "def rtde_control():\n    global reg_offset_int = 99999999999999999999\nend",
    "rtde_control(", "movej([1,2,3", "end", "\x00\xff\x01(",
    "movej([1,-1.5,1.5,0,0,0],a=1e300,v=1e300)", "movej([[1],0,0,0,0,0])",
    "movel(p[1e160,0,0,0,0,0])", "servoj([0,-1.5,1.5,0,0,0],0,0,1e300,0.1,300)",
    "def f():\n" + "sleep(0)\n" * 20_000 + "end",
)  # fmt: skip
"""Scripts that once ended the simulator, and their relatives."""
RIGHT = (
    "movej([0,-1.5,1.5,-1.5,-1.5,0], a=1.4, v=1.05, t=0, r=0)",
    "movej(p[0.3,0.2,0.4,0,3,0], t=0.5)",
    "movel(p[0.3,0.2,0.4,0,3,0], a=1.2, v=0.25)",
    "movel([0.1,-1.4,1.5,-1.5,-1.5,0], 1.2, 0.25)",
    "servoj([0.01,-1.5,1.5,-1.5,-1.5,0], 0, 0, 0.1, 0.1, 300)",
    "speedj([0.1,0,0,0.2,0,0], 1.4, 0.1)",
    "stopj(2)", "stopl(2)", "sleep(0.01)", "sync()", "protective_stop()",
    "set_payload(1.5, [0,0,0.1])",
    "set_target_payload(1.5, [0,0,0.1], [0.1,0.1,0.1,0,0,0])",
    "set_tcp(p[0,0,0.1,0,0.2,0])",
    "set_digital_out(2, True)", "set_tool_digital_out(1, False)", "digital_out[3]=True",
    "write_output_integer_register(3, 5)", "write_output_float_register(3, 0.5)",
    'textmsg("a # b", 5)', 'popup("hello")', "force_mode(1)", "no_such_function(1)",
)  # fmt: skip
VALUES = (
    "0", "-1", "17", "200", "1e5", "1e300", "-1e300", "1e-300", "1e160", "1e999", "nan",
    "-2147483649", "1" + "0" * 40, "True", '"nan"', '""', "[]", "p[]", "None", "1e", "--1", "x=1",
    "[0,-1.5,1.5,-1.5,-1.5,0]", "p[0.3,0.2,0.4,0,3,0]", "[1,[1e300]]",
)  # fmt: skip


def hostile_script(random: random.Random) -> bytes:
    """One script: calls with one wrong number or other arguments, blocks, junk and cut ones."""
    kind = random.random()
    if kind < 0.05:
        return random.randbytes(random.randint(1, 300)) + b"\n"
    if kind < 0.1:
        number = random.randint(-9, 99)
        return b"def rtde_control():\n    global reg_offset_int = %d\nend\n" % number
    calls = [_call(random) for _ in range(random.choice((1, 1, 1, 2, 5, 40)))]
    text = "\n".join(calls) + "\n"
    if kind > 0.6:
        text = "def f():\n" + "".join(f"  {call}\n" for call in calls) + "end\n"
    if kind > 0.95:
        cut = random.randrange(len(text))
        text = (
            text[:cut]
            + random.choice(("", "\n", "\nend\n", ")" * 50, "[" * 300))
            + text[cut:]
        )
    return text.encode()


def _call(random: random.Random) -> str:
    """A right call, one with another number, or one with any arguments."""
    call = random.choice(RIGHT)
    kind = random.random()
    if kind < 0.3:
        values = random.choices(VALUES, k=random.choice((0, 1, 1, 2, 2, 3, 4, 6, 9)))
        return f"{call.partition('(')[0]}({', '.join(values)})"
    numbers = list(re.finditer(r"-?\d+(?:\.\d+)?", call))
    if not numbers or kind < 0.4:
        return call
    place = random.choice(numbers)
    return call[: place.start()] + random.choice(VALUES) + call[place.end() :]


PORTS = (29998, 29999, 30001, 30002, 30003, 30004)
"""Control port, dashboard, client interfaces and RTDE."""
SCRIPT_PORTS = PORTS[2:5]


def junk(draw: random.Random) -> Iterator[bytes]:
    """Bytes for any port: junk, endless lines, lying frames, hostile setups and scripts."""
    names = ",".join(sorted(FIELDS)).encode()
    frequency = struct.pack(
        ">d", draw.choice((0.0, -1.0, float("nan"), 1e300, 1e-320, 500.0))
    )
    yield draw.randbytes(draw.randint(1, 5000))
    yield from (b"\n" * 20_000, b"x" * 200_000 + b"\n", struct.pack(">HB", 2, ord("V")))
    yield b"load " + b"\xff" * 3000 + b"\x1b[2J.urp\nplay\nget loaded program\n" * 20
    yield b"fault garbage_values:timestamp\nclear\n" * 200
    yield frame(
        PacketType.SETUP_OUTPUTS, encode_output_setup(("actual_q",) * 1500, 500.0)
    )
    yield frame(PacketType.SETUP_OUTPUTS, (frequency + names)[: MAX_FRAME - 3])
    mask = frame(PacketType.SETUP_INPUTS, b"speed_slider_mask")
    yield mask + frame(PacketType.DATA_PACKAGE, b"\x01\xff\xff\xff\xff")
    for kind in range(256):
        yield frame(kind, draw.randbytes(draw.randint(0, 20)))
    yield hostile_script(draw) * 3


HOLDING = ("--motion", "hold")
PACKAGES = 25
SILENCE = 5.0  # longest time for which the stream of data packages may stop [s]


def run(case: Case) -> Verdict:
    """Some scripts or packets at once; then another client gets its data packages."""
    host, robot = case.around.controller(*HOLDING)
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
    _send(host, sent, draw.choice(("whole", "split", "cut off")), draw)
    for port, ending in (
        (29998, b"clear\nquit\n"),
        (29999, b"unlock protective stop\nquit\n"),
    ):
        with suppress(OSError), socket.create_connection((host, port), SILENCE) as client:
            client.sendall(ending)
            while client.recv(65536):
                pass
    found = _packages(host)
    verdict.time_since(began)
    verdict.expect(
        found >= PACKAGES, f"{found} data packages within {SILENCE:g} s after it"
    )
    if not verdict.expect(robot.running, "the simulated controller ended"):
        robot.judge(verdict)
    verdict.weigh(robot.memory)
    return verdict


def _send(
    host: str, sent: list[tuple[int, bytes]], how: str, draw: random.Random
) -> None:
    """Send all at once, each on a connection of its own; the controller may close them."""
    with ExitStack() as opened:
        for port, data in sent:
            cut = len(data) if how == "whole" else draw.randrange(len(data) + 1)
            with suppress(OSError):
                client = opened.enter_context(
                    socket.create_connection((host, port), SILENCE)
                )
                client.sendall(data[:cut])
                if how == "split":
                    time.sleep(0.01)
                    client.sendall(data[cut:])
                elif how == "cut off":
                    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        time.sleep(0.1)


def _packages(host: str) -> int:
    """Data packages that a new client gets within a while, at most `PACKAGES`."""
    count = 0
    rest = bytearray()
    end = time.monotonic() + SILENCE
    with suppress(OSError), socket.create_connection((host, 30004), SILENCE) as client:
        client.sendall(frame(PacketType.REQUEST_PROTOCOL_VERSION, struct.pack(">H", 2)))
        client.sendall(
            frame(PacketType.SETUP_OUTPUTS, encode_output_setup(("timestamp",), 500.0))
        )
        client.sendall(frame(PacketType.START, b""))
        while (
            count < PACKAGES and time.monotonic() < end and (data := client.recv(65536))
        ):
            count += sum(packet[2] == DATA for packet in packets(rest, data))
    return count


def finish(around: Surroundings) -> Verdict:
    """The simulated controller ends as it should, and has complained about nothing."""
    verdict = Verdict("the end of the simulated controller")
    _, robot = around.controller(*HOLDING)
    robot.end()
    robot.judge(verdict, (0,))
    verdict.expect("\x1b" not in robot.output, "escape sequences reached the terminal")
    return verdict


FAMILY = Family("scripts", 1.5, run, finish=finish)
