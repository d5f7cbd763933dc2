"""Which controllers are accepted: identity, fields and software, at first and after a loss."""

import threading
import time

import numpy as np
import pytest

from test.telemetry.rtde.rtde_peer import PeerBehaviour, RtdePeer, value_of
from test.telemetry.rtde.source_helpers import (
    FIELDS,
    Dashboard,
    Fed,
    read,
    source_of,
    ticks_of,
)
from ur_energy_model.errors import WrongRobotError
from ur_energy_model.telemetry.rtde.dashboard_client import SIMULATED_SERIAL_PREFIX, program_name
from ur_energy_model.telemetry.rtde.protocol import Recipe
from ur_energy_model.telemetry.rtde.source import observed_rate, with_payload
from ur_energy_model.telemetry.samples import RecordingInfo


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
    assert info.payload_center_of_mass == tuple(np.atleast_1d(value_of("payload_cog", 0)))
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


def refused(source):
    """What the source says after it has been refused on a reconnection."""
    deadline = time.monotonic() + 10.0
    while source.status.reconnects == 0 and time.monotonic() < deadline:
        source.read(0.05)
        if source.status.problem and "software" in source.status.problem:
            break
    return source.status.problem


NEW = PeerBehaviour(version=(5, 12, 0, 1))


def test_other_software_without_a_serial_number_may_be_another_arm():
    with RtdePeer(PeerBehaviour(), NEW) as peer, Fed(peer), source_of(peer) as source:
        read(source, 10)
        assert source.status.identity == "not known: the dashboard server is silent"
        peer.disconnect()
        assert "software changed from 5.11.0.108318 to 5.12.0.1" in refused(source)


def test_other_software_of_the_same_arm_is_an_event():
    with (
        RtdePeer(PeerBehaviour(), NEW) as peer,
        Dashboard(peer.host) as dashboard,
        Fed(peer),
        source_of(peer, dashboard_port=dashboard.port) as source,
    ):
        read(source, 10)
        assert source.status.identity == "serial 20195500123"
        peer.disconnect()
        while source.status.connected:
            source.read(0.05)
        threading.Thread(target=peer.send_ticks, args=(range(50, 60),), daemon=True).start()
        read(source, 10)
        texts = [event.text for event in source.take_events()]
        assert "software changed from 5.11.0.108318 to 5.12.0.1" in texts


@pytest.mark.parametrize("known", [True, False])
def test_a_restart_says_whether_the_arm_is_known_to_be_the_same(peer, known):
    with Dashboard(peer.host) as dashboard, Fed(peer, range(500, 510)):
        port = dashboard.port if known else None
        with source_of(peer, dashboard_port=port) as source:
            read(source, 10)
            peer.disconnect()
            while source.status.connected:
                source.read(0.05)
            threading.Thread(target=peer.send_ticks, args=(range(10),), daemon=True).start()
            read(source, 10)
            said = [e.text for e in source.take_events() if "still the same arm" in e.text]
            assert len(said) == (0 if known else 1)
            assert source.status.identity.startswith("serial" if known else "not known")


def test_another_model_at_the_address_is_refused_even_if_none_was_asked_for(peer):
    with (
        Dashboard(peer.host, serial="?") as dashboard,
        Fed(peer),
        source_of(peer, dashboard_port=dashboard.port) as source,
    ):
        read(source, 10)
        dashboard.model = "UR10"
        peer.disconnect()
        deadline = time.monotonic() + 10.0
        while "UR10" not in (source.status.problem or "") and time.monotonic() < deadline:
            assert source.read(0.05) is None
        assert "is now robot UR10 instead of UR5" in source.status.problem


@pytest.mark.parametrize(
    ("times", "negotiated", "rate"),
    [
        (np.arange(10) / 500.0, 500.0, None),
        (np.arange(10) / 125.0, 500.0, 125.0),
        (np.array([0.0, 0.008, 0.05, 0.06]), 500.0, None),
        (np.arange(10) / 125.0, None, None),
        (np.zeros(3), 500.0, None),
    ],
)
def test_a_rate_counts_where_it_is_regular_and_another_one(
    times: np.ndarray, negotiated: float | None, rate: float | None
) -> None:
    found = observed_rate(times, negotiated)
    assert found is None if rate is None else found == pytest.approx(rate)


def test_the_payload_is_that_of_the_first_packet() -> None:
    recipe = Recipe(("payload", "payload_cog"), ("DOUBLE", "VECTOR3D"))
    records = np.zeros(2, recipe.dtype)
    records[0] = (1.5, (0.1, 0.2, 0.3))
    info = with_payload(RecordingInfo(robot="ur5e"), records)
    assert (info.robot, info.payload_mass) == ("ur5e", 1.5)
    assert info.payload_center_of_mass == (0.1, 0.2, 0.3)


@pytest.mark.parametrize(
    ("answer", "name"),
    [
        ("Loaded program: /programs/line 1/palletize.urp", "palletize"),
        ("loaded program: pick.script", "pick.script"),
        ("Loaded program: a\x1b[31mb.urp", "a[31mb"),
        ("Loaded program: .urp", None),
        ("No program loaded", None),
        ('could not understand: "get loaded program"', None),
        ("", None),
        (None, None),
    ],
)
def test_name_of_the_program_in_the_answer(answer, name):
    assert program_name(answer) == name
