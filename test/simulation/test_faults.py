"""Fault injection: syntax, timing, and the effect of each fault on a client."""

from __future__ import annotations

import math
import socket
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from ur_energy_model.errors import InputError
from ur_energy_model.simulation.faults import Faults, parse_fault
from ur_energy_model.simulation.simulated_controller import CONTROL_PORT, SimulatedController
from ur_energy_model.telemetry.rtde.protocol import PacketType

if TYPE_CHECKING:
    from test.simulation.conftest import Connect, Serve
    from ur_energy_model.simulation.control_box import ControlBox

NAMES = ("timestamp", "actual_q", "target_q", "actual_qd", "actual_current", "actual_robot_voltage")
TICK = 0.002


REFUSED = (
    "carry", "carry -1", "carry 1,2", "carry inf", "carry heavy", "carry 1,nan,0,0",
    "carry 1e300", "friction", "friction 1.15", "friction wrist_1_joint",
    "friction wrist_9_joint 1.15", "friction wrist_1_joint 0", "friction wrist_1_joint nan",
    "gravity", "gravity 0,0", "gravity 0,0,1e9", "gravity 0,0,nan", "make coffee",
    "fault no_such_fault", "fault late_ticks:1e300", "fault skipped_packets:inf",
)  # fmt: skip


def ask(server: SimulatedController, line: str) -> str:
    """Send one line to the control port; returns the answer."""
    with socket.create_connection((server.host, CONTROL_PORT), timeout=3.0) as client:
        stream = client.makefile("rw")
        stream.readline()  # the greeting
        stream.write(f"{line}\n")
        stream.flush()
        return stream.readline().strip()


# Spelling


@pytest.mark.parametrize(
    ("text", "start", "duration", "argument"),
    [
        ("stalled_stream", 0, math.inf, ""),
        ("stalled_stream@2.5", 2.5, math.inf, ""),
        ("stalled_stream@2.5+1", 2.5, 1, ""),
        ("voltage_dip", 0, 0.5, "30"),
        ("voltage_dip@10:24.5", 10, 0.5, "24.5"),
        ("voltage_dip@10+inf:24.5", 10, math.inf, "24.5"),
        ("nan_values:actual_q", 0, math.inf, "actual_q"),
    ],
)
def test_spelling(text: str, start: float, duration: float, argument: str) -> None:
    fault = parse_fault(text)
    assert (fault.start, fault.duration, fault.argument) == (start, duration, argument)
    assert parse_fault(str(fault)) == fault


@pytest.mark.parametrize(
    "text",
    [
        "no_such_fault", "", "stalled_stream@", "stalled_stream@1.2.3", "stalled_stream:5",
        "frozen_encoder:6", "frozen_encoder:1.5", "voltage_dip:low", "late_ticks:-1",
        "nan_values:no_such_field", "nan_values:robot_mode", "nan_values:output_double_register_0",
    ],
)  # fmt: skip
def test_bad_spelling_is_refused_with_a_remedy(text: str) -> None:
    with pytest.raises(InputError) as refusal:
        parse_fault(text)
    assert refusal.value.remedy


def test_a_fault_lasts_from_its_start_for_its_duration_or_occurs_once() -> None:
    faults = Faults.parse(["voltage_dip@1+0.5"])
    active = []
    for now in (0.0, 0.99, 1.0, 1.49, 1.5):
        faults.now = now
        active.append(faults.active("voltage_dip") is not None)
    assert active == [False, False, True, True, False]
    faults = Faults.parse(["late_ticks@1:20"])
    assert faults.take_due("late_ticks") is None
    faults.now = 1.0
    assert faults.take_due("late_ticks") is not None
    assert faults.take_due("late_ticks") is None


# Values


@pytest.mark.parametrize("joint", ["elbow_joint", "2"])
def test_frozen_encoder_holds_one_joint(box: ControlBox, joint: str) -> None:
    faults = Faults.parse([f"frozen_encoder@1:{joint}", "voltage_dip@2+1:12"])
    faults.now = 2.0
    held = faults.replaced_values(box.values)["actual_q"][2]
    box.step()
    box.replace_values(faults.replaced_values(box.values))
    true = np.asarray(box.arm.outputs["actual_q"])
    assert (box.values["actual_q"][2], box.values["actual_qd"][2]) == (held, 0.0)
    np.testing.assert_array_equal(np.delete(box.values["actual_q"], 2), np.delete(true, 2))
    assert box.values["actual_robot_voltage"] == 12.0
    box.step()  # true again after the fault
    assert box.values["actual_robot_voltage"] == box.arm.outputs["actual_robot_voltage"]


def test_value_faults_reach_the_client(serve: Serve, connect: Connect) -> None:
    server = serve("nan_values", "voltage_dip@0+inf:24", "garbage_values:target_q")
    client = connect(server)
    assert client.start(*NAMES)
    samples = client.samples(5)
    assert np.isnan(samples["actual_current"]).all()
    assert np.isfinite(samples["actual_q"]).all()
    assert set(samples["actual_robot_voltage"]) == {24.0}
    assert np.ptp(np.log10(np.abs(samples["target_q"]))) > 100.0


