# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Live telemetry: every sample once, gaps with their causes, and never another arm's samples."""

import random
import signal
import socket
import threading
import time
from contextlib import contextmanager

import numpy as np
import pytest

from test.telemetry.rtde_peer import START_TIME, PeerBehaviour, RtdePeer, value_of
from ur_energy_model.errors import ControllerError, WrongRobotError
from ur_energy_model.telemetry.clock import HOST_CLOCK
from ur_energy_model.telemetry.fields import FIELDS as TABLE
from ur_energy_model.telemetry.gaps import NO_LOSSES
from ur_energy_model.telemetry.rtde import connection as client
from ur_energy_model.telemetry.rtde import dashboard_client, packet_stream
from ur_energy_model.telemetry.rtde import source as rtde
from ur_energy_model.telemetry.rtde.dashboard_client import SIMULATED_SERIAL_PREFIX
from ur_energy_model.telemetry.rtde.link_report import MAX_EVENTS
from ur_energy_model.telemetry.rtde.protocol import (
    PacketType,
    TextMessage,
    encode_text_message,
    frame,
)
from ur_energy_model.telemetry.rtde.source import LinkOptions, RtdeSource
from ur_energy_model.telemetry.samples import Telemetry

FIELDS = ("actual_q", "payload", "payload_cog", "robot_mode")
FIRST = range(rtde.RATE_SAMPLES)
MESSAGE = encode_text_message(TextMessage("protective stop", "safety", 1))


class Dashboard:
    """Answers as a controller's dashboard server does."""

    def __init__(self, host, serial="20195500123", model="UR5"):
        self.serial = serial
        self.model = model
        self.program = "Loaded program: /programs/line 1/palletize.urp"
        self._listener = socket.create_server((host, 0))
        self.port = self._listener.getsockname()[1]

    def __enter__(self):
        threading.Thread(target=self._serve, daemon=True).start()
        return self

    def __exit__(self, *_):
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _serve(self):
        while True:
            try:
                client_, _ = self._listener.accept()
            except OSError:
                return
            with client_, client_.makefile("rw") as lines:
                lines.write("Connected: Universal Robots Dashboard Server\n")
                lines.flush()
                for line in lines:
                    what = line.split()[-1].replace("number", "serial")
                    lines.write(f"{getattr(self, what, '?')}\n")
                    lines.flush()


def closed_port(host="127.0.10.1"):
    with socket.create_server((host, 0)) as listener:
        return listener.getsockname()[1]


def source_of(peer, dashboard_port=None, silence=LinkOptions.silence, **options):
    link = LinkOptions(peer.port, dashboard_port or closed_port(), silence)
    return RtdeSource(
        peer.host, link=link, **{"batch_seconds": 0.0, "fields": FIELDS, **options}
    )


@contextmanager
def entered(peer, ticks=FIRST, **options):
    """A source that has entered, and has read its first packets."""
    threading.Thread(target=peer.send_ticks, args=(ticks,), daemon=True).start()
    with source_of(peer, **options) as source:
        source.first = read(source, len(ticks))
        yield source


def read(source, count, timeout=240):
    """Batches with that many samples."""
    batches: list[Telemetry] = []
    deadline = time.monotonic() + timeout
    while sum(map(len, batches)) < count:
        assert time.monotonic() < deadline, (
            f"only {sum(map(len, batches))} of {count} samples"
        )
        batch = source.read(0.1)
        if batch is not None:
            batches.append(batch)
    return batches


def read_until(source, condition, timeout=240):
    """Read without samples until the status, which is returned, fulfils a condition."""
    deadline = time.monotonic() + timeout
    while not condition(status := source.status):
        assert time.monotonic() < deadline, status
        assert source.read(0.05) is None
    return status


def refused_with(peer, source, text):
    peer.disconnect()
    read_until(source, lambda status: text in (status.problem or ""))


def lose(peer, source):
    peer.disconnect()
    read_until(source, lambda status: not status.connected)


def again(peer, source, ticks):
    """Batches of these ticks after the next connection."""
    threading.Thread(target=peer.send_ticks, args=(ticks,), daemon=True).start()
    return read(source, len(ticks))


def ticks_of(batches):
    times = np.concatenate([batch.time for batch in batches])
    return np.rint((times - START_TIME) * 500.0).astype(int).tolist()


