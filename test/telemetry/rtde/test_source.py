"""Live telemetry: every sample once, gaps with their causes, never an old value."""

import threading
import time

import numpy as np
import pytest

from test.telemetry.rtde.rtde_peer import START_TIME, RtdePeer, value_of
from test.telemetry.rtde.source_helpers import (
    FIELDS,
    Dashboard,
    Fed,
    closed_port,
    read,
    source_of,
    ticks_of,
)
from ur_energy_model.errors import ControllerError, InputError
from ur_energy_model.telemetry.rtde import connection as client
from ur_energy_model.telemetry.rtde import dashboard_client
from ur_energy_model.telemetry.rtde.protocol import (
    PacketType,
    TextMessage,
    encode_text_message,
    frame,
)
from ur_energy_model.telemetry.rtde.source import LinkOptions, RtdeSource


def test_every_sample_arrives_once_and_in_order(peer):
    with Fed(peer), source_of(peer) as source:
        for start in range(10, 2010, 40):
            peer.send_ticks(range(start, start + 40))
        batches = read(source, 2010)
    assert ticks_of(batches) == list(range(2010))
    assert not any(batch.gaps for batch in batches)
    for name in ("actual_q", "payload_cog", "robot_mode"):
        got = np.concatenate([batch[name] for batch in batches])
        assert got.tobytes() == np.array([value_of(name, i) for i in range(2010)]).tobytes()


def test_packets_are_read_in_batches(peer):
    with Fed(peer), source_of(peer, batch_seconds=0.02) as source:
        batches = read(source, 10)
        for tick in range(10, 50):
            peer.send_ticks([tick])
        batches += read(source, 40)
        peer.send_ticks([50, 51])
        peer.disconnect()
        batches += read(source, 2)  # what came before the end is not lost
    assert ticks_of(batches) == list(range(52))


def test_skipped_packets_are_a_gap(peer):
    with Fed(peer), source_of(peer) as source:
        peer.send_ticks([10, 11, 15, 16])
        batches = read(source, 14)
    gaps = [gap for batch in batches for gap in batch.gaps]
    assert [(gap.missing, gap.cause) for gap in gaps] == [(3, "skipped")]
    assert gaps[0].start == START_TIME + 11 / 500
    assert gaps[0].end == START_TIME + 15 / 500


def test_repeated_packets_are_left_out_and_counted(peer):
    with Fed(peer), source_of(peer) as source:
        peer.send_ticks([10, 10, 11, 11, 11, 12])
        batches = read(source, 13)
        assert ticks_of(batches) == list(range(13))
        assert source.status.duplicates == 3


def test_a_lost_connection_is_made_again_and_the_gap_explained(peer):
    with Fed(peer), source_of(peer) as source:
        read(source, 10)
        peer.disconnect()
        while source.status.connected:
            assert source.read(0.05) is None
        threading.Thread(target=peer.send_ticks, args=(range(60, 70),), daemon=True).start()
        batches = read(source, 10)
        assert source.status.reconnects == 1
        gap = batches[0].gaps[0]
        assert (gap.index, gap.missing) == (0, 50)
        assert gap.cause.startswith("connection lost: ")
        kinds = {event.kind for event in source.take_events()}
    assert {"connection", "gap"} <= kinds
    assert ticks_of(batches) == list(range(60, 70))


def test_a_restarted_controller_differs_from_a_lost_connection(peer):
    with Fed(peer, range(5000, 5010)), source_of(peer) as source:
        first = read(source, 10)
        peer.disconnect()
        while source.status.connected:
            source.read(0.05)
        threading.Thread(target=peer.send_ticks, args=(range(10),), daemon=True).start()
        second = read(source, 10)
    gap = second[0].gaps[0]
    assert gap.cause.startswith("controller restarted: ")
    assert gap.index == 0
    assert 0.0 < gap.away < 30.0
    assert gap.missing == max(0, round(gap.away * 500) - 1)
    assert source.status.lost == gap.missing
    stamps = np.concatenate([batch.stamp for batch in (*first, *second)])
    assert (np.diff(stamps) > 0).all()


def test_a_silent_connection_counts_as_lost(peer):
    with Fed(peer), source_of(peer, silence=0.3) as source:
        read(source, 10)
        deadline = time.monotonic() + 5.0
        while source.status.connected and time.monotonic() < deadline:
            assert source.read(0.1) is None
        assert "sent nothing" in source.status.last_error


