"""The RTDE connection against a peer that behaves, and one that does not."""

import random
import time

import numpy as np
import pytest

from test.telemetry.rtde_peer import PeerBehaviour, RtdePeer, value_of
from ur_energy_model.errors import ControllerError, ProtocolError
from ur_energy_model.telemetry.rtde import connection as client
from ur_energy_model.telemetry.rtde.connection import RtdeConnection
from ur_energy_model.telemetry.rtde.protocol import (
    PacketType,
    TextMessage,
    encode_text_message,
    frame,
)

FIELDS = ("timestamp", "actual_q", "actual_robot_voltage", "robot_mode", "joint_mode")


def receive(connection, recipe, count, timeout=5.0):
    """That many packets, by name."""
    found: list[np.ndarray] = []
    deadline = time.monotonic() + timeout
    while sum(len(part) for part in found) < count:
        assert time.monotonic() < deadline, "packets are missing"
        records = connection.receive(0.1)
        if records is not None:
            found.append(records)
    return recipe.columns(recipe.join(found))


def subscribe_and_start(connection):
    connection.subscribe(FIELDS)
    connection.start()


def receive_until_error(connection):
    """An error that is due ends this; its absence is noticed too."""
    for _ in range(20):
        connection.receive(0.2)


def assert_ticks(columns, ticks):
    for name, values in columns.items():
        expected = np.array([value_of(name, tick) for tick in ticks])
        assert values.tobytes() == expected.tobytes(), name


@pytest.mark.parametrize("versions", [(1, 2), (1,)])
def test_packets_arrive_bit_for_bit(versions):
    behaviour = PeerBehaviour(protocol_versions=versions, early=(0, 1))
    with RtdePeer(behaviour) as peer, RtdeConnection(peer.host, peer.port) as connection:
        subscription = connection.subscribe(FIELDS)
        assert subscription.recipe.recipe_id == (1 if 2 in versions else None)
        assert subscription.version == (5, 11, 0, 108318)
        connection.start(batch=7)
        peer.send_ticks(range(2, 100))  # the first two came in front of the reply to start
        assert_ticks(receive(connection, subscription.recipe, 100), range(100))


def test_packets_may_come_in_pieces_among_messages():
    chance = random.Random(1)
    with RtdePeer() as peer, RtdeConnection(peer.host, peer.port) as connection:
        subscription = connection.subscribe(FIELDS)
        connection.start()
        assert peer.started.wait(5.0)
        text = frame(PacketType.TEXT_MESSAGE, b"\x02hi\x00\x03")
        stream = b"".join(peer.package(tick) + text for tick in range(50))
        while stream:
            size = chance.randint(1, 300)
            peer.send(stream[:size])
            stream = stream[size:]
        assert_ticks(receive(connection, subscription.recipe, 50), range(50))


def test_missing_fields_are_left_out_by_name():
    missing = frozenset({"actual_q", "robot_mode"})
    with (
        RtdePeer(PeerBehaviour(missing=missing)) as peer,
        RtdeConnection(peer.host, peer.port) as connection,
    ):
        subscription = connection.subscribe((*FIELDS, "actual_current_as_torque"))  # is too new
        assert subscription.missing == ("actual_q", "robot_mode", "actual_current_as_torque")
        assert subscription.recipe.names == ("timestamp", "actual_robot_voltage", "joint_mode")
        connection.start()
        peer.send_ticks([0])
        assert_ticks(receive(connection, subscription.recipe, 1), [0])


@pytest.mark.parametrize(
    ("version", "wanted", "asked"),
    [
        ((5, 11, 0, 0), None, 500.0),
        ((5, 11, 0, 0), 100.0, 100.0),
        ((5, 11, 0, 0), 300.0, 500.0),
        ((5, 11, 0, 0), 200.0, 250.0),
        ((3, 15, 0, 0), None, 125.0),
        ((10, 7, 0, 0), None, 500.0),
    ],
)
def test_the_rate_is_one_that_the_controller_has(version, wanted, asked):
    peer = RtdePeer(PeerBehaviour(version=version))
    with peer, RtdeConnection(peer.host, peer.port) as connection:
        assert connection.subscribe(("timestamp",), wanted).rate == asked
        assert peer.frequencies == [asked]


def test_text_messages_are_kept_and_bounded():
    with RtdePeer() as peer, RtdeConnection(peer.host, peer.port) as connection:
        subscription = connection.subscribe(FIELDS)
        connection.start()
        text = frame(
            PacketType.TEXT_MESSAGE,
            encode_text_message(TextMessage("joint 3", "safety", 2)),
        )
        peer.send(text * 5000)
        peer.send_ticks([0])
        receive(connection, subscription.recipe, 1)
        assert connection.messages[0] == TextMessage("joint 3", "safety", 2)
        assert len(connection.messages) == client.MAX_MESSAGES


@pytest.mark.parametrize("requests", [0, 1, 2, 3])
def test_a_peer_that_stops_answering_is_left(requests, monkeypatch):
    monkeypatch.setattr(client, "REPLY_TIMEOUT", 0.2)
    with (
        RtdePeer(PeerBehaviour(silent_after=requests)) as peer,
        RtdeConnection(peer.host, peer.port) as connection,
        pytest.raises(ControllerError, match="does not answer"),
    ):
        subscribe_and_start(connection)


@pytest.mark.parametrize(
    "behaviour",
    [
        PeerBehaviour(kinds={"actual_q": "DOUBLE"}),
        PeerBehaviour(kinds={"actual_q": "VECTOR9D"}),
        PeerBehaviour(kinds={"actual_q": "VECTOR6D,DOUBLE"}),
        PeerBehaviour(missing=frozenset({"timestamp"})),
        PeerBehaviour(refuse_start=True),
        PeerBehaviour(raw_reply=b"\x00\x00\x00"),
        PeerBehaviour(raw_reply=b"\xff"),
        PeerBehaviour(raw_reply=b"HTTP/1.1 400 Bad Request\r\n\r\n"),
        PeerBehaviour(raw_reply=frame(PacketType.REQUEST_PROTOCOL_VERSION, b"")),
    ],
)
def test_wrong_replies_are_refused(behaviour, monkeypatch):
    monkeypatch.setattr(client, "REPLY_TIMEOUT", 0.3)
    with (
        RtdePeer(behaviour) as peer,
        RtdeConnection(peer.host, peer.port) as connection,
        pytest.raises(ControllerError) as caught,
    ):
        subscribe_and_start(connection)
    assert str(caught.value).startswith(peer.host)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    "stream",
    [
        b"\x00\x02U",
        b"\x00\x05U\x02\x00",
        b"\x00\x04\xfe\x00",
        frame(PacketType.TEXT_MESSAGE, b"\xffabc"),
        frame(PacketType.DATA_PACKAGE, b""),
    ],
)
def test_a_broken_stream_is_refused(stream):
    with RtdePeer() as peer, RtdeConnection(peer.host, peer.port) as connection:
        connection.subscribe(FIELDS)
        connection.start()
        peer.send(stream)
        with pytest.raises(ProtocolError):
            receive_until_error(connection)


def test_a_closed_connection_is_noticed():
    with RtdePeer() as peer, RtdeConnection(peer.host, peer.port) as connection:
        connection.subscribe(FIELDS)
        connection.start(batch=25)
        assert peer.started.wait(5.0)
        peer.disconnect()
        with pytest.raises(ControllerError, match="connection lost"):
            receive_until_error(connection)