@pytest.mark.parametrize("versions", [(1, 2), (1,)])
def test_every_sample_arrives_once_in_order_and_bit_for_bit(versions):
    # The first packets come in front of the reply to start; all come in pieces, among
    # messages.
    absent = frozenset({"tcp_offset", "tool_mode"})
    behaviour = PeerBehaviour(protocol_versions=versions, early=(0, 1), missing=absent)
    new = "actual_current_as_torque"
    asked = (*FIELDS, "joint_mode", "tool_mode", "tcp_offset", new)
    chance = random.Random(1)
    with RtdePeer(behaviour) as peer, entered(peer, range(2, 12), fields=asked) as source:
        assert set(source.missing_fields) == {"tool_mode", "tcp_offset", new}
        message = MESSAGE if 2 in versions else b"\x01hello"
        text = frame(PacketType.TEXT_MESSAGE, message)
        stream = b"".join(peer.package(tick) + text for tick in range(12, 1000))
        while stream:
            size = chance.randint(1, 300) if len(stream) > 120_000 else 50_000
            peer.send(stream[:size])
            stream = stream[size:]
        batches = [*source.first, *read(source, 1000 - sum(map(len, source.first)))]
        events = source.take_events()
    assert ticks_of(batches) == list(range(1000))
    assert not any(batch.gaps for batch in batches)
    for name in (*FIELDS, "joint_mode"):
        got = np.concatenate([batch[name] for batch in batches])
        assert (
            got.tobytes() == np.array([value_of(name, i) for i in range(1000)]).tobytes()
        )
    assert len(events) == MAX_EVENTS
    expected = ("safety: protective stop", 40) if 2 in versions else ("hello", 40)
    assert (events[0].kind, events[0].text, events[0].level) == ("message", *expected)


def test_a_lost_connection_is_made_again_and_gaps_are_explained(peer):
    with entered(peer) as source:
        peer.send_ticks([10, 10, 11, 15])
        batches = read(source, 3)
        assert ticks_of(batches) == [10, 11, 15]
        assert source.status.duplicates == 1
        (gap,) = (gap for batch in batches for gap in batch.gaps)
        assert (gap.missing, gap.cause) == (3, "skipped")
        assert (gap.start, gap.end) == (START_TIME + 11 / 500, START_TIME + 15 / 500)
        lose(peer, source)
        batches = again(peer, source, range(60, 70))
        (gap,) = batches[0].gaps
        assert (gap.index, gap.missing, source.status.reconnects) == (0, 44, 1)
        assert gap.cause.startswith("connection lost: ")
        assert {"connection", "gap"} <= {event.kind for event in source.take_events()}
        assert ticks_of(batches) == list(range(60, 70))
        # a stall has not the old error
        status = read_until(source, lambda status: status.problem)
        assert "connected, but sends no new samples" in status.problem
        assert "closed by the controller" in status.last_error
        source.close()
        with pytest.raises(EOFError):
            source.read(0.1)


@pytest.mark.parametrize("moved", [False, True])
def test_a_restarted_controller_differs_from_a_lost_connection(moved):
    def values(name, tick):
        posture = np.full(6, 1.0 if moved and tick < 5000 else 0.0)
        return posture if name == "actual_q" else value_of(name, tick)

    with RtdePeer(values=values) as peer, entered(peer, range(5000, 5010)) as source:
        lose(peer, source)
        batches = again(peer, source, range(10))
        (gap,) = batches[0].gaps
        assert gap.cause.startswith("controller restarted: ")
        assert (
            gap.missing
            == max(0, round(gap.away * 500) - 1)
            == source.status.losses.samples
        )
        stamps = np.concatenate([batch.stamp for batch in (*source.first, *batches)])
        assert (np.diff(stamps) > 0).all()
        (unsure,) = [
            e.text for e in source.take_events() if "still the same arm" in e.text
        ]
        assert ("stands elsewhere" in unsure) == moved


def test_silence_and_outages_are_counted_and_patience_waits(peer):
    with entered(peer, silence=0.3) as source:
        status = read_until(source, lambda status: not status.connected)
        assert "sent nothing" in status.last_error
        peer.refuse()
        status = read_until(
            source, lambda status: status.outage > 0.6 and "refused" in status.problem
        )
        assert "connection refused" in status.problem
        assert status.losses == NO_LOSSES  # the samples may still be on their way
        assert len([e for e in source.take_events() if "no connection" in e.text]) == 1
    impatient = source_of(peer, patience=60.0)
    threading.Timer(0.3, impatient.close).start()  # ends the wait
    with pytest.raises(ControllerError, match="refused"):
        impatient.__enter__()


def of_recipe(peer, tick, **changes):
    """A data package of a tick with other values."""
    return peer.recipe.pack(
        {name: value_of(name, tick) for name in peer.recipe.names} | changes
    )