# Streams


def test_stalled_stream_stays_connected_and_resumes(serve: Serve, connect: Connect) -> None:
    server = serve()
    client = connect(server)
    client.start(*NAMES)
    before = client.samples(5)["timestamp"][-1]
    assert ask(server, "fault stalled_stream@0+0.3").startswith("ok")
    steps = np.diff(np.r_[before, client.samples(200)["timestamp"]])
    assert steps.max() == pytest.approx(0.3, abs=0.05)
    np.testing.assert_allclose(np.sort(steps)[:-1], TICK, atol=1e-9)


def test_closed_socket(serve: Serve, connect: Connect) -> None:
    server = serve()
    client = connect(server)
    client.start(*NAMES)
    ask(server, "fault closed_socket")
    with pytest.raises((EOFError, ConnectionError)):
        client.samples(1000)
    again = connect(server)
    assert again.start(*NAMES)
    assert len(again.samples(5)) == 5


def test_skipped_packets_leave_a_hole_in_the_clock(serve: Serve, connect: Connect) -> None:
    server = serve()
    client = connect(server)
    client.start(*NAMES)
    ask(server, "fault skipped_packets@0.1:7")
    steps = np.diff(client.samples(150)["timestamp"])
    np.testing.assert_allclose(np.sort(steps)[-2:], [TICK, 8 * TICK], atol=1e-9)


def test_late_ticks_are_caught_up_and_none_is_dropped(serve: Serve, connect: Connect) -> None:
    server = serve()
    client = connect(server)
    client.start(*NAMES)
    ask(server, "fault late_ticks@0.1:100")
    steps = np.diff(client.samples(250)["timestamp"])
    np.testing.assert_allclose(steps, TICK, atol=1e-9)
    assert server.ticker.lateness_max >= 0.09
    assert server.ticker.lateness(0.5) < server.ticker.lateness_max


# Connecting


def test_refused_start(serve: Serve, connect: Connect) -> None:
    server = serve("refused_start")
    client = connect(server)
    assert not client.start(*NAMES)
    ask(server, "clear refused_start")
    assert client.request(PacketType.START) == b"\x01"


@pytest.mark.parametrize(("highest", "accepted"), [("1", [1]), ("0", [])])
def test_wrong_version(serve: Serve, connect: Connect, highest: str, accepted: list[int]) -> None:
    server = serve(f"wrong_version:{highest}")
    client = connect(server)
    kind = PacketType.REQUEST_PROTOCOL_VERSION
    answers = {v: client.request(kind, bytes([0, v])) for v in (2, 1)}
    assert [v for v, answer in answers.items() if answer == b"\x01"] == accepted


def test_reordered_connect(serve: Serve, connect: Connect) -> None:
    server = serve("reordered_connect")
    client = connect(server)
    assert client.start(*NAMES)
    message = client.seen.index(PacketType.TEXT_MESSAGE)
    assert client.seen[message + 1] == PacketType.GET_CONTROLLER_VERSION
    data = client.seen.index(PacketType.DATA_PACKAGE)
    assert client.seen[data + 1] == PacketType.START


def test_half_open_connection_is_silent(serve: Serve, connect: Connect) -> None:
    server = serve("half_open")
    client = connect(server)
    client.socket.settimeout(0.3)
    with pytest.raises(TimeoutError):
        client.request(PacketType.REQUEST_PROTOCOL_VERSION, bytes([0, 2]))


# At run time


def test_control_port(serve: Serve) -> None:
    server = serve()
    server.faults.now = 50.0
    assert ask(server, "fault voltage_dip@100:20").startswith("ok voltage_dip@1")  # from now
    assert "voltage_dip" in ask(server, "list")
    assert ask(server, "clear") == "ok 1 cleared"
    assert ask(server, "list") == "ok"


def test_unannounced_changes_of_the_arm(serve: Serve, arm: Any) -> None:
    server = serve()
    with socket.create_connection((server.host, CONTROL_PORT), timeout=3.0) as client:
        stream = client.makefile("rw")
        stream.readline()
        for line, answer in {
            "carry 2.5,0,0,0.1": "ok carrying 2.5 kg",
            "carry 1": "ok carrying 1 kg",
            "friction wrist_1_joint 1.15": "ok friction of wrist_1_joint times 1.15",
            "gravity 0,-0.86,-9.78": "ok gravity 0, -0.86, -9.78 m/s^2",
            **dict.fromkeys(REFUSED, "refused"),
        }.items():
            stream.write(f"{line}\n")
            stream.flush()
            assert stream.readline().startswith(answer), line
    first, second = arm.carried
    assert (first.mass, first.center_of_mass.tolist(), second.mass) == (2.5, [0, 0, 0.1], 1.0)
    assert arm.friction == [(3, 1.15)]
    np.testing.assert_array_equal(arm.gravity, [0.0, -0.86, -9.78])
