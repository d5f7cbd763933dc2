"""Whatever clients send, the simulated controller keeps running, in time, with finite values."""

from __future__ import annotations

import random
import socket
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

import numpy as np
import pytest

from test.simulation.conftest import Connect, Serve, StandInArm
from test.torture.hostile_packets import PORTS, junk
from test.torture.hostile_scripts import ONE_LINERS, hostile_script
from ur_energy_model.simulation import control_box
from ur_energy_model.simulation.client_interfaces import (
    ScriptSession,
    realtime_packet,
    state_message,
)
from ur_energy_model.simulation.commands import SetPayload
from ur_energy_model.simulation.control_box import MESSAGE_LENGTH, ControlBox
from ur_energy_model.simulation.simulation import Simulation
from ur_energy_model.telemetry.fields import FIELDS
from ur_energy_model.telemetry.rtde.protocol import Recipe

LONGEST_CYCLE = 2.0
"""Bound of one call [s], for busy machines; the worst measured is 0.06 s."""
HOSTILE_NUMBERS = (0.1, -1.5, 1e300, -1e300, 1e-300, np.nan, np.inf, -np.inf, 0.0)


@pytest.fixture(autouse=True)
def _scripts_follow_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control_box, "REPLACEMENT", 0.0)


@pytest.fixture(scope="module")
def moving_box(fresh_host: Callable[[], str]) -> Iterator[ControlBox]:
    """Control box of a simulated arm with physics; no client is connected to its ports."""
    _, controller = Simulation("ur5e", host=fresh_host(), motion="hold").build()
    yield controller.box
    controller._server.close()


def check(box: ControlBox) -> None:
    """Every value is finite and can be sent."""
    names = tuple(name for name in FIELDS if name in box.values and not name.startswith("input_"))
    Recipe(names, tuple(FIELDS[name].kind for name in names), 1).pack(box.values)
    assert realtime_packet(box)
    assert state_message(box)
    wrong = [name for name in names if not np.isfinite(np.asarray(box.values[name], float)).all()]
    assert wrong == []


def timed(action: Callable[[], object]) -> None:
    began = time.monotonic()
    action()
    assert time.monotonic() - began < LONGEST_CYCLE


@pytest.mark.parametrize("line", ONE_LINERS, ids=lambda line: ascii(line[:40]))
def test_a_hostile_script_ends_with_a_message_at_most(moving_box: ControlBox, line: str) -> None:
    box, session = moving_box, ScriptSession(moving_box)
    timed(lambda: session.receive(line.encode() + b"\n"))
    for _ in range(30):
        timed(box.step)
    check(box)
    assert all(len(message.text) <= MESSAGE_LENGTH for message in box.messages)
    box.unlock()
    session.receive(b"set_tcp(p[0,0,0,0,0,0])\nset_payload(0)\nset_digital_out(3, True)\n")
    box.step()
    assert box.values["actual_digital_output_bits"] >> 3 & 1, "the next script runs"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'sleep("nan")', "sleep: t must be a number, not 'nan'"),
        (b"set_tcp([1])", "set_tcp needs six numbers as pose"),
        (b"set_digital_out(1000000000,True)", "n must be a whole number from 0 to 17"),
        (b"sleep(" + b"1+" * 4000 + b"1)", "needs a URScript interpreter"),
        (b"sleep()\x1b[2J\xff", "needs a URScript interpreter"),
        (b"movej([0,0,0,0,0,0], 1, 1, 0, 0, 0)", "at most 5 arguments"),
        (b"movej([0,0,0,0,0,0], b=1)", "b is unknown"),
        (b"set_payload(1e5)", "payload is impossible"),
        (b"movel(p[200,0,0,0,0,0])", "up to 100 m"),
        (b"def rtde_control():\n  global reg_offset_int = 47\nend", "reg_offset_int is 47"),
        (b"def f():\n" + b"sync()\n" * 6000 + b"end", "has 6000 lines"),
    ],
)
def test_the_client_is_told_why_a_script_ended(
    moving_box: ControlBox, line: bytes, reason: str
) -> None:
    moving_box.unlock()
    moving_box.messages.clear()
    ScriptSession(moving_box).receive(line + b"\n")
    moving_box.step()
    assert reason in moving_box.messages[0].text
    assert moving_box.messages[0].level in (0, 1)


@pytest.mark.parametrize("seed", range(4))
def test_scripts_and_registers_of_a_fuzzer(moving_box: ControlBox, seed: int) -> None:
    box, draw = moving_box, random.Random(seed)
    for _ in range(80):
        script = hostile_script(draw)
        timed(lambda script=script: ScriptSession(box).receive(script))  # type: ignore[misc]
        if draw.random() < 0.3:
            registers = {
                f"input_double_register_{i}": draw.choice(HOSTILE_NUMBERS) for i in range(14)
            }
            box.write_inputs({**registers, "input_int_register_0": draw.randrange(-1, 72)})
        if draw.random() < 0.1:
            fraction = draw.choice(HOSTILE_NUMBERS)
            box.write_inputs({"speed_slider_mask": 1, "speed_slider_fraction": fraction})
        for _ in range(draw.choice((1, 5, 40))):
            timed(box.step)
        check(box)
        if draw.random() < 0.3:
            box.unlock()


def test_a_long_program_runs_in_parts_of_a_cycle(box: ControlBox, arm: StandInArm) -> None:
    calls = "".join(f"set_payload({i / 1000})\n" for i in range(100))
    ScriptSession(box).receive(f"def f():\n{calls}end\n".encode())
    counts = []
    for _ in range(7):
        box.step()
        counts.append(sum(isinstance(command, SetPayload) for command in arm.commands))
    assert counts == [20, 40, 60, 80, 100, 100, 100]


def test_a_speed_slider_without_its_value_has_no_effect(box: ControlBox, arm: StandInArm) -> None:
    box.write_inputs({"speed_slider_mask": 1})
    box.write_inputs({"speed_slider_mask": 1, "speed_slider_fraction": np.nan})
    assert arm.commands == []


@pytest.mark.parametrize(
    "order", ["carry 1e300", "fault late_ticks:1e300", "fault skipped_packets:inf"]
)
def test_orders_that_would_stop_the_simulator_are_refused(
    serve: Serve, connect: Connect, order: str
) -> None:
    server = serve()
    with socket.create_connection((server.host, 29998), timeout=5.0) as client:
        lines = client.makefile("rw")
        lines.readline()
        lines.write(order + "\n")
        lines.flush()
        assert lines.readline().startswith("refused")


@pytest.mark.parametrize("port", PORTS)
def test_junk_on_a_port_does_not_stop_the_others(serve: Serve, connect: Connect, port: int) -> None:
    server = serve()
    good = connect(server)
    assert good.start("timestamp")
    for data in junk(random.Random(port)):
        with socket.create_connection((server.host, port), timeout=5.0) as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            with suppress(OSError):  # the server may close at once
                client.sendall(data)
    with socket.create_connection((server.host, 29998), timeout=5.0) as client:
        client.sendall(b"clear\nquit\n")
        while client.recv(4096):
            pass
    times = good.samples(50)["timestamp"]
    assert np.allclose(np.diff(times), 0.002, atol=1e-6)


def test_injected_garbage_is_sent_on_every_port(serve: Serve, connect: Connect) -> None:
    server = serve("garbage_values:actual_current", "nan_values:timestamp")
    streams = [socket.create_connection((server.host, port), 5.0) for port in (30001, 30003)]
    good = connect(server)
    assert good.start("timestamp", "actual_current")
    assert np.isnan(good.samples(100)["timestamp"]).any()
    for stream in streams:
        stream.close()