UNUSABLE = {
    "unknown type": lambda peer: frame(ord("Z"), b"abc"),
    "type zero": lambda peer: frame(0),
    "short": lambda peer: frame(PacketType.DATA_PACKAGE, b"\x01\x02"),
    "empty": lambda peer: frame(PacketType.DATA_PACKAGE),
    "long": lambda peer: frame(PacketType.DATA_PACKAGE, peer.package(5)[3:] + bytes(8)),
    "another recipe": lambda peer: frame(
        PacketType.DATA_PACKAGE, bytes([99]) + peer.package(5)[4:]
    ),
    "malformed text": lambda peer: frame(PacketType.TEXT_MESSAGE, b"\xff\x01"),
    "empty text": lambda peer: frame(PacketType.TEXT_MESSAGE),
    "zeros": lambda peer: peer.recipe.prefix + bytes(peer.recipe.dtype.itemsize),
    "no number": lambda peer: of_recipe(peer, 5, timestamp=float("nan")),
    "the past": lambda peer: of_recipe(peer, 5, timestamp=1.0),
    "the future": lambda peer: of_recipe(peer, 5, timestamp=1e6),
}


@pytest.mark.parametrize("kind", UNUSABLE)
def test_packets_that_cannot_be_used_are_left_out_and_counted(kind, peer):
    """Between samples, and instead of some; the connection stays."""
    with entered(peer) as source:
        bad = UNUSABLE[kind](peer)
        peer.send(b"".join(peer.package(tick) + bad for tick in range(10, 110)))
        peer.send(
            b"".join(peer.package(tick) if tick % 10 else bad for tick in range(110, 200))
        )
        peer.send_ticks([200])
        expected = [
            *range(10, 110),
            *(tick for tick in range(110, 200) if tick % 10),
            200,
        ]
        batches = read(source, len(expected))
        assert ticks_of(batches) == expected
        status = source.status
        assert (status.skipped, status.reconnects, status.duplicates) == (109, 0, 0)
        assert status.losses.samples == 9
        assert {gap.cause for batch in batches for gap in batch.gaps} == {
            packet_stream.UNUSABLE
        }
        told = [event.text for event in source.take_events() if "left out" in event.text]
        assert len(told) == 1
        peer.send(4 * bad)
        status = read_until(source, lambda status: status.problem)
        assert "nothing that can be used" in status.problem


@pytest.mark.parametrize(
    ("broken", "problem"),
    [
        (b"\0\2U", "smaller than its header"),
        (b"\xff\xffU" + bytes(3), "larger than any"),
        (frame(ord("Z")) * 40, "in a row"),
    ],
)
def test_a_stream_whose_packets_are_lost_is_begun_again(broken, problem, peer):
    with entered(peer) as source:
        peer.send(b"".join(peer.package(tick) for tick in range(10, 30)) + broken)
        assert ticks_of(read(source, 20)) == list(range(10, 30))
        status = read_until(source, lambda status: not status.connected)
        assert problem in status.last_error
        peer.disconnect()
        (gap,) = again(peer, source, range(40, 50))[0].gaps
        assert gap.missing == 10


# Negotiation, with controllers that are accepted and with peers that are none.


@pytest.mark.parametrize(
    "behaviour",
    [
        PeerBehaviour(silent_after=3),
        PeerBehaviour(kinds={"actual_q": "VECTOR6D,DOUBLE"}),
        PeerBehaviour(missing=frozenset({"timestamp"})),
        PeerBehaviour(refuse_start=True),
        PeerBehaviour(raw_reply=b"HTTP/1.1 400 Bad Request\r\n\r\n"),
    ],
)
def test_wrong_replies_and_silence_are_refused_in_one_line(behaviour, monkeypatch):
    monkeypatch.setattr(client, "REPLY_TIMEOUT", 0.2)
    with RtdePeer(behaviour) as peer, pytest.raises(ControllerError) as caught:
        source_of(peer).__enter__()
    assert str(caught.value).startswith(peer.host)
    assert len(str(caught.value)) < 300


def test_another_robot_is_refused(peer):
    with Dashboard(peer.host, model="UR10") as dashboard:
        with pytest.raises(WrongRobotError, match="is a ur10e, not a ur5e"):
            source_of(peer, robot="ur5e", dashboard_port=dashboard.port).__enter__()
        dashboard.model = "UR5"
        with entered(peer, dashboard_port=dashboard.port) as source:
            for what, other in (("serial", "20195500999"), ("model", "UR10")):
                mine = getattr(dashboard, what)
                setattr(dashboard, what, other)
                refused_with(peer, source, f"is now robot {other} instead of {mine}")
                setattr(dashboard, what, mine)
            assert ticks_of(again(peer, source, range(90, 100))) == list(range(90, 100))