def test_reconnecting_backs_off_and_never_serves_old_samples(peer):
    with Fed(peer), source_of(peer) as source:
        read(source, 10)
        peer.refuse()
        peer.disconnect()
        deadline = time.monotonic() + 1.0
        while time.monotonic() < deadline:
            assert source.read(0.05) is None
        assert not source.status.connected
        attempts = [e for e in source.take_events() if "no connection" in e.text]
        assert len(attempts) == 1  # said once, not at every try
        peer.listen_again()
        threading.Thread(target=peer.send_ticks, args=(range(900, 910),), daemon=True).start()
        assert ticks_of(read(source, 10)) == list(range(900, 910))


def test_an_outage_is_counted_while_it_lasts_and_its_problem_said(peer):
    with Fed(peer), source_of(peer) as source:
        read(source, 10)
        status = source.status
        assert (status.problem, status.lost, status.lost_seconds, status.outage) == (None, 0, 0, 0)
        peer.refuse()
        peer.disconnect()
        deadline = time.monotonic() + 10.0
        while source.status.lost < 400 and time.monotonic() < deadline:
            source.read(0.05)
        status = source.status
        assert "connection refused" in status.problem
        assert status.lost == pytest.approx(500 * status.lost_seconds, abs=1)
        assert status.outage == status.lost_seconds
        peer.listen_again()
        threading.Thread(target=peer.send_ticks, args=(range(900, 910),), daemon=True).start()
        read(source, 10)
        status = source.status
        assert (status.problem, status.lost, status.outage) == (None, 890, 0.0)
        assert "refused" in status.last_error
        events = [event.text for event in source.take_events()]
        assert events[-1] == "connected again"


def test_a_stall_is_not_explained_by_an_old_error(peer):
    with Fed(peer), source_of(peer) as source:
        read(source, 10)
        peer.disconnect()
        while source.status.connected:
            source.read(0.05)
        threading.Thread(target=peer.send_ticks, args=(range(60, 70),), daemon=True).start()
        read(source, 10)
        deadline = time.monotonic() + 10.0
        while source.status.problem is None and time.monotonic() < deadline:
            source.read(0.05)
        assert source.status.connected
        assert "connected, but sends no new samples" in source.status.problem
        assert "closed by the controller" in source.status.last_error


def test_a_source_that_waits_for_its_controller_says_why():
    peer = RtdePeer()
    peer.refuse()
    source = source_of(peer, patience=60.0)
    assert source.status.problem == "no connection to the controller yet"

    def enter():
        with pytest.raises(ControllerError):
            source.__enter__()

    entering = threading.Thread(target=enter)
    entering.start()
    deadline = time.monotonic() + 10.0
    while "refused" not in source.status.problem and time.monotonic() < deadline:
        time.sleep(0.01)
    status = source.status
    source.close()
    entering.join(10.0)
    assert "connection refused" in status.problem
    assert (status.connected, status.lost, status.outage) == (False, 0, 0.0)


@pytest.mark.parametrize(
    "garbage",
    [
        frame(PacketType.DATA_PACKAGE, b"\x01too short"),
        frame(77, b"?"),
        b"\x00\x01U",
        frame(PacketType.TEXT_MESSAGE, b"\xff"),
    ],
)
def test_packets_in_front_of_garbage_are_kept(peer, garbage):
    with Fed(peer), source_of(peer) as source:
        read(source, 10)
        peer.send(b"".join(peer.package(tick) for tick in range(10, 30)) + garbage)
        assert ticks_of(read(source, 20)) == list(range(10, 30))
        deadline = time.monotonic() + 10.0
        while source.status.connected and time.monotonic() < deadline:
            source.read(0.05)
        peer.disconnect()
        threading.Thread(target=peer.send_ticks, args=(range(40, 50),), daemon=True).start()
        (gap,) = read(source, 10)[0].gaps
        assert gap.missing == 10


def test_packets_of_a_connection_that_breaks_at_once_are_kept(peer):
    def feed():
        peer.send_ticks(range(3))
        peer.disconnect()

    feeder = threading.Thread(target=feed, daemon=True)
    feeder.start()
    with source_of(peer) as source:
        feeder.join(10.0)
        threading.Thread(target=peer.send_ticks, args=(range(5, 15),), daemon=True).start()
        batches = read(source, 13)
        assert ticks_of(batches) == [0, 1, 2, *range(5, 15)]
        assert source.status.lost == 2


