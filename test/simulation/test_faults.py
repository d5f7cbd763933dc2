# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Fault injection: syntax, and the effect of each fault on a client; the control port."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from test.simulation.conftest import ask
from ur_energy_model.errors import InputError
from ur_energy_model.simulation.faults import Faults, parse_fault
from ur_energy_model.telemetry.rtde.protocol import PacketType

if TYPE_CHECKING:
    from test.simulation.conftest import Connect, RtdeClient
    from ur_energy_model.simulation.control_box import ControlBox
    from ur_energy_model.simulation.simulated_controller import SimulatedController

NAMES = (
    "timestamp",
    "actual_q",
    "target_q",
    "actual_qd",
    "actual_current",
    "actual_robot_voltage",
)
TICK = 0.002


def test_bad_spelling_is_refused_with_a_remedy() -> None:
    for text in (
        "no_such_fault", "stalled_stream@1.2.3", "stalled_stream:5", "frozen_encoder:6",
        "voltage_dip:low", "late_ticks:-1", "nan_values:no_such_field", "nan_values:robot_mode",
    ):  # fmt: skip
        with pytest.raises(InputError) as refusal:
            parse_fault(text)
        assert refusal.value.remedy


def test_values_are_replaced_from_the_start_of_a_fault_for_its_duration(
    box: ControlBox,
) -> None:
    faults = Faults.parse(
        ["frozen_encoder@1:elbow_joint", "voltage_dip@2+1:12", "late_ticks@1:20"]
    )
    dips = []
    for faults.now in (0.0, 1.99, 2.0, 2.99, 3.0):
        dips.append("actual_robot_voltage" in faults.replaced_values(box.values))
    assert dips == [False, False, True, True, False]
    assert faults.take_due("late_ticks") is not None, "single events occur once"
    assert faults.take_due("late_ticks") is None
    faults.now = 2.0
    held = np.asarray(box.values["actual_q"])[2]
    box.step()
    box.replace_values(faults.replaced_values(box.values))
    true = np.asarray(box.arm.outputs["actual_q"])
    assert (box.values["actual_q"][2], box.values["actual_qd"][2]) == (held, 0.0)
    np.testing.assert_array_equal(
        np.delete(box.values["actual_q"], 2), np.delete(true, 2)
    )
    assert box.values["actual_robot_voltage"] == 12.0
    box.step()  # true again after the fault
    assert box.values["actual_robot_voltage"] == box.arm.outputs["actual_robot_voltage"]


# Effects on clients of one server, whose faults come by its control port.


@pytest.fixture
def client(server: SimulatedController, connect: Connect) -> Iterator[RtdeClient]:
    yield connect(server)
    server.faults.clear()


def test_faults_of_values_and_of_the_stream(
    server: SimulatedController, client: RtdeClient
) -> None:
    client.start(*NAMES)
    faults = "nan_values", "voltage_dip@0+inf:24", "garbage_values:target_q"
    ask(server, *(f"fault {each}" for each in faults))
    samples = client.samples(50)[-5:]
    assert np.isnan(samples["actual_current"]).all()
    assert np.isfinite(samples["actual_q"]).all()
    assert set(samples["actual_robot_voltage"]) == {24.0}
    assert np.ptp(np.log10(np.abs(samples["target_q"]))) > 100.0
    before = samples["timestamp"][-1]
    ask(server, "clear", "fault stalled_stream@0+0.2", "fault skipped_packets@0.3:7")
    ask(server, "fault late_ticks@0.35:60")
    steps = np.diff(np.r_[before, client.samples(250)["timestamp"]])
    stall, skip = np.sort(steps)[[-1, -2]]
    assert stall == pytest.approx(0.2, abs=0.05)
    assert skip == pytest.approx(8 * TICK), "controller time goes on"
    np.testing.assert_allclose(np.sort(steps)[:-2], TICK, atol=1e-9)
    assert server.ticker.lateness_max >= 0.05, (
        "late ticks are caught up and none is dropped"
    )
    assert server.ticker.lateness(0.5) < server.ticker.lateness_max


def test_faults_while_connecting(
    server: SimulatedController, client: RtdeClient, connect: Connect
) -> None:
    ask(server, "fault refused_start")
    assert not client.start(*NAMES)
    for newest, accepted in ((1, [1]), (0, [])):
        ask(server, "clear", f"fault wrong_version:{newest}")
        kind = PacketType.REQUEST_PROTOCOL_VERSION
        assert [
            v for v in (2, 1) if client.request(kind, bytes([0, v])) == b"\x01"
        ] == accepted
    ask(server, "clear", "fault reordered_connect")
    other = connect(server)
    assert other.start(*NAMES)
    message = other.seen.index(PacketType.TEXT_MESSAGE)
    assert other.seen[message + 1] == PacketType.GET_CONTROLLER_VERSION


REFUSED = (
    "carry", "carry 1,2", "carry inf", "carry 1,nan,0,0", "carry 1e300", "friction 1.15",
    "friction wrist_9_joint 1.15", "friction wrist_1_joint 0", "gravity 0,0", "gravity 0,0,nan",
    "make coffee", "fault late_ticks:1e300", "fault skipped_packets:inf",
)  # fmt: skip


def test_control_port(server: SimulatedController) -> None:
    dialogue = {
        "fault voltage_dip@100:20": "ok voltage_dip@1",  # from now
        "list": "ok voltage_dip@1",
        "clear": "ok 1 cleared",
        "carry 2.5,0,0,0.1": "ok carrying 2.5 kg",
        "carry 1": "ok carrying 1 kg",
        "friction wrist_1_joint 1.15": "ok friction of wrist_1_joint times 1.15",
        "gravity 0,-0.86,-9.78": "ok gravity 0, -0.86, -9.78 m/s^2",
        **dict.fromkeys(REFUSED, "refused"),
    }
    for (line, expected), answer in zip(
        dialogue.items(), ask(server, *dialogue), strict=True
    ):
        assert answer.startswith(expected), line
    arm: Any = server.box.arm
    assert arm.changes == [(2.5, 0, 0, 0.1), (1, 0, 0, 0), (3, 1.15), (0, -0.86, -9.78)]