@pytest.mark.parametrize(
    ("model", "robot"),
    [
        ("UR5", "ur5e"),
        ("UR7", "ur7e"),
        ("UR7e", "ur7e"),
        ("UR12", "ur12e"),
        ("UR15", "ur15"),
        ("UR8LONG", "ur8long"),
        ("UR10G-1750", "ur10g-1750"),
    ],
)
def test_every_arm_that_a_controller_names_is_known_by_name(peer, model, robot):
    with (
        Dashboard(peer.host, model=model) as dashboard,
        entered(peer, dashboard_port=dashboard.port) as source,
    ):
        assert source.info.robot == robot
    if robot != "ur5e":
        with (
            Dashboard(peer.host, model=model) as dashboard,
            pytest.raises(WrongRobotError, match=f"is a {robot}, not a ur5e"),
        ):
            source_of(peer, robot="ur5e", dashboard_port=dashboard.port).__enter__()


def test_changed_software_is_another_arm_unless_the_serial_number_is_the_same():
    new = PeerBehaviour(version=(5, 12, 0, 1))
    change = "software changed from 5.11.0.108318 to 5.12.0.1"
    lacking = PeerBehaviour(missing=frozenset({"actual_q"}))
    with RtdePeer(PeerBehaviour(), lacking, new) as peer, entered(peer) as source:
        refused_with(peer, source, "no longer offers actual_q")
        assert source.status.identity == "not known: the dashboard server is silent"
        refused_with(peer, source, change)
    with (
        RtdePeer(PeerBehaviour(), new) as peer,
        Dashboard(peer.host) as dashboard,
        entered(peer, dashboard_port=dashboard.port) as source,
    ):
        lose(peer, source)
        again(peer, source, range(50, 60))
        assert change in [event.text for event in source.take_events()]


def test_the_robot_is_known_and_the_name_of_its_program_follows(peer, monkeypatch):
    monkeypatch.setattr(dashboard_client, "PAUSE", 0.01)
    serial = SIMULATED_SERIAL_PREFIX + "0042"
    fields = (*FIELDS, "runtime_state")
    with (
        Dashboard(peer.host, serial=serial) as dashboard,
        entered(
            peer, fields=fields, robot="ur5e", dashboard_port=dashboard.port
        ) as source,
    ):
        info = source.info
        assert (info.robot, info.serial, info.rate, info.simulated) == (
            "ur5e",
            serial,
            500.0,
            True,
        )
        assert info.controller_version == "5.11.0.108318"
        assert info.payload_mass == value_of("payload", 0)
        assert info.program == "palletize"
        dashboard.program = "Loaded program: other.urp"
        names = []
        tick = 10
        deadline = time.monotonic() + 240.0
        while names[-1:] != ["other"]:
            assert time.monotonic() < deadline
            peer.send_ticks([tick])
            tick += 1
            names += [batch.info.program for batch in read(source, 1)]
        assert names[-1] == "other"
        assert [event.kind for event in source.take_events()].count("program") == 1


STALL = 4.0
"""Longer than buffers last, the silence that counts as a lost connection, and AHEAD_SECONDS [s]."""


def test_stalls_of_both_sides_end_with_samples(simulate, fresh_host, monkeypatch):
    monkeypatch.setattr(packet_stream, "AHEAD_SECONDS", 1.0)
    monkeypatch.setattr(rtde, "LONGEST_BACKOFF", 0.5)
    host = fresh_host()
    process = simulate(host)
    link = LinkOptions(dashboard_port=closed_port(), silence=1.0)
    with RtdeSource(host, fields=tuple(TABLE), link=link, patience=30.0) as source:
        read(source, 500)
        deadline = time.monotonic() + 240.0
        while source.status.reconnects == 0:  # a slow machine fills buffers more slowly
            assert time.monotonic() < deadline
            time.sleep(STALL)  # as a reader that was stopped
            wait_for_new_samples(source)
        process.send_signal(signal.SIGSTOP)
        end = time.monotonic() + STALL / 2
        while time.monotonic() < end:
            source.read(0.2)
        process.send_signal(signal.SIGCONT)  # sends a burst for the time it stood still
        wait_for_new_samples(source)
        texts = [event.text for event in source.take_events()]
    assert not any("another controller" in text for text in texts)


def wait_for_new_samples(source):
    """Read what waited in buffers, until samples come that were just taken."""
    end = time.monotonic() + 240.0
    while time.monotonic() < end:
        batch = source.read(0.2)
        if batch is not None and HOST_CLOCK.now() - batch.stamp[-1] < 1_000_000_000:
            read(source, 500)
            return
    raise AssertionError(f"no new samples: {source.status.problem}")