@pytest.mark.parametrize(
    ("host", "port"),
    [
        ("192.168..10", 30004),
        ("", 30004),
        ("x" * 300, 30004),
        ("127.0.0.1", 70000),
    ],
)
def test_what_is_no_address_is_refused_in_one_line(host, port):
    source = RtdeSource(host, link=LinkOptions(port=port, dashboard_port=port))
    with pytest.raises(ControllerError, match="is not the address of a controller") as refusal:
        source.__enter__()
    assert len(str(refusal.value).splitlines()) == 1


def test_messages_of_the_controller_become_events(peer):
    with Fed(peer), source_of(peer) as source:
        message = encode_text_message(TextMessage("protective stop", "safety", 1))
        peer.send(frame(PacketType.TEXT_MESSAGE, message))
        peer.send_ticks([10])
        read(source, 11)
        events = source.take_events()
    assert [(event.kind, event.text, event.level) for event in events] == [
        ("message", "safety: protective stop", 40)
    ]


@pytest.mark.parametrize("time_", [float("nan"), float("inf"), -1.0, 1e300])
def test_impossible_timestamps_are_refused(time_):
    def values(name, tick):
        return time_ if name == "timestamp" and tick == 11 else value_of(name, tick)

    with RtdePeer(values=values) as peer, Fed(peer), source_of(peer) as source:
        peer.send_ticks([10])
        read(source, 11)
        peer.send_ticks([11])
        while source.status.connected:
            assert source.read(0.05) is None
        assert "impossible timestamp" in source.status.last_error


def test_a_peer_that_accepts_and_sends_nothing_is_refused(peer, monkeypatch):
    monkeypatch.setattr(client, "REPLY_TIMEOUT", 0.5)
    with pytest.raises(ControllerError, match="sends no data"):
        source_of(peer, silence=0.3).__enter__()


def test_patience_waits_for_a_robot_that_is_still_booting():
    port_owner = RtdePeer()
    port_owner.refuse()
    source = source_of(port_owner, patience=20.0)
    timer = threading.Timer(0.5, port_owner.listen_again)
    port_owner._thread.start()
    timer.start()
    with Fed(port_owner), source:
        assert len(read(source, 10)) >= 1
    port_owner.__exit__()


@pytest.mark.parametrize("options", [{"fields": ("actual_qqq",)}, {"rate": 0.0}, {"rate": -5.0}])
def test_wishes_that_make_no_sense_are_refused(options):
    with pytest.raises(InputError):
        RtdeSource("127.0.10.1", **options)


def test_a_closed_source_has_ended(peer):
    with Fed(peer), source_of(peer) as source:
        source.close()
        with pytest.raises(EOFError):
            source.read(0.1)


def test_a_rate_other_than_negotiated_is_adopted_and_reported():
    def values(name, tick):
        return START_TIME + tick / 125.0 if name == "timestamp" else value_of(name, tick)

    with RtdePeer(values=values) as peer, Fed(peer, range(20)), source_of(peer) as source:
        assert source.info.rate == 125.0
        batches = read(source, 20)
        assert not any(batch.gaps for batch in batches)
        assert any("instead of 500" in event.text for event in source.take_events())


@pytest.mark.parametrize("answers", [True, False])
def test_the_name_of_the_program_follows_its_state(peer, monkeypatch, answers):
    """Asked for beside the samples; a controller without dashboard server has none, and no error"""
    monkeypatch.setattr(dashboard_client, "PAUSE", 0.01)
    fields = (*FIELDS, "runtime_state")
    with Dashboard(peer.host) as dashboard, Fed(peer):
        port = dashboard.port if answers else closed_port()
        with source_of(peer, fields=fields, dashboard_port=port) as source:
            assert source.info.program == ("palletize" if answers else None)
            dashboard.program = "Loaded program: other.urp"
            read(source, 10)
            names, tick = [], 10
            while len(names) < (200 if answers else 20) and names[-1:] != ["other"]:
                peer.send_ticks([tick])
                tick += 1
                names += [batch.info.program for batch in read(source, 1)]
            kinds = [event.kind for event in source.take_events()]
    assert names[-1] == ("other" if answers else None)
    assert kinds.count("program") == answers
    assert "connection" not in kinds
