"""Live telemetry: nothing lost, nothing twice, gaps with their causes, never a stale value."""

import socket
import threading
import time

import numpy as np
import pytest

from test.telemetry.rtde.rtde_peer import START_TIME, PeerBehaviour, RtdePeer, value_of
from ur_energy_model.errors import ControllerError, InputError, WrongRobotError
from ur_energy_model.telemetry.rtde import connection as client
from ur_energy_model.telemetry.rtde import source as rtde
from ur_energy_model.telemetry.rtde.protocol import (
    SIMULATED_SERIAL_PREFIX,
    PacketType,
    TextMessage,
    encode_text_message,
    frame,
)
from ur_energy_model.telemetry.rtde.source import RtdeSource
from ur_energy_model.telemetry.samples import Telemetry

FIELDS = ("actual_q", "payload", "payload_cog", "robot_mode")
FIRST = range(rtde.RATE_SAMPLES)


class Dashboard:
    """Answers as a controller's dashboard server does."""

    def __init__(self, host, serial="20195500123", model="UR5"):
        self.serial, self.model = serial, model
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
        answers = {"get serial number": "serial", "get robot model": "model"}
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
    options.setdefault("dashboard_port", closed_port())
    options.setdefault("fields", FIELDS)
    return RtdeSource(peer.host, port=peer.port, **{"batch_seconds": 0.0, **options})


def read(source, count, timeout=10.0):
    """Batches with that many samples."""
    batches: list[Telemetry] = []
    deadline = time.monotonic() + timeout
    while sum(len(part) for part in batches) < count:
        assert time.monotonic() < deadline, f"{count} samples did not come"
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


@pytest.fixture
def peer():
    with RtdePeer() as peer_:
        yield peer_


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


def test_the_robot_is_known_after_entering(peer):
    with Dashboard(peer.host) as dashboard, Fed(peer):
        source = source_of(peer, robot="ur5e", dashboard_port=dashboard.port)
        with source:
            info = source.info
    assert info.robot == "ur5e"
    assert info.serial == "20195500123"
    assert info.controller_version == "5.11.0.108318"
    assert info.rate == 500.0
    assert info.payload_mass == value_of("payload", 0)
    assert info.payload_center_of_mass == tuple(np.asarray(value_of("payload_cog", 0)))
    assert not info.simulated


def test_a_simulated_arm_is_known_by_its_serial_number(peer):
    serial = SIMULATED_SERIAL_PREFIX + "0042"
    with (
        Dashboard(peer.host, serial=serial) as dashboard,
        Fed(peer),
        source_of(peer, dashboard_port=dashboard.port) as source,
    ):
        assert source.info.simulated


def test_another_robot_model_is_refused(peer):
    with (
        Dashboard(peer.host, model="UR10") as dashboard,
        pytest.raises(WrongRobotError, match="is a UR10, not a ur5e"),
    ):
        source_of(peer, robot="ur5e", dashboard_port=dashboard.port).__enter__()


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


def test_a_restarted_controller_is_told_from_a_lost_connection(peer):
    with Fed(peer, range(5000, 5010)), source_of(peer) as source:
        first = read(source, 10)
        peer.disconnect()
        while source.status.connected:
            source.read(0.05)
        threading.Thread(target=peer.send_ticks, args=(range(10),), daemon=True).start()
        second = read(source, 10)
    gap = second[0].gaps[0]
    assert gap.cause.startswith("controller restarted: ")
    assert (gap.index, gap.missing) == (0, 0)
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


def test_a_different_robot_at_the_address_is_refused(peer):
    with (
        Dashboard(peer.host) as dashboard,
        Fed(peer),
        source_of(peer, dashboard_port=dashboard.port) as source,
    ):
        read(source, 10)
        dashboard.serial = "20195500999"
        peer.disconnect()
        deadline = time.monotonic() + 1.0
        while time.monotonic() < deadline:
            assert source.read(0.05) is None
        assert "20195500999 instead of 20195500123" in source.status.last_error
        dashboard.serial = "20195500123"
        threading.Thread(target=peer.send_ticks, args=(range(90, 100),), daemon=True).start()
        assert ticks_of(read(source, 10)) == list(range(90, 100))


def test_a_controller_that_lost_a_field_is_not_recorded_on():
    behaviours = PeerBehaviour(), PeerBehaviour(missing=frozenset({"actual_q"})), PeerBehaviour()
    with RtdePeer(*behaviours) as peer, Fed(peer), source_of(peer) as source:
        read(source, 10)
        peer.disconnect()
        deadline = time.monotonic() + 10.0
        while source.status.reconnects == 0 and time.monotonic() < deadline:
            assert source.read(0.05) is None
        problems = [event.text for event in source.take_events()]
        assert any("no longer offers actual_q" in text for text in problems)
        peer.send_ticks(range(40, 50))
        batch = read(source, 10)[0]
    assert set(batch.columns) == {"timestamp", *FIELDS}


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
def test_impossible_timestamps_are_not_believed(time_):
    def values(name, tick):
        return time_ if name == "timestamp" and tick == 11 else value_of(name, tick)

    with RtdePeer(values=values) as peer, Fed(peer), source_of(peer) as source:
        peer.send_ticks([10])
        read(source, 11)
        peer.send_ticks([11])
        while source.status.connected:
            assert source.read(0.05) is None
        assert "no time" in source.status.last_error


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


def test_another_rate_than_negotiated_is_believed_and_said():
    def values(name, tick):
        return START_TIME + tick / 125.0 if name == "timestamp" else value_of(name, tick)

    with RtdePeer(values=values) as peer, Fed(peer, range(20)), source_of(peer) as source:
        assert source.info.rate == 125.0
        batches = read(source, 20)
        assert not any(batch.gaps for batch in batches)
        assert any("instead of 500" in event.text for event in source.take_events())
